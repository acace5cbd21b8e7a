//! Plans: how a coordinator divides the work of a dynamic agent between sub-agents (W19–W22).
//!
//! [`read`] finds a plan in an answer, by the rule of reports, and checks all of it before anything is launched;
//! [`correction`] is what the coordinator is told when that fails, and [`write_form`] what it is told in the first
//! place. [`Plan::agents`] makes of an accepted plan the agents that run.

mod check;
mod correction;
mod cover;
mod form;
mod model;
mod rules;

pub use check::check;
pub use correction::correction;
pub use form::write_form;
pub use model::{Plan, SubAgent, Unit};
pub use rules::rules_out_every_plan;

use crate::fault::{Fault, FaultCode};
use crate::report;
use crate::task::AgentDefinition;

/// The JSON Schema of a plan, for editors and for models that are asked for structured output. It holds what a schema
/// can: fields, types, forms. What joins one part with another, and what the dynamic agent allows, is for [`read`].
pub const SCHEMA: &str = include_str!("schema.json");

/// Finds the plan in an answer of a dynamic agent's coordinator, and checks it. `cut` says that the model's limit ended
/// the answer.
///
/// # Errors
/// Every fault at once, in the order of the answer, each with its JSON pointer in the plan and its line and column in
/// the answer; no more than ten thousand are told. An answer without a plan, or with one that is not JSON, has that
/// single fault; when it was cut, that it was. What is held against the rules is told at [`check`].
pub fn read(answer: &str, agent: &AgentDefinition, cut: bool) -> Result<Plan, Vec<Fault>> {
    let (root, _) = report::object(answer, "plan", FaultCode::NoPlan, cut).map_err(|fault| vec![fault])?;
    check(&root, agent)
}

#[cfg(test)]
mod tests;

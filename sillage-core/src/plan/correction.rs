//! What goes back to a coordinator whose plan was refused (W21).

use super::form::write_form;
use crate::fault::{Fault, FaultCode};
use crate::report::{MAX_RETURNS, push_faults};
use crate::task::AgentDefinition;

/// The message that sends a plan back, in the same session, to the coordinator of `agent`. `attempt` is the number of
/// this return, from 1 to [`MAX_RETURNS`].
#[must_use]
pub fn correction(faults: &[Fault], attempt: u32, agent: &AgentDefinition) -> String {
    let mut text = String::with_capacity(4_096);
    text.push_str("Your plan was not accepted, and nothing was launched. What is wrong:\n\n");
    push_faults(&mut text, faults);
    text.push('\n');
    if faults.iter().any(|fault| fault.code == FaultCode::CutAnswer) {
        text.push_str("Answer with the plan alone, and shorter, so that it is not cut again.\n");
    }
    text.push_str("Write the whole plan again, with every fault corrected");
    if faults.iter().any(|fault| fault.line.is_some()) {
        text.push_str(" (lines and columns count from 1, in the whole of your last answer)");
    }
    text.push_str(".\n");
    text.push_str(&match attempt {
        attempt if attempt >= MAX_RETURNS => format!(
            "This is return {attempt} of {MAX_RETURNS}, the last: if the next plan is refused, your step fails.\n\n"
        ),
        attempt => format!("This is return {attempt} of {MAX_RETURNS}.\n\n"),
    });
    write_form(&mut text, agent);
    text
}

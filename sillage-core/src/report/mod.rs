//! Reports: the short structured result that each agent returns (W15–W18).
//!
//! [`find`] looks for one in an answer, [`read`] also checks it, [`correction`] is what the agent is told when that
//! fails, and [`write_form`] is what it is told in the first place.

mod check;
mod correction;
mod find;
mod form;
mod model;

pub(crate) use check::shown;
pub use check::{MAX_REPORT, MAX_SUMMARY};
pub(crate) use correction::push_faults;
pub use correction::{MAX_RETURNS, correction, missing_deliverable};
pub use find::{Found, find};
pub use form::write_form;
pub use model::{
    Blocker, Check, CheckKind, CheckStatus, Decision, Outcome, Reference, ReferenceKind, Report,
};

use crate::document::{Node, json};
use crate::fault::{Fault, FaultCode};

/// The JSON Schema of a report, for editors and for models that are asked for structured output.
pub const SCHEMA: &str = include_str!("schema.json");

/// What a step's report must hold besides what every report must.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expected<'a> {
    /// The outputs that the agent declares (W6): each must be given, and where there are any no other may be.
    pub outputs: &'a [String],
}

/// Finds the report in an agent's final answer and checks it. `cut` says that the model's limit ended the answer.
///
/// # Errors
/// Every fault at once, each with its JSON pointer in the report and its line and column in the answer. An answer
/// without a report, or with one that is not JSON, has that single fault; when it was cut, that it was.
pub fn read(answer: &str, expected: &Expected<'_>, cut: bool) -> Result<Report, Vec<Fault>> {
    let (root, text) = object(answer, "report", FaultCode::NoReport, cut).map_err(|fault| vec![fault])?;
    check::check(&root, text, expected)
}

/// The tree of the object in which an agent hands over its `what`, and the text of that object. `none` is the code of
/// an answer that holds no object, `cut` says that the model's limit ended the answer.
pub(crate) fn object<'a>(
    answer: &'a str,
    what: &str,
    none: FaultCode,
    cut: bool,
) -> Result<(Node, &'a str), Fault> {
    let fault = match find(answer) {
        Found::Json { text, place } => match json::read(text, place) {
            Ok(root) => return Ok((root, text)),
            Err(error) => {
                let message = format!("the {what} is not JSON: {}", error.message);
                let place = error.place.unwrap_or(place);
                check::fault(FaultCode::BadJson, message, String::new(), place)
            }
        },
        Found::Unclosed(place) => {
            let message = "the JSON object that is opened here is never closed".to_owned();
            check::fault(FaultCode::BadJson, message, String::new(), place)
        }
        Found::Nothing => Fault {
            code: none,
            message: format!(
                "there is no {what} in the answer: end it with one JSON object in a fenced `json` block"
            ),
            path: String::new(),
            line: None,
            column: None,
            suggestion: None,
        },
    };
    if !cut {
        return Err(fault);
    }
    // What cannot be read only shows that the answer was cut.
    Err(Fault {
        code: FaultCode::CutAnswer,
        message: format!("the model's limit cut the answer before the {what} was complete"),
        ..fault
    })
}

#[cfg(test)]
mod tests;

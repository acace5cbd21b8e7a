//! Reports: the short structured result that each agent returns (W15–W18).
//!
//! [`find`] looks for one in an answer, [`read`] also checks it, [`correction`] is what the agent is told when that
//! fails, and [`write_form`] is what it is told in the first place.

mod check;
mod correction;
mod find;
mod form;
mod model;

pub use check::{MAX_REPORT, MAX_SUMMARY};
pub use correction::{MAX_RETURNS, correction, missing_deliverable};
pub use find::{Found, find};
pub use form::write_form;
pub use model::{
    Blocker, Check, CheckKind, CheckStatus, Decision, Outcome, Reference, ReferenceKind, Report,
};

use crate::document::{Place, Unreadable, json};
use crate::fault::{Fault, FaultCode};

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
    let (text, place) = match find(answer) {
        Found::Json { text, place } => (text, place),
        Found::Nothing => return Err(vec![unreadable(cut, no_report())]),
        Found::Unclosed(place) => return Err(vec![unreadable(cut, unclosed(place))]),
    };
    match json::read(text, place) {
        Ok(root) => check::check(&root, text, expected),
        Err(error) => Err(vec![unreadable(cut, bad_json(error, place))]),
    }
}

fn no_report() -> Fault {
    let message =
        "there is no report in the answer: end it with one JSON object in a fenced `json` block".into();
    Fault {
        code: FaultCode::NoReport,
        message,
        path: String::new(),
        line: None,
        column: None,
        suggestion: None,
    }
}

fn unclosed(place: Place) -> Fault {
    let message = "the JSON object that is opened here is never closed".into();
    check::fault(FaultCode::BadJson, message, String::new(), place)
}

fn bad_json(error: Unreadable, start: Place) -> Fault {
    let message = format!("the report is not JSON: {}", error.message);
    check::fault(
        FaultCode::BadJson,
        message,
        String::new(),
        error.place.unwrap_or(start),
    )
}

/// What is told of an answer whose report cannot be read: `fault`, unless that only shows that it was cut.
fn unreadable(cut: bool, fault: Fault) -> Fault {
    if !cut {
        return fault;
    }
    let message = "the model's limit cut the answer before the report was complete".into();
    Fault {
        code: FaultCode::CutAnswer,
        message,
        ..fault
    }
}

#[cfg(test)]
mod tests;

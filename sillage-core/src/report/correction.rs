//! What goes back to an agent whose report was refused (W17).

use std::fmt::Write as _;
use std::path::Path;

use super::{Expected, write_form};
use crate::fault::{Fault, FaultCode};

/// How often a report goes back to its agent; the failure after that fails the step (W17).
pub const MAX_RETURNS: u32 = 2;

/// Most faults that are told in one message; the rest is counted.
const MOST_TOLD: usize = 30;

/// The fault of a deliverable's file (W6): `file` is relative to the step's folder, `empty` says that it is there.
#[must_use]
pub fn missing_deliverable(file: &Path, empty: bool) -> Fault {
    let state = if empty { "is empty" } else { "does not exist" };
    let message = format!(
        "the report says `complete`, but the deliverable `{}` {state}",
        file.display()
    );
    let code = FaultCode::MissingDeliverable;
    Fault {
        code,
        message,
        path: String::new(),
        line: None,
        column: None,
        suggestion: None,
    }
}

/// The message that sends a report back, in the same session. `attempt` is the number of this return, from 1 to
/// [`MAX_RETURNS`].
#[must_use]
pub fn correction(faults: &[Fault], attempt: u32, expected: &Expected<'_>) -> String {
    let told = |code: FaultCode| faults.iter().any(|fault| fault.code == code);
    let mut text = String::with_capacity(4_096);
    text.push_str("Your report was not accepted. What is wrong:\n\n");
    push_faults(&mut text, faults);
    text.push('\n');
    if told(FaultCode::MissingDeliverable) {
        text.push_str(
            "Make each file that is named above, in your working folder, and then report again. \
             If you cannot, report `partial`, or `blocked` with what stands in the way.\n",
        );
    }
    if told(FaultCode::CutAnswer) {
        text.push_str("Answer with the report alone, and shorter, so that it is not cut again.\n");
    }
    text.push_str(
        "Do not repeat work that is done. Write the whole report again, with every fault corrected",
    );
    if faults.iter().any(|fault| fault.line.is_some()) {
        text.push_str(" (lines and columns count from 1, in the whole of your last answer)");
    }
    text.push_str(".\n");
    if attempt >= MAX_RETURNS {
        text.push_str("This is the last return: if the next report is refused, your step fails.\n");
    }
    text.push('\n');
    write_form(&mut text, expected);
    text
}

/// Adds a line for each fault; where there are very many, the last line counts the rest.
pub(crate) fn push_faults(text: &mut String, faults: &[Fault]) {
    for fault in faults.iter().take(MOST_TOLD) {
        push_fault(text, fault);
    }
    if faults.len() > MOST_TOLD {
        // Writing to a text does not fail, here and below.
        let _ = writeln!(text, "- and {} more faults", faults.len() - MOST_TOLD);
    }
}

fn push_fault(text: &mut String, fault: &Fault) {
    text.push_str("- ");
    if let (Some(line), Some(column)) = (fault.line, fault.column) {
        let _ = write!(text, "line {line}, column {column}: ");
    }
    text.push_str(&fault.message);
    if !fault.path.is_empty() {
        let _ = write!(text, " (at `{}`)", fault.path);
    }
    if let Some(near) = &fault.suggestion {
        let _ = write!(text, "; did you mean `{near}`?");
    }
    text.push('\n');
}

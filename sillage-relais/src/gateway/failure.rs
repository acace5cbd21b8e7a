//! Why a call is not answered as it wishes, as problem documents.

use sillage_core::ports::runtime::RuntimeError;

use super::book::Refusal;
use super::journal::JournalError;
use crate::translate::{instant, seconds};
use crate::wire::{Problem, ProblemKind};

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// The book refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The runtime did not do it.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// It cannot be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The request itself is at fault.
    #[error("{}", .0.detail)]
    Problem(Box<Problem>),
    /// The gateway is ending.
    #[error("the gateway is ending: ask again once it was started again")]
    Ending,
}

impl Failure {
    /// A problem of the request.
    pub(super) fn problem(kind: ProblemKind, detail: impl Into<String>) -> Failure {
        Failure::Problem(Box::new(kind.document(detail)))
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        let words = failure.to_string();
        match failure {
            Failure::Refused(refusal) => of_refusal(refusal, words),
            Failure::Runtime(error) => of_runtime(error, words),
            Failure::Journal(_) => ProblemKind::Storage.document(words),
            Failure::Problem(problem) => *problem,
            Failure::Ending => ProblemKind::Temporary.document(words),
        }
    }
}

fn of_refusal(refusal: Refusal, words: String) -> Problem {
    let kind = match &refusal {
        Refusal::Unknown(_) => ProblemKind::NotFound,
        Refusal::Conflict { .. } => ProblemKind::Conflict,
        Refusal::Busy(_) | Refusal::Starting(_) => ProblemKind::Busy,
        Refusal::Over { .. } | Refusal::Deleted(_) => ProblemKind::Lost,
        Refusal::Full(_) => ProblemKind::Capacity,
    };
    let fields = match refusal {
        Refusal::Conflict { fields, .. } => fields,
        Refusal::Unknown(_)
        | Refusal::Busy(_)
        | Refusal::Over { .. }
        | Refusal::Starting(_)
        | Refusal::Deleted(_)
        | Refusal::Full(_) => Vec::new(),
    };
    Problem {
        fields,
        ..kind.document(words)
    }
}

fn of_runtime(error: RuntimeError, words: String) -> Problem {
    let after = |kind: ProblemKind, retry_after: Option<std::time::Duration>| Problem {
        retry_after: retry_after.map(seconds),
        ..kind.document(words.clone())
    };
    match error {
        RuntimeError::Temporary { retry_after, .. } => after(ProblemKind::Temporary, retry_after),
        RuntimeError::Capacity { retry_after, .. } => after(ProblemKind::Capacity, retry_after),
        RuntimeError::Quota { resets_at, .. } => Problem {
            resets_at: resets_at.map(instant),
            ..after(ProblemKind::Quota, None)
        },
        RuntimeError::SignIn { .. } => after(ProblemKind::SignIn, None),
        RuntimeError::Conflict { fields, .. } if fields.is_empty() => after(ProblemKind::Busy, None),
        RuntimeError::Conflict { fields, .. } => Problem {
            fields,
            ..after(ProblemKind::Conflict, None)
        },
        RuntimeError::Lost { .. } => after(ProblemKind::Lost, None),
        RuntimeError::Unstoppable { pid, .. } => Problem {
            pid: Some(pid),
            ..after(ProblemKind::Unstoppable, None)
        },
        // Errors of a later version too: what is not known to pass is not tried for ever.
        RuntimeError::Permanent { .. } | _ => after(ProblemKind::Permanent, None),
    }
}

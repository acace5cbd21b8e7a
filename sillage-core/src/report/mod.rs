//! Reports: the short structured result that each agent returns (W15–W18).

mod model;

pub use model::{Blocker, Check, CheckKind, CheckStatus, Decision, Outcome, Reference, ReferenceKind, Report};

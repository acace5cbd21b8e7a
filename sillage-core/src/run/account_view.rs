//! Provider accounts that a run waits for, for people and programs: each told once, not once an agent (R8, R10).

use std::fmt;

use serde::Serialize;

use super::Run;
use super::event::WaitCause;
use super::gates::Gate;
use crate::plain;
use crate::time::Timestamp;

/// An account that is waited for. Dates are milliseconds since 1970 in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccountView {
    /// The account.
    pub account: String,
    /// What for.
    pub cause: WaitCause,
    /// Since when.
    pub since: Timestamp,
    /// When it is used again, or tried.
    pub until: Timestamp,
    /// The date that the provider named; none: it named none that is ahead.
    pub resets_at: Option<Timestamp>,
    /// Whether that date is too far away to be trusted.
    pub doubtful: bool,
    /// Whether a single agent tries it at that time, rather than all going on.
    pub single: bool,
    /// The agent that tries it now.
    pub tried_by: Option<String>,
    /// Agents that are held.
    pub held: usize,
    /// The provider's words.
    pub words: String,
}

impl AccountView {
    /// The accounts that the run waits for, in a fixed order; none once it is over.
    #[must_use]
    pub fn all(run: &Run) -> Vec<AccountView> {
        if run.end().is_some() {
            return Vec::new();
        }
        let closed = run.gates.closed();
        closed
            .map(|(account, gate, held)| AccountView {
                account: account.to_owned(),
                cause: gate.wall.cause,
                since: gate.since,
                until: gate.wall.until,
                resets_at: gate.wall.resets_at,
                doubtful: gate.wall.is_doubtful(),
                single: gate.wall.single,
                tried_by: gate.probe.map(|step| run.step_name(step).to_owned()),
                held,
                words: gate.wall.words.clone(),
            })
            .collect()
    }
}

/// E.g. `account acme: quota until 2026-01-01T00:00:00Z, 3 agents wait: the provider's words`.
impl fmt::Display for AccountView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (account, words) = (plain::line(&self.account), plain::line(&self.words));
        write!(f, "account {account}: {}", self.cause.word())?;
        match (&self.tried_by, self.single) {
            (Some(agent), _) => write!(f, ", tried by {agent} now")?,
            (None, true) => write!(f, ", tried again at {}", self.until)?,
            (None, false) => write!(f, " until {}", self.until)?,
        }
        if let (true, Some(at)) = (self.doubtful, self.resets_at) {
            write!(f, " (the provider says {at}, which is doubtful)")?;
        }
        match self.held {
            1 => f.write_str(", 1 agent waits")?,
            held => write!(f, ", {held} agents wait")?,
        }
        write!(f, ": {words}")
    }
}

/// What one agent waits for at its account's gate, as the end of a sentence: the account's own line has the words.
pub(super) fn held_by(account: &str, gate: &Gate) -> String {
    let account = plain::line(account);
    let (cause, until) = (gate.wall.cause.word(), gate.wall.until);
    match (gate.probe, gate.wall.single) {
        (Some(_), _) => format!("{cause} of account {account}, which is being tried"),
        (None, true) => format!("{cause} of account {account}, tried again at {until}"),
        (None, false) => format!("{cause} of account {account} until {until}"),
    }
}

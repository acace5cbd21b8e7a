//! What past runs tell of how long sessions take: samples, gathered run by run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a session was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A mission, from the first message to its report: an agent's with a fixed place, or a sub-agent's.
    Mission,
    /// A coordinator's plan.
    Planning,
    /// A coordinator's report on its group.
    Synthesis,
}

/// A session's part that came to its end: what one sample is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSample {
    /// The model, as tasks name it.
    pub model: String,
    /// The effort.
    pub effort: String,
    /// The provider account of the model.
    pub account: String,
    /// What it was asked to do.
    pub part: Part,
    /// Time that it spent answering until what it owed first came. Waits are not in it.
    pub worked: Duration,
    /// Time that it spent answering each time that something went back to it: a plan, a report, a conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<Duration>,
    /// Its own waits: for a provider that failed, or for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Duration>,
    /// Time around the work: making a worktree and opening a session before it, committing and merging after it. None
    /// where that cannot be told from waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<Duration>,
}

impl SessionSample {
    /// A mission that was done in one go, as an import of other programs' sessions may know it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use sillage_core::estimate::{Past, SessionSample};
    ///
    /// let mut past = Past::default();
    /// past.add_session(SessionSample::mission("sonnet", "low", Duration::from_secs(200)));
    /// assert_eq!(past.sessions(), 1);
    /// ```
    #[must_use]
    pub fn mission(model: &str, effort: &str, worked: Duration) -> SessionSample {
        SessionSample {
            model: model.to_owned(),
            effort: effort.to_owned(),
            account: model.to_owned(),
            part: Part::Mission,
            worked,
            corrections: Vec::new(),
            pauses: Vec::new(),
            around: None,
        }
    }
}

/// A plan that a coordinator's sub-agents were launched by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSample {
    /// The task: its file, or its title where it has none.
    pub task: String,
    /// The coordinator.
    pub agent: String,
    /// The sub-agents' models and efforts, in the order of the plan.
    pub sub_agents: Vec<(String, String)>,
    /// Which sub-agent waits for which, by their places in the plan: `(first, then)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<(u32, u32)>,
}

/// A time for which an account could not be used: a quota, a sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosureSample {
    /// The account.
    pub account: String,
    /// For how long.
    pub closed: Duration,
}

/// All that one run tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSample {
    /// Its sessions' parts that came to their ends.
    pub sessions: Vec<SessionSample>,
    /// Its coordinators' plans.
    pub groups: Vec<GroupSample>,
    /// The closures of accounts.
    pub closures: Vec<ClosureSample>,
}

/// Plans of one coordinator that are remembered, the newest ones.
pub(super) const GROUPS_KEPT: usize = 16;

/// Samples of past runs: what an estimate rests on. Feed it the newest run first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Past {
    pub(super) worked: BTreeMap<(Part, String, String), Vec<u32>>,
    pub(super) corrections: BTreeMap<String, Events>,
    pub(super) pauses: BTreeMap<String, Events>,
    pub(super) closures: BTreeMap<String, Events>,
    pub(super) groups: BTreeMap<(String, String), Vec<GroupSample>>,
    around: Vec<u32>,
    sessions: u32,
}

/// Something that happens to some sessions, and takes its time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Events {
    /// Sessions looked at.
    pub(super) sessions: u32,
    /// Of these, the ones that it happened to.
    pub(super) happened: u32,
    /// How long it took each of these in all, in milliseconds.
    pub(super) took: Vec<u32>,
}

impl Events {
    /// How many sessions in one it happens to.
    pub(super) fn share(&self) -> f64 {
        match self.sessions {
            0 => 0.0,
            sessions => (f64::from(self.happened) / f64::from(sessions)).min(1.0),
        }
    }

    pub(super) fn add(&mut self, other: &Events) {
        self.sessions = self.sessions.saturating_add(other.sessions);
        self.happened = self.happened.saturating_add(other.happened);
        self.took.extend(&other.took);
    }

    fn see(&mut self, took: &[Duration]) {
        self.sessions = self.sessions.saturating_add(1);
        if !took.is_empty() {
            self.happened = self.happened.saturating_add(1);
            self.took.push(millis(took.iter().sum()));
        }
    }
}

impl Past {
    /// Adds what a run tells.
    pub fn add(&mut self, run: RunSample) {
        for session in run.sessions {
            self.add_session(session);
        }
        for group in run.groups {
            let key = (group.task.clone(), group.agent.clone());
            let known = self.groups.entry(key).or_default();
            if known.len() < GROUPS_KEPT && !group.sub_agents.is_empty() {
                known.push(group);
            }
        }
        for closure in run.closures {
            let events = self.closures.entry(closure.account).or_default();
            events.happened = events.happened.saturating_add(1);
            events.took.push(millis(closure.closed));
        }
    }

    /// Adds a session.
    pub fn add_session(&mut self, session: SessionSample) {
        self.sessions = self.sessions.saturating_add(1);
        self.corrections
            .entry(session.model.clone())
            .or_default()
            .see(&session.corrections);
        self.pauses
            .entry(session.account.clone())
            .or_default()
            .see(&session.pauses);
        let closures = self.closures.entry(session.account).or_default();
        closures.sessions = closures.sessions.saturating_add(1);
        self.around.extend(session.around.map(millis));
        self.worked
            .entry((session.part, session.model, session.effort))
            .or_default()
            .push(millis(session.worked));
    }

    /// How many sessions it has samples of; a coordinator's plan and its report count apart.
    #[must_use]
    pub fn sessions(&self) -> u32 {
        self.sessions
    }

    /// What is usually spent around the work of a session, in milliseconds.
    pub(super) fn around(&self) -> u32 {
        let mut around = self.around.clone();
        around.sort_unstable();
        around.get(around.len() / 2).copied().unwrap_or(0)
    }
}

pub(super) fn millis(span: Duration) -> u32 {
    u32::try_from(span.as_millis()).unwrap_or(u32::MAX)
}

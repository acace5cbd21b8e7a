//! What keeps steps from going on, for people and programs (R2, R10).

use std::fmt;

use serde::Serialize;

use super::account_view::held_by;
use super::event::WaitCause;
use super::permissions::PermissionView;
use super::step::Phase;
use super::{Run, Stage};
use crate::id::StepIndex;
use crate::plain;
use crate::time::Timestamp;

/// What keeps a step from going on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum WaitingFor {
    /// These agents upstream are not over, or do not let it run.
    Upstream {
        /// The agents.
        agents: Vec<String>,
    },
    /// A place among the sessions at work.
    Place {
        /// The model whose own limit is reached; none: the run's is.
        model: Option<String>,
    },
    /// A date (R7, R8).
    Date {
        /// What for.
        cause: WaitCause,
        /// Since when.
        since: Timestamp,
        /// Until when, before the next try.
        until: Timestamp,
        /// The provider's words.
        words: String,
    },
    /// Its provider account, which cannot be used now (R8).
    Account {
        /// The account.
        account: String,
        /// What for.
        cause: WaitCause,
        /// Since when this step does.
        since: Timestamp,
        /// When the account is used again, or tried.
        until: Timestamp,
        /// The date that the provider named; none: it named none that is ahead.
        resets_at: Option<Timestamp>,
        /// Whether that date is too far away to be trusted.
        doubtful: bool,
        /// All this in a few words.
        #[serde(skip)]
        said: String,
    },
    /// A person's answer (A5).
    Person {
        /// Since when.
        since: Timestamp,
        /// What is asked, the oldest first.
        requests: Vec<PermissionView>,
    },
    /// The ends of its sub-agents (R3).
    SubAgents {
        /// How many are not over.
        left: u32,
        /// How many there are.
        of: u32,
    },
    /// Its turn to be merged.
    Merge,
}

/// What comes after `waits for`.
impl fmt::Display for WaitingFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitingFor::Upstream { agents } => f.write_str(&agents.join(", ")),
            WaitingFor::Place { model: None } => f.write_str("a place"),
            WaitingFor::Place { model: Some(model) } => write!(f, "a place for model {}", plain::line(model)),
            WaitingFor::Date {
                cause, until, words, ..
            } => {
                write!(f, "{} until {until}: {}", cause.word(), plain::line(words))
            }
            WaitingFor::Account { said, .. } => f.write_str(said),
            WaitingFor::Person { requests, .. } => {
                f.write_str("a person")?;
                let asked: Vec<String> = requests.iter().map(ToString::to_string).collect();
                if !asked.is_empty() {
                    write!(f, ": {}", asked.join("; "))?;
                }
                Ok(())
            }
            WaitingFor::SubAgents { left, of } => write!(f, "{left} of its {of} sub-agents"),
            WaitingFor::Merge => f.write_str("its turn to be merged"),
        }
    }
}

/// The limit that keeps a ready step from starting (R2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceLimit<'a> {
    /// Sessions at work in the run.
    Run,
    /// Sessions at work with this model.
    Model(&'a str),
}

impl Run {
    /// Which limit keeps the step from starting; none unless it is ready and the run is under way.
    #[must_use]
    pub fn place_limit(&self, step: StepIndex) -> Option<PlaceLimit<'_>> {
        if self.stage != Stage::Running || self.step(step)?.phase != Phase::Ready {
            return None;
        }
        match self.places.model_is_full(step.position()) {
            true => Some(PlaceLimit::Model(&self.agent(step).model)),
            false => Some(PlaceLimit::Run),
        }
    }

    /// What keeps the step from going on; none while it is at work, and once it or the run is over.
    #[must_use]
    pub fn waiting_for(&self, step: StepIndex) -> Option<WaitingFor> {
        if self.end().is_some() {
            return None;
        }
        match &self.step(step)?.phase {
            Phase::Pending => Some(WaitingFor::Upstream {
                agents: self.not_passed(step),
            }),
            Phase::Ready => self.place_limit(step).map(|limit| WaitingFor::Place {
                model: match limit {
                    PlaceLimit::Run => None,
                    PlaceLimit::Model(model) => Some(model.to_owned()),
                },
            }),
            Phase::Waiting(wait) => Some(WaitingFor::Date {
                cause: wait.cause,
                since: wait.since,
                until: wait.until,
                words: wait.words.clone(),
            }),
            Phase::Held(since) => self.held_by(step).map(|(account, gate, _)| WaitingFor::Account {
                account: account.to_owned(),
                cause: gate.wall.cause,
                since: *since,
                until: gate.wall.until,
                resets_at: gate.wall.resets_at,
                doubtful: gate.wall.is_doubtful(),
                said: held_by(account, gate),
            }),
            Phase::Asking(since) => Some(WaitingFor::Person {
                since: *since,
                requests: self.permissions_of(step),
            }),
            Phase::Gathering => self
                .step(step)?
                .group
                .as_deref()
                .map(|group| WaitingFor::SubAgents {
                    left: group.left,
                    of: group.count,
                }),
            Phase::MergeQueued(_) => Some(WaitingFor::Merge),
            Phase::Leasing
            | Phase::Restarting
            | Phase::Opening
            | Phase::Finding
            | Phase::Prompted
            | Phase::Verifying
            | Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::Abandoning(_)
            | Phase::Merging(_)
            | Phase::Ended(_) => None,
        }
    }

    fn not_passed(&self, step: StepIndex) -> Vec<String> {
        let parents = self.graph.parents(step.0).iter();
        parents
            .filter(|parent| !self.steps[**parent as usize].lets_follow())
            .map(|parent| self.step_name(StepIndex(*parent)).to_owned())
            .collect()
    }
}

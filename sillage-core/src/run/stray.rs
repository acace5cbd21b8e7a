//! Files of the person's own checkout that changed while an agent with a worktree of its own was at work.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Run;
use crate::id::StepIndex;
use crate::plain;

/// A file of the person's checkout that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrayWrite {
    /// The file, relative to the top of the person's working tree.
    pub path: PathBuf,
    /// What speaks for the agent having written it.
    pub sign: StraySign,
}

/// What speaks for an agent having written a file outside its worktree, the strongest first. Only the first is a
/// proof: a person may change files while agents work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StraySign {
    /// A tool call of the agent names the file.
    Named,
    /// No other agent of the run was at work meanwhile.
    Alone,
    /// Other agents were at work too, or the engine was cut in between.
    Company,
}

impl StrayWrite {
    /// All of a step's in words, e.g. `changed in your checkout: src/lib.rs (its own tool calls name it)`.
    #[must_use]
    pub fn told(writes: &[StrayWrite]) -> String {
        let files: Vec<String> = writes.iter().map(ToString::to_string).collect();
        format!("changed in your checkout: {}", plain::list(&files))
    }
}

impl StraySign {
    /// What it is, after the file's name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            StraySign::Named => "its own tool calls name it",
            StraySign::Alone => "while no other agent was at work",
            StraySign::Company => "while others were at work too",
        }
    }
}

/// E.g. `src/lib.rs (its own tool calls name it)`.
impl fmt::Display for StrayWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path.display(), self.sign.word())
    }
}

/// What an adapter saw of the person's checkout between a step's session and the commit of its work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StraySeen {
    /// The files that changed, relative to the top of the working tree.
    pub changed: Vec<PathBuf>,
    /// Those of them that a tool call of the step's session names.
    pub named: Vec<PathBuf>,
    /// Whether the engine was away in between: then nobody knows who else changed them.
    pub cut: bool,
}

/// Where the person's checkout is that a step with a worktree of its own must leave alone, and the file for how it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckoutWatch {
    /// The person's working tree.
    pub repository: PathBuf,
    /// A file of the run.
    pub file: PathBuf,
    /// Folders of ours, which may lie in the working tree: what changes there is no agent's doing.
    pub apart: Vec<PathBuf>,
}

impl Run {
    /// What to watch while the step is at work; none: it works in the person's folder by right.
    #[must_use]
    pub fn checkout_watch(&self, step: StepIndex) -> Option<CheckoutWatch> {
        let repository = self.definition.repository.as_ref()?;
        self.step(step)?.worktree()?;
        Some(CheckoutWatch {
            repository: repository.root.clone(),
            file: self
                .definition
                .step_files(self.step_name(step))
                .join("checkout.json"),
            apart: self.definition.policy.closed.clone(),
        })
    }

    /// Whose the changes are likely to be. What no tool call names is left out where an agent without a worktree was
    /// at work at the same time, for that one works in the checkout by right.
    pub(super) fn attribute(&self, step: StepIndex, seen: &StraySeen) -> Vec<StrayWrite> {
        let others: Vec<StepIndex> = self.beside(step).collect();
        let in_place = others.iter().any(|other| !self.has_worktree(*other));
        let sign = match seen.cut || !others.is_empty() {
            true => StraySign::Company,
            false => StraySign::Alone,
        };
        let write = |path: &PathBuf| match seen.named.contains(path) {
            true => Some(StraySign::Named),
            false if in_place => None,
            false => Some(sign),
        };
        seen.changed
            .iter()
            .filter_map(|path| {
                Some(StrayWrite {
                    path: path.clone(),
                    sign: write(path)?,
                })
            })
            .collect()
    }

    /// The steps that were at work at some time since this one started.
    fn beside(&self, step: StepIndex) -> impl Iterator<Item = StepIndex> + '_ {
        let since = self.steps[step.position()].started;
        let all = (0..u32::try_from(self.steps.len()).unwrap_or(u32::MAX)).map(StepIndex);
        all.filter(move |other| {
            let state = &self.steps[other.position()];
            let over_before = state
                .ended
                .zip(since)
                .is_some_and(|(ended, since)| ended <= since);
            // While its sub-agents are at work, their coordinator is not.
            let gathers = self.coordinator_of(step) == Some(*other);
            *other != step && !gathers && state.started.is_some() && !over_before
        })
    }
}

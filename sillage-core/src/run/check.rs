//! The task's check (W10b): a command of the person's, run on what came of a run before that may be `complete`.
//!
//! It runs once all steps are over, when the run would else be `complete`, or `partial` with work to check: on the
//! integration branch in a fresh worktree. A run of which nothing was merged is checked where its agents worked: in
//! the folder of the steps without a worktree, or, if all had one, on the commit that the run started from. A `partial`
//! run whose agents all had worktrees and of which nothing was merged has nothing to check.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::RunEnd;
use super::outbox::EffectKey;
use super::{Run, Stage};
use crate::time::human;

/// How long a check may take.
pub const CHECK_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Bytes of a check's output that its result keeps: the last ones. All of it stands in the file of the output.
pub const CHECK_TAIL: usize = 16 << 10;

/// Most bytes of output that a check may write before it is ended.
pub const CHECK_OUTPUT: u64 = 64 << 20;

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Whether its command exited with 0.
    pub passed: bool,
    /// The exit code; none: it did not come to one.
    pub code: Option<i32>,
    /// Why it came to no exit code, e.g. that it was ended for taking too long.
    pub why: Option<String>,
    /// What it wrote last, at most [`CHECK_TAIL`] bytes.
    pub output: String,
    /// Bytes of all that it wrote.
    pub written: u64,
    /// The file with all that it wrote; none: it was not started.
    pub file: Option<PathBuf>,
}

impl CheckResult {
    /// The result of a check that could not be made, for this reason.
    #[must_use]
    pub fn not_made(why: impl Into<String>) -> CheckResult {
        CheckResult {
            passed: false,
            code: None,
            why: Some(why.into()),
            output: String::new(),
            written: 0,
            file: None,
        }
    }

    /// How it ended in words: `passed`, `failed with exit code 1`, `failed: it took longer than 30m and was ended`.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.passed, self.code, &self.why) {
            (true, _, _) => "passed".to_owned(),
            (false, Some(code), _) => format!("failed with exit code {code}"),
            (false, None, Some(why)) => format!("failed: {why}"),
            (false, None, None) => "failed".to_owned(),
        }
    }
}

/// Why a check that took this long was ended.
#[must_use]
pub fn check_overran(limit: Duration) -> String {
    format!("it took longer than {} and was ended", human(limit))
}

/// Where a check runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckPlace {
    /// In a fresh worktree.
    Fresh {
        /// The person's working tree.
        repository: PathBuf,
        /// The run's name.
        run: String,
        /// The commit: full hash.
        commit: String,
        /// The folder within the worktree that it runs in, relative to its top.
        place: PathBuf,
    },
    /// In this folder, where the agents worked.
    Here(PathBuf),
}

/// How far the check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckStage {
    /// It was not begun.
    Due,
    /// It runs.
    Running,
    /// It is over or was stopped; its folder is to go.
    Clearing,
    /// Nothing of it is left but its result.
    Settled,
}

/// The run's check.
#[derive(Debug, Clone)]
pub(super) struct CheckState {
    pub(super) stage: CheckStage,
    pub(super) commit: Option<String>,
    pub(super) result: Option<CheckResult>,
}

impl Default for CheckState {
    fn default() -> Self {
        Self {
            stage: CheckStage::Due,
            commit: None,
            result: None,
        }
    }
}

impl Run {
    /// The task's check; a blank one is none.
    #[must_use]
    pub fn check_command(&self) -> Option<&str> {
        let command = self.definition.task.check.as_deref()?;
        (!command.trim().is_empty()).then_some(command)
    }

    /// How the task's check ended, once it has.
    #[must_use]
    pub fn check(&self) -> Option<&CheckResult> {
        self.check.result.as_ref()
    }

    /// Whether the task's check is being run.
    #[must_use]
    pub fn is_checking(&self) -> bool {
        self.check.stage == CheckStage::Running
    }

    /// Whether the run, its steps being over, may not end before its check.
    pub(super) fn wants_check(&self) -> bool {
        if self.check_command().is_none() {
            return false;
        }
        match self.outcome_of_steps() {
            RunEnd::Complete => true,
            RunEnd::Partial => self.tip.is_some() || self.works_in_place(),
            RunEnd::Blocked | RunEnd::Failed | RunEnd::Stopped => false,
        }
    }

    /// Whether some step works in the person's folder.
    fn works_in_place(&self) -> bool {
        let steps = 0..u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        steps
            .map(crate::id::StepIndex)
            .any(|step| !self.has_worktree(step))
    }

    /// The commit that the check runs on; none: it runs where the agents worked.
    pub(super) fn commit_to_check(&self) -> Option<String> {
        let repository = self.definition.repository.as_ref()?;
        match &self.tip {
            Some(tip) => Some(tip.clone()),
            None => (!self.works_in_place()).then(|| repository.base.clone()),
        }
    }

    /// Where the check that was begun runs.
    pub(super) fn check_place(&self) -> CheckPlace {
        match (&self.check.commit, &self.definition.repository) {
            (Some(commit), Some(repository)) => CheckPlace::Fresh {
                repository: repository.root.clone(),
                run: self.definition.run.to_string(),
                commit: commit.clone(),
                place: repository.place.clone(),
            },
            _ => CheckPlace::Here(self.definition.step_folder.clone()),
        }
    }

    pub(super) fn check_started(&mut self, commit: Option<&String>) {
        self.check = CheckState {
            stage: CheckStage::Running,
            commit: commit.cloned(),
            result: None,
        };
        self.outbox.want(EffectKey::Check);
    }

    pub(super) fn check_ended(&mut self, result: &CheckResult) {
        self.check.result = Some(result.clone());
        self.clear_check();
    }

    /// A stop ends a check that runs; it begins anew when the run is resumed.
    pub(super) fn stop_check(&mut self) {
        if self.check.stage == CheckStage::Running {
            self.clear_check();
        }
    }

    fn clear_check(&mut self) {
        self.outbox.drop_key(EffectKey::Check);
        if self.check.commit.is_some() {
            self.check.stage = CheckStage::Clearing;
            self.outbox.want(EffectKey::ClearCheck);
        } else {
            self.check_cleared();
        }
    }

    /// A run that was forced to stop does not wait for the check's folder: the next check replaces it, and whoever cleans
    /// removes it.
    pub(super) fn leave_the_checks_folder(&mut self) {
        if self.outbox.contains(&EffectKey::ClearCheck) {
            self.check_cleared();
        }
    }

    pub(super) fn check_cleared(&mut self) {
        self.outbox.drop_key(EffectKey::ClearCheck);
        self.check.stage = match self.check.result {
            Some(_) => CheckStage::Settled,
            None => CheckStage::Due,
        };
    }

    /// A resume runs the check again, unless it passed and no step is done again.
    pub(super) fn check_again(&mut self, steps_again: bool) {
        let passed = self.check().is_some_and(|result| result.passed);
        if !passed || steps_again {
            self.check.result = None;
            if self.check.stage == CheckStage::Settled {
                self.check.stage = CheckStage::Due;
            }
        }
    }

    /// Whether a resume has a check to run: it was stopped before its end, or did not pass.
    pub(super) fn check_left(&self) -> bool {
        let passed = self.check().is_some_and(|result| result.passed);
        matches!(self.stage, Stage::Ended(_)) && self.wants_check() && !passed
    }
}

//! Permission requests that a person answers (A5).
//!
//! While a request waits for a person, its step waits too: it holds no place, its clock of work stands still, and
//! others may start. Its session is in the middle of a message all the same, so that several may be open at once. An
//! answer is a fact before it is passed on. Those to all but the last open request are passed on at once; the last
//! waits for a place, for it sets the session to work again, under the limits of sessions at work.
//!
//! A new engine knows of no open request: whoever holds the session asks again. An answer that was given before and
//! may not have arrived is not given again by itself, as nothing tells that the same is asked (C13).

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::outbox::EffectKey;
use super::step::{Next, Phase};
use super::{Run, Stage};
use crate::id::{RunId, Seq, StepIndex};
use crate::plain;
use crate::ports::runtime::{PermissionOption, PermissionRequest};
use crate::time::Timestamp;

/// Permission requests of a session that rules refuse and the log tells of.
pub const REFUSALS_TOLD: u16 = 100;

/// A permission request whose agent has not been told an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPermission {
    /// The position of the fact that it was asked: its name in the run.
    pub asked: Seq,
    /// When it was asked.
    pub since: Timestamp,
    /// What is asked.
    pub request: Arc<PermissionRequest>,
    /// The option that a person took, on its way to the agent.
    pub answer: Option<String>,
}

/// A permission request's name over all runs: `RUN/POSITION`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PermissionId {
    /// The run.
    pub run: RunId,
    /// The position of the fact that it was asked.
    pub asked: Seq,
}

/// Why a text is not a [`PermissionId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no permission request: their names are made of a run, `/` and a number, as in `20261130-101500-1a2b/14`"
)]
pub struct BadPermissionId(pub String);

impl fmt::Display for PermissionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.run, self.asked)
    }
}

impl FromStr for PermissionId {
    type Err = BadPermissionId;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadPermissionId(text.to_owned());
        let (run, asked) = text.split_once('/').ok_or_else(bad)?;
        Ok(PermissionId {
            run: RunId::new(run).map_err(|_| bad())?,
            asked: Seq(asked.parse().map_err(|_| bad())?),
        })
    }
}

impl Serialize for PermissionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A permission request that waits for a person, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PermissionView {
    /// Its name.
    pub id: PermissionId,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepIndex,
    /// The agent that asks.
    pub agent: String,
    /// What it is for.
    pub title: String,
    /// ACP's word for what it would do, where the agent says.
    pub kind: Option<String>,
    /// Files and folders that it names, as the agent wrote them.
    pub paths: Vec<PathBuf>,
    /// What can be answered.
    pub options: Vec<PermissionOption>,
    /// Since when it waits: milliseconds since 1970 in UTC.
    pub since: Timestamp,
}

/// On one line: what it is for, and the paths that the title does not name.
impl fmt::Display for PermissionView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = plain::line(&self.title);
        let paths = self.paths.iter().map(|path| plain::line(&path.to_string_lossy()));
        let paths: Vec<String> = paths.filter(|path| !title.contains(path.as_str())).collect();
        f.write_str(&title)?;
        if !paths.is_empty() {
            write!(f, " ({})", plain::list(&paths))?;
        }
        Ok(())
    }
}

impl Run {
    /// The permission requests that wait for a person, the oldest first.
    #[must_use]
    pub fn permissions(&self) -> Vec<PermissionView> {
        let mut open: Vec<PermissionView> = self
            .live
            .values()
            .flat_map(|step| self.permissions_of(*step))
            .collect();
        open.sort_unstable_by_key(|request| request.id.asked);
        open
    }

    /// Those of a step, the oldest first.
    #[must_use]
    pub fn permissions_of(&self, step: StepIndex) -> Vec<PermissionView> {
        let session = self.step(step).filter(|state| state.is_answering());
        let open = session.and_then(|state| state.session.as_deref());
        let open = open.map_or(&[][..], |session| &session.permissions[..]);
        open.iter()
            .filter(|open| open.answer.is_none())
            .map(|open| PermissionView {
                id: PermissionId {
                    run: self.id().clone(),
                    asked: open.asked,
                },
                run: self.id().clone(),
                step,
                agent: self.step_name(step).to_owned(),
                title: open.request.title.clone(),
                kind: open.request.kind.clone(),
                paths: open.request.paths.clone(),
                options: open.request.options.clone(),
                since: open.since,
            })
            .collect()
    }

    /// The request asked at this position, unless its agent has been told an answer.
    pub(super) fn open_permission(&self, asked: Seq) -> Option<(StepIndex, &OpenPermission)> {
        self.live.values().find_map(|step| {
            let state = &self.steps[step.position()];
            let session = state.session.as_deref().filter(|_| state.is_answering())?;
            let open = session.permissions.iter().find(|open| open.asked == asked)?;
            Some((*step, open))
        })
    }

    // --- Believing ---

    pub(super) fn permission_asked(
        &mut self,
        step: StepIndex,
        asked: Seq,
        request: &Arc<PermissionRequest>,
        at: Timestamp,
    ) {
        let state = self.step_mut(step);
        let Some(session) = state.session.as_deref_mut() else {
            return;
        };
        session.permissions.push(OpenPermission {
            asked,
            since: at,
            request: Arc::clone(request),
            answer: None,
        });
        if !matches!(state.phase, Phase::Asking(_)) {
            state.ledger_mut().waits += 1;
            self.pass_to(step, Phase::Asking(at), at);
        }
    }

    pub(super) fn permission_answered(&mut self, step: StepIndex, asked: Seq, option: &str, at: Timestamp) {
        if let Some(session) = self.step_mut(step).session.as_deref_mut()
            && let Some(open) = session.permissions.iter_mut().find(|open| open.asked == asked)
        {
            open.answer = Some(option.to_owned());
        }
        self.want_answers(step);
        self.go_on_when_answered(step, at);
    }

    pub(super) fn permission_settled(&mut self, step: StepIndex, asked: Seq, at: Timestamp) {
        self.outbox.drop_key(EffectKey::AnswerPermission(step, asked));
        if let Some(session) = self.step_mut(step).session.as_deref_mut() {
            session.permissions.retain(|open| open.asked != asked);
        }
        self.go_on_when_answered(step, at);
    }

    /// A step of whose requests none waits for a person any more wants a place; when the run stops, only its end.
    fn go_on_when_answered(&mut self, step: StepIndex, at: Timestamp) {
        let state = &self.steps[step.position()];
        let open = state
            .session
            .as_deref()
            .is_some_and(|session| session.permissions.iter().any(|open| open.answer.is_none()));
        if open || !matches!(state.phase, Phase::Asking(_)) {
            return;
        }
        if matches!(self.stage, Stage::Stopping { .. }) {
            self.pass_to(step, Phase::Prompted, at);
        } else {
            self.step_mut(step).next = Next::Answer;
            self.pass_to(step, Phase::Ready, at);
        }
    }

    /// Answers are to be passed on while the session has the message in hand, unless it is asked to stop.
    pub(super) fn want_answers(&mut self, step: StepIndex) {
        let state = &self.steps[step.position()];
        let passed_on = matches!(state.phase, Phase::Prompted | Phase::Asking(_));
        if !passed_on || matches!(self.stage, Stage::Stopping { .. }) {
            return;
        }
        for asked in self.answered(step) {
            self.outbox.want(EffectKey::AnswerPermission(step, asked));
        }
    }

    pub(super) fn drop_answers(&mut self, step: StepIndex) {
        for asked in self.answered(step) {
            self.outbox.drop_key(EffectKey::AnswerPermission(step, asked));
        }
    }

    fn answered(&self, step: StepIndex) -> Vec<Seq> {
        let session = self.steps[step.position()].session.as_deref();
        let permissions = session.map_or(&[][..], |session| &session.permissions[..]);
        let answered = permissions.iter().filter(|open| open.answer.is_some());
        answered.map(|open| open.asked).collect()
    }

    /// The message is over, or who held it is gone: nothing is open any more.
    pub(super) fn forget_permissions(&mut self, step: StepIndex) {
        self.drop_answers(step);
        if let Some(session) = self.step_mut(step).session.as_deref_mut() {
            session.permissions.clear();
        }
    }
}

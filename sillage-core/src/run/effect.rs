//! What an entry of the outbox asks for, in full.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::check::{CHECK_LIMIT, CheckPlace};
use super::event::MessagePurpose;
use super::outbox::EffectKey;
use super::step::Phase;
use super::{Run, compose};
use crate::id::{ClientSessionId, StepIndex};
use crate::plain;
use crate::ports::runtime::{MessageRequest, SessionRequest};
use crate::ports::workspace::{MergeWanted, Worktree, WorktreeWanted};

/// One thing to do outside. Each is safe to do again after a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Make a worktree.
    Lease(WorktreeWanted),
    /// Keep what a worktree holds and put it back to its base.
    Restart {
        /// The worktree.
        worktree: Worktree,
        /// The run's name.
        run: String,
        /// The step's name.
        step: String,
    },
    /// Open a session.
    Open(Arc<SessionRequest>),
    /// Find a session again.
    Find {
        /// The request that opened it.
        request: Arc<SessionRequest>,
        /// What the runtime said to find it by.
        native: Option<String>,
        /// The message whose answer is missing.
        in_flight: Option<Arc<MessageRequest>>,
        /// The worktree that it works in, without which it cannot go on.
        worktree: Option<Worktree>,
    },
    /// Write files that the message speaks of, then send it.
    Send {
        /// The session.
        session: ClientSessionId,
        /// The message.
        message: Arc<MessageRequest>,
        /// The full reports of the agents upstream.
        files: Vec<ReportFile>,
    },
    /// Tell a session what a person answered to a permission request.
    AnswerPermission {
        /// The session.
        session: ClientSessionId,
        /// The request's identifier in its session.
        permission: String,
        /// The option taken.
        option: String,
    },
    /// Look at a deliverable's files.
    Verify {
        /// The step's folder.
        folder: PathBuf,
        /// The files, relative to it.
        files: Vec<PathBuf>,
    },
    /// Commit what a step left.
    Commit {
        /// The worktree.
        worktree: Worktree,
        /// The commit's message.
        message: String,
    },
    /// Merge a step's commit.
    Merge(MergeWanted),
    /// Merge the integration branch into a worktree, conflicts and all.
    BeginMerge {
        /// The worktree.
        worktree: Worktree,
        /// The merge that conflicted.
        wish: MergeWanted,
    },
    /// Look for files that are still in conflict.
    Inspect {
        /// The worktree.
        worktree: Worktree,
        /// The files that conflicted.
        files: Vec<String>,
    },
    /// Give up the merge in a worktree.
    AbandonMerge {
        /// The worktree.
        worktree: Worktree,
        /// The commit to put it back to.
        tip: String,
        /// The run's name.
        run: String,
        /// The step's name.
        step: String,
    },
    /// Ask a session to stop what it is doing.
    Cancel(ClientSessionId),
    /// Close a session.
    Close(ClientSessionId),
    /// Remove a worktree.
    Remove {
        /// The worktree.
        worktree: Worktree,
        /// The branch that must hold its commits.
        integration: String,
    },
    /// Run the task's check.
    Check {
        /// The command, for `sh -c`.
        command: String,
        /// Where it runs.
        place: CheckPlace,
        /// The file for all that it writes.
        output: PathBuf,
        /// How long it may take.
        limit: Duration,
    },
    /// Remove the folder that was made for the check.
    ClearCheck {
        /// The person's working tree.
        repository: PathBuf,
        /// The run's name.
        run: String,
    },
}

/// A file that holds a step's full report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFile {
    /// Where it lies; absolute.
    pub path: PathBuf,
    /// The report as JSON.
    pub content: String,
}

impl Run {
    /// What an entry of the outbox asks for; none when it is no longer there.
    #[must_use]
    pub fn effect(&self, key: EffectKey) -> Option<Effect> {
        if !self.outbox.contains(&key) {
            return None;
        }
        match key {
            EffectKey::Lease(step) => self.lease(step),
            EffectKey::Restart(step) => Some(Effect::Restart {
                worktree: self.worktree_to_restart(step)?,
                run: self.definition.run.to_string(),
                step: self.step_name(step).to_owned(),
            }),
            EffectKey::Open(step, _) => {
                let session = self.step(step)?.session.as_deref()?;
                Some(Effect::Open(Arc::clone(&session.request)))
            }
            EffectKey::Find(step, _) => {
                let session = self.step(step)?.session.as_deref()?;
                Some(Effect::Find {
                    request: Arc::clone(&session.request),
                    native: session.opened.as_ref().and_then(|o| o.native.clone()),
                    in_flight: session.in_flight.clone(),
                    worktree: self.worktree_of(step),
                })
            }
            EffectKey::Send(step, _) => self.sending(step),
            EffectKey::AnswerPermission(step, asked) => {
                let session = self.step(step)?.session.as_deref()?;
                let open = session.permissions.iter().find(|open| open.asked == asked)?;
                Some(Effect::AnswerPermission {
                    session: session.id(),
                    permission: open.request.id.clone(),
                    option: open.answer.clone()?,
                })
            }
            EffectKey::Verify(step) => Some(Effect::Verify {
                folder: self
                    .definition
                    .folder_in(self.step(step)?.worktree().map(|w| w.path.as_path())),
                files: self
                    .agent(step)
                    .deliverable
                    .as_ref()
                    .map(|d| d.files.clone())
                    .unwrap_or_default(),
            }),
            EffectKey::Commit(step) => Some(Effect::Commit {
                worktree: self.worktree_of(step)?,
                message: self.commit_message(step),
            }),
            EffectKey::Merge(step) => self.merge(step).map(Effect::Merge),
            EffectKey::BeginMerge(step) => Some(Effect::BeginMerge {
                worktree: self.worktree_of(step)?,
                wish: self.merge(step)?,
            }),
            EffectKey::Inspect(step) => Some(Effect::Inspect {
                worktree: self.worktree_of(step)?,
                files: self.step(step)?.conflict()?.files.clone(),
            }),
            EffectKey::AbandonMerge(step) => Some(Effect::AbandonMerge {
                worktree: self.worktree_of(step)?,
                tip: self.step(step)?.work()?.committed.as_ref()?.tip.clone(),
                run: self.definition.run.to_string(),
                step: self.step_name(step).to_owned(),
            }),
            EffectKey::Cancel(_, session) => Some(Effect::Cancel(session)),
            EffectKey::Close(_, session) => Some(Effect::Close(session)),
            EffectKey::Remove(step) => Some(Effect::Remove {
                worktree: self.worktree_of(step)?,
                integration: self.definition.integration_branch(),
            }),
            EffectKey::Check => Some(Effect::Check {
                command: self.check_command()?.to_owned(),
                place: self.check_place(),
                output: self.definition.files.join("check.log"),
                limit: CHECK_LIMIT,
            }),
            EffectKey::ClearCheck => Some(Effect::ClearCheck {
                repository: self.definition.repository.as_ref()?.root.clone(),
                run: self.definition.run.to_string(),
            }),
        }
    }

    fn worktree_of(&self, step: StepIndex) -> Option<Worktree> {
        self.step(step)?.worktree().cloned()
    }

    /// A coordinator that starts again after its plan was accepted starts from its sub-agents' work.
    fn worktree_to_restart(&self, step: StepIndex) -> Option<Worktree> {
        let mut worktree = self.worktree_of(step)?;
        if self.plan(step).is_some()
            && let Some(tip) = &self.tip
        {
            worktree.base.clone_from(tip);
        }
        Some(worktree)
    }

    fn lease(&self, step: StepIndex) -> Option<Effect> {
        let (branch, base) = self.step(step)?.work()?.planned.clone()?;
        Some(Effect::Lease(WorktreeWanted {
            repository: self.definition.repository.as_ref()?.root.clone(),
            run: self.definition.run.to_string(),
            step: self.step_name(step).to_owned(),
            branch,
            base,
        }))
    }

    fn sending(&self, step: StepIndex) -> Option<Effect> {
        let session = self.step(step)?.session.as_deref()?;
        let files = match session.purpose {
            MessagePurpose::Mission | MessagePurpose::Plan => compose::files(self, step),
            MessagePurpose::Synthesis => compose::files_of_group(self, step),
            MessagePurpose::Correction
            | MessagePurpose::PlanCorrection
            | MessagePurpose::Continuation
            | MessagePurpose::Conflict => Vec::new(),
        };
        Some(Effect::Send {
            session: session.id(),
            message: session.in_flight.clone()?,
            files,
        })
    }

    fn merge(&self, step: StepIndex) -> Option<MergeWanted> {
        let repository = self.definition.repository.as_ref()?;
        let work = self.step(step)?.work()?;
        Some(MergeWanted {
            repository: repository.root.clone(),
            into: self.definition.integration_branch(),
            base: repository.base.clone(),
            commit: work.committed.as_ref()?.tip.clone(),
            parts: work.parts.clone(),
            message: format!(
                "Merge {} of run {}\n\n{}",
                self.step_name(step),
                self.definition.run,
                self.trailers(step)
            ),
        })
    }

    /// The agent's name and its summary's first line; then the summary, and where it comes from.
    fn commit_message(&self, step: StepIndex) -> String {
        let agent = self.step_name(step);
        let state = &self.steps[step.position()];
        let summary = match (state.report(), &state.phase) {
            (Some(report), _) => plain::lines(report.summary.trim()),
            (None, Phase::Committing(_)) => "unfinished work".to_owned(),
            (None, _) => "work in progress".to_owned(),
        };
        let first = summary.lines().next().unwrap_or_default();
        let room = 72usize.saturating_sub(agent.len() + 2);
        let mut subject: String = first.chars().take(room).collect();
        if subject.chars().count() < first.chars().count() {
            subject.pop();
            subject.push('…');
        }
        let body = if subject == summary {
            String::new()
        } else {
            format!("{summary}\n\n")
        };
        format!("{agent}: {subject}\n\n{body}{}", self.trailers(step))
    }

    fn trailers(&self, step: StepIndex) -> String {
        format!(
            "Sillage-Run: {}\nSillage-Agent: {}\n",
            self.definition.run,
            self.step_name(step)
        )
    }
}

//! What is due: timers, places for ready steps, the next merge, the end.

use std::sync::Arc;

use super::Decision;
use crate::id::StepIndex;
use crate::planted::{Bug, planted};
use crate::ports::runtime::SessionRequest;
use crate::ports::workspace::Worktree;
use crate::run::event::{Event, FailureClass, MessagePurpose};
use crate::run::step::{Next, Phase};
use crate::run::{Run, Stage};
use crate::task::AgentKind;

impl Decision<'_> {
    pub(super) fn tick(&mut self) {
        match self.run.stage {
            Stage::Running => {
                // Whether anything may start is seen once what comes before is believed.
                if self.renew_what_is_outdated() || self.reach_ceilings() {
                    return;
                }
                for due in [Self::due_timers, Self::end_idle_waits, Self::due_gates] {
                    due(self);
                    if !self.events.is_empty() {
                        return;
                    }
                }
                self.start_ready();
                self.next_merge();
                self.end_if_over();
            }
            Stage::Stopping { since, forced } => {
                if !forced
                    && !planted(Bug::StopNeverForced)
                    && self.now >= since.plus(self.run.definition.policy.stop_grace)
                {
                    self.say(Event::StopAsked { forced: true });
                } else {
                    if planted(Bug::StopIgnored) {
                        self.start_ready();
                    }
                    self.stop_what_can(forced);
                }
            }
            Stage::Ended(_) => {}
        }
    }

    fn due_timers(&mut self) {
        let due: Vec<StepIndex> = self
            .run
            .timers
            .iter()
            .take_while(|(at, _)| *at <= self.now)
            .map(|(_, step)| *step)
            .collect();
        for step in due {
            let phase = &self.run.steps[step.position()].phase;
            if matches!(phase, Phase::Waiting(_)) {
                self.say(Event::WaitEnded { step });
            } else if *phase == Phase::Prompted {
                let most = self.run.agent(step).max_duration.unwrap_or_default();
                let words = format!(
                    "its max_duration of {} of work is used up",
                    crate::time::human(most)
                );
                self.fail(step, FailureClass::TimedOut, words);
            }
        }
    }

    fn start_ready(&mut self) {
        for position in self.run.places.startable() {
            let step = StepIndex(u32::try_from(position).unwrap_or(u32::MAX));
            if self.run.is_being_cleared(step) || self.hold_back(step) {
                continue;
            }
            if self.failed_with_its_group(step) {
                // What may start after a failure is another question than the one that was answered here.
                return;
            }
            self.start(step);
        }
    }

    fn start(&mut self, step: StepIndex) {
        let state = &self.run.steps[step.position()];
        let session = state.session.as_deref();
        match state.next {
            Next::Begin if state.worktree().is_some() => {
                let worktree = state.worktree().cloned();
                self.plan_session(step, worktree.as_ref());
            }
            Next::Open if planted(Bug::NewSessionOnRetry) => self.plan_session(step, state.worktree()),
            Next::Send if planted(Bug::NewMessageOnRetry) && session.is_some_and(|s| s.attached) => {
                self.plan_message(step, self.first_purpose(step), None);
            }
            Next::Begin | Next::Anew if self.run.has_worktree(step) => self.plan_worktree(step),
            Next::Begin | Next::Anew => self.plan_session(step, None),
            Next::Continue if session.is_some_and(|s| s.attached) => {
                self.plan_message(step, MessagePurpose::Continuation, None);
            }
            Next::Resolve if session.is_some_and(|s| s.attached) => {
                self.plan_message(step, MessagePurpose::Conflict, None);
            }
            Next::Synthesize if session.is_some_and(|s| s.attached) => {
                self.plan_message(step, MessagePurpose::Synthesis, None);
            }
            Next::Lease
            | Next::Restart
            | Next::Open
            | Next::Find
            | Next::Send
            | Next::Answer
            | Next::Continue
            | Next::Resolve
            | Next::Synthesize => {
                self.say(Event::StepStarted { step });
            }
        }
    }

    fn plan_worktree(&mut self, step: StepIndex) {
        let Some(repository) = &self.run.definition.repository else {
            return;
        };
        // A downstream agent starts from the work of its upstreams (R18).
        let base = self.run.tip.clone().unwrap_or_else(|| repository.base.clone());
        let branch = self.run.definition.step_branch(self.run.step_name(step));
        self.say(Event::WorktreePlanned { step, branch, base });
    }

    pub(super) fn plan_session(&mut self, step: StepIndex, worktree: Option<&Worktree>) {
        let client_session_id = self.ids.session();
        let request = session_request(self.run, step, worktree, client_session_id);
        self.say(Event::SessionPlanned {
            step,
            request: Arc::new(request),
        });
    }

    fn next_merge(&mut self) {
        if self.run.merging.is_some() && !planted(Bug::TwoMerges) {
            return;
        }
        let (Some(step), Some(repository)) = (self.run.merge_queue.front(), &self.run.definition.repository)
        else {
            return;
        };
        let onto = self.run.tip.clone().unwrap_or_else(|| repository.base.clone());
        self.say(Event::MergePlanned { step: *step, onto });
    }
}

fn session_request(
    run: &Run,
    step: StepIndex,
    worktree: Option<&Worktree>,
    client_session_id: crate::id::ClientSessionId,
) -> SessionRequest {
    let definition = &run.definition;
    let agent = run.agent(step);
    let path = worktree.map(|w| w.path.as_path());
    let mut filesystem_scope = definition.folders_in(path);
    // Where the full reports of the agents upstream are (W14), and for a coordinator those of its sub-agents to come.
    let upstream = run.upstream(step).map(|parent| run.step_name(parent));
    let own = (agent.kind == AgentKind::Dynamic).then(|| run.step_name(step));
    let names = upstream.chain(own);
    filesystem_scope
        .read
        .extend(names.map(|name| definition.step_files(name)));
    SessionRequest {
        client_session_id,
        model: agent.model.clone(),
        effort: agent.effort.clone(),
        workspace: definition.folder_in(path),
        filesystem_scope,
        protected: definition.protected_in(path),
        permissions: definition.policy.permissions,
        autocompact_tokens: definition.policy.autocompact_tokens,
    }
}

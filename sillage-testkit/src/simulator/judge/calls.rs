//! What the judge expects of each request at the moment that it leaves.

use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::runtime::{MessageRequest, SessionRequest};
use sillage_core::ports::workspace::{MergeWanted, WorktreeWanted};
use sillage_core::run::{Effect, EffectKey, MessagePurpose};

use super::{Judge, Promise};
use crate::simulator::sessions::Session;
use crate::simulator::world::World;

impl Judge {
    /// A message is told to be in conflict with an earlier one: a fault, never to be tried again (R6).
    pub(crate) fn in_conflict(&mut self, id: ClientMessageId) {
        self.conflicts.push(id);
    }

    /// The engine has decided something: what it was told before that, it knew.
    pub(crate) fn decided(&mut self) {
        for id in std::mem::take(&mut self.conflicts) {
            if let Some(book) = self.messages.get_mut(&id) {
                book.in_conflict = true;
            }
        }
    }

    /// A session received a message that it had not received before.
    pub(crate) fn received(&mut self, id: ClientSessionId, session: &Session) {
        let missions = session
            .received
            .iter()
            .filter(|received| self.purpose(received.id) == Some(MessagePurpose::Mission))
            .count();
        self.expect(Promise::OneMessage, missions <= 1, || {
            format!("session {id} received {missions} missions")
        });
    }
}

impl World {
    /// A session is asked for.
    pub(crate) fn judge_open(&mut self, request: &SessionRequest) {
        let id = request.client_session_id;
        let stopping = self.judge.stopping;
        let Some(book) = self.judge.sessions.get_mut(&id) else {
            return self.violated(Promise::IntentFirst, || {
                format!("session {id} is asked for, and is not in the log")
            });
        };
        book.openings += 1;
        let same = *book.request == *request;
        let (openings, excuses, step) = (book.openings, book.excuses, book.step);
        let judge = &mut self.judge;
        judge.passes_its_gate(step, "a session");
        judge.expect(Promise::IntentFirst, same, || {
            format!("session {id} is asked for otherwise than the log says")
        });
        judge.expect(Promise::StopWins, !stopping, || {
            format!("session {id} is asked for after a stop")
        });
        judge.expect(Promise::NoStorm, openings <= excuses + 1, || {
            format!("session {id} is asked for {openings} times with {excuses} waits and restarts")
        });
        self.stop_if_violated();
    }

    /// A message is sent.
    pub(crate) fn judge_send(&mut self, session: ClientSessionId, message: &MessageRequest) {
        let id = message.client_message_id;
        let excuses = self.judge.sessions.get(&session).map_or(0, |book| book.excuses);
        let Some(book) = self.judge.messages.get_mut(&id) else {
            return self.violated(Promise::IntentFirst, || {
                format!("message {id} is sent, and is not in the log")
            });
        };
        book.sendings += 1;
        let same = book.session == session && book.text == message.text;
        let (sendings, in_conflict) = (book.sendings, book.in_conflict);
        let step = self.judge.sessions.get(&session).map(|book| book.step);
        let effect = step
            .zip(self.judge.run.as_ref())
            .and_then(|(step, run)| run.effect(EffectKey::Send(step, id)));
        // One that the session has at hand is listened to again: nothing new reaches the account.
        let known = self
            .sessions
            .get(&session)
            .is_some_and(|session| session.message(id).is_some());
        let judge = &mut self.judge;
        if let Some(step) = step.filter(|_| !known) {
            judge.passes_its_gate(step, "a message");
        }
        judge.expect(Promise::IntentFirst, same, || {
            format!("message {id} is sent otherwise than the log says")
        });
        judge.expect(Promise::OneMessage, !in_conflict, || {
            format!("message {id} is sent again after a conflict")
        });
        judge.expect(Promise::NoStorm, sendings <= excuses + 1, || {
            format!("message {id} is sent {sendings} times with {excuses} waits and restarts")
        });
        if let Some(Effect::Send { files, .. }) = effect {
            for file in files {
                let there = self.files.get(&file.path).map(Vec::as_slice) == Some(file.content.as_bytes());
                judge.expect(Promise::FilesFirst, there, || {
                    format!(
                        "message {id} speaks of {}, which is not there",
                        file.path.display()
                    )
                });
            }
        }
        self.stop_if_violated();
    }

    /// A worktree is asked for.
    pub(crate) fn judge_lease(&mut self, wish: &WorktreeWanted) {
        let planned = self.judge.run.as_ref().is_some_and(|run| {
            run.steps().iter().any(|step| {
                let planned = step.work().and_then(|work| work.planned.as_ref());
                planned.is_some_and(|(branch, base)| *branch == wish.branch && *base == wish.base)
            })
        });
        self.judge.expect(Promise::IntentFirst, planned, || {
            format!("a worktree of {} is not in the log", wish.branch)
        });
        self.stop_if_violated();
    }

    /// A merge is asked for.
    pub(crate) fn judge_merge(&mut self, wish: &MergeWanted) {
        let committed = self.judge.run.as_ref().is_some_and(|run| {
            run.steps().iter().any(|step| {
                let committed = step.work().and_then(|work| work.committed.as_ref());
                committed.is_some_and(|committed| committed.tip == wish.commit)
            })
        });
        self.judge.expect(Promise::IntentFirst, committed, || {
            format!("the merge of {} is not in the log", wish.commit)
        });
        self.stop_if_violated();
    }
}

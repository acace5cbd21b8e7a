//! How the agents of a simulated world work and what they answer.

use std::time::Duration;

use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::runtime::{
    Answer, PermissionOption, PermissionRequest, RuntimeError, SessionEventKind, StopReason, Usage,
};
use sillage_core::report::Outcome;
use sillage_core::run::MessagePurpose;

use super::faults::Fault;
use super::sessions::{Given, Session, Standing};
use super::story::AGENT;
use super::tasks;
use super::world::World;

/// A date further away than dates of quotas are.
const FAR: Duration = Duration::from_secs(10 * 24 * 3600);

impl World {
    /// Bad news of the provider, if there is any now.
    pub(crate) fn bad_news(&mut self) -> Option<RuntimeError> {
        if self.strikes(Fault::Temporary) {
            return Some(RuntimeError::Temporary {
                words: "overloaded".to_owned(),
                retry_after: None,
            });
        }
        if self.strikes(Fault::RetryAfter) {
            let seconds = self.dice.between(Fault::RetryAfter as usize, 1, 1800);
            let words = format!("overloaded: retry after {seconds} s");
            return Some(RuntimeError::Temporary {
                words,
                retry_after: Some(Duration::from_secs(seconds)),
            });
        }
        if self.strikes(Fault::Capacity) {
            let seconds = self.dice.between(Fault::Capacity as usize, 1, 600);
            let (words, retry_after) = match self.dice.chance(Fault::Capacity as usize, 500) {
                true => (
                    format!("full: retry after {seconds} s"),
                    Some(Duration::from_secs(seconds)),
                ),
                false => ("full".to_owned(), None),
            };
            return Some(RuntimeError::Capacity { words, retry_after });
        }
        if self.strikes(Fault::Quota) {
            let now = self.wall();
            let seconds = self.dice.between(Fault::Quota as usize, 1, 40_000);
            let (words, resets_at) = match self.dice.below(Fault::Quota as usize, 7) {
                0 | 1 => ("quota used up".to_owned(), None),
                // Too far away to be believed as it stands.
                2 => {
                    let at = now.plus(FAR + Duration::from_secs(seconds));
                    (format!("quota used up: until {}", at.0), Some(at))
                }
                3 | 4 => {
                    let at = now.plus(Duration::from_secs(seconds));
                    (format!("quota used up: until {}", at.0), Some(at))
                }
                _ => {
                    let at = sillage_core::time::Timestamp(now.0 - 60_000);
                    // With the date: the clock may be set back while this is on its way, and the date is ahead then.
                    (format!("quota used up: until {}", at.0), Some(at))
                }
            };
            return Some(RuntimeError::Quota { words, resets_at });
        }
        if self.strikes(Fault::SignIn) {
            return Some(RuntimeError::SignIn {
                words: "sign in".to_owned(),
            });
        }
        if self.strikes_at(Fault::Permanent, self.story.per_mille / 4) {
            return Some(RuntimeError::Permanent {
                words: "no such model".to_owned(),
            });
        }
        None
    }

    /// The session says something; it may be heard twice.
    pub(crate) fn says(&mut self, id: ClientSessionId, kind: SessionEventKind) {
        let cut = self.strikes(Fault::Streams);
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        if cut {
            session.cut();
        }
        let event = session.say(kind);
        let revivals = session.revivals;
        if self.strikes(Fault::Doubled) {
            let wait = self.dice.between(Fault::Doubled as usize, 0, 400_000);
            self.after(wait, move |world| {
                // What a process said that is gone comes from no other.
                let said_it = |session: &&mut Session| session.revivals == revivals;
                if let Some(session) = world.sessions.get_mut(&id).filter(said_it) {
                    session.say_again(&event);
                }
            });
        }
    }

    /// The session begins to work on a message.
    pub(crate) fn begin_work(&mut self, id: ClientSessionId) {
        let Some(work) = self.sessions.get_mut(&id).map(|session| {
            session.work += 1;
            session.work
        }) else {
            return;
        };
        let long = [1_000, 60_000, 600_000][usize::try_from(self.dice.below(AGENT, 3)).unwrap_or(0)];
        let takes = self.dice.between(AGENT, 10, long);
        if self.strikes(Fault::Streams) {
            let when = self.dice.below(Fault::Streams as usize, takes);
            self.after(when, move |world| {
                if let Some(session) = world.sessions.get_mut(&id) {
                    session.cut();
                }
            });
        }
        let asks = self.strikes_at(Fault::Permissions, 4 * self.story.per_mille);
        self.after(takes / 2, move |world| {
            if world.works(id, work) {
                world.half_way(id, asks);
            }
        });
        if !asks {
            self.after(takes, move |world| {
                if world.works(id, work) {
                    world.answers(id);
                }
            });
        }
    }

    fn works(&self, id: ClientSessionId, work: u64) -> bool {
        self.sessions
            .get(&id)
            .is_some_and(|session| session.work == work && session.in_hand.is_some())
    }

    fn half_way(&mut self, id: ClientSessionId, asks: bool) {
        self.says(
            id,
            SessionEventKind::Text {
                text: "Working.".to_owned(),
            },
        );
        let usage = Usage {
            input_tokens: Some(self.dice.below(AGENT, 1000)),
            ..Usage::default()
        };
        self.says(id, SessionEventKind::Usage { usage });
        if !asks {
            return;
        }
        let permission = format!("p{}", self.fresh_word());
        if let Some(session) = self.sessions.get_mut(&id) {
            session.asks = Some(permission.clone());
        }
        let option = |id: &str, kind: &str| PermissionOption {
            id: id.to_owned(),
            name: id.to_owned(),
            kind: kind.to_owned(),
        };
        let request = PermissionRequest {
            id: permission,
            title: "to go on".to_owned(),
            kind: None,
            paths: Vec::new(),
            options: vec![option("yes", "allow_once"), option("no", "reject_once")],
        };
        self.says(id, SessionEventKind::Permission { request });
    }

    /// Its permission request is answered; it works on.
    pub(crate) fn permission_answered(&mut self, id: ClientSessionId, option: Option<String>, by: &str) {
        let asked = self.sessions.get_mut(&id).and_then(|session| session.asks.take());
        let Some(permission) = asked else { return };
        let by = by.to_owned();
        self.says(
            id,
            SessionEventKind::PermissionAnswered {
                id: permission,
                option,
                by,
            },
        );
        let takes = self.dice.between(AGENT, 10, 60_000);
        let Some(work) = self.sessions.get(&id).map(|session| session.work) else {
            return;
        };
        self.after(takes, move |world| {
            if world.works(id, work) {
                world.answers(id);
            }
        });
    }

    /// The session is through with its message, well or badly.
    fn answers(&mut self, id: ClientSessionId) {
        let Some(message) = self.sessions.get(&id).and_then(|session| session.in_hand) else {
            return;
        };
        if self.strikes_at(Fault::Lost, self.story.per_mille / 2) {
            let gone = if self.dice.chance(Fault::Lost as usize, 500) {
                Standing::Ended
            } else {
                Standing::Lost
            };
            if let Some(session) = self.sessions.get_mut(&id) {
                session.end(gone);
            }
            return;
        }
        if let Some(error) = self.bad_news() {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.in_hand = None;
            }
            return self.says(
                id,
                SessionEventKind::Error {
                    message: Some(message),
                    error,
                },
            );
        }
        let (given, stop) = self.write_answer(id, message);
        self.give(id, message, given, stop);
    }

    /// The answer leaves.
    pub(crate) fn give(
        &mut self,
        id: ClientSessionId,
        message: ClientMessageId,
        given: Given,
        stop: StopReason,
    ) {
        let now = self.now();
        self.trace.tell(now, || {
            format!("session {id} answers {message}: {} ({stop:?})", given.text)
        });
        let text = given.text.clone();
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        session.in_hand = None;
        session.asks = None;
        if let Some(received) = session.message_mut(message) {
            received.given = Some(given);
        }
        let answer = Answer {
            text,
            stop,
            usage: Usage::default(),
        };
        self.says(id, SessionEventKind::Answer { message, answer });
    }

    fn write_answer(&mut self, id: ClientSessionId, message: ClientMessageId) -> (Given, StopReason) {
        let word = format!("word {}", self.fresh_word());
        let purpose = self.judge.purpose(message);
        let Some((step, folder)) = self.judge.place_of(id) else {
            return (
                Given {
                    text: word,
                    ..Given::default()
                },
                StopReason::EndTurn,
            );
        };
        if self.owes_plan(id) {
            return (self.write_plan(id, step), StopReason::EndTurn);
        }
        let agent = self.judge.agent(step);
        let deliverables: Vec<std::path::PathBuf> = agent
            .and_then(|agent| agent.deliverable.as_ref())
            .map(|d| d.files.clone())
            .unwrap_or_default();
        let name = agent.map(|agent| agent.id.clone()).unwrap_or_default();
        let in_worktree = tasks::is_worktree(&folder);
        if in_worktree {
            let both = self.strikes_at(Fault::Merges, 500);
            let resolves = purpose == Some(MessagePurpose::Conflict) && !self.strikes_at(Fault::Merges, 300);
            if purpose != Some(MessagePurpose::Conflict) {
                self.workspace
                    .write(&folder, format!("work-{name}"), word.clone());
                if both {
                    self.workspace.write(&folder, "shared", word.clone());
                }
            } else if resolves {
                self.workspace.write(&folder, "shared", word.clone());
            }
        }
        let mut there = true;
        for file in &deliverables {
            if self.strikes(Fault::Missing) {
                self.workspace.write(&folder, file, "");
                there = false;
            } else {
                self.workspace.write(&folder, file, word.clone());
            }
        }
        let wrong = self.is_wrong(id);
        if wrong {
            let text = match self.dice.below(AGENT, 3) {
                0 => format!("I am done, {word}."),
                1 => format!("{{\"outcome\": \"done\", \"summary\": \"{word}\"}}"),
                _ => format!("{{\"summary\": \"{word}\", \"outcome\": "),
            };
            return (answer(text), StopReason::EndTurn);
        }
        if self.strikes(Fault::Cut) {
            let text = format!("{{\"outcome\": \"complete\", \"summary\": \"{word}");
            return (answer(text), StopReason::MaxTokens);
        }
        if self.strikes_at(Fault::Permanent, self.story.per_mille / 8) {
            return (answer("I will not.".to_owned()), StopReason::Refusal);
        }
        let outcome = match self.strikes(Fault::Outcomes) {
            true if self.dice.chance(Fault::Outcomes as usize, 500) => Outcome::Partial,
            true => Outcome::Blocked,
            false => Outcome::Complete,
        };
        let blockers = match outcome {
            Outcome::Blocked => ", \"blockers\": [{\"title\": \"a wall\"}]",
            Outcome::Complete | Outcome::Partial => "",
        };
        let text = format!(
            "{{\"outcome\": \"{}\", \"summary\": \"{word}\"{blockers}}}",
            outcome.word()
        );
        (
            Given {
                text,
                report: Some((word, outcome)),
                files_missing: !there,
                ..Given::default()
            },
            StopReason::EndTurn,
        )
    }

    fn is_wrong(&mut self, id: ClientSessionId) -> bool {
        let more = match self.strikes(Fault::Reports) {
            true => self.dice.between(Fault::Reports as usize, 1, 3),
            false => 0,
        };
        let calm = self.now() >= self.story.calm;
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        if session.wrong == 0 {
            session.wrong = more;
        }
        let wrong = session.wrong > 0 && !calm;
        session.wrong = session.wrong.saturating_sub(1);
        wrong
    }
}

/// An answer without anything that counts.
fn answer(text: String) -> Given {
    Given {
        text,
        ..Given::default()
    }
}

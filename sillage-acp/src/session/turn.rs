//! Turns: a message accepted, its answer, its cancellation.

use serde_json::Value;
use sillage_core::id::ClientMessageId;
use sillage_core::ports::runtime::{
    Answer, MessageRequest, RuntimeError, SessionEventKind, StopReason, Usage,
};
use sillage_core::time::human;
use tokio::time::Instant;

use super::actor::{Actor, End, Unable};
use super::children;
use super::silence::Silence;
use super::text::FinalText;
use crate::connection::{INTERNAL_ERROR, RpcError};
use crate::zone::Moment;
use crate::{classify, translate};

/// What the agent is doing for us.
#[derive(Debug, Default)]
pub(super) enum Turn {
    /// Nothing.
    #[default]
    Idle,
    /// Answering a message.
    Answering(Answering),
    /// Answering a message that has failed already: its end is waited for until the deadline.
    GivenUp { request: u64, deadline: Instant },
}

/// A message being answered.
#[derive(Debug)]
pub(super) struct Answering {
    pub(super) message: ClientMessageId,
    /// The identifier of the prompt.
    request: u64,
    pub(super) text: FinalText,
    /// When it was cancelled: until when its end is waited for.
    pub(super) cancelled: Option<Instant>,
    /// Who refused a permission in it.
    pub(super) refused: Option<&'static str>,
    /// A tool was used in it.
    pub(super) tools: bool,
    /// The agent says that something other than its model failed.
    pub(super) system_error: bool,
    pub(super) silence: Silence,
}

impl Turn {
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Turn::Idle => None,
            Turn::Answering(turn) => turn.cancelled,
            Turn::GivenUp { deadline, .. } => Some(*deadline),
        }
    }

    /// Whether `id` is that of the prompt whose answer is waited for.
    pub(super) fn waits_for(&self, id: &Value) -> bool {
        match self {
            Turn::Idle => false,
            Turn::Answering(Answering { request, .. }) | Turn::GivenUp { request, .. } => {
                id.as_u64() == Some(*request)
            }
        }
    }
}

impl Actor {
    /// Takes a message in and prompts the agent with it; nothing when it was accepted before (R5).
    pub(super) fn accept(&mut self, message: &MessageRequest) -> Result<(), Unable> {
        let id = message.client_message_id;
        if let Some(text) = self.messages.get(&id) {
            if *text == message.text {
                return Ok(());
            }
            let words = format!("message {id} came before with another text");
            return Err(Unable::Refused(RuntimeError::Conflict {
                words,
                fields: vec!["text".to_owned()],
            }));
        }
        if let Turn::Answering(turn) = &self.turn {
            let words = format!("message {} is being answered", turn.message);
            return Err(Unable::Refused(RuntimeError::Conflict {
                words,
                fields: Vec::new(),
            }));
        }
        let session = self.session.clone().unwrap_or_default();
        let prompt = translate::prompt(&session, &message.text);
        let request = self
            .connection
            .request("session/prompt", &prompt)
            .map_err(|error| Unable::Over(error.into()))?;
        self.messages.insert(id, message.text.clone());
        let text = FinalText::default();
        self.turn = Turn::Answering(Answering {
            message: id,
            request,
            text,
            cancelled: None,
            refused: None,
            tools: false,
            system_error: false,
            silence: Silence::from(Instant::now()),
        });
        Ok(())
    }

    /// The prompt was answered: so the message ends, whatever the answer.
    pub(super) fn prompt_answered(&mut self, outcome: Result<Value, RpcError>) -> Result<(), End> {
        self.cancel_permissions();
        self.close_tools();
        match std::mem::take(&mut self.turn) {
            Turn::Answering(turn) => {
                self.earlier_message = turn.text.message().map(str::to_owned);
                let kind = self.end_of(turn, outcome);
                self.log.push(kind);
                Ok(())
            }
            Turn::Idle | Turn::GivenUp { .. } => {
                let held = std::mem::take(&mut self.held);
                held.into_iter().try_for_each(|command| self.command(command))
            }
        }
    }

    fn end_of(&mut self, turn: Answering, outcome: Result<Value, RpcError>) -> SessionEventKind {
        let message = turn.message;
        let stop = match outcome {
            Ok(answer) => {
                let end = translate::prompt_end(&answer);
                self.add_usage(end.totals, end.turn);
                if turn.system_error && turn.cancelled.is_none() && end.stop == StopReason::EndTurn {
                    return self.failed_silently(turn);
                }
                if turn.cancelled.is_none()
                    && let Some(error) = self.told_as_answer(&turn, end.error, &end.stop)
                {
                    return SessionEventKind::Error {
                        message: Some(message),
                        error,
                    };
                }
                end.stop
            }
            // Some agents answer a cancelled prompt with an error.
            Err(_) if turn.cancelled.is_some() => StopReason::Cancelled,
            Err(error) => {
                let error = classify::rpc_error(self.agent(), &error, &Moment::present());
                return SessionEventKind::Error {
                    message: Some(message),
                    error,
                };
            }
        };
        // Whether it was cancelled is what we know, not what the agent says: some answer a cancelled prompt
        // `end_turn`, and some end a prompt `cancelled` because a permission was refused.
        let stop = match (turn.cancelled.is_some(), stop) {
            (true, _) => StopReason::Cancelled,
            (false, StopReason::Cancelled) => StopReason::Other(match turn.refused {
                Some(who) => format!("cancelled by the agent: its request was rejected by {who}"),
                None => "cancelled by the agent".to_owned(),
            }),
            // How some agents show that their model could not be reached.
            (false, StopReason::EndTurn) if !turn.tools && turn.text.is_blank() => {
                StopReason::Other("nothing was said and no tool was used".to_owned())
            }
            (false, stop) => stop,
        };
        let answer = Answer {
            text: turn.text.finish(),
            stop,
            usage: self.usage,
        };
        SessionEventKind::Answer { message, answer }
    }

    /// A turn that ended as if all were well although the agent knows better: what it said is the error.
    fn failed_silently(&self, turn: Answering) -> SessionEventKind {
        let said = turn.text.finish();
        let message = match said.trim() {
            "" => "a system error, without a word".to_owned(),
            said => said.to_owned(),
        };
        let error = RpcError {
            code: INTERNAL_ERROR,
            message,
            data: None,
        };
        SessionEventKind::Error {
            message: Some(turn.message),
            error: classify::rpc_error(self.agent(), &error, &Moment::present()),
        }
    }

    /// The error of a turn that did not end as one that answers: the one that the agent puts beside it, or its message
    /// where that is a provider's notice and nothing else. A turn that ends well says what it likes of limits (Q5).
    fn told_as_answer(
        &self,
        turn: &Answering,
        beside: Option<String>,
        stop: &StopReason,
    ) -> Option<RuntimeError> {
        match stop {
            StopReason::Refusal | StopReason::Other(_) => {}
            StopReason::EndTurn
            | StopReason::MaxTokens
            | StopReason::MaxTurnRequests
            | StopReason::Cancelled => return None,
        }
        let said = Moment::present();
        let Some(message) = beside else {
            return classify::notice(self.agent(), turn.text.said_last(), &said);
        };
        let error = RpcError {
            code: INTERNAL_ERROR,
            message,
            data: None,
        };
        Some(classify::rpc_error(self.agent(), &error, &said))
    }

    /// When the agent's silence is to be looked at next.
    pub(super) fn next_look(&self) -> Option<Instant> {
        match &self.turn {
            Turn::Answering(turn) if turn.cancelled.is_none() && !self.waits_for_person() => {
                Some(turn.silence.next_look(self.plan.options.silent_after))
            }
            Turn::Answering(_) | Turn::Idle | Turn::GivenUp { .. } => None,
        }
    }

    /// Gives the message up when the agent has been silent for too long and no child of it is busy (R11).
    pub(super) fn look_for_silence(&mut self) -> Result<(), End> {
        let computed = children::computed(self.process.pid());
        let Turn::Answering(turn) = &mut self.turn else {
            return Ok(());
        };
        let bound = self.plan.options.silent_after;
        let Some(silent) = turn.silence.look(Instant::now(), computed, bound) else {
            return Ok(());
        };
        let words = format!(
            "agent `{}` was silent for {}, and no process of it was busy",
            self.agent(),
            human(silent)
        );
        self.note(words.clone());
        self.give_up(RuntimeError::Temporary {
            words,
            retry_after: None,
        })
    }

    /// Gives the message up because something that the agent wrote was lost (A4).
    pub(super) fn give_up_over(&mut self, what: &str) -> Result<(), End> {
        let words = format!("agent `{}` wrote {what}", self.agent());
        self.give_up(RuntimeError::Permanent { words })
    }

    /// Ends the message being answered, and asks the agent to leave it: with the error, or cancelled where it was.
    fn give_up(&mut self, error: RuntimeError) -> Result<(), End> {
        let Turn::Answering(turn) = std::mem::take(&mut self.turn) else {
            return Ok(());
        };
        self.close_tools();
        self.earlier_message = turn.text.message().map(str::to_owned);
        let (request, message, cancelled) = (turn.request, turn.message, turn.cancelled);
        let kind = match cancelled {
            Some(_) => SessionEventKind::Answer {
                message,
                answer: Answer {
                    text: turn.text.finish(),
                    stop: StopReason::Cancelled,
                    usage: self.usage,
                },
            },
            None => SessionEventKind::Error {
                message: Some(message),
                error,
            },
        };
        self.log.push(kind);
        let deadline = cancelled.unwrap_or_else(|| Instant::now() + self.plan.options.cancel_grace);
        self.turn = Turn::GivenUp { request, deadline };
        self.cancel_permissions();
        match cancelled {
            Some(_) => Ok(()),
            None => self.notify_cancel(),
        }
    }

    /// Asks the agent to stop (ACP v1, "Cancellation"): open permission requests are answered first.
    pub(super) fn cancel(&mut self) -> Result<(), End> {
        let deadline = Instant::now() + self.plan.options.cancel_grace;
        match &mut self.turn {
            Turn::Answering(turn) if turn.cancelled.is_none() => turn.cancelled = Some(deadline),
            Turn::Answering(_) | Turn::Idle | Turn::GivenUp { .. } => return Ok(()),
        }
        self.cancel_permissions();
        self.notify_cancel()
    }

    fn notify_cancel(&mut self) -> Result<(), End> {
        let session = self.session.clone().unwrap_or_default();
        Ok(self
            .connection
            .notify("session/cancel", &translate::cancel(&session))?)
    }

    /// The agent has not stopped in time: it is ended.
    pub(super) fn grace_is_over(&mut self) -> End {
        let grace = self.plan.options.cancel_grace;
        End::Lost(format!("did not stop within {} of being asked to", human(grace)))
    }

    /// Adds what is newly known of usage: totals replace, a turn's own tokens add up.
    pub(super) fn add_usage(&mut self, totals: Usage, turn: Usage) {
        let sum = |so_far: Option<u64>, more: Option<u64>| {
            more.map(|more| so_far.unwrap_or(0).saturating_add(more))
                .or(so_far)
        };
        let before = self.usage;
        if totals.input_tokens.is_none() && totals.output_tokens.is_none() {
            self.usage.input_tokens = sum(before.input_tokens, turn.input_tokens);
            self.usage.output_tokens = sum(before.output_tokens, turn.output_tokens);
        }
        self.usage = self.usage.updated_by(totals);
        if self.usage != before {
            self.log.push(SessionEventKind::Usage { usage: self.usage });
        }
    }
}

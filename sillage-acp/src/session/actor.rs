//! The task that holds one session: it starts the process, converses with it, and stops it.

use std::collections::HashMap;
use std::process::ExitStatus;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::Value;
use sillage_core::id::ClientMessageId;
use sillage_core::policy::ToolFacts;
use sillage_core::ports::runtime::{
    Answer, FoundSession, PermissionRequest, RuntimeError, SessionEventKind, StopReason, Usage,
};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::incoming::UPDATE;
use super::log::EventLog;
use super::opening::Failure;
use super::text::Replay;
use super::turn::Turn;
use super::unheard::Unheard;
use super::{Answerer, Command, Ended, Plan, Wires};
use crate::connection::{Connection, Incoming, NotReading};
use crate::model_choice::Shown;
use crate::process::{Process, StopTimes};
use crate::sandbox::{self, Guest};

/// How long what a dead agent had written is still read.
pub(super) const AFTER_EXIT: Duration = Duration::from_millis(500);

/// The longest that an agent which could not be opened is given to go by itself.
const FAILED_OPENING: Duration = Duration::from_secs(1);

/// Characters of an agent's last words that are repeated.
const SHOWN_WORDS: usize = 2000;

/// Why the conversation is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// It was asked for.
    Closed,
    /// The process is not there any more, or of no use: how, without its exit status and last words.
    Lost(String),
    /// Its pipes are closed or stuck, and whether it is still there is not known: how.
    Cut(String),
}

impl From<NotReading> for End {
    fn from(error: NotReading) -> Self {
        End::Cut(error.to_string())
    }
}

/// Why a command was not carried out.
pub(super) enum Unable {
    Refused(RuntimeError),
    /// The agent cannot be told.
    Over(End),
}

/// A permission request that waits for a person.
#[derive(Debug)]
pub(super) struct OpenPermission {
    pub(super) rpc_id: Value,
    pub(super) request: PermissionRequest,
}

/// A tool call as it is known.
#[derive(Debug, Default)]
pub(super) struct ToolCall {
    pub(super) facts: ToolFacts,
    pub(super) status: String,
}

/// The state of the session.
pub(super) struct Actor {
    pub(super) plan: Plan,
    pub(super) log: Arc<EventLog>,
    pub(super) connection: Connection,
    pub(super) process: Process,
    /// The box that the process is a way into.
    guest: Option<Guest>,
    pub(super) commands: mpsc::Receiver<Command>,
    closing: Arc<Notify>,
    /// The agent's identifier of the session, once it has one.
    pub(super) session: Option<String>,
    /// Updates that came before the session had an identifier.
    pub(super) early: Unheard,
    pub(super) shown: Shown,
    /// The ways to sign in that the agent offers.
    pub(super) sign_ins: Vec<String>,
    /// Set while `session/load` repeats the conversation.
    pub(super) replay: Option<Replay>,
    /// Texts of the messages accepted.
    pub(super) messages: HashMap<ClientMessageId, String>,
    pub(super) turn: Turn,
    /// The last message of the turn before, whose late pieces are not the next turn's.
    pub(super) earlier_message: Option<String>,
    /// Messages that wait for a turn given up to come to its end.
    pub(super) held: Vec<Command>,
    pub(super) permissions: Vec<OpenPermission>,
    pub(super) permissions_asked: u64,
    pub(super) tools: HashMap<String, ToolCall>,
    pub(super) usage: Usage,
    pub(super) noise: u64,
}

/// Holds a session from its start to its end.
pub(super) async fn run(plan: Plan, wires: Wires) {
    let Wires {
        log,
        commands,
        closing,
        opened,
        ended,
        leader,
    } = wires;
    let options = Arc::clone(&plan.options);
    let start = async {
        let (program, guest) = super::opening::placed_program(&plan).await?;
        Ok((Process::start(&plan.spawner, program).await?, guest))
    };
    let started = tokio::select! {
        started = start => started,
        // Its box may take long to be made.
        () = closing.notified() => Err(Failure::Closed.into_error(&plan, None, "")),
    };
    let ((process, pipes), guest) = match started {
        Ok(started) => started,
        Err(error) => {
            log.push(SessionEventKind::Ended);
            ended.send_replace(Some(Ended {
                words: error.to_string(),
                stopped: Ok(()),
            }));
            opened.send_replace(Some(Err(error)));
            return;
        }
    };
    *leader.lock().unwrap_or_else(PoisonError::into_inner) = Some(process.leader());
    let connection = Connection::new(
        &plan.choice.agent.name,
        pipes.input,
        pipes.output,
        options.write_deadline,
    );
    let mut actor = Actor::new(plan, log, connection, process, commands, closing);
    actor.guest = guest;
    match actor.begin_unless_closed().await {
        Ok(found) => {
            opened.send_replace(Some(Ok(found)));
            let end = actor.serve().await;
            let over = actor.finish(end, options.stop).await;
            ended.send_replace(Some(over));
        }
        Err(failure) => {
            let short = |span: Duration| span.min(FAILED_OPENING);
            let times = StopTimes {
                after_input_closed: short(options.stop.after_input_closed),
                ..options.stop
            };
            let status = actor.stop(times).await;
            let words = actor.last_words().await;
            let error = failure.into_error(&actor.plan, status.as_ref().ok().copied(), &words);
            actor.log.push(SessionEventKind::Ended);
            let stopped = status.map(|_| ());
            ended.send_replace(Some(Ended {
                words: error.to_string(),
                stopped,
            }));
            opened.send_replace(Some(Err(error)));
        }
    }
}

impl Actor {
    fn new(
        plan: Plan,
        log: Arc<EventLog>,
        connection: Connection,
        process: Process,
        commands: mpsc::Receiver<Command>,
        closing: Arc<Notify>,
    ) -> Self {
        Self {
            plan,
            log,
            connection,
            process,
            guest: None,
            commands,
            closing,
            session: None,
            early: Unheard::default(),
            shown: Shown::default(),
            sign_ins: Vec::new(),
            replay: None,
            messages: HashMap::new(),
            turn: Turn::Idle,
            earlier_message: None,
            held: Vec::new(),
            permissions: Vec::new(),
            permissions_asked: 0,
            tools: HashMap::new(),
            usage: Usage::default(),
            noise: 0,
        }
    }

    pub(super) fn agent(&self) -> &str {
        &self.plan.choice.agent.name
    }

    async fn begin_unless_closed(&mut self) -> Result<FoundSession, Failure> {
        let closing = Arc::clone(&self.closing);
        tokio::select! {
            biased;
            () = closing.notified() => Err(Failure::Closed),
            outcome = self.begin() => outcome,
        }
    }

    /// Converses until the session is over.
    async fn serve(&mut self) -> End {
        loop {
            let (deadline, look) = (self.turn.deadline(), self.next_look());
            let outcome = tokio::select! {
                biased;
                () = self.closing.notified() => Err(End::Closed),
                // Before what arrives: an agent that floods is not to put off its own end.
                () = at(deadline) => Err(self.grace_is_over()),
                () = at(look) => self.look_for_silence(),
                command = self.commands.recv() => match command {
                    Some(command) => self.command(command),
                    None => Err(End::Closed), // the runtime was dropped
                },
                () = self.process.exited() => Err(self.read_the_rest().await),
                incoming = self.connection.next() => self.arrived(incoming),
            };
            if let Err(end) = outcome {
                return self.explain(end).await;
            }
        }
    }

    /// Finds out what became of an agent whose pipes are cut: most often it has ended.
    pub(super) async fn explain(&mut self, end: End) -> End {
        match end {
            End::Cut(how) => match tokio::time::timeout(AFTER_EXIT, self.process.exited()).await {
                Ok(()) => self.read_the_rest().await,
                Err(_) => End::Lost(format!("went away: {how}")),
            },
            End::Closed | End::Lost(_) => end,
        }
    }

    /// Handles what the agent had written before it ended. A child may hold its output open: not for ever.
    pub(super) async fn read_the_rest(&mut self) -> End {
        let over = Instant::now() + AFTER_EXIT;
        while let Ok(Some(incoming)) = tokio::time::timeout_at(over, self.connection.rest()).await {
            // What it asks cannot be answered any more.
            let _ = self.arrived(incoming);
            if Instant::now() >= over {
                break;
            }
        }
        End::Lost("ended by itself".to_owned())
    }

    /// Stops the process and tells how the session ended.
    async fn finish(&mut self, end: End, times: StopTimes) -> Ended {
        self.cancel_permissions();
        let status = self.stop(times).await;
        self.close_tools();
        self.tell_noise();
        let words = match &end {
            End::Closed => format!("session {} was closed", self.plan.request.client_session_id),
            End::Lost(how) | End::Cut(how) => {
                let last = self.last_words().await;
                died(self.agent(), how, status.as_ref().ok().copied(), &last)
            }
        };
        let lost = RuntimeError::Lost { words: words.clone() };
        match std::mem::take(&mut self.turn) {
            Turn::Answering(turn) if end == End::Closed || turn.cancelled.is_some() => {
                let text = turn.text.finish();
                let answer = Answer {
                    text,
                    stop: StopReason::Cancelled,
                    usage: self.usage,
                };
                self.log.push(SessionEventKind::Answer {
                    message: turn.message,
                    answer,
                });
            }
            Turn::Answering(turn) => {
                self.log.push(SessionEventKind::Error {
                    message: Some(turn.message),
                    error: lost,
                });
            }
            Turn::Idle | Turn::GivenUp { .. } if end != End::Closed => {
                self.log.push(SessionEventKind::Error {
                    message: None,
                    error: lost,
                });
            }
            Turn::Idle | Turn::GivenUp { .. } => {}
        }
        self.log.push(SessionEventKind::Ended);
        // What waits for this task is answered by its end.
        self.held.clear();
        self.commands.close();
        while self.commands.try_recv().is_ok() {}
        Ended {
            words,
            stopped: status.map(|_| ()),
        }
    }

    /// Stops the process. What it says until it has gone still counts: usage comes late, and so do the last words of
    /// tool calls.
    async fn stop(&mut self, times: StopTimes) -> Result<ExitStatus, RuntimeError> {
        let mut late = Unheard::default();
        self.connection.close_input();
        let status = tokio::select! {
            status = sandbox::stop(&mut self.process, self.guest.as_ref(), times) => status,
            never = keep_updates(&mut self.connection, &mut late) => match never {},
        };
        let rest = async {
            while let Some(incoming) = self.connection.rest().await {
                keep_update(incoming, &mut late);
            }
        };
        // Nobody holds the pipe open, unless something outlived the stop.
        let _ = tokio::time::timeout(AFTER_EXIT, rest).await;
        late.take()
            .into_iter()
            .for_each(|params| self.session_update(params));
        status
    }

    async fn last_words(&mut self) -> String {
        let words = self.process.last_words().await;
        let skipped = words.chars().count().saturating_sub(SHOWN_WORDS);
        words.chars().skip(skipped).collect()
    }

    pub(super) fn command(&mut self, command: Command) -> Result<(), End> {
        match command {
            Command::Send(..) if matches!(self.turn, Turn::GivenUp { .. }) => {
                self.held.push(command);
                Ok(())
            }
            Command::Send(message, done) => {
                let outcome = self.accept(&message);
                self.tell(done, outcome)
            }
            Command::AnswerPermission { id, option, done } => {
                let outcome = self.answer_permission(&id, &option);
                self.tell(done, outcome)
            }
            Command::Knows(message, known) => {
                let _ = known.send(self.messages.contains_key(&message.client_message_id));
                Ok(())
            }
            Command::Cancel(done) => {
                let outcome = self.cancel();
                self.tell(done, outcome.map_err(Unable::Over))
            }
        }
    }

    /// Answers a command; whoever asked may have gone.
    fn tell(&self, done: Answerer, outcome: Result<(), Unable>) -> Result<(), End> {
        let (told, outcome) = match outcome {
            Ok(()) => (Ok(()), Ok(())),
            Err(Unable::Refused(error)) => (Err(error), Ok(())),
            Err(Unable::Over(end)) => {
                let words = format!("agent `{}`: {NotReading}", self.agent());
                (Err(RuntimeError::Lost { words }), Err(end))
            }
        };
        let _ = done.send(told);
        outcome
    }
}

/// How an agent went, with its exit status and last words.
pub(crate) fn died(agent: &str, how: &str, status: Option<ExitStatus>, last_words: &str) -> String {
    let mut words = format!("agent `{agent}` {how}");
    if let Some(status) = status {
        words.push_str(&format!(" ({status})"));
    }
    if !last_words.is_empty() {
        words.push_str(&format!("; its last words: {last_words}"));
    }
    words
}

/// Reads on, so that an agent that is being stopped is not held up by a full pipe.
async fn keep_updates(connection: &mut Connection, late: &mut Unheard) -> std::convert::Infallible {
    while let Some(incoming) = connection.rest().await {
        keep_update(incoming, late);
    }
    std::future::pending().await
}

fn keep_update(incoming: Incoming, late: &mut Unheard) {
    if let Incoming::Notification { method, params } = incoming
        && method == UPDATE
    {
        late.keep(params);
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

//! [`CommandRuntime`]: a shell command for each message.

use std::collections::HashMap;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use sillage::core::id::{ClientMessageId, ClientSessionId};
use sillage::core::ports::AgentRuntime;
use sillage::core::ports::runtime::{
    Answer, FoundSession, MessageFate, MessageRequest, OpenedSession, RuntimeError, RuntimeStatus,
    SessionEvent, SessionEventKind, SessionRequest, StopReason, Usage,
};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// The exit status of `sysexits.h` for what may work later.
const EX_TEMPFAIL: i32 = 75;

/// Answers each message by what a shell command writes, with the message on its standard input and the session's
/// folder as its own. A session lives in this value only: nothing is found again after a restart.
///
/// It ends the commands that it started, but not what they start in turn: `sillage-acp` shows how to do that.
pub(crate) struct CommandRuntime {
    command: String,
    sessions: Mutex<HashMap<ClientSessionId, Arc<Session>>>,
}

struct Session {
    request: SessionRequest,
    /// Readers of events wait on it, also after the session is closed.
    state: watch::Sender<State>,
    /// Held while a message is accepted or the session closed, so that a close leaves no command behind.
    running: Mutex<Option<Running>>,
}

/// A command at work. Dropping it stops the command: so does dropping the whole runtime.
struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    /// The event at position `n` has number `n + 1`. They are kept: events can be read from any number.
    events: Vec<SessionEventKind>,
    /// Every message accepted, so that one sent again is not asked again.
    accepted: HashMap<ClientMessageId, String>,
    current: Option<ClientMessageId>,
    ended: bool,
}

impl CommandRuntime {
    /// A runtime whose agents all are this command for `sh -c`.
    pub(crate) fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            sessions: Mutex::default(),
        }
    }

    fn session(&self, id: ClientSessionId) -> Result<Arc<Session>, RuntimeError> {
        let known = lock(&self.sessions).get(&id).cloned();
        known.ok_or_else(|| RuntimeError::Lost {
            words: format!("there is no session {id} here"),
        })
    }

    fn spawn(&self, request: &SessionRequest) -> Result<Child, RuntimeError> {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(&self.command)
            .current_dir(&request.workspace);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Whatever becomes of the task that waits for it.
        command.kill_on_drop(true);
        // What is missing now is missing the next time too: only what may pass is temporary.
        command.spawn().map_err(|error| RuntimeError::Permanent {
            words: format!("sh: {error}"),
        })
    }
}

#[async_trait]
impl AgentRuntime for CommandRuntime {
    /// No model is named: any is accepted. Nothing is started to find out.
    async fn status(&self) -> Result<RuntimeStatus, RuntimeError> {
        Ok(RuntimeStatus {
            name: "command".to_owned(),
            models: Vec::new(),
        })
    }

    /// The engine asks again after a crash, and whenever it does not know whether its call arrived: the same
    /// identifier must not start a second session (R5), nor stand for another request (R6).
    async fn open(&self, request: &SessionRequest) -> Result<OpenedSession, RuntimeError> {
        let mut sessions = lock(&self.sessions);
        let session = sessions
            .entry(request.client_session_id)
            .or_insert_with(|| Arc::new(Session::new(request)));
        session.same_request(request)?;
        Ok(opened())
    }

    /// A session that this process does not know is certainly gone, and the step begins again in a new one. A runtime
    /// that is not certain answers with [`RuntimeError::Temporary`], and is asked again.
    async fn find(
        &self,
        request: &SessionRequest,
        _native: Option<&str>,
        in_flight: Option<&MessageRequest>,
    ) -> Result<FoundSession, RuntimeError> {
        let session = self.session(request.client_session_id)?;
        session.same_request(request)?;
        let in_flight = match in_flight {
            None => MessageFate::None,
            Some(message)
                if session
                    .state
                    .borrow()
                    .accepted
                    .contains_key(&message.client_message_id) =>
            {
                MessageFate::InHand
            }
            Some(_) => MessageFate::NotReceived,
        };
        Ok(FoundSession {
            opened: opened(),
            restarted: false,
            in_flight,
        })
    }

    /// Returns once the message is accepted: the answer comes as an event. An error says that it was not accepted.
    async fn send(&self, session: ClientSessionId, message: &MessageRequest) -> Result<(), RuntimeError> {
        let session = self.session(session)?;
        let mut running = lock(&session.running);
        if session.knows(message)? {
            return Ok(());
        }
        let child = self.spawn(&session.request)?;
        session.state.send_modify(|state| {
            state
                .accepted
                .insert(message.client_message_id, message.text.clone());
            state.current = Some(message.client_message_id);
        });
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(converse(child, message.clone(), stopped, session.state.clone()));
        *running = Some(Running {
            stop: Some(stop),
            task,
        });
        Ok(())
    }

    /// Numbers from `after + 1` on, without gaps, and then whatever comes until the session ends.
    async fn events(
        &self,
        session: ClientSessionId,
        after: u64,
    ) -> Result<BoxStream<'static, SessionEvent>, RuntimeError> {
        let state = self.session(session)?.state.subscribe();
        let read = |(mut state, number): (watch::Receiver<State>, u64)| async move {
            let position = usize::try_from(number).unwrap_or(usize::MAX);
            let kind = {
                let news = state
                    .wait_for(|state| state.events.len() > position || state.ended)
                    .await;
                // Nobody is left to tell more.
                news.ok()?.events.get(position).cloned()?
            };
            let number = number + 1;
            Some((SessionEvent { number, kind }, (state, number)))
        };
        Ok(stream::unfold((state, after), read).boxed())
    }

    /// A command asks for nothing.
    async fn answer_permission(
        &self,
        session: ClientSessionId,
        permission: &str,
        _option: &str,
    ) -> Result<(), RuntimeError> {
        self.session(session)?;
        Err(RuntimeError::Permanent {
            words: format!("no permission request `{permission}` is open"),
        })
    }

    /// The message still ends, with what was said so far. An unknown or idle session has nothing to stop.
    async fn cancel(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        if let Ok(session) = self.session(session)
            && let Some(running) = lock(&session.running).as_mut()
        {
            running.stop.take();
        }
        Ok(())
    }

    /// Returns when no process is left. An unknown session is already closed.
    async fn close(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        let Some(session) = lock(&self.sessions).remove(&session) else {
            return Ok(());
        };
        let running = {
            let mut running = lock(&session.running);
            session.state.send_modify(State::end);
            running.take()
        };
        if let Some(Running { stop, task }) = running {
            drop(stop);
            // A task that panicked has dropped its command, which ends it.
            let _ = task.await;
        }
        Ok(())
    }
}

impl Session {
    fn new(request: &SessionRequest) -> Self {
        let state = watch::Sender::new(State::default());
        Self {
            request: request.clone(),
            state,
            running: Mutex::default(),
        }
    }

    fn same_request(&self, request: &SessionRequest) -> Result<(), RuntimeError> {
        let fields = self.request.differences(request);
        if fields.is_empty() {
            return Ok(());
        }
        let words = format!(
            "session {} came before with another {}",
            request.client_session_id,
            fields.join(", ")
        );
        Err(RuntimeError::Conflict { words, fields })
    }

    /// Whether the message was accepted before. It is an error when it cannot be accepted now.
    fn knows(&self, message: &MessageRequest) -> Result<bool, RuntimeError> {
        let id = message.client_message_id;
        let state = self.state.borrow();
        match (state.accepted.get(&id), state.current) {
            _ if state.ended => Err(RuntimeError::Lost {
                words: "the session is over".to_owned(),
            }),
            (Some(text), _) if *text == message.text => Ok(true),
            (Some(_), _) => {
                let words = format!("message {id} came before with another text");
                Err(RuntimeError::Conflict {
                    words,
                    fields: vec!["text".to_owned()],
                })
            }
            (None, Some(other)) => {
                let words = format!("message {other} is being answered");
                Err(RuntimeError::Conflict {
                    words,
                    fields: Vec::new(),
                })
            }
            (None, None) => Ok(false),
        }
    }
}

impl State {
    /// Nothing follows the end, not even the answer of a command that is being stopped.
    fn tell(&mut self, kind: SessionEventKind) {
        if !self.ended {
            self.events.push(kind);
        }
    }

    fn end(&mut self) {
        self.tell(SessionEventKind::Ended);
        self.ended = true;
    }
}

/// Sees a command through: tells its lines as they come, and how its message ended.
async fn converse(
    mut child: Child,
    message: MessageRequest,
    stopped: oneshot::Receiver<()>,
    state: watch::Sender<State>,
) {
    let (mut said, mut complaint) = (String::new(), String::new());
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let is_stopped = {
        let all = async {
            // At once: a command may write before it has read, and fill either pipe.
            tokio::join!(
                tell(stdin, &message.text),
                hear(stdout, &mut said, &state),
                hear_complaints(stderr, &mut complaint)
            )
        };
        tokio::select! {
            _ = all => false,
            // Asked to stop, or dropped.
            _ = stopped => true,
        }
    };
    if is_stopped {
        // It may have ended by itself meanwhile.
        let _ = child.kill().await;
    }
    let end = match child.wait().await {
        _ if is_stopped => Ok((said, StopReason::Cancelled)),
        Ok(status) if status.success() => Ok((said, StopReason::EndTurn)),
        Ok(status) => Err(failure(status, complaint.trim())),
        Err(error) => Err(RuntimeError::Permanent {
            words: format!("the command is out of sight: {error}"),
        }),
    };
    let id = message.client_message_id;
    state.send_modify(|state| {
        state.current = None;
        state.tell(match end {
            Ok((text, stop)) => SessionEventKind::Answer {
                message: id,
                answer: Answer {
                    text,
                    stop,
                    usage: Usage::default(),
                },
            },
            Err(error) => SessionEventKind::Error {
                message: Some(id),
                error,
            },
        });
    });
}

/// The class decides what the engine does: try again later, wait for a date or a person, or fail the step (R7–R9).
fn failure(status: ExitStatus, complaint: &str) -> RuntimeError {
    let words = format!("the command ended with {status}: {complaint}");
    match status.code() {
        Some(EX_TEMPFAIL) => RuntimeError::Temporary {
            words,
            retry_after: None,
        },
        _ => RuntimeError::Permanent { words },
    }
}

async fn tell(stdin: Option<ChildStdin>, text: &str) {
    if let Some(mut stdin) = stdin {
        // A command need not read what it is told.
        let _ = stdin.write_all(text.as_bytes()).await;
    }
}

async fn hear(stdout: Option<ChildStdout>, said: &mut String, state: &watch::Sender<State>) {
    let Some(stdout) = stdout else { return };
    let mut lines = BufReader::new(stdout).lines();
    // What is no text ends the answer, which is then no report: the agent is told so.
    while let Ok(Some(line)) = lines.next_line().await {
        said.push_str(&line);
        said.push('\n');
        state.send_modify(|state| state.tell(SessionEventKind::Text { text: line }));
    }
}

async fn hear_complaints(stderr: Option<ChildStderr>, complaint: &mut String) {
    if let Some(mut stderr) = stderr {
        let mut bytes = Vec::new();
        // Whatever was read until an error is told.
        let _ = stderr.read_to_end(&mut bytes).await;
        complaint.push_str(&String::from_utf8_lossy(&bytes));
    }
}

/// Nothing is needed to find a session again, because none is.
fn opened() -> OpenedSession {
    OpenedSession {
        native: None,
        agent: "command".to_owned(),
        pid: None,
    }
}

/// No holder can leave what it guards half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

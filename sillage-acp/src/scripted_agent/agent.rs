//! The agent: takes frames and carries the protocol's methods out.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, BufReader};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::methods::{missing, own_failure};
use super::placeholder;
use super::record::{Event, Record};
use super::script::{Method, Script};
use super::session::Session;
use super::step::RpcError;
use super::turn::Turn;
use super::uses::Uses;
use super::wire::Wire;

/// How an agent ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It exits with this code.
    Code(u8),
    /// It aborts.
    Crash,
}

/// An agent that does what its script says.
#[derive(Debug)]
pub struct Agent {
    script: Script,
    home: PathBuf,
    record: Record,
}

impl Agent {
    /// An agent of `script`, whose relative paths are taken from `home`.
    #[must_use]
    pub fn new(script: Script, home: PathBuf, record: Record) -> Self {
        Agent { script, home, record }
    }

    /// Speaks ACP until it ends: by a step, or at the end of `input`. Whatever it was doing is then dropped.
    pub async fn serve<R, W>(self, input: R, output: W) -> Ending
    where
        R: AsyncRead + Send + Unpin,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (endings, mut ended) = mpsc::unbounded_channel();
        let record = self.record.clone();
        let shared = Arc::new(Shared::new(self, Box::new(output), endings));
        let ending = tokio::select! {
            ending = shared.clone().live(BufReader::new(input)) => ending,
            // The sender lives in `shared`, so there is always something to wait for.
            Some(ending) = ended.recv() => ending,
        };
        record.write(Event::Exiting {
            code: match ending {
                Ending::Code(code) => Some(code),
                Ending::Crash => None,
            },
        });
        ending
    }
}

/// What the tasks of one agent share.
pub(super) struct Shared {
    pub(super) script: Arc<Script>,
    pub(super) home: PathBuf,
    pub(super) record: Record,
    pub(super) wire: Wire,
    pub(super) uses: Uses,
    pub(super) kept_in: Option<PathBuf>,
    pub(super) sessions: Mutex<BTreeMap<String, Arc<Mutex<Session>>>>,
    /// The prompt being answered in each session; true: cancelled.
    turns: Mutex<BTreeMap<String, watch::Sender<bool>>>,
    method_uses: Mutex<BTreeMap<String, u32>>,
    pub(super) signed_in: AtomicBool,
    /// Set once nothing more is read.
    deaf: watch::Sender<bool>,
    endings: mpsc::UnboundedSender<Ending>,
}

impl Shared {
    fn new(
        agent: Agent,
        output: Box<dyn AsyncWrite + Send + Unpin>,
        endings: mpsc::UnboundedSender<Ending>,
    ) -> Self {
        let Agent { script, home, record } = agent;
        Shared {
            wire: Wire::new(output, record.clone(), script.ids),
            uses: Uses::new(script.uses.as_ref().map(|folder| home.join(folder))),
            kept_in: script
                .sessions
                .as_ref()
                .map(|sessions| home.join(&sessions.folder)),
            sessions: Mutex::default(),
            turns: Mutex::default(),
            method_uses: Mutex::default(),
            signed_in: AtomicBool::new(script.auth.is_none()),
            deaf: watch::Sender::new(false),
            script: Arc::new(script),
            home,
            record,
            endings,
        }
    }

    /// Ends the agent. Does not return: the task is dropped with everything else.
    pub(super) async fn end(&self, ending: Ending) -> ! {
        let _ = self.endings.send(ending);
        std::future::pending().await
    }

    /// Leaves what comes on standard input from now on where it is.
    pub(super) fn stop_listening(&self) {
        self.deaf.send_replace(true);
    }

    /// Starts as the script says, then takes frames until the end of the input.
    async fn live(self: Arc<Self>, mut input: impl AsyncBufRead + Unpin) -> Ending {
        let start = &self.script.start;
        let _ = io::stderr().write_all(start.stderr.as_bytes());
        if !start.stdout.is_empty() {
            self.wire.send_bytes(start.stdout.as_bytes()).await;
        }
        if let Some(code) = start.exit {
            return Ending::Code(code);
        }
        if let Some(path) = &start.wait_for {
            until_exists(&self.home.join(self.expand_for(path, None))).await;
        }
        tokio::time::sleep(Duration::from_millis(start.delay_ms)).await;

        let mut tasks = JoinSet::new();
        let mut line = Vec::new();
        let mut deaf = self.deaf.subscribe();
        loop {
            let stops = async {
                // The sender lives as long as the agent.
                let _ = deaf.wait_for(|deaf| *deaf).await;
            };
            let read = tokio::select! {
                biased;
                () = stops => return std::future::pending().await,
                read = input.read_until(b'\n', &mut line) => read,
            };
            if !read.is_ok_and(|read| read > 0) {
                break;
            }
            self.take(&line, &mut tasks).await;
            line.clear();
        }
        self.record.write(Event::Eof);
        let end = &self.script.end;
        let session = lock(&self.sessions).keys().next().cloned();
        self.send_all(&end.last_frames, session.as_deref()).await;
        if end.ignore_eof {
            return std::future::pending().await;
        }
        tokio::time::sleep(Duration::from_millis(end.linger_ms)).await;
        Ending::Code(end.code)
    }

    /// Takes one line. Requests that may take time go on beside the reading.
    async fn take(self: &Arc<Self>, line: &[u8], tasks: &mut JoinSet<()>) {
        let Ok(frame) = serde_json::from_slice::<Value>(line) else {
            let line = String::from_utf8_lossy(line).trim_end().to_owned();
            self.record.write(Event::Unreadable { line });
            return self
                .wire
                .respond(Value::Null, Err(RpcError::new(-32700, "parse error")))
                .await;
        };
        self.record.write(Event::Received { frame: frame.clone() });
        match (frame["method"].as_str(), frame.get("id").cloned()) {
            (Some("session/prompt"), Some(id)) => match self.begin(&id, &frame["params"]) {
                Ok(turn) => {
                    let method = self.method("session/prompt");
                    tasks.spawn(turn.play(method));
                }
                Err(error) => self.wire.respond(id, Err(error)).await,
            },
            (Some(name), Some(id)) => {
                let (method, name, params) = (self.method(name), name.to_owned(), frame["params"].clone());
                let answering = self.clone().answer(id, name, params, method.clone());
                // In order, unless the script slows this one down.
                if method.is_some() {
                    tasks.spawn(answering);
                } else {
                    answering.await;
                }
            }
            (Some("session/cancel"), None) => self.cancel(&frame["params"]),
            (Some(_), None) => {}
            (None, Some(_)) => self.wire.resolve(frame),
            (None, None) => {
                self.wire
                    .respond(Value::Null, Err(RpcError::new(-32600, "invalid request")))
                    .await
            }
        }
    }

    /// How the script wants the next request of a method to go.
    fn method(&self, name: &str) -> Option<Method> {
        let method = self.script.methods.get(name)?;
        let mut uses = lock(&self.method_uses);
        let used = uses.entry(name.to_owned()).or_default();
        *used += 1;
        method
            .times
            .is_none_or(|times| *used <= times)
            .then(|| method.clone())
    }

    async fn answer(self: Arc<Self>, id: Value, name: String, params: Value, method: Option<Method>) {
        let method = method.unwrap_or_default();
        let meant = params["sessionId"].as_str().map(str::to_owned);
        if self.hold_back(&method, meant.as_deref()).await.is_break() {
            return;
        }
        let answer = match &method.error {
            Some(error) => Err(error.clone()),
            None => self.carry_out(&name, &params).await,
        };
        let made = answer
            .as_ref()
            .ok()
            .and_then(|result| result["sessionId"].as_str())
            .map(str::to_owned);
        let session = made.or(meant);
        self.send_all(&method.before, session.as_deref()).await;
        self.wire.respond(id, method.result.map_or(answer, Ok)).await;
        self.send_all(&method.after, session.as_deref()).await;
    }

    /// Does what the script wants before a method is answered. Break: it is never answered.
    pub(super) async fn hold_back(
        &self,
        method: &Method,
        session: Option<&str>,
    ) -> std::ops::ControlFlow<()> {
        if let Some(path) = &method.wait_for {
            until_exists(&self.home.join(self.expand_for(path, session))).await;
        }
        tokio::time::sleep(Duration::from_millis(method.delay_ms)).await;
        if let Some(code) = method.exit {
            self.end(Ending::Code(code)).await;
        }
        if method.silent {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    }

    pub(super) async fn send_all(&self, frames: &[Value], session: Option<&str>) {
        for frame in frames {
            let value = |name: &str| self.value_for(name, session);
            self.wire
                .send(placeholder::expand_json(frame, &value).unwrap_or_else(|_| frame.clone()))
                .await;
        }
    }

    fn expand_for(&self, text: &str, session: Option<&str>) -> String {
        placeholder::expand(text, &|name| self.value_for(name, session)).unwrap_or_else(|_| text.to_owned())
    }

    /// The value of a placeholder outside any prompt.
    pub(super) fn value_for(&self, name: &str, session: Option<&str>) -> Option<String> {
        match name {
            "session" => session.map(str::to_owned),
            "pid" => Some(std::process::id().to_string()),
            "script_dir" => Some(self.home.display().to_string()),
            _ => std::env::var(name.strip_prefix("env.")?).ok(),
        }
    }

    /// Starts a turn, so that a cancellation right behind the prompt finds it.
    fn begin(self: &Arc<Self>, id: &Value, params: &Value) -> Result<Turn, RpcError> {
        let session = self.session(params)?;
        let blocks = params["prompt"].as_array().ok_or_else(|| missing("prompt"))?;
        let text: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        let name = lock(&session).id.clone();
        let mut turns = lock(&self.turns);
        if turns.contains_key(&name) {
            return Err(RpcError::new(
                -32600,
                "a prompt is being answered in this session",
            ));
        }
        let (cancel, cancelled) = watch::channel(false);
        turns.insert(name, cancel);
        Turn::new(self.clone(), session, id.clone(), text.join("\n"), cancelled).map_err(own_failure)
    }

    /// Ends a turn, so that the next prompt is taken.
    pub(super) fn release(&self, session: &str) {
        lock(&self.turns).remove(session);
    }

    pub(super) fn cancel(&self, params: &Value) {
        if let Some(cancel) = params["sessionId"]
            .as_str()
            .and_then(|id| lock(&self.turns).get(id).cloned())
        {
            cancel.send_replace(true);
        }
    }
}

/// A `session/update` notification.
pub(super) fn update_frame(session: &str, update: &Value) -> Value {
    json!({
        "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": session, "update": update },
    })
}

/// Waits for a file to exist, looking often enough for a test not to notice.
pub(super) async fn until_exists(path: &Path) {
    while !path.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

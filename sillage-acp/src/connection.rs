//! A JSON-RPC 2.0 peer on an agent's standard input and output: one message a line (ACP v1, "Transports").
//!
//! Bytes are collected up to a newline and only whole lines are decoded. What arrives, requests, answers and
//! notifications alike, goes through one ordered and bounded queue, so that an answer never overtakes the updates
//! that were written before it, and an agent that floods waits. Each direction has its own space of identifiers;
//! those of the agent are kept as it wrote them.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Bytes of a line past which the rest is skipped (A4).
pub(crate) const LINE_CAP: usize = 16 << 20;

/// JSON-RPC 2.0, section 5.1: the method is not offered.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// Frames that may wait to be handled before the agent is made to wait.
const INCOMING_QUEUE: usize = 64;

/// Frames that may wait to be written before the agent counts as not reading.
const OUTGOING_QUEUE: usize = 256;

/// Bytes of a line that is shown to people.
const SHOWN: usize = 300;

/// Something that arrived from the agent, in the order of its lines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    /// An answer to one of our requests, by its identifier as written.
    Response {
        id: Value,
        outcome: Result<Value, RpcError>,
    },
    /// A request of the agent.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// A notification.
    Notification { method: String, params: Value },
    /// A line that is no protocol: shown, and nothing follows from it.
    Noise(String),
    /// A protocol line that could not be read, so that something may have been missed.
    Damaged(String),
    /// Nothing more can be written to the agent, or nothing more comes from it.
    Closed(String),
}

/// The error member of a JSON-RPC answer (JSON-RPC 2.0, section 5.1), kept as it came.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

/// The agent has stopped reading what it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent does not read its standard input")]
pub(crate) struct NotReading;

/// Our side of the conversation. Dropping it ends the tasks that read and write.
pub(crate) struct Connection {
    agent: String,
    outgoing: mpsc::Sender<Vec<u8>>,
    incoming: mpsc::Receiver<Incoming>,
    last_id: u64,
    reader: JoinHandle<()>,
    writer: JoinHandle<()>,
}

impl Connection {
    /// Starts to read `output` and to write to `input` of the agent called `agent`. A write that takes longer than
    /// `write_deadline` ends the conversation.
    pub(crate) fn new(
        agent: &str,
        input: impl AsyncWrite + Send + Unpin + 'static,
        output: impl AsyncRead + Send + Unpin + 'static,
        write_deadline: Duration,
    ) -> Self {
        let (outgoing, to_write) = mpsc::channel(OUTGOING_QUEUE);
        let (arrived, incoming) = mpsc::channel(INCOMING_QUEUE);
        let writer = tokio::spawn(write_frames(input, to_write, arrived.clone(), write_deadline));
        let reader = tokio::spawn(read_frames(agent.to_owned(), output, arrived));
        Self {
            agent: agent.to_owned(),
            outgoing,
            incoming,
            last_id: 0,
            reader,
            writer,
        }
    }

    /// Sends a request and gives its identifier.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Result<u64, NotReading> {
        self.last_id += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}))?;
        Ok(self.last_id)
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, method: &str, params: &Value) -> Result<(), NotReading> {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// Answers a request of the agent.
    pub(crate) fn respond(&mut self, id: &Value, result: &Value) -> Result<(), NotReading> {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// Refuses a request of the agent.
    pub(crate) fn refuse(&mut self, id: &Value, code: i64, message: &str) -> Result<(), NotReading> {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
    }

    /// Whether a request was sent under this identifier, whatever became of it.
    pub(crate) fn was_asked(&self, id: &Value) -> bool {
        id.as_u64().is_some_and(|id| id >= 1 && id <= self.last_id)
    }

    /// What arrives next.
    pub(crate) async fn next(&mut self) -> Incoming {
        match self.incoming.recv().await {
            Some(incoming) => incoming,
            None => Incoming::Closed("its standard output was closed".to_owned()),
        }
    }

    /// Closes the agent's standard input, even when a write to it is stuck.
    pub(crate) fn close_input(&mut self) {
        self.writer.abort();
    }

    /// Reads and forgets, so that an agent that is being stopped is not held up by a full pipe.
    pub(crate) async fn discard(&mut self) -> std::convert::Infallible {
        loop {
            if self.incoming.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn write(&mut self, frame: &Value) -> Result<(), NotReading> {
        tracing::trace!(agent = %self.agent, %frame, "sent");
        let mut line = frame.to_string().into_bytes();
        line.push(b'\n');
        self.outgoing.try_send(line).map_err(|_| NotReading)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
        self.writer.abort();
    }
}

async fn write_frames(
    mut input: impl AsyncWrite + Unpin,
    mut frames: mpsc::Receiver<Vec<u8>>,
    arrived: mpsc::Sender<Incoming>,
    deadline: Duration,
) {
    while let Some(frame) = frames.recv().await {
        let write = async {
            input.write_all(&frame).await?;
            input.flush().await
        };
        let words = match tokio::time::timeout(deadline, write).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => format!("its standard input cannot be written to: {error}"),
            Err(_) => NotReading.to_string(),
        };
        // Nobody listens any more when the conversation is over.
        let _ = arrived.send(Incoming::Closed(words)).await;
        return;
    }
}

async fn read_frames(agent: String, output: impl AsyncRead + Send + Unpin, arrived: mpsc::Sender<Incoming>) {
    let mut output = BufReader::with_capacity(64 << 10, output);
    let mut line = Vec::new();
    loop {
        let incoming = match next_line(&mut output, &mut line, LINE_CAP).await {
            Ok(Line::Whole) => decode_line(&line),
            Ok(Line::Cut) => vec![Incoming::Noise(format!(
                "a line without an end: {}",
                shown(&line)
            ))],
            Ok(Line::TooLong(bytes)) => {
                let words = format!("a line of {bytes} bytes was skipped; the limit is {LINE_CAP}");
                vec![Incoming::Damaged(words)]
            }
            Ok(Line::End) => vec![Incoming::Closed("its standard output was closed".to_owned())],
            Err(error) => vec![Incoming::Closed(format!(
                "its standard output cannot be read: {error}"
            ))],
        };
        for incoming in incoming {
            tracing::trace!(%agent, frame = ?incoming, "received");
            let last = matches!(incoming, Incoming::Closed(_));
            if arrived.send(incoming).await.is_err() || last {
                return;
            }
        }
    }
}

/// How a line ended.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// With a newline.
    Whole,
    /// With the end of the stream.
    Cut,
    /// It had this many bytes, of which none are kept.
    TooLong(usize),
    /// There was no more.
    End,
}

/// Reads up to the next newline into `line`, never keeping more than `cap` bytes.
async fn next_line(
    source: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    cap: usize,
) -> std::io::Result<Line> {
    line.clear();
    line.shrink_to(64 << 10);
    let mut length = 0;
    loop {
        let available = source.fill_buf().await?;
        if available.is_empty() {
            return Ok(match length {
                0 => Line::End,
                _ if length > cap => Line::TooLong(length),
                _ => Line::Cut,
            });
        }
        let newline = available.iter().position(|byte| *byte == b'\n');
        let part = newline.map_or(available, |end| &available[..end]);
        length += part.len();
        if length <= cap {
            line.extend_from_slice(part);
        } else {
            *line = Vec::new();
        }
        let used = part.len() + usize::from(newline.is_some());
        source.consume(used);
        if newline.is_some() {
            return Ok(if length > cap {
                Line::TooLong(length)
            } else {
                Line::Whole
            });
        }
    }
}

/// What a whole line says: nothing when it is blank, several things when it is a batch (JSON-RPC 2.0, section 6).
fn decode_line(line: &[u8]) -> Vec<Incoming> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Vec::new();
    }
    match serde_json::from_slice::<Value>(line) {
        Ok(Value::Array(frames)) if frames.iter().all(Value::is_object) => frames
            .into_iter()
            .map(|frame| decode_frame(frame, line))
            .collect(),
        Ok(frame) => vec![decode_frame(frame, line)],
        // A line that meant to be protocol: an answer or a request may be lost in it.
        Err(error) if line.starts_with(b"{") && contains(line, b"\"jsonrpc\"") => {
            vec![Incoming::Damaged(format!(
                "a line is not JSON ({error}): {}",
                shown(line)
            ))]
        }
        Err(_) => vec![Incoming::Noise(shown(line))],
    }
}

fn decode_frame(mut frame: Value, line: &[u8]) -> Incoming {
    let Some(members) = frame.as_object_mut() else {
        return Incoming::Noise(shown(line));
    };
    let id = members.remove("id");
    let method = members.remove("method");
    match (method, id) {
        (Some(Value::String(method)), id) => {
            let params = members.remove("params").unwrap_or(Value::Null);
            match id {
                Some(id) => Incoming::Request { id, method, params },
                None => Incoming::Notification { method, params },
            }
        }
        (None, Some(id)) => {
            let outcome = match members.remove("error") {
                Some(error) if !error.is_null() => Err(rpc_error(error)),
                _ => Ok(members.remove("result").unwrap_or(Value::Null)),
            };
            Incoming::Response { id, outcome }
        }
        (Some(_), _) | (None, None) => Incoming::Noise(shown(line)),
    }
}

/// Reads an error leniently: agents put HTTP statuses in `code`, and texts or objects in `data`.
fn rpc_error(error: Value) -> RpcError {
    let code = error
        .get("code")
        .and_then(|code| code.as_i64().or_else(|| code.as_str()?.parse().ok()));
    let message = match error.get("message") {
        Some(Value::String(message)) => message.clone(),
        _ => error.to_string(),
    };
    let data = error.get("data").filter(|data| !data.is_null()).cloned();
    RpcError {
        code: code.unwrap_or(0),
        message,
        data,
    }
}

fn contains(line: &[u8], words: &[u8]) -> bool {
    line.windows(words.len()).any(|window| window == words)
}

/// The start of a line, for people: control characters and invalid UTF-8 replaced.
fn shown(line: &[u8]) -> String {
    let start = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
    let mut text: String = start
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.len() > SHOWN {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests;

//! A JSON-RPC 2.0 peer on an agent's standard input and output: one message a line (ACP v1, "Transports").
//!
//! Bytes are collected up to a newline and only whole lines are decoded. What arrives, requests, answers and
//! notifications alike, goes through one ordered and bounded queue, so that an answer never overtakes the updates
//! that were written before it, and an agent that floods waits. Each direction has its own space of identifiers;
//! those of the agent are kept as it wrote them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;

mod decode;

/// Bytes of a line past which the rest is skipped (A4).
pub(crate) const LINE_CAP: usize = 16 << 20;

/// JSON-RPC 2.0, section 5.1: the method is not offered.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// JSON-RPC 2.0, section 5.1: it is JSON, and not a request.
pub(crate) const INVALID_REQUEST: i64 = -32600;

/// JSON-RPC 2.0, section 5.1: it failed for reasons of its own.
pub(crate) const INTERNAL_ERROR: i64 = -32603;

/// JSON-RPC 2.0, section 5.1: it is not JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;

/// Frames that may wait to be handled before the agent is made to wait.
const INCOMING_QUEUE: usize = 64;

/// Frames that may wait to be written before the agent counts as not reading.
const OUTGOING_QUEUE: usize = 256;

/// Frames of ours for which there is room before the next one is handled, so that each can be answered.
const ROOM: usize = 128;

/// Bytes of lines that may wait to be handled.
const INCOMING_BYTES: usize = 2 * LINE_CAP;

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
    /// A request that breaks JSON-RPC's own rules: it is answered with this error.
    Invalid { id: Value, code: i64, words: String },
    /// A protocol line that could not be read, so that something may have been missed. `asks`: it seems to have been
    /// a request.
    Damaged { words: String, asks: bool },
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

/// What arrived, with its share of the bytes that may wait.
type Arrived = (Incoming, Option<OwnedSemaphorePermit>);

/// The agent has stopped reading what it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent does not read its standard input")]
pub(crate) struct NotReading;

/// Our side of the conversation. Dropping it ends the tasks that read and write.
pub(crate) struct Connection {
    agent: String,
    outgoing: mpsc::Sender<Vec<u8>>,
    incoming: mpsc::Receiver<Arrived>,
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
        let writer = tokio::spawn(write_frames(input, to_write, arrived.downgrade(), write_deadline));
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

    /// What arrives next, once there is room for an answer to it: an agent that asks faster than it reads waits. May
    /// be dropped and called again.
    pub(crate) async fn next(&mut self) -> Incoming {
        if self.outgoing.capacity() < ROOM {
            // An agent that never reads is found out by the writer, which then closes the queue.
            drop(self.outgoing.reserve_many(ROOM).await);
        }
        match self.incoming.recv().await {
            Some((incoming, _)) => incoming,
            None => Incoming::Closed("its standard output was closed".to_owned()),
        }
    }

    /// What arrives next of an agent to which nothing is written any more; none once all was read.
    pub(crate) async fn rest(&mut self) -> Option<Incoming> {
        self.incoming.recv().await.map(|(incoming, _)| incoming)
    }

    /// Closes the agent's standard input, even when a write to it is stuck.
    pub(crate) fn close_input(&mut self) {
        self.writer.abort();
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
    arrived: mpsc::WeakSender<Arrived>,
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
        // Whoever waits for room is to wait no longer.
        drop(frames);
        // Not when all of the output was read already: that has been told. Nobody listens any more when the
        // conversation is over.
        if let Some(arrived) = arrived.upgrade() {
            let _ = arrived.send((Incoming::Closed(words), None)).await;
        }
        return;
    }
}

async fn read_frames(agent: String, output: impl AsyncRead + Send + Unpin, arrived: mpsc::Sender<Arrived>) {
    let mut output = BufReader::with_capacity(64 << 10, output);
    let mut line = Vec::new();
    let waiting = Arc::new(Semaphore::new(INCOMING_BYTES));
    loop {
        let frames = match next_line(&mut output, &mut line, LINE_CAP).await {
            Ok(Line::Whole) => decode::line(&line),
            Ok(Line::Cut) => decode::cut_line(&line),
            Ok(Line::TooLong(bytes)) => decode::too_long(bytes),
            Ok(Line::End) => vec![Incoming::Closed("its standard output was closed".to_owned())],
            Err(error) => vec![Incoming::Closed(format!(
                "its standard output cannot be read: {error}"
            ))],
        };
        // The last frame of a line holds the line's share.
        let share = u32::try_from(line.len()).unwrap_or(u32::MAX);
        let mut share = Arc::clone(&waiting).acquire_many_owned(share).await.ok();
        let count = frames.len();
        for (position, incoming) in frames.into_iter().enumerate() {
            tracing::trace!(%agent, frame = ?incoming, "received");
            let over = matches!(incoming, Incoming::Closed(_));
            let held = if position + 1 == count { share.take() } else { None };
            if arrived.send((incoming, held)).await.is_err() || over {
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

#[cfg(test)]
mod tests;

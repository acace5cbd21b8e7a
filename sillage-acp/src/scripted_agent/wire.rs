//! JSON-RPC 2.0 over lines, as ACP carries it. Written apart from the client's loop on purpose: the two ends of a
//! test must not share a mistake.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::oneshot;

use super::record::{Event, Record};
use super::script::RequestIds;
use super::step::RpcError;

/// The agent's end of the connection.
pub(super) struct Wire {
    out: tokio::sync::Mutex<Box<dyn AsyncWrite + Send + Unpin>>,
    record: Record,
    ids: RequestIds,
    next: AtomicU64,
    /// Requests of ours that wait for an answer, by their identifier's JSON text, so that `1` and `"1"` differ.
    pending: Mutex<HashMap<String, oneshot::Sender<Value>>>,
}

impl Wire {
    pub(super) fn new(out: Box<dyn AsyncWrite + Send + Unpin>, record: Record, ids: RequestIds) -> Self {
        Wire {
            out: tokio::sync::Mutex::new(out),
            record,
            ids,
            next: AtomicU64::new(0),
            pending: Mutex::default(),
        }
    }

    /// Sends one frame on one line.
    pub(super) async fn send(&self, frame: Value) {
        let bytes = line(&frame);
        self.record.write(Event::Sent { frame });
        self.write(&bytes).await;
    }

    /// Sends one frame a byte at a time.
    pub(super) async fn send_byte_by_byte(&self, frame: Value) {
        let bytes = line(&frame);
        self.record.write(Event::Sent { frame });
        let mut out = self.out.lock().await;
        for byte in bytes {
            if out.write_all(&[byte]).await.is_err() || out.flush().await.is_err() {
                return;
            }
        }
    }

    /// Sends several frames in one write: as lines, or as one batch.
    pub(super) async fn send_together(&self, frames: Vec<Value>, batch: bool) {
        let bytes = if batch {
            line(&Value::Array(frames.clone()))
        } else {
            frames.iter().flat_map(line).collect()
        };
        for frame in frames {
            self.record.write(Event::Sent { frame });
        }
        self.write(&bytes).await;
    }

    /// Sends bytes that are not a frame, or one that is too large for the record.
    pub(super) async fn send_bytes(&self, bytes: &[u8]) {
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        self.record.write(Event::SentBytes {
            bytes: bytes.len() as u64,
            head,
        });
        self.write(bytes).await;
    }

    async fn write(&self, bytes: &[u8]) {
        let mut out = self.out.lock().await;
        // A client that is gone closes our input too, which is what ends the agent.
        if out.write_all(bytes).await.is_ok() {
            let _ = out.flush().await;
        }
    }

    /// Answers a request.
    pub(super) async fn respond(&self, id: Value, answer: Result<Value, RpcError>) {
        self.send(response(id, answer)).await;
    }

    /// A request of ours, and where its answer will come.
    pub(super) fn request(&self, method: &str, params: &Value) -> (Value, oneshot::Receiver<Value>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = match self.ids {
            RequestIds::Numbers => json!(number),
            RequestIds::Strings => json!(format!("p-{number}")),
        };
        let (answer, answered) = oneshot::channel();
        self.pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.to_string(), answer);
        (
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }),
            answered,
        )
    }

    /// Takes an answer to a request of ours. One that nobody waits for is left in the record only.
    pub(super) fn resolve(&self, frame: Value) {
        let id = frame["id"].to_string();
        let waiting = self
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&id);
        if let Some(waiting) = waiting {
            let _ = waiting.send(frame);
        }
    }
}

/// A response frame.
pub(super) fn response(id: Value, answer: Result<Value, RpcError>) -> Value {
    match answer {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error.to_json() }),
    }
}

fn line(frame: &Value) -> Vec<u8> {
    let mut bytes = frame.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

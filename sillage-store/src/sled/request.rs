//! What the writing thread is asked for.

use sillage_core::id::{ClientSessionId, RunId, Seq};
use sillage_core::ports::store::{RunSummary, StoreError};
use tokio::sync::oneshot;

use super::writer::answer;

/// The way back to whoever asked.
pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A request.
pub(super) enum Request {
    Append(Append),
    Put(Put),
    Transcript(Chunk),
    /// Open sled again, if it is closed.
    Reopen(Reply<()>),
}

/// Events for a run's log.
pub(super) struct Append {
    pub(super) run: RunId,
    pub(super) expected: Seq,
    pub(super) events: Vec<Vec<u8>>,
    pub(super) summary: RunSummary,
    pub(super) reply: Reply<()>,
}

/// A document's next version.
pub(super) struct Put {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) expected: u64,
    pub(super) body: Vec<u8>,
    pub(super) reply: Reply<u64>,
}

/// A chunk of a transcript.
pub(super) struct Chunk {
    pub(super) run: RunId,
    pub(super) session: ClientSessionId,
    pub(super) chunk: Vec<u8>,
    pub(super) reply: Reply<()>,
}

impl Request {
    /// About how much it adds to a group.
    pub(super) fn bytes(&self) -> usize {
        const OVERHEAD: usize = 512;
        OVERHEAD
            + match self {
                Request::Append(append) => append.events.iter().map(Vec::len).sum(),
                Request::Put(put) => put.body.len(),
                Request::Transcript(chunk) => chunk.chunk.len(),
                Request::Reopen(_) => 0,
            }
    }

    /// Whether it is answered only when it is durable.
    pub(super) fn waits_for_disk(&self) -> bool {
        match self {
            Request::Append(_) | Request::Put(_) => true,
            Request::Transcript(_) | Request::Reopen(_) => false,
        }
    }

    /// Answers it with an error.
    pub(super) fn refuse(self, why: &StoreError) {
        match self {
            Request::Append(append) => append.refuse(why.clone()),
            Request::Put(put) => put.refuse(why.clone()),
            Request::Transcript(chunk) => chunk.refuse(why.clone()),
            Request::Reopen(reply) => answer(reply, Err(why.clone())),
        }
    }
}

impl Append {
    pub(super) fn refuse(self, why: StoreError) {
        answer(self.reply, Err(why));
    }
}

impl Put {
    pub(super) fn refuse(self, why: StoreError) {
        answer(self.reply, Err(why));
    }
}

impl Chunk {
    pub(super) fn refuse(self, why: StoreError) {
        answer(self.reply, Err(why));
    }
}

/// What a request is answered with once its group is written.
pub(super) enum Answer {
    Append(Reply<()>),
    Put(Reply<u64>, u64),
}

impl Answer {
    pub(super) fn give(self, written: &Result<(), StoreError>) {
        match self {
            Answer::Append(reply) => answer(reply, written.clone()),
            Answer::Put(reply, version) => answer(reply, written.clone().map(|()| version)),
        }
    }
}

//! The one thread that writes: it gathers what waits, writes it in one batch, and waits for the disk once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use sillage_core::id::RunId;
use sillage_core::ports::store::StoreError;
use tokio::sync::oneshot;

use super::Shared;
use super::draft::{Draft, Known};
use super::folder::{Mark, RESERVE};
use super::ledger::Ledger;
use super::request::{Answer, Request};
use super::view::Piece;

/// A group takes no further request once it holds this many bytes. sled may use space again that it takes for
/// free as soon as it has handed its successor to the system, so little may be on its way between two syncs.
pub(super) const GROUP_BYTES: usize = 256 << 10;

/// How long a group waits for as many requests as the last one had. Whoever was answered together tends to ask
/// together; a lone writer waits for nobody.
const GATHER: Duration = Duration::from_micros(100);

/// What must be free for sled to write at all: two of its segments.
const SLACK: u64 = 1 << 20;

/// How much sled may add to its log for each byte that it is given; at most 3.4 was measured, for a few bytes more.
const GROWTH: u64 = 4;

/// What is no longer than this may use the space that was set aside: it is how a run is told to stop, not an answer.
const SHORT: u64 = 64 << 10;

/// Runs and transcripts whose ends are remembered.
const REMEMBERED: usize = 1024;

/// What the writing thread owns.
pub(super) struct Writer {
    shared: Arc<Shared>,
    mark: Mark,
    ledger: Ledger,
    runs: HashMap<RunId, Known>,
    chunks: HashMap<Vec<u8>, u64>,
    /// Bytes that were written without waiting for the disk.
    unsynced: usize,
    /// How many of the last group waited for the disk.
    last_group: usize,
    /// Whether the space set aside is not there, or may have been given back.
    reserve_spent: bool,
}

impl Writer {
    /// Checks that the store holds all that it once did, and makes ready to write.
    pub(super) fn new(shared: Arc<Shared>) -> Result<Writer, StoreError> {
        let (mut mark, commits) = Mark::open(shared.disk.folder())?;
        let ledger = shared.disk.with(|view| Ledger::open(view, commits))?;
        mark.write(ledger.commits());
        let reserved = shared.disk.folder().reserve();
        Ok(Writer {
            shared,
            mark,
            ledger,
            runs: HashMap::new(),
            chunks: HashMap::new(),
            unsynced: 0,
            last_group: 0,
            reserve_spent: !reserved,
        })
    }

    /// Serves requests until the last sender is gone.
    pub(super) fn serve(mut self, requests: &Receiver<Request>) {
        while let Ok(first) = requests.recv() {
            let group = self.gather(first, requests);
            self.commit(group);
        }
        if self.unsynced > 0
            && let Err(error) = self.shared.disk.sync()
        {
            tracing::warn!(%error, "the last pieces of transcripts may be lost");
        }
    }

    fn gather(&self, first: Request, requests: &Receiver<Request>) -> Vec<Request> {
        let deadline = Instant::now() + GATHER;
        let mut bytes = first.bytes();
        let mut waiting = usize::from(first.waits_for_disk());
        let mut group = vec![first];
        while bytes < GROUP_BYTES {
            let patience = if waiting > 0 && waiting < self.last_group {
                deadline.saturating_duration_since(Instant::now())
            } else {
                Duration::ZERO
            };
            match requests.recv_timeout(patience) {
                Ok(request) => {
                    bytes += request.bytes();
                    waiting += usize::from(request.waits_for_disk());
                    group.push(request);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        group
    }

    fn commit(&mut self, group: Vec<Request>) {
        if let Err(why) = self.open_again() {
            group.into_iter().for_each(|request| request.refuse(&why));
            return;
        }
        let mut draft = Draft::default();
        for request in group {
            self.add(&mut draft, request);
        }
        if draft.is_empty() {
            return;
        }
        let Draft {
            batch,
            staged,
            bytes,
            commit,
            known,
            chunks,
            touched,
            answers,
            durable,
            ..
        } = draft;
        let runs: Vec<RunId> = commit.runs.keys().cloned().collect();
        let staged_bytes: usize = staged.iter().map(|(_, piece)| piece.len()).sum();
        if let Err(why) = self.find_room(bytes + staged_bytes) {
            self.shared.mark_unread(&runs);
            let refused = Err(why);
            answers.into_iter().for_each(|answer| answer.give(&refused));
            return;
        }
        self.last_group = durable;
        self.shared.in_flight.hide(commit);
        self.unsynced += bytes;
        let written = self.write(batch, staged, touched, durable > 0);
        match &written {
            Ok(()) => {
                self.remember(known, chunks);
                self.reserve_again();
            }
            Err(why) => self.recover(&runs, why),
        }
        self.shared.in_flight.show();
        for answer in answers {
            answer.give(&written);
        }
    }

    /// Adds a request to the draft, or refuses it.
    fn add(&self, draft: &mut Draft, request: Request) {
        let disk = &self.shared.disk;
        match request {
            Request::Append(append) => {
                if self.shared.is_unread(&append.run) {
                    let run = append.run.clone();
                    return append.refuse(StoreError::ReadAgain { run });
                }
                let remembered = self.runs.get(&append.run);
                let added = disk.with(|view| draft.append(view, remembered, &append));
                match added {
                    Ok(()) => draft.answers.push(Answer::Append(append.reply)),
                    Err(why) => append.refuse(why),
                }
            }
            Request::Put(put) => match disk.with(|view| draft.put(view, &put)) {
                Ok(version) => draft.answers.push(Answer::Put(put.reply, version)),
                Err(why) => put.refuse(why),
            },
            Request::Transcript(chunk) => {
                match disk.with(|view| draft.transcript(view, &self.chunks, &chunk)) {
                    Ok(()) => draft.answers.push(Answer::Append(chunk.reply)),
                    Err(why) => chunk.refuse(why),
                }
            }
            Request::Reopen(reply) => answer(reply, Ok(())),
        }
    }

    fn write(
        &mut self,
        mut batch: sled::Batch,
        staged: Vec<Piece>,
        touched: Vec<(Vec<u8>, u64)>,
        durable: bool,
    ) -> Result<(), StoreError> {
        let disk = &self.shared.disk;
        self.stage(staged)?;
        if durable {
            for (prefix, last) in touched {
                self.ledger.touch(prefix, last);
            }
            self.ledger
                .enter(&mut batch)
                .map_err(|_| super::draft::too_long(disk.folder()))?;
        }
        disk.with(|view| view.apply(batch))?;
        if durable || self.unsynced > GROUP_BYTES {
            disk.sync()?;
            self.unsynced = 0;
        }
        if durable {
            self.mark.write(self.ledger.commits());
        }
        Ok(())
    }

    /// Writes the further pieces of long records, syncing as it goes. Nothing refers to them until the record's
    /// first piece is written.
    fn stage(&self, staged: Vec<Piece>) -> Result<(), StoreError> {
        let mut rest = staged.into_iter().peekable();
        while rest.peek().is_some() {
            let mut batch = sled::Batch::default();
            let mut bytes = 0;
            while let Some((key, piece)) = rest.next_if(|_| bytes < GROUP_BYTES) {
                bytes += piece.len();
                batch.insert(key, piece);
            }
            self.shared.disk.with(|view| view.apply(batch))?;
            self.shared.disk.sync()?;
        }
        Ok(())
    }

    /// Whether so many bytes can be written. A full disk is better seen than met: sled, once a write of its failed,
    /// must be opened again, which takes room of its own, and until then nothing can be read.
    fn find_room(&mut self, bytes: usize) -> Result<(), StoreError> {
        let folder = self.shared.disk.folder();
        let needed = (bytes as u64).saturating_mul(GROWTH).saturating_add(SLACK);
        let fits = || folder.room().is_none_or(|room| room >= needed);
        if fits() {
            return Ok(());
        }
        if bytes as u64 <= SHORT && folder.release() {
            tracing::warn!("the disk is full: the space that was set aside is used");
            self.reserve_spent = true;
            if fits() {
                return Ok(());
            }
        }
        Err(folder.full())
    }

    /// Sets space aside again, once there is enough of it.
    fn reserve_again(&mut self) {
        let folder = self.shared.disk.folder();
        if self.reserve_spent && folder.room().is_none_or(|room| room >= 2 * RESERVE) {
            self.reserve_spent = !folder.reserve();
        }
    }

    fn remember(&mut self, known: HashMap<RunId, Known>, chunks: HashMap<Vec<u8>, u64>) {
        if self.runs.len() > REMEMBERED {
            self.runs.clear();
        }
        if self.chunks.len() > REMEMBERED {
            self.chunks.clear();
        }
        self.runs.extend(known);
        self.chunks.extend(chunks);
    }

    /// After a failed write: forgets what was known, and opens sled anew. The runs may only be read until they
    /// have been read.
    fn recover(&mut self, runs: &[RunId], why: &StoreError) {
        tracing::warn!(error = %why, "a write failed; the store is opened again");
        self.shared.disk.close(why.clone());
        self.shared.mark_unread(runs);
        if let Err(error) = self.open_again() {
            tracing::warn!(%error, "the store cannot be opened again yet");
        }
    }

    fn open_again(&mut self) -> Result<(), StoreError> {
        if !self.shared.disk.is_closed() {
            return Ok(());
        }
        self.runs.clear();
        self.chunks.clear();
        self.reserve_spent = true;
        self.shared.disk.reopen()?;
        let opened = Mark::open(self.shared.disk.folder()).and_then(|(mark, commits)| {
            let ledger = self.shared.disk.with(|view| Ledger::open(view, commits))?;
            Ok((mark, ledger))
        });
        match opened {
            Ok((mark, ledger)) => {
                tracing::info!("the store is open again");
                self.mark = mark;
                self.ledger = ledger;
                self.unsynced = 0;
                Ok(())
            }
            Err(why) => {
                self.shared.disk.close(why.clone());
                Err(why)
            }
        }
    }
}

/// Answers a request; whoever asked may have stopped waiting.
pub(super) fn answer<T>(reply: oneshot::Sender<T>, value: T) {
    let _ = reply.send(value);
}

//! What is stored, as records at keys.

use std::cell::Cell;
use std::ops::RangeInclusive;

use sillage_core::ports::store::StoreError;
use sled::{Batch, IVec};

use super::disk::translate;
use super::folder::Folder;
use super::keys;
use super::record::{self, Flaw, Frames, Head, PIECE, TooLong};

/// How many bytes are read between two notices to sled's cache.
///
/// The cache counts accesses, of which a scan makes one a page however large, and lets go of pages only once each of
/// its 256 shards has counted 64. Unnoticed, a scan would fill memory with the whole log. One access for so many
/// bytes bounds what it holds beyond its size to 256 x 64 of them.
const NOTICE: usize = 2048;

/// sled, open.
pub(super) struct View<'a> {
    db: &'a sled::Db,
    pub(super) folder: &'a Folder,
    /// Bytes read since sled's cache was last given notice.
    unnoticed: Cell<usize>,
}

/// A record as it was found.
pub(super) struct Found {
    head: Head,
    bytes: Bytes,
}

/// The bytes of a record: as sled holds them, or put together from pieces.
enum Bytes {
    One(IVec),
    Many(Vec<u8>),
}

impl Found {
    /// How many frames it holds.
    pub(super) fn len(&self) -> u32 {
        self.head.frames
    }

    /// Its frames from the one numbered `skip` on.
    pub(super) fn frames(&self, skip: u32) -> Frames<'_> {
        match &self.bytes {
            Bytes::One(bytes) => self.head.frames(bytes, skip),
            Bytes::Many(bytes) => self.head.frames(bytes, skip),
        }
    }

    /// Its only frame.
    pub(super) fn single(&self) -> Result<&[u8], Flaw> {
        self.frames(0).next().unwrap_or(Err(Flaw::Frame { index: 0 }))
    }
}

impl<'a> View<'a> {
    /// Looks at what an open sled holds.
    pub(super) fn new(db: &'a sled::Db, folder: &'a Folder) -> View<'a> {
        View {
            db,
            folder,
            unnoticed: Cell::new(0),
        }
    }

    /// Gives sled's cache notice that `bytes` were read at a key.
    fn notice(&self, key: &[u8], bytes: usize) -> Result<(), StoreError> {
        let mut unnoticed = self.unnoticed.get() + bytes;
        while unnoticed >= NOTICE {
            unnoticed -= NOTICE;
            self.holds(key)?;
        }
        self.unnoticed.set(unnoticed);
        Ok(())
    }

    /// The record at a key.
    pub(super) fn record(&self, key: &[u8], name: &dyn Fn() -> String) -> Result<Option<Found>, StoreError> {
        match self.db.get(key).map_err(|e| translate(self.folder, e))? {
            Some(first) => self.assemble(key, first, name).map(Some),
            None => Ok(None),
        }
    }

    /// Puts a record together from its first piece. `name` says what it is, should it be damaged.
    pub(super) fn assemble(
        &self,
        key: &[u8],
        first: IVec,
        name: &dyn Fn() -> String,
    ) -> Result<Found, StoreError> {
        let flawed = |flaw: Flaw| self.flawed(&name(), &flaw);
        let head = Head::decode(key, &first).map_err(flawed)?;
        if first.len() != head.piece_len(0) {
            return Err(flawed(Flaw::Piece { piece: 0 }));
        }
        self.notice(key, first.len())?;
        if head.pieces() == 1 {
            return Ok(Found {
                head,
                bytes: Bytes::One(first),
            });
        }
        let mut bytes = first.to_vec();
        for piece in 1..head.pieces() {
            let key = keys::piece(key, piece);
            let more = self.db.get(&key).map_err(|e| translate(self.folder, e))?;
            self.notice(&key, more.as_ref().map_or(0, |more| more.len()))?;
            match more {
                Some(more) if more.len() == head.piece_len(piece) => bytes.extend_from_slice(&more),
                Some(_) | None => return Err(flawed(Flaw::Piece { piece })),
            }
        }
        Ok(Found {
            head,
            bytes: Bytes::Many(bytes),
        })
    }

    /// What a flaw in something called `name` is for the caller.
    pub(super) fn flawed(&self, name: &str, flaw: &Flaw) -> StoreError {
        self.folder.damaged(format!(
            "{name}: {flaw}; the rest of the store is not affected, restore the folder from a copy to have this back"
        ))
    }

    /// The last of the records numbered up to `upto` behind `prefix`: its key and first piece.
    pub(super) fn last(&self, prefix: &[u8], upto: u64) -> Result<Option<(IVec, IVec)>, StoreError> {
        self.db
            .range(numbers(prefix, 0..=upto))
            .next_back()
            .transpose()
            .map_err(|e| translate(self.folder, e))
    }

    /// The numbered records behind `prefix`, in order: keys and first pieces.
    pub(super) fn numbered(
        &self,
        prefix: &[u8],
        range: RangeInclusive<u64>,
    ) -> impl Iterator<Item = Result<(IVec, IVec), StoreError>> {
        self.db
            .range(numbers(prefix, range))
            .map(|item| item.map_err(|e| translate(self.folder, e)))
    }

    /// The keys from `from` on that start with `prefix`.
    pub(super) fn keys(
        &self,
        prefix: &[u8],
        from: Vec<u8>,
    ) -> impl Iterator<Item = Result<IVec, StoreError>> {
        self.db
            .range(from..keys::behind(prefix))
            .keys()
            .map(|key| key.map_err(|e| translate(self.folder, e)))
    }

    /// Whether there is something at a key.
    pub(super) fn holds(&self, key: &[u8]) -> Result<bool, StoreError> {
        self.db.contains_key(key).map_err(|e| translate(self.folder, e))
    }

    /// Writes a batch, whole or not at all; durable only after a sync.
    pub(super) fn apply(&self, batch: Batch) -> Result<(), StoreError> {
        self.db.apply_batch(batch).map_err(|e| translate(self.folder, e))
    }

    /// Hands to the system all that was written. Never sled's `flush_async`, which locks up when many wait.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        self.db.flush().map(|_| ()).map_err(|e| translate(self.folder, e))
    }

    /// Where sled has noted an error, flushes, which wakes whoever waits for a flush that failed.
    pub(super) fn wake_failed_flush(&self) -> Result<(), StoreError> {
        match self.db.context.global_error() {
            Ok(()) => Ok(()),
            Err(_) => self.flush(),
        }
    }
}

fn numbers(prefix: &[u8], range: RangeInclusive<u64>) -> RangeInclusive<Vec<u8>> {
    keys::numbered(prefix, *range.start())..=keys::numbered(prefix, *range.end())
}

/// A piece of a record: its key and its bytes.
pub(super) type Piece = (Vec<u8>, Vec<u8>);

/// A record's pieces, the first one first.
pub(super) fn pieces<B: AsRef<[u8]>>(key: &[u8], parts: &[B]) -> Result<Vec<Piece>, TooLong> {
    let record = record::encode(key, parts)?;
    if record.len() <= PIECE {
        return Ok(vec![(key.to_vec(), record)]);
    }
    let named = (0_u32..)
        .zip(record.chunks(PIECE))
        .map(|(piece, bytes)| match piece {
            0 => (key.to_vec(), bytes.to_vec()),
            _ => (keys::piece(key, piece), bytes.to_vec()),
        });
    Ok(named.collect())
}

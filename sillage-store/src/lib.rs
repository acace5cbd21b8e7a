//! Durable run logs on sled, and the same in memory.
//!
//! [`SledStore`] keeps what [`Store`](sillage_core::ports::Store) promises through kills, power cuts, full and failing
//! disks and flipped bits; [`MemoryStore`] keeps it as long as its process lives.
//!
//! # How it is kept
//!
//! sled 0.34.7 is fast and small, and by itself safe from kills only: its flush does not reach the disk's promise, a
//! damaged log makes it panic or forget, and a failed write may leave it waiting for ever. It is used behind these
//! rules:
//!
//! - **One thread writes.** It gathers what waits, applies one batch, flushes, and syncs sled's `db` file once with
//!   `fdatasync`, before anyone is answered. Little is ever on its way between two syncs; a record longer than 256 KiB
//!   is written in steps, its first piece last.
//! - **Nobody is shown what is not yet durable.** A commit on its way hides itself from readers, who never wait for it.
//! - **No value is longer than 4 KiB**, so that sled makes no files of its own beside its log, which it would never sync.
//! - **Everything has a CRC32C** that covers its place as well: a changed byte, a swapped record, a missing piece and a
//!   gap in a log are errors that name the run and the position. The rest of the store stays usable.
//! - **A ledger notices what sled forgets.** Each commit notes what it changed and how many commits there were, and a
//!   file `mark` beside sled says how many there must be. A store that lacks some is refused at opening.
//! - **After an error of a write** sled is closed, its log is written once more and synced (the system may believe
//!   pages clean that never reached the disk), and sled is opened anew. The runs concerned must be read before they are
//!   written. A snapshot of its log that sled had not ended is removed first: sled would take it for a damaged one.
//! - **A full disk is seen before it is met.** What needs more room than there is is refused before sled hears of it, so
//!   that the store stays open and readable, and goes on with the first request for which there is room. 4 MiB are set
//!   aside; what is short may use them, so that a run can still be told to stop. Where the disk fills up all the same
//!   between looking and writing, it is an error of a write, and opening again is tried with every request.
//! - **A panic of sled is an error.** Its words would still be printed: [`hush_caught_panics`].
//! - **One process** holds the lock file, which names it to the next.
//!
//! # What lies on disk
//!
//! The folder is its owner's alone (0700, files 0600):
//!
//! | file | holds |
//! | --- | --- |
//! | `lock` | the lock (`flock`); program, pid and host of its holder as JSON, meaningless once the lock is free |
//! | `format` | the format's number in decimal: 1 |
//! | `mark` | the number of commits known to be durable, u64, and its CRC32C; never synced itself |
//! | `reserve` | 4 MiB set aside for when the disk is full |
//! | `sled/` | sled's files: `db` (the log), `conf`, `snap.*` (where the log was replayed to), `blobs/` (empty) |
//!
//! In sled's default tree, with numbers big-endian so that keys sort as they count, `0` being a zero byte:
//!
//! | key | value |
//! | --- | --- |
//! | `L` run `0` first u64 | a record: the events of one append, by the position of the first |
//! | `S` run `0` | the run's summary, JSON |
//! | `A` launch u64 run | empty; every run, newest first: the launch in milliseconds with all bits but the sign's inverted |
//! | `U` launch u64 run | the same for runs whose state is not final |
//! | `D` kind `0 1` name `0 1` version u64 | a document; a zero byte in kind or name is followed by 0xff |
//! | `T` run `0` session 16 bytes, chunk u64 | a chunk of a transcript |
//! | `J` block u64 | the ledger since the store was opened: number of commits, first block, then logs and documents with their last numbers |
//!
//! All values but the empty ones are records:
//!
//! ```text
//! record  := head frame*
//! head    := frames u32, length of all frames in bytes u32, crc32c(key, frames, length) u32
//! frame   := length u32, crc32c(key, index of the frame u32, length, bytes) u32, bytes
//! ```
//!
//! An event is a frame, and so are a summary, a document and a chunk, each alone in its record. A record of more than
//! 4,096 bytes is cut: its first 4,096 lie at its key, the others at the same key with the tag in lower case and the
//! piece's number, u32 from 1, behind.
//!
//! Deleting would not shrink sled's log, and nothing is ever deleted but entries of `A`, `U` and `J`. To make a store
//! smaller, copy what is wanted through the [`Store`](sillage_core::ports::Store) trait into a new folder and swap the
//! two by rename.

mod memory;
mod name;
mod sled;

pub use self::memory::MemoryStore;
pub use self::sled::{Options, SledStore, hush_caught_panics};

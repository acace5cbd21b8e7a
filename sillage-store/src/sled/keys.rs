//! Keys: where everything lies. They sort so that a log is one scan, its end one seek, and lists come in order.
//!
//! ```text
//! L run 0 first           a record of the run's log, by its first event's position
//! S run 0                 the run's summary
//! A launch run            every run, newest launch first
//! U launch run            the same for those that are not finished
//! D kind 0 name 0 version a document
//! T run 0 session chunk   a chunk of a session's transcript
//! J block                 what changed since the store was opened, see the ledger
//! ```
//!
//! A record's first piece lies at its key; the others at the same key with the tag in lower case and the piece's
//! number behind.

use sillage_core::id::{ClientSessionId, RunId, Seq};
use sillage_core::time::Timestamp;

pub(super) const LOG: u8 = b'L';
pub(super) const ALL: u8 = b'A';
pub(super) const UNFINISHED: u8 = b'U';
/// What precedes the numbers of the ledger's blocks.
pub(super) const LEDGER: &[u8] = b"J";

/// The key of a block of the ledger.
pub(super) fn block(number: u64) -> Vec<u8> {
    numbered(LEDGER, number)
}

/// The key that `number` has behind `prefix`.
pub(super) fn numbered(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, &number.to_be_bytes()].concat()
}

/// The number at the end of a key that has one.
pub(super) fn number(key: &[u8]) -> Option<u64> {
    key.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes))
}

/// What precedes the positions of a run's records.
pub(super) fn log(run: &RunId) -> Vec<u8> {
    tagged(LOG, run)
}

/// The key of the record whose first event is at `first`.
pub(super) fn record(run: &RunId, first: Seq) -> Vec<u8> {
    let mut key = log(run);
    key.extend_from_slice(&first.0.to_be_bytes());
    key
}

/// The key of a run's summary.
pub(super) fn summary(run: &RunId) -> Vec<u8> {
    tagged(b'S', run)
}

/// The key of a run in one of the two lists.
pub(super) fn listed(list: u8, launched: Timestamp, run: &RunId) -> Vec<u8> {
    // Flipping the sign bit makes instants sort as unsigned numbers; flipping all the others reverses them.
    let inverted = launched.0.cast_unsigned() ^ (u64::MAX >> 1);
    let mut key = vec![list];
    key.extend_from_slice(&inverted.to_be_bytes());
    key.extend_from_slice(run.as_str().as_bytes());
    key
}

/// The run that a key of one of the two lists names.
pub(super) fn run_listed(key: &[u8]) -> Option<RunId> {
    let name = key.get(9..)?;
    RunId::new(std::str::from_utf8(name).ok()?).ok()
}

/// What precedes the names of a kind's documents.
pub(super) fn kind(kind: &str) -> Vec<u8> {
    let mut key = vec![b'D'];
    push_text(&mut key, kind);
    key
}

/// What precedes the versions of a document.
pub(super) fn document(kind: &str, name: &str) -> Vec<u8> {
    let mut key = self::kind(kind);
    push_text(&mut key, name);
    key
}

/// The key of one version of a document.
pub(super) fn version(kind: &str, name: &str, version: u64) -> Vec<u8> {
    let mut key = document(kind, name);
    key.extend_from_slice(&version.to_be_bytes());
    key
}

/// The name in a document's key, behind the `prefix` that [`kind`] gives.
pub(super) fn name_behind(prefix: &[u8], key: &[u8]) -> Option<String> {
    let mut rest = key.strip_prefix(prefix)?.iter();
    let mut name = Vec::new();
    loop {
        match (*rest.next()?, &rest) {
            (0, tail) if tail.as_slice().first() == Some(&0xff) => {
                rest.next();
                name.push(0);
            }
            (0, _) => return String::from_utf8(name).ok(),
            (byte, _) => name.push(byte),
        }
    }
}

/// What precedes the chunks of a session's transcript.
pub(super) fn transcript(run: &RunId, session: ClientSessionId) -> Vec<u8> {
    let mut key = tagged(b'T', run);
    key.extend_from_slice(session.0.as_bytes());
    key
}

/// The key of one chunk of a session's transcript.
pub(super) fn chunk(run: &RunId, session: ClientSessionId, chunk: u64) -> Vec<u8> {
    let mut key = transcript(run, session);
    key.extend_from_slice(&chunk.to_be_bytes());
    key
}

/// The key of the piece numbered `piece`, from 1, of the record at `key`.
pub(super) fn piece(key: &[u8], piece: u32) -> Vec<u8> {
    let mut key = key.to_vec();
    key[0] = key[0].to_ascii_lowercase();
    key.extend_from_slice(&piece.to_be_bytes());
    key
}

/// The first key behind all those that start with `prefix`, whose last byte is a tag or ends a text.
pub(super) fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    if let Some(last) = key.last_mut() {
        *last = last.saturating_add(1);
    }
    key
}

fn tagged(tag: u8, run: &RunId) -> Vec<u8> {
    let mut key = Vec::with_capacity(run.as_str().len() + 10);
    key.push(tag);
    key.extend_from_slice(run.as_str().as_bytes());
    key.push(0);
    key
}

/// Appends a text so that no text's key is the beginning of another's and keys sort as the texts do: a zero byte
/// is doubled by 0xff, and zero and one end it.
fn push_text(key: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(0xff);
        }
    }
    key.extend_from_slice(&[0, 1]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn newer_launches_come_first(a in any::<i64>(), b in any::<i64>()) {
            let run = RunId::new("r").unwrap();
            let (ka, kb) = (listed(ALL, Timestamp(a), &run), listed(ALL, Timestamp(b), &run));
            prop_assert_eq!(ka.cmp(&kb), b.cmp(&a));
            prop_assert_eq!(run_listed(&ka), Some(run));
        }

        #[test]
        fn names_sort_as_they_read_and_come_back(a in "[\u{0}-\u{2}a-b\u{ff}]{0,6}", b in "[\u{0}-\u{2}a-b\u{ff}]{0,6}") {
            let (ka, kb) = (version("k", &a, 1), version("k", &b, 1));
            prop_assert_eq!(ka.cmp(&kb), a.cmp(&b));
            prop_assert_eq!(name_behind(&kind("k"), &ka), Some(a.clone()));
            prop_assert!(a == b || !kb.starts_with(&document("k", &a)));
        }

        #[test]
        fn keys_of_a_kind_lie_between_its_prefix_and_what_is_behind(name in ".{0,8}") {
            let prefix = kind("kind");
            let key = version("kind", &name, u64::MAX);
            prop_assert!(key >= prefix && key < behind(&prefix));
        }
    }
}

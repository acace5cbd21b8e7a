//! Records of the log: keys, pieces and checksums.
//!
//! A key is a letter, the session, what tells the record from its like, and the number of its piece. A piece has at most
//! 4 KiB, beyond which sled would make a file of it that it does not sync. The first piece begins with the checksum and
//! the length of the whole: pieces that an earlier, longer version left behind it are not looked at.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::sled::{Deed, Disk};
use super::{JournalError, Loaded};
use crate::gateway::book::{Change, Head, Kept, KeptMessage, Tomb};
use crate::wire::{CreateSession, Event};

const REQUEST: u8 = b'r';
const HEAD: u8 = b'h';
const MESSAGE: u8 = b'm';
const EVENT: u8 = b'e';
const TOMB: u8 = b't';
const ALL: [u8; 5] = [REQUEST, HEAD, MESSAGE, EVENT, TOMB];

const PIECE: usize = 4000;

/// Checksum and length before the first piece.
const PREFACE: usize = 8;

fn key(letter: u8, id: Uuid, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + 16 + rest.len() + 2);
    key.push(letter);
    key.extend_from_slice(id.as_bytes());
    key.extend_from_slice(rest);
    key
}

/// Keeps changes, all or none.
pub(super) fn write<'a>(disk: &Disk, changes: impl Iterator<Item = &'a Change>) -> Result<(), JournalError> {
    let mut deeds = Vec::new();
    // Of a head that changed several times within a batch only the last is kept.
    let mut heads: HashMap<Uuid, &Head> = HashMap::new();
    for change in changes {
        match change {
            Change::Request(id, request) => put(&mut deeds, key(REQUEST, *id, &[]), disk, request)?,
            Change::Head(id, head) => {
                heads.insert(*id, head);
            }
            Change::Message(id, message, kept) => {
                put(&mut deeds, key(MESSAGE, *id, message.as_bytes()), disk, kept)?;
            }
            Change::NoMessage(id, message) => remove(&mut deeds, key(MESSAGE, *id, message.as_bytes())),
            Change::Event(id, event) => {
                put(
                    &mut deeds,
                    key(EVENT, *id, &event.number.to_be_bytes()),
                    disk,
                    event,
                )?;
            }
            Change::Deleted(id, at) => put(&mut deeds, key(TOMB, *id, &[]), disk, &Tomb { at: *at })?,
            Change::Forgotten(id) => {
                heads.remove(id);
                ALL.into_iter()
                    .for_each(|letter| remove(&mut deeds, key(letter, *id, &[])));
            }
        }
    }
    for (id, head) in heads {
        put(&mut deeds, key(HEAD, id, &[]), disk, head)?;
    }
    disk.apply(deeds)
}

/// Removes what starts so, what was to be put in the same batch too: that is not there yet to be found.
fn remove(deeds: &mut Vec<Deed>, prefix: Vec<u8>) {
    deeds.retain(|deed| !matches!(deed, Deed::Put(key, _) if key.starts_with(&prefix)));
    deeds.push(Deed::Remove(prefix));
}

fn put<T: Serialize>(
    deeds: &mut Vec<Deed>,
    key: Vec<u8>,
    disk: &Disk,
    value: &T,
) -> Result<(), JournalError> {
    let json = serde_json::to_vec(value).map_err(|error| JournalError::Write {
        path: disk.folder().to_path_buf(),
        why: error.to_string(),
    })?;
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
    let mut whole = Vec::with_capacity(PREFACE + json.len());
    whole.extend_from_slice(&crc32c::crc32c(&json).to_be_bytes());
    whole.extend_from_slice(&length.to_be_bytes());
    whole.extend_from_slice(&json);
    for (number, piece) in whole.chunks(PIECE).enumerate() {
        let mut name = key.clone();
        // A body has at most 4 MiB, and so far fewer pieces than the number can count.
        name.extend_from_slice(&u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes());
        deeds.push(Deed::Put(name, piece.to_vec()));
    }
    Ok(())
}

/// Reads records that start with `prefix` from the key `from` on, whole, until `take` says no.
fn read<T: DeserializeOwned>(
    disk: &Disk,
    prefix: &[u8],
    from: &[u8],
    mut take: impl FnMut(&[u8], T) -> bool,
) -> Result<(), JournalError> {
    let damaged = |key: &[u8], what: &str| JournalError::Damaged {
        path: disk.folder().to_path_buf(),
        what: format!("record {}: {what}", shown(key)),
    };
    let mut name: Vec<u8> = Vec::new();
    let mut whole: Vec<u8> = Vec::new();
    // Bytes still missing of the record, its preface counted.
    let mut missing = 0;
    disk.scan(prefix, from, |key, piece| {
        let Some((record, number)) = key.split_last_chunk::<2>() else {
            return Err(damaged(key, "its key is too short"));
        };
        if u16::from_be_bytes(*number) == 0 {
            if missing > 0 {
                return Err(damaged(&name, "a piece of it is missing"));
            }
            name = record.to_vec();
            whole.clear();
            let length = piece.get(4..PREFACE).and_then(|bytes| bytes.try_into().ok());
            let length = length.ok_or_else(|| damaged(key, "it is too short"))?;
            missing = PREFACE + u32::from_be_bytes(length) as usize;
        } else if record != name || missing == 0 {
            return Ok(true); // left by an earlier, longer version
        }
        let part = &piece[..piece.len().min(missing)];
        whole.extend_from_slice(part);
        missing -= part.len();
        if missing > 0 {
            return Ok(true);
        }
        let json = &whole[PREFACE..];
        if whole[..4] != crc32c::crc32c(json).to_be_bytes() {
            return Err(damaged(&name, "its checksum is wrong"));
        }
        let value = serde_json::from_slice(json).map_err(|error| damaged(&name, &error.to_string()))?;
        Ok(take(&name, value))
    })?;
    if missing > 0 {
        return Err(damaged(&name, "a piece of it is missing"));
    }
    Ok(())
}

fn shown(key: &[u8]) -> String {
    let letter = key.first().map_or('?', |letter| char::from(*letter));
    match session(key) {
        Some(id) => format!("{letter} of session {id}"),
        None => letter.to_string(),
    }
}

fn session(key: &[u8]) -> Option<Uuid> {
    Uuid::from_slice(key.get(1..17)?).ok()
}

/// Reads all but the events.
pub(super) fn load(disk: &Disk) -> Result<Loaded, JournalError> {
    let mut heads: HashMap<Uuid, Head> = HashMap::new();
    let mut messages: HashMap<Uuid, Vec<(Uuid, KeptMessage)>> = HashMap::new();
    let mut loaded = Loaded::default();
    read(disk, &[HEAD], &[HEAD], |key, head| {
        session(key).is_none_or(|id| {
            heads.insert(id, head);
            true
        })
    })?;
    read(disk, &[MESSAGE], &[MESSAGE], |key, kept| {
        let message = key.get(17..).and_then(|bytes| Uuid::from_slice(bytes).ok());
        if let (Some(id), Some(message)) = (session(key), message) {
            messages.entry(id).or_default().push((message, kept));
        }
        true
    })?;
    read(disk, &[REQUEST], &[REQUEST], |_, request: CreateSession| {
        let id = request.client_session_id;
        // Both are written in one batch.
        if let Some(head) = heads.remove(&id) {
            let messages = messages.remove(&id).unwrap_or_default();
            loaded.sessions.push(Kept {
                request,
                head,
                messages,
            });
        }
        true
    })?;
    read(disk, &[TOMB], &[TOMB], |key, tomb| {
        loaded.tombs.extend(session(key).map(|id| (id, tomb)));
        true
    })?;
    Ok(loaded)
}

/// Reads a session's events after number `after`, at most so many.
pub(super) fn events(
    disk: &Disk,
    id: Uuid,
    after: u64,
    most: usize,
) -> Result<Vec<Arc<Event>>, JournalError> {
    let prefix = key(EVENT, id, &[]);
    let from = key(EVENT, id, &after.saturating_add(1).to_be_bytes());
    let mut events = Vec::new();
    read(disk, &prefix, &from, |_, event: Event| {
        events.push(Arc::new(event));
        events.len() < most
    })?;
    Ok(events)
}

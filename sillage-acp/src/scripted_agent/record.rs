//! The record: what happened to the agent, one JSON object a line, for tests to read.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The process that wrote it; several may share a file.
    pub pid: u32,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The process started.
    Started {
        /// Its parent.
        ppid: u32,
        /// Its command line.
        argv: Vec<String>,
        /// Its folder.
        cwd: String,
        /// Names of its environment's variables, sorted.
        env: Vec<String>,
    },
    /// A frame arrived.
    Received {
        /// The frame.
        frame: Value,
    },
    /// A line arrived that is not JSON.
    Unreadable {
        /// The line, with replacement characters where it is not UTF-8.
        line: String,
    },
    /// A frame is about to leave.
    Sent {
        /// The frame.
        frame: Value,
    },
    /// Bytes that are no frame, or too many to be repeated, are about to leave.
    SentBytes {
        /// How many.
        bytes: u64,
        /// The first of them.
        head: String,
    },
    /// A prompt arrived.
    Prompted {
        /// The session.
        session: String,
        /// The prompt's number in the session, from 1.
        number: u64,
        /// Its text.
        text: String,
    },
    /// A prompt is about to be answered. Written before the answer leaves, so that an answer is never received
    /// that is not recorded.
    Answered {
        /// The session.
        session: String,
        /// The prompt's number in the session.
        number: u64,
        /// The prompt's text.
        text: String,
        /// The response: `result` or `error`.
        response: Value,
    },
    /// A process was started.
    Spawned {
        /// The process.
        child: u32,
        /// What it runs.
        command: String,
    },
    /// Variables of the environment, as asked for by a step. `null`: not set.
    Env {
        /// By name.
        values: BTreeMap<String, Option<String>>,
    },
    /// A signal arrived.
    Signal {
        /// Its name.
        name: String,
    },
    /// Standard input is closed.
    Eof,
    /// The process is about to end.
    Exiting {
        /// Its code; none: it aborts.
        code: Option<u8>,
    },
}

/// Where a record goes. Clones share the file.
#[derive(Debug, Clone, Default)]
pub struct Record {
    file: Option<Arc<Mutex<File>>>,
}

impl Record {
    /// A record that goes nowhere.
    #[must_use]
    pub fn none() -> Self {
        Record::default()
    }

    /// A record that is added to the end of a file.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn append(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Record {
            file: Some(Arc::new(Mutex::new(file))),
        })
    }

    /// Writes one event: one line, in one write, so that lines of several processes do not mix.
    pub(super) fn write(&self, event: Event) {
        let Some(file) = &self.file else { return };
        let entry = Entry {
            at_ms: now_ms(),
            pid: std::process::id(),
            event,
        };
        let Ok(mut line) = serde_json::to_vec(&entry) else {
            return;
        };
        line.push(b'\n');
        // A full disk is for the reader of the record to find out: the agent plays on.
        let _ = file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_all(&line);
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a record. A last line that is still being written is left out; a file that does not exist yet is empty.
///
/// # Errors
/// When the file cannot be read, or a whole line is not an entry.
pub fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).map_err(io::Error::from))
        .collect()
}

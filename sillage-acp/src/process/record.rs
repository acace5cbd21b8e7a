//! A file for each session that has a process: what a later engine needs to find what this one left.
//!
//! It is written before the process is started, for its name alone, the session's identifier, is the mark that the
//! process and all that it starts carry. It is removed once their end is proved. Nothing is synced: what a power cut
//! takes from the disk, it takes from the process table as well.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sillage_core::id::ClientSessionId;
use sillage_core::time::Timestamp;

use super::table::{Identity, epoch};

/// What is told of a session's processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) agent: String,
    /// The folder that it works in.
    pub(crate) folder: PathBuf,
    pub(crate) since: Timestamp,
    /// Where the numbers below mean something.
    pub(crate) epoch: String,
    /// Who started it.
    pub(crate) engine: Option<Identity>,
    /// The process that was started, and those that are known to have outlived their end.
    #[serde(default)]
    pub(crate) processes: Vec<Identity>,
}

/// The record of one session, on disk.
#[derive(Debug)]
pub(crate) struct RecordFile {
    path: PathBuf,
    record: Record,
    /// What outlived an earlier process of the session.
    earlier: Vec<Identity>,
}

impl RecordFile {
    /// Writes the record of a session that is about to get a process. Survivors of an earlier process of the same
    /// session stay in it.
    pub(crate) fn begin(
        records: &Path,
        session: ClientSessionId,
        agent: &str,
        folder: &Path,
    ) -> io::Result<Self> {
        std::fs::create_dir_all(records)?;
        let path = records.join(format!("{session}.json"));
        let now = epoch();
        let earlier = read(&path).filter(|record| record.epoch == now);
        let mut earlier = earlier.map(|record| record.processes).unwrap_or_default();
        earlier.retain(|one| one.lives());
        let record = Record {
            agent: agent.to_owned(),
            folder: folder.to_path_buf(),
            since: crate::runtime::now(),
            epoch: now,
            engine: Identity::of(std::process::id()),
            processes: earlier.clone(),
        };
        let file = Self {
            path,
            record,
            earlier,
        };
        file.write()?;
        Ok(file)
    }

    /// Adds the process that was started.
    pub(crate) fn started(&mut self, pid: u32) -> io::Result<()> {
        self.record.processes.extend(Identity::of(pid));
        self.write()
    }

    /// Says what is left after an end that could not be brought about.
    pub(crate) fn left(&mut self, survivors: Vec<Identity>) -> io::Result<()> {
        self.earlier.retain(|one| one.lives());
        self.record.processes = survivors;
        self.record.processes.extend(&self.earlier);
        self.write()
    }

    /// Nothing of it is left.
    pub(crate) fn ended(&mut self) -> io::Result<()> {
        self.earlier.retain(|one| one.lives());
        if !self.earlier.is_empty() {
            return self.left(Vec::new());
        }
        if read(&self.path).is_some_and(|now| now.processes != self.record.processes) {
            // The session has a new process by now, and this is its record.
            return Ok(());
        }
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn write(&self) -> io::Result<()> {
        write(&self.path, &self.record)
    }
}

/// Puts a record in the place of an earlier one, whole or not at all.
pub(crate) fn write(path: &Path, record: &Record) -> io::Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, serde_json::to_vec(record)?)?;
    std::fs::rename(new, path)
}

/// Reads a record; none when there is none, or it is not one.
pub(crate) fn read(path: &Path) -> Option<Record> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

//! How often rules were used.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use super::agent::lock;
use super::script::Times;

/// Counts uses of rules, in memory or in a folder that several processes share.
#[derive(Debug)]
pub(super) struct Uses {
    folder: Option<PathBuf>,
    counts: Mutex<BTreeMap<usize, u32>>,
}

impl Uses {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Uses {
            folder,
            counts: Mutex::default(),
        }
    }

    /// Takes one use of the rule at `index`, if one is left.
    pub(super) fn take(&self, index: usize, times: Times) -> io::Result<bool> {
        let Times::Count(allowed) = times else {
            return Ok(true);
        };
        let Some(folder) = &self.folder else {
            let mut counts = lock(&self.counts);
            let used = counts.entry(index).or_default();
            let left = *used < allowed;
            *used += u32::from(left);
            return Ok(left);
        };
        fs::create_dir_all(folder)?;
        for number in 1..=allowed {
            // Of several processes only one makes the file.
            let file = folder.join(format!("rule-{}-use-{number}", index + 1));
            match OpenOptions::new().write(true).create_new(true).open(file) {
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

//! The folders that a run entrusts to its agents (W1–W3).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Folders that may be read and folders that may also be written; absolute and canonical.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folders {
    /// Folders to read.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// Folders to write, which may also be read.
    #[serde(default)]
    pub write: Vec<PathBuf>,
}

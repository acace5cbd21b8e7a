//! Files that a command is given, and standard input as `-`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sillage::core::document::MAX_BYTES;

use crate::failure::Failure;

/// What the file holds; of one that is larger than any reader takes, as much as shows that.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = if is_stdin(path) {
        bounded(io::stdin().lock())
    } else {
        File::open(path).and_then(bounded)
    };
    read.map_err(|error| Failure::reading(path, &error))
}

/// What messages call the file.
pub(crate) fn name(path: &Path) -> String {
    if is_stdin(path) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Whether the path stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn bounded(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte over the bound is enough to be told apart from a text that fits.
    source.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

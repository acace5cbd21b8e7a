//! Names of documents that can be kept.

use std::path::Path;

use sillage_core::ports::store::StoreError;

/// The most bytes that a document's kind and name may have together, so that keys stay small beside values.
pub(crate) const LONGEST: usize = 512;

/// Refuses a name that is too long.
pub(crate) fn check(path: &Path, kind: &str, name: &str) -> Result<(), StoreError> {
    match kind.len() + name.len() {
        0..=LONGEST => Ok(()),
        length => Err(StoreError::Io {
            path: path.to_path_buf(),
            why: format!(
                "kind and name of a document have {length} bytes, more than {LONGEST}: shorten the name"
            ),
        }),
    }
}

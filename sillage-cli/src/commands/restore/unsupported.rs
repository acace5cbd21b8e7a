//! Where files cannot be written whole or not at all, nothing is written.

use std::path::Path;

use super::Restored;
use crate::failure::{Failure, Kind};

/// Refuses.
pub(super) fn restore(_file: &Path, _text: &[u8]) -> Result<Restored, Failure> {
    Err(unsupported())
}

/// Refuses.
pub(super) fn create(_file: &Path, _text: &[u8]) -> Result<(), Failure> {
    Err(unsupported())
}

fn unsupported() -> Failure {
    Failure::new(
        Kind::Refused,
        "this system has no way to write a file whole or not at all yet",
    )
}

//! Events as bytes: one format byte, then MessagePack with field names.
//!
//! Names make the format self-describing: a field can be added with a default, and an event that this program does
//! not know is refused by name, never skipped. Texts are copied, not unescaped, which is what reading a long log
//! costs most.

use super::event::Recorded;

/// The format that this program writes.
const FORMAT: u8 = 1;

/// Bytes that are not an event of this program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The event was written by a newer version.
    #[error("the event has format {0}, this version knows up to {FORMAT}: use a newer one; nothing is lost")]
    Newer(u8),
    /// No bytes.
    #[error("the event is empty")]
    Empty,
    /// The event has a word that this program does not know: the name of a newer kind of event, or of something in it.
    #[error(
        "the event has `{0}`, which this version does not know: it was written by a newer one, use that; nothing is lost"
    )]
    Unknown(String),
    /// The event is not one of this program's.
    #[error("the event cannot be read: {0}")]
    Unreadable(#[source] rmp_serde::decode::Error),
    /// The event cannot be written.
    #[error("the event cannot be written: {0}")]
    Unwritable(#[source] rmp_serde::encode::Error),
}

/// An event as bytes.
///
/// # Errors
/// [`CodecError::Unwritable`], which no event of this crate causes.
pub fn encode(fact: &Recorded) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(FORMAT);
    rmp_serde::encode::write_named(&mut bytes, fact).map_err(CodecError::Unwritable)?;
    Ok(bytes)
}

/// An event from its bytes.
///
/// # Errors
/// [`CodecError::Newer`] and [`CodecError::Unknown`] when a newer version wrote it, [`CodecError::Unreadable`] when none
/// did.
pub fn decode(bytes: &[u8]) -> Result<Recorded, CodecError> {
    match bytes.split_first() {
        None => Err(CodecError::Empty),
        Some((&FORMAT, body)) => rmp_serde::from_slice(body).map_err(unread),
        Some((&other, _)) => Err(CodecError::Newer(other)),
    }
}

/// Why a body was not read, by serde's words for a variant that there is not.
fn unread(error: rmp_serde::decode::Error) -> CodecError {
    let words = error.to_string();
    let unknown = words.strip_prefix("unknown variant `");
    match unknown.and_then(|rest| rest.split_once('`')) {
        Some((word, _)) => CodecError::Unknown(crate::plain::line(word).to_string()),
        None => CodecError::Unreadable(error),
    }
}

#[cfg(test)]
mod tests;

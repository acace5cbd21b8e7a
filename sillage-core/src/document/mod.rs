//! A YAML or JSON text as a tree whose every value knows its place, so that faults can name it.

pub(crate) mod check;
pub mod json;
pub mod yaml;

use std::path::Path;

use crate::fault::{Fault, FaultCode};

/// How many bytes a file or a body may have (W12).
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// How many lists and maps may lie in each other (W12).
pub const MAX_DEPTH: usize = 64;

/// The language that a text is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// YAML, or JSON when it starts with `{`.
    #[default]
    Either,
    /// JSON alone.
    Json,
}

impl Format {
    /// The format that a file's name promises: JSON alone for `.json`, else either.
    #[must_use]
    pub fn of_file(name: &Path) -> Format {
        match name.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("json") => Format::Json,
            Some(_) | None => Format::Either,
        }
    }
}

/// Reads a whole text. One that holds nothing is an empty map.
///
/// A text that starts with `{` may be JSON, or YAML that looks like it: it is read as JSON first and, where that
/// fails, as YAML; when both fail, the reader that got further says why.
///
/// # Errors
/// When the text is over [`MAX_BYTES`] or one of the readers refuses it: see [`yaml::read`] and [`json::read`].
pub fn read(text: &str, format: Format) -> Result<Node, Unreadable> {
    check_size(text.len())?;
    let start = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{feff}');
    if start.is_empty() {
        return Ok(Node {
            place: Place::START,
            value: Value::Map(Vec::new()),
        });
    }
    match format {
        Format::Json => json::read(text, Place::START),
        Format::Either if start.starts_with('{') => json::read(text, Place::START).or_else(|json| {
            if json.code != FaultCode::Syntax {
                return Err(json);
            }
            yaml::read(text).map_err(|yaml| if yaml.place > json.place { yaml } else { json })
        }),
        Format::Either => yaml::read(text),
    }
}

/// Takes the bytes of a file as text.
///
/// # Errors
/// When there are over [`MAX_BYTES`], or they are not UTF-8.
pub fn decode(bytes: &[u8]) -> Result<&str, Unreadable> {
    check_size(bytes.len())?;
    std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        Unreadable {
            code: FaultCode::Syntax,
            message: "this is not UTF-8, save the file in that encoding".to_owned(),
            place: Some(Place::START.after(&before)),
        }
    })
}

fn check_size(bytes: usize) -> Result<(), Unreadable> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let message = format!("{bytes} bytes are more than the {MAX_BYTES} that are read");
    Err(Unreadable {
        code: FaultCode::TooLarge,
        message,
        place: None,
    })
}

/// Where a value starts in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Place {
    /// Where a text starts.
    pub const START: Place = Place { line: 1, column: 1 };

    /// The place that is reached by stepping over `text` from here. Lines end with a line feed.
    #[must_use]
    pub fn after(self, text: &str) -> Place {
        let mut place = self;
        for byte in text.bytes() {
            if byte == b'\n' {
                place = Place {
                    line: place.line.saturating_add(1),
                    column: 1,
                };
            } else if byte & 0xc0 != 0x80 {
                // Each character has one byte that does not continue another.
                place.column = place.column.saturating_add(1);
            }
        }
        place
    }
}

/// Why a text gives no tree. It ends the reading: no other fault is told with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unreadable {
    /// What kind of fault.
    pub code: FaultCode,
    /// What is wrong and what to do, for people. Lower case, no full stop.
    pub message: String,
    /// Where, if it is somewhere.
    pub place: Option<Place>,
}

impl From<Unreadable> for Fault {
    fn from(unreadable: Unreadable) -> Self {
        Fault {
            code: unreadable.code,
            message: unreadable.message,
            path: String::new(),
            line: unreadable.place.map(|place| place.line),
            column: unreadable.place.map(|place| place.column),
            suggestion: None,
        }
    }
}

/// A value and where it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where the value starts.
    pub place: Place,
    /// The value.
    pub value: Value,
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing: `null`, `~` or an empty value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was written.
    Number(String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with their places, in the order of the text; no key twice.
    Map(Vec<(Key, Node)>),
}

/// A key of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Where the key starts.
    pub place: Place,
    /// The key.
    pub name: String,
}

//! A YAML or JSON text as a tree whose every value knows its place, so that faults can name it.

pub mod json;

use crate::fault::FaultCode;

/// How many lists and maps may lie in each other (W12).
pub const MAX_DEPTH: usize = 64;

/// Where a value starts in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

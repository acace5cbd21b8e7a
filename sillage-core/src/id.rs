//! Identifiers, each a type of its own so that one cannot stand for another.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map($name)
            }
        }
    };
}

uuid_id! {
    /// The identifier that Sillage chooses for a session before asking a runtime for it (R5).
    ClientSessionId
}
uuid_id! {
    /// The identifier that Sillage chooses for a message before sending it (R5).
    ClientMessageId
}

/// A run's name: lower-case letters, digits and hyphens, so that it can stand in a branch name,
/// a folder name and a command line. Made from the launch time and a few random characters;
/// sorts by launch time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct RunId(String);

/// Why a text is not a [`RunId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a run: a run's name holds 1 to 64 lower-case letters, digits and hyphens")]
pub struct BadRunId(pub String);

impl RunId {
    /// Takes a run's name.
    ///
    /// # Errors
    /// When it is empty, longer than 64 bytes, starts with a hyphen or holds anything but `[a-z0-9-]`.
    pub fn new(text: impl Into<String>) -> Result<Self, BadRunId> {
        let text = text.into();
        let fits = !text.is_empty()
            && text.len() <= 64
            && !text.starts_with('-')
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if fits { Ok(Self(text)) } else { Err(BadRunId(text)) }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RunId::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for RunId {
    type Err = BadRunId;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        RunId::new(text)
    }
}

/// A step's place in its run: the agents of the task in the order of the definition, then sub-agents as they
/// are planned. Stable for the life of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepIndex(pub u32);

impl StepIndex {
    /// The index as a position in a slice.
    #[must_use]
    pub const fn position(self) -> usize {
        self.0 as usize
    }
}

/// The position of an event in its run's log: the first is 1, without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The first event of a run.
    pub const FIRST: Seq = Seq(1);

    /// The next position.
    #[must_use]
    pub const fn next(self) -> Seq {
        Seq(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

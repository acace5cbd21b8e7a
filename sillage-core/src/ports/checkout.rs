//! The person's checkout at two times, and what changed in between.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How far a file system's clock may be behind the machine's, in nanoseconds.
const CLOCK_LAG: u64 = 50_000_000;

/// Files of a checkout at one time, by their path relative to its top.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkout {
    /// When it was looked at: nanoseconds since 1970.
    pub at: u64,
    /// The files; none: there is no such file.
    pub files: BTreeMap<PathBuf, Option<FileStamp>>,
    /// Whether there were too many to look at: then nothing is known.
    #[serde(default)]
    pub too_many: bool,
}

/// What tells a file from what it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// Bytes.
    pub size: u64,
    /// When its content last changed: nanoseconds since 1970.
    pub modified: u64,
    /// When anything of it last changed, which no program can set: nanoseconds since 1970; 0: not known here.
    pub changed: u64,
    /// What it is: the number of the file, where the system has one.
    pub number: u64,
}

impl Checkout {
    /// The files that changed since `before`, made, written or removed. This look must cover all files of the one
    /// before. Nothing when either look was at too many files.
    ///
    /// A file that was in neither git's list of changes nor written since does not count, whatever became of the index.
    #[must_use]
    pub fn changed_since(&self, before: &Checkout) -> Vec<PathBuf> {
        if self.too_many || before.too_many {
            return Vec::new();
        }
        let differs = |(path, now): &(&PathBuf, &Option<FileStamp>)| match (before.files.get(*path), now) {
            (Some(was), now) => was != *now,
            (None, None) => true,
            (None, Some(now)) => now.changed == 0 || now.changed.saturating_add(CLOCK_LAG) >= before.at,
        };
        self.files
            .iter()
            .filter(differs)
            .map(|(path, _)| path.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn stamp(changed: u64) -> Option<FileStamp> {
        Some(FileStamp {
            size: 1,
            modified: changed,
            changed,
            number: 1,
        })
    }

    fn look(at: u64, files: &[(&str, Option<FileStamp>)]) -> Checkout {
        Checkout {
            at,
            files: files
                .iter()
                .map(|(name, stamp)| (PathBuf::from(name), *stamp))
                .collect(),
            too_many: false,
        }
    }

    #[test]
    fn g6_what_was_made_written_or_removed_since_is_told_and_nothing_else() {
        let before = look(
            10 * SECOND,
            &[
                ("dirty", stamp(SECOND)),
                ("touched", stamp(SECOND)),
                ("goes", stamp(SECOND)),
            ],
        );
        let after = look(
            20 * SECOND,
            &[
                ("dirty", stamp(SECOND)),
                ("touched", stamp(15 * SECOND)),
                ("goes", None),
                ("made", stamp(11 * SECOND)),
                ("removed", None),
                // The person took it out of the index; the file is as old as it was.
                ("forgotten", stamp(2 * SECOND)),
            ],
        );
        let changed: Vec<String> = after
            .changed_since(&before)
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        assert_eq!(changed, ["goes", "made", "removed", "touched"]);
        assert!(after.changed_since(&after).is_empty());
    }

    #[test]
    fn g6_of_too_many_files_nothing_is_told() {
        let mut before = look(1, &[]);
        before.too_many = true;
        assert!(look(2, &[("made", stamp(2))]).changed_since(&before).is_empty());
    }
}

//! The folders that a run entrusts to its agents (W1–W3).

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

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

impl Folders {
    /// What these folders grant together, each right said once (W2, W3): a folder inside another that grants as much
    /// is dropped; a write folder inside a read folder stays, and alone is writable. The order of what stays is kept.
    ///
    /// Paths are compared by component, and taken to be absolute and canonical.
    #[must_use]
    pub fn effective(read: &[PathBuf], write: &[PathBuf]) -> Folders {
        let readable: HashSet<&Path> = read.iter().map(PathBuf::as_path).collect();
        let writable: HashSet<&Path> = write.iter().map(PathBuf::as_path).collect();
        let mut seen = HashSet::new();
        let write: Vec<PathBuf> = write
            .iter()
            .filter(|path| !lies_below(path, &writable) && seen.insert(path.as_path()))
            .cloned()
            .collect();
        // A folder to write grants reading too, so a folder to read that is one, or lies in one, adds nothing.
        let read = read
            .iter()
            .filter(|path| !writable.contains(path.as_path()) && !lies_below(path, &writable))
            .filter(|path| !lies_below(path, &readable) && seen.insert(path.as_path()))
            .cloned()
            .collect();
        Folders { read, write }
    }

    /// Whether a path, absolute and canonical, may be read. One with `..` in it is neither, and is refused.
    #[must_use]
    pub fn may_read(&self, path: &Path) -> bool {
        self.may_write(path) || holds(&self.read, path)
    }

    /// Whether a path, absolute and canonical, may be written. One with `..` in it is neither, and is refused.
    #[must_use]
    pub fn may_write(&self, path: &Path) -> bool {
        holds(&self.write, path)
    }
}

/// Whether the path is one of the folders or lies in one.
fn holds(folders: &[PathBuf], path: &Path) -> bool {
    let climbs = path
        .components()
        .any(|component| component == Component::ParentDir);
    !climbs && folders.iter().any(|folder| path.starts_with(folder))
}

/// Whether one of the folders holds the path, the path itself not counted.
fn lies_below(path: &Path, folders: &HashSet<&Path>) -> bool {
    path.ancestors()
        .skip(1)
        .any(|ancestor| folders.contains(ancestor))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn paths(texts: &[&str]) -> Vec<PathBuf> {
        texts.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn w3_a_folder_inside_another_that_grants_as_much_is_dropped() {
        for (read, write, kept_read, kept_write) in [
            (&["/a", "/a/b"][..], &[][..], &["/a"][..], &[][..]),
            (&["/a/b", "/a"], &[], &["/a"], &[]),
            (&["/a", "/a"], &[], &["/a"], &[]),
            (&["/a/b"], &["/a"], &[], &["/a"]),
            (&["/a"], &["/a"], &[], &["/a"]),
            (&["/a"], &["/a/b"], &["/a"], &["/a/b"]),
            (&[], &["/a/b", "/c", "/a"], &[], &["/c", "/a"]),
            (&["/a/bc"], &["/a/b"], &["/a/bc"], &["/a/b"]),
            (&["/"], &["/a"], &["/"], &["/a"]),
        ] {
            let folders = Folders::effective(&paths(read), &paths(write));
            let expected = Folders {
                read: paths(kept_read),
                write: paths(kept_write),
            };
            assert_eq!(folders, expected, "{read:?} {write:?}");
        }
    }

    #[test]
    fn w3_rules_compare_components_not_text() {
        let folders = Folders {
            read: paths(&["/a/b"]),
            write: paths(&["/a/b/c"]),
        };
        assert!(folders.may_read(Path::new("/a/b/x")) && !folders.may_write(Path::new("/a/b/x")));
        assert!(folders.may_write(Path::new("/a/b/c/x")));
        assert!(
            !folders.may_read(Path::new("/a/b/../../etc")) && !folders.may_write(Path::new("/a/b/c/../x"))
        );
        assert!(!folders.may_read(Path::new("/a/bc")) && !folders.may_write(Path::new("/a/b/cd")));
    }

    fn folder() -> impl Strategy<Value = PathBuf> {
        proptest::collection::vec("[ab]{1,2}", 0..4).prop_map(|parts| {
            let mut path = PathBuf::from("/");
            path.extend(parts);
            path
        })
    }

    proptest! {
        /// W2: a task adds to its project's folders and takes none away.
        #[test]
        fn adding_takes_no_right_away(
            project in proptest::collection::vec(folder(), 0..4),
            task in proptest::collection::vec(folder(), 0..4),
            asked in folder(),
        ) {
            let all: Vec<PathBuf> = project.iter().chain(&task).cloned().collect();
            let before = Folders::effective(&project, &[]);
            prop_assert!(!before.may_read(&asked) || Folders::effective(&all, &[]).may_read(&asked));
            prop_assert!(!before.may_read(&asked) || Folders::effective(&project, &task).may_read(&asked));
            let before = Folders::effective(&[], &project);
            prop_assert!(!before.may_write(&asked) || Folders::effective(&[], &all).may_write(&asked));
        }

        /// W2, W3: dropping changes no right, and what stays has no duplicate right.
        #[test]
        fn dropping_changes_no_right(
            read in proptest::collection::vec(folder(), 0..6),
            write in proptest::collection::vec(folder(), 0..6),
            asked in folder(),
        ) {
            let all = Folders { read: read.clone(), write: write.clone() };
            let kept = Folders::effective(&read, &write);
            prop_assert_eq!(all.may_read(&asked), kept.may_read(&asked));
            prop_assert_eq!(all.may_write(&asked), kept.may_write(&asked));
            prop_assert_eq!(Folders::effective(&kept.read, &kept.write), kept);
        }
    }
}

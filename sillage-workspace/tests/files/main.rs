//! Files below a folder that others write to: [`sillage_workspace::confined::Folder`] (F1–F5, F7–F12).
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    reason = "a test ends at the first surprise and tells what it measured"
)]

mod cuts;
mod grants;
mod kinds;
mod paths;
mod races;
mod saves;

use std::fs;
use std::path::{Path, PathBuf};

use sillage_workspace::confined::Folder;
use tempfile::TempDir;

/// More than any file of these tests holds.
const LIMIT: u64 = 1 << 20;
/// What nobody in the granted folder may get to see or change.
const SECRET: &str = "outside\n";

/// A granted folder with a secret beside it.
struct Ground {
    outer: TempDir,
}

impl Ground {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        let ground = Self { outer };
        fs::create_dir_all(ground.at("sub/deep")).unwrap();
        fs::write(ground.at("full"), "inside\n").unwrap();
        fs::write(ground.at("sub/deep/leaf"), "leaf\n").unwrap();
        fs::write(ground.outside("secret"), SECRET).unwrap();
        fs::create_dir(ground.outside("granted-too")).unwrap();
        fs::write(ground.outside("granted-too/full"), SECRET).unwrap();
        ground
    }

    fn folder(&self) -> PathBuf {
        self.outer.path().join("granted")
    }

    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder().join(path)
    }

    fn outside(&self, path: impl AsRef<Path>) -> PathBuf {
        self.outer.path().join(path)
    }

    fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.at(name)).unwrap();
    }

    /// The folder, granted, once for each way in which paths are looked up.
    fn ways(&self) -> [Folder; 2] {
        [
            Folder::open(&self.folder()).unwrap(),
            Folder::open(&self.folder()).unwrap().walking(),
        ]
    }

    /// What is outside is as it was, and no save left anything behind.
    fn untouched(&self) {
        assert_eq!(fs::read_to_string(self.outside("secret")).unwrap(), SECRET);
        assert_eq!(
            fs::read_to_string(self.outside("granted-too/full")).unwrap(),
            SECRET
        );
        let mut names: Vec<_> = fs::read_dir(self.outer.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["granted", "granted-too", "secret"]);
        assert_eq!(leftovers(&self.folder()), Vec::<PathBuf>::new());
    }
}

/// Files that a save had not finished, in a folder and below.
fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                left.push(entry.path());
            } else if entry.file_name().to_string_lossy().starts_with(".sillage-save-") {
                found.push(entry.path());
            }
        }
    }
    found
}

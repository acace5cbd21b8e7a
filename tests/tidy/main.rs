//! The rules of the house, read off the sources and off `cargo metadata`. Each rule is a function with a test of its
//! own on a small example that breaks it, so that a rule that lets everything pass is noticed.
#![expect(
    clippy::expect_used,
    reason = "a rule that cannot read what it is about must fail"
)]

mod documents;
mod faults;
mod imports;
mod licences;
mod lints;
mod metadata;
mod planted;
mod sources;

use std::path::{Path, PathBuf};

/// The workspace's folder.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Fails with every breach, one a line.
#[track_caller]
fn assert_none(breaches: &[String]) {
    assert!(
        breaches.is_empty(),
        "{} breach(es):\n{}",
        breaches.len(),
        breaches.join("\n")
    );
}

/// A file of the workspace.
struct File {
    /// Its path below the workspace's folder, with `/`.
    path: String,
    /// What it holds.
    text: String,
}

/// Every file of the workspace with that extension, in order. Build output, dependencies and dot folders are left out.
fn files(extension: &str) -> Vec<File> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the workspace is readable") {
            let entry = entry.expect("the workspace is readable");
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let path = entry.path();
            if entry.file_type().expect("the workspace is readable").is_dir() {
                if !name.starts_with('.') && name != "target" && name != "node_modules" && name != "dist" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                let relative = path.strip_prefix(root()).expect("below the root");
                found.push(File {
                    path: relative.to_string_lossy().replace('\\', "/"),
                    text: std::fs::read_to_string(&path).expect("sources are text"),
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

//! What `cargo metadata` tells, as far as the rules read it.

use std::process::Command;

use serde::Deserialize;

/// The answer of `cargo metadata`.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    /// Every package: of the workspace and, where they were asked for, of the tree below it.
    pub(crate) packages: Vec<Package>,
}

/// A package.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// An SPDX expression.
    pub(crate) license: Option<String>,
    pub(crate) manifest_path: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency as a manifest declares it.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev`, `build`, or none for an ordinary one.
    pub(crate) kind: Option<String>,
}

/// The packages of the workspace alone.
pub(crate) fn workspace() -> Metadata {
    ask(&["--no-deps"]).expect("cargo metadata reads the workspace")
}

/// The whole tree, dependencies of tests and of other platforms included where they have been fetched
/// (`cargo fetch`); else what this platform builds with. Asks no network.
#[expect(clippy::print_stderr, reason = "a narrower check than usual is worth a line in the test's output")]
pub(crate) fn tree() -> Metadata {
    ask(&["--offline"]).unwrap_or_else(|missing| {
        eprintln!("reading this platform's tree only, since others are not fetched: {missing}");
        ask(&["--offline", "--filter-platform", &host()])
            .expect("cargo metadata reads the tree that was built")
    })
}

fn ask(arguments: &[&str]) -> Result<Metadata, String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--all-features", "--locked"])
        .args(arguments)
        .current_dir(crate::root())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// The platform that this compiler builds for.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let text = String::from_utf8(output.stdout).expect("rustc prints text");
    let host = text
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .expect("rustc names its host");
    host.to_owned()
}

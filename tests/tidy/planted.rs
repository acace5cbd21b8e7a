//! Bugs are planted by a test that asks for them, and by nothing else.

use crate::{assert_none, files};

/// The feature that makes bugs possible.
const FEATURE: &str = "planted-bugs";

/// Lines of a manifest that enable the feature by default, for a dependency, or through another feature than its own.
fn enabling(manifest: &str) -> Vec<String> {
    manifest
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| line.contains(FEATURE) && !line.starts_with(&format!("{FEATURE} = [")))
        .map(str::to_owned)
        .collect()
}

#[test]
fn nothing_that_is_shipped_can_have_a_bug_planted() {
    let mut breaches = Vec::new();
    for file in files("toml") {
        for line in enabling(&file.text) {
            breaches.push(format!("{}: {line}", file.path));
        }
    }
    assert_none(&breaches);
}

#[test]
fn a_manifest_that_plants_bugs_is_caught() {
    let own = "[features]\n# planted-bugs\nplanted-bugs = [\"sillage-core/planted-bugs\"]\n";
    assert_eq!(enabling(own), Vec::<String>::new());
    for line in [
        "default = [\"store\", \"planted-bugs\"]",
        "demo = [\"sillage/planted-bugs\"]",
        "sillage-core = { workspace = true, features = [\"planted-bugs\"] }",
    ] {
        assert_eq!(enabling(&format!("{own}{line}\n")), [line]);
    }
}

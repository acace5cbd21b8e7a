//! Every crate inherits the workspace's lints.

use crate::assert_none;
use crate::metadata::workspace;

/// The lines of a table of a manifest.
fn table<'a>(manifest: &'a str, header: &str) -> Vec<&'a str> {
    manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != header)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .collect()
}

/// Whether a member's manifest takes the workspace's lints.
fn inherits(manifest: &str) -> bool {
    table(manifest, "[lints]").contains(&"workspace = true")
}

/// Whether the workspace's manifest forbids unsafe code and denies undocumented items.
fn strict(manifest: &str) -> bool {
    let rust = table(manifest, "[workspace.lints.rust]");
    rust.contains(&"unsafe_code = \"forbid\"") && rust.contains(&"missing_docs = \"deny\"")
}

#[test]
fn every_crate_inherits_strict_lints() {
    let root = std::fs::read_to_string(crate::root().join("Cargo.toml")).expect("the manifest");
    assert!(
        strict(&root),
        "[workspace.lints.rust] forbids unsafe code and denies missing docs"
    );
    let breaches: Vec<String> = workspace()
        .packages
        .iter()
        .filter(|package| !inherits(&std::fs::read_to_string(&package.manifest_path).expect("a manifest")))
        .map(|package| format!("{}: no `[lints]` with `workspace = true`", package.manifest_path))
        .collect();
    assert_none(&breaches);
}

#[test]
fn a_crate_that_goes_its_own_way_is_caught() {
    assert!(inherits("[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"));
    assert!(!inherits("[package]\nname = \"a\"\n"));
    assert!(!inherits(
        "[lints.rust]\nunsafe_code = \"allow\"\n\n[features]\nworkspace = true\n"
    ));
    assert!(strict(
        "[workspace.lints.rust]\nunsafe_code = \"forbid\"\nmissing_docs = \"deny\"\n"
    ));
    assert!(!strict(
        "[workspace.lints.rust]\nunsafe_code = \"deny\"\nmissing_docs = \"deny\"\n"
    ));
    assert!(!strict(
        "[workspace.lints.clippy]\nunsafe_code = \"forbid\"\nmissing_docs = \"deny\"\n"
    ));
}

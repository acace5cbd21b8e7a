//! The licences of the whole dependency tree, each read as an SPDX expression.

use spdx::{Expression, LicenseItem, ParseMode};

use crate::assert_none;
use crate::metadata::{Metadata, tree};

/// The same list stands in `deny.toml`.
const ALLOWED: [&str; 11] = [
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "MPL-2.0",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "CC0-1.0",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
];

/// Why a package may not be used, if so. An exception (`WITH …`) is refused, which leaves its alternatives.
fn refusal(licence: Option<&str>) -> Option<String> {
    let Some(licence) = licence else {
        return Some("it names no licence".to_owned());
    };
    let expression = match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(expression) => expression,
        Err(error) => return Some(format!("`{licence}` is not an SPDX expression: {}", error.reason)),
    };
    let fits = expression.evaluate(|wanted| {
        wanted.addition.is_none()
            && matches!(&wanted.license, LicenseItem::Spdx { id, .. } if ALLOWED.contains(&id.name))
    });
    (!fits).then(|| format!("`{licence}` is not among the allowed licences"))
}

fn breaches(metadata: &Metadata) -> Vec<String> {
    metadata
        .packages
        .iter()
        .filter_map(|package| {
            let why = refusal(package.license.as_deref())?;
            Some(format!("{} {}: {why}", package.name, package.version))
        })
        .collect()
}

#[test]
fn every_package_of_the_tree_has_an_allowed_licence() {
    let tree = tree();
    assert!(
        tree.packages.iter().any(|package| package.name == "serde"),
        "the tree holds dependencies"
    );
    assert_none(&breaches(&tree));
}

#[test]
fn deny_toml_allows_the_same_licences() {
    let text = std::fs::read_to_string(crate::root().join("deny.toml")).expect("deny.toml");
    let list = text
        .split_once("\nallow = [")
        .and_then(|(_, rest)| rest.split_once(']'))
        .expect("a list")
        .0;
    let listed: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert_eq!(listed, ALLOWED);
}

#[test]
fn licences_outside_the_list_are_caught() {
    for refused in [
        None,
        Some("GPL-3.0-only"),
        Some("MIT AND GPL-3.0-only"),
        Some("Apache-2.0 WITH LLVM-exception"),
        Some("OpenSSL"),
        Some("my own words"),
    ] {
        assert!(refusal(refused).is_some(), "{refused:?}");
    }
    for allowed in [
        "MIT",
        "MIT/Apache-2.0",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
        "MIT OR GPL-3.0-or-later",
    ] {
        assert_eq!(refusal(Some(allowed)), None, "{allowed}");
    }
}

//! Who may depend on whom.

use crate::assert_none;
use crate::metadata::{Metadata, workspace};

const ADAPTERS: [&str; 4] = [
    "sillage-store",
    "sillage-relais",
    "sillage-acp",
    "sillage-workspace",
];
const FRONT_ENDS: [&str; 3] = ["sillage-cli", "sillage-gateway", "sillage-server"];

/// A library that only these crates may depend on.
const OWNED: [(&str, &[&str]); 8] = [
    ("petgraph", &["sillage-core"]),
    // The engine keeps runs, the gateway sessions; neither knows of the other's.
    ("sled", &["sillage-store", "sillage-relais"]),
    ("agent-client-protocol-schema", &["sillage-acp"]),
    ("clap", &["sillage-cli", "sillage-gateway"]),
    ("hyper", &["sillage-relais"]),
    ("hyper-util", &["sillage-relais"]),
    ("reqwest", &["sillage-relais"]),
    ("utoipa", &["sillage-relais"]),
];

/// Libraries that bring IO, a clock or randomness, and so have no place in the core.
const NOT_IN_CORE: [&str; 7] = [
    "tokio",
    "rustix",
    "tempfile",
    "rand",
    "getrandom",
    "reqwest",
    "directories",
];

/// What of this workspace a crate may use in what it ships.
fn allowed(package: &str) -> Option<Vec<&'static str>> {
    Some(match package {
        "sillage-core" => vec![],
        name if ADAPTERS.contains(&name) => vec!["sillage-core"],
        "sillage-testkit" => vec!["sillage-core"],
        "sillage" => [&["sillage-core"], ADAPTERS.as_slice()].concat(),
        name if FRONT_ENDS.contains(&name) => [&["sillage", "sillage-core"], ADAPTERS.as_slice()].concat(),
        _ => return None,
    })
}

/// Breaches of the map in ARCHITECTURE.md.
fn breaches(metadata: &Metadata) -> Vec<String> {
    let mut found = Vec::new();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let Some(may_use) = allowed(name) else {
            found.push(format!(
                "{name} has no place in the map of who may depend on whom"
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let used = dependency.name.as_str();
            let dev = dependency.kind.as_deref() == Some("dev");
            if used.starts_with("sillage") && !dev && !may_use.contains(&used) {
                found.push(format!("{name} may not depend on {used}"));
            }
            if used.starts_with("sillage")
                && dev
                && !may_use.contains(&used)
                && used != "sillage-testkit"
                && used != name
            {
                found.push(format!("{name} may not use {used} in its tests"));
            }
            if name == "sillage-core" && !dev && NOT_IN_CORE.contains(&used) {
                found.push(format!("{name} is pure and may not depend on {used}"));
            }
            if OWNED
                .iter()
                .any(|(library, owners)| *library == used && !owners.contains(&name))
            {
                found.push(format!(
                    "{name} may not depend on {used}, which another crate stands for"
                ));
            }
        }
    }
    found
}

#[test]
fn crates_depend_only_on_what_the_map_allows() {
    let metadata = workspace();
    assert!(
        metadata
            .packages
            .iter()
            .any(|package| package.name == "sillage-core")
    );
    assert_none(&breaches(&metadata));
}

#[test]
fn each_rule_of_the_map_catches_its_breach() {
    let told = |package: &str, dependency: &str, kind: Option<&str>| {
        let json = serde_json::json!({ "packages": [{
            "name": package, "version": "0.1.0", "license": "MIT", "manifest_path": "Cargo.toml",
            "dependencies": [{ "name": dependency, "kind": kind }],
        }]});
        breaches(&serde_json::from_value(json).expect("metadata"))
    };
    for (package, dependency, kind) in [
        ("sillage-core", "sillage-store", None),
        ("sillage-core", "tokio", None),
        ("sillage-core", "sillage", Some("dev")),
        ("sillage-store", "sillage-acp", None),
        ("sillage-acp", "sillage-workspace", Some("dev")),
        ("sillage-workspace", "sillage", None),
        ("sillage", "sillage-testkit", None),
        ("sillage", "sillage-cli", None),
        ("sillage-cli", "sillage-testkit", None),
        ("sillage-acp", "petgraph", None),
        ("sillage", "sled", Some("dev")),
        ("sillage-cli", "agent-client-protocol-schema", None),
        ("sillage-relais", "sillage-store", None),
        ("sillage-relais", "sillage-acp", Some("dev")),
        ("sillage-extra", "serde", None),
    ] {
        assert_eq!(
            told(package, dependency, kind).len(),
            1,
            "{package} -> {dependency} ({kind:?})"
        );
    }
    for (package, dependency, kind) in [
        ("sillage-store", "sillage-core", None),
        ("sillage-store", "sillage-testkit", Some("dev")),
        ("sillage-cli", "sillage-acp", None),
        ("sillage-core", "petgraph", None),
    ] {
        assert_eq!(
            told(package, dependency, kind),
            Vec::<String>::new(),
            "{package} -> {dependency} ({kind:?})"
        );
    }
}

/// What of the core the protocol, its client and its gateway may name: the ports, and what those are made of.
const PORTS_AND_THEIRS: [&str; 5] = ["ports", "id", "folders", "policy", "time"];

/// Lines of a file that name something else of the core.
fn beyond_the_ports(file: &crate::File) -> Vec<String> {
    let named = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        let rest = code.split("sillage_core::").skip(1);
        let modules: Vec<String> = rest
            .map(|rest| {
                rest.chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect()
            })
            .collect();
        modules
            .into_iter()
            .find(|module| !PORTS_AND_THEIRS.contains(&module.as_str()))
    };
    let lines = file.text.lines().enumerate();
    lines
        .filter_map(|(number, line)| Some((number, named(line)?)))
        .map(|(number, module)| {
            format!(
                "{}:{}: a gateway knows nothing of `{module}`",
                file.path,
                number + 1
            )
        })
        .collect()
}

#[test]
fn the_gateway_names_nothing_of_the_core_but_ports() {
    let files = crate::files("rs");
    let gateway: Vec<_> = files
        .iter()
        .filter(|file| file.path.starts_with("sillage-relais/src/"))
        .collect();
    assert!(
        gateway
            .iter()
            .any(|file| file.text.contains("sillage_core::ports"))
    );
    assert_none(&gateway.into_iter().flat_map(beyond_the_ports).collect::<Vec<_>>());
}

#[test]
fn a_gateway_that_names_more_is_caught() {
    let told = |text: &str| {
        let file = crate::File {
            path: "sillage-relais/src/gateway/mod.rs".to_owned(),
            text: text.to_owned(),
        };
        beyond_the_ports(&file).len()
    };
    assert_eq!(told("use sillage_core::run::Run;"), 1);
    assert_eq!(told("fn f(_: sillage_core::task::Task) {}"), 1);
    assert_eq!(told("use sillage_core::{run, task};"), 1);
    assert_eq!(
        told("use sillage_core::ports::AgentRuntime; // sillage_core::run"),
        0
    );
    assert_eq!(told("use sillage_core::time::Timestamp;"), 0);
}

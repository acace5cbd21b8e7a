//! What the documents name exists: their commands' packages and scripts, and the files that they point to.

use crate::metadata::workspace;
use crate::{File, assert_none, files};

/// The lines of the fenced `sh` blocks, without comments.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.trim() {
            "```sh" => inside = true,
            "```" => inside = false,
            command if inside => {
                let command = command.split(" #").next().unwrap_or_default().trim();
                if !command.is_empty() && !command.starts_with('#') {
                    found.push(command.to_owned());
                }
            }
            _ => {}
        }
    }
    found
}

/// What is wrong with a command: a package that the workspace does not have, or a script that is not there.
fn wrong(command: &str, packages: &[String], exists: &dyn Fn(&str) -> bool) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let first = *words.first()?;
    if first == "cargo" {
        let named = words
            .iter()
            .position(|word| *word == "-p")
            .and_then(|at| words.get(at + 1));
        return named
            .filter(|package| !packages.iter().any(|known| known == *package))
            .map(|package| format!("`{command}`: no package {package}"));
    }
    (first.contains('/') && !exists(first)).then(|| format!("`{command}`: no {first}"))
}

/// Targets of links `[…](target)` to files.
fn links(text: &str) -> Vec<&str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
        .map(|target| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}

fn exists(path: &str) -> bool {
    crate::root().join(path.trim_start_matches('/')).exists()
}

fn documents() -> Vec<File> {
    let found: Vec<File> = files("md")
        .into_iter()
        .filter(|file| !file.path.contains('/') || file.path.starts_with("docs/"))
        .collect();
    for wanted in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        assert!(found.iter().any(|file| file.path == wanted), "{wanted}");
    }
    found
}

#[test]
fn commands_of_the_documents_exist() {
    let packages: Vec<String> = workspace()
        .packages
        .into_iter()
        .map(|package| package.name)
        .collect();
    let mut breaches = Vec::new();
    for document in documents() {
        let commands = commands(&document.text);
        assert!(
            document.path != "README.md" || commands.len() >= 2,
            "the README has commands"
        );
        for command in commands {
            breaches
                .extend(wrong(&command, &packages, &exists).map(|why| format!("{}: {why}", document.path)));
        }
    }
    assert_none(&breaches);
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    let mut breaches = Vec::new();
    for document in documents() {
        let folder = document.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let dead = links(&document.text)
            .into_iter()
            .filter(|target| !exists(&format!("{folder}/{target}")));
        breaches.extend(dead.map(|target| format!("{}: no {target}", document.path)));
    }
    assert_none(&breaches);
}

#[test]
fn a_command_that_does_not_exist_is_caught() {
    let text = "text\n```sh\n# first\ncargo run -p sillage-cli -- demo   # shows it\n.ci/run\n```\n```yaml\ncargo run -p no\n```\n";
    let found = commands(text);
    assert_eq!(found, ["cargo run -p sillage-cli -- demo", ".ci/run"]);
    let packages = ["sillage-cli".to_owned()];
    assert_eq!(wrong(&found[0], &packages, &|_| true), None);
    assert!(wrong("cargo test -p sillage-cly", &packages, &|_| true).is_some());
    assert!(wrong("scripts/test --all", &packages, &|_| false).is_some());
}

#[test]
fn a_dead_link_is_caught() {
    let text = "[a](ARCHITECTURE.md#map) [b](https://example.org) [c](#here) [d](no/such.md)";
    assert_eq!(links(text), ["ARCHITECTURE.md", "no/such.md"]);
    assert!(exists("Cargo.toml") && !exists("no/such.md"));
}

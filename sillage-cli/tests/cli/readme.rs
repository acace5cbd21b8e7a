//! What the README shows works.

use std::fs;
use std::path::Path;

use crate::Sandbox;

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).expect("the README")
}

/// The fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    text.split(&format!("\n```{language}\n"))
        .skip(1)
        .filter_map(|rest| rest.split_once("\n```").map(|(block, _)| format!("{block}\n")))
        .collect()
}

#[test]
fn the_readmes_task_passes_check_with_the_readmes_settings() {
    let sandbox = Sandbox::new();
    let yaml = blocks(&readme(), "yaml");
    let [task, settings] = yaml.as_slice() else {
        panic!("a task and settings: {}", yaml.len())
    };
    sandbox.write("task.yaml", task);
    sandbox.write("config.yaml", settings);
    let ended = sandbox.run(["check", "--json", "--config", "config.yaml", "task.yaml"]);
    assert_eq!(ended.code, 0, "{}", ended.stdout);
}

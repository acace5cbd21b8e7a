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
    let [task, settings, gateway] = yaml.as_slice() else {
        panic!("a task, settings and a gateway: {}", yaml.len())
    };
    sandbox.write("task.yaml", task);
    for settings in [settings, &format!("{settings}{gateway}")] {
        sandbox.write("config.yaml", settings);
        let ended = sandbox.run(["check", "--json", "--config", "config.yaml", "task.yaml"]);
        assert_eq!(ended.code, 0, "{}", ended.stdout);
    }
}

#[test]
fn the_readmes_commands_exist() {
    let sandbox = Sandbox::new();
    let readme = readme();
    let commands: Vec<&str> = readme
        .split('`')
        .flat_map(str::lines)
        .map(str::trim)
        .filter_map(|line| line.strip_prefix("sillage "))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .collect();
    assert!(commands.len() >= 10, "{commands:?}");
    for command in commands {
        let words = command.split_whitespace().chain(["--help"]);
        let ended = sandbox.run(words);
        assert_eq!(ended.code, 0, "sillage {command}: {}", ended.stderr);
    }
}

/// R24: the estimate that the README shows is what the program prints for its task.
#[test]
fn the_readmes_estimate_is_what_the_program_prints() {
    let sandbox = Sandbox::new();
    let readme = readme();
    let yaml = blocks(&readme, "yaml");
    sandbox.write("task.yaml", &yaml[0]);
    sandbox.write("config.yaml", &yaml[1]);
    let shown = blocks(&readme, "text");
    let shown = shown
        .iter()
        .find_map(|block| block.strip_prefix("$ sillage estimate task.yaml\n"));
    let ended = sandbox.run(["estimate", "task.yaml", "--config", "config.yaml"]);
    assert_eq!(Some(ended.stdout.as_str()), shown);
}

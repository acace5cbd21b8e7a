//! W1: `sillage init`.

use std::fs;

use crate::Sandbox;

#[test]
fn w1_init_writes_files_that_pass_check() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("a \"quoted\": name")).expect("a folder");
    let ended = sandbox.run(["init", "--json", "a \"quoted\": name"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.json()["written"].as_array().map(Vec::len), Some(2));
    let check = sandbox.run(["check", "--json", "a \"quoted\": name/task.yaml"]);
    assert_eq!(check.code, 0, "{}", check.stdout);
    assert_eq!(check.json()["project"]["name"], "a \"quoted\": name");
}

/// What stands in comments works once it is uncommented.
#[test]
fn w7_the_dynamic_agent_of_inits_task_passes_check() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(["init"]).code, 0);
    let task = sandbox.read("task.yaml");
    let (before, rest) = task.split_once("  # - id: port\n").expect("the dynamic agent");
    let (commented, after) = rest.split_once("\n\n").expect("what follows it");
    let uncommented = commented.replace("  #   ", "    ");
    sandbox.write(
        "task.yaml",
        format!("{before}  - id: port\n{uncommented}\n\n{after}"),
    );
    let check = sandbox.run(["check", "--json", "task.yaml"]);
    assert_eq!(check.code, 0, "{}", check.stdout);
    assert_eq!(check.json()["agents"], 4);
    assert!(!check.stdout.contains("no_plan_possible"), "{}", check.stdout);
}

#[test]
fn w1_init_overwrites_nothing_and_says_so() {
    let sandbox = Sandbox::new();
    sandbox.write("task.yaml", "mine");
    let ended = sandbox.run(["init", "--json"]);
    let name = |value: &serde_json::Value| {
        value[0]
            .as_str()
            .map(|path| path.rsplit('/').next().map(str::to_owned))
    };
    assert_eq!(ended.code, 0);
    assert_eq!(
        name(&ended.json()["kept"]).flatten().as_deref(),
        Some("task.yaml")
    );
    assert_eq!(
        name(&ended.json()["written"]).flatten().as_deref(),
        Some("project.yaml")
    );
    assert_eq!(sandbox.read("task.yaml"), "mine");
    let again = sandbox.run(["init"]);
    assert_eq!(again.code, 0);
    assert_eq!(again.stdout.matches("kept").count(), 2, "{}", again.stdout);
}

#[test]
#[cfg(unix)]
fn w1_init_does_not_write_through_a_link() {
    let sandbox = Sandbox::new();
    std::os::unix::fs::symlink(sandbox.path("elsewhere"), sandbox.path("task.yaml")).expect("a link");
    let ended = sandbox.run(["init"]);
    assert_eq!(ended.code, 0);
    assert!(!sandbox.path("elsewhere").exists());
}

//! A2: `sillage agents`.

use crate::Sandbox;

#[test]
#[cfg(unix)]
fn a2_detect_finds_what_is_on_the_path_and_prints_its_settings() {
    use std::os::unix::fs::PermissionsExt as _;

    let sandbox = Sandbox::new();
    let program = sandbox.write("bin/opencode", "#!/bin/sh\nexit 9\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("our own file");
    let answer = sandbox.run(["agents", "detect", "--json"]).json();
    let agents = answer["agents"].as_array().expect("agents");
    let found: Vec<&str> = agents
        .iter()
        .filter(|agent| !agent["program"].is_null())
        .filter_map(|agent| agent["name"].as_str())
        .collect();
    assert_eq!(found, ["opencode"]);
    let told = sandbox.run(["agents", "detect"]);
    assert_eq!(told.code, 0);
    assert!(
        told.stdout
            .contains("  - name: opencode\n    command: opencode\n    args: [acp]\n"),
        "{}",
        told.stdout
    );
    // What it prints is right as settings.
    let lines = told.stdout.split_once("\n\nagents:\n").expect("settings").1;
    sandbox.write("config.yaml", format!("agents:\n{lines}"));
    let listed = sandbox.run(["agents", "list", "--json", "--config", "config.yaml"]);
    assert_eq!(listed.code, 0, "{}", listed.stdout);
    assert_eq!(listed.json()[0]["name"], "opencode");
}

#[test]
fn a12_list_tells_models_efforts_and_accounts() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "config.yaml",
        "agents:\n  - name: claude\n    command: c\n    account: anthropic\n    models:\n      opus: { id: claude-opus, efforts: [low, high] }\n      any: {}\n",
    );
    let answer = sandbox
        .run(["agents", "list", "--json", "--config", "config.yaml"])
        .json();
    let agent = &answer[0];
    assert_eq!(agent["account"], "anthropic");
    assert_eq!(
        agent["models"]["opus"],
        serde_json::json!({ "id": "claude-opus", "efforts": ["low", "high"] })
    );
    let told = sandbox.run(["agents", "list", "--config", "config.yaml"]).stdout;
    assert!(told.contains("opus") && told.contains("low, high"), "{told}");
}

#[test]
fn a12_faulty_settings_are_told_with_their_place() {
    let sandbox = Sandbox::new();
    sandbox.write("config.yaml", "agents:\n  - name: claude\n    comand: c\n");
    let ended = sandbox.run(["agents", "list", "--json", "--config", "config.yaml"]);
    assert_eq!(ended.code, 2);
    let answer = ended.json();
    assert_eq!(answer["faults"].as_array().map(Vec::len), Some(2), "{answer}");
    assert!(
        answer.to_string().contains("\"suggestion\":\"command\""),
        "{answer}"
    );
}

#[test]
fn a12_without_settings_there_is_nothing_to_list_and_the_answer_says_what_to_do() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(["agents", "list"]);
    assert_eq!(ended.code, 0);
    assert!(ended.stdout.contains("sillage agents detect"), "{}", ended.stdout);
    let named = sandbox.run(["agents", "list", "--config", "no/such.yaml"]);
    assert_eq!(named.code, 2);
}

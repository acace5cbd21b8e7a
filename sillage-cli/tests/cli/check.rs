//! W1–W12: `sillage check`.

use crate::{Sandbox, assert_expected, cases};

const TASK: &str = "task: t\nagents:\n  - {id: a, mission: Do it., model: sonet, effort: low}\n";
const SETTINGS: &str =
    "agents:\n  - name: claude\n    command: c\n    models:\n      sonnet: { efforts: [low, high] }\n";

#[test]
fn tasks_answer_as_the_cases_say() {
    let sandbox = Sandbox::new();
    let cases = cases("tasks.json");
    assert!(cases.len() > 10);
    for case in &cases {
        let file = sandbox.write("task.yaml", case["input"].as_str().expect("a text"));
        assert_expected(
            case,
            &sandbox.run(["check".as_ref(), "--json".as_ref(), file.as_os_str()]),
        );
    }
}

#[test]
fn w11_models_are_checked_when_settings_are_given() {
    let sandbox = Sandbox::new();
    sandbox.write("task.yaml", TASK);
    assert_eq!(sandbox.run(["check", "--json", "task.yaml"]).code, 0);
    sandbox.write("config.yaml", SETTINGS);
    let ended = sandbox.run(["check", "--json", "--config", "config.yaml", "task.yaml"]);
    assert_eq!(ended.code, 2);
    let fault = &ended.json()["faults"][0];
    assert_eq!(
        (fault["code"].as_str(), fault["suggestion"].as_str()),
        (Some("unknown_model"), Some("sonnet"))
    );
    let by_variable = sandbox
        .command(["check", "--json", "task.yaml"])
        .env("SILLAGE_CONFIG", sandbox.path("config.yaml"))
        .output()
        .expect("the program runs");
    assert_eq!(by_variable.status.code(), Some(2));
}

#[test]
fn w10b_the_command_that_will_be_run_at_the_end_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("task.yaml", format!("check: make test\n{TASK}"));
    let ended = sandbox.run(["check", "task.yaml"]);
    assert!(
        ended.stdout.contains("make test, on the merged work"),
        "{}",
        ended.stdout
    );
    assert_eq!(
        sandbox.run(["check", "--json", "task.yaml"]).json()["check"],
        "make test"
    );
}

#[test]
fn r22_a_person_is_told_that_nothing_isolates_the_machine() {
    let sandbox = Sandbox::new();
    sandbox.write("task.yaml", TASK);
    let ended = sandbox.run(["check", "task.yaml"]);
    assert_eq!(ended.code, 0);
    assert!(ended.stdout.contains("isolate"), "{}", ended.stdout);
}

#[test]
fn w1_w2_the_folders_of_project_and_task_are_joined() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("p/docs")).expect("a folder");
    std::fs::create_dir_all(sandbox.path("p/work/src")).expect("a folder");
    sandbox.write("p/.sillage/project.yaml", "name: P\nfolders: { read: [docs] }\n");
    sandbox.write(
        "p/work/task.yaml",
        format!("folders: {{ write: [src, ../docs] }}\n{TASK}"),
    );
    let ended = sandbox.run(["check", "--json", "p/work/task.yaml"]);
    let answer = ended.json();
    let root = sandbox.path("p").canonicalize().expect("it is there");
    let at = |name: &str| root.join(name).to_string_lossy().into_owned();
    assert_eq!(answer["project"]["root"].as_str(), root.to_str());
    assert_eq!(
        answer["folders"]["read"],
        serde_json::json!([]),
        "docs may be written, and so read"
    );
    assert_eq!(
        answer["folders"]["write"],
        serde_json::json!([at("work/src"), at("docs")])
    );
}

#[test]
fn w3_a_missing_folder_is_named_with_its_place() {
    let sandbox = Sandbox::new();
    sandbox.write("task.yaml", format!("folders:\n  read: [., no/such]\n{TASK}"));
    let ended = sandbox.run(["check", "--json", "task.yaml"]);
    let answer = ended.json();
    let fault = &answer["faults"][0];
    assert_eq!((ended.code, &fault["path"]), (2, &"/folders/read/1".into()));
    assert_eq!(
        (fault["line"].as_u64(), fault["column"].as_u64()),
        (Some(2), Some(13))
    );
    assert!(
        fault["message"]
            .as_str()
            .is_some_and(|words| words.contains("no/such")),
        "{answer}"
    );
    let told = sandbox.run(["check", "task.yaml"]).stdout;
    assert!(told.contains("task.yaml:2:13: error: "), "{told}");
}

#[test]
fn w11_folders_that_a_run_would_refuse_are_told_with_the_other_faults() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path(".git")).expect("a folder");
    let faulty = "tsk: t\nfolders: { write: [nope, .git], read: [zzz] }\ncheck: \"\"\nagents:\n  - {id: a, mission: Do it., model: m}\n";
    sandbox.write("task.yaml", faulty);
    let ended = sandbox.run(["check", "--json", "task.yaml"]);
    let answer = ended.json();
    let faults = answer["faults"].as_array().expect("faults");
    let told: Vec<(&str, &str)> = faults
        .iter()
        .filter_map(|fault| Some((fault["code"].as_str()?, fault["path"].as_str()?)))
        .collect();
    for expected in [
        ("unknown_field", "/tsk"),
        ("unusable_folder", "/folders/write/0"),
        ("unusable_folder", "/folders/write/1"),
        ("unusable_folder", "/folders/read/0"),
        ("bad_value", "/check"),
        ("missing_field", "/agents/0"),
    ] {
        assert!(told.contains(&expected), "{expected:?}: {answer}");
    }
    assert_eq!((ended.code, &answer["ok"]), (2, &false.into()));
    // A run refuses the same.
    let right =
        "task: t\nfolders: { write: [nope] }\nagents:\n  - {id: a, mission: Do it., model: m, effort: e}\n";
    sandbox.write("task.yaml", right);
    assert_eq!(sandbox.run(["check", "task.yaml"]).code, 2);
}

#[test]
fn w3_a_folder_of_the_project_that_is_missing_is_told_with_the_file_that_names_it() {
    let sandbox = Sandbox::new();
    sandbox.write(".sillage/project.yaml", "folders: { read: [gone] }\n");
    sandbox.write("task.yaml", TASK);
    let ended = sandbox.run(["check", "task.yaml"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stdout.contains("gone") && ended.stdout.contains("project.yaml names"),
        "{}",
        ended.stdout
    );
}

#[test]
fn w1_a_faulty_project_file_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write(".sillage/project.yaml", "nmae: P\n");
    sandbox.write("task.yaml", TASK);
    let ended = sandbox.run(["check", "task.yaml"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stdout.contains("project.yaml:1:1: error: "),
        "{}",
        ended.stdout
    );
}

#[test]
fn w12_a_text_that_is_not_utf8_or_too_large_is_a_fault() {
    let sandbox = Sandbox::new();
    sandbox.write("task.yaml", b"task: t\nagents: [\xff]\n");
    let ended = sandbox.run(["check", "--json", "task.yaml"]);
    assert_eq!(
        (ended.code, ended.json()["faults"][0]["code"].as_str()),
        (2, Some("syntax"))
    );
    sandbox.write("task.yaml", "#".repeat(4 * 1024 * 1024 + 1));
    let ended = sandbox.run(["check", "--json", "task.yaml"]);
    assert_eq!(
        (ended.code, ended.json()["faults"][0]["code"].as_str()),
        (2, Some("too_large"))
    );
}

#[test]
fn a_file_that_is_not_there_is_a_mistake() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(["check", "no/such.yaml"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.starts_with("error: cannot read no/such.yaml: "),
        "{}",
        ended.stderr
    );
}

#[test]
fn w7_rules_that_no_plan_can_keep_are_warned_of() {
    let sandbox = Sandbox::new();
    let task = |effort: &str| {
        format!(
            "task: t\nagents:\n  - id: build\n    kind: dynamic\n    mission: Build it.\n    model: opus\n    effort: {effort}\n    \
             sub_agents:\n      max: 3\n      delegate: [mission, model]\n      allow: [{{ model: sonnet, efforts: [low] }}]\n"
        )
    };
    sandbox.write("task.yaml", task("high"));
    let answer = sandbox.run(["check", "--json", "task.yaml"]).json();
    let warning = &answer["warnings"][0];
    assert_eq!(
        (
            warning["code"].as_str(),
            warning["line"].as_u64(),
            warning["column"].as_u64()
        ),
        (Some("no_plan_possible"), Some(11), Some(14)),
        "{answer}"
    );
    sandbox.write("task.yaml", task("low"));
    let ended = sandbox.run(["check", "--json", "task.yaml"]);
    assert!(!ended.stdout.contains("no_plan_possible"), "{}", ended.stdout);
}

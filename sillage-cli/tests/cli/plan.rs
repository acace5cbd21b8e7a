//! W19–W21: `sillage plan check`.

use std::ffi::OsStr;

use serde_json::{Value, json};

use crate::{Ended, Sandbox, assert_expected, cases};

const TASK: &str = "\
task: t
agents:
  - id: build
    kind: dynamic
    mission: Build it.
    model: opus
    effort: high
    sub_agents: { max: 8, delegate: [mission, model, effort], allow: [ { model: opus, efforts: [high] } ] }
  - { id: alone, mission: Do it., model: opus, effort: high }
";

const PLAN: &str = r#"{"units": [{"id": "u1"}, {"id": "u2"}], "sub_agents": [
  {"id": "api", "units": ["u1"], "mission": "Do it."},
  {"id": "docs", "units": ["u2"], "mission": "Do it.", "after": ["api"]}]}"#;

fn check(sandbox: &Sandbox, task: &str, agent: &str, plan: &str) -> Ended {
    sandbox.run(["plan", "check", "--json", "--task", task, "--agent", agent, plan])
}

#[test]
fn plans_answer_as_the_cases_say() {
    let sandbox = Sandbox::new();
    let cases = cases("plans.json");
    assert!(cases.len() >= 18);
    for case in &cases {
        let input = &case["input"];
        sandbox.write("task.json", input["task"].to_string());
        sandbox.write("task.yaml", input["task"].to_string());
        let plan = input["plan"].as_str().expect("a text");
        sandbox.write("answer.txt", plan);
        let agent = input["agent"].as_str().expect("an id");
        assert_expected(case, &check(&sandbox, "task.json", agent, "answer.txt"));
        let arguments = [
            "plan",
            "check",
            "--json",
            "--task",
            "task.yaml",
            "--agent",
            agent,
            "-",
        ];
        assert_expected(case, &sandbox.run_with_input(arguments, plan));
    }
}

#[test]
fn w20_a_right_plan_answers_with_every_field_resolved() {
    let sandbox = Sandbox::new();
    sandbox.write("task.yaml", TASK);
    sandbox.write("plan.json", PLAN);
    let ended = check(&sandbox, "task.yaml", "build", "plan.json");
    assert_eq!(ended.code, 0, "{}", ended.stdout);
    let answer = ended.json();
    assert_eq!(answer["ok"], true);
    assert_eq!(answer["units"][1], json!({ "id": "u2", "title": "u2" }));
    let docs = json!({ "id": "docs", "units": ["u2"], "mission": "Do it.", "resources": [], "model": "opus",
        "effort": "high", "after": ["api"] });
    assert_eq!(answer["sub_agents"][1], docs);
    let told = sandbox.run([
        "plan",
        "check",
        "--task",
        "task.yaml",
        "--agent",
        "build",
        "plan.json",
    ]);
    assert_eq!(
        told.stdout,
        "ok: 2 units for 2 sub-agents\n  api: u1 (opus, high)\n  docs: u2 (opus, high, after api)\n"
    );
}

#[test]
fn w20_a_person_is_told_the_place_and_the_fault() {
    let sandbox = Sandbox::new();
    sandbox.write("task.yaml", TASK);
    sandbox.write(
        "plan.txt",
        format!("Here:\n{}", PLAN.replace("[\"u2\"]", "[\"u22\"]")),
    );
    let ended = sandbox.run([
        "plan",
        "check",
        "--task",
        "task.yaml",
        "--agent",
        "build",
        "plan.txt",
    ]);
    assert_eq!(ended.code, 2);
    assert!(
        ended
            .stdout
            .contains("plan.txt:4:28: error: there is no unit `u22` in this plan (did you mean `u2`?)"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("no sub-agent has the unit `u2`"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.ends_with("2 faults\n"), "{}", ended.stdout);
}

#[test]
fn w20_what_is_wrong_with_the_question_is_no_fault_of_the_plan() {
    let sandbox = Sandbox::new();
    sandbox.write("task.yaml", TASK);
    sandbox.write("plan.json", PLAN);
    let unknown = check(&sandbox, "task.yaml", "biuld", "plan.json");
    let error = &unknown.json()["error"];
    assert_eq!((unknown.code, unknown.json()["faults"].is_null()), (2, true));
    assert!(error.to_string().contains("did you mean `build`?"), "{error}");
    let alone = check(&sandbox, "task.yaml", "alone", "plan.json");
    assert_eq!(
        (alone.code, alone.json()["faults"][0]["code"].as_str()),
        (2, Some("contradiction"))
    );
    assert_eq!(check(&sandbox, "-", "build", "-").code, 2);
    assert_eq!(check(&sandbox, "task.yaml", "build", "missing.json").code, 2);
    sandbox.write("faulty.yaml", TASK.replace("max: 8", "max: 0"));
    let faulty = check(&sandbox, "faulty.yaml", "build", "plan.json").json();
    assert_eq!(faulty["file"], "faulty.yaml");
    assert_eq!(faulty["faults"][0]["code"], "bad_limit");
}

#[test]
fn w19_the_schema_of_a_plan_is_printed() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run([OsStr::new("schema"), OsStr::new("plan")]);
    let schema: Value = ended.json();
    assert_eq!(schema["title"], "Sillage plan");
}

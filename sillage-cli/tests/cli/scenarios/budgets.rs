//! Ceilings of a run and failures that stop the rest, through the program.

use serde_json::Value;
use sillage::core::run::{Event, MessagePurpose};

use super::{Stage, eventually};

/// Alpha uses 700 tokens that count and 9,000 that do not. Beta works until the file `go` is there, and its first report
/// is wrong. Gamma follows Alpha.
const SPENDING: &str = r#"
prompts:
  - { match: Gamma, times: always, steps: [report: { summary: Gamma is done. }] }
  - { match: Alpha, times: always, steps: [turn_usage: { input: 600, output: 100, cached_read: 9000 }, usage: { used: 1, size: 2, cost: { amount: 5.25, currency: EUR } }, report: { summary: Alpha is done. }] }
  - { match: Beta, steps: [wait_for: { path: "{{script_dir}}/go", timeout_ms: 60000 }, say: no report] }
  - { times: always, steps: [turn_usage: { input: 600, output: 100, cached_read: 9000 }, usage: { used: 1, size: 2, cost: { amount: 5.25, currency: EUR } }, report: { summary: It is done. }] }
"#;

fn spending() -> Stage {
    let stage = Stage::without_repository(SPENDING);
    let agents = [
        "id: alpha, mission: Alpha",
        "id: beta, mission: Beta",
        "id: gamma, mission: Gamma",
    ];
    stage.task("", &agents, &["alpha -> gamma"]);
    stage
}

fn ceiling(told: &Value) -> &Value {
    &told["budget"]["ceilings"][0]
}

#[test]
fn an_enforced_ceiling_stops_new_sessions_and_not_the_work_under_way() {
    let stage = spending();
    let running = stage.start(&["run", "task.yaml", "--json", "--yes", "--max-tokens", "700"]);
    // Alpha is done and the ceiling is reached, while Beta is at work.
    eventually("the ceiling", || {
        let status = stage.start(&["status", "--json"]).wait();
        status.code == 0 && ceiling(&status.json()["run"])["reached"] == true
    });
    stage.write("go", "");
    let outcome = running.wait().expect(3).outcome();
    assert_eq!(outcome["state"], "partial");
    let log = stage.log();
    assert_eq!(
        log.words(),
        [("alpha", "complete"), ("beta", "complete"), ("gamma", "not_run")]
    );
    let at = |is: fn(&Event) -> bool| {
        log.facts
            .iter()
            .rposition(|fact| is(&fact.event))
            .expect("such a fact")
    };
    let reached = at(|event| matches!(event, Event::BudgetReached { .. }));
    assert!(at(|event| matches!(event, Event::SessionPlanned { .. })) < reached);
    let correction = at(|event| {
        matches!(
            event,
            Event::MessagePlanned {
                purpose: MessagePurpose::Correction,
                ..
            }
        )
    });
    assert!(reached < correction, "what is under way goes on");
    assert_eq!(log.count(|event| matches!(event, Event::BudgetReached { .. })), 1);
    assert!(stage.prompts("Gamma").is_empty());
    // Why, for people and for programs.
    let recap = stage.start(&["recap", "--json"]).wait().expect(0).json();
    let recap = if recap.get("recap").is_some() {
        &recap["recap"]
    } else {
        &recap
    };
    assert_eq!(recap["steps"][2]["not_run"]["because"], "over_budget");
    assert_eq!(
        recap["steps"][2]["not_run"]["ceilings"],
        serde_json::json!(["tokens"])
    );
    let used = ceiling(&recap["result"]);
    assert_eq!((&used["used"], &used["limit"]), (&1400.into(), &700.into()));
    let journal = stage.start(&["journal"]).wait().expect(0).stdout;
    assert!(
        journal.contains("the ceiling of 700 tokens is reached, 700 used"),
        "{journal}"
    );
    // A resume under the same ceiling is refused with the way out; under a higher one it does the rest.
    let refused = stage.start(&["resume"]).wait().expect(2);
    assert!(
        refused
            .stderr
            .contains("the ceiling of 700 tokens is reached, 1,400 used"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("--max-tokens 2100"), "{}", refused.stderr);
    let outcome = stage
        .start(&["resume", "--json", "--max-tokens", "10k"])
        .wait()
        .expect(0)
        .outcome();
    assert_eq!(outcome["state"], "complete");
    assert_eq!(stage.prompts("Gamma").len(), 1);
    stage.assert_no_process();
}

#[test]
fn audit_only_tells_before_launch_and_after() {
    let stage = spending();
    stage.write("go", "");
    let ended = stage
        .start(&[
            "run",
            "task.yaml",
            "--yes",
            "--max-tokens",
            "700",
            "--budget",
            "audit",
        ])
        .wait()
        .expect(0);
    for said in [
        "budget     at most 700 tokens; reaching it is told, and changes nothing",
        "agents that tell no tokens are not held",
        "budget tokens 1,400 of 700 used, reached (700 over), not counted: 1 agent that told no tokens (told only)",
    ] {
        let flat = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&said), "{said}: {}", ended.stdout);
    }
}

#[test]
fn a_cost_in_another_currency_is_warned_of_and_not_counted() {
    let stage = spending();
    stage.write("go", "");
    let mut settings: Value = serde_json::from_str(&stage.sandbox.read("config.yaml")).expect("JSON");
    settings["prices"] = serde_json::json!({ "scripted": { "input": 1, "currency": "EUR" } });
    stage.write("config.yaml", settings.to_string());
    let ended = stage
        .start(&["run", "task.yaml", "--yes", "--max-cost", "1USD"])
        .wait()
        .expect(0);
    let flat = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "model scripted is priced in EUR: a ceiling in USD cannot be held for it",
        "budget cost 0.00 of 1.00 USD used, not counted: 10.50 EUR",
    ] {
        assert!(flat.contains(said), "{said}: {}", ended.stdout);
    }
}

#[test]
fn ceilings_of_the_settings_hold_unless_the_command_says_otherwise() {
    let stage = spending();
    stage.write("go", "");
    let mut settings: Value = serde_json::from_str(&stage.sandbox.read("config.yaml")).expect("JSON");
    settings["limits"] = serde_json::json!({ "budget": { "cost": "5EUR" } });
    stage.write("config.yaml", settings.to_string());
    assert_eq!(stage.run().expect(3).outcome()["state"], "partial");
    let lifted = stage.start(&["run", "task.yaml", "--json", "--yes", "--max-cost", "none"]);
    assert_eq!(lifted.wait().expect(0).outcome()["state"], "complete");
    settings["limits"] = serde_json::json!({ "budget": { "cost": "5" } });
    stage.write("config.yaml", settings.to_string());
    let faulty = stage.start(&["run", "task.yaml", "--yes"]).wait().expect(2);
    let said = format!("{}{}", faulty.stdout, faulty.stderr);
    assert!(said.contains("code of its currency"), "{said}");
}

#[test]
fn bad_ceilings_are_wrong_usage() {
    let stage = spending();
    for (flag, value, said) in [
        ("--max-tokens", "lots", "`500k` or `2M`"),
        ("--max-tokens", "0", "more than zero"),
        ("--max-cost", "5", "`5USD` or `2.50 EUR`"),
        ("--max-cost", "5usd", "`5USD` or `2.50 EUR`"),
        ("--max-time", "soon", "`2h` or `1h30m`"),
        ("--budget", "strict", "audit"),
    ] {
        let ended = stage
            .start(&["run", "task.yaml", "--yes", flag, value])
            .wait()
            .expect(2);
        assert!(ended.stderr.contains(said), "{flag} {value}: {}", ended.stderr);
    }
    assert!(!stage.path("record").exists(), "nothing was started");
}

#[test]
fn fail_fast_begins_nothing_more_and_a_resume_does_the_rest() {
    let stage = Stage::without_repository(
        r#"
prompts:
  - { match: Gamma, times: always, steps: [report: { summary: Gamma is done. }] }
  - { match: Alpha, times: always, if_exists: "{{script_dir}}/mended", steps: [report: { summary: Alpha is done. }] }
  - { match: Alpha, times: always, steps: [touch: "{{script_dir}}/failed", error: { code: -32602, message: the model is not known }] }
  - { match: Beta, steps: [wait_for: { path: "{{script_dir}}/go", timeout_ms: 60000 }, report: { summary: Beta is done. }] }
"#,
    );
    let agents = [
        "id: alpha, mission: Alpha",
        "id: beta, mission: Beta",
        "id: gamma, mission: Gamma",
    ];
    stage.task("", &agents, &["beta -> gamma"]);
    let running = stage.start(&["run", "task.yaml", "--json", "--yes", "--fail-fast"]);
    eventually("Alpha's failure", || {
        let status = stage.start(&["status", "--json"]).wait();
        status.code == 0 && status.json()["run"]["steps"][0]["state"] == "failed"
    });
    stage.write("go", "");
    assert_eq!(running.wait().expect(1).outcome()["state"], "failed");
    let status = stage.status();
    let gamma = &status["run"]["steps"][2];
    assert_eq!(
        status["run"]["steps"][1]["state"], "complete",
        "what was at work finishes"
    );
    assert_eq!(
        (&gamma["state"], &gamma["not_run"]["because"]),
        (&"not_run".into(), &"failed_fast".into())
    );
    assert_eq!(gamma["not_run"]["by"], "alpha");
    stage.write("mended", "");
    assert_eq!(stage.resume().expect(0).outcome()["state"], "complete");
}

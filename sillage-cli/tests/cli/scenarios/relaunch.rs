//! What changed in a task, bringing an executed definition back, and a run that takes what is upstream from another.

use std::fs;

use sillage::core::run::Event;

use super::Stage;

/// Four agents in a chain; the fourth fails as long as its mission is the first one.
const CHAIN: &str = r#"
prompts:
  - { match: Mission of Delta, times: always, steps: [error: { code: -32602, message: the model is not known }] }
  - { match: Better mission, times: always, steps: [write: { path: delta.txt, content: "delta\n" }, report: { summary: Delta is done. }] }
  - { match: Mission of Gamma, times: always, steps: [write: { path: gamma.txt, content: "gamma\n" }, report: { summary: Gamma is done. }] }
  - { match: Mission of Beta, times: always, steps: [write: { path: beta.txt, content: "beta\n" }, report: { summary: Beta is done. }] }
  - { match: Mission of Alpha, times: always, steps: [write: { path: alpha.txt, content: "alpha\n" }, report: { summary: Alpha is done. }] }
"#;

const AGENTS: [&str; 4] = [
    "id: alpha, mission: Mission of Alpha, worktree: always",
    "id: beta, mission: Mission of Beta, worktree: always",
    "id: gamma, mission: Mission of Gamma, worktree: always",
    "id: delta, mission: Mission of Delta, worktree: always",
];

const LINKS: [&str; 3] = ["alpha -> beta", "beta -> gamma", "gamma -> delta"];

fn chain() -> Stage {
    let stage = Stage::new(CHAIN);
    stage.task("", &AGENTS, &LINKS);
    stage
}

fn edit(stage: &Stage, from: &str, to: &str) -> String {
    let text = stage.sandbox.read("work/task.yaml");
    assert!(text.contains(from));
    let edited = text.replace(from, to);
    stage.write("work/task.yaml", &edited);
    edited
}

#[test]
fn r9_a_relaunch_from_the_fourth_agent_keeps_the_first_three_and_records_the_change() {
    let stage = chain();
    stage.run().expect(1);
    let first = stage.log();
    let run = first.run.id().to_string();
    edit(&stage, "Mission of Delta", "Better mission");
    let told = stage.start(&["diff", &run]).wait().expect(0).stdout;
    assert!(
        told.contains("agent delta") && told.contains("[-Mission-]{+Better+} [-of Delta-]{+mission+}"),
        "{told}"
    );
    let ended = stage
        .start(&["relaunch", &run, "--from", "delta", "--yes", "--json"])
        .wait()
        .expect(0);
    assert_eq!(ended.outcome()["state"], "complete");
    let second = stage.log();
    let relaunch = second.run.definition().relaunch_of.clone().expect("a relaunch");
    assert_eq!(
        (relaunch.run.to_string(), relaunch.from),
        (run.clone(), "delta".to_owned())
    );
    assert_eq!(relaunch.changes, ["delta: mission changed"]);
    assert_eq!(second.count(|event| matches!(event, Event::StepTaken { .. })), 3);
    assert_eq!(
        second.count(|event| matches!(event, Event::SessionPlanned { .. })),
        1
    );
    for agent in ["alpha", "beta", "gamma"] {
        // The same reports, and the same commits are reachable.
        assert_eq!(second.step(agent).report(), first.step(agent).report());
        let commit = first.step(agent).work().and_then(|work| work.committed.clone());
        let commit = commit.expect("its work").tip;
        stage.git(&[
            "merge-base",
            "--is-ancestor",
            &commit,
            &second.run.definition().integration_branch(),
        ]);
        assert!(second.step(agent).usage().is_unknown(), "it was paid for before");
    }
    let asked = stage.prompts("Better mission");
    assert!(
        asked.len() == 1 && asked[0].contains("Gamma is done."),
        "with the report from upstream: {asked:#?}"
    );
    let branch = second.run.definition().integration_branch();
    let files = stage.git(&["ls-tree", "--name-only", &branch]);
    for file in ["alpha.txt", "beta.txt", "gamma.txt", "delta.txt"] {
        assert!(files.contains(file), "{files}");
    }
    let second = second.run.id().to_string();
    for command in ["status", "recap"] {
        let told = stage.start(&[command, &second]).wait().expect(0).stdout;
        assert!(
            told.contains(&format!("taken from run {run}")) && told.contains("delta: mission changed"),
            "{command}: {told}"
        );
    }
    let told = stage
        .start(&["diff", &run, &second, "--json"])
        .wait()
        .expect(0)
        .json();
    assert_eq!(told["agents"][0]["fields"][0]["field"], "mission");
    stage.assert_no_process();
}

#[test]
fn r13_a_relaunch_after_a_retry_takes_the_newest_work_and_none_of_what_runs_again() {
    let script = r#"
prompts:
  - { match: Mission of Beta, if_exists: "{{script_dir}}/third", times: always, steps: [report: { summary: Beta is done. }] }
  - { match: Mission of Beta, times: always, steps: [write: { path: beta.txt, content: "beta\n" }, report: { summary: Beta is done. }] }
  - { match: Mission of Alpha, if_exists: "{{script_dir}}/second", times: always, steps: [write: { path: newer.txt, content: "alpha\n" }, report: { summary: Alpha is done again. }] }
  - { match: Mission of Alpha, times: always, steps: [write: { path: alpha.txt, content: "alpha\n" }, report: { summary: Alpha is done. }] }
"#;
    let stage = Stage::new(script);
    stage.task("", &AGENTS[..2], &LINKS[..1]);
    stage.run().expect(0);
    let run = stage.log().run.id().to_string();
    stage.write("second", "");
    stage.start(&["retry", &run, "alpha", "--again"]).wait().expect(0);
    stage.write("third", "");
    stage
        .start(&["relaunch", &run, "--from", "beta", "--yes"])
        .wait()
        .expect(0);
    let second = stage.log();
    assert_ne!(second.run.id().to_string(), run);
    let branch = second.run.definition().integration_branch();
    let files = stage.git(&["ls-tree", "--name-only", &branch]);
    assert!(
        files.contains("alpha.txt") && files.contains("newer.txt"),
        "{files}"
    );
    assert!(
        !files.contains("beta.txt"),
        "beta has not written it this time: {files}"
    );
    let asked = stage.prompts("Mission of Beta");
    assert!(
        asked
            .last()
            .is_some_and(|prompt| prompt.contains("Alpha is done again."))
    );
    stage.assert_no_process();
}

#[test]
fn r13_a_relaunch_keeps_the_ceilings_of_the_run_that_it_takes_from_and_says_which_it_changes() {
    let stage = chain();
    stage
        .start(&[
            "run",
            "task.yaml",
            "--yes",
            "--max-tokens",
            "7M",
            "--max-cost",
            "5USD",
        ])
        .wait()
        .expect(1);
    let run = stage.log().run.id().to_string();
    edit(&stage, "Mission of Delta", "Better mission");
    let told = stage
        .start(&["relaunch", &run, "--from", "delta", "--yes", "--max-cost", "4EUR"])
        .wait()
        .expect(0);
    let told = format!("{}{}", told.stdout, told.stderr);
    assert!(
        told.contains("the ceiling of 5.00 USD is replaced by one of 4.00 EUR"),
        "{told}"
    );
    let log = stage.log();
    let budget = log.run.budget().expect("its ceilings");
    assert_eq!(budget.to_string(), "at most 7,000,000 tokens and 4.00 EUR");
}

#[test]
fn r13_a_relaunch_is_refused_with_every_reason_and_nothing_is_started() {
    let stage = chain();
    stage.run().expect(1);
    let run = stage.log().run.id().to_string();
    edit(
        &stage,
        "Mission of Beta, worktree: always",
        "Another, worktree: always",
    );
    let refused = stage
        .start(&["relaunch", &run, "--from", "delta", "--yes"])
        .wait()
        .expect(2);
    assert!(
        refused.stderr.contains("beta differs: mission changed"),
        "{}",
        refused.stderr
    );
    let wrong = stage
        .start(&["relaunch", &run, "--from", "detla", "--yes"])
        .wait()
        .expect(2);
    assert!(wrong.stderr.contains("did you mean `delta`?"), "{}", wrong.stderr);
    assert_eq!(stage.logs().len(), 1, "nothing was launched");
}

#[test]
fn r8_an_edit_while_it_runs_changes_nothing_in_the_run_and_restore_brings_the_old_version_back_as_the_newest()
{
    let script = r#"
prompts:
  - { match: Mission of Beta, times: always, steps: [report: { summary: Beta is done. }] }
  - { match: Mission of Alpha, times: always, steps: [touch: "{{script_dir}}/at_work", wait_for: "{{script_dir}}/go_on", report: { summary: Alpha is done. }] }
"#;
    let stage = Stage::new(script);
    stage.task("", &AGENTS[..2], &LINKS[..1]);
    let original = stage.sandbox.read("work/task.yaml");
    let running = stage.start_run();
    stage.appears("at_work");
    let edited = edit(&stage, "Mission of Beta", "Something else");
    // While it is driven: by the socket.
    let run = stage.status()["run"]["run"].as_str().expect("a run").to_owned();
    let told = stage.start(&["diff", &run, "--json"]).wait().expect(0).json();
    assert_eq!(
        (told["same"].as_bool(), told["agents"][0]["agent"].as_str()),
        (Some(false), Some("beta"))
    );
    stage.write("go_on", "");
    running.wait().expect(0);
    assert_eq!(stage.prompts("Mission of Beta").len(), 1, "the run is unaffected");
    // The edited task is run as well, so that it is the newest version.
    stage.write("go_on", "");
    stage.script("prompts:\n  - { times: always, steps: [report: { summary: Done. }] }\n");
    stage.run().expect(0);
    let told = stage.start(&["restore", &run, "--json"]).wait().expect(0).json();
    assert_eq!(
        (told["version"].as_u64(), told["newest"].as_u64()),
        (Some(1), Some(3))
    );
    assert_eq!(stage.sandbox.read("work/task.yaml"), original, "byte for byte");
    let copy = told["copy"].as_str().expect("a copy");
    assert_eq!(fs::read_to_string(copy).expect("the copy"), edited);
    // Again: nothing is done. Elsewhere: only where nothing is.
    let told = stage.start(&["restore", &run, "--json"]).wait().expect(0).json();
    assert_eq!(
        (told["written"].as_bool(), told["newest"].as_u64()),
        (Some(false), Some(3))
    );
    stage
        .start(&["restore", &run, "--output", "old.yaml"])
        .wait()
        .expect(0);
    assert_eq!(stage.sandbox.read("work/old.yaml"), original);
    for named in ["old.yaml", "nowhere/old.yaml", "old.yaml/old.yaml", "."] {
        stage
            .start(&["restore", &run, "--output", named])
            .wait()
            .expect(2);
    }
    stage.assert_no_process();
}

#[test]
fn r10_after_a_resume_messages_usage_and_waits_are_still_there() {
    // What is told first costs tokens and is no report; then the provider is overloaded once, and then it refuses.
    let script = r#"
prompts:
  - { if_exists: "{{script_dir}}/mended", times: always, steps: [report: { summary: Alpha is done. }] }
  - { steps: [turn_usage: { input: 100, output: 20 }, usage: { used: 30, size: 1000, cost: { amount: 1.5, currency: EUR } }, say: not yet] }
  - { steps: [error: { code: 529, message: overloaded }] }
  - { times: always, steps: [error: { code: -32602, message: the model is not known }] }
"#;
    let stage = Stage::new(script);
    stage.setting("waits", "first", "1s");
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    stage.run().expect(1);
    let before = stage.log();
    let run = before.run.id().to_string();
    let waited = |log: &super::stage::Log| log.step("alpha").ledger().map(|told| (told.waits, told.waited));
    let waits = waited(&before).expect("a wait");
    assert!(waits.0 == 1 && !waits.1.is_zero(), "{waits:?}");
    let of = |command: &str| stage.start(&[command, &run, "--json"]).wait().expect(0).json();
    let recap_before = of("recap");
    stage.write("mended", "");
    stage.resume().expect(0);
    let after = stage.log();
    assert_eq!(
        after.facts[..before.facts.len()],
        before.facts[..],
        "nothing is rewritten"
    );
    assert_eq!(waited(&after), Some(waits));
    let usage = after.step("alpha").usage();
    assert_eq!(
        (usage.input_tokens, usage.output_tokens, usage.cost_micros),
        (Some(100), Some(20), Some(1_500_000))
    );
    let (status, recap) = (of("status"), of("recap"));
    let told = &status["run"]["steps"][0];
    for (told, key) in [
        (told, "usage"),
        (told, "waited_ms"),
        (&recap["steps"][0], "usage"),
    ] {
        assert_eq!(
            told[key], recap_before["steps"][0][key],
            "{key}: {status} {recap}"
        );
    }
    for key in ["waits", "waited_ms"] {
        assert_eq!(
            recap["steps"][0][key], recap_before["steps"][0][key],
            "{key}: {recap}"
        );
    }
    assert!(recap["steps"][0]["usage"].to_string().contains("100"), "{recap}");
    let exchanges = of("exchanges");
    assert_eq!(
        exchanges["exchanges"].as_array().map(Vec::len),
        Some(4),
        "{exchanges}"
    );
    let journal = stage.start(&["journal", &run]).wait().expect(0).stdout;
    for words in ["overloaded", "the model is not known", "a resume was asked for"] {
        assert!(journal.contains(words), "{words} is missing in {journal}");
    }
    stage.assert_no_process();
}

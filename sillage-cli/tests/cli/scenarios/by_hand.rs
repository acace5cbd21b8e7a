//! What people ask of one step: to be tried again, to be left out (W18).

use sillage::core::run::{Event, RunEnd};

use super::{Stage, eventually};

/// Alpha is blocked until the file `mended` is there; Sigma reads it. Messages quote the reports from upstream, so what
/// is downstream is matched first.
const BLOCKED: &str = r#"
prompts:
  - { match: Mission of Sigma, times: always, steps: [write: { path: sigma.txt, content: "{{session}}\n" }, report: { summary: Sigma is done. }] }
  - { match: Mission of Alpha, times: always, if_exists: "{{script_dir}}/mended", steps: [write: { path: alpha.txt, content: "alpha\n" }, report: { summary: Alpha is done. }] }
  - { match: Mission of Alpha, times: always, steps: [report: { outcome: blocked, summary: No key., blockers: [a key] }] }
"#;

fn blocked(script: &str) -> Stage {
    let stage = Stage::new(script);
    let agents = [
        "id: alpha, mission: Mission of Alpha, worktree: always",
        "id: sigma, mission: Mission of Sigma, worktree: always",
    ];
    stage.task("", &agents, &["alpha -> sigma"]);
    stage
}

fn newest(stage: &Stage) -> String {
    stage.log().run.id().to_string()
}

#[test]
fn r3_who_ran_on_nothing_runs_again_with_the_report_once_resume_has_run_what_was_skipped() {
    let stage = blocked(BLOCKED);
    let before = stage.checkout();
    stage.run().expect(4);
    let run = newest(&stage);
    let ended = stage.start(&["skip", &run, "alpha", "--json"]).wait().expect(3);
    assert_eq!(ended.outcome()["state"], "partial");
    assert_eq!(stage.log().words(), [("alpha", "not_run"), ("sigma", "complete")]);
    let told = stage.prompts("Mission of Sigma");
    assert!(
        told.len() == 1 && told[0].contains("A person skipped these"),
        "{told:#?}"
    );
    stage.write("mended", "");
    let outcome = stage
        .start(&["resume", &run, "--json"])
        .wait()
        .expect(0)
        .outcome();
    assert_eq!(outcome["state"], "complete");
    let told = stage.prompts("Mission of Sigma");
    assert_eq!(told.len(), 2);
    assert!(
        told[1].contains("Alpha is done.") && told[1].contains("what `alpha` hands over is another now"),
        "{}",
        told[1]
    );
    let branch = outcome["branch"].as_str().expect("a branch");
    let files = stage.git(&["ls-tree", "--name-only", branch]);
    assert!(
        files.contains("alpha.txt") && files.contains("sigma.txt"),
        "{files}"
    );
    // R10: what came before is still there.
    let log = stage.log();
    assert_eq!(log.count(|event| matches!(event, Event::StepSkipped { .. })), 1);
    assert_eq!(log.count(|event| matches!(event, Event::Answered { .. })), 4);
    assert_eq!(stage.checkout(), before);
    stage.assert_no_process();
}

#[test]
fn w18_a_retry_of_a_run_that_is_over_runs_that_step_and_what_follows_only() {
    let stage = blocked(BLOCKED);
    stage.run().expect(4);
    let run = newest(&stage);
    stage.write("mended", "");
    stage.start(&["retry", &run, "alpha", "--json"]).wait().expect(0);
    let log = stage.log();
    assert_eq!(log.words(), [("alpha", "complete"), ("sigma", "complete")]);
    assert_eq!(log.count(|event| matches!(event, Event::ResumeAsked)), 0);
    // Done again by insistence only, from what is merged by now.
    let refused = stage.start(&["retry", &run, "alpha"]).wait().expect(2);
    assert!(refused.stderr.contains("--again"), "{}", refused.stderr);
    stage
        .start(&["retry", &run, "alpha", "--again", "--json"])
        .wait()
        .expect(0);
    let log = stage.log();
    assert_eq!(log.run.end(), Some(RunEnd::Complete));
    assert_eq!(stage.prompts("Mission of Sigma").len(), 2);
    let journal = stage.start(&["journal", &run]).wait().expect(0).stdout;
    assert!(
        journal.contains("is taken up again from its start, for alpha is"),
        "{journal}"
    );
    stage.assert_no_process();
}

#[test]
fn w18_a_step_at_work_is_skipped_by_another_process_and_what_follows_runs() {
    let script = r#"
prompts:
  - { match: Mission of Sigma, steps: [report: { summary: Sigma is done. }] }
  - { match: Mission of Alpha, steps: [write: { path: half.txt, content: "half\n" }, touch: "{{script_dir}}/at_work", silent: until_cancelled] }
"#;
    let stage = blocked(script);
    let running = stage.start_run();
    stage.appears("at_work");
    let status = stage.status();
    let run = status["run"]["run"].as_str().expect("a run").to_owned();
    let told = stage
        .start(&["skip", &run, "alpha", "--json"])
        .wait()
        .expect(0)
        .json();
    assert_eq!(
        (told["ok"].as_bool(), told["command"].as_str()),
        (Some(true), Some("skip"))
    );
    let outcome = running.wait().expect(3).outcome();
    assert_eq!(outcome["state"], "partial");
    let log = stage.log();
    assert_eq!(log.words(), [("alpha", "not_run"), ("sigma", "complete")]);
    let work = log.step("alpha").work().expect("it had a worktree");
    assert!(work.committed.is_some() && !work.merged, "kept apart");
    stage.assert_no_process();
}

#[test]
fn w18_a_wait_is_ended_by_a_retry_and_who_means_nobody_is_told_whom_they_may_mean() {
    let script = r#"
prompts:
  - { match: Mission of Sigma, steps: [report: { summary: Sigma is done. }] }
  - { match: Mission of Alpha, steps: [error: { code: -32603, message: "529 overloaded" }] }
  - { match: /interrupted|Alpha/, times: always, steps: [report: { summary: Alpha is done. }] }
"#;
    let stage = blocked(script);
    let running = stage.start_run();
    let mut run = String::new();
    eventually("alpha waits", || {
        let told = stage.start(&["status", "--json"]).wait();
        if told.code != 0 {
            return false;
        }
        let status = told.json();
        run = status["run"]["run"].as_str().unwrap_or_default().to_owned();
        status["run"]["steps"][0]["state"] == "waiting"
    });
    let wrong = stage.start(&["retry", &run, "alhpa"]).wait().expect(2);
    assert!(
        wrong.stderr.contains("did you mean `alpha`?") && wrong.stderr.contains("sigma"),
        "{}",
        wrong.stderr
    );
    stage.start(&["retry", &run, "alpha"]).wait().expect(0);
    running.wait().expect(0);
    assert_eq!(
        stage
            .log()
            .count(|event| matches!(event, Event::RetryAsked { .. })),
        1
    );
    stage.assert_no_process();
}

#[test]
fn r12_a_run_whose_engine_is_gone_is_not_told_to_be_running_and_counts_no_more_work() {
    let script = r#"
prompts:
  - { match: Your work was interrupted, times: always, steps: [report: { summary: Alpha is done. }] }
  - { match: Mission of Alpha, times: always, steps: [touch: "{{script_dir}}/at_work", wait_for: "{{script_dir}}/go", report: { summary: Alpha is done. }] }
"#;
    let stage = Stage::without_repository(script);
    stage.task("", &["id: alpha, mission: Mission of Alpha"], &[]);
    let running = stage.start_run();
    stage.appears("at_work");
    running.kill();
    let log = stage.log();
    let run = log.run.id().to_string();
    let asked = log
        .facts
        .iter()
        .find(|fact| matches!(fact.event, Event::MessagePlanned { .. }));
    let last = log.facts.last().expect("facts").at;
    let worked = u64::try_from(last.since(asked.expect("a message").at).as_millis()).expect("a short time");
    let status = stage.status();
    assert_eq!(status["driven"], false);
    assert_eq!(status["run"]["steps"][0]["worked_ms"], worked, "{status}");
    let recap = stage.start(&["recap", &run, "--json"]).wait().expect(0).json();
    assert_eq!(recap["totals"]["worked_ms"], worked, "{recap}");
    let resume = format!("sillage resume {run}");
    for command in [
        &["retry", &run, "alpha"][..],
        &["relaunch", &run, "--from", "alpha", "--yes"],
    ] {
        let refused = stage.start(command).wait().expect(2).stderr;
        assert!(
            refused.contains(&resume)
                && refused.contains("nobody drives it")
                && !refused.contains("is running"),
            "{refused}"
        );
    }
    stage.write("go", "");
    stage.resume().expect(0);
    stage.assert_no_process();
}

#[test]
fn w18_a_skip_of_the_agent_that_failed_first_goes_on_with_what_that_held_back() {
    let stage = Stage::without_repository(
        r#"
prompts:
  - { match: Mission of Three, times: always, steps: [report: { summary: Three is done. }] }
  - { match: Mission of One, times: always, steps: [error: { code: -32602, message: the model is not known }] }
"#,
    );
    let agents = [
        "id: one, mission: Mission of One",
        "id: three, mission: Mission of Three",
    ];
    stage.task("limits: { parallel: 1 }", &agents, &[]);
    stage
        .start(&["run", "task.yaml", "--yes", "--fail-fast"])
        .wait()
        .expect(1);
    assert_eq!(stage.log().words(), [("one", "failed"), ("three", "not_run")]);
    let run = newest(&stage);
    stage.start(&["skip", &run, "one"]).wait().expect(3);
    assert_eq!(stage.log().words(), [("one", "not_run"), ("three", "complete")]);
    let told = stage.start(&["journal"]).wait().expect(0).stdout;
    assert!(told.contains("for one was skipped"), "{told}");
    stage.assert_no_process();
}

#[test]
fn r8_who_names_an_account_that_is_not_waited_for_is_sent_to_the_list_of_those_that_are() {
    let stage = Stage::without_repository(
        r#"prompts: [{ match: Mission of One, steps: [touch: "{{script_dir}}/at_work", silent: until_cancelled] }]"#,
    );
    stage.task("", &["id: one, mission: Mission of One"], &[]);
    let mut running = stage.start_run();
    stage.appears("at_work");
    let run = stage.status()["run"]["run"].as_str().expect("a run").to_owned();
    let refused = stage
        .start(&["accounts", "try", "acme", "--run", &run])
        .wait()
        .expect(2);
    assert!(
        refused.stderr.contains("hint: `sillage accounts`"),
        "{}",
        refused.stderr
    );
    let held = stage.start(&["run", "task.yaml", "--yes"]).wait().expect(6);
    assert!(held.stderr.contains("hint: `sillage stop`"), "{}", held.stderr);
    running.signal(rustix::process::Signal::INT);
    running.wait().expect(130);
}

//! Two agents that change the same line (G7, R17).

use std::fs;

use rustix::process::Signal;
use sillage::core::id::StepIndex;
use sillage::core::run::{Event, MessagePurpose, RunEnd};

use super::stage::{Log, Running};
use super::{Stage, eventually};

/// Alpha and Beta change the first line, Beta once Alpha's work is merged; Gamma comes after Beta. What Beta does
/// about the conflict comes first.
fn clash(about_the_conflict: &str) -> Stage {
    let stage = Stage::new(&script(about_the_conflict));
    stage.task(
        "",
        &[
            "id: alpha, mission: Alpha, worktree: always",
            "id: beta, mission: Beta, worktree: always",
            "id: gamma, mission: Gamma, worktree: always",
        ],
        &["beta -> gamma"],
    );
    stage
}

fn script(about_the_conflict: &str) -> String {
    format!(
        r##"
prompts:
{about_the_conflict}
  - match: Gamma
    steps: [report: {{ summary: Gamma is done. }}]
  - match: Alpha
    steps: [write: {{ path: README.md, content: "# Alpha\n" }}, report: {{ summary: Alpha is done. }}]
  - match: Beta
    steps:
      - write: {{ path: README.md, content: "# Beta\n" }}
      - wait_for: "{{{{script_dir}}}}/go"
      - report: {{ summary: Beta is done. }}
"##
    )
}

const RESOLVES: &str = r##"
  - match: cannot be merged
    steps:
      - run: "git status --porcelain > {{script_dir}}/seen"
      - write: { path: README.md, content: "# Alpha and Beta\n" }
      - run: git add README.md
      - report: { summary: Both lines are there. }
"##;

const REPORTS_ONLY: &str = r##"
  - match: cannot be merged
    times: 2
    steps: [write: { path: half.txt, content: half }, report: { summary: I tried. }]
"##;

/// Waits until Alpha's work is merged, then lets Beta end.
fn let_beta_go(stage: &Stage) {
    let ahead = |branch: &String| stage.git(&["rev-list", "--count", &format!("main..{branch}")]) != "0";
    eventually("Alpha's work is merged", || {
        let branches = stage.branches();
        branches
            .iter()
            .any(|branch| !branch.starts_with("sillage/steps/") && ahead(branch))
    });
    stage.write("go", "");
}

fn start(stage: &Stage) -> Running {
    let running = stage.start_run();
    let_beta_go(stage);
    running
}

fn told(log: &Log, purpose: MessagePurpose) -> usize {
    log.count(|event| matches!(event, Event::MessagePlanned { purpose: of, .. } if *of == purpose))
}

/// The run is complete, and both lines are on its branch.
#[track_caller]
fn assert_resolved(stage: &Stage) {
    let log = stage.log();
    assert_eq!(log.run.end(), Some(RunEnd::Complete), "{:?}", log.words());
    let branch = log.run.definition().integration_branch();
    assert_eq!(
        stage.git(&["show", &format!("{branch}:README.md")]),
        "# Alpha and Beta"
    );
    assert_eq!(
        log.count(|event| matches!(
            event,
            Event::SessionPlanned {
                step: StepIndex(1),
                ..
            }
        )),
        1
    );
    assert_eq!(
        stage.worktrees(),
        Vec::<std::path::PathBuf>::new(),
        "merged worktrees are removed"
    );
    stage.git(&["fsck", "--strict"]);
    stage.assert_no_process();
}

#[test]
fn g7_a_conflict_goes_back_to_its_agent_in_its_session_and_is_merged_once_resolved() {
    let stage = clash(RESOLVES);
    let before = stage.checkout();
    start(&stage).wait().expect(0);
    assert_eq!(stage.checkout(), before);
    assert_resolved(&stage);
    let seen = fs::read_to_string(stage.path("seen")).expect("what the agent's git said");
    assert!(seen.contains("UU README.md"), "the merge is begun there: {seen}");
    let [prompt] = stage.prompts("cannot be merged").try_into().expect("one message");
    assert!(
        prompt.contains("- `README.md`\n") && prompt.contains("try 1 of 2"),
        "{prompt}"
    );
    let exchanges = stage.start(&["exchanges"]).wait().expect(0).stdout;
    assert!(exchanges.contains("conflict"), "{exchanges}");
}

#[test]
fn g7_a_conflict_that_stays_is_never_a_success_and_what_depends_on_it_knows() {
    let stage = clash(REPORTS_ONLY);
    let before = stage.checkout();
    let outcome = start(&stage).wait().expect(3).outcome();
    assert_eq!(outcome["state"], "partial");
    assert_eq!(stage.checkout(), before);
    let log = stage.log();
    assert_eq!(
        log.words(),
        [("alpha", "complete"), ("beta", "partial"), ("gamma", "complete")]
    );
    assert_eq!(told(&log, MessagePurpose::Conflict), 2);
    let run = outcome["run"].as_str().expect("a run");
    let (alpha, beta) = (
        format!("sillage/steps/{run}/alpha"),
        format!("sillage/steps/{run}/beta"),
    );
    for (branch, line) in [(&alpha, "# Alpha"), (&beta, "# Beta")] {
        assert_eq!(
            stage.git(&["show", &format!("{branch}:README.md")]),
            line,
            "both branches are kept"
        );
    }
    assert_eq!(
        stage.git(&["show", &format!("sillage/{run}:README.md")]),
        "# Alpha"
    );
    // What the agent left of its tries is kept, and its worktree is as its branch is.
    let work = log.step("beta").work().expect("a worktree");
    let [kept] = work.rescued.as_slice() else {
        panic!("{:?}", work.rescued)
    };
    assert_eq!(stage.git(&["show", &format!("{kept}:half.txt")]), "half");
    let worktree = work.worktree.as_ref().expect("a worktree");
    assert_eq!(stage.git_in(&worktree.path, &["status", "--porcelain"]), "");
    // Gamma knows, and the person too.
    let [prompt] = stage.prompts("Gamma").try_into().expect("one message");
    for part in [
        "Outcome: partial",
        "could not be merged",
        &format!("`{beta}`"),
        "`README.md`",
    ] {
        assert!(prompt.contains(part), "{part} is missing in {prompt}");
    }
    let recap = stage.start(&["recap"]).wait().expect(0).stdout;
    assert!(
        recap.contains(&beta) && recap.contains("conflict in README.md"),
        "{recap}"
    );
    let journal = stage.start(&["journal", "--errors"]).wait().expect(0).stdout;
    assert!(journal.contains("the merge is given up"), "{journal}");
    stage.git(&["fsck", "--strict"]);
    stage.assert_no_process();
}

/// Beta stands still over the conflict until the engine is gone, then goes on.
const STANDS_STILL: &str = r##"
  - match: cannot be merged
    steps: [touch: "{{script_dir}}/at_work", silent: until_cancelled]
  - match: interrupted
    steps:
      - write: { path: README.md, content: "# Alpha and Beta\n" }
      - report: { summary: Both lines are there. }
"##;

#[test]
fn r17_an_engine_killed_while_the_agent_resolves_is_taken_up() {
    let stage = clash(STANDS_STILL);
    let running = start(&stage);
    stage.appears("at_work");
    running.kill();
    eventually("no process outlives the engine", || stage.processes().is_empty());
    stage.resume().expect(0);
    assert_resolved(&stage);
    assert_eq!(stage.prompts("cannot be merged").len(), 1, "it was told once");
    let [prompt] = stage.prompts("interrupted").try_into().expect("one message");
    assert!(prompt.contains("- `README.md`\n"), "{prompt}");
}

#[test]
fn r17_a_run_stopped_while_the_agent_resolves_is_resumed() {
    let stage = clash(STANDS_STILL);
    let mut running = start(&stage);
    stage.appears("at_work");
    running.signal(Signal::INT);
    running.wait().expect(130);
    stage.assert_no_process();
    let log = stage.log();
    assert_eq!(log.words()[1], ("beta", "cancelled"));
    let worktree = log
        .step("beta")
        .work()
        .and_then(|work| work.worktree.clone())
        .expect("a worktree");
    let status = stage.git_in(&worktree.path, &["status", "--porcelain"]);
    assert!(
        status.contains("UU README.md"),
        "its worktree is kept as it is: {status}"
    );
    stage.resume().expect(0);
    assert_resolved(&stage);
}

#[test]
fn r17_what_others_merged_while_it_was_resolved_is_a_second_conflict() {
    let stage = Stage::new(&script(
        r##"
  - match: "/still cannot|cannot be merged[\\s\\S]*other.txt/"
    steps:
      - write: { path: other.txt, content: "both\n" }
      - report: { summary: All is there. }
  - match: cannot be merged
    steps:
      - write: { path: README.md, content: "# Alpha and Beta\n" }
      - write: { path: other.txt, content: "beta\n" }
      - touch: "{{script_dir}}/resolving"
      - wait_for: "{{script_dir}}/merged"
      - report: { summary: Both lines are there. }
  - match: Delta
    steps:
      - wait_for: "{{script_dir}}/resolving"
      - write: { path: other.txt, content: "delta\n" }
      - report: { summary: Delta is done. }
"##,
    ));
    stage.task(
        "",
        &[
            "id: alpha, mission: Alpha, worktree: always",
            "id: beta, mission: Beta, worktree: always",
            "id: delta, mission: Delta, worktree: always",
        ],
        &[],
    );
    let running = start(&stage);
    let delta_is_merged = || {
        let branches = stage.branches();
        branches
            .iter()
            .filter(|branch| !branch.starts_with("sillage/steps/"))
            .any(|branch| {
                let files = stage.git(&["ls-tree", "--name-only", branch]);
                files.lines().any(|file| file == "other.txt")
            })
    };
    eventually("Delta's work is merged", delta_is_merged);
    stage.write("merged", "");
    running.wait().expect(0);
    assert_resolved(&stage);
    let log = stage.log();
    assert_eq!(told(&log, MessagePurpose::Conflict), 2);
    let branch = log.run.definition().integration_branch();
    assert_eq!(stage.git(&["show", &format!("{branch}:other.txt")]), "both");
}

#[test]
fn r17_an_agent_that_left_after_its_report_is_found_again_for_its_conflict() {
    let stage = clash("");
    // Its process ends by itself once it has answered.
    let leaves = script(RESOLVES).replace(
        "      - report: { summary: Beta is done. }\n",
        "      - report: { summary: Beta is done. }\n    after: [exit: 0]\n",
    );
    assert!(leaves.contains("after:"), "{leaves}");
    stage.script(&leaves);
    start(&stage).wait().expect(0);
    assert_resolved(&stage);
    let log = stage.log();
    assert_eq!(log.count(|event| matches!(event, Event::SessionGone { .. })), 1);
    assert_eq!(log.count(|event| matches!(event, Event::SessionFound { .. })), 1);
    assert_eq!(told(&log, MessagePurpose::Conflict), 1);
}

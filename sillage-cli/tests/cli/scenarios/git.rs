//! Git and worktrees.

use std::fs;

use sillage::core::run::FailureClass;

use super::Stage;

const ONE: &str = "prompts:\n  - match: Alpha\n    steps: [write: { path: alpha.txt, content: \"a\\n\" }, report: { summary: Alpha is done. }]\n";

/// Three agents at once: one commits by itself, one leaves all to the engine, one does both.
const THREE: &str = r#"
prompts:
  - match: Alpha
    steps:
      - write: { path: alpha.txt, content: "a\n" }
      - run: git add alpha.txt && git commit --quiet --message "Alpha's own commit"
      - report: { summary: Alpha is done. }
  - match: Beta
    steps: [write: { path: beta.txt, content: "b\n" }, report: { summary: Beta is done. }]
  - match: Gamma
    steps:
      - write: { path: gamma.txt, content: "c\n" }
      - run: git add gamma.txt && git commit --quiet --message "Gamma's own commit"
      - write: { path: deep/gamma.txt, content: "c\n" }
      - report: { summary: Gamma is done. }
"#;

const THREE_AGENTS: [&str; 3] = [
    "id: alpha, mission: Alpha, worktree: always",
    "id: beta, mission: Beta, worktree: always",
    "id: gamma, mission: Gamma, worktree: always",
];

fn assert_one_branch_is_left(stage: &Stage) {
    let before = stage.checkout();
    let outcome = stage.run().expect(0).outcome();
    let now = stage.checkout();
    let changed: Vec<_> = now
        .iter()
        .filter(|(path, bytes)| before.get(*path) != Some(*bytes))
        .collect();
    assert!(
        changed.is_empty() && now.len() == before.len(),
        "the person's checkout changed: {changed:?}"
    );

    let run = outcome["run"].as_str().expect("a run");
    let integration = format!("sillage/{run}");
    assert_eq!(outcome["state"], "complete");
    assert_eq!(outcome["branch"], integration.as_str());
    assert_eq!(
        outcome["commit"],
        stage.git(&["rev-parse", &integration]).as_str()
    );
    let steps = ["alpha", "beta", "gamma"].map(|agent| format!("sillage/steps/{run}/{agent}"));
    let mut branches = stage.branches();
    branches.retain(|branch| !steps.contains(branch));
    assert_eq!(
        branches,
        [integration.as_str()],
        "one integration branch beside the agents' own"
    );
    for step in &steps {
        stage.git(&["merge-base", "--is-ancestor", step, &integration]);
        let ahead = stage.git(&["rev-list", "--count", &format!("main..{step}")]);
        assert_ne!(ahead, "0", "{step} holds the agent's work");
    }
    let files = stage.git(&["ls-tree", "-r", "--name-only", &integration]);
    for file in ["alpha.txt", "beta.txt", "deep/gamma.txt", "gamma.txt"] {
        assert!(
            files.lines().any(|line| line == file),
            "{file} is missing in {files}"
        );
    }
    assert_eq!(
        stage.worktrees(),
        Vec::<std::path::PathBuf>::new(),
        "merged worktrees are removed (R19)"
    );
    stage.git(&["fsck", "--strict"]);
    stage.assert_no_process();
}

// R16, R18, R19.
#[test]
fn three_agents_leave_one_branch_and_the_checkout_as_it_was() {
    let stage = Stage::new(THREE);
    stage.task("", &THREE_AGENTS, &[]);
    assert_one_branch_is_left(&stage);
}

// R16.
#[test]
fn a_dirty_checkout_stays_as_dirty_as_it_was() {
    let stage = Stage::new(THREE);
    stage.write("work/.gitignore", "ignored\n");
    stage.task("", &THREE_AGENTS, &[]);
    stage.write("work/README.md", "# Changed and staged\n");
    stage.git(&["add", "README.md"]);
    stage.write("work/README.md", "# Changed again\n");
    stage.write("work/staged.txt", "new and staged\n");
    stage.git(&["add", "staged.txt"]);
    stage.write("work/untracked.txt", "nobody knows me\n");
    stage.write("work/ignored", "never mind me\n");
    // The agents make files of these names too: theirs do not meet the person's.
    stage.write("work/alpha.txt", "the person's own\n");
    assert_one_branch_is_left(&stage);
}

#[test]
fn g1_a_deleted_worktree_fails_the_step_and_nothing_is_committed_elsewhere() {
    let stage = Stage::new(
        "prompts:\n  - match: Alpha\n    steps: [write: { path: alpha.txt, content: a }, touch: \"{{script_dir}}/at_work\", wait_for: \"{{script_dir}}/deleted\", report: { summary: Done. }]\n",
    );
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    // The folder that the engine keeps worktrees in lies in another repository.
    let parent = stage.path("");
    stage.git_in(&parent, &["init", "--quiet", "--initial-branch=main"]);
    stage.git_in(
        &parent,
        &[
            "-c",
            "user.name=P",
            "-c",
            "user.email=p@localhost",
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            "x",
        ],
    );
    stage.write("known.txt", "staged\n");
    stage.git_in(&parent, &["add", "known.txt"]);
    let read = |name: &str| fs::read(stage.path(".git").join(name)).expect("git's own file");
    let parent_before = [read("HEAD"), read("index"), read("refs/heads/main")];
    let before = stage.checkout();

    let running = stage.start_run();
    stage.appears("at_work");
    let [worktree] = stage.worktrees().try_into().expect("one worktree");
    fs::remove_dir_all(&worktree).expect("the agent's folder");
    stage.write("deleted", "");
    let outcome = running.wait().expect(1).outcome();

    assert_eq!(outcome["state"], "failed");
    assert_eq!(outcome["branch"], serde_json::Value::Null);
    let log = stage.log();
    assert_eq!(
        log.failure("alpha").class,
        FailureClass::WorktreeLost,
        "{:?}",
        log.failure("alpha")
    );
    assert_eq!(stage.checkout(), before);
    assert_eq!(
        [read("HEAD"), read("index"), read("refs/heads/main")],
        parent_before
    );
    assert_eq!(stage.git_in(&parent, &["rev-list", "--all", "--count"]), "1");
    stage.assert_no_process();
}

#[test]
fn g2_what_a_stopped_agent_left_stays_and_what_holds_it_is_told() {
    use sillage::core::ports::Workspace as _;
    use sillage::core::ports::workspace::{Hold, Removal};

    let stage = Stage::new(
        "prompts:\n  - match: Alpha\n    steps:\n      - write: { path: kept.txt, content: k }\n      - run: git add kept.txt && git commit --quiet --message Kept\n      - write: { path: loose.txt, content: l }\n      - touch: \"{{script_dir}}/at_work\"\n      - silent: until_cancelled\n",
    );
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    let mut running = stage.start_run();
    stage.appears("at_work");
    running.signal(rustix::process::Signal::INT);
    let outcome = running.wait().expect(130).outcome();
    assert_eq!(outcome["state"], "stopped");

    let log = stage.log();
    let worktree = log
        .step("alpha")
        .work()
        .and_then(|work| work.worktree.clone())
        .expect("a worktree");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let workspace = sillage::workspace::GitWorkspace::new(&stage.path("data")).expect("a workspace");
    let removal = runtime.block_on(workspace.remove(&worktree, &log.run.definition().integration_branch()));
    let Ok(Removal::Held(holds)) = removal else {
        panic!("it is held: {removal:?}")
    };
    assert!(
        holds.iter().any(|hold| matches!(hold, Hold::Files(_))),
        "{holds:?}"
    );
    assert!(
        holds.iter().any(|hold| matches!(hold, Hold::Commits(_))),
        "{holds:?}"
    );
    let kept = stage.git(&["log", "--format=%s", &worktree.branch]);
    assert!(kept.lines().any(|subject| subject == "Kept"), "{kept}");
    assert_eq!(
        fs::read_to_string(worktree.path.join("loose.txt")).expect("the file stays"),
        "l"
    );
    stage.assert_no_process();
}

#[test]
fn g3_a_worktree_removed_by_hand_does_not_stand_in_the_next_runs_way() {
    let stage = Stage::new(
        "prompts:\n  - match: Alpha\n    times: 2\n    unless_exists: \"{{script_dir}}/mended\"\n    steps: [error: { code: -32602, message: no such tool }]\n  - match: Alpha\n    steps: [write: { path: alpha.txt, content: a }, report: { summary: Done. }]\n",
    );
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    stage.run().expect(1);
    let [worktree] = stage.worktrees().try_into().expect("the failed agent's worktree");
    fs::remove_dir_all(&worktree).expect("removed by hand");
    assert_eq!(stage.worktrees(), [worktree], "git still lists it");
    stage.write("mended", "");
    let outcome = stage.run().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    stage.git(&["fsck", "--strict"]);
}

#[test]
fn g5_agents_start_from_the_commit_that_the_person_stands_on() {
    let stage = Stage::new(ONE);
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    stage.git(&["switch", "--quiet", "--create", "feature"]);
    stage.write("work/feature.txt", "f\n");
    stage.commit("One ahead");
    let feature = stage.git(&["rev-parse", "HEAD"]);
    let outcome = stage.run().expect(0).outcome();
    let branch = outcome["branch"].as_str().expect("a branch");
    assert_eq!(
        stage.git(&["merge-base", branch, "main"]),
        stage.git(&["rev-parse", "main"])
    );
    stage.git(&["merge-base", "--is-ancestor", &feature, branch]);
    let log = stage.log();
    let worktree = log
        .step("alpha")
        .work()
        .and_then(|work| work.worktree.clone())
        .expect("a worktree");
    assert_eq!(worktree.base, feature);
    assert_eq!(stage.git(&["symbolic-ref", "--short", "HEAD"]), "feature");
}

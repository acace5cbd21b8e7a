//! The worktrees that are left: told, removed, cleaned, repaired.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::Value;
use sillage::core::run::{Event, FailureClass};

use super::{Stage, eventually};

const ALPHA: [&str; 1] = ["id: alpha, mission: Alpha, worktree: always"];

/// Alpha commits one file, writes another and falls silent until `go_on` is there; then it reports.
const STOPPED: &str = r#"
prompts:
  - match: /Alpha|go on/
    times: always
    if_exists: "{{script_dir}}/go_on"
    steps: [write: { path: alpha.txt, content: "a\n" }, report: { summary: Done. }]
  - match: Alpha
    times: always
    steps:
      - write: { path: kept.txt, content: k }
      - run: git add kept.txt && git commit --quiet --message Kept
      - write: { path: loose.txt, content: l }
      - touch: "{{script_dir}}/at_work"
      - silent: until_cancelled
"#;

/// A run of [`STOPPED`] that was stopped, and its agent's worktree.
fn stopped() -> (Stage, PathBuf) {
    let stage = Stage::new(STOPPED);
    stage.task("", &ALPHA, &[]);
    let mut running = stage.start_run();
    stage.appears("at_work");
    running.signal(Signal::INT);
    running.wait().expect(130);
    let [worktree] = stage.worktrees().try_into().expect("one worktree");
    (stage, worktree)
}

/// The answer of a command that ends with this code.
#[track_caller]
fn answer(stage: &Stage, code: i32, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    stage.start(&arguments).wait().expect(code).json()
}

/// The kinds of what holds a worktree.
fn kinds(worktree: &Value) -> Vec<&str> {
    let held = worktree["held_by"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    held.iter().filter_map(|held| held["kind"].as_str()).collect()
}

#[test]
fn g2_a_stopped_run_is_cleaned_and_what_its_agent_left_stays() {
    let (stage, worktree) = stopped();
    let run = stage.log().run.id().to_string();
    let branch = format!("sillage/steps/{run}/alpha");

    let cleaned = answer(&stage, 0, &["clean"]);
    assert_eq!(cleaned["removed"], serde_json::json!([]));
    assert_eq!(kinds(&cleaned["kept"][0]), ["files", "commits"]);
    let kept = stage.git(&["log", "--format=%s", &branch]);
    assert!(kept.lines().any(|subject| subject == "Kept"), "{kept}");
    assert_eq!(
        fs::read_to_string(worktree.join("loose.txt")).expect("it stays"),
        "l"
    );

    let listed = answer(&stage, 0, &["worktrees"]);
    let left = &listed["worktrees"][0];
    assert_eq!(left["path"], worktree.to_string_lossy().as_ref());
    assert_eq!(
        (&left["run"], &left["step"]),
        (&Value::from(run.as_str()), &Value::from("alpha"))
    );
    assert_eq!(
        (&left["branch"], &left["own_branch"]),
        (&Value::from(branch.as_str()), &Value::from(branch.as_str()))
    );
    assert_eq!(left["held_by"][0]["files"], serde_json::json!(["loose.txt"]));
    assert_eq!(left["held_by"][1]["commits"], 1);
    assert_eq!(
        (&left["merged"], &left["merged_into"]),
        (&Value::from("not_proved"), &Value::Null)
    );
    assert!(
        left["disk_bytes"].as_u64() > Some(0) && left["age_ms"].is_u64(),
        "{left}"
    );
    let told = stage.start(&["worktrees"]).wait().expect(0).stdout;
    for words in [
        "held: 1 uncommitted file: loose.txt",
        "cannot be proved merged",
        "step alpha",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }

    // Not even when it is named, unless the person insists: then all is kept, and the branch stays.
    let held = answer(&stage, 1, &["worktrees", "remove", &run]);
    assert_eq!(
        (&held["ok"], kinds(&held["held"][0])),
        (&Value::from(false), vec!["files", "commits"])
    );
    let path = worktree.to_string_lossy().into_owned();
    let removed = answer(&stage, 0, &["worktrees", "remove", &path, "--force"]);
    let rescue = format!("refs/sillage/rescue/{run}/alpha/1");
    assert_eq!(removed["removed"][0]["rescued"], serde_json::json!([rescue]));
    assert_eq!(stage.git(&["show", &format!("{rescue}:loose.txt")]), "l");
    assert_eq!(stage.git(&["log", "-1", "--format=%s", &branch]), "Kept");
    assert!(!worktree.exists());
    let trash = answer(&stage, 0, &["worktrees"])["trash"][0].clone();
    assert_eq!(
        (&trash["run"], &trash["was"]),
        (&Value::from(run), &Value::from(path))
    );
    assert!(trash["disk_bytes"].as_u64() > Some(0), "{trash}");

    // The run can still go on, in a worktree made anew.
    stage.write("go_on", "");
    let outcome = stage.resume().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    stage.assert_no_process();
}

#[test]
fn r19_what_is_at_work_or_was_cut_is_not_cleaned() {
    let stage = Stage::new(STOPPED);
    stage.task("", &ALPHA, &[]);
    let mut running = stage.start_run();
    stage.appears("at_work");
    let run = answer(&stage, 0, &["status"])["run"]["run"]
        .as_str()
        .expect("a run")
        .to_owned();
    let cleaned = answer(&stage, 0, &["clean"]);
    let why = cleaned["kept"][0]["stays"].as_str().expect("why it stays");
    assert!(
        why.contains("at work") && why.contains(&format!("sillage stop {run}")),
        "{why}"
    );
    let held = answer(&stage, 1, &["worktrees", "remove", &run, "--force"]);
    assert_eq!(held["held"][0]["stays"], why);
    let told = answer(&stage, 0, &["worktrees"]);
    let process = told["worktrees"][0]["held_by"]
        .as_array()
        .expect("holds")
        .iter()
        .find(|held| held["kind"] == "process")
        .cloned();
    let process = process.expect("the agent works there");
    assert!(
        process["pid"].is_u64() && process["name"].is_string(),
        "{process}"
    );
    running.signal(Signal::KILL);
    drop(running);
    eventually("the agent ends with its engine", || stage.processes().is_empty());
    let cleaned = answer(&stage, 0, &["clean", "--run", &run]);
    let why = cleaned["kept"][0]["stays"].as_str().expect("why it stays");
    assert!(why.contains("was cut"), "{why}");
    assert_eq!(answer(&stage, 2, &["clean", "--run", "no-such-run"])["ok"], false);
    assert_eq!(
        answer(&stage, 2, &["worktrees", "remove", "no-such-run"])["ok"],
        false
    );
}

/// Alpha fails until `mended` is there.
const FAILS_AT_FIRST: &str = r#"
prompts:
  - { match: Alpha, times: always, if_exists: "{{script_dir}}/mended", steps: [write: { path: alpha.txt, content: a }, report: { summary: Done. }] }
  - { match: Alpha, times: always, steps: [error: { code: -32602, message: no such tool }] }
"#;

#[test]
fn g3_the_next_run_repairs_a_worktree_removed_by_hand_and_no_entry_of_others() {
    let stage = Stage::new(FAILS_AT_FIRST);
    stage.task("", &ALPHA, &[]);
    stage.run().expect(1);
    let [lost] = stage.worktrees().try_into().expect("the failed agent's worktree");
    stage.git(&["worktree", "add", "-q", "-b", "theirs", "../theirs"]);
    fs::remove_dir_all(&lost).expect("removed by hand");
    fs::remove_dir_all(stage.path("theirs")).expect("removed by hand");
    let told = answer(&stage, 0, &["worktrees"]);
    assert_eq!(told["worktrees"][0]["present"], false);
    stage.write("mended", "");
    assert_eq!(stage.run().expect(0).outcome()["state"], "complete");
    assert_eq!(
        stage.worktrees(),
        [stage.path("theirs")],
        "git's other entry is not ours to repair"
    );
    // And the failed run goes on by one resume.
    let failed = stage.logs()[1].run.id().to_string();
    let outcome = stage
        .start(&["resume", &failed, "--json"])
        .wait()
        .expect(0)
        .outcome();
    assert_eq!(outcome["state"], "complete");
}

#[test]
fn g4_a_branch_of_someone_else_is_neither_adopted_nor_moved() {
    let stage = Stage::new(
        "prompts:\n  - { match: Beta, steps: [write: { path: beta.txt, content: b }, report: { summary: Beta is done. }] }\n  - { match: Alpha, steps: [write: { path: alpha.txt, content: a }, touch: \"{{script_dir}}/at_work\", wait_for: \"{{script_dir}}/taken\", report: { summary: Alpha is done. }] }\n",
    );
    stage.task(
        "",
        &[
            "id: alpha, mission: Alpha, worktree: always",
            "id: beta, mission: Beta, worktree: always",
        ],
        &["alpha -> beta"],
    );
    let running = stage.start_run();
    stage.appears("at_work");
    let run = answer(&stage, 0, &["status"])["run"]["run"]
        .as_str()
        .expect("a run")
        .to_owned();
    // At the very commit that the engine's own would start from, too.
    let taken = format!("sillage/steps/{run}/beta");
    let theirs = stage.git(&["commit-tree", "-m", "Theirs", "HEAD^{tree}"]);
    stage.git(&["branch", &taken, &theirs]);
    stage.write("taken", "");
    let outcome = running.wait().expect(0).outcome();
    assert_eq!(stage.git(&["rev-parse", &taken]), theirs, "not moved");
    let log = stage.log();
    let worktree = log
        .step("beta")
        .work()
        .and_then(|work| work.worktree.clone())
        .expect("a worktree");
    assert_eq!(worktree.branch, format!("{taken}-2"));
    let merged_alpha = log.facts.iter().find_map(|fact| {
        let Event::Merged { tip, .. } = &fact.event else {
            return None;
        };
        Some(tip.clone())
    });
    assert_eq!(Some(worktree.base), merged_alpha, "the real base");
    let branch = outcome["branch"].as_str().expect("a branch");
    assert_eq!(stage.git(&["show", &format!("{branch}:beta.txt")]), "b");
}

#[test]
fn g9_a_squashed_branch_is_told_as_merged_by_content_and_stays() {
    let stage = Stage::new(
        "prompts:\n  - match: Alpha\n    steps: [write: { path: one.txt, content: a }, run: git add one.txt && git commit --quiet --message One, write: { path: two.txt, content: b }, report: { outcome: blocked, summary: Half done., blockers: [Nobody knows the key.] }]\n",
    );
    stage.task("", &ALPHA, &[]);
    stage.run().expect(4);
    let [worktree] = stage.worktrees().try_into().expect("one worktree");
    let branch = format!("sillage/steps/{}/alpha", stage.log().run.id());
    assert_eq!(
        answer(&stage, 0, &["worktrees"])["worktrees"][0]["merged"],
        "not_proved"
    );
    stage.git(&["merge", "--quiet", "--squash", &branch]);
    stage.git(&["commit", "--quiet", "--message", "Squashed"]);
    let cleaned = answer(&stage, 0, &["clean"]);
    let kept = &cleaned["kept"][0];
    assert_eq!(cleaned["removed"], serde_json::json!([]));
    assert_eq!(
        (&kept["merged"], &kept["merged_into"]),
        (&Value::from("by_content"), &Value::from("main"))
    );
    assert_eq!(
        (&kept["merged_sign"], kinds(kept)),
        (&Value::from("same_files"), vec!["commits"])
    );
    let told = stage.start(&["clean"]).wait().expect(0).stdout;
    assert!(told.contains("merged by content into main"), "{told}");
    assert!(worktree.is_dir());
    stage.git(&["rev-parse", "--verify", &branch]);
}

/// Three agents commit in loops until `enough` is there, after the worktrees of an earlier run were removed.
const LOOPS: &str = r#"
prompts:
  - match: Fail
    times: always
    steps: [error: { code: -32602, message: no such tool }]
  - match: /Loop (\w+)/
    times: always
    steps:
      - run: "n=0; until [ -e '{{script_dir}}/enough' ] && [ $n -ge 10 ]; do n=$((n+1)); echo $n > {{match.1}}; git add {{match.1}} && git commit --quiet --message $n || exit 1; touch '{{script_dir}}/looping-{{match.1}}'; done"
      - report: { summary: Done. }
"#;

#[test]
fn g10_agents_commit_in_loops_while_worktrees_are_removed() {
    let stage = Stage::new(LOOPS);
    let always = |id: &str, mission: &str| format!("id: {id}, mission: {mission}, worktree: always");
    let agents = |mission: &str| ["a", "b", "c"].map(|id| always(id, &format!("{mission} {id}")));
    let task = |mission: &str| {
        let agents = agents(mission);
        stage.task("", &[&agents[0], &agents[1], &agents[2]], &[]);
    };
    task("Fail");
    stage.run().expect(1);
    let failed = stage.log().run.id().to_string();
    task("Loop");
    let running = stage.start_run();
    for agent in ["a", "b", "c"] {
        stage.appears(&format!("looping-{agent}"));
    }
    for agent in ["a", "b", "c"] {
        let removed = answer(&stage, 0, &["worktrees", "remove", &format!("{failed}/{agent}")]);
        assert_eq!(removed["removed"].as_array().map(Vec::len), Some(1), "{removed}");
    }
    stage.write("enough", "");
    let ended = running.wait().expect(0);
    assert_eq!(ended.outcome()["state"], "complete");
    assert!(
        !ended.stdout.contains(".lock") && !ended.stderr.contains("lock"),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
    assert_eq!(stage.worktrees(), Vec::<PathBuf>::new());
    stage.git(&["fsck", "--strict"]);
    stage.assert_no_process();
}

#[test]
fn g11_without_worktrees_cleaning_leaves_the_repository_untouched() {
    let stage = Stage::new("prompts:\n  - { times: always, steps: [report: { summary: Done. }] }\n");
    stage.task("", &["id: alpha, mission: Alpha, worktree: never"], &[]);
    let told = || {
        let references = stage.git(&["for-each-ref"]);
        let worktrees = stage.git(&["worktree", "list", "--porcelain"]);
        (references, worktrees, stage.checkout())
    };
    stage.git(&["worktree", "add", "-q", "-b", "theirs", "../theirs"]);
    let before = told();
    stage.run().expect(0);
    fs::remove_file(stage.path("work/task.yaml")).expect("the task is deleted");
    let cleaned = answer(&stage, 0, &["clean"]);
    assert_eq!(
        (&cleaned["removed"], &cleaned["kept"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
    let mut after = told();
    let task = before.2.iter().filter(|(path, _)| !path.exists());
    after
        .2
        .extend(task.map(|(path, bytes)| (path.clone(), bytes.clone())));
    assert!(after == before, "something of the person's changed");
}

#[test]
fn g11_the_cleaner_removes_only_what_git_lists_and_lies_in_its_folder() {
    let stage = Stage::new(FAILS_AT_FIRST);
    stage.task("", &ALPHA, &[]);
    stage.run().expect(1);
    let [ours] = stage.worktrees().try_into().expect("one worktree");
    // Beside it: a folder that no list of git's has, and a worktree of the person's own.
    let stray = ours.with_file_name("stray");
    fs::create_dir_all(&stray).expect("a folder");
    fs::write(stray.join("file"), "x").expect("a file");
    let theirs = stage.path("theirs");
    stage.git(&["worktree", "add", "-q", "-b", "theirs", "../theirs"]);
    let cleaned = answer(&stage, 0, &["clean"]);
    assert_eq!(cleaned["removed"].as_array().map(Vec::len), Some(1), "{cleaned}");
    assert_eq!(cleaned["removed"][0]["path"], ours.to_string_lossy().as_ref());
    assert!(!ours.exists() && stray.join("file").is_file() && theirs.is_dir());
    assert_eq!(stage.worktrees(), std::slice::from_ref(&theirs));
    for (path, code) in [(&stray, 1), (&theirs, 2), (&stage.path("work"), 2)] {
        let path = path.to_string_lossy().into_owned();
        answer(&stage, code, &["worktrees", "remove", &path, "--force"]);
    }
    assert!(stray.is_dir() && theirs.is_dir());
    // What was removed is in the trash, and goes after its days by whoever comes next.
    let trashed = answer(&stage, 0, &["worktrees"])["trash"][0]["path"]
        .as_str()
        .expect("in the trash")
        .to_owned();
    let old = stage.path("data/trash/1000-key-old-0");
    fs::rename(&trashed, &old).expect("made old");
    let emptied = answer(&stage, 0, &["clean"]);
    assert_eq!(emptied["emptied"]["folders"], 1, "{emptied}");
    assert!(!old.exists());
}

#[test]
fn e20_one_resume_is_enough_after_a_stopped_agents_worktree_was_deleted() {
    let (stage, worktree) = stopped();
    fs::remove_dir_all(&worktree).expect("deleted by hand");
    stage.write("go_on", "");
    let outcome = stage.resume().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    let branch = outcome["branch"].as_str().expect("a branch");
    assert_eq!(stage.git(&["show", &format!("{branch}:alpha.txt")]), "a");
    let log = stage.log();
    let rescued = log
        .step("alpha")
        .work()
        .map(|work| work.rescued.clone())
        .unwrap_or_default();
    assert_eq!(rescued.len(), 1, "the commit that it had made is kept");
    assert_eq!(stage.git(&["log", "-1", "--format=%s", &rescued[0]]), "Kept");
    stage.assert_no_process();
}

#[test]
fn e20_one_resume_is_enough_after_a_crash_and_a_worktree_that_became_something_else() {
    let stage = Stage::new(STOPPED);
    stage.task("", &ALPHA, &[]);
    let running = stage.start_run();
    stage.appears("at_work");
    running.kill();
    let [worktree] = stage.worktrees().try_into().expect("one worktree");
    fs::remove_file(worktree.join(".git")).expect("a file");
    stage.write("go_on", "");
    let outcome = stage.resume().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    assert_eq!(
        fs::read_to_string(worktree.join("loose.txt")).expect("left alone"),
        "l"
    );
    stage.assert_no_process();
}

/// Two agents at work at once, until `go` is there.
const TWO: &str = "prompts:\n  - { match: Alpha, steps: [write: { path: alpha.txt, content: a }, touch: \"{{script_dir}}/alpha\", wait_for: \"{{script_dir}}/go\", report: { summary: Alpha is done. }] }\n  - { match: Beta, steps: [write: { path: beta.txt, content: b }, touch: \"{{script_dir}}/beta\", wait_for: \"{{script_dir}}/go\", report: { summary: Beta is done. }] }\n";

fn two_at_work() -> (Stage, super::stage::Running) {
    let stage = Stage::new(TWO);
    stage.task(
        "",
        &[
            "id: alpha, mission: Alpha, worktree: always",
            "id: beta, mission: Beta, worktree: always",
        ],
        &[],
    );
    let running = stage.start_run();
    stage.appears("alpha");
    stage.appears("beta");
    (stage, running)
}

#[test]
fn e20_a_worktree_that_is_moved_fails_its_step_and_no_other() {
    let (stage, running) = two_at_work();
    let worktrees = stage.worktrees();
    let alphas = worktrees
        .iter()
        .find(|path| path.ends_with("alpha"))
        .expect("alpha's");
    let moved = stage.path("moved");
    fs::rename(alphas, &moved).expect("moved by hand");
    stage.write("go", "");
    let outcome = running.wait().expect(1).outcome();
    let log = stage.log();
    assert_eq!(log.failure("alpha").class, FailureClass::WorktreeLost);
    assert_eq!(log.words(), [("alpha", "failed"), ("beta", "complete")]);
    assert_eq!(
        fs::read_to_string(moved.join("alpha.txt")).expect("left alone"),
        "a"
    );
    let branch = outcome["branch"].as_str().expect("a branch");
    assert_eq!(stage.git(&["show", &format!("{branch}:beta.txt")]), "b");
    stage.assert_no_process();
}

#[test]
fn e20_a_repository_that_is_moved_fails_the_steps_and_touches_nothing() {
    let (stage, running) = two_at_work();
    let worktrees = stage.worktrees();
    let (work, moved) = (stage.path("work"), stage.path("moved"));
    fs::rename(&work, &moved).expect("moved by hand");
    stage.write("go", "");
    running.wait().expect(1);
    for agent in ["alpha", "beta"] {
        let log = stage.log();
        let failure = log.failure(agent);
        assert!(
            failure.words.contains("work"),
            "it names the repository: {failure:?}"
        );
        assert!(!failure.words.contains("panick"), "{failure:?}");
    }
    assert!(worktrees.iter().all(|path| path.is_dir()) && !work.join(".git").exists());
    // Put back, the run goes on.
    if work.exists() {
        fs::remove_dir_all(&work).expect("made meanwhile");
    }
    fs::rename(&moved, &work).expect("moved back");
    stage.script("prompts:\n  - { match: Alpha, times: always, steps: [write: { path: alpha.txt, content: a }, report: { summary: Alpha is done. }] }\n  - { match: Beta, times: always, steps: [report: { summary: Beta is done. }] }\n");
    let outcome = stage.resume().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    stage.assert_no_process();
}

/// R15: agents start from a commit; a person who has not committed is told what they do not get.
#[test]
fn r15_uncommitted_files_are_mentioned_before_launch_and_by_check() {
    let stage = Stage::new("prompts:\n  - { times: always, steps: [report: { summary: Done. }] }\n");
    stage.write("work/.gitignore", "ignored\n");
    stage.task("", &ALPHA, &[]);
    let mention = |arguments: &[&str]| {
        let told = stage.start(arguments).wait().expect(0).stdout;
        told.lines()
            .find(|line| line.contains("not in the agents' worktrees"))
            .map(str::to_owned)
    };
    assert_eq!(mention(&["check", "task.yaml"]), None);
    stage.write("work/README.md", "# Changed\n");
    stage.write("work/staged.txt", "s\n");
    stage.git(&["add", "staged.txt"]);
    stage.write("work/deep/new.txt", "n\n");
    stage.write("work/ignored", "i\n");
    let before = stage.checkout();
    for arguments in [&["check", "task.yaml"][..], &["run", "task.yaml", "--yes"]] {
        let told = mention(arguments).expect("a mention");
        assert!(
            told.contains("3 uncommitted files are not in the agents' worktrees"),
            "{told}"
        );
    }
    assert_eq!(stage.checkout(), before);
    stage.task("", &["id: alpha, mission: Alpha, worktree: never"], &[]);
    stage.write("work/README.md", "# Changed again\n");
    assert_eq!(
        mention(&["run", "task.yaml", "--yes"]),
        None,
        "it works in the folder itself"
    );
}

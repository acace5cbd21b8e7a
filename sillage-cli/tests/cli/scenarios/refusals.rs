//! What cannot be done is told, with the right exit code; nothing is half done and nothing is lost.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use sillage_testkit::machine::mounts;

use super::Stage;
use crate::Ended;

const DONE: &str = "prompts:\n  - { times: always, steps: [report: { summary: Done. }] }\n";

/// The words of the error that it answered with.
#[track_caller]
fn error(ended: &Ended) -> String {
    let answer = ended.outcome();
    assert_eq!(answer["ok"], false, "{answer}");
    answer["error"]["message"].as_str().expect("a message").to_owned()
}

/// No agent was started, no branch and no worktree made, no run kept.
#[track_caller]
fn assert_nothing_begun(stage: &Stage) {
    assert_eq!(stage.record().len(), 0, "an agent was started");
    if stage.path("work/.git").exists() {
        assert_eq!(stage.branches(), Vec::<String>::new());
        assert_eq!(stage.worktrees(), Vec::<std::path::PathBuf>::new());
    }
    if stage.path("data/store").exists() {
        assert_eq!(stage.logs().len(), 0, "a run was kept");
    }
    stage.assert_no_process();
}

// W12.
#[test]
fn a_faulty_task_is_told_whole_and_starts_nothing() {
    let stage = Stage::new(DONE);
    stage.task(
        "limts: {}",
        &["id: alpha, mission: Alpha, worktre: always"],
        &["alpha -> beta"],
    );
    let ended = stage.run().expect(2);
    let faults = ended.outcome()["faults"].as_array().map(Vec::len);
    assert!(faults >= Some(3), "all at once: {}", ended.stdout);
    assert_nothing_begun(&stage);
}

// W12.
#[test]
fn an_unknown_model_or_effort_is_refused_before_launch() {
    let stage = Stage::new(DONE);
    for (model, effort) in [
        ("scriptid", "low"),
        ("nobody/scripted", "low"),
        ("scripted", "lwo"),
    ] {
        let task =
            format!("task: T\nagents: [{{ id: alpha, mission: Alpha, model: {model}, effort: {effort} }}]\n");
        stage.write("work/task.yaml", task);
        let ended = stage.run().expect(2);
        assert_eq!(
            ended.outcome()["faults"].as_array().map(Vec::len),
            Some(1),
            "{}",
            ended.stdout
        );
    }
    assert_nothing_begun(&stage);
}

// W3.
#[test]
fn a_missing_folder_is_refused_by_name() {
    let stage = Stage::new(DONE);
    stage.write(
        "work/task.yaml",
        "task: T\nfolders: { write: [no/such] }\nagents: [{ id: a, mission: M, model: scripted, effort: low }]\n",
    );
    assert!(error(&stage.run().expect(2)).contains("no/such"));
    assert_nothing_begun(&stage);
}

// R20.
#[test]
fn a_repository_without_a_commit_is_refused() {
    let stage = Stage::without_repository(DONE);
    stage.git(&["init", "--quiet"]);
    stage.write(
        "work/task.yaml",
        "task: T\nfolders: { write: [.] }\nagents: [{ id: a, mission: M, model: scripted, effort: low, worktree: always }]\n",
    );
    let words = error(&stage.run().expect(2));
    assert!(words.contains("no commit"), "{words}");
    assert_nothing_begun(&stage);
}

// R15.
#[test]
fn a_worktree_outside_a_repository_is_refused() {
    let stage = Stage::without_repository(DONE);
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    let words = error(&stage.run().expect(2));
    assert!(words.contains("`alpha`") && words.contains("worktree"), "{words}");
    assert_nothing_begun(&stage);
}

#[test]
fn the_store_is_one_programs_at_a_time_and_the_other_is_named() {
    let stage = Stage::without_repository(
        "prompts:\n  - { match: Alpha, steps: [touch: \"{{script_dir}}/at_work\", wait_for: \"{{script_dir}}/go\", report: { summary: Done. }] }\n",
    );
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let mut first = stage.start_run();
    stage.appears("at_work");
    let second = stage.run().expect(6);
    let (words, pid) = (error(&second), first.pid().to_string());
    assert!(words.contains(&pid), "it names process {pid}: {words}");
    assert_eq!(stage.prompts("Alpha").len(), 1);
    stage.write("go", "");
    first.wait().expect(0);
    assert_eq!(stage.logs().len(), 1);
}

#[test]
fn a_damaged_store_is_told_each_time_and_starts_nothing() {
    let stage = Stage::without_repository(DONE);
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    stage.run().expect(0);
    let before = stage.record().len();
    let file = stage.path("data/store/sled/db");
    let mut bytes = fs::read(&file).expect("the store's file");
    bytes.iter_mut().step_by(7).for_each(|byte| *byte = !*byte);
    fs::write(&file, bytes).expect("our own file");
    for command in [
        &["run", "task.yaml", "--json", "--yes"][..],
        &["resume", "--json"],
    ] {
        let words = error(&stage.start(command).wait().expect(6));
        assert!(
            words.contains(&stage.path("data/store").display().to_string()),
            "it names the store: {words}"
        );
        assert!(words.contains("restore"), "it says what to do: {words}");
    }
    assert_eq!(stage.record().len(), before, "no agent was started");
}

#[test]
fn a_data_folder_that_cannot_be_written_is_told() {
    let stage = Stage::new(DONE);
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    // Below a regular file nobody can make a folder, whoever they are.
    let data = stage.write("a_file", "").join("data");
    let ended = stage
        .command(&["run", "task.yaml", "--json", "--yes"])
        .env("SILLAGE_DATA_DIR", &data)
        .output()
        .expect("the program runs");
    let ended = crate::ended(ended).expect(6);
    assert!(
        error(&ended).contains(&stage.path("a_file").display().to_string()),
        "{}",
        ended.stdout
    );
    assert_nothing_begun(&stage);
}

/// A small file system that ends with its test.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    /// None where we may not mount one.
    fn mount(folder: std::path::PathBuf, size: &str) -> Option<SmallDisk> {
        fs::create_dir_all(&folder).expect("our own folder");
        mounts(&folder, size).then_some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// A disk that is full while a run is at work: the run says so, waits, and goes on in the same session once there is
/// room. A person may stop it before that; a resume then does what is left.
#[test]
fn a5_a_run_waits_for_room_on_a_full_disk_and_loses_nothing() {
    // An answer that the store writes in one piece with the rest, and one that it has to divide.
    for length in [10_000, 30_000] {
        for stopped in [false, true] {
            // Where the store still had room of its own for all that followed, the run is complete, and it is tried
            // again.
            let mut tried = (0..5)
                .map_while(|_| a_disk_that_fills_up(length, stopped))
                .peekable();
            if tried.peek().is_none() {
                return;
            }
            assert!(tried.any(|full| full), "the disk was never full");
        }
    }
}

/// Whether the disk was full in time; what follows then is asserted. None: no such disk can be had.
fn a_disk_that_fills_up(length: usize, stopped: bool) -> Option<bool> {
    let long = "far too long ".repeat(length);
    let stage = Stage::without_repository(&format!(
        "prompts:\n  - {{ match: Alpha, steps: [report: {{ summary: Alpha is done. }}] }}\n  - {{ match: Beta, times: always, steps: [touch: \"{{{{script_dir}}}}/at_work\", wait_for: \"{{{{script_dir}}}}/go\", say: {long}, report: {{ summary: Beta is done. }}] }}\n  - {{ steps: [report: {{ summary: Beta is done. }}] }}\n",
    ));
    let _disk = SmallDisk::mount(stage.path("data"), "24m")?;
    stage.task(
        "",
        &["id: alpha, mission: Alpha", "id: beta, mission: Beta"],
        &["alpha -> beta"],
    );
    let mut running = stage.start_run();
    stage.appears("at_work");
    let filler = Filler::of(stage.path("data/filler"));
    stage.write("go", "");
    if !running.says("\"disk_full\"") {
        drop(filler);
        assert_eq!(running.wait().expect(0).outcome()["state"], "complete");
        return Some(false);
    }
    let outcome = if stopped {
        running.signal(Signal::INT);
        let words = error(&running.wait().expect(6));
        assert!(words.contains("space"), "{words}");
        stage.assert_no_process();
        drop(filler);
        fs::remove_file(stage.path("data/filler")).expect("our own file");
        stage.resume().expect(0).outcome()
    } else {
        drop(filler);
        fs::remove_file(stage.path("data/filler")).expect("our own file");
        let ended = running.wait().expect(0);
        assert!(ended.stdout.contains("\"disk_has_room\""), "{}", ended.stdout);
        assert_eq!(stage.prompts("Beta").len(), 1, "its session lived on");
        ended.outcome()
    };
    assert_eq!(outcome["state"], "complete");
    stage.assert_no_process();
    let alpha: Vec<String> = stage
        .prompts("Alpha")
        .into_iter()
        .filter(|text| !text.contains("Beta"))
        .collect();
    assert_eq!(alpha.len(), 1, "what was done before is kept");
    Some(true)
}

/// Keeps a disk full until it is dropped: the store gives room back now and then, which others would take as well.
struct Filler {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Filler {
    /// Comes back once there is no room.
    fn of(path: PathBuf) -> Filler {
        let over = Arc::new(AtomicBool::new(false));
        let mut file = fs::File::create(path).expect("our own file");
        fill(&mut file);
        let ends = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                fill(&mut file);
            }
        });
        Filler {
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Writes until there is no room.
fn fill(file: &mut fs::File) {
    use std::io::Write as _;
    for size in [1 << 16, 1 << 12, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[test]
fn a_signal_before_the_first_agent_answers_leaves_nothing() {
    let stage = Stage::new("start: { wait_for: \"{{script_dir}}/never\" }\n");
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    let mut running = stage.start_run();
    super::eventually("the agent's process", || !stage.record().is_empty());
    running.signal(Signal::TERM);
    running.signal(Signal::INT);
    let outcome = running.wait().expect(130).outcome();
    assert_eq!(outcome["state"], "stopped");
    stage.assert_no_process();
}

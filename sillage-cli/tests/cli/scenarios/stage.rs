//! Where a scenario is played: a folder with a repository, a task, a script and the program's data, and nothing that
//! outlives it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sillage::core::id::{RunId, Seq};
use sillage::core::ports::Store as _;
use sillage::core::ports::store::Which;
use sillage::core::run::{Event, Failure, Recorded, Run, Step, StepEnd, codec};
use sillage::store::{Options, SledStore};
use sillage_acp::scripted_agent::record::{self, Entry, Event as Deed};
use sillage_testkit::condition;

use crate::{Ended, Sandbox, ended};

/// How long anything may take before the test says that it never came.
const BOUND: Duration = Duration::from_secs(60);

/// What every script begins with.
const SCRIPT: &str = "sessions: sessions\nuses: uses\noptions:\n  - { id: model, category: model, values: [scripted] }\n  - { id: effort, category: thought_level, values: [low] }\n";

/// Waits until `condition` holds.
#[track_caller]
pub(crate) fn eventually(what: &str, holds: impl FnMut() -> bool) {
    condition::eventually_blocking(what, BOUND, holds);
}

/// The folder of a scenario. The project is in `work`, the program's data in `data`.
pub(crate) struct Stage {
    pub(crate) sandbox: Sandbox,
}

/// A run as its log tells it.
pub(crate) struct Log {
    pub(crate) facts: Vec<Recorded>,
    pub(crate) run: Run,
}

impl Log {
    fn of(facts: Vec<Recorded>) -> Log {
        let run = Run::replay(facts.iter().cloned()).expect("a sound log");
        Log { facts, run }
    }

    /// The step of an agent.
    pub(crate) fn step(&self, agent: &str) -> &Step {
        let step = self.run.step_named(agent).expect("a step of the run");
        &self.run.steps()[step.position()]
    }

    /// Where each step stands, by agent.
    pub(crate) fn words(&self) -> Vec<(&str, &'static str)> {
        let names = self.run.step_names();
        names
            .zip(self.run.steps())
            .map(|(name, step)| (name, step.word()))
            .collect()
    }

    /// The words by which an agent failed.
    #[track_caller]
    pub(crate) fn failure(&self, agent: &str) -> &Failure {
        let end = self.step(agent).end();
        let failure = if let Some(StepEnd::Failed(failure)) = end {
            Some(&**failure)
        } else {
            None
        };
        assert!(failure.is_some(), "{agent} did not fail: {end:?}");
        failure.expect("just asserted")
    }

    /// How many facts are of a kind.
    pub(crate) fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.facts.iter().filter(|fact| is(&fact.event)).count()
    }

    /// The run as it stood after the first fact of a kind.
    pub(crate) fn after(&self, is: impl Fn(&Event) -> bool) -> Log {
        let last = self
            .facts
            .iter()
            .position(|fact| is(&fact.event))
            .expect("such a fact");
        Log::of(self.facts[..=last].to_vec())
    }
}

/// The program at work; killed when the test gives up on it.
pub(crate) struct Running {
    child: Option<Child>,
    /// What was read of its standard output so far, and the rest of it.
    said: Vec<u8>,
    rest: Option<std::io::BufReader<std::process::ChildStdout>>,
}

impl Running {
    /// Begins a command.
    pub(crate) fn of(mut command: Command) -> Running {
        Running {
            child: Some(command.spawn().expect("the program starts")),
            said: Vec::new(),
            rest: None,
        }
    }

    fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("not waited for yet")
    }

    pub(crate) fn pid(&mut self) -> u32 {
        self.child().id()
    }

    /// Whether it says a line that holds `part`, before it ends.
    pub(crate) fn says(&mut self, part: &str) -> bool {
        use std::io::BufRead as _;
        if self.rest.is_none() {
            self.rest = self.child().stdout.take().map(std::io::BufReader::new);
        }
        let rest = self.rest.as_mut().expect("its standard output is ours");
        loop {
            let before = self.said.len();
            let read = rest.read_until(b'\n', &mut self.said).expect("a pipe");
            if String::from_utf8_lossy(&self.said[before..]).contains(part) {
                return true;
            }
            if read == 0 {
                return false;
            }
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&mut self, signal: Signal) {
        let pid = i32::try_from(self.pid())
            .ok()
            .and_then(Pid::from_raw)
            .expect("a process");
        kill_process(pid, signal).expect("it is ours");
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(mut self) {
        self.child().kill().expect("it is ours");
        self.child().wait().expect("it ends");
        self.child = None;
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Ended {
        // What it says may be more than a pipe holds.
        let rest = self.rest.take();
        let child = self.child();
        let stdout = match rest {
            Some(rest) => drained(Some(rest)),
            None => drained(child.stdout.take()),
        };
        let stderr = drained(child.stderr.take());
        eventually("the program's end", || {
            self.child().try_wait().expect("it is ours").is_some()
        });
        let mut child = self.child.take().expect("not waited for yet");
        ended(std::process::Output {
            status: child.wait().expect("it ended"),
            stdout: [
                std::mem::take(&mut self.said),
                stdout.join().expect("it was read"),
            ]
            .concat(),
            stderr: stderr.join().expect("it was read"),
        })
    }
}

/// Reads a pipe to its end.
fn drained(pipe: Option<impl std::io::Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).expect("a pipe");
        }
        bytes
    })
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whatever a scenario did, its repository is sound at its end (G10).
impl Drop for Stage {
    fn drop(&mut self) {
        let work = self.path("work");
        // This very git may refuse to open it.
        let opens = || Command::new("git").arg("-C").arg(&work).arg("rev-parse").output();
        if !std::thread::panicking()
            && work.join(".git").exists()
            && opens().is_ok_and(|told| told.status.success())
        {
            self.git(&["fsck", "--strict", "--no-dangling"]);
        }
    }
}

impl Stage {
    /// A repository on `main` with one commit, and an agent that plays this script.
    pub(crate) fn new(script: &str) -> Stage {
        let stage = Stage::without_repository(script);
        stage.git(&["init", "--quiet", "--initial-branch=main"]);
        stage.git(&["config", "user.name", "A Person"]);
        stage.git(&["config", "user.email", "person@localhost"]);
        stage.write("work/README.md", "# Hello\n");
        stage.commit("Begin");
        stage
    }

    /// The same in a plain folder.
    pub(crate) fn without_repository(script: &str) -> Stage {
        let stage = Stage {
            sandbox: Sandbox::new(),
        };
        stage.write("work/.sillage/project.yaml", "name: P\n");
        stage.write("home/.keep", "");
        stage.script(script);
        let settings = serde_json::json!({ "agents": [{
            "name": "scripted",
            "command": env!("CARGO_BIN_EXE_sillage"),
            "args": ["scripted-agent", "--script", stage.path("script.yaml"), "--record", stage.path("record")],
            "models": { "scripted": { "efforts": ["low"] } },
        }]});
        stage.write("config.yaml", settings.to_string());
        stage
    }

    /// Sets a limit of the settings.
    pub(crate) fn limit(&self, name: &str, value: &str) {
        self.setting("limits", name, value);
    }

    /// Sets something in a group of the settings.
    pub(crate) fn setting(&self, group: &str, name: &str, value: &str) {
        let mut settings: Value =
            serde_json::from_str(&self.sandbox.read("config.yaml")).expect("the settings are JSON");
        settings[group][name] = value.into();
        self.write("config.yaml", settings.to_string());
    }

    /// What `status --json` tells.
    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        self.start(&["status", "--json"]).wait().expect(0).json()
    }

    /// What the agents do from now on.
    pub(crate) fn script(&self, script: &str) {
        self.write("script.yaml", format!("{SCRIPT}{script}"));
    }

    /// The task, committed if there is a repository: its agents as flow maps without braces, its links.
    pub(crate) fn task(&self, head: &str, agents: &[&str], links: &[&str]) {
        let mut text = format!("task: T\nfolders: {{ write: [.] }}\n{head}\nagents:\n");
        for agent in agents {
            text.push_str(&format!("  - {{ {agent}, model: scripted, effort: low }}\n"));
        }
        if !links.is_empty() {
            text.push_str(&format!("links: [{}]\n", links.join(", ")));
        }
        self.write("work/task.yaml", text);
        if self.path("work/.git").exists() {
            self.commit("Add the task");
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// The folder, without links in its path.
    fn folder(&self) -> PathBuf {
        fs::canonicalize(self.sandbox.path(".")).expect("our own folder")
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        self.sandbox.write(name, text)
    }

    /// Git in the project's folder; gives what it says.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.path("work"), arguments)
    }

    #[track_caller]
    pub(crate) fn git_in(&self, folder: &Path, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.arg("-C")
            .arg(folder)
            .args(arguments)
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1");
        let told = git.output().expect("git runs");
        assert!(
            told.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&told.stderr)
        );
        String::from_utf8_lossy(&told.stdout).trim_end().to_owned()
    }

    /// Commits all that is in the project's folder.
    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
    }

    /// The branches of the engine's.
    pub(crate) fn branches(&self) -> Vec<String> {
        let told = self.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/sillage"]);
        told.lines().map(str::to_owned).collect()
    }

    /// Worktrees that git knows besides the person's own.
    pub(crate) fn worktrees(&self) -> Vec<PathBuf> {
        let told = self.git(&["worktree", "list", "--porcelain"]);
        told.lines()
            .filter_map(|line| line.strip_prefix("worktree "))
            .skip(1)
            .map(PathBuf::from)
            .collect()
    }

    /// Head, index and files of the person's checkout, byte for byte. No git command looks at it: that could refresh
    /// the index.
    pub(crate) fn checkout(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut kept = BTreeMap::new();
        let mut left = vec![self.path("work")];
        while let Some(folder) = left.pop() {
            for entry in fs::read_dir(&folder).expect("our own folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() && path.file_name() != Some(".git".as_ref()) {
                    left.push(path);
                } else if path.is_file() {
                    let bytes = fs::read(&path).expect("a file");
                    kept.insert(path, bytes);
                }
            }
        }
        for name in ["HEAD", "index", "refs/heads/main"] {
            let path = self.path("work/.git").join(name);
            let bytes = fs::read(&path).expect("git's own file");
            kept.insert(path, bytes);
        }
        kept
    }

    /// The program with these arguments, this stage's settings and its data.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(arguments);
        command
            .current_dir(self.path("work"))
            .env("PATH", self.search_path())
            .env("SILLAGE_CONFIG", self.path("config.yaml"))
            .env("SILLAGE_DATA_DIR", self.path("data"));
        command
    }

    /// The stage's own programs, in `bin`, before those of the machine.
    fn search_path(&self) -> std::ffi::OsString {
        let machine = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.path("bin")).chain(std::env::split_paths(&machine));
        std::env::join_paths(folders).expect("folders without colons")
    }

    /// Begins a command.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::of(self.command(arguments))
    }

    /// A command of the program's that another program, which these words are, turns into; it has the same number.
    pub(crate) fn by_way_of(&self, words: &[&str], arguments: &[&str]) -> Command {
        let inner = self.command(arguments);
        let mut outer = Command::new(words[0]);
        outer
            .args(&words[1..])
            .arg(inner.get_program())
            .args(inner.get_args())
            .current_dir(self.path("work"))
            .env_clear()
            .envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        outer
    }

    /// Runs the task to its end.
    #[track_caller]
    pub(crate) fn run(&self) -> Ended {
        self.start_run().wait()
    }

    /// Begins to run the task.
    pub(crate) fn start_run(&self) -> Running {
        self.start(&["run", "task.yaml", "--json", "--yes"])
    }

    /// Goes on with the newest run.
    #[track_caller]
    pub(crate) fn resume(&self) -> Ended {
        self.start(&["resume", "--json"]).wait()
    }

    /// What the agents' record tells so far.
    pub(crate) fn record(&self) -> Vec<Deed> {
        let entries: Vec<Entry> = record::read(&self.path("record")).expect("a record");
        entries.into_iter().map(|entry| entry.event).collect()
    }

    /// The prompts so far that hold `part`.
    pub(crate) fn prompts(&self, part: &str) -> Vec<String> {
        let mut prompts = Vec::new();
        for deed in self.record() {
            if let Deed::Prompted { text, .. } = deed
                && text.contains(part)
            {
                prompts.push(text);
            }
        }
        prompts
    }

    /// Whether an agent was sent this method.
    pub(crate) fn received(&self, method: &str) -> bool {
        self.record()
            .iter()
            .any(|deed| matches!(deed, Deed::Received { frame } if frame["method"] == method))
    }

    /// Waits for a file.
    #[track_caller]
    pub(crate) fn appears(&self, name: &str) {
        eventually(name, || self.path(name).exists());
    }

    /// The newest run's log. Nobody else may hold the store.
    pub(crate) fn log(&self) -> Log {
        self.logs().into_iter().next().expect("a run")
    }

    /// All runs' logs, the newest first.
    pub(crate) fn logs(&self) -> Vec<Log> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let store = SledStore::open(self.path("data/store"), Options::default()).expect("a store");
            let mut logs = Vec::new();
            for summary in store.runs(Which::All, 100).await.expect("runs") {
                logs.push(Log::of(facts(&store, &summary.run).await));
            }
            logs
        })
    }

    /// Processes that work for this stage: its folder is on their command line or they stand in it.
    pub(crate) fn processes(&self) -> Vec<String> {
        let folder = self.folder().display().to_string();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("Linux has it").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            // It may end while it is looked at, and one that ended has no command line.
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let stands = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            if !line.is_empty() && (line.contains(&folder) || stands.starts_with(&folder)) {
                found.push(format!("{name}: {line}"));
            }
        }
        found
    }

    /// Nothing of the run is left running: not now, and not after a while, for nothing is left to start it.
    #[track_caller]
    pub(crate) fn assert_no_process(&self) {
        let left = self.processes();
        assert!(left.is_empty(), "left running: {left:#?}");
    }
}

async fn facts(store: &SledStore, run: &RunId) -> Vec<Recorded> {
    let mut facts = Vec::new();
    let mut from = Seq::FIRST;
    loop {
        let page = store.read(run, from, 1 << 20).await.expect("a log");
        let Some((last, _)) = page.last() else {
            return facts;
        };
        from = last.next();
        facts.extend(
            page.iter()
                .map(|(_, bytes)| codec::decode(bytes).expect("an event")),
        );
    }
}

impl Ended {
    /// The last line of `run --json`: what the run came to.
    #[track_caller]
    pub(crate) fn outcome(&self) -> Value {
        let last = self.stdout.lines().last();
        assert!(last.is_some(), "no line; standard error: {}", self.stderr);
        serde_json::from_str(last.unwrap_or_default()).expect("a line of JSON")
    }

    /// Fails with all that the program said unless it ended with this code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Ended {
        assert_eq!(
            self.code, code,
            "standard output: {}\nstandard error: {}",
            self.stdout, self.stderr
        );
        self
    }
}

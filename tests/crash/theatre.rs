//! A folder with a repository, a task of five agents, what they do, and the program's data.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use sillage::core::id::Seq;
use sillage::core::ports::Store as _;
use sillage::core::ports::store::Which;
use sillage::core::run::{Event, Recorded, Run, codec};
use sillage::store::{Options, SledStore};
use sillage_acp::scripted_agent::record::{self, Event as Deed};
use sillage_testkit::condition::eventually_blocking;

/// How long a run may take.
const BOUND: Duration = Duration::from_secs(120);

/// A fork and a join.
const TASK: &str = "task: T
folders: { write: [.] }
agents:
  - { id: start, mission: Mission of start, model: scripted, effort: low, worktree: always }
  - { id: left, mission: Mission of left, model: scripted, effort: low, worktree: always }
  - { id: middle, mission: Mission of middle, model: scripted, effort: low, worktree: always }
  - { id: right, mission: Mission of right, model: scripted, effort: low, worktree: always }
  - { id: join, mission: Mission of join, model: scripted, effort: low, worktree: always }
links: [start -> left, start -> middle, start -> right, left -> join, middle -> join, right -> join]
";

/// Whatever it is asked, an agent does its work, which changes nothing when it is done already, and reports. The first
/// report of `left` is wrong, and comes back to it.
const SCRIPT: &str = r#"
sessions: sessions
uses: uses
options:
  - { id: model, category: model, values: [scripted] }
  - { id: effort, category: thought_level, values: [low] }
prompts:
  - match: Mission of left
    steps: [run: "sh {{script_dir}}/work.sh", report: { summary: Wrong., checks: [{ kind: review, status: passing }] }]
default:
  - run: sh {{script_dir}}/work.sh
  - report: { summary: Done. }
"#;

/// Each agent writes a file of its name; one of them commits by itself. The last needs the others' work. Two of them
/// write the same file: whichever is merged last has to put both lines there (R17).
const WORK: &str = r#"
set -e
name=$(git symbolic-ref --short HEAD)
name=${name##*/}
case $name in
    join) cat start.txt left.txt middle.txt right.txt > join.txt ;;
    *) echo "the work of $name" > "$name.txt" ;;
esac
case $name in
    left|right)
        if ! { grep -q "work of left" shared.txt && grep -q "work of right" shared.txt; } 2>/dev/null; then
            echo "the work of $name" > shared.txt
        fi
        if git rev-parse --quiet --verify MERGE_HEAD > /dev/null; then
            printf 'the work of left\nthe work of right\n' > shared.txt
            git add shared.txt
        fi ;;
esac
if [ "$name" = middle ]; then
    git add middle.txt
    git diff --cached --quiet || git commit --quiet --message "Middle commits by itself"
fi
"#;

pub(crate) struct Theatre {
    folder: tempfile::TempDir,
    /// The gateway that holds the sessions; none: the engine does.
    gateway: Option<Child>,
}

/// Who holds the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// The engine that is killed.
    ByTheEngine,
    /// A gateway, which is not.
    ByAGateway,
}

impl Drop for Theatre {
    fn drop(&mut self) {
        if let Some(gateway) = &mut self.gateway {
            // It may be gone already.
            let _ = gateway.kill();
            let _ = gateway.wait();
        }
    }
}

/// What must be the same however a run came to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct End {
    state: &'static str,
    /// The tree of the integration branch.
    tree: String,
    /// Where each step stands.
    steps: Vec<&'static str>,
    /// Worktrees that are left.
    worktrees: usize,
}

impl Theatre {
    pub(crate) fn new(held: Held) -> Theatre {
        let mut theatre = Theatre {
            folder: tempfile::tempdir().expect("a temporary folder"),
            gateway: None,
        };
        fs::create_dir_all(theatre.path("work")).expect("our own folder");
        fs::create_dir_all(theatre.path("home")).expect("our own folder");
        for (name, text) in [
            ("script.yaml", SCRIPT),
            ("work.sh", WORK),
            ("work/task.yaml", TASK),
        ] {
            fs::write(theatre.path(name), text).expect("our own folder");
        }
        theatre.git(&["init", "--quiet", "--initial-branch=main"]);
        theatre.git(&["config", "user.name", "A Person"]);
        theatre.git(&["config", "user.email", "person@localhost"]);
        theatre.git(&["add", "--all"]);
        theatre.git(&["commit", "--quiet", "--message=Begin"]);
        if held == Held::ByAGateway {
            theatre.start_gateway();
        }
        theatre
    }

    fn start_gateway(&mut self) {
        let mut gateway = Command::new(std::env::current_exe().expect("this program"));
        gateway.arg("gateway").arg(self.folder.path());
        let gateway = gateway.env("HOME", self.path("home")).spawn();
        self.gateway = Some(gateway.expect("this program"));
        eventually_blocking("the gateway listens", BOUND, || self.path("gateway").exists());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.path("work")).args(arguments);
        git.env("HOME", self.path("home")).env("GIT_CONFIG_NOSYSTEM", "1");
        let told = git.output().expect("git runs");
        assert!(
            told.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&told.stderr)
        );
        String::from_utf8_lossy(&told.stdout).trim_end().to_owned()
    }

    /// An engine of its own drives the run to its end; or dies, and the last event that was to be durable with the
    /// chosen one is told.
    pub(crate) fn drive(&self, death: Option<(&str, u64)>) -> Option<u64> {
        let mut engine = Command::new(std::env::current_exe().expect("this program"));
        engine.arg("drive").arg(self.folder.path());
        if let Some((side, at)) = death {
            engine.arg(side).arg(at.to_string());
        }
        let mut engine = engine
            .env("HOME", self.path("home"))
            .spawn()
            .expect("this program");
        let since = Instant::now();
        let status = loop {
            if let Some(status) = engine.try_wait().expect("our own process") {
                break status;
            }
            if since.elapsed() > BOUND {
                engine.kill().expect("our own process");
                engine.wait().expect("it ends");
                panic!(
                    "a run does not end; {death:?}; its agents' record: {:#?}",
                    self.record()
                );
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let died = self.path("died");
        let Ok(events) = fs::read_to_string(&died) else {
            assert!(status.success(), "the run did not complete: {status}; {death:?}");
            return None;
        };
        fs::remove_file(&died).expect("our own file");
        use std::os::unix::process::ExitStatusExt as _;
        assert_eq!(status.signal(), Some(9), "it was killed");
        let last = events.split(' ').nth(1).and_then(|last| last.parse().ok());
        Some(last.expect("the events that it died at"))
    }

    fn record(&self) -> Vec<Deed> {
        let entries = record::read(&self.path("record")).expect("a record");
        entries.into_iter().map(|entry| entry.event).collect()
    }

    fn log(&self) -> Vec<Recorded> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let store = SledStore::open(self.path("data/store"), Options::default()).expect("a store");
            let runs = store.runs(Which::All, 10).await.expect("runs");
            assert_eq!(runs.len(), 1, "one run in all");
            let events = store
                .read(&runs[0].run, Seq::FIRST, 64 << 20)
                .await
                .expect("a log");
            events
                .iter()
                .map(|(_, bytes)| codec::decode(bytes).expect("an event"))
                .collect()
        })
    }

    /// What the run came to.
    pub(crate) fn end(&self) -> End {
        let run = Run::replay(self.log()).expect("a sound log");
        self.git(&["fsck", "--strict"]);
        assert_eq!(
            self.git(&["status", "--porcelain"]),
            "",
            "the person's checkout is as it was"
        );
        assert_eq!(
            self.git(&["rev-list", "--count", "main"]),
            "1",
            "the person's branch is as it was"
        );
        let branch = run.definition().integration_branch();
        assert_eq!(run.tip(), Some(self.git(&["rev-parse", &branch]).as_str()));
        End {
            state: run.word(),
            tree: self.git(&["rev-parse", &format!("{branch}^{{tree}}")]),
            steps: run.steps().iter().map(|step| step.word()).collect(),
            worktrees: self.git(&["worktree", "list"]).lines().count(),
        }
    }

    /// Each report was accepted once, no identifier was planned twice, and nothing was asked of a session that had
    /// given its report.
    pub(crate) fn assert_sound(&self, told: &str) {
        let mut accepted = BTreeSet::new();
        let mut planned = BTreeSet::new();
        for Recorded { seq, event, .. } in self.log() {
            let new = if let Event::ReportAccepted { step, .. } = event {
                accepted.insert(step)
            } else if let Event::ConflictReturned { step } = event {
                // It is to report again, on its conflict.
                accepted.remove(&step)
            } else if let Event::SessionPlanned { request, .. } = event {
                planned.insert(request.client_session_id.to_string())
            } else if let Event::MessagePlanned { message, .. } = event {
                planned.insert(message.client_message_id.to_string())
            } else {
                true
            };
            assert!(new, "{told}: event {seq} says again what was said");
        }
        assert_eq!(accepted.len(), 5, "{told}: five reports");
        let mut done = BTreeSet::new();
        let mut asked = BTreeSet::new();
        for deed in self.record() {
            if let Deed::Prompted { session, text, .. } = deed {
                // No session is lost that a gateway holds, and none has to be asked to go on.
                assert!(
                    self.gateway.is_none() || asked.insert((session.clone(), text.clone())),
                    "{told}: asked twice: {text}"
                );
                assert!(
                    self.gateway.is_none() || !text.contains("interrupted"),
                    "{told}: nothing was interrupted: {text}"
                );
                if text.contains("cannot be merged") {
                    done.remove(&session);
                }
                assert!(
                    !done.contains(&session),
                    "{told}: asked again after its report: {text}"
                );
            } else if let Deed::Answered { session, text, .. } = deed
                // The first report of `left` is wrong: what follows is asked for.
                && !text.contains("Mission of left")
            {
                done.insert(session);
            }
        }
    }

    /// What held its sessions is gone with all of them, where the engine that was killed did.
    pub(crate) fn assert_gone_with_it(&self, told: &str) {
        if self.gateway.is_none() {
            self.assert_no_process(told);
        }
    }

    /// No process of this folder is left but a gateway, within the moment that the kernel takes to end one.
    pub(crate) fn assert_no_process(&self, told: &str) {
        let since = Instant::now();
        let gateway = format!(" gateway {}", self.folder.path().display());
        loop {
            let mut left = processes(self.folder.path());
            left.retain(|line| !line.contains(&gateway));
            if left.is_empty() {
                return;
            }
            assert!(
                since.elapsed() < Duration::from_secs(10),
                "{told}: left running: {left:#?}"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Command lines of the processes that name this folder or stand in it.
fn processes(folder: &Path) -> Vec<String> {
    let name = folder.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("Linux has it").flatten() {
        // It may end while it is looked at, and one that ended has no command line.
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let stands = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if !line.is_empty() && (line.contains(&name) || stands.starts_with(folder)) {
            found.push(line);
        }
    }
    found
}

//! Running the task's check (W10b): a person's command, in a group of processes of its own that is ended whole.
//!
//! It gets no input and the variables that agents get, no key among them. What it writes goes to a file. Where the
//! engine has a launcher ([`crate::EngineBuilder::launcher`]), a guardian ends all that the command started, whatever
//! group or session that is in, with it and with the engine. Without one only its group is ended, and a process that
//! left the group by `setsid` is not found.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sillage_core::environment::inherited_environment;
use sillage_core::ports::Workspace;
use sillage_core::run::{CHECK_OUTPUT, CHECK_TAIL, CheckPlace, CheckResult, check_overran};
use tokio::process::{Child, Command};

/// Runs `$1`, with a process beside it that waits for the engine's end of a pipe to close and then ends the group.
#[cfg(unix)]
const SCRIPT: &str = "exec 3<&0 </dev/null\n\
    ( read -r _ <&3; kill -KILL 0 ) >/dev/null 2>&1 &\n\
    exec 3<&-\n\
    sh -c \"$1\"\n";

/// How often the size of the output is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long a guardian may take to end what it guards; it goes on after that, and nobody waits.
const GUARDIAN_ENDS: Duration = Duration::from_secs(20);

/// What is to be run.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) command: String,
    pub(crate) place: CheckPlace,
    pub(crate) output: PathBuf,
    pub(crate) limit: Duration,
    /// What starts it and guards it; empty: it is started directly.
    pub(crate) launcher: Vec<OsString>,
}

/// Makes the folder, runs the command, and tells how it ended. Dropped, it ends the command at once.
pub(crate) async fn run(workspace: &dyn Workspace, check: Check) -> CheckResult {
    let folder = match &check.place {
        CheckPlace::Here(folder) => folder.clone(),
        CheckPlace::Fresh {
            repository,
            run,
            commit,
            place,
        } => match workspace.check_folder(repository, run, commit).await {
            // Joined with an empty path it would end with a slash.
            Ok(folder) if place.as_os_str().is_empty() => folder,
            Ok(folder) => folder.join(place),
            Err(error) => return CheckResult::not_made(error.to_string()),
        },
    };
    match command_in(&folder, &check).await {
        Ok(ended) => result(&check, ended),
        Err(error) => CheckResult::not_made(format!("it could not be run in {}: {error}", folder.display())),
    }
}

/// How the command came to its end.
#[derive(Debug)]
enum Ended {
    /// By itself; none: a signal ended it.
    Itself(Option<i32>),
    /// It took too long.
    Overran,
    /// It wrote too much.
    Overflowed,
}

async fn command_in(folder: &Path, check: &Check) -> std::io::Result<Ended> {
    fs::create_dir_all(check.output.parent().unwrap_or(&check.output))?;
    let output = File::create(&check.output)?;
    let guarded = !check.launcher.is_empty();
    let piped = cfg!(unix) && !guarded;
    let mut child = shell(check)
        .env_clear()
        .envs(inherited_environment(std::env::vars_os()))
        .current_dir(folder)
        .stdin(if piped { Stdio::piped() } else { Stdio::null() })
        .stderr(output.try_clone()?)
        .stdout(output)
        .kill_on_drop(!guarded)
        .spawn()?;
    let group = Group::of(&child, guarded);
    // The group ends when this closes.
    let alive = child.stdin.take();
    let ended = tokio::time::timeout(check.limit, ended(&mut child, &check.output)).await;
    if guarded && !matches!(ended, Ok(Ok(Ended::Itself(_)))) {
        group.end();
        // A guardian goes when nothing is left to guard.
        let _ = tokio::time::timeout(GUARDIAN_ENDS, child.wait()).await;
    }
    // Before the pipe closes: while the process beside the command waits there, the group's number stays the group's.
    drop(group);
    drop(alive);
    ended.unwrap_or(Ok(Ended::Overran))
}

async fn ended(child: &mut Child, output: &Path) -> std::io::Result<Ended> {
    loop {
        match tokio::time::timeout(LOOK, child.wait()).await {
            Ok(status) => return Ok(Ended::Itself(status?.code())),
            Err(_) if fs::metadata(output).is_ok_and(|found| found.len() > CHECK_OUTPUT) => {
                return Ok(Ended::Overflowed);
            }
            Err(_) => {}
        }
    }
}

#[cfg(unix)]
fn shell(check: &Check) -> Command {
    let mut shell = match check.launcher.split_first() {
        Some((program, words)) => {
            let mut guardian = Command::new(program);
            guardian.args(words).args(["sh", "-c", &check.command]);
            guardian
        }
        None => {
            let mut shell = Command::new("sh");
            shell.args(["-c", SCRIPT, "sh", &check.command]);
            shell
        }
    };
    shell.process_group(0);
    shell
}

#[cfg(not(unix))]
fn shell(check: &Check) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &check.command]);
    shell
}

/// Ends the command when it is dropped: by its guardian, else by killing its group.
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
    #[cfg(unix)]
    guarded: bool,
}

impl Group {
    #[cfg(unix)]
    fn of(child: &Child, guarded: bool) -> Group {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        Group {
            leader: leader.and_then(rustix::process::Pid::from_raw),
            guarded,
        }
    }

    #[cfg(not(unix))]
    fn of(_child: &Child, _guarded: bool) -> Group {
        Group {}
    }

    /// Asks the guardian to end all, or kills the group.
    fn end(&self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader {
            use rustix::process::{Signal, kill_process, kill_process_group};
            // Already gone is as good as ended.
            let _ = match self.guarded {
                true => kill_process(leader, Signal::TERM),
                false => kill_process_group(leader, Signal::KILL),
            };
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

fn result(check: &Check, ended: Ended) -> CheckResult {
    let (code, why) = match ended {
        Ended::Itself(Some(code)) => (Some(code), None),
        Ended::Itself(None) => (None, Some("a signal ended it".to_owned())),
        Ended::Overran => (None, Some(check_overran(check.limit))),
        Ended::Overflowed => {
            let most = CHECK_OUTPUT >> 20;
            (None, Some(format!("it wrote more than {most} MiB and was ended")))
        }
    };
    let (output, written) = tail(&check.output).unwrap_or_default();
    if written > CHECK_OUTPUT {
        // Between two looks much can be written.
        let cut = File::options().write(true).open(&check.output);
        if let Err(error) = cut.and_then(|file| file.set_len(CHECK_OUTPUT)) {
            tracing::warn!(file = %check.output.display(), %error, "a check's output could not be cut");
        }
    }
    CheckResult {
        passed: code == Some(0),
        code,
        why,
        output,
        written,
        file: Some(check.output.clone()),
    }
}

/// The last of a file, from the beginning of a line where one begins there, and its size.
fn tail(path: &Path) -> std::io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let most = CHECK_TAIL as u64;
    file.seek(SeekFrom::Start(size.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    let from = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) if size > most => end + 1,
        Some(_) | None => 0,
    };
    Ok((String::from_utf8_lossy(&bytes[from..]).into_owned(), size))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::time::Instant;

    use sillage_testkit::workspace::NoWorkspace;

    use super::*;

    fn check(folder: &Path, command: &str) -> Check {
        Check {
            command: command.to_owned(),
            place: CheckPlace::Here(folder.to_owned()),
            output: folder.join("own/check.log"),
            limit: Duration::from_secs(60),
            launcher: Vec::new(),
        }
    }

    /// Waits until no process stands in the folder.
    fn deserted(folder: &Path) -> bool {
        let folder = folder.canonicalize().unwrap();
        let stands = |entry: fs::DirEntry| {
            fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder))
        };
        let since = Instant::now();
        while fs::read_dir("/proc").unwrap().flatten().any(stands) {
            if since.elapsed() > Duration::from_secs(30) {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    #[tokio::test]
    async fn w10b_the_exit_code_decides_and_the_output_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let result = run(&NoWorkspace, check(folder.path(), "pwd; echo oops >&2; exit 3")).await;
        let here = folder.path().canonicalize().unwrap();
        assert_eq!((result.passed, result.code), (false, Some(3)));
        assert_eq!(result.output, format!("{}\noops\n", here.display()));
        let file = fs::read_to_string(result.file.as_ref().unwrap()).unwrap();
        assert_eq!(
            (file.as_str(), result.written),
            (result.output.as_str(), file.len() as u64)
        );
        let result = run(&NoWorkspace, check(folder.path(), "true")).await;
        assert_eq!((result.passed, result.output.as_str()), (true, ""));
    }

    #[tokio::test]
    async fn w10b_it_has_no_input_and_of_a_long_output_the_end_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let command = "cat; i=0; while [ $i -lt 4000 ]; do echo line $i; i=$((i+1)); done";
        let result = run(&NoWorkspace, check(folder.path(), command)).await;
        assert!(result.passed, "{result:?}");
        assert!(result.output.len() <= CHECK_TAIL && result.output.starts_with("line "));
        assert!(result.output.ends_with("line 3999\n") && result.written > CHECK_TAIL as u64);
    }

    #[tokio::test]
    async fn w10b_what_it_left_running_is_ended_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let result = run(&NoWorkspace, check(folder.path(), "sleep 1000 & exit 0")).await;
        assert!(result.passed, "{result:?}");
        assert!(deserted(folder.path()));
    }

    #[tokio::test]
    async fn w10b_one_that_takes_too_long_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut check = check(folder.path(), "echo began; sleep 1000");
        check.limit = Duration::from_millis(300);
        let result = run(&NoWorkspace, check).await;
        assert_eq!((result.passed, result.code), (false, None));
        assert!(result.why.unwrap().contains("took longer than 300ms"));
        assert!(deserted(folder.path()));
    }

    #[tokio::test]
    async fn r4_one_that_nobody_waits_for_any_more_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let began = folder.path().join("began");
        let command = format!("touch {}; sleep 1000", began.display());
        let check = check(folder.path(), &command);
        let task = tokio::spawn(async move { run(&NoWorkspace, check).await });
        while !began.exists() {
            tokio::task::yield_now().await;
        }
        task.abort();
        assert!(task.await.is_err());
        assert!(deserted(folder.path()));
    }

    #[tokio::test]
    async fn w10b_a_folder_that_is_not_there_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut check = check(folder.path(), "true");
        check.place = CheckPlace::Here(folder.path().join("no"));
        let result = run(&NoWorkspace, check).await;
        assert!(!result.passed && result.why.unwrap().contains("could not be run"));
    }
}

//! What starts an agent on behalf of an engine, and ends it with all that it started.
//!
//! A program offers it as a hidden command (`sillage launch-agent`) that calls [`launch`] with the rest of its
//! arguments, and names that command in [`crate::Options::launcher`]. On Linux it stays, as the agent's *guardian*: it
//! has the agent as its child, gets whatever the agent starts and leaves, and ends all of it when the agent ends, when
//! the engine dies (by `kill -9` too), or when it gets `SIGTERM`. It ends as the agent did, so that the engine sees the
//! agent's exit code or signal. The agent is started through a step of its own, which asks for `SIGKILL` at the
//! guardian's death, leads a process group, and sets the limits.
//!
//! On other Unix systems the launcher prepares its own process and becomes the agent. There an agent learns of its
//! engine's death by the end of its standard input only, and what leaves its process group is not found; on Windows
//! there is no launcher.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// Limits of an agent's process, which what it starts inherits (`setrlimit(2)`). None: as the engine's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Files open at once, in one process.
    pub open_files: Option<u64>,
    /// Processes of the user, all told.
    pub processes: Option<u64>,
    /// Bytes of address space, in one process.
    pub address_space: Option<u64>,
}

impl Limits {
    /// These, and `others` where these say nothing.
    #[must_use]
    pub fn or(self, others: Limits) -> Limits {
        Limits {
            open_files: self.open_files.or(others.open_files),
            processes: self.processes.or(others.processes),
            address_space: self.address_space.or(others.address_space),
        }
    }
}

/// Why an agent was not launched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The arguments are not those of a launch.
    #[error(
        "{0}; expected [--step] [--parent PID] [--after-term MS] [--open-files N] [--processes N] \
             [--address-space BYTES] -- COMMAND [ARGS]"
    )]
    Usage(String),
    /// The engine died before its death could be watched.
    #[error("the engine (process {0}) is gone")]
    Orphaned(u32),
    /// The process could not be prepared.
    #[error("cannot {what}")]
    Unprepared {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The agent's program could not be started.
    #[error("cannot start `{command}`")]
    NotStarted {
        /// The program.
        command: String,
        /// Why.
        source: std::io::Error,
    },
}

/// What a launch is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Launch {
    /// Not the guardian but the process that becomes the agent.
    step: bool,
    /// Nothing is to be started: end by this signal.
    end_by: Option<u32>,
    /// The process that must be the parent.
    parent: Option<u32>,
    /// Milliseconds.
    after_term: Option<u64>,
    limits: Limits,
    command: Vec<OsString>,
}

impl Launch {
    /// The words that [`parse`] makes this of.
    fn words(&self) -> Vec<OsString> {
        let step = self.step.then(|| OsString::from("--step"));
        let numbers = [
            ("--end-by", self.end_by.map(u64::from)),
            ("--parent", self.parent.map(u64::from)),
            ("--after-term", self.after_term),
            ("--open-files", self.limits.open_files),
            ("--processes", self.limits.processes),
            ("--address-space", self.limits.address_space),
        ];
        let given = numbers
            .iter()
            .filter_map(|(name, number)| Some([(*name).into(), (*number)?.to_string().into()]));
        let options = step.into_iter().chain(given.flatten());
        options
            .chain([OsString::from("--")])
            .chain(self.command.iter().cloned())
            .collect()
    }
}

/// The arguments by which [`launch`] is told these limits, the parent that it must have and how long it may take to
/// end the agent; the agent's command follows.
pub(crate) fn arguments(parent: u32, after_term: Duration, limits: Limits) -> Vec<OsString> {
    let launch = Launch {
        parent: Some(parent),
        after_term: Some(u64::try_from(after_term.as_millis()).unwrap_or(u64::MAX)),
        limits,
        ..Launch::default()
    };
    launch.words()
}

fn parse(words: &[OsString]) -> Result<Launch, LaunchError> {
    let mut words = words.iter();
    let mut parsed = Launch::default();
    let no_command = || LaunchError::Usage("no command".to_owned());
    loop {
        let name = words.next().ok_or_else(no_command)?;
        match name.to_str() {
            Some("--") => break,
            Some("--step") => {
                parsed.step = true;
                continue;
            }
            Some(_) | None => {}
        }
        let number = words.next().and_then(|value| value.to_str()?.parse::<u64>().ok());
        let number =
            number.ok_or_else(|| LaunchError::Usage(format!("{} takes a number", name.display())))?;
        let small =
            || u32::try_from(number).map_err(|_| LaunchError::Usage(format!("{number} is too large")));
        match name.to_str() {
            Some("--end-by") => parsed.end_by = Some(small()?),
            Some("--parent") => parsed.parent = Some(small()?),
            Some("--after-term") => parsed.after_term = Some(number),
            Some("--open-files") => parsed.limits.open_files = Some(number),
            Some("--processes") => parsed.limits.processes = Some(number),
            Some("--address-space") => parsed.limits.address_space = Some(number),
            Some(_) | None => {
                return Err(LaunchError::Usage(format!("unknown argument {}", name.display())));
            }
        }
    }
    parsed.command = words.cloned().collect();
    if parsed.command.is_empty() && parsed.end_by.is_none() {
        return Err(no_command());
    }
    Ok(parsed)
}

/// Launches the agent that the last arguments of this process name: `[--parent PID] [limits] -- command args…`, and
/// gives its exit code once it and all that it started have ended. `args` are these last arguments; what comes before
/// them is how this program is told to launch, and is used again.
///
/// # Errors
/// [`LaunchError`] when no agent was started: the parent is not the process `PID`, or something was refused.
#[cfg(unix)]
pub fn launch(args: impl IntoIterator<Item = OsString>) -> Result<ExitCode, LaunchError> {
    let words: Vec<OsString> = args.into_iter().collect();
    let launch = parse(&words)?;
    if let Some(number) = launch.end_by {
        return Ok(end_by(number));
    }
    #[cfg(target_os = "linux")]
    if !launch.step {
        return guard(launch, words.len());
    }
    Err(become_agent(&launch))
}

#[cfg(target_os = "linux")]
fn guard(launch: Launch, words: usize) -> Result<ExitCode, LaunchError> {
    use crate::process::{StopTimes, guardian};

    let all: Vec<OsString> = std::env::args_os().collect();
    let before = all.get(1..all.len().saturating_sub(words)).unwrap_or_default();
    let again = |launch: Launch| before.iter().cloned().chain(launch.words()).collect::<Vec<_>>();
    let after_term = match launch.after_term {
        Some(millis) => Duration::from_millis(millis),
        None => StopTimes::default().after_term,
    };
    let end_by = before
        .iter()
        .cloned()
        .chain([OsString::from("--end-by")])
        .collect();
    let guard = guardian::Guard {
        engine: launch.parent.unwrap_or_else(std::os::unix::process::parent_id),
        after_term,
        start: again(Launch {
            step: true,
            parent: Some(std::process::id()),
            after_term: None,
            ..launch
        }),
        end_by,
    };
    guardian::guard(&guard)
}

/// Becomes the agent; gives back only an error.
#[cfg(unix)]
fn become_agent(launch: &Launch) -> LaunchError {
    use std::os::unix::process::CommandExt;

    if let Err(error) = prepare(launch) {
        return error;
    }
    let Some((program, args)) = launch.command.split_first() else {
        return LaunchError::Usage("no command".to_owned());
    };
    let source = std::process::Command::new(program).args(args).exec();
    LaunchError::NotStarted {
        command: program.to_string_lossy().into_owned(),
        source,
    }
}

/// An exit code as a process gives it.
#[cfg(unix)]
pub(crate) fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}

/// Ends this process by a signal, or by the exit code that shells give for it.
#[cfg(unix)]
fn end_by(number: u32) -> ExitCode {
    use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};

    let number = i32::try_from(number).unwrap_or_default();
    // The agent's own end has left what it had to leave.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
    if let Some(signal) = Signal::from_named_raw(number) {
        // The standard library looks at the first of some signals, and lets the second take its course.
        for _ in 0..2 {
            let _ = kill_process(getpid(), signal);
        }
    }
    exit_code(128 + number)
}

#[cfg(unix)]
fn prepare(launch: &Launch) -> Result<(), LaunchError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let unprepared = |what| {
        move |error: rustix::io::Errno| LaunchError::Unprepared {
            what,
            source: error.into(),
        }
    };
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(unprepared("ask for a signal at its parent's death"))?;
    if let Some(parent) = launch.parent
        && parent != std::os::unix::process::parent_id()
    {
        return Err(LaunchError::Orphaned(parent));
    }
    // Already so when an engine or a guardian started it; a leader of its session cannot and need not be.
    match rustix::process::setpgid(None, None) {
        Ok(()) | Err(rustix::io::Errno::PERM) => {}
        Err(error) => return Err(unprepared("lead a process group")(error)),
    }
    let limits = [
        (Resource::Nofile, launch.limits.open_files),
        (Resource::Nproc, launch.limits.processes),
        (Resource::As, launch.limits.address_space),
    ];
    for (resource, limit) in limits {
        let Some(limit) = limit else { continue };
        let most = getrlimit(resource).maximum.map_or(limit, |most| most.min(limit));
        setrlimit(
            resource,
            Rlimit {
                current: Some(most),
                maximum: Some(most),
            },
        )
        .map_err(unprepared("set a limit"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let launch = Launch {
            step: true,
            end_by: None,
            parent: Some(7),
            after_term: Some(3000),
            limits: Limits {
                open_files: Some(64),
                processes: None,
                address_space: Some(1 << 40),
            },
            command: ["agent", "--", "--parent", "--step"].map(OsString::from).to_vec(),
        };
        assert_eq!(parse(&launch.words()).unwrap(), launch);
        let mut words = arguments(7, Duration::from_secs(3), launch.limits);
        words.extend(launch.command.clone());
        assert_eq!(
            parse(&words).unwrap(),
            Launch {
                step: false,
                ..launch
            }
        );
    }

    #[test]
    fn what_is_no_launch_is_refused() {
        let refused = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            parse(&words).unwrap_err().to_string()
        };
        assert!(refused(&[]).starts_with("no command"));
        assert!(refused(&["--"]).starts_with("no command"));
        assert!(refused(&["--parent", "x", "--", "a"]).starts_with("--parent takes a number"));
        assert!(refused(&["--what", "1", "--", "a"]).starts_with("unknown argument --what"));
    }

    #[test]
    fn limits_of_an_agent_come_before_those_of_all() {
        let one = Limits {
            open_files: Some(1),
            ..Limits::default()
        };
        let all = Limits {
            open_files: Some(2),
            processes: Some(3),
            address_space: None,
        };
        let expected = Limits {
            open_files: Some(1),
            processes: Some(3),
            address_space: None,
        };
        assert_eq!(one.or(all), expected);
    }
}

//! What starts an agent on behalf of an engine: a small program that prepares its own process and then becomes the
//! agent.
//!
//! A program offers it as a hidden command (`sillage launch-agent`) that calls [`launch`] with the rest of its
//! arguments, and names that command in [`crate::Options::launcher`]. It does what can only be done in the new
//! process: the agent gets a signal when the engine dies, even by `kill -9` (Linux), leads a process group of its own,
//! and has the limits that were set.

use std::ffi::OsString;

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

/// Why an agent was not launched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The arguments are not those of a launch.
    #[error(
        "{0}; expected [--parent PID] [--open-files N] [--processes N] [--address-space BYTES] -- COMMAND [ARGS]"
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

#[derive(Debug, Default, PartialEq, Eq)]
struct Arguments {
    parent: Option<u32>,
    limits: Limits,
    command: OsString,
    args: Vec<OsString>,
}

/// The arguments by which [`launch`] is told these limits and the parent that it must have; the agent's command
/// follows.
pub(crate) fn arguments(parent: u32, limits: Limits) -> Vec<OsString> {
    let numbers = [
        ("--parent", Some(u64::from(parent))),
        ("--open-files", limits.open_files),
        ("--processes", limits.processes),
        ("--address-space", limits.address_space),
    ];
    let given = numbers
        .iter()
        .filter_map(|(name, number)| Some([(*name).into(), (*number)?.to_string().into()]));
    given.flatten().chain([OsString::from("--")]).collect()
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Arguments, LaunchError> {
    let mut args = args.into_iter();
    let mut parsed = Arguments::default();
    loop {
        let name = args
            .next()
            .ok_or_else(|| LaunchError::Usage("no command".to_owned()))?;
        if name == "--" {
            break;
        }
        let number = args.next().and_then(|value| value.to_str()?.parse::<u64>().ok());
        let number =
            number.ok_or_else(|| LaunchError::Usage(format!("{} takes a number", name.display())))?;
        match name.to_str() {
            Some("--parent") => {
                let parent = u32::try_from(number);
                parsed.parent = Some(parent.map_err(|_| LaunchError::Usage(format!("no process {number}")))?);
            }
            Some("--open-files") => parsed.limits.open_files = Some(number),
            Some("--processes") => parsed.limits.processes = Some(number),
            Some("--address-space") => parsed.limits.address_space = Some(number),
            _ => return Err(LaunchError::Usage(format!("unknown argument {}", name.display()))),
        }
    }
    parsed.command = args
        .next()
        .ok_or_else(|| LaunchError::Usage("no command".to_owned()))?;
    parsed.args = args.collect();
    Ok(parsed)
}

/// Prepares this process and replaces it by the agent that `args` name: `[--parent PID] [limits] -- command args…`.
/// Gives back only an error.
///
/// The agent gets `SIGKILL` when the thread that started this process ends (`PR_SET_PDEATHSIG(2const)`); when the
/// process `PID` is not the parent, nothing is started.
#[cfg(unix)]
pub fn launch(args: impl IntoIterator<Item = OsString>) -> LaunchError {
    use std::os::unix::process::CommandExt;

    let arguments = match parse(args) {
        Ok(arguments) => arguments,
        Err(error) => return error,
    };
    if let Err(error) = prepare(&arguments) {
        return error;
    }
    let source = std::process::Command::new(&arguments.command)
        .args(&arguments.args)
        .exec();
    LaunchError::NotStarted {
        command: arguments.command.to_string_lossy().into_owned(),
        source,
    }
}

#[cfg(unix)]
fn prepare(arguments: &Arguments) -> Result<(), LaunchError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let unprepared = |what| {
        move |error: rustix::io::Errno| LaunchError::Unprepared {
            what,
            source: error.into(),
        }
    };
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(unprepared("ask for a signal at the engine's death"))?;
    if let Some(parent) = arguments.parent
        && parent != std::os::unix::process::parent_id()
    {
        return Err(LaunchError::Orphaned(parent));
    }
    // Already so when an engine started it; a leader of its session cannot and need not be.
    match rustix::process::setpgid(None, None) {
        Ok(()) | Err(rustix::io::Errno::PERM) => {}
        Err(error) => return Err(unprepared("lead a process group")(error)),
    }
    let limits = [
        (Resource::Nofile, arguments.limits.open_files),
        (Resource::Nproc, arguments.limits.processes),
        (Resource::As, arguments.limits.address_space),
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
        let limits = Limits {
            open_files: Some(64),
            processes: None,
            address_space: Some(1 << 40),
        };
        let mut words = arguments(7, limits);
        words.extend(["agent".into(), "--".into(), "--parent".into()]);
        let expected = Arguments {
            parent: Some(7),
            limits,
            command: "agent".into(),
            args: vec!["--".into(), "--parent".into()],
        };
        assert_eq!(parse(words).unwrap(), expected);
    }

    #[test]
    fn what_is_no_launch_is_refused() {
        let refused = |words: &[&str]| parse(words.iter().map(OsString::from)).unwrap_err().to_string();
        assert!(refused(&[]).starts_with("no command"));
        assert!(refused(&["--"]).starts_with("no command"));
        assert!(refused(&["--parent", "x", "--", "a"]).starts_with("--parent takes a number"));
        assert!(refused(&["--what", "1", "--", "a"]).starts_with("unknown argument --what"));
    }
}

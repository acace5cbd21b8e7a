//! The process that holds the agents: asking it, starting it, and being it.

use std::path::PathBuf;

use clap::Args;
use sillage::core::agents::AgentStatus;

use crate::arguments::Global;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};

/// Times of the holding process, for trying it out; they hold for the one that the command starts.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Times {
    /// How long an agent may take for the handshake, in milliseconds.
    #[arg(long, hide = true, value_name = "MS")]
    handshake_timeout: Option<u64>,
    /// How long the process stays once nothing runs, in milliseconds.
    #[arg(long, hide = true, value_name = "MS")]
    linger: Option<u64>,
    /// How often idle agents are looked for, in milliseconds.
    #[arg(long, hide = true, value_name = "MS")]
    check_every: Option<u64>,
}

/// How the agents stand, and what else there is to tell.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) agents: Vec<AgentStatus>,
    /// Why the settings as they are now were not taken up.
    pub(super) problem: Option<String>,
}

/// The settings file and the data folder, with nothing relative in them.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) data: PathBuf,
    pub(super) settings: PathBuf,
}

impl Place {
    /// Those that a command means; none without a settings file.
    pub(super) fn of(global: &Global) -> Result<Option<Place>, Failure> {
        let Some(file) = global.settings_file() else {
            return Ok(None);
        };
        let settings = std::path::absolute(&file).map_err(|error| Failure::reading(&file, &error))?;
        let data = global.data_folder()?;
        Ok(Some(Place { data, settings }))
    }
}

#[cfg(not(unix))]
mod here {
    use super::{Exit, Failure, Global, Kind, Place, Standing, Times};

    fn unsupported() -> Failure {
        Failure::new(
            Kind::Refused,
            "this system cannot hold agents outside of runs yet",
        )
    }

    pub(crate) fn hold(_times: Times, _global: &Global) -> Result<Exit, Failure> {
        Err(unsupported())
    }

    pub(in super::super) fn standing(_place: &Place) -> Result<Standing, Failure> {
        Ok(Standing::default())
    }

    pub(in super::super) fn logs(_place: &Place, _agent: &str) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }
}

#[cfg(unix)]
mod here {
    use std::fs;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use sillage::acp::PoolOptions;
    use sillage::agents::{AgentClient, AskError, Done, HostOptions, Order, host, read_kept};
    use sillage::core::agents::{AgentState, AgentStatus};

    use super::{Exit, Failure, Global, Kind, Place, Standing, Times};
    use crate::failure::with_causes;
    use crate::signals::Signals;
    use crate::{adapters, drive};

    /// How long the process stays once nothing runs.
    const LINGER: Duration = Duration::from_secs(10);

    /// How often an order is given to a process that ends just then.
    const TRIES: usize = 4;

    /// The word by which the process says that it can be asked.
    const READY: &str = "ready";

    impl Place {
        fn client(&self) -> AgentClient {
            AgentClient::new(&self.data, &self.settings)
        }
    }

    impl From<AskError> for Failure {
        fn from(error: AskError) -> Self {
            let kind = match error {
                AskError::Failed(_) => Kind::Refused,
                AskError::NoHost
                | AskError::Closed
                | AskError::Unusable { .. }
                | AskError::Foreign(_)
                | _ => Kind::Io,
            };
            Failure::new(kind, with_causes(&error))
        }
    }

    /// How the agents stand; where no process holds any, those that failed in an earlier one say so.
    pub(in super::super) fn standing(place: &Place) -> Result<Standing, Failure> {
        match drive::block_on(async { Ok(place.client().list().await) })? {
            Ok(listed) => Ok(Standing {
                agents: listed.agents,
                problem: listed.problem,
            }),
            Err(AskError::NoHost | AskError::Closed) => {
                let kept = read_kept(&place.data).agents.into_iter();
                let failed = kept.filter_map(|(agent, kept)| {
                    Some(AgentStatus {
                        agent,
                        state: AgentState::Error,
                        error: Some(kept.error?),
                        outdated: false,
                    })
                });
                Ok(Standing {
                    agents: failed.collect(),
                    problem: None,
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The last lines of an agent's log, also of one that an earlier process held.
    pub(in super::super) fn logs(place: &Place, agent: &str) -> Result<Vec<String>, Failure> {
        match drive::block_on(async { Ok(place.client().logs(agent).await) })? {
            Ok(lines) => Ok(lines),
            Err(AskError::NoHost | AskError::Closed) => {
                let kept = read_kept(&place.data).agents.remove(agent);
                Ok(kept.unwrap_or_default().log)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Has something done with agents. Where no process holds any one is started first, if `begin` says so; none
    /// otherwise.
    pub(in super::super) fn carry_out(
        place: &Place,
        order: Order,
        agents: &[String],
        begin: Option<Times>,
    ) -> Result<Option<Vec<Done>>, Failure> {
        let mut done: Vec<Done> = Vec::new();
        for _ in 0..TRIES {
            done.clear();
            let each = |one| done.push(one);
            let asked = drive::block_on(async { Ok(place.client().carry_out(order, agents, each).await) })?;
            match (asked, begin) {
                (Ok(()), _) => return Ok(Some(done)),
                (Err(AskError::NoHost | AskError::Closed), Some(times)) => start(place, times)?,
                (Err(AskError::NoHost | AskError::Closed), None) => return Ok(None),
                (Err(error), _) => return Err(error.into()),
            }
        }
        Err(AskError::Closed.into())
    }

    /// Starts the process and waits until it can be asked. Another one that is there by then is as good.
    fn start(place: &Place, times: Times) -> Result<(), Failure> {
        let unable = |what: &str, error: std::io::Error| {
            Failure::new(Kind::Io, format_args!("cannot {what}: {error}"))
        };
        fs::create_dir_all(&place.data).map_err(|error| Failure::writing(&place.data, &error))?;
        let told = place.data.join("agents.log");
        let log = fs::OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&told)
            .map_err(|error| Failure::writing(&told, &error))?;
        let program = std::env::current_exe().map_err(|error| unable("tell where this program is", error))?;
        let mut command = Command::new(program);
        command.args(["agents", "hold", "--data-dir"]).arg(&place.data);
        command.arg("--config").arg(&place.settings);
        let numbers = [
            ("--handshake-timeout", times.handshake_timeout),
            ("--linger", times.linger),
            ("--check-every", times.check_every),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                command.args([name, &number.to_string()]);
            }
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .current_dir("/")
            .spawn()
            .map_err(|error| unable("start the process that holds agents", error))?;
        let mut said = String::new();
        if let Some(stdout) = child.stdout.take() {
            // It ends without a word only when it cannot speak at all.
            let _ = BufReader::new(stdout).read_line(&mut said);
        }
        match said.trim() {
            READY => Ok(()),
            "" => {
                let words = fs::read_to_string(&told).unwrap_or_default();
                let message = format!("the process that holds agents did not start: {}", words.trim());
                Err(Failure::new(Kind::Io, message))
            }
            words => Err(Failure::new(Kind::Io, words)),
        }
    }

    /// Is the process: in a session of its own, until nothing has run for a while or it is told to end.
    pub(crate) fn hold(times: Times, global: &Global) -> Result<Exit, Failure> {
        // One who is a leader already has what this is for.
        let _ = rustix::process::setsid();
        let place = Place::of(global)?.ok_or_else(|| Failure::new(Kind::Usage, "no settings file"))?;
        let span = |given: Option<u64>, usual| given.map_or(usual, Duration::from_millis);
        let mut pool = PoolOptions {
            runtime: adapters::launched_by_us()?,
            ..PoolOptions::default()
        };
        pool.runtime.start_timeout = span(times.handshake_timeout, pool.runtime.start_timeout);
        pool.check_every = span(times.check_every, pool.check_every);
        let options = HostOptions {
            folder: place.data.clone(),
            settings: place.settings,
            pool,
            linger: span(times.linger, LINGER),
        };
        let say = |words: &str| {
            // Whoever started this may have gone.
            let mut stdout = std::io::stdout();
            let _ = writeln!(stdout, "{words}").and_then(|()| stdout.flush());
        };
        drive::block_on(async {
            let mut signals = Signals::listen()?;
            let told = async {
                signals.next().await;
            };
            match host(options, || say(READY), told).await {
                // Whoever holds them already is asked instead.
                Ok(()) => Ok(Exit::Complete),
                Err(sillage::agents::HostError::Held { .. }) => {
                    say(READY);
                    Ok(Exit::Complete)
                }
                Err(error) => {
                    say(&with_causes(&error));
                    Ok(Exit::Failed)
                }
            }
        })
    }
}

pub(super) use here::*;

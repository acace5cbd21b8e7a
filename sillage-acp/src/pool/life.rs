//! The life of one process: launched, greeted, held, ended.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use sillage_core::agents::{Input, ProcessNumber};
use sillage_core::id::ClientSessionId;
use sillage_core::ports::runtime::RuntimeError;
use sillage_core::time::human;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Inner, Launch, folder};
use crate::classify;
use crate::connection::{Connection, Incoming, METHOD_NOT_FOUND};
use crate::log::AgentLog;
use crate::model_choice::AgentCommand;
use crate::process::{Process, Program, StopTimes};
use crate::sandbox::{self, Guest};
use crate::session::died;
use crate::translate::{self, PROTOCOL_VERSION};
use crate::zone::Moment;

/// Lines of an agent's log that follow the reason of a failed start.
const LAST_LINES: usize = 20;

/// The longest that an agent which could not be started is given to go by itself.
const FAILED_START: Duration = Duration::from_secs(1);

/// How long an agent whose output was closed is given to end.
const AFTER_CLOSE: Duration = Duration::from_millis(500);

/// Lives the life of a process and reports it.
pub(super) async fn live(
    inner: &Arc<Inner>,
    agent: &str,
    number: ProcessNumber,
    launch: &Launch,
    end: &Notify,
) {
    let report = |input| {
        // Reports are never refused.
        let _ = inner.take(input);
    };
    let log = inner.log(agent);
    let written = log.count();
    let mut held = match start(inner, agent, launch, &log).await {
        Ok(held) => held,
        Err(reason) => {
            let last = log.since(written, LAST_LINES);
            let words = std::iter::once(reason).chain(last).collect::<Vec<_>>().join("\n");
            return report(Input::StartFailed(number, words));
        }
    };
    report(Input::Started(number));
    let times = inner.options.runtime.stop;
    let how = tokio::select! {
        () = end.notified() => None,
        how = held.listen() => Some(how),
    };
    match how {
        None => {
            let trouble = held.stop(times).await.err();
            report(Input::Ended(number, trouble.map(|error| error.to_string())));
        }
        Some(how) => {
            let status = held.stop(at_once(times)).await.ok();
            report(Input::Exited(number, died(agent, &how, status, "")));
        }
    }
}

/// For what has ended, or is of no use: it is not waited for.
fn at_once(times: StopTimes) -> StopTimes {
    StopTimes {
        after_input_closed: times.after_input_closed.min(FAILED_START),
        ..times
    }
}

/// An agent that is there.
struct Held {
    agent: String,
    process: Process,
    connection: Connection,
    guest: Option<Guest>,
}

async fn start(inner: &Inner, agent: &str, launch: &Launch, log: &AgentLog) -> Result<Held, String> {
    let command = launch.as_ref().as_ref().map_err(Clone::clone)?;
    let about_to_end = || "the program is about to end".to_owned();
    let mut quitting = inner.quitting.subscribe();
    let mut quit = std::pin::pin!(quitting.wait_for(|quitting| *quitting));
    let gate = inner.gate(agent);
    let placing = async {
        let held = gate.lock().await;
        Ok((program(inner, agent, command, log).await?, held))
    };
    let placed = tokio::select! {
        placed = placing => placed.map_err(|error: RuntimeError| error.to_string()),
        _ = &mut quit => Err(about_to_end()),
    };
    let ((program, guest), _held) = placed?;
    let started = Process::start(&inner.spawner, program).await;
    let (process, pipes) = started.map_err(|error| error.to_string())?;
    let deadline = inner.options.runtime.write_deadline;
    let mut held = Held {
        agent: agent.to_owned(),
        process,
        connection: Connection::new(agent, pipes.input, pipes.output, deadline),
        guest,
    };
    let patience = inner.options.runtime.start_timeout;
    let greeted = tokio::select! {
        greeted = held.greet(patience) => greeted,
        _ = &mut quit => Err(Failure::Said(about_to_end())),
    };
    let Err(failure) = greeted else { return Ok(held) };
    let status = held.stop(at_once(inner.options.runtime.stop)).await;
    // What it wrote is in the log by then.
    held.process.last_words().await;
    Err(match failure {
        Failure::Said(words) => words,
        Failure::Gone(how) => died(agent, &how, status.ok(), ""),
    })
}

/// What to start, in its box where it has one.
async fn program(
    inner: &Inner,
    agent: &str,
    command: &AgentCommand,
    log: &AgentLog,
) -> Result<(Program, Option<Guest>), RuntimeError> {
    let options = &inner.options.runtime;
    let folder = folder(command);
    let launcher = options.launcher_words(command.limits);
    let before = launcher.len();
    // A placeholder asks for what only a session has.
    let plain = |text: &&String| {
        !["{model}", "{effort}", "{autocompact_tokens}"]
            .iter()
            .any(|name| text.contains(name))
    };
    let args = command.args.iter().filter(plain).map(OsString::from);
    let own = command.env.iter().filter(|(_, value)| plain(value));
    let own = own.map(|(name, value)| (name.into(), value.into()));
    let local = Program {
        agent: agent.to_owned(),
        session: ClientSessionId(uuid::Uuid::new_v4()),
        guarded: cfg!(target_os = "linux") && options.launcher.is_some(),
        records: options.records.clone(),
        words: launcher
            .into_iter()
            .chain([command.command.clone().into()])
            .chain(args)
            .collect(),
        environment: options.inherited.iter().cloned().chain(own).collect(),
        folder: folder.clone(),
        log: Some(log.clone()),
    };
    let mark = format!("{}/{agent}", inner.options.holder);
    let Some(guest) = Guest::new(command, &folder, mark, &options.inherited, log.clone())? else {
        return Ok((local, None));
    };
    let inside = inside(command);
    guest.prepare().await?;
    let placed = guest.enter(&local, before, inside.as_deref(), command);
    Ok((placed, Some(guest)))
}

/// The agent's folder as its box has it; none: the box's own.
fn inside(command: &AgentCommand) -> Option<std::path::PathBuf> {
    let sandbox = command.sandbox.as_ref()?;
    let own = command.workspace.as_deref().map(Path::to_owned);
    sandbox.workspace_path.clone().or(own)
}

/// Why a handshake did not succeed.
enum Failure {
    /// In words that say it all.
    Said(String),
    /// The agent is gone, or of no use: how.
    Gone(String),
}

impl Held {
    /// The handshake.
    async fn greet(&mut self, patience: Duration) -> Result<(), Failure> {
        let agent = self.agent.clone();
        let deadline = Instant::now() + patience;
        let not_reading = |error: crate::connection::NotReading| Failure::Gone(error.to_string());
        let request = self.connection.request("initialize", &translate::initialize());
        let request = request.map_err(not_reading)?;
        let mut exited = false;
        let unanswered = |how: &str| Failure::Gone(format!("{how} before it answered `initialize`"));
        let mut deadline = deadline;
        loop {
            let incoming = tokio::select! {
                biased;
                incoming = self.connection.next() => incoming,
                () = self.process.exited(), if !exited => {
                    // What it had written before is still read.
                    exited = true;
                    deadline = deadline.min(Instant::now() + AFTER_CLOSE);
                    continue;
                }
                () = tokio::time::sleep_until(deadline) => {
                    return Err(if exited {
                        unanswered("ended by itself")
                    } else {
                        Failure::Said(format!("agent `{agent}` did not answer `initialize` within {}", human(patience)))
                    });
                }
            };
            match incoming {
                Incoming::Response { id, outcome } if id.as_u64() == Some(request) => {
                    let answer = outcome.map_err(|error| {
                        Failure::Said(classify::rpc_error(&agent, &error, &Moment::present()).to_string())
                    })?;
                    let (version, _) = translate::capabilities(&answer);
                    if version.as_u64() == Some(PROTOCOL_VERSION) {
                        return Ok(());
                    }
                    return Err(Failure::Said(format!(
                        "agent `{agent}` speaks version {version} of ACP, and only version {PROTOCOL_VERSION} is known"
                    )));
                }
                Incoming::Closed(how) => {
                    let ended = tokio::time::timeout(AFTER_CLOSE, self.process.exited()).await;
                    return Err(match ended {
                        Ok(()) => unanswered("ended by itself"),
                        Err(_) => Failure::Gone(format!("went away before it answered `initialize`: {how}")),
                    });
                }
                Incoming::Damaged { words, .. } => return Err(Failure::Gone(format!("wrote {words}"))),
                other @ (Incoming::Response { .. }
                | Incoming::Request { .. }
                | Incoming::Notification { .. }
                | Incoming::Invalid { .. }
                | Incoming::Noise(_)) => self.pass_over(other).map_err(Failure::Gone)?,
            }
        }
    }

    /// Holds the conversation while nothing is asked of the agent; tells how it went.
    async fn listen(&mut self) -> String {
        loop {
            let incoming = tokio::select! {
                () = self.process.exited() => return "ended by itself".to_owned(),
                incoming = self.connection.next() => incoming,
            };
            if let Incoming::Closed(how) = incoming {
                return match tokio::time::timeout(AFTER_CLOSE, self.process.exited()).await {
                    Ok(()) => "ended by itself".to_owned(),
                    Err(_) => format!("went away: {how}"),
                };
            }
            if let Err(how) = self.pass_over(incoming) {
                return how;
            }
        }
    }

    /// What an agent says unasked, outside of a session: a request is refused, the rest is shown in traces.
    fn pass_over(&mut self, incoming: Incoming) -> Result<(), String> {
        match incoming {
            Incoming::Request { id, method, .. } => {
                let words = format!("`{method}` is not offered");
                let refused = self.connection.refuse(&id, METHOD_NOT_FOUND, &words);
                refused.map_err(|error| format!("went away: {error}"))
            }
            Incoming::Invalid { id, code, words } => {
                let refused = self.connection.refuse(&id, code, &words);
                refused.map_err(|error| format!("went away: {error}"))
            }
            Incoming::Noise(line) | Incoming::Damaged { words: line, .. } => {
                tracing::debug!(agent = %self.agent, %line, "not protocol");
                Ok(())
            }
            Incoming::Response { .. } | Incoming::Notification { .. } | Incoming::Closed(_) => Ok(()),
        }
    }

    async fn stop(&mut self, times: StopTimes) -> Result<ExitStatus, RuntimeError> {
        self.connection.close_input();
        let connection = &mut self.connection;
        // A pipe that is full would keep it from ending politely.
        let discard = async {
            while connection.rest().await.is_some() {}
            std::future::pending::<std::convert::Infallible>().await
        };
        tokio::select! {
            status = sandbox::stop(&mut self.process, self.guest.as_ref(), times) => status,
            never = discard => match never {},
        }
    }
}

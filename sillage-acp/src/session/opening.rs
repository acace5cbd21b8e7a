//! How a session begins: the handshake, a new session or an earlier one, its model and effort.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::Value;
use sillage_core::ports::runtime::{FoundSession, MessageFate, MessageRequest, OpenedSession, RuntimeError};
use sillage_core::time::human;
use tokio::time::Instant;

use super::actor::{AFTER_EXIT, Actor, End, died};
use super::text::Replay;
use super::{Beginning, Plan};
use crate::classify::{self, AUTH_REQUIRED};
use crate::connection::{Incoming, METHOD_NOT_FOUND, RpcError};
use crate::log::AgentLog;
use crate::model_choice::{NextStep, Shown, next_step};
use crate::process::Program;
use crate::sandbox::Guest;
use crate::translate::{self, Capabilities, PROTOCOL_VERSION};
use crate::zone::Moment;

/// The silence after which a conversation counts as repeated to its end.
const QUIET: Duration = Duration::from_secs(1);

/// Why a session did not open.
pub(super) enum Failure {
    /// It was closed meanwhile.
    Closed,
    /// The agent, or something that it said, forbids it.
    Refused(RuntimeError),
    /// The agent did not answer this in time.
    Silent { method: &'static str, waited: Duration },
    /// The agent went, or cannot be spoken to, in the middle of this.
    Gone { method: &'static str, how: String },
}

impl Failure {
    /// The error, with the agent's exit status and last words where they say something.
    pub(super) fn into_error(
        self,
        plan: &Plan,
        status: Option<ExitStatus>,
        last_words: &str,
    ) -> RuntimeError {
        let agent = plan.choice.agent.name.as_str();
        match self {
            Failure::Closed => {
                let words = format!(
                    "session {} was closed while it was being opened",
                    plan.request.client_session_id
                );
                RuntimeError::Lost { words }
            }
            Failure::Refused(error) => error,
            Failure::Silent { method, waited } => {
                let how = format!("did not answer `{method}` within {}", human(waited));
                RuntimeError::Temporary {
                    words: died(agent, &how, None, last_words),
                    retry_after: None,
                }
            }
            Failure::Gone { method, how } => {
                let how = format!("{how} before it answered `{method}`");
                RuntimeError::Permanent {
                    words: died(agent, &how, status, last_words),
                }
            }
        }
    }
}

/// What to start for a session, and the box that it is started in.
pub(super) async fn placed_program(plan: &Plan) -> Result<(Program, Option<Guest>), RuntimeError> {
    let agent = &plan.choice.agent;
    let folder = agent.workspace.as_deref().unwrap_or(&plan.request.workspace);
    let log = AgentLog::new(&agent.name, None);
    let mark = format!("session-{}", plan.request.client_session_id);
    let (local, inherited) = (program(plan), &plan.options.inherited);
    let Some(guest) = Guest::new(agent, folder, mark, inherited, log)? else {
        return Ok((local, None));
    };
    let inside = plan.folder_told()?;
    guest.prepare().await?;
    let launcher = plan.options.launcher_words(agent.limits).len();
    let placed = guest.enter(&local, launcher, Some(&inside), agent);
    Ok((placed, Some(guest)))
}

impl Plan {
    /// The session's folder as its agent has it.
    pub(super) fn folder_told(&self) -> Result<PathBuf, RuntimeError> {
        self.choice.agent.inside(&self.request.workspace)
    }
}

/// What to start for a session: the agent's command with its placeholders filled in, behind the launcher.
fn program(plan: &Plan) -> Program {
    let agent = &plan.choice.agent;
    let autocompact = plan.request.autocompact_tokens.map(|tokens| tokens.to_string());
    let values = [
        (
            "{model}",
            Some(plan.choice.model.as_str()).filter(|model| *model != "default"),
        ),
        ("{effort}", plan.choice.effort.as_deref()),
        ("{autocompact_tokens}", autocompact.as_deref()),
    ];
    let mut words = plan.options.launcher_words(agent.limits);
    words.push(agent.command.clone().into());
    words.extend(
        agent
            .args
            .iter()
            .filter_map(|arg| fill(arg, &values))
            .map(OsString::from),
    );
    let mut environment = plan.options.inherited.clone();
    let own = agent
        .env
        .iter()
        .filter_map(|(name, value)| Some((name.into(), fill(value, &values)?.into())));
    environment.extend(own);
    Program {
        agent: agent.name.clone(),
        session: plan.request.client_session_id,
        guarded: cfg!(target_os = "linux") && plan.options.launcher.is_some(),
        records: plan.options.records.clone(),
        words,
        environment,
        folder: plan.request.workspace.clone(),
        log: None,
    }
}

/// Replaces placeholders; none when one of them has no value.
fn fill(text: &str, values: &[(&str, Option<&str>)]) -> Option<String> {
    let mut filled = text.to_owned();
    for (placeholder, value) in values {
        if filled.contains(placeholder) {
            filled = filled.replace(placeholder, (*value)?);
        }
    }
    Some(filled)
}

impl Actor {
    /// Opens the session, or brings it back.
    pub(super) async fn begin(&mut self) -> Result<FoundSession, Failure> {
        let folder = self.plan.folder_told().map_err(Failure::Refused)?;
        let Some(folder) = folder.to_str().map(str::to_owned) else {
            let folder = folder.display();
            let words = format!("the folder {folder} cannot be told to an agent: its name is not UTF-8");
            return Err(Failure::Refused(RuntimeError::Permanent { words }));
        };
        let can = self.initialize().await?;
        self.sign_ins = can.sign_ins.clone();
        let (native, again) = match &self.plan.beginning {
            Beginning::New => (None, None),
            Beginning::Again { native, in_flight } => (Some(native.clone()), in_flight.clone()),
        };
        let (answer, in_flight) = match native {
            None => (self.new_session(&folder).await?, MessageFate::None),
            Some(native) => self.bring_back(can, &native, again.as_ref(), &folder).await?,
        };
        self.shown = translate::shown(&answer);
        self.apply_early();
        let again = matches!(self.plan.beginning, Beginning::Again { .. });
        // A session that is brought back keeps what it was opened with; many agents then show nothing.
        if !again || self.shown != Shown::default() {
            self.configure().await?;
        }
        if self.plan.request.autocompact_tokens.is_some()
            && !self.plan.choice.agent.mentions("{autocompact_tokens}")
        {
            self.note("the agent is not told when to summarise: it decides by itself".to_owned());
        }
        let opened = OpenedSession {
            native: self.session.clone(),
            agent: self.agent().to_owned(),
            pid: Some(self.process.pid()),
        };
        Ok(FoundSession {
            opened,
            restarted: again,
            in_flight,
        })
    }

    async fn initialize(&mut self) -> Result<Capabilities, Failure> {
        let answer = self.ask("initialize", &translate::initialize()).await?;
        let (version, can) = translate::capabilities(&answer);
        if version.as_u64() == Some(PROTOCOL_VERSION) {
            return Ok(can);
        }
        let agent = self.agent();
        let words = format!(
            "agent `{agent}` speaks version {version} of ACP, and only version {PROTOCOL_VERSION} is known"
        );
        Err(Failure::Refused(RuntimeError::Permanent { words }))
    }

    async fn new_session(&mut self, folder: &str) -> Result<Value, Failure> {
        let params = translate::new_session(folder, &self.plan.choice.agent.mcp_servers);
        let answer = self
            .ask_signed_in("session/new", &params)
            .await?
            .map_err(|error| self.refused(&error))?;
        match answer["sessionId"].as_str() {
            Some(session) => self.session = Some(session.to_owned()),
            None => {
                let words = format!("agent `{}` opened a session without an identifier", self.agent());
                return Err(Failure::Refused(RuntimeError::Permanent { words }));
            }
        }
        Ok(answer)
    }

    /// Brings an earlier session back. Loading tells what became of a message, resuming does not: so a session with a
    /// message in flight is rather loaded. What the agent announces may fail all the same: then the other is tried.
    async fn bring_back(
        &mut self,
        can: Capabilities,
        native: &str,
        in_flight: Option<&MessageRequest>,
        folder: &str,
    ) -> Result<(Value, MessageFate), Failure> {
        self.session = Some(native.to_owned());
        let mut ways = vec![("session/resume", can.resume), ("session/load", can.load)];
        if in_flight.is_some() {
            ways.reverse();
        }
        let mut last = None;
        for (method, _) in ways.into_iter().filter(|(_, announced)| *announced) {
            let load = method == "session/load";
            let servers = &self.plan.choice.agent.mcp_servers;
            let params = if load {
                translate::load_session(native, folder, servers)
            } else {
                translate::resume_session(native, folder, servers)
            };
            self.replay = load.then(Replay::default);
            let outcome = self.ask_signed_in(method, &params).await?;
            if load && outcome.is_ok() {
                self.late_replay(method).await?;
            }
            let replay = self.replay.take();
            match outcome {
                Ok(answer) => {
                    let fate = match (in_flight, replay) {
                        (None, _) => MessageFate::None,
                        (Some(message), Some(replay)) => replay.fate(&message.text),
                        (Some(_), None) => MessageFate::Unknown,
                    };
                    return Ok((answer, fate));
                }
                Err(error) => last = Some(self.not_brought_back(&error)?),
            }
        }
        let words = last.unwrap_or_else(|| {
            format!(
                "agent `{}` can neither load nor resume an earlier session",
                self.agent()
            )
        });
        Err(Failure::Refused(RuntimeError::Lost { words }))
    }

    /// Hears an agent out that answers `session/load` before it has repeated the conversation, as Gemini CLI does: what
    /// comes late is no part of the next answer, and a message that seems not to have arrived would be sent twice.
    async fn late_replay(&mut self, method: &'static str) -> Result<(), Failure> {
        while let Ok(incoming) = tokio::time::timeout(QUIET, self.connection.next()).await {
            if let Err(end) = self.arrived(incoming) {
                return Err(match self.explain(end).await {
                    End::Closed => Failure::Closed,
                    End::Lost(how) | End::Cut(how) => Failure::Gone { method, how },
                });
            }
        }
        Ok(())
    }

    /// The words of an error by which a session is lost. One that passes is an error of its own: the session is kept.
    fn not_brought_back(&self, error: &RpcError) -> Result<String, Failure> {
        let error = classify::rpc_error(self.agent(), error, &Moment::present());
        if let RuntimeError::Permanent { words } = error {
            Ok(words)
        } else {
            Err(Failure::Refused(error))
        }
    }

    /// Brings model and effort into force (A3).
    async fn configure(&mut self) -> Result<(), Failure> {
        let mut tried = Vec::new();
        loop {
            let step = next_step(&self.plan.choice, &self.shown, &tried).map_err(Failure::Refused)?;
            let session = self.session.clone().unwrap_or_default();
            match &step {
                NextStep::Done => return Ok(()),
                NextStep::SetOption { id, value } => {
                    let params = translate::set_option(&session, id, value);
                    let answer = self.ask("session/set_config_option", &params).await?;
                    if answer["configOptions"].is_array() {
                        self.shown.options = translate::config_options(&answer["configOptions"]);
                    }
                }
                NextStep::SetModel(model) => {
                    let params = translate::set_model(&session, model);
                    match self.ask_raw("session/set_model", &params).await? {
                        Ok(_) => {
                            if let Some(models) = &mut self.shown.models {
                                models.current.clone_from(model);
                            }
                        }
                        // Some agents show the list and do not know the method.
                        Err(error) if error.code == METHOD_NOT_FOUND => self.shown.models = None,
                        Err(error) => return Err(self.refused(&error)),
                    }
                }
            }
            tried.push(step);
        }
    }

    fn refused(&self, error: &RpcError) -> Failure {
        Failure::Refused(classify::rpc_error(self.agent(), error, &Moment::present()))
    }

    async fn ask(&mut self, method: &'static str, params: &Value) -> Result<Value, Failure> {
        self.ask_raw(method, params)
            .await?
            .map_err(|error| self.refused(&error))
    }

    /// Asks what an agent may want a sign-in for. The way to sign in that the settings permit is tried once, and the
    /// request after it: never another way, for it could open a browser or wait for a person.
    async fn ask_signed_in(
        &mut self,
        method: &'static str,
        params: &Value,
    ) -> Result<Result<Value, RpcError>, Failure> {
        let error = match self.ask_raw(method, params).await? {
            Err(error) if error.code == AUTH_REQUIRED => error,
            outcome => return Ok(outcome),
        };
        let offered = match self.sign_ins.as_slice() {
            [] => "none".to_owned(),
            ways => ways.join(", "),
        };
        let asked = classify::rpc_error(self.agent(), &error, &Moment::present());
        let wanted = |what: &str| RuntimeError::SignIn {
            words: format!("{asked}; {what} (it offers: {offered})"),
        };
        let Some(way) = self.plan.choice.agent.sign_in.clone() else {
            let what =
                "sign in with the agent's own program, or name in its settings the `signIn` that may be used";
            return Err(Failure::Refused(wanted(what)));
        };
        if !self.sign_ins.contains(&way) {
            let what = format!("it does not offer the `signIn` of its settings, `{way}`");
            return Err(Failure::Refused(wanted(&what)));
        }
        if let Err(refused) = self
            .ask_raw("authenticate", &translate::authenticate(&way))
            .await?
        {
            let what = format!("its way to sign in `{way}` failed: {}", refused.message);
            return Err(Failure::Refused(wanted(&what)));
        }
        match self.ask_raw(method, params).await? {
            Err(error) if error.code == AUTH_REQUIRED => {
                let what = format!("it still wants one after a sign-in by `{way}`");
                Err(Failure::Refused(wanted(&what)))
            }
            outcome => Ok(outcome),
        }
    }

    /// Asks and waits for the answer, handling what comes before it.
    async fn ask_raw(
        &mut self,
        method: &'static str,
        params: &Value,
    ) -> Result<Result<Value, RpcError>, Failure> {
        let deadline = Instant::now() + self.plan.options.start_timeout;
        let answered = match self.connection.request(method, params) {
            Ok(request) => self.answer_to(request, deadline).await,
            Err(error) => Err(error.into()),
        };
        match answered {
            Ok(Some(outcome)) => Ok(outcome),
            Ok(None) => Err(Failure::Silent {
                method,
                waited: self.plan.options.start_timeout,
            }),
            Err(end) => match self.explain(end).await {
                End::Closed => Err(Failure::Closed),
                End::Lost(how) | End::Cut(how) => Err(Failure::Gone { method, how }),
            },
        }
    }

    /// The answer to a request; none when it does not come in time.
    async fn answer_to(
        &mut self,
        request: u64,
        deadline: Instant,
    ) -> Result<Option<Result<Value, RpcError>>, End> {
        let (mut exited, mut deadline) = (false, deadline);
        loop {
            let incoming = tokio::select! {
                biased;
                () = tokio::time::sleep_until(deadline) => {
                    return if exited { Err(End::Lost("ended by itself".to_owned())) } else { Ok(None) };
                }
                // What it had written before is still read.
                () = self.process.exited(), if !exited => {
                    exited = true;
                    deadline = deadline.min(Instant::now() + AFTER_EXIT);
                    continue;
                }
                incoming = self.connection.next() => incoming,
            };
            match incoming {
                Incoming::Response { id, outcome } if id.as_u64() == Some(request) => {
                    return Ok(Some(outcome));
                }
                Incoming::Damaged { words, .. } => return Err(End::Lost(format!("wrote {words}"))),
                incoming @ (Incoming::Response { .. }
                | Incoming::Request { .. }
                | Incoming::Notification { .. }
                | Incoming::Invalid { .. }
                | Incoming::Noise(_)
                | Incoming::Closed(_)) => self.arrived(incoming)?,
            }
        }
    }
}

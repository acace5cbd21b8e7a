//! A real agent with a folder to work in, a home and a model server of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use sillage_acp::{AcpRuntime, AgentCommand, AgentModel, Options};
use sillage_core::folders::Folders;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    Answer, MessageRequest, OpenedSession, PermissionPolicy, RuntimeError, SessionEvent, SessionEventKind,
    SessionRequest, StopReason,
};
use sillage_testkit::model_server::{Asked, ModelServer, Script};
use sillage_testkit::real_agent::{Kind, RealAgent};
use tempfile::TempDir;
use uuid::Uuid;

/// A bound, not a wait: a first start prepares a database, and the machine may be busy.
const LIMIT: Duration = Duration::from_secs(180);

pub(super) async fn within<F: Future>(work: F) -> F::Output {
    tokio::time::timeout(LIMIT, work).await.expect("in time")
}

pub(super) struct Stage {
    pub(super) kind: Kind,
    pub(super) version: String,
    pub(super) server: ModelServer,
    pub(super) agent: AgentCommand,
    pub(super) request: SessionRequest,
    /// The folder that the agent works in.
    pub(super) work: PathBuf,
    folder: TempDir,
}

impl Stage {
    /// None where the agent cannot be had on this machine.
    pub(super) async fn of(kind: Kind) -> Option<Stage> {
        let real = RealAgent::get(kind, Path::new(env!("CARGO_MANIFEST_DIR"))).await?;
        let server = real.model_server().await.expect("a port");
        // codex does without its helpers where its home is among temporary files.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let place = |name: &str| {
            let place = folder.path().join(name);
            std::fs::create_dir(&place).expect("a folder");
            place.canonicalize().expect("a folder")
        };
        let (home, work) = (place("home"), place("work"));
        let model = AgentModel {
            id: Some(kind.model().to_owned()),
            efforts: (!kind.takes_effort()).then(Vec::new),
        };
        let agent = AgentCommand {
            name: kind.name().to_owned(),
            command: real.command.to_string_lossy().into_owned(),
            args: real.args.clone(),
            env: real.environment(&home, &server).expect("settings files"),
            account: "test".to_owned(),
            models: [("test".to_owned(), model)].into(),
            ..AgentCommand::default()
        };
        let request = SessionRequest {
            client_session_id: ClientSessionId(Uuid::new_v4()),
            model: "test".to_owned(),
            effort: "high".to_owned(),
            workspace: work.clone(),
            filesystem_scope: Folders {
                read: Vec::new(),
                write: vec![work.clone()],
            },
            protected: sillage_core::policy::Protected::default(),
            permissions: PermissionPolicy::AllowInFolders,
            autocompact_tokens: None,
        };
        Some(Stage {
            kind,
            version: real.version,
            server,
            agent,
            request,
            work,
            folder,
        })
    }

    /// The agent's home.
    pub(super) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A runtime of this agent, as an engine has it; nothing is started yet.
    pub(super) fn runtime(&self) -> AcpRuntime {
        let inherited = std::env::vars_os().filter(|(name, _)| name == "PATH").collect();
        let options = Options {
            start_timeout: LIMIT,
            cancel_grace: LIMIT,
            // As the program does.
            launcher: Some(vec![
                env!("CARGO_BIN_EXE_scripted-agent").into(),
                "launch-agent".into(),
            ]),
            inherited,
            ..Options::default()
        };
        AcpRuntime::new(vec![self.agent.clone()], options)
    }

    pub(super) async fn open(&self) -> Scene {
        let runtime = self.runtime();
        let opened = runtime.open(&self.request).await.expect("a session");
        self.scene(runtime, opened).await
    }

    /// A session that is open, listened to from its first event.
    pub(super) async fn scene(&self, runtime: AcpRuntime, opened: OpenedSession) -> Scene {
        let id = self.request.client_session_id;
        let events = runtime.events(id, 0).await.expect("events");
        Scene {
            runtime,
            id,
            opened,
            events,
            seen: Vec::new(),
        }
    }

    /// The calls of the model that the session asked for.
    pub(super) fn calls(&self) -> Vec<Asked> {
        let mut asked = self.server.asked();
        asked.retain(|one| one.model == self.kind.model_at_server());
        asked
    }

    /// What every row ends with: the session closed, no process left, nothing asked of the server that it does not know.
    pub(super) async fn end(&self, scene: Scene) {
        within(scene.runtime.close(scene.id))
            .await
            .expect("it can be closed");
        assert_eq!(self.processes(), Vec::<String>::new(), "processes are left");
        let asked = self.server.asked();
        assert!(asked.iter().all(|one| one.known), "{asked:?}");
    }

    /// Processes that were started for this stage: they have its home for their own, or work in its folders.
    pub(super) fn processes(&self) -> Vec<String> {
        let mark = self.folder.path().canonicalize().expect("a folder");
        let mark_bytes = mark.as_os_str().as_encoded_bytes();
        let all = std::fs::read_dir("/proc").expect("the process table");
        let theirs = all.filter_map(|entry| {
            let place = entry.ok()?.path();
            let pid = place.file_name()?.to_str()?.to_owned();
            pid.parse::<u32>().ok()?;
            let at_home = |name: &str| {
                let bytes = std::fs::read(place.join(name)).unwrap_or_default();
                bytes.windows(mark_bytes.len()).any(|part| part == mark_bytes)
            };
            let here = std::fs::read_link(place.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&mark));
            if !here && !at_home("environ") {
                return None;
            }
            let stat = std::fs::read_to_string(place.join("stat")).ok()?;
            let dead = stat
                .rsplit_once(") ")
                .is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']));
            let command = std::fs::read(place.join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            (!dead).then(|| format!("{pid} {command}"))
        });
        theirs.collect()
    }
}

/// A message with a script for the model.
pub(super) fn message(words: &str, script: &Script) -> MessageRequest {
    MessageRequest {
        client_message_id: ClientMessageId(Uuid::new_v4()),
        text: format!("{words} {}", script.in_prompt()),
    }
}

/// How the message ended, where the event says so.
pub(super) fn ended(event: &SessionEventKind, sent: &MessageRequest) -> Option<Result<Answer, RuntimeError>> {
    if let SessionEventKind::Answer { message, answer } = event {
        return (*message == sent.client_message_id).then(|| Ok(answer.clone()));
    }
    if let SessionEventKind::Error { error, .. } = event {
        return Some(Err(error.clone()));
    }
    None
}

/// An open session.
pub(super) struct Scene {
    pub(super) runtime: AcpRuntime,
    pub(super) id: ClientSessionId,
    pub(super) opened: OpenedSession,
    events: BoxStream<'static, SessionEvent>,
    pub(super) seen: Vec<SessionEventKind>,
}

impl Scene {
    pub(super) async fn send(&self, message: &MessageRequest) {
        self.runtime
            .send(self.id, message)
            .await
            .expect("the message is taken");
    }

    /// Waits for an event, and gives what `last` makes of it.
    pub(super) async fn until<T>(&mut self, last: impl Fn(&SessionEventKind) -> Option<T>) -> T {
        let found = async {
            while let Some(event) = self.events.next().await {
                let found = last(&event.kind);
                self.seen.push(event.kind);
                if let Some(found) = found {
                    return found;
                }
            }
            panic!("the session ended, after {:#?}", self.seen);
        };
        tokio::time::timeout(LIMIT, found).await.expect("in time")
    }

    /// Waits for the end of a message.
    pub(super) async fn end_of(&mut self, message: &MessageRequest) -> Result<Answer, RuntimeError> {
        self.until(|event| ended(event, message)).await
    }

    /// Whether the session still answers, as it must after whatever became of an earlier message.
    pub(super) async fn still_answers(&mut self) {
        let step = sillage_testkit::model_server::Step::saying("I am here.");
        let message = message("Are you there?", &Script::of([step]));
        self.send(&message).await;
        let answer = self.end_of(&message).await.expect("an answer");
        assert_eq!(
            (answer.stop, answer.text.as_str()),
            (StopReason::EndTurn, "I am here.")
        );
    }
}

/// How a message ended, for the table.
pub(super) fn ending(ended: &Result<Answer, RuntimeError>) -> String {
    match ended {
        Ok(answer) => match &answer.stop {
            StopReason::EndTurn => "the turn ends as if all were well".to_owned(),
            StopReason::Cancelled => "the turn ends cancelled".to_owned(),
            StopReason::Refusal => "the turn ends as refused by the model".to_owned(),
            StopReason::MaxTokens | StopReason::MaxTurnRequests => "the turn ends at a limit".to_owned(),
            StopReason::Other(word) => format!("the turn ends: {word}"),
        },
        Err(error) => format!("the message fails: {}", class(error)),
    }
}

/// The class of an error, for the table.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "an agent's words give none of the others"
)]
pub(super) fn class(error: &RuntimeError) -> &'static str {
    match error {
        RuntimeError::Temporary { .. } => "temporary",
        RuntimeError::Quota { .. } => "quota",
        RuntimeError::SignIn { .. } => "sign-in",
        RuntimeError::Permanent { .. } => "permanent",
        RuntimeError::Lost { .. } => "lost",
        _ => "another",
    }
}

//! An engine that holds sessions until it is killed: one for each folder in its own that has a script.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use futures_util::StreamExt as _;
use sillage_acp::{AcpRuntime, AgentCommand, AgentModel, Options, StopTimes, leftovers};
use sillage_core::folders::Folders;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::AgentRuntime as _;
use sillage_core::ports::runtime::{MessageRequest, PermissionPolicy, SessionEventKind, SessionRequest};
use uuid::Uuid;

type Failure = Box<dyn std::error::Error>;

/// Opens a session in each folder of `stage` with a script, says `go` to all of them, writes `stage/ready` once all
/// have answered, and closes them all when `stage/close` is there; then it writes `stage/closed`.
pub(crate) fn main(stage: &Path) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let held = runtime
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(hold(stage)));
    match held {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::fs::write(stage.join("ready"), error.to_string());
            ExitCode::FAILURE
        }
    }
}

async fn hold(stage: &Path) -> Result<(), Failure> {
    leftovers::adopt_orphans()?;
    let folders = folders(stage)?;
    let agents = folders
        .iter()
        .map(|folder| agent(folder))
        .collect::<Result<Vec<_>, _>>()?;
    let span = Duration::from_millis(300);
    let runtime = AcpRuntime::new(
        agents,
        Options {
            launcher: Some(vec![std::env::current_exe()?.into(), "launch-agent".into()]),
            records: Some(stage.join("processes")),
            start_timeout: Duration::from_secs(120),
            stop: StopTimes {
                after_input_closed: span,
                after_term: span,
                after_kill: Duration::from_secs(60),
            },
            ..Options::default()
        },
    );
    let all = folders.iter().map(|folder| play(&runtime, folder));
    let played = futures_util::future::join_all(all).await;
    played.into_iter().collect::<Result<(), Failure>>()?;
    std::fs::write(stage.join("ready"), "")?;
    while !stage.join("close").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let told = runtime.shut_down().await.err().map(|error| error.to_string());
    std::fs::write(stage.join("closed"), told.unwrap_or_default())?;
    // Looked at while this process, to which orphans come, is still there.
    std::future::pending().await
}

fn folders(stage: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(stage)? {
        let folder = entry?.path();
        if folder.join("script.yaml").exists() {
            folders.push(folder);
        }
    }
    Ok(folders)
}

fn name(folder: &Path) -> Result<String, Failure> {
    let name = folder.file_name().and_then(|name| name.to_str());
    Ok(name.ok_or("a folder without a name")?.to_owned())
}

fn agent(folder: &Path) -> Result<AgentCommand, Failure> {
    let model = AgentModel {
        id: Some("fake-1".to_owned()),
        efforts: Some(Vec::new()),
    };
    let script = folder.join("script.yaml").display().to_string();
    Ok(AgentCommand {
        name: name(folder)?,
        command: std::env::current_exe()?.display().to_string(),
        args: vec!["--script".to_owned(), script],
        account: "scripted".to_owned(),
        models: [("fake".to_owned(), model)].into(),
        ..AgentCommand::default()
    })
}

async fn play(runtime: &AcpRuntime, folder: &Path) -> Result<(), Failure> {
    let session = ClientSessionId(Uuid::new_v4());
    let request = SessionRequest {
        client_session_id: session,
        model: format!("{}/fake", name(folder)?),
        effort: "low".to_owned(),
        workspace: folder.to_path_buf(),
        filesystem_scope: Folders {
            read: Vec::new(),
            write: vec![folder.to_path_buf()],
        },
        permissions: PermissionPolicy::Deny,
        protected: sillage_core::policy::Protected::default(),
        autocompact_tokens: None,
    };
    runtime.open(&request).await?;
    let message = MessageRequest {
        client_message_id: ClientMessageId(Uuid::new_v4()),
        text: "go".to_owned(),
    };
    let mut events = runtime.events(session, 0).await?;
    runtime.send(session, &message).await?;
    while let Some(event) = events.next().await {
        if matches!(event.kind, SessionEventKind::Answer { .. }) {
            return Ok(());
        }
    }
    Err(format!("{} went before it answered", folder.display()).into())
}

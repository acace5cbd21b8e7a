//! From the settings to a gateway that is served, and its end.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sillage::{agent_commands, pool_agents, pool_limits};
use sillage_acp::{AcpRuntime, AgentPool, Options as AcpOptions, PoolOptions, leftovers};
use sillage_core::document::{self, MAX_BYTES};
use sillage_core::fault::Fault;
use sillage_core::settings::{self, Settings};
use sillage_relais::gateway::{Bounds, Server, Token};
use sillage_relais::{Gateway, GatewayOptions};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::arguments::Options;
use crate::failure::Failure;
use crate::keeper::Keeper;

/// Serves until the program is told to end.
pub(crate) fn serve(options: &Options) -> Result<(), Failure> {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("RELAIS_LOG").unwrap_or_else(|_| "warn".into()),
        )
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System {
            what: "start threads",
            source,
        })?;
    runtime.block_on(serve_until_told(options))
}

async fn serve_until_told(options: &Options) -> Result<(), Failure> {
    let settings = read_settings(&options.settings()?)?;
    let data = options.data()?;
    let token = token(&options.token()?)?;
    let mut told = told_to_end()?;

    let acp = acp_options(&settings, &data)?;
    let variable = |name: &str| std::env::var(name).ok();
    let agents = Arc::new(AcpRuntime::new(agent_commands(&settings, variable)?, acp.clone()));
    let pool = PoolOptions {
        runtime: acp,
        holder: data.display().to_string(),
        ..PoolOptions::default()
    };
    let keeper = Keeper(AgentPool::new(
        pool_agents(&settings, variable),
        pool_limits(settings.limits),
        pool,
    ));
    let keeper = Arc::new(keeper);
    let gateway = Gateway::open(
        Arc::clone(&agents) as Arc<dyn sillage_core::ports::AgentRuntime>,
        GatewayOptions {
            most_sessions: options.sessions,
            agents: Arc::clone(&keeper) as Arc<dyn sillage_relais::gateway::Agents>,
            ..GatewayOptions::new(data.join("sessions"))
        },
    )?;
    // The folder is ours from here on: what another left in it is nobody's.
    end_leftovers(&data)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))
        .await
        .map_err(|source| Failure::Port {
            port: options.port,
            source,
        })?;
    let server = Server::new(&gateway, listener, token, Bounds::default())?;
    // Whoever started it may not read on.
    let _ = writeln!(io::stdout(), "relais listens on http://{}", server.address());
    gateway.begin();

    let (end, ended) = oneshot::channel::<()>();
    let mut serving = tokio::spawn(server.serve(async move {
        // Dropped is told as well.
        let _ = ended.await;
    }));
    let outcome = tokio::select! {
        () = told.once() => Ok(()),
        error = gateway.failed() => Err(Failure::Journal(error)),
        _ = &mut serving => Ok(()),
    };
    drop(end);
    let ending = async {
        // It was bounded, and a panic of it has been told.
        let _ = serving.await;
        gateway.end().await;
        if let Err(error) = agents.shut_down().await {
            tracing::error!(%error, "an agent could not be ended; the next start tries again");
        }
        keeper.0.quit().await;
    };
    tokio::select! {
        () = ending => outcome,
        () = told.once() => Err(Failure::Interrupted),
    }
}

/// The signals that end the program.
struct Told {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
fn told_to_end() -> Result<Told, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| {
        signal(kind).map_err(|source| Failure::System {
            what: "listen for signals",
            source,
        })
    };
    Ok(Told {
        terminate: listen(SignalKind::terminate())?,
        interrupt: listen(SignalKind::interrupt())?,
    })
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn told_to_end() -> Result<Told, Failure> {
    Ok(Told {})
}

impl Told {
    #[cfg(unix)]
    async fn once(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn once(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn read_settings(path: &Path) -> Result<Settings, Failure> {
    let failed = |source| Failure::File {
        path: path.to_path_buf(),
        source,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    // One byte over the bound is enough to be told apart from a text that fits.
    file.take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let read = document::decode(&bytes)
        .map_err(|unreadable| vec![Fault::from(unreadable)])
        .and_then(settings::read);
    let settings = read.map_err(|faults| Failure::Settings {
        path: path.to_path_buf(),
        faults: faults
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n"),
    })?;
    if settings.agents.is_empty() {
        let words = format!("{} names no agent: write one into `agents`", path.display());
        return Err(Failure::Usage(words));
    }
    Ok(settings)
}

/// The token, in a folder that is made where it is missing.
fn token(path: &Path) -> Result<Token, Failure> {
    if let Some(folder) = path.parent() {
        make(folder)?;
    }
    Ok(Token::of_file(path)?)
}

fn make(folder: &Path) -> Result<(), Failure> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|source| Failure::File {
        path: folder.to_path_buf(),
        source,
    })
}

fn records(data: &Path) -> PathBuf {
    data.join("processes")
}

/// Agents are started by this program itself and recorded, so that they do not outlive it.
fn acp_options(settings: &Settings, data: &Path) -> Result<AcpOptions, Failure> {
    let program = std::env::current_exe().map_err(|source| Failure::System {
        what: "tell where this program is",
        source,
    })?;
    let usual = AcpOptions::default();
    Ok(AcpOptions {
        launcher: Some(vec![program.into(), "launch-agent".into()]),
        records: Some(records(data)),
        silent_after: settings.limits.silent_after.unwrap_or(usual.silent_after),
        ..usual
    })
}

/// Ends what an earlier gateway left: a session is brought back only when nobody else holds it.
fn end_leftovers(data: &Path) -> Result<(), Failure> {
    let records = records(data);
    let failed = |source| Failure::File {
        path: records.clone(),
        source,
    };
    leftovers::adopt_orphans().map_err(failed)?;
    for left in leftovers::end(&records).map_err(failed)? {
        tracing::warn!(session = %left.session, agent = left.agent, state = ?left.state, "an earlier gateway had left an agent");
    }
    Ok(())
}

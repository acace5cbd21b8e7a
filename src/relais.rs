//! A gateway over the agents of the settings, served until its program is told to end: the program `relais`, and the
//! command of that name.

mod keeper;

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use keeper::Keeper;
use sillage_acp::{AcpRuntime, AgentPool, Options as AcpOptions, PoolOptions, leftovers};
use sillage_core::ports::AgentRuntime;
use sillage_core::settings::Settings;
use sillage_relais::gateway::{Agents, BadListener, Bounds, JournalError, Server, Token, TokenError};
use sillage_relais::{Gateway, GatewayOptions};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::{BadAgent, agent_commands, pool_agents, pool_limits};

/// How a gateway is served.
#[derive(Debug, Clone)]
pub struct RelaisOptions {
    /// The settings, with the agents.
    pub settings: Settings,
    /// The folder of the gateway's log. One gateway at a time holds it.
    pub data: PathBuf,
    /// The file of the token, which is made where it is missing.
    pub token_file: PathBuf,
    /// The port on 127.0.0.1; 0 takes one that is free.
    pub port: u16,
    /// The most sessions at once.
    pub sessions: usize,
    /// The words that agents are started through, so that they do not outlive the gateway.
    pub launcher: Vec<OsString>,
}

/// What keeps a gateway from being served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelaisError {
    /// An agent of the settings cannot be started.
    #[error("mend the settings file")]
    Agent(#[from] BadAgent),
    /// A file cannot be read or made.
    #[error("cannot use {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The log cannot be used, or no more.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The port cannot be listened on.
    #[error("cannot listen on 127.0.0.1:{port}: end what listens there, or name another port by --port")]
    Port {
        /// The port.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// The listener is not served.
    #[error(transparent)]
    Listener(#[from] BadListener),
    /// The system refuses something.
    #[error("cannot {what}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// It was told twice to end.
    #[error("ended at once: what agents were left is ended by the next start")]
    Interrupted,
}

impl RelaisOptions {
    /// The port where none is named.
    pub const USUAL_PORT: u16 = 7433;
    /// The most sessions at once where nothing else is said.
    pub const USUAL_SESSIONS: usize = GatewayOptions::USUAL_SESSIONS;
}

/// Serves until the program gets SIGTERM or SIGINT; `listening` is told where, once others can connect.
///
/// # Errors
/// [`RelaisError`]: it was not served, or could not go on.
pub async fn serve_relais(
    options: RelaisOptions,
    listening: impl FnOnce(SocketAddr),
) -> Result<(), RelaisError> {
    let token = token(&options.token_file)?;
    let mut told = told_to_end()?;

    let acp = acp_options(&options);
    let variable = |name: &str| std::env::var(name).ok();
    let settings = &options.settings;
    let agents = Arc::new(AcpRuntime::new(agent_commands(settings, variable)?, acp.clone()));
    let pool = PoolOptions {
        runtime: acp,
        holder: options.data.display().to_string(),
        ..PoolOptions::default()
    };
    let keeper = Keeper(AgentPool::new(
        pool_agents(settings, variable),
        pool_limits(settings.limits),
        pool,
    ));
    let keeper = Arc::new(keeper);
    let gateway = off_the_executor({
        let runtime = Arc::clone(&agents) as Arc<dyn AgentRuntime>;
        let keeper = Arc::clone(&keeper) as Arc<dyn Agents>;
        let (data, most_sessions) = (options.data.clone(), options.sessions);
        move || {
            let gateway = Gateway::open(
                runtime,
                GatewayOptions {
                    most_sessions,
                    agents: keeper,
                    ..GatewayOptions::new(data.join("sessions"))
                },
            )?;
            // The folder is ours from here on: what another left in it is nobody's.
            end_leftovers(&data)?;
            Ok(gateway)
        }
    })
    .await?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))
        .await
        .map_err(|source| RelaisError::Port {
            port: options.port,
            source,
        })?;
    let server = Server::new(&gateway, listener, token, Bounds::default())?;
    listening(server.address());
    gateway.begin();

    let (end, ended) = oneshot::channel::<()>();
    let mut serving = std::pin::pin!(server.serve(async move {
        // Dropped is told as well.
        let _ = ended.await;
    }));
    let outcome = tokio::select! {
        () = told.once() => Ok(()),
        error = gateway.failed() => Err(RelaisError::Journal(error)),
        () = &mut serving => unreachable!("the server ends only once `end` is dropped, below"),
    };
    drop(end);
    let ending = async {
        serving.await; // it is bounded
        gateway.end().await;
        if let Err(error) = agents.shut_down().await {
            tracing::error!(%error, "an agent could not be ended; the next start tries again");
        }
        keeper.0.quit().await;
    };
    tokio::select! {
        () = ending => outcome,
        () = told.once() => Err(RelaisError::Interrupted),
    }
}

/// Does what waits for disks, locks and processes where no other task has to wait with it.
async fn off_the_executor<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RelaisError> + Send + 'static,
) -> Result<T, RelaisError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(RelaisError::System {
            what: "open the gateway's folder",
            source: error.into(),
        })
    })
}

/// The signals that end the program.
struct Told {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
fn told_to_end() -> Result<Told, RelaisError> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| {
        signal(kind).map_err(|source| RelaisError::System {
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
fn told_to_end() -> Result<Told, RelaisError> {
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

/// The token, in a folder that is made where it is missing.
fn token(path: &Path) -> Result<Token, RelaisError> {
    if let Some(folder) = path.parent() {
        make(folder)?;
    }
    Ok(Token::of_file(path)?)
}

fn make(folder: &Path) -> Result<(), RelaisError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|source| RelaisError::File {
        path: folder.to_path_buf(),
        source,
    })
}

fn records(data: &Path) -> PathBuf {
    data.join("processes")
}

/// Agents are started through the launcher and recorded, so that they do not outlive the gateway.
fn acp_options(options: &RelaisOptions) -> AcpOptions {
    let usual = AcpOptions::default();
    let silent_after = options.settings.limits.silent_after;
    AcpOptions {
        launcher: Some(options.launcher.clone()),
        records: Some(records(&options.data)),
        silent_after: silent_after.unwrap_or(usual.silent_after),
        ..usual
    }
}

/// Ends what an earlier gateway left: a session is brought back only when nobody else holds it.
fn end_leftovers(data: &Path) -> Result<(), RelaisError> {
    let records = records(data);
    let failed = |source| RelaisError::File {
        path: records.clone(),
        source,
    };
    leftovers::adopt_orphans().map_err(failed)?;
    for left in leftovers::end(&records).map_err(failed)? {
        tracing::warn!(session = %left.session, agent = left.agent, state = ?left.state, "an earlier gateway had left an agent");
    }
    Ok(())
}

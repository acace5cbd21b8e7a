//! A process that holds the agents outside of runs, so that they outlive the command that started them.
//!
//! It listens on the socket `agents` of the data folder, its owner's alone (mode 0600), and holds a lock beside it
//! (`agents.lock`), which is not the store's: runs are not disturbed by it, nor it by them. It follows the settings
//! file, and ends by itself a while after its last agent stopped; the errors and logs of its agents are then kept in
//! `agents.json`. When it is killed the launcher ends its agents.
//!
//! Values of `${NAME}` in the settings come from the environment of whoever started it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use sillage_acp::{AgentPool, PoolError, PoolOptions};
use sillage_core::settings::{self, Settings};
use sillage_core::{document, fault::Fault};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::protocol::{Answer, Ask, Done, Kept, KeptAgent, LONGEST_REQUEST, Listed, Order, Request, Trouble};
use super::{pool_agents, pool_limits};
use crate::control::wire::{Reached, read_line};

/// Connections at once; more are closed as they come.
const MOST_CLIENTS: usize = 64;

/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long an earlier host that is about to end is waited for.
const SUCCESSION: Duration = Duration::from_secs(30);

/// How often the settings file is looked at.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);

/// What a host needs.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The data folder.
    pub folder: PathBuf,
    /// The settings file.
    pub settings: PathBuf,
    /// What holds for all agents. The holder's name is made from the data folder.
    pub pool: PoolOptions,
    /// How long it stays once nothing runs.
    pub linger: Duration,
}

/// Why a host does not hold agents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Another one does.
    #[error("another process holds the agents of {} already", folder.display())]
    Held {
        /// The data folder.
        folder: PathBuf,
    },
    /// A file of it cannot be made.
    #[error("{} cannot be used", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The settings cannot be taken up, in words.
    #[error("{0}")]
    Settings(String),
}

/// Holds the agents until `stop` comes or nothing has run for a while. `ready` is called once it can be asked.
///
/// # Errors
/// When it cannot begin.
pub async fn host(
    options: HostOptions,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<(), HostError> {
    let unusable = |path: &Path| {
        let path = path.to_owned();
        move |source| HostError::Unusable { path, source }
    };
    fs::create_dir_all(&options.folder).map_err(unusable(&options.folder))?;
    let lock = lock(&options.folder).await?;
    let settings = read(&options.settings).map_err(HostError::Settings)?;
    let holder = options.folder.display().to_string();
    let pool = AgentPool::new(
        agents(&settings),
        pool_limits(settings.limits),
        PoolOptions {
            holder,
            ..options.pool.clone()
        },
    );
    let kept = options.folder.join("agents.json");
    for (agent, what) in read_kept(&options.folder).agents {
        pool.recall(&agent, what.error, &what.log);
    }
    // What is told of agents from now on is told by us.
    let _ = fs::remove_file(&kept);
    let shared = Arc::new(Shared {
        pool,
        file: options.settings.clone(),
        followed: Mutex::new(Followed {
            seen: Seen::of(&options.settings),
            problem: None,
        }),
    });
    let socket = options.folder.join("agents");
    let listener = listen(&options.folder, &socket).map_err(unusable(&socket))?;
    ready();
    serve_all(listener, &shared, options.linger, stop).await;
    let _ = fs::remove_file(&socket);
    shared.pool.quit().await;
    if let Err(error) = keep(&kept, &shared.pool) {
        tracing::warn!(path = %kept.display(), %error, "what agents said is not kept");
    }
    // Closing alone is not enough: a process being started holds a copy of every file until it runs its program.
    let _ = lock.unlock();
    Ok(())
}

/// What a host of this data folder left when it ended; nothing while one holds the agents.
#[must_use]
pub fn read_kept(folder: &Path) -> Kept {
    let text = fs::read(folder.join("agents.json")).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn keep(path: &Path, pool: &AgentPool) -> io::Result<()> {
    let mut kept = Kept::default();
    for status in pool.list() {
        let log = pool.logs(&status.agent).unwrap_or_default();
        if status.error.is_some() || !log.is_empty() {
            let error = status.error;
            kept.agents.insert(status.agent, KeptAgent { error, log });
        }
    }
    if kept.agents.is_empty() {
        return Ok(());
    }
    let new = path.with_extension("json.new");
    let _ = fs::remove_file(&new);
    let file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    serde_json::to_writer(&file, &kept)?;
    fs::rename(&new, path)
}

/// Takes the lock; one who holds it and answers keeps it, one who is about to end is waited for.
async fn lock(folder: &Path) -> Result<File, HostError> {
    let path = folder.join("agents.lock");
    let open = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path);
    let unusable = |source| HostError::Unusable {
        path: path.clone(),
        source,
    };
    let file = open.map_err(unusable)?;
    let deadline = Instant::now() + SUCCESSION;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        let answers = match Reached::new(folder, "agents") {
            Ok(socket) => UnixStream::connect(socket.path()).await.is_ok(),
            Err(_) => false,
        };
        if answers || Instant::now() >= deadline {
            let folder = folder.to_owned();
            return Err(HostError::Held { folder });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Makes the socket under another name first, so that nobody reaches it before it is its owner's alone.
fn listen(folder: &Path, socket: &Path) -> io::Result<UnixListener> {
    let new = folder.join("agents.new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(Reached::new(folder, "agents.new")?.path())?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
    fs::rename(&new, socket)?;
    Ok(listener)
}

/// Reads a settings file; the faults in words, with their lines.
fn read(file: &Path) -> Result<Settings, String> {
    let bytes = fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let read = document::decode(&bytes)
        .map_err(|unreadable| vec![Fault::from(unreadable)])
        .and_then(settings::read);
    read.map_err(|faults| {
        let told = faults.iter().map(|fault| match fault.line {
            Some(line) => format!("{}:{line}: {}", file.display(), fault.message),
            None => format!("{}: {}", file.display(), fault.message),
        });
        told.collect::<Vec<_>>().join("; ")
    })
}

fn agents(settings: &Settings) -> Vec<sillage_acp::PoolAgent> {
    pool_agents(settings, |name| std::env::var(name).ok())
}

/// What tells one writing of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Seen {
    fn of(file: &Path) -> Option<Seen> {
        let metadata = fs::metadata(file).ok()?;
        Some(Seen {
            inode: metadata.ino(),
            size: metadata.size(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

struct Shared {
    pool: AgentPool,
    /// The settings file.
    file: PathBuf,
    followed: Mutex<Followed>,
}

struct Followed {
    seen: Option<Seen>,
    /// Why the file as it is was not taken up.
    problem: Option<String>,
}

async fn serve_all(
    listener: UnixListener,
    shared: &Arc<Shared>,
    linger: Duration,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    let mut clients = JoinSet::new();
    let mut look = tokio::time::interval(FOLLOW_EVERY.min(linger.max(Duration::from_millis(10))));
    let mut at_work = Instant::now();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if clients.len() < MOST_CLIENTS => {
                    clients.spawn(serve(stream, Arc::clone(shared)));
                }
                Ok(_) => tracing::warn!("more connections than can be served"),
                Err(error) => {
                    tracing::warn!(%error, "connection refused");
                    tokio::time::sleep(FOLLOW_EVERY).await;
                }
            },
            Some(_) = clients.join_next() => {}
            _ = look.tick() => shared.follow(),
            () = &mut stop => break,
        }
        if !clients.is_empty() || !shared.pool.is_at_rest() {
            at_work = Instant::now();
        } else if at_work.elapsed() >= linger {
            break;
        }
    }
    drop(listener);
    clients.shutdown().await;
}

async fn serve(stream: UnixStream, shared: Arc<Shared>) {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let line = tokio::time::timeout(PATIENCE, read_line(&mut reader, LONGEST_REQUEST)).await;
    let answering = async {
        let last = match line {
            Ok(Ok(Some(line))) => match serde_json::from_slice::<Request>(&line) {
                Ok(request) => shared.answer(request, &mut writer).await?,
                Err(error) => Answer::Failed(format!("this is no request: {error}")),
            },
            Ok(Err(error)) => Answer::Failed(format!("this is no request: {error}")),
            Ok(Ok(None)) | Err(_) => return Ok(()),
        };
        send(&mut writer, &last).await
    };
    tokio::select! {
        // Whoever cannot be written to is gone.
        _ = answering => {}
        () = gone(&mut reader) => {}
    }
}

/// Waits until the client closes its end.
async fn gone(reader: &mut BufReader<OwnedReadHalf>) {
    let mut ignored = [0; 256];
    while reader.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
}

async fn send(writer: &mut OwnedWriteHalf, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    writer.write_all(&line).await
}

impl Shared {
    /// Takes up the settings file where it has changed.
    fn follow(&self) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = Seen::of(&self.file);
        if seen == followed.seen {
            return;
        }
        followed.seen = seen;
        match read(&self.file) {
            Ok(settings) => {
                followed.problem = None;
                self.pool
                    .configure(agents(&settings), pool_limits(settings.limits));
            }
            Err(problem) => {
                tracing::warn!(%problem, "the settings are not taken up");
                followed.problem = Some(problem);
            }
        }
    }

    async fn answer(&self, request: Request, writer: &mut OwnedWriteHalf) -> io::Result<Answer> {
        if request.settings != self.file {
            return Ok(Answer::Failed(format!(
                "the agents of this data folder are held for the settings {}, not {}: stop them first, or name \
                 another folder by --data-dir",
                self.file.display(),
                request.settings.display()
            )));
        }
        self.follow();
        match request.ask {
            Ask::List => {
                let problem = self
                    .followed
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .problem
                    .clone();
                let agents = self.pool.list();
                send(writer, &Answer::Agents(Listed { agents, problem })).await?;
            }
            Ask::Logs(agent) => match self.pool.logs(&agent) {
                Ok(lines) => send(writer, &Answer::Lines(lines)).await?,
                Err(error) => return Ok(Answer::Failed(error.to_string())),
            },
            Ask::Do(order, agents) => {
                let mut doing: FuturesUnordered<_> = agents
                    .into_iter()
                    .map(|agent| self.carry_out(order, agent))
                    .collect();
                while let Some(done) = doing.next().await {
                    send(writer, &Answer::Done(done)).await?;
                }
            }
        }
        Ok(Answer::End)
    }

    async fn carry_out(&self, order: Order, agent: String) -> Done {
        let pool = &self.pool;
        let done = match order {
            Order::Start => pool.start(&agent).await,
            Order::Stop => pool.stop(&agent).await,
            Order::Restart => pool.restart(&agent).await,
            Order::StopSandbox => pool.stop_sandbox(&agent).await,
            Order::RemoveSandbox => pool.remove_sandbox(&agent).await,
        };
        let trouble = done.err().map(|error| Trouble {
            refused: matches!(error, PoolError::Refused(_) | PoolError::NoSandbox(_)),
            words: error.to_string(),
        });
        let status = pool.list().into_iter().find(|status| status.agent == agent);
        Done {
            agent,
            trouble,
            status,
        }
    }
}

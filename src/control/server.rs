//! The end of the control socket that answers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use sillage_core::causes::with_causes;
use sillage_core::id::{ClientSessionId, RunId, Seq};
use sillage_core::ports::store::{Store, Which};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::ControlError;
use super::protocol::{Answer, Failed, LONGEST_REQUEST, Request};
use super::wire::{Reached, read_line};
use crate::active::ActiveRuns;
use crate::engine::{EngineError, RunHandle};
use crate::feed::FeedItem;
use crate::follow::{Followed, follow, read_launch, read_page};
use crate::restore::executed_text;

/// Connections at once; more are closed as they come.
const MOST_CLIENTS: usize = 64;

/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a server that closes waits for those who are still being answered.
const GRACE: Duration = Duration::from_secs(1);

/// Rest after the system refused a connection, as when no file can be opened any more.
const REST: Duration = Duration::from_millis(200);

/// Items of a followed run that are sent together at most.
const MOST_TOGETHER: usize = 256;

/// Listens on the control socket and answers. A client that is slow or gone holds up nobody but itself.
#[derive(Debug)]
pub struct ControlServer {
    socket: PathBuf,
    closing: watch::Sender<bool>,
    accepting: Option<JoinHandle<()>>,
}

/// What answers are made from.
struct Source {
    store: Arc<dyn Store>,
    active: ActiveRuns,
}

impl ControlServer {
    /// Listens in the data folder `folder`, in place of whoever did before. Only for the process that holds its store,
    /// which is what `store` shows; `active` are the runs that it drives.
    ///
    /// # Errors
    /// [`ControlError::Unusable`] when the socket cannot be made.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(
        folder: &Path,
        store: Arc<dyn Store>,
        active: ActiveRuns,
    ) -> Result<ControlServer, ControlError> {
        let socket = folder.join("control");
        let listener = listen(folder, &socket).map_err(|source| ControlError::Unusable {
            path: socket.clone(),
            source,
        })?;
        let (closing, closed) = watch::channel(false);
        let source = Arc::new(Source { store, active });
        let accepting = Some(tokio::spawn(accept(listener, source, closed)));
        Ok(ControlServer {
            socket,
            closing,
            accepting,
        })
    }

    /// Stops listening, lets those who are being answered have the rest for a moment, and removes the socket. The
    /// store is no longer used when this returns.
    pub async fn close(mut self) {
        self.closing.send_replace(true);
        if let Some(accepting) = self.accepting.take() {
            // It ends by itself; a panic of its own was told already.
            let _ = accepting.await;
        }
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
        if let Err(error) = fs::remove_file(&self.socket) {
            tracing::debug!(socket = %self.socket.display(), %error, "control socket not removed");
        }
    }
}

/// Makes the socket under another name first, so that nobody reaches it before it is its owner's alone.
fn listen(folder: &Path, socket: &Path) -> io::Result<UnixListener> {
    let new = folder.join("control.new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(Reached::new(folder, "control.new")?.path())?;
    fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    fs::rename(&new, socket)?;
    Ok(listener)
}

async fn accept(listener: UnixListener, source: Arc<Source>, mut closing: watch::Receiver<bool>) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if clients.len() < MOST_CLIENTS => {
                    clients.spawn(serve(stream, Arc::clone(&source)));
                }
                Ok(_) => tracing::warn!("more control connections than can be served"),
                Err(error) => {
                    tracing::warn!(%error, "control connection refused");
                    tokio::time::sleep(REST).await;
                }
            },
            Some(_) = clients.join_next() => {}
            () = asked_to_close(&mut closing) => break,
        }
    }
    drop(listener);
    // Those who are left then are cut.
    let _ = tokio::time::timeout(GRACE, async { while clients.join_next().await.is_some() {} }).await;
    clients.shutdown().await;
}

/// Waits until the server is asked to close, or dropped.
async fn asked_to_close(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

async fn serve(stream: UnixStream, source: Arc<Source>) {
    let (reader, writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut client = Client {
        writer: BufWriter::new(writer),
    };
    let line = tokio::time::timeout(PATIENCE, read_line(&mut reader, LONGEST_REQUEST)).await;
    let answering = async {
        let failed = match line {
            Ok(Ok(Some(line))) => match serde_json::from_slice(&line) {
                Ok(request) => return source.answer(request, &mut client).await,
                Err(error) => error.to_string(),
            },
            Ok(Err(error)) => error.to_string(),
            Ok(Ok(None)) | Err(_) => return Ok(()),
        };
        client
            .last(&Answer::Failed(Failed::Other(format!(
                "this is no request: {failed}"
            ))))
            .await
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

/// Whoever asked.
struct Client {
    writer: BufWriter<OwnedWriteHalf>,
}

impl Client {
    async fn send(&mut self, answer: &Answer) -> io::Result<()> {
        let mut line = serde_json::to_vec(answer)?;
        line.push(b'\n');
        self.writer.write_all(&line).await
    }

    async fn last(&mut self, answer: &Answer) -> io::Result<()> {
        self.send(answer).await?;
        self.writer.flush().await
    }
}

/// Why an answer ended early.
enum Cut {
    /// The client is gone.
    Gone,
    Failed(Failed),
}

impl From<io::Error> for Cut {
    fn from(_: io::Error) -> Self {
        Cut::Gone
    }
}

impl From<EngineError> for Cut {
    fn from(error: EngineError) -> Self {
        Cut::Failed(match error {
            EngineError::NoSuchRun(run) => Failed::NoSuchRun(run),
            EngineError::Gone(run) => Failed::NotDriven(run),
            EngineError::Refused(refused) => Failed::Refused(refused.to_string()),
            other @ (EngineError::Corrupt { .. }
            | EngineError::Codec { .. }
            | EngineError::Store(_)
            | EngineError::Panicked { .. }) => Failed::Other(with_causes(&other)),
        })
    }
}

impl From<sillage_core::ports::store::StoreError> for Cut {
    fn from(error: sillage_core::ports::store::StoreError) -> Self {
        EngineError::from(error).into()
    }
}

impl Source {
    async fn answer(&self, request: Request, client: &mut Client) -> io::Result<()> {
        match self.try_answer(request, client).await {
            Ok(()) => client.last(&Answer::End).await,
            Err(Cut::Gone) => Ok(()),
            Err(Cut::Failed(failed)) => client.last(&Answer::Failed(failed)).await,
        }
    }

    async fn try_answer(&self, request: Request, client: &mut Client) -> Result<(), Cut> {
        match request {
            Request::Runs { unfinished, limit } => {
                let which = if unfinished { Which::Unfinished } else { Which::All };
                for summary in self.store.runs(which, limit).await? {
                    client.send(&Answer::Run(summary)).await?;
                }
                Ok(())
            }
            Request::Run { run } => {
                let summary = self.store.run(&run).await?.ok_or(EngineError::NoSuchRun(run))?;
                Ok(client.send(&Answer::Run(summary)).await?)
            }
            Request::Launch { run } => {
                let launch = read_launch(&*self.store, &run).await?;
                Ok(client.send(&Answer::Fact(Arc::new(launch))).await?)
            }
            Request::Driven => Ok(client.send(&Answer::Driven(self.active.names())).await?),
            Request::Events { run, from } => self.events(&run, from, client).await,
            Request::Follow { run, from } => {
                let driven = self.active.find(&run);
                pass_on(follow(Arc::clone(&self.store), run, driven, from), client).await
            }
            Request::Heard { run } => {
                let heard = self.active.find(&run).map(|handle| handle.feed().all_heard());
                Ok(client.send(&Answer::Heard(heard.unwrap_or_default())).await?)
            }
            Request::Stop { run } => self.stop(&run, client).await,
            Request::Step { run, step, command } => {
                self.driven(&run).await?.command(command.on(step)).await?;
                Ok(client.send(&Answer::Taken).await?)
            }
            Request::Executed { run, renew } => {
                let text = executed_text(&*self.store, &run, renew).await?;
                Ok(client.send(&Answer::Executed(text)).await?)
            }
            Request::AnswerPermission { run, asked, answer } => {
                self.driven(&run).await?.answer_permission(asked, answer).await?;
                Ok(client.send(&Answer::PermissionAnswered).await?)
            }
            Request::TryAccount { run, account } => {
                self.driven(&run).await?.try_account(account).await?;
                Ok(client.send(&Answer::AccountTried).await?)
            }
            Request::Transcript { run, session } => self.transcript(&run, session, client).await,
        }
    }

    async fn events(&self, run: &RunId, mut from: Seq, client: &mut Client) -> Result<(), Cut> {
        loop {
            let page = read_page(&*self.store, run, from).await?;
            let Some(last) = page.last() else { return Ok(()) };
            from = last.seq.next();
            for fact in page {
                client.send(&Answer::Fact(Arc::new(fact))).await?;
            }
        }
    }

    async fn stop(&self, run: &RunId, client: &mut Client) -> Result<(), Cut> {
        let summary = self
            .store
            .run(run)
            .await?
            .ok_or_else(|| EngineError::NoSuchRun(run.clone()))?;
        self.driven(run).await?.stop()?;
        Ok(client
            .send(&Answer::StopAsked {
                again: summary.state == "stopping",
            })
            .await?)
    }

    /// The handle of a run that is driven; why it is not, otherwise.
    async fn driven(&self, run: &RunId) -> Result<RunHandle, Cut> {
        if let Some(handle) = self.active.find(run) {
            return Ok(handle);
        }
        let summary = self.store.run(run).await?;
        let summary = summary.ok_or_else(|| EngineError::NoSuchRun(run.clone()))?;
        Err(Cut::Failed(match summary.finished {
            true => Failed::Over {
                run: run.clone(),
                state: summary.state,
            },
            false => Failed::NotDriven(run.clone()),
        }))
    }

    async fn transcript(
        &self,
        run: &RunId,
        session: ClientSessionId,
        client: &mut Client,
    ) -> Result<(), Cut> {
        for chunk in self.store.transcript(run, session).await? {
            client
                .send(&Answer::Chunk(String::from_utf8_lossy(&chunk).into_owned()))
                .await?;
        }
        Ok(())
    }
}

/// Sends what goes on, at once when nothing more is ready.
async fn pass_on(items: Followed<EngineError>, client: &mut Client) -> Result<(), Cut> {
    let mut together = items.ready_chunks(MOST_TOGETHER);
    while let Some(items) = together.next().await {
        for item in items {
            let answer = match item? {
                FeedItem::Fact(fact) => Answer::Fact(fact),
                FeedItem::Chatter { step, session, event } => Answer::Chatter { step, session, event },
                FeedItem::Missed(count) => Answer::Missed(count),
                FeedItem::DiskFull { words, until } => Answer::DiskFull { words, until },
                FeedItem::DiskHasRoom => Answer::DiskHasRoom,
            };
            client.send(&answer).await?;
        }
        client.writer.flush().await?;
    }
    Ok(())
}

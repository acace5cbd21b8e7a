//! The end of the control socket that asks.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use sillage_core::id::{ClientSessionId, RunId, Seq, StepIndex};
use sillage_core::ports::store::{RunSummary, Which};
use sillage_core::run::{PermissionAnswer, Recorded, StepCommand};
use sillage_core::time::Timestamp;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::ControlError;
use super::protocol::{Answer, Failed, LONGEST_ANSWER, Request};
use super::wire::{Reached, read_line};
use crate::feed::FeedItem;
use crate::follow::Followed;
use crate::reader::{ReadError, StopAsked};
use crate::restore::ExecutedText;

/// Asks the process that holds the store of a data folder. Each call is a connection of its own.
#[derive(Debug, Clone)]
pub struct ControlClient {
    folder: PathBuf,
}

impl ControlClient {
    /// A client of the data folder's control socket, which is not reached yet.
    #[must_use]
    pub fn new(folder: &Path) -> ControlClient {
        ControlClient {
            folder: folder.to_owned(),
        }
    }

    /// The data folder.
    #[cfg(feature = "store")]
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Summaries of runs, newest launch first.
    ///
    /// # Errors
    /// [`ReadError::Control`], as for every call.
    pub async fn runs(&self, which: Which, limit: usize) -> Result<Vec<RunSummary>, ReadError> {
        let unfinished = which == Which::Unfinished;
        let mut answers = self.ask(&Request::Runs { unfinished, limit }).await?;
        let mut runs = Vec::new();
        while let Some(answer) = answers.next().await? {
            let Answer::Run(summary) = answer else {
                return Err(unexpected(&answer));
            };
            runs.push(summary);
        }
        Ok(runs)
    }

    /// One run's summary.
    ///
    /// # Errors
    /// [`ReadError::NoSuchRun`].
    pub async fn run(&self, run: &RunId) -> Result<RunSummary, ReadError> {
        let answer = self.only(&Request::Run { run: run.clone() }).await?;
        if let Answer::Run(summary) = answer {
            Ok(summary)
        } else {
            Err(unexpected(&answer))
        }
    }

    /// The fact that launched a run.
    ///
    /// # Errors
    /// [`ReadError::NoSuchRun`].
    pub async fn launch(&self, run: &RunId) -> Result<Recorded, ReadError> {
        let answer = self.only(&Request::Launch { run: run.clone() }).await?;
        if let Answer::Fact(fact) = answer {
            Ok(Arc::unwrap_or_clone(fact))
        } else {
            Err(unexpected(&answer))
        }
    }

    /// The runs that the process drives, in the order of their launch.
    ///
    /// # Errors
    /// [`ReadError::Control`].
    pub async fn driven(&self) -> Result<Vec<RunId>, ReadError> {
        let answer = self.only(&Request::Driven).await?;
        if let Answer::Driven(runs) = answer {
            Ok(runs)
        } else {
            Err(unexpected(&answer))
        }
    }

    /// A run's stored facts from position `from` on.
    ///
    /// # Errors
    /// [`ReadError::Control`] when its log cannot be read.
    pub async fn events(&self, run: &RunId, from: Seq) -> Result<Vec<Recorded>, ReadError> {
        let mut answers = self
            .ask(&Request::Events {
                run: run.clone(),
                from,
            })
            .await?;
        let mut facts = Vec::new();
        while let Some(answer) = answers.next().await? {
            let Answer::Fact(fact) = answer else {
                return Err(unexpected(&answer));
            };
            facts.push(Arc::unwrap_or_clone(fact));
        }
        Ok(facts)
    }

    /// As [`follow`](crate::follow) in the process that holds the store.
    ///
    /// # Errors
    /// When it cannot be asked; the stream ends with what went wrong later, [`ControlError::Closed`] when that process
    /// ended first.
    pub async fn follow(&self, run: &RunId, from: Seq) -> Result<Followed<ReadError>, ReadError> {
        let answers = self
            .ask(&Request::Follow {
                run: run.clone(),
                from,
            })
            .await?;
        let next = |mut answers: Answers| async {
            let item = match answers.next().await.transpose()? {
                Ok(Answer::Fact(fact)) => Ok(FeedItem::Fact(fact)),
                Ok(Answer::Chatter { step, session, event }) => {
                    Ok(FeedItem::Chatter { step, session, event })
                }
                Ok(Answer::Missed(count)) => Ok(FeedItem::Missed(count)),
                Ok(Answer::DiskFull { words, until }) => Ok(FeedItem::DiskFull { words, until }),
                Ok(Answer::DiskHasRoom) => Ok(FeedItem::DiskHasRoom),
                Ok(other) => Err(unexpected(&other)),
                Err(error) => Err(error),
            };
            Some((item, answers))
        };
        Ok(stream::unfold(answers, next).boxed())
    }

    /// When each step's session last said or did anything, as far as the process heard it.
    ///
    /// # Errors
    /// [`ReadError::Control`].
    pub async fn heard(&self, run: &RunId) -> Result<Vec<(StepIndex, Timestamp)>, ReadError> {
        let answer = self.only(&Request::Heard { run: run.clone() }).await?;
        if let Answer::Heard(heard) = answer {
            Ok(heard)
        } else {
            Err(unexpected(&answer))
        }
    }

    /// Asks a run to stop; a second time: at once (R4).
    ///
    /// # Errors
    /// [`ReadError::NoSuchRun`], [`ReadError::Over`], [`ReadError::NotDriven`].
    pub async fn stop(&self, run: &RunId) -> Result<StopAsked, ReadError> {
        let answer = self.only(&Request::Stop { run: run.clone() }).await?;
        if let Answer::StopAsked { again } = answer {
            Ok(StopAsked { again })
        } else {
            Err(unexpected(&answer))
        }
    }

    /// Answers a permission request; the answer is durable when this returns.
    ///
    /// # Errors
    /// [`ReadError::Refused`] when it cannot be answered so; [`ReadError::NoSuchRun`], [`ReadError::Over`],
    /// [`ReadError::NotDriven`].
    pub async fn answer_permission(
        &self,
        run: &RunId,
        asked: Seq,
        answer: PermissionAnswer,
    ) -> Result<(), ReadError> {
        let run = run.clone();
        let request = Request::AnswerPermission { run, asked, answer };
        let told = self.only(&request).await?;
        if told == Answer::PermissionAnswered {
            Ok(())
        } else {
            Err(unexpected(&told))
        }
    }

    /// Uses a provider account again that the run waits for.
    ///
    /// # Errors
    /// [`ReadError::Refused`], [`ReadError::NotDriven`], [`ReadError::Control`].
    pub async fn try_account(&self, run: &RunId, account: &str) -> Result<(), ReadError> {
        let (run, account) = (run.clone(), account.to_owned());
        let told = self.only(&Request::TryAccount { run, account }).await?;
        if told == Answer::AccountTried {
            Ok(())
        } else {
            Err(unexpected(&told))
        }
    }

    /// The text that a run executed; none where the store has it no more.
    ///
    /// # Errors
    /// [`ReadError::NoSuchRun`].
    pub async fn executed(&self, run: &RunId, renew: bool) -> Result<Option<ExecutedText>, ReadError> {
        let run = run.clone();
        let answer = self.only(&Request::Executed { run, renew }).await?;
        if let Answer::Executed(text) = answer {
            Ok(text)
        } else {
            Err(unexpected(&answer))
        }
    }

    /// Commands a step of a run; what follows is durable when this returns.
    ///
    /// # Errors
    /// [`ReadError::Refused`] when the command makes no sense; [`ReadError::NoSuchRun`], [`ReadError::Over`],
    /// [`ReadError::NotDriven`].
    pub async fn command(&self, run: &RunId, step: StepIndex, command: StepCommand) -> Result<(), ReadError> {
        let run = run.clone();
        let told = self.only(&Request::Step { run, step, command }).await?;
        if told == Answer::Taken {
            Ok(())
        } else {
            Err(unexpected(&told))
        }
    }

    /// A session's transcript: its events but the final answers, as JSON lines.
    ///
    /// # Errors
    /// [`ReadError::Control`].
    pub async fn transcript(&self, run: &RunId, session: ClientSessionId) -> Result<String, ReadError> {
        let mut answers = self
            .ask(&Request::Transcript {
                run: run.clone(),
                session,
            })
            .await?;
        let mut text = String::new();
        while let Some(answer) = answers.next().await? {
            let Answer::Chunk(chunk) = answer else {
                return Err(unexpected(&answer));
            };
            text.push_str(&chunk);
        }
        Ok(text)
    }

    async fn ask(&self, request: &Request) -> Result<Answers, ReadError> {
        let unusable = |source| ControlError::Unusable {
            path: self.folder.join("control"),
            source,
        };
        let asked = async {
            let mut stream = UnixStream::connect(Reached::new(&self.folder, "control")?.path()).await?;
            let mut line = serde_json::to_vec(request)?;
            line.push(b'\n');
            stream.write_all(&line).await?;
            Ok(Answers {
                reader: BufReader::new(stream),
                over: false,
            })
        };
        Ok(asked.await.map_err(unusable)?)
    }

    /// Asks for what has one answer.
    async fn only(&self, request: &Request) -> Result<Answer, ReadError> {
        let answer = self.ask(request).await?.next().await?;
        answer.ok_or_else(|| unexpected(&Answer::End))
    }
}

fn unexpected(answer: &Answer) -> ReadError {
    // As it came over the wire, but for its length.
    let told = serde_json::to_string(answer).unwrap_or_default();
    let told: String = told.chars().take(200).collect();
    ControlError::Foreign(format!("{told} was not asked for")).into()
}

/// The answers to one request.
struct Answers {
    reader: BufReader<UnixStream>,
    over: bool,
}

impl Answers {
    /// The next answer; none after the last one, or after an error.
    async fn next(&mut self) -> Result<Option<Answer>, ReadError> {
        if self.over {
            return Ok(None);
        }
        let answer = self.read().await;
        self.over = !matches!(answer, Ok(Some(_)));
        answer
    }

    async fn read(&mut self) -> Result<Option<Answer>, ReadError> {
        let line = match read_line(&mut self.reader, LONGEST_ANSWER).await {
            Ok(Some(line)) => line,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(ControlError::Foreign(error.to_string()).into());
            }
            Ok(None) | Err(_) => return Err(ControlError::Closed.into()),
        };
        let answer =
            serde_json::from_slice(&line).map_err(|error| ControlError::Foreign(error.to_string()))?;
        match answer {
            Answer::End => Ok(None),
            Answer::Failed(failed) => Err(failed.into()),
            part @ (Answer::Run(_)
            | Answer::Fact(_)
            | Answer::Chatter { .. }
            | Answer::Missed(_)
            | Answer::DiskFull { .. }
            | Answer::DiskHasRoom
            | Answer::Driven(_)
            | Answer::Heard(_)
            | Answer::StopAsked { .. }
            | Answer::PermissionAnswered
            | Answer::AccountTried
            | Answer::Taken
            | Answer::Executed(_)
            | Answer::Chunk(_)) => Ok(Some(part)),
        }
    }
}

impl From<Failed> for ReadError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::NoSuchRun(run) => ReadError::NoSuchRun(run),
            Failed::NotDriven(run) => ReadError::NotDriven(run),
            Failed::Over { run, state } => ReadError::Over { run, state },
            Failed::Refused(words) => ReadError::Refused(words),
            Failed::Other(words) => ControlError::Refused(words).into(),
        }
    }
}

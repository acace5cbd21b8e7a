//! The end of the agents' socket that asks.

use std::io;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use super::protocol::{Answer, Ask, Done, LONGEST_ANSWER, Listed, Order, Request};
use crate::control::wire::{Reached, read_line};

/// Why the process that holds the agents did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// There is none.
    #[error("no process holds agents here")]
    NoHost,
    /// It went away within its answer.
    #[error("the process that holds the agents went away before it had answered")]
    Closed,
    /// The socket cannot be used.
    #[error("the socket {} cannot be used", path.display())]
    Unusable {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It speaks otherwise.
    #[error("the process that holds the agents speaks another version of Sillage: {0}")]
    Foreign(String),
    /// It could not answer; these are its words.
    #[error("{0}")]
    Failed(String),
}

/// Asks the process that holds the agents of a data folder. Each call is a connection of its own.
#[derive(Debug, Clone)]
pub struct AgentClient {
    folder: PathBuf,
    settings: PathBuf,
}

impl AgentClient {
    /// A client for the agents of this settings file, whose host works in the data folder `folder`.
    #[must_use]
    pub fn new(folder: &Path, settings: &Path) -> AgentClient {
        AgentClient {
            folder: folder.to_owned(),
            settings: settings.to_owned(),
        }
    }

    /// How all agents stand.
    ///
    /// # Errors
    /// [`AskError`], as for every call; [`AskError::NoHost`]: nothing runs.
    pub async fn list(&self) -> Result<Listed, AskError> {
        let mut answers = self.ask(Ask::List).await?;
        match answers.next().await? {
            Some(Answer::Agents(listed)) => Ok(listed),
            other => Err(unexpected(&other)),
        }
    }

    /// The last lines of an agent's log, oldest first.
    ///
    /// # Errors
    /// [`AskError`].
    pub async fn logs(&self, agent: &str) -> Result<Vec<String>, AskError> {
        let mut answers = self.ask(Ask::Logs(agent.to_owned())).await?;
        match answers.next().await? {
            Some(Answer::Lines(lines)) => Ok(lines),
            other => Err(unexpected(&other)),
        }
    }

    /// Does something with each of these agents, and tells `each` as it is done.
    ///
    /// # Errors
    /// [`AskError`]; what went wrong with one agent is in its [`Done`].
    pub async fn carry_out(
        &self,
        order: Order,
        agents: &[String],
        mut each: impl FnMut(Done),
    ) -> Result<(), AskError> {
        let mut answers = self.ask(Ask::Do(order, agents.to_vec())).await?;
        while let Some(answer) = answers.next().await? {
            match answer {
                Answer::Done(done) => each(done),
                other @ (Answer::Agents(_) | Answer::Lines(_) | Answer::End | Answer::Failed(_)) => {
                    return Err(unexpected(&Some(other)));
                }
            }
        }
        Ok(())
    }

    async fn ask(&self, ask: Ask) -> Result<Answers, AskError> {
        let unusable = |source| AskError::Unusable {
            path: self.folder.join("agents"),
            source,
        };
        let reached = match Reached::new(&self.folder, "agents") {
            Ok(reached) => reached,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(AskError::NoHost),
            Err(error) => return Err(unusable(error)),
        };
        let mut stream = match UnixStream::connect(reached.path()).await {
            Ok(stream) => stream,
            // A socket that nobody listens on was left by one who was killed.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Err(AskError::NoHost);
            }
            Err(error) => return Err(unusable(error)),
        };
        let request = Request {
            settings: self.settings.clone(),
            ask,
        };
        let mut line = serde_json::to_vec(&request).map_err(|error| unusable(error.into()))?;
        line.push(b'\n');
        // It may be about to end.
        stream.write_all(&line).await.map_err(|_| AskError::Closed)?;
        Ok(Answers(BufReader::new(stream)))
    }
}

fn unexpected(answer: &Option<Answer>) -> AskError {
    let words: String = format!("{answer:?} was not asked for")
        .chars()
        .take(200)
        .collect();
    AskError::Foreign(words)
}

/// The answers to one request.
struct Answers(BufReader<UnixStream>);

impl Answers {
    /// The next answer; none after the last one.
    async fn next(&mut self) -> Result<Option<Answer>, AskError> {
        let line = match read_line(&mut self.0, LONGEST_ANSWER).await {
            Ok(Some(line)) => line,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(AskError::Foreign(error.to_string()));
            }
            Ok(None) | Err(_) => return Err(AskError::Closed),
        };
        match serde_json::from_slice(&line).map_err(|error| AskError::Foreign(error.to_string()))? {
            Answer::End => Ok(None),
            Answer::Failed(words) => Err(AskError::Failed(words)),
            part @ (Answer::Agents(_) | Answer::Lines(_) | Answer::Done(_)) => Ok(Some(part)),
        }
    }
}

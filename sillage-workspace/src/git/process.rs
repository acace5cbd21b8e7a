//! Running one call: deadline, process group, bound on output.

use std::process::Stdio;

use sillage_core::ports::workspace::WorkspaceError;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::{Call, failed};

/// The most that one stream of a call may hold.
const OUTPUT_LIMIT: u64 = 64 * 1024 * 1024;
/// How much of git's words an error repeats.
const WORDS_LIMIT: usize = 2000;

/// What a call that ended said.
#[derive(Debug)]
pub(crate) struct Output {
    /// The exit code; none when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Output {
    /// git's words on stderr, bounded.
    pub(crate) fn words(&self) -> String {
        String::from_utf8_lossy(&self.stderr)
            .trim()
            .chars()
            .take(WORDS_LIMIT)
            .collect()
    }

    pub(crate) fn failure(&self, words: &str) -> WorkspaceError {
        let said = self.words();
        match self.code {
            Some(code) if said.is_empty() => failed(words, format!("exit code {code} without a word")),
            Some(_) => failed(words, said),
            None => failed(words, format!("ended by a signal; {said}")),
        }
    }
}

/// Ends the call's whole group unless the call ended by itself: also when the future is dropped.
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
    #[cfg(not(unix))]
    leader: Option<()>,
}

impl Group {
    #[cfg(unix)]
    fn of(child: &Child) -> Self {
        let leader = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        Self { leader }
    }

    #[cfg(not(unix))]
    fn of(_child: &Child) -> Self {
        Self { leader: None }
    }

    fn ended(&mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader {
            // Already gone is as good as ended.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

pub(super) async fn run(call: Call) -> Result<Output, WorkspaceError> {
    let words = call.words;
    let mut command = Command::new(&call.program);
    command
        .args(&call.arguments)
        .current_dir(&call.folder)
        .env_clear()
        .envs(call.environment.iter().map(|(key, value)| (key, value)))
        .stdin(if call.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    tracing::trace!(words, arguments = ?call.arguments, "git");
    let mut child = command.spawn().map_err(|error| {
        failed(
            words,
            format!(
                "{} could not be started in {}: {error}",
                call.program.display(),
                call.folder.display()
            ),
        )
    })?;
    let mut group = Group::of(&child);
    let ended = tokio::time::timeout(call.deadline, converse(&mut child, call.stdin, words)).await;
    let output = ended.map_err(|_| {
        failed(
            words,
            format!("no end after {} s: stopped", call.deadline.as_secs()),
        )
    })??;
    group.ended();
    Ok(output)
}

/// Writes stdin while reading both streams, then waits for the end.
async fn converse(
    child: &mut Child,
    stdin: Option<Vec<u8>>,
    words: &'static str,
) -> Result<Output, WorkspaceError> {
    let pipe = child.stdin.take();
    let write = async move {
        if let (Some(mut pipe), Some(bytes)) = (pipe, stdin) {
            // A call that ends without reading everything says why by its exit code.
            let _ = pipe.write_all(&bytes).await;
        }
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let read = async { tokio::try_join!(bounded(stdout, words), bounded(stderr, words)) };
    let ((), streams) = tokio::join!(write, read);
    let (stdout, stderr) = streams?;
    let status = child
        .wait()
        .await
        .map_err(|error| failed(words, error.to_string()))?;
    Ok(Output {
        code: status.code(),
        stdout,
        stderr,
    })
}

async fn bounded(
    stream: Option<impl AsyncRead + Unpin>,
    words: &'static str,
) -> Result<Vec<u8>, WorkspaceError> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        let read = stream.take(OUTPUT_LIMIT + 1).read_to_end(&mut bytes).await;
        read.map_err(|error| failed(words, error.to_string()))?;
    }
    if u64::try_from(bytes.len()).is_ok_and(|length| length > OUTPUT_LIMIT) {
        return Err(failed(
            words,
            format!("more than {OUTPUT_LIMIT} bytes printed: stopped"),
        ));
    }
    Ok(bytes)
}

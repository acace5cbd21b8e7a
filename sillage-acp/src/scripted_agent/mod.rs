//! An agent that speaks ACP and does what a script says: for tests, demonstrations, and trying a client.

mod agent;
mod deeds;
mod placeholder;
pub mod record;
pub mod script;
mod session;
pub mod step;
mod turn;
mod uses;
mod wire;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

pub use agent::{Agent, Ending};
pub use record::Record;
pub use script::{Script, ScriptError};

use record::Event;
use script::End;

/// What the program is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Args {
    /// The script file.
    pub script: PathBuf,
    /// The file that the record is added to.
    pub record: Option<PathBuf>,
}

impl Args {
    /// Reads `--script FILE` and, if given, `--record FILE`.
    ///
    /// # Errors
    /// Words that say what is wrong.
    pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let (mut script, mut record) = (None, None);
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let place = match arg.to_str() {
                Some("--script") => &mut script,
                Some("--record") => &mut record,
                _ => {
                    return Err(format!(
                        "unknown argument {}: give --script FILE [--record FILE]",
                        arg.display()
                    ));
                }
            };
            let file = args
                .next()
                .ok_or_else(|| format!("{} takes a file", arg.display()))?;
            *place = Some(PathBuf::from(file));
        }
        let script = script.ok_or("no script: give --script FILE [--record FILE]")?;
        Ok(Args { script, record })
    }
}

/// A whole `main`: reads the command line of the process, runs the agent, and gives its exit code.
///
/// ```no_run
/// # use std::process::ExitCode;
/// fn main() -> ExitCode {
///     sillage_acp::scripted_agent::main()
/// }
/// ```
#[must_use]
pub fn main() -> ExitCode {
    match Args::parse(std::env::args_os().skip(1)) {
        Ok(args) => run(&args),
        Err(words) => refuse(&words),
    }
}

/// Runs the agent over standard input and output until it ends, on a runtime of its own. A faulty script is told on
/// standard error, with exit code 2.
///
/// # Aborts
/// When the script says so.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    let record = match args.record.as_deref().map(Record::append).transpose() {
        Ok(record) => record.unwrap_or_default(),
        Err(error) => return refuse(&format!("cannot open the record: {error}")),
    };
    let script = match Script::read(&args.script) {
        Ok(script) => script,
        Err(error) => return refuse(&words(&args.script, &error)),
    };
    let home = args.script.parent().map(Path::to_owned).unwrap_or_default();
    let Ok(home) = std::path::absolute(&home).or_else(|_| std::env::current_dir()) else {
        return refuse("the current folder is gone");
    };
    record.write(started());
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&error.to_string()),
    };
    let ending = runtime.block_on(async {
        let end = script.end.clone();
        tokio::select! {
            ending = Agent::new(script, home, record.clone()).serve(tokio::io::stdin(), tokio::io::stdout()) => ending,
            ending = terminated(&end, &record) => ending,
        }
    });
    // Reading standard input blocks a thread that nothing can interrupt.
    runtime.shutdown_background();
    match ending {
        Ending::Code(code) => ExitCode::from(code),
        Ending::Crash => std::process::abort(),
    }
}

fn words(script: &Path, error: &ScriptError) -> String {
    let mut words = format!("{}: {error}", script.display());
    if let Some(source) = std::error::Error::source(error) {
        words.push_str(&format!(": {source}"));
    }
    words
}

fn refuse(words: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "scripted agent: {words}");
    ExitCode::from(2)
}

fn started() -> Event {
    #[cfg(unix)]
    let ppid = std::os::unix::process::parent_id();
    #[cfg(not(unix))]
    let ppid = 0;
    let mut env: Vec<String> = std::env::vars_os()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .collect();
    env.sort();
    Event::Started {
        ppid,
        argv: std::env::args_os()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect(),
        cwd: std::env::current_dir()
            .map(|cwd| cwd.display().to_string())
            .unwrap_or_default(),
        env,
    }
}

/// Waits for SIGTERM, and for as long as the script wants after it. The code is the shell's for that signal.
#[cfg(unix)]
async fn terminated(end: &End, record: &Record) -> Ending {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut signals) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    while signals.recv().await.is_some() {
        record.write(Event::Signal {
            name: "SIGTERM".to_owned(),
        });
        if !end.ignore_sigterm {
            tokio::time::sleep(Duration::from_millis(end.linger_ms)).await;
            record.write(Event::Exiting { code: Some(143) });
            return Ending::Code(143);
        }
    }
    std::future::pending().await
}

#[cfg(not(unix))]
async fn terminated(_: &End, _: &Record) -> Ending {
    std::future::pending().await
}

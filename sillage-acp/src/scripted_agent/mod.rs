//! An agent that speaks ACP v1 and does what a script says: for tests, demonstrations, and trying a client.
//!
//! It behaves like a model's agent without a model: it says, writes, runs, asks, counts tokens, as it is told; and it
//! misbehaves as real agents do, when it is told to. It shares no code with the client: two ends of a test that
//! shared a mistake would agree about it.
//!
//! # A script
//!
//! ```
//! # let script = r#"
//! prompts:
//!   - match: explore
//!     steps:
//!       - say: I look around.
//!       - write: { path: notes.md, content: "seen in {{cwd}}\n", ask: true }
//!       - report: { summary: Explored., references: [{ kind: file, value: notes.md }] }
//!   - match: /fix bug (\d+)/
//!     times: 2
//!     steps:
//!       - wait_for: "{{env.GATE}}/go"
//!       - run: cargo --version
//!       - say: "bug {{match.1}} is fixed: {{output}}"
//! default:
//!   - say: I know nothing of that.
//! # "#;
//! # let script = sillage_acp::scripted_agent::Script::parse(script).expect("a script");
//! # assert_eq!(script.prompts.len(), 2);
//! ```
//!
//! At a prompt, the first rule of `prompts` that matches and is not used up is played, otherwise `default`, otherwise
//! the prompt is answered with an error. A rule has
//!
//! | key | |
//! | --- | --- |
//! | `match` | what the prompt's text holds: a text, or `/a regular expression/`; without it any prompt matches |
//! | `if_exists`, `unless_exists` | a file that must, or must not, exist |
//! | `times` | how often it may be used: 1, another number, or `always` |
//! | `steps` | what is done; then the prompt is answered `end_turn`, unless a step answered it |
//! | `after` | what is done once the prompt is answered: late updates, a second answer, an exit |
//! | `on_cancel` | what a cancellation does: `obey`, `ignore`, `{ stop: REASON }`, `{ error: { code, message } }` |
//!
//! # Steps
//!
//! A step is a map of one key. Where a text is enough, it stands for the map: `say: hello`.
//!
//! | step | |
//! | --- | --- |
//! | `say`, `think` | `{ text, chunks, delay_ms, message }`: message or thought, in pieces |
//! | `report` | `{ outcome, summary, … }`: says a fenced `json` block; other fields as given, right or wrong |
//! | `plan` | list of texts or `{ content, priority, status }` |
//! | `tool` | `{ id, title, kind, status, paths, content, raw_input, raw_output, update }`: news of a tool call |
//! | `write`, `append` | `{ path, content, quiet, ask }`: really; told as a tool call unless `quiet`; only if allowed with `ask` |
//! | `edit` | `{ path, find, replace, quiet, ask }`: the text must occur once |
//! | `delete` | `{ path, quiet, ask }` |
//! | `run` | `{ command, args, group, quiet, ask }`: a shell line or a program, waited for; `group`: `same`, `own`, `session` |
//! | `grandchild` | `{ command, group, hold_stdout }`: a shell line that outlives the agent |
//! | `ask` | `{ title, kind, paths, raw_input, tool, announce, bare, options, allowed, rejected, cancelled }`: asks for permission, then does the steps of its outcome |
//! | `usage` | `{ used, size, cost: { amount, currency } }`: `usage_update` |
//! | `turn_usage` | `{ input, output, cached_read, cached_write, thought }`: goes with the answer |
//! | `wait` | milliseconds |
//! | `wait_for` | `{ path, timeout_ms }`: until the file exists |
//! | `touch` | a file to make, for others to wait for |
//! | `silent` | `until_cancelled` or `for_ever` |
//! | `stop` | ends the turn with this stop reason, known to ACP or not |
//! | `error` | `{ code, message, data }`: ends the turn with an error |
//! | `answer` | any result, at once; the turn goes on and is not answered again |
//! | `on_cancel` | as a rule's, from here on |
//! | `exit` | ends the process with this code, the prompt unanswered |
//! | `crash` | aborts the process |
//! | `stderr` | `{ text, times }` |
//! | `deaf` | nothing more is read from standard input |
//! | `raw` | `{ text, hex, times, newline }`: what is not protocol on standard output: noise, half a line, invalid UTF-8 |
//! | `frame` | any JSON as a line: unknown updates, vendor notifications, another session's update; a list is a batch |
//! | `update` | any JSON as an update of the session |
//! | `request` | `{ method, params, wait }`: a request of the agent's own, such as `fs/write_text_file` |
//! | `huge` | bytes of one `tool_call` line |
//! | `delivery` | how frames leave up to the answer: `normal`, `byte_by_byte`, `one_write`, `batch` |
//! | `record_env` | names of variables whose values go to the record |
//!
//! A deed (`write` to `run`) that fails is told as a failed tool call and the turn goes on, as a model would.
//!
//! Texts may hold placeholders: `{{cwd}}` and `{{session}}` of the session, `{{prompt}}` its number in the session,
//! `{{text}}` the prompt's text and `{{match.N}}` the groups of the rule's expression, `{{model}}` and `{{effort}}` in
//! force, `{{permission}}` the option chosen last (or `cancelled`, `error`), `{{response}}` to the last `request`,
//! `{{output}}` and `{{code}}` of the last deed, `{{env.NAME}}`, `{{pid}}`, `{{script_dir}}` the folder of the script,
//! and `{{open}}` for two braces. Paths are taken from the session's folder.
//!
//! # The agent around the prompts
//!
//! ```
//! # let script = r#"
//! agent: { name: scripted, version: "1", protocol: 1, load: true, resume: true, list: true, close: true }
//! start: { stderr: "", stdout: "a banner\n", wait_for: FILE, delay_ms: 0 }   # and `exit: CODE`
//! end: { ignore_eof: false, ignore_sigterm: false, linger_ms: 0, code: 0, last_frames: [] }
//! auth: { methods: [key], in_vain: false }       # -32000 until `authenticate`
//! options:                                       # session configuration options
//!   - { id: model, category: model, current: opus, values: [opus, haiku, old, odd], refused: [old], ignored: [odd] }
//!   - { id: effort, category: thought_level, values: [low, high], by_model: { haiku: [low] } }
//! models: { current: a, available: [a, b] }      # the legacy list, and `session/set_model`
//! modes: { available: [ask, code] }
//! sessions: { folder: kept, keep: as_said }      # or `when_answered`; announces load, resume and list
//! uses: used                                     # `times` counted over all processes
//! ids: strings                                   # of the agent's own requests; by default numbers from 0
//! on_cancel: obey
//! methods:                                       # methods that do not go as they should
//!   session/load: { times: 1, error: { code: -32603, message: Internal error } }
//!   session/new: { before: [{ jsonrpc: "2.0", method: _vendor/hello }], after: [], delay_ms: 0, wait_for: FILE }
//!   session/set_mode: { result: null }           # and `silent: true`, `exit: CODE`
//! # "#;
//! # sillage_acp::scripted_agent::Script::parse(script).expect("a script");
//! ```
//!
//! # The record
//!
//! With `--record FILE` every frame, prompt, answer, child process, signal and ending is added to the file before its
//! effect can be seen; see [`record`]. Several processes may share one file.

mod agent;
mod deeds;
mod methods;
mod placeholder;
pub mod record;
pub mod script;
mod session;
mod shorthand;
mod speech;
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

//! The scripted agent as a process, for this package's tests; started as `launch-agent`, the launcher; as
//! `engine FOLDER`, an engine to be killed.

mod engine;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let first = args.next().unwrap_or_default();
    if first == "launch-agent" {
        return launch(args);
    }
    if first == "engine" {
        return engine::main(args.next().unwrap_or_default().as_ref());
    }
    sillage_acp::scripted_agent::main()
}

#[cfg(unix)]
fn launch(args: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    use std::io::Write as _;

    sillage_acp::launcher::launch(args).unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "{error}");
        ExitCode::from(127)
    })
}

#[cfg(not(unix))]
fn launch(_: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    ExitCode::from(127)
}

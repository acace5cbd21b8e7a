//! The scripted agent as a process, for this package's tests; started as `launch-agent`, the launcher; as
//! `engine FOLDER`, an engine to be killed; as `mcp-server RECORD`, a small MCP server.

mod engine;
mod mcp_server;

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
    if first == "mcp-server" {
        let record = args.next().unwrap_or_default();
        return match mcp_server::serve(record.as_ref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
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

//! The scripted agent as a process, for this package's tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    sillage_acp::scripted_agent::main()
}

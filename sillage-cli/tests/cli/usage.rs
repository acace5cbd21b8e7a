//! H14: usage errors, exit codes, pipes.

use std::io::Read as _;
use std::process::Stdio;

use crate::{Sandbox, ended};

#[test]
fn h14_help_is_an_answer_and_an_unknown_command_a_mistake() {
    let sandbox = Sandbox::new();
    let help = sandbox.run(["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
    assert!(help.stdout.contains("Exit codes:"), "{}", help.stdout);
    let mistake = sandbox.run(["chekc"]);
    assert_eq!((mistake.code, mistake.stdout.as_str()), (2, ""));
    assert!(mistake.stderr.starts_with("error: "), "{}", mistake.stderr);
}

#[test]
fn h14_a_program_gets_its_mistakes_as_json() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["chekc", "--json"][..],
        &["--json"],
        &["--json", "init", "no/such/folder"],
    ] {
        let ended = sandbox.run(arguments);
        assert_eq!((ended.code, ended.stderr.as_str()), (2, ""), "{arguments:?}");
        assert_eq!(ended.json()["ok"], false);
        assert_eq!(ended.json()["error"]["kind"], "usage", "{arguments:?}");
    }
    let after = sandbox.run(["chekc", "--", "--json"]);
    assert_eq!((after.code, after.stdout.as_str()), (2, ""));
}

#[test]
fn h14_a_closed_pipe_is_no_panic() {
    let sandbox = Sandbox::new();
    let mut child = sandbox
        .command(["completions", "bash"])
        .spawn()
        .expect("the program runs");
    let mut first = [0];
    child
        .stdout
        .take()
        .expect("piped")
        .read_exact(&mut first)
        .expect("a first byte");
    // The reader is gone by now.
    let ended = ended(child.wait_with_output().expect("the program ends"));
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
}

#[test]
#[cfg(target_os = "linux")]
fn h14_output_that_cannot_be_written_is_a_failure() {
    let sandbox = Sandbox::new();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let child = sandbox
        .command(["completions", "bash"])
        .stdout(Stdio::from(full))
        .output();
    let ended = ended(child.expect("the program runs"));
    assert_eq!(ended.code, 1);
    assert!(
        ended
            .stderr
            .starts_with("error: cannot write to standard output: "),
        "{}",
        ended.stderr
    );
}

#[test]
fn h14_completions_know_the_commands_of_every_shell() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = sandbox.run(["completions", shell]);
        assert_eq!(ended.code, 0, "{shell}");
        for command in ["init", "check", "agents", "schema"] {
            assert!(ended.stdout.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn h14_a_usage_text_names_what_is_missing_and_not_what_the_environment_says() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(["retry"]);
    command
        .env("SILLAGE_DATA_DIR", sandbox.path("data"))
        .env("SILLAGE_CONFIG", sandbox.path("config.yaml"));
    let ended = ended(command.output().expect("the program runs"));
    assert_eq!(ended.code, 2);
    let usage = ended.stderr.lines().find(|line| line.starts_with("Usage:"));
    let usage = usage.expect("a usage text");
    assert!(
        usage.contains("<RUN>") && !usage.contains("--data-dir") && !usage.contains("--config"),
        "{usage}"
    );
}

#[test]
fn h14_a_ceiling_that_is_none_is_told_what_is_wrong_with_it() {
    let sandbox = Sandbox::new();
    for (option, value) in [
        ("--max-tokens", "-1"),
        ("--max-cost", "-1USD"),
        ("--max-time", "-2h"),
    ] {
        let ended = sandbox.run(["run", "task.yaml", option, value]);
        assert_eq!(ended.code, 2, "{option}");
        let told = format!("invalid value '{value}' for '{option}");
        assert!(ended.stderr.contains(&told), "{}", ended.stderr);
    }
}

#[test]
fn h14_the_settings_file_that_lacks_an_agent_is_the_one_that_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write("task.yaml", "task: t\n");
    sandbox.write("mine.yaml", "limits: { parallel: 1 }\n");
    let mut command = sandbox.command(["run", "task.yaml"]);
    let ended = crate::ended(
        command
            .env("SILLAGE_CONFIG", sandbox.path("mine.yaml"))
            .output()
            .expect("the program runs"),
    );
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("mine.yaml"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("sillage/config.yaml"), "{}", ended.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn h14_a_full_standard_output_is_told_on_standard_error() {
    let sandbox = Sandbox::new();
    let full = || {
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("it is there")
    };
    for arguments in [&["schema", "task"][..], &["check", "no.yaml", "--json"]] {
        let output = sandbox
            .command(arguments)
            .stdout(full())
            .output()
            .expect("the program runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.starts_with("error: "), "{arguments:?}: {told}");
        assert_ne!(output.status.code(), Some(0));
    }
}

//! `sillage demo`: the whole thing on a throw-away repository, with scripted agents (H15).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::json;
use sillage::LaunchRequest;
use sillage::core::ports::runtime::PermissionPolicy;
use sillage::core::settings::{self, Settings};

use crate::adapters::Adapters;
use crate::commands::run::launch;
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::output::{Output, Tone};
use crate::runtimes::Runtime;

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The folder to make the demo in, which must not exist [default: a new one in the temporary folder].
    #[arg(value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

/// The repository's files, and the task.
const FILES: [(&str, &str); 4] = [
    ("README.md", include_str!("demo/repository/README.md")),
    ("greet.sh", include_str!("demo/repository/greet.sh")),
    ("tests/check.sh", include_str!("demo/repository/tests/check.sh")),
    ("task.yaml", include_str!("demo/task.yaml")),
];

const SCRIPT: &str = include_str!("demo/script.yaml");

/// Makes the repository, runs the task on it, and says where to look.
pub(crate) fn run(arguments: &Demo, output: &mut Output) -> Result<Exit, Failure> {
    let folder = match &arguments.folder {
        Some(folder) => fs::create_dir(folder).map(|()| folder.clone()),
        None => fresh_folder(),
    };
    let unwritable = |error| {
        Failure::writing(
            arguments.folder.as_deref().unwrap_or(&std::env::temp_dir()),
            &error,
        )
    };
    let folder = folder.and_then(fs::canonicalize).map_err(unwritable)?;
    let repository = folder.join("greeter");
    make_repository(&repository)?;
    let settings = settings(&folder)?;
    output.line(output.paint(
        Tone::Strong,
        "This is a demo: its agents are scripted, and no model is asked.",
    ))?;
    output.line("The agent process, the repository, its worktrees, commits and merges are real.\n")?;
    let exit = drive::block_on(async {
        let data = folder.join("data");
        let adapters = Adapters::open(&data)?;
        let runtime = Runtime::here(&adapters, &settings)?;
        let request = LaunchRequest {
            task_file: repository.join("task.yaml"),
            offers: Some(runtime.offers.clone()),
            gateways: Vec::new(),
            parallel: None,
            permissions: PermissionPolicy::AllowInFolders,
            budget: None,
            fail_fast: false,
            waits: Default::default(),
            closed: Vec::new(),
            data,
        };
        launch(&adapters, &runtime, &request, &settings, true, output).await
    })?;
    output.line(format_args!(
        "\nLook at it:  git -C {} log --graph --all",
        repository.display()
    ))?;
    output.line(format_args!("Throw away:  rm -r {}", folder.display()))?;
    Ok(exit)
}

/// A new folder in the temporary one, which stays when the program ends.
fn fresh_folder() -> std::io::Result<PathBuf> {
    let name = format!(
        "sillage-demo-{}",
        sillage::new_run_id(sillage::core::ports::Clock::now(&sillage::SystemClock))
    );
    let folder = std::env::temp_dir().join(name);
    fs::create_dir(&folder)?;
    Ok(folder)
}

fn make_repository(folder: &Path) -> Result<(), Failure> {
    for (name, content) in FILES {
        write(&folder.join(name), content)?;
    }
    git(folder, &["init", "--quiet", "--initial-branch=main"])?;
    git(folder, &["add", "--all"])?;
    git(
        folder,
        &["commit", "--quiet", "--message=A greeter that speaks English"],
    )
}

fn git(folder: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let identity = [
        "-c",
        "user.name=Sillage demo",
        "-c",
        "user.email=demo@localhost",
        "-c",
        "commit.gpgSign=false",
    ];
    let told = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(identity)
        .args(arguments)
        .output();
    let told = told.map_err(|error| Failure::new(Kind::Io, format_args!("cannot run git: {error}")))?;
    if told.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&told.stderr).trim().to_owned();
    Err(Failure::new(
        Kind::Io,
        format_args!("git {} failed: {words}", arguments.join(" ")),
    ))
}

/// Settings whose only agent is this program itself, playing the script.
fn settings(folder: &Path) -> Result<Settings, Failure> {
    let script = folder.join("script.yaml");
    write(&script, SCRIPT)?;
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(
            Kind::Io,
            format_args!("cannot tell where this program is: {error}"),
        )
    })?;
    let text = json!({ "agents": [{
        "name": "scripted",
        "command": program,
        "args": ["scripted-agent", "--script", script, "--record", folder.join("record.jsonl")],
        "models": { "scripted": { "efforts": ["low", "medium", "high"] } },
    }]})
    .to_string();
    write(&folder.join("config.yaml"), &text)?;
    settings::read(&text).map_err(|faults| Failure::Faulty {
        file: "config.yaml".to_owned(),
        faults,
    })
}

fn write(path: &Path, content: &str) -> Result<(), Failure> {
    let written = match path.parent() {
        Some(folder) => fs::create_dir_all(folder).and_then(|()| fs::write(path, content)),
        None => fs::write(path, content),
    };
    written.map_err(|error| Failure::writing(path, &error))
}

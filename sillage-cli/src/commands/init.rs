//! `sillage init`: a project file and a commented task file to start from (W1).

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::output::{Output, Tone};

/// Arguments of `init`.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The project's root folder.
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

const PROJECT: &str = include_str!("init/project.yaml");
const TASK: &str = include_str!("init/task.yaml");

/// What was done.
#[derive(Serialize)]
struct Answer {
    ok: bool,
    written: Vec<PathBuf>,
    kept: Vec<PathBuf>,
}

/// Writes the files that are not there yet.
pub(crate) fn run(arguments: &Init, output: &mut Output) -> Result<Exit, Failure> {
    let root =
        fs::canonicalize(&arguments.folder).map_err(|error| Failure::reading(&arguments.folder, &error))?;
    if !root.is_dir() {
        return Err(Failure::new(
            Kind::Usage,
            format_args!("{} is not a folder", arguments.folder.display()),
        ));
    }
    let own = root.join(".sillage");
    fs::create_dir_all(&own).map_err(|error| Failure::writing(&own, &error))?;

    let mut answer = Answer {
        ok: true,
        written: Vec::new(),
        kept: Vec::new(),
    };
    for (path, text) in [
        (own.join("project.yaml"), project(&root)),
        (root.join("task.yaml"), TASK.to_owned()),
    ] {
        match write_new(&path, &text) {
            Ok(()) => {
                output.line(format_args!(
                    "{} {}",
                    output.paint(Tone::Good, "wrote"),
                    path.display()
                ))?;
                answer.written.push(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                output.line(format_args!(
                    "{}  {}, which was there",
                    output.paint(Tone::Faint, "kept"),
                    path.display()
                ))?;
                answer.kept.push(path);
            }
            Err(error) => return Err(Failure::writing(&path, &error)),
        }
    }
    output.line("next: edit task.yaml, then `sillage check task.yaml`")?;
    output.json(&answer)?;
    Ok(Exit::Complete)
}

/// The project file, with the folder's name as the project's.
fn project(root: &Path) -> String {
    let name = root
        .file_name()
        .map_or_else(|| "project".into(), |name| name.to_string_lossy());
    // A JSON string is a YAML string, whatever the name holds.
    PROJECT.replace("{name}", &serde_json::Value::from(name).to_string())
}

/// Writes a file that must not exist, not even as a dangling link.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)?
        .write_all(text.as_bytes())
}

//! `sillage restore`: writes the definition that a run executed back to its task's file, as the newest version (R14).

#[cfg(unix)]
#[path = "restore/file.rs"]
mod file;
#[cfg(not(unix))]
#[path = "restore/unsupported.rs"]
mod file;

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use serde::Serialize;
use sillage::core::id::RunId;
use sillage::{ExecutedText, Reader};

use super::diff::task_file;
use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::terminal::visible;

/// Arguments of `restore`.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The run.
    run: RunId,
    /// Write it to this file, which is not there yet, and leave the task's as it is.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    run: &'a RunId,
    file: &'a Path,
    /// Whether the file was written; it is not when it says the same already.
    written: bool,
    /// The copy of what the file said before.
    copy: Option<&'a Path>,
    /// The version that the run executed.
    version: u64,
    /// The task's newest version.
    newest: u64,
}

/// What became of the task's file.
struct Restored {
    written: bool,
    copy: Option<PathBuf>,
}

/// Restores the executed definition.
pub(crate) fn run(arguments: &Restore, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let data = global.data_folder()?;
    let renew = arguments.output.is_none();
    let run = &arguments.run;
    let (definition, kept) = drive::block_on(async {
        let reader = Reader::open(&data).await?;
        let definition = reader.definition(run).await?;
        Ok((definition, reader.executed_text(run, false).await?))
    })?;
    let kept = kept.ok_or_else(|| {
        let words = format!("the text that run {run} executed is not in the store any more");
        Failure::new(Kind::Refused, words).hint("nothing was written")
    })?;
    let (file, restored) = match &arguments.output {
        Some(path) => {
            file::create(path, &kept.text)?;
            let restored = Restored {
                written: true,
                copy: None,
            };
            (path.clone(), restored)
        }
        None => {
            let path = task_file(&definition)?.to_path_buf();
            let restored = file::restore(&path, &kept.text)?;
            (path, restored)
        }
    };
    // The file first: a version that no file says would be the newest otherwise.
    let newest = match renew {
        true => drive::block_on(async {
            let reader = Reader::open(&data).await?;
            let renewed = reader.executed_text(run, true).await?;
            Ok(renewed.map_or(kept.newest, |renewed: ExecutedText| renewed.newest))
        })?,
        false => kept.newest,
    };
    tell(&file, &restored, &kept, newest, output)?;
    output.json(&Answer {
        ok: true,
        run,
        file: &file,
        written: restored.written,
        copy: restored.copy.as_deref(),
        version: kept.version,
        newest,
    })?;
    Ok(Exit::Complete)
}

fn tell(
    file: &Path,
    restored: &Restored,
    kept: &ExecutedText,
    newest: u64,
    output: &mut Output,
) -> Result<(), Failure> {
    let shown = file.to_string_lossy();
    let shown = visible(&shown);
    if !restored.written {
        output.line(format_args!("{shown} says the same already: nothing was written"))?;
        return Ok(());
    }
    output.line(format_args!(
        "{shown} is version {} again, its newest version being {newest}",
        kept.version
    ))?;
    if let Some(copy) = &restored.copy {
        let copy = copy.to_string_lossy();
        output.line(format_args!("what it said before is kept in {}", visible(&copy)))?;
    }
    Ok(())
}

//! Writing a task's file: whole or not at all, and never over what was not kept.

use std::io;
use std::path::{Path, PathBuf};

use sillage::core::document::MAX_BYTES;
use sillage::workspace::confined::{FileError, Folder};

use super::Restored;
use crate::failure::{Failure, Kind};

/// Writes the text over the file, whole or not at all, after keeping a copy beside it.
pub(super) fn restore(file: &Path, text: &[u8]) -> Result<Restored, Failure> {
    let (folder, name) = opened(file, unwritten)?;
    let content = match folder.read(&name, MAX_BYTES as u64 * 16) {
        Ok(content) => content,
        Err(FileError::Missing(_)) => {
            folder.create(&name, text).map_err(|error| unwritten(&error))?;
            return Ok(Restored {
                written: true,
                copy: None,
            });
        }
        Err(error) => return Err(unwritten(&error)),
    };
    if content.bytes == text {
        return Ok(Restored {
            written: false,
            copy: None,
        });
    }
    let copy = keep_copy(&folder, &name, &content.bytes)?;
    folder
        .save(&name, text, content.version)
        .map_err(|error| unwritten(&error))?;
    Ok(Restored {
        written: true,
        copy: Some(folder.path().join(copy)),
    })
}

/// Copies are numbered up to this.
const MOST_COPIES: u32 = 10_000;

/// Keeps a copy under the first name beside the file that is free.
fn keep_copy(folder: &Folder, name: &Path, bytes: &[u8]) -> Result<PathBuf, Failure> {
    for number in 1..=MOST_COPIES {
        let mut copy = name.as_os_str().to_os_string();
        copy.push(format!(".before-restore-{number}"));
        let copy = PathBuf::from(copy);
        match folder.create(&copy, bytes) {
            Ok(_) => return Ok(copy),
            Err(FileError::Exists(_)) => {}
            Err(error) => return Err(unwritten(&error)),
        }
    }
    let words = format!(
        "{} has {MOST_COPIES} copies beside it: remove some",
        name.display()
    );
    Err(Failure::new(Kind::Refused, words))
}

/// Writes the text to a file that is not there yet.
pub(super) fn create(file: &Path, text: &[u8]) -> Result<(), Failure> {
    let file = std::path::absolute(file).map_err(|error| Failure::writing(file, &error))?;
    let (folder, name) = opened(&file, misnamed_or)?;
    match folder.create(&name, text) {
        Ok(_) => Ok(()),
        Err(FileError::Exists(_)) => {
            let words = format!("{} is there already: name a file that is not", file.display());
            Err(Failure::new(Kind::Usage, words))
        }
        Err(error) => Err(misnamed_or(&error)),
    }
}

/// Where a person named a place at which nothing can be written, that is their mistake and no trouble of the machine.
fn misnamed_or(error: &FileError) -> Failure {
    let mistaken = match error {
        FileError::Io { source, .. } => matches!(
            source.kind(),
            io::ErrorKind::NotFound
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::ReadOnlyFilesystem
        ),
        FileError::Conflict { .. } | FileError::Busy(_) => false,
        FileError::Name { .. }
        | FileError::Outside { .. }
        | FileError::Missing(_)
        | FileError::Exists(_)
        | FileError::Kind { .. }
        | FileError::TooLong { .. }
        | _ => true,
    };
    match mistaken {
        true => Failure::new(Kind::Usage, error).hint("name a file in a folder that can be written"),
        false => unwritten(error),
    }
}

/// The folder that a file lies in, and the file's name there.
fn opened(file: &Path, told: fn(&FileError) -> Failure) -> Result<(Folder, PathBuf), Failure> {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(Failure::new(
            Kind::Usage,
            format_args!("{} is no file", file.display()),
        ));
    };
    let folder = Folder::open(folder).map_err(|error| told(&error))?;
    Ok((folder, PathBuf::from(name)))
}

fn unwritten(error: &FileError) -> Failure {
    Failure::new(Kind::Io, error)
}

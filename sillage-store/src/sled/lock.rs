//! One writer at a time: a lock file of our own that says who holds the store.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sillage_core::ports::store::StoreError;

use super::folder::Folder;

/// Who holds the store. What a dead process left in the file means nothing: the system frees the lock itself.
#[derive(Debug, Serialize, Deserialize)]
struct Holder {
    program: String,
    pid: u32,
    host: String,
}

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone is not enough: a process being started holds a copy of every file until it runs its program.
        let _ = self.file.unlock();
    }
}

impl Lock {
    /// Takes the lock for this process, under the name `program`.
    pub(super) fn take(folder: &Folder, program: &str) -> Result<Lock, StoreError> {
        let mut file = folder.file("lock").map_err(|e| folder.failed(&e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(folder, &mut file)),
            Err(TryLockError::Error(e)) => return Err(folder.failed(&e)),
        }
        let holder = Holder {
            program: program.to_owned(),
            pid: std::process::id(),
            host: host(),
        };
        let text = serde_json::to_string(&holder).unwrap_or_default();
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "{text}"))
            .map_err(|e| folder.failed(&e))?;
        Ok(Lock { file })
    }
}

fn held(folder: &Folder, file: &mut File) -> StoreError {
    let path = folder.path.clone();
    // A holder that has only just taken the lock may not have written its name yet.
    for _ in 0..20 {
        let mut text = String::new();
        let read = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.read_to_string(&mut text));
        if let (Ok(_), Ok(holder)) = (read, serde_json::from_str::<Holder>(&text)) {
            return StoreError::Held {
                path,
                program: holder.program,
                pid: holder.pid,
                host: holder.host,
            };
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    StoreError::Held {
        path,
        program: "an unnamed program".to_owned(),
        pid: 0,
        host: host(),
    }
}

fn host() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_else(|_| "this machine".to_owned());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_process_left_is_no_obstacle() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::create(home.path()).unwrap();
        let stale = r#"{"program":"a much longer name than the next one","pid":1,"host":"elsewhere"}"#;
        std::fs::write(home.path().join("lock"), stale).unwrap();
        let lock = Lock::take(&folder, "first").unwrap();
        match Lock::take(&folder, "second") {
            Err(StoreError::Held { program, pid, .. }) => {
                assert_eq!((program.as_str(), pid), ("first", std::process::id()));
            }
            other => panic!("{other:?}"),
        }
        drop(lock);
        Lock::take(&folder, "second").unwrap();
    }
}

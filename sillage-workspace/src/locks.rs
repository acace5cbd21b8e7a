//! One at a time: per repository, between processes too, for the list of worktrees; per worktree for its files.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sillage_core::ports::workspace::WorkspaceError;
use tokio::sync::OwnedMutexGuard;

use crate::folders::io;
use crate::git::{Call, Output};

/// How long another process may hold a repository.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two tries: no notice comes from another process.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Mutexes by path, made when first asked for.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    known: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
}

/// Held: nobody else is at it, in this process or in another that uses the same data folder.
#[derive(Debug)]
pub(crate) struct Held {
    _here: OwnedMutexGuard<()>,
    _file: File,
}

impl Locks {
    /// Waits until nobody else in this process is at `path`.
    pub(crate) async fn here(&self, path: &Path) -> OwnedMutexGuard<()> {
        let mutex = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            // What nobody holds or waits for is forgotten, or the map would grow with every worktree ever made.
            known.retain(|_, mutex| Arc::strong_count(mutex) > 1);
            Arc::clone(known.entry(path.to_owned()).or_default())
        };
        mutex.lock_owned().await
    }

    /// Waits until nobody else, in any process, holds the lock file.
    ///
    /// # Errors
    /// [`WorkspaceError::Io`] when another process holds it for two minutes.
    pub(crate) async fn everywhere(&self, file: &Path) -> Result<Held, WorkspaceError> {
        let here = self.here(file).await;
        let open = File::options()
            .create(true)
            .append(true)
            .open(file)
            .map_err(|error| io(file, &error))?;
        let start = Instant::now();
        loop {
            match open.try_lock() {
                Ok(()) => {
                    return Ok(Held {
                        _here: here,
                        _file: open,
                    });
                }
                Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                    tokio::time::sleep(BETWEEN_TRIES).await;
                }
                Err(TryLockError::WouldBlock) => {
                    let words = "another process works on this repository's worktrees: stop it".to_owned();
                    return Err(WorkspaceError::Io {
                        path: file.to_owned(),
                        words,
                    });
                }
                Err(TryLockError::Error(error)) => return Err(io(file, &error)),
            }
        }
    }
}

/// How old a lock file of git must be before it counts as left by a process that was killed: git holds one for
/// milliseconds.
const STALE: Duration = Duration::from_secs(10);
/// How long a lock that is not stale yet is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

/// Runs a call again for as long as a lock file of git keeps it from succeeding; a stale lock is removed. For locks of
/// what nobody but us and one agent writes to.
pub(crate) async fn past(call: Call, lock: &Path) -> Result<Output, WorkspaceError> {
    let start = Instant::now();
    loop {
        let output = call.clone().output().await?;
        // One that was killed did not fail over a lock: it may have left this one.
        if matches!(output.code, Some(0) | None) {
            return Ok(output);
        }
        let Ok(found) = std::fs::symlink_metadata(lock) else {
            return Ok(output);
        };
        let age = found.modified().ok().and_then(|since| since.elapsed().ok());
        if found.is_file() && age.is_some_and(|age| age > STALE) {
            tracing::warn!(lock = %lock.display(), "removed: a process that was killed left it");
            crate::folders::remove_file(lock)?;
        } else if start.elapsed() > LOCK_PATIENCE {
            return Ok(output);
        } else {
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lets_one_in_at_a_time_and_forgets() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lock");
        let locks = Locks::default();
        let held = locks.everywhere(&file).await.unwrap();
        let other = File::options().append(true).open(&file).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        assert!(other.try_lock().is_ok());
        drop(locks.here(Path::new("/x")).await);
        assert_eq!(locks.known.lock().unwrap().len(), 1);
    }
}

//! Where each session was placed, on disk: known before its request leaves, and after a crash.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sillage_core::id::ClientSessionId;
use sillage_core::ports::runtime::RuntimeError;

/// A folder with one small file a session that may be alive: the address of its gateway. Several programs may share it,
/// for no two of them ask for the same session.
#[derive(Debug, Clone)]
pub(super) struct Records {
    folder: Arc<PathBuf>,
}

impl Records {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder: Arc::new(folder),
        }
    }

    /// The gateway that the session was placed on; none: its request never left.
    pub(super) async fn read(&self, id: ClientSessionId) -> Result<Option<String>, RuntimeError> {
        self.do_it(id, |path| match fs::read_to_string(path) {
            Ok(address) => Ok(Some(address)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    /// Returns once it is durable.
    pub(super) async fn write(&self, id: ClientSessionId, address: String) -> Result<(), RuntimeError> {
        self.do_it(id, move |path| {
            let folder = path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)?;
            // Whole or not at all, whoever else writes the same.
            let part = path.with_extension(format!("{}.part", uuid::Uuid::new_v4().simple()));
            let mut file = fs::File::create(&part)?;
            file.write_all(address.as_bytes())?;
            file.sync_all()?;
            fs::rename(&part, path)?;
            fs::File::open(folder)?.sync_all()
        })
        .await
    }

    /// The session is over for good.
    pub(super) async fn forget(&self, id: ClientSessionId) {
        let forgotten = self.do_it(id, |path| match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        });
        if let Err(error) = forgotten.await {
            // It names a session that nobody asks for again.
            tracing::warn!(session = %id, %error, "where the session was placed is not forgotten");
        }
    }

    async fn do_it<T: Send + 'static>(
        &self,
        id: ClientSessionId,
        act: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, RuntimeError> {
        let path = self.folder.join(id.to_string());
        let shown = path.display().to_string();
        let done = tokio::task::spawn_blocking(move || act(&path)).await;
        // Without it the session might be started twice: nothing is asked until it can be told.
        done.unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(|error| RuntimeError::Temporary {
                words: format!("{shown}, which says where the session is placed, cannot be used: {error}"),
                retry_after: None,
            })
    }
}

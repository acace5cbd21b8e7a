//! [`RunFiles`]: the files that a run keeps for itself beside its log.

use std::io;
use std::path::Path;

use async_trait::async_trait;

/// Keeps a run's own files: the full reports that messages speak of, and what a checkout was like before an agent
/// worked. None of them decides anything by itself, and none is synced: whoever takes a run up writes again what it
/// needs.
#[async_trait]
pub trait RunFiles: Send + Sync {
    /// Writes a file whole, in the place of what was there, and makes its folder.
    ///
    /// # Errors
    /// By what the system said.
    async fn write(&self, file: &Path, content: Vec<u8>) -> io::Result<()>;

    /// A file's content.
    ///
    /// # Errors
    /// By what the system said: [`io::ErrorKind::NotFound`] where there is none.
    async fn read(&self, file: &Path) -> io::Result<Vec<u8>>;
}

//! A run's own files, on the disk.

use std::fs;
use std::io;
use std::path::Path;

use async_trait::async_trait;
use sillage_core::ports::RunFiles;

/// Files on the machine's disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskFiles;

#[async_trait]
impl RunFiles for DiskFiles {
    async fn write(&self, file: &Path, content: Vec<u8>) -> io::Result<()> {
        let file = file.to_owned();
        // One hand-over to the pool for both calls: it costs more than they do.
        let written = tokio::task::spawn_blocking(move || {
            fs::create_dir_all(file.parent().unwrap_or(&file))?;
            fs::write(&file, content)
        });
        written.await.map_err(io::Error::other)?
    }

    async fn read(&self, file: &Path) -> io::Result<Vec<u8>> {
        let file = file.to_owned();
        let read = tokio::task::spawn_blocking(move || fs::read(file));
        read.await.map_err(io::Error::other)?
    }
}

//! Lines of bounded length, and sockets in folders with long names.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Longest path, in bytes, that every Unix takes as a socket's address (macOS: 104 with the zero at its end).
const LONGEST_ADDRESS: usize = 103;

/// A line of at most `longest` bytes; none when the other end closed before it began.
///
/// # Errors
/// When it is longer, or the other end closed within it.
pub(crate) async fn read_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    longest: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    reader
        .take(longest as u64 + 1)
        .read_until(b'\n', &mut line)
        .await?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) if line.len() >= longest => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a line is longer than {longest} bytes"),
        )),
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A path to a socket that is short enough for its address.
#[derive(Debug)]
pub(crate) struct Reached {
    path: PathBuf,
    /// Keeps the path valid.
    _folder: Option<File>,
}

impl Reached {
    /// Where a socket's address has no room for the path, Linux reaches it through the opened folder.
    pub(crate) fn new(folder: &Path, name: &str) -> io::Result<Reached> {
        let path = folder.join(name);
        if path.as_os_str().len() <= LONGEST_ADDRESS || cfg!(not(target_os = "linux")) {
            return Ok(Reached { path, _folder: None });
        }
        let opened = File::open(folder)?;
        let number = std::os::fd::AsRawFd::as_raw_fd(&opened);
        Ok(Reached {
            path: format!("/proc/self/fd/{number}/{name}").into(),
            _folder: Some(opened),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

//! What tests need of the machine that it may not have: a tracer of processes, small disks.

use std::fmt;
use std::path::Path;
use std::process::Command;

/// The variable that names, with spaces between them, what a test may not be skipped for. `.ci/run` sets it.
pub const REQUIRED: &str = "SILLAGE_TEST_REQUIRED";

/// Something that a machine may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// `strace`, which shows and refuses calls of processes.
    Strace,
    /// A small disk of one's own, which takes a superuser to mount.
    Mount,
}

/// Its name in [`REQUIRED`].
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Need::Strace => "strace",
            Need::Mount => "mount",
        })
    }
}

impl Need {
    /// Says that a test is skipped for want of this.
    ///
    /// # Panics
    /// When [`REQUIRED`] names it.
    #[expect(clippy::print_stderr, reason = "a test tells why it is skipped")]
    pub fn is_missing(self) {
        let required = std::env::var(REQUIRED).unwrap_or_default();
        let is_required = required.split_whitespace().any(|name| name == self.to_string());
        assert!(
            !is_required,
            "{REQUIRED} names {self}, which is missing or not allowed"
        );
        eprintln!("skipped: {self} is missing or not allowed");
    }
}

/// Whether processes can be traced here; says so where not.
///
/// # Panics
/// When they cannot be, and [`REQUIRED`] asks for it.
#[must_use]
pub fn traces() -> bool {
    let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    let works = tried.is_ok_and(|told| told.status.success());
    if !works {
        Need::Strace.is_missing();
    }
    works
}

/// Mounts a file system of this size on a folder, whose caller unmounts it. Says so where that is not allowed.
///
/// # Panics
/// When it is not, and [`REQUIRED`] asks for it.
#[must_use]
pub fn mounts(folder: &Path, size: &str) -> bool {
    let mut mount = Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
        .arg(folder);
    let mounted = mount.output().is_ok_and(|told| told.status.success());
    if !mounted {
        Need::Mount.is_missing();
    }
    mounted
}

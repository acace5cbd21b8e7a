//! Opening what a path names below a folder, and nothing else, whatever is moved meanwhile.
//!
//! Linux resolves the whole path itself (`openat2`). Where that call is missing or forbidden the path is walked one
//! name at a time, each opened without following a link, from the folder opened before it.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::{Errno, Result};

/// How many links one path may lead through, as in the kernel.
pub(super) const MOST_LINKS: usize = 40;
/// How often a path that is changed while it is resolved is tried again.
const TRIES: usize = 200;

/// How paths are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By the kernel where it can.
    Kernel,
    /// One name at a time.
    Walk,
}

/// Opens `path` below `root`. Links are followed as long as they stay below, unless `flags` forbid it for the last
/// name.
///
/// # Errors
/// `EXDEV` for a path that leads out; else as `open`.
pub(super) fn open(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
    way: Way,
) -> Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    match way {
        Way::Kernel => by_kernel(root, path, flags, mode),
        Way::Walk => walk(root, path, flags, mode),
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn by_kernel(root: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES {
        match openat2(root, path, flags, mode, within) {
            // Something on the way was renamed, so that `..` cannot be trusted.
            Err(Errno::AGAIN) => {}
            // An old kernel, or a sandbox that knows no such call.
            Err(Errno::NOSYS | Errno::PERM) => return walk(root, path, flags, mode),
            other => return other,
        }
    }
    // Any rename on the machine counts, and a path with many `..` may never be let through: name by name then.
    walk(root, path, flags, mode)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn by_kernel(root: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    walk(root, path, flags, mode)
}

/// A name still to be looked up.
enum Part {
    Up,
    /// The folder itself: what stands before must be one.
    Here,
    Named(OsString),
}

/// Puts the names of `path` before those that are left; the next one is the last of the list.
fn push(left: &mut Vec<Part>, path: &Path) -> Result<()> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.ends_with(b"/") || bytes.ends_with(b"/.") {
        left.push(Part::Here);
    }
    let at = left.len();
    for component in path.components() {
        match component {
            Component::Normal(name) => left.insert(at, Part::Named(name.to_owned())),
            Component::ParentDir => left.insert(at, Part::Up),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        }
    }
    Ok(())
}

fn walk(root: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT);
    }
    let mut entered: Vec<OwnedFd> = Vec::new();
    let mut left = Vec::new();
    push(&mut left, path)?;
    let (mut links, mut changed) = (0, 0);
    while let Some(part) = left.pop() {
        let here = entered.last().map_or(root, |fd| fd.as_fd());
        let name = match part {
            // The folder that was entered before, held open: not whatever `..` is by now.
            Part::Up => {
                entered.pop().ok_or(Errno::XDEV)?;
                continue;
            }
            Part::Here => continue,
            Part::Named(name) => name,
        };
        let found = statat(here, &name, AtFlags::SYMLINK_NOFOLLOW);
        let link = found.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
        let last = left.is_empty();
        let opened = if link && !(last && flags.contains(OFlags::NOFOLLOW)) {
            match target(here, &name) {
                Ok(target) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Errno::LOOP);
                    }
                    push(&mut left, &target)?;
                    if left.is_empty() {
                        break;
                    }
                    continue;
                }
                Err(error) => Err(error),
            }
        } else if last {
            openat(here, &name, flags | OFlags::NOFOLLOW, mode)
        } else {
            openat(here, &name, folder, Mode::empty())
        };
        match opened {
            Ok(fd) if last => return Ok(fd),
            Ok(fd) => entered.push(fd),
            // A link came in since, or went: look again, unless it is what was there all along.
            Err(Errno::LOOP | Errno::NOTDIR | Errno::INVAL)
                if changed < TRIES && is_other(here, &name, link) =>
            {
                changed += 1;
                left.push(Part::Named(name));
            }
            Err(error) => return Err(error),
        }
    }
    // The path ends in a folder that was entered already.
    let here = entered.last().map_or(root, |fd| fd.as_fd());
    openat(here, ".", flags, mode)
}

/// Whether a name is a link by now and was not, or the other way round.
fn is_other(here: BorrowedFd<'_>, name: &OsString, link: bool) -> bool {
    let found = statat(here, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|stat| (FileType::from_raw_mode(stat.st_mode) == FileType::Symlink) != link)
}

/// Where a link leads, as it says itself.
pub(super) fn target(here: BorrowedFd<'_>, name: &OsString) -> Result<PathBuf> {
    let bytes = readlinkat(here, name, Vec::new())?.into_bytes();
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}

//! What makes a folder the worktree that it was, and its files in the shadow.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sillage_core::ports::workspace::WorkspaceError;

#[cfg(unix)]
use crate::confined::Folder;
use crate::confined::bounded;
use crate::folders::{create_parent, io, remove_file, replace};
use crate::git::failed;
use crate::locks;
use crate::repository::Repo;
use crate::scan::{self, Oddities};

/// The most that a file of git with one path may hold, in bytes.
const MOST_READ: u64 = 64 * 1024;

/// An error that says how a worktree was lost.
pub(crate) fn lost(path: &Path, why: impl Into<String>) -> WorkspaceError {
    WorkspaceError::WorktreeLost {
        path: path.to_owned(),
        why: why.into(),
    }
}

/// Where a worktree's head is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The full reference that it follows; none: detached.
    pub(crate) reference: Option<String>,
    /// Its commit; none: the reference does not exist.
    pub(crate) commit: Option<String>,
}

impl Repo<'_> {
    /// The worktree's own part of the git folder, after checking that folder and part name each other.
    ///
    /// Every later call names this part explicitly, so that none can reach a repository that the folder happens to
    /// lie in, whatever becomes of the folder meanwhile.
    ///
    /// # Errors
    /// [`WorkspaceError::WorktreeLost`].
    pub(crate) fn admin(&self, worktree: &Path) -> Result<PathBuf, WorkspaceError> {
        match fs::symlink_metadata(worktree) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(lost(worktree, "is not a folder any more")),
            Err(_) => return Err(lost(worktree, "is gone")),
        }
        let link = worktree.join(".git");
        let text = match fs::symlink_metadata(&link) {
            Ok(found) if found.is_file() => {
                String::from_utf8(bounded(worktree, ".git", MOST_READ).unwrap_or_default())
                    .unwrap_or_default()
            }
            Ok(_) => return Err(lost(worktree, "has another `.git`: it is no longer a worktree")),
            Err(_) => return Err(lost(worktree, "has no `.git` any more")),
        };
        let named = text
            .strip_prefix("gitdir: ")
            .map(|rest| worktree.join(rest.trim_end_matches('\n')));
        let named = named.and_then(|path| path.canonicalize().ok());
        match (named, self.admin_of(worktree)) {
            (Some(named), Some(admin)) if named == admin => Ok(admin),
            _ => Err(lost(
                worktree,
                format!("is no longer a worktree of {}", self.root.display()),
            )),
        }
    }

    /// The part of the git folder that names this folder as its own, whether or not the folder is still there.
    pub(crate) fn admin_of(&self, worktree: &Path) -> Option<PathBuf> {
        let wanted = worktree.join(".git");
        let parts = fs::read_dir(self.common.join("worktrees")).ok()?;
        let own = |part: &PathBuf| {
            let text = bounded(part, "gitdir", MOST_READ).and_then(|bytes| String::from_utf8(bytes).ok());
            text.is_some_and(|text| part.join(text.trim_end_matches('\n')) == wanted)
        };
        parts.flatten().map(|entry| entry.path()).find(own)
    }

    /// Where the worktree's head is.
    pub(crate) async fn head_of(&self, admin: &Path) -> Result<Head, WorkspaceError> {
        let symbolic = self
            .head(admin, "symbolic-ref --quiet")
            .await?
            .arg("HEAD")
            .output()
            .await?;
        let reference = match symbolic.code {
            Some(0) => Some(String::from_utf8_lossy(&symbolic.stdout).trim_end().to_owned()),
            Some(1) => None,
            _ => return Err(symbolic.failure("symbolic-ref")),
        };
        let commit = self.pseudo(admin, "HEAD").await?;
        Ok(Head { reference, commit })
    }

    /// The commit of a reference of the worktree's own, such as `MERGE_HEAD`.
    pub(crate) async fn pseudo(&self, admin: &Path, name: &str) -> Result<Option<String>, WorkspaceError> {
        let call = self.head(admin, "rev-parse --verify --quiet").await?;
        let output = call.arg(format!("{name}^{{commit}}")).output().await?;
        let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        Ok((output.code == Some(0)).then_some(text))
    }

    /// Puts the worktree's head on a branch.
    pub(crate) async fn set_head(&self, admin: &Path, reference: &str) -> Result<(), WorkspaceError> {
        let part = admin.strip_prefix(&self.common).unwrap_or(admin);
        self.refuse_links(&[part.join("HEAD"), part.join("logs/HEAD")])?;
        let call = self.head(admin, "symbolic-ref -m sillage").await?;
        let output = locks::past(call.args(["HEAD", reference]), &admin.join("HEAD.lock")).await?;
        match output.code {
            Some(0) => Ok(()),
            _ => Err(output.failure("symbolic-ref")),
        }
    }

    /// Operations begun and not ended in the worktree, as git calls them.
    pub(crate) async fn operations(&self, admin: &Path) -> Result<Vec<&'static str>, WorkspaceError> {
        const FILES: &[(&str, &str)] = &[
            ("MERGE_HEAD", "merge"),
            ("rebase-merge", "rebase"),
            ("rebase-apply", "rebase"),
            ("sequencer", "sequence"),
            ("BISECT_LOG", "bisect"),
        ];
        // These are references, which a repository may keep elsewhere than in files.
        const REFERENCES: &[(&str, &str)] = &[("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert")];
        let mut begun = Vec::new();
        begun.extend(
            FILES
                .iter()
                .filter(|(file, _)| admin.join(file).exists())
                .map(|(_, name)| *name),
        );
        for (reference, name) in REFERENCES {
            if self.pseudo(admin, reference).await?.is_some() {
                begun.push(*name);
            }
        }
        begun.dedup();
        Ok(begun)
    }

    /// Writes everything that the folder holds, ignored files aside, as a tree. `tip` is the commit that it is
    /// compared with, `index` an index of ours.
    ///
    /// Repositories within are left as the tip has them, and so are submodules: git would record a name of their
    /// commit that nobody else can resolve, and would run their settings to compare them. Files of the tip that lie
    /// within one are still taken. Pipes, sockets and devices count as removed.
    pub(crate) async fn snapshot(
        &self,
        worktree: &Path,
        index: &Path,
        tip: &str,
    ) -> Result<String, WorkspaceError> {
        let odd = self.oddities(worktree).await?;
        if let Some(file) = odd.blocking.first() {
            return Err(WorkspaceError::Io {
                path: worktree.join(file),
                words: "git reads this file and would wait for ever, as it is a pipe, a socket or a device: \
                        remove it, then resume"
                    .to_owned(),
            });
        }
        self.fill(worktree, index, tip).await?;
        self.mark_left_out(worktree, worktree, index).await?;
        if odd == Oddities::default() {
            self.files(worktree, index, "add -A").await?.bytes().await?;
        } else {
            self.add_around(worktree, index, &odd).await?;
        }
        self.files(worktree, index, "write-tree").await?.text().await
    }

    /// Sets an index of ours to a commit. What it knows of unchanged files stays.
    pub(crate) async fn fill(
        &self,
        worktree: &Path,
        index: &Path,
        commit: &str,
    ) -> Result<(), WorkspaceError> {
        create_parent(index)?;
        // Left by a call of ours that was killed: whoever calls here is alone at this worktree.
        remove_file(&lock_of(index))?;
        self.files(worktree, index, "read-tree --reset")
            .await?
            .arg(commit)
            .bytes()
            .await
            .map(drop)
    }

    /// Copies an index aside, for git writes what it finds out about files into the one that it reads.
    pub(crate) fn copy_index(&self, from: &Path, to: &Path) -> Result<bool, WorkspaceError> {
        match fs::read(from) {
            Ok(bytes) => replace(to, &bytes).map(|()| true),
            Err(_) => Ok(false),
        }
    }

    /// Tells an index of ours which files an agent's own sparse checkout left out: they are not there, and were not
    /// removed. `made_at` is where the worktree was made, when its files lie elsewhere by now.
    pub(crate) async fn mark_left_out(
        &self,
        made_at: &Path,
        worktree: &Path,
        index: &Path,
    ) -> Result<(), WorkspaceError> {
        let admin = self.admin_of(made_at);
        let Some(admin) = admin.filter(|admin| admin.join("info/sparse-checkout").is_file()) else {
            return Ok(());
        };
        let mut copy = index.as_os_str().to_owned();
        copy.push(".own");
        let copy = PathBuf::from(copy);
        if !self.copy_index(&admin.join("index"), &copy)? {
            return Ok(());
        }
        let told = self.files(worktree, &copy, "ls-files -t -z").await?.bytes().await;
        remove_file(&copy)?;
        let left_out: Vec<PathBuf> = told?
            .split(|byte| *byte == 0)
            .filter_map(|entry| entry.strip_prefix(b"S "))
            .map(as_path)
            .filter(|path| fs::symlink_metadata(worktree.join(path)).is_err())
            .collect();
        // Some may be in that index only: what is not in ours is not asked for.
        let ours = self.files(worktree, index, "ls-files -z").await?.bytes().await?;
        let ours: std::collections::HashSet<&[u8]> = ours.split(|byte| *byte == 0).collect();
        let names: Vec<u8> = ended_by_nul(&left_out)
            .split_inclusive(|byte| *byte == 0)
            .filter(|name| ours.contains(&name[..name.len() - 1]))
            .flatten()
            .copied()
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let call = self
            .files(worktree, index, "update-index --skip-worktree -z --stdin")
            .await?;
        call.stdin(names).bytes().await.map(drop)
    }

    /// [`scan::oddities`] off the async threads.
    pub(crate) async fn oddities(&self, worktree: &Path) -> Result<Oddities, WorkspaceError> {
        let folder = worktree.to_owned();
        let looked = tokio::task::spawn_blocking(move || scan::oddities(&folder)).await;
        looked.map_err(|error| {
            failed(
                "add",
                format!("looking through the worktree ended early: {error}"),
            )
        })?
    }

    async fn add_around(&self, worktree: &Path, index: &Path, odd: &Oddities) -> Result<(), WorkspaceError> {
        let mut specs = vec![OsString::from(":(top)")];
        for path in odd.nested.iter().chain(&odd.special).chain(&odd.refused) {
            let mut spec = OsString::from(":(top,exclude,literal)");
            spec.push(path);
            specs.push(spec);
        }
        let add = self.files(worktree, index, "add -A").await?.with_pathspecs();
        let add = add
            .args(["--pathspec-from-file=-", "--pathspec-file-nul"])
            .stdin(ended_by_nul(&specs));
        add.bytes().await?;
        if !odd.special.is_empty() {
            let call = self
                .files(worktree, index, "update-index --force-remove -z --stdin")
                .await?;
            call.stdin(ended_by_nul(&odd.special)).bytes().await?;
        }
        if odd.nested.is_empty() {
            return Ok(());
        }
        let staged = self
            .files(worktree, index, "ls-files --stage -z")
            .await?
            .arg("--")
            .args(&odd.nested);
        let known = staged.bytes().await?;
        let files: Vec<u8> = known
            .split_inclusive(|byte| *byte == 0)
            .filter(|entry| !entry.starts_with(b"160000 "))
            .filter_map(|entry| Some(&entry[entry.iter().position(|byte| *byte == b'\t')? + 1..]))
            .flatten()
            .copied()
            .collect();
        let call = self
            .files(worktree, index, "update-index --remove -z --stdin")
            .await?;
        call.stdin(files).bytes().await.map(drop)
    }

    /// Makes an index of ours the worktree's, which would otherwise show our commits as undone. Waits a while for
    /// a program that holds the worktree's index; a lock that nobody there can hold any more is removed.
    ///
    /// # Errors
    /// [`WorkspaceError::Io`] when a process that works in the worktree keeps its index locked.
    pub(crate) async fn publish_index(
        &self,
        worktree: &Path,
        admin: &Path,
        index: &Path,
    ) -> Result<(), WorkspaceError> {
        const TRIES: u32 = 50;
        const BETWEEN_TRIES: Duration = Duration::from_millis(20);
        let bytes = fs::read(index).map_err(|error| io(index, &error))?;
        let lock = admin.join("index.lock");
        for _ in 0..TRIES {
            match self.take_over(admin, &bytes) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    tokio::time::sleep(BETWEEN_TRIES).await
                }
                other => return other.map_err(|error| io(&lock, &error)),
            }
        }
        if scan::processes_in(worktree).is_empty() {
            remove_file(&lock)?;
        }
        self.take_over(admin, &bytes).map_err(|error| io(&lock, &error))
    }

    /// Replaces the worktree's index as git does: by renaming its lock over it.
    #[cfg(unix)]
    fn take_over(&self, admin: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let within = admin.strip_prefix(&self.common).unwrap_or(admin);
        let granted = Folder::open(&self.common).and_then(|common| common.folder(within));
        let granted = granted.map_err(std::io::Error::other)?;
        granted.replace_by_lock("index.lock", "index", bytes)
    }

    #[cfg(not(unix))]
    fn take_over(&self, admin: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let lock = admin.join("index.lock");
        std::io::Write::write_all(&mut fs::File::create_new(&lock)?, bytes)?;
        fs::rename(lock, admin.join("index"))
    }
}

pub(crate) fn lock_of(index: &Path) -> PathBuf {
    let mut name = index.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// Names for a call's stdin, each ended by a NUL.
#[cfg(unix)]
pub(crate) fn ended_by_nul<P: AsRef<std::ffi::OsStr>>(names: &[P]) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    names
        .iter()
        .flat_map(|name| name.as_ref().as_bytes().iter().copied().chain([0]))
        .collect()
}

/// Names for a call's stdin, each ended by a NUL.
#[cfg(not(unix))]
pub(crate) fn ended_by_nul<P: AsRef<std::ffi::OsStr>>(names: &[P]) -> Vec<u8> {
    names
        .iter()
        .flat_map(|name| {
            name.as_ref()
                .to_string_lossy()
                .into_owned()
                .into_bytes()
                .into_iter()
                .chain([0])
        })
        .collect()
}

/// A path as git prints it.
#[cfg(unix)]
pub(crate) fn as_path(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(name))
}

/// A path as git prints it.
#[cfg(not(unix))]
pub(crate) fn as_path(name: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(name).into_owned())
}

//! All that is known of the worktrees that are left, for a person who wants to know what to do with them.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use sillage_core::ports::workspace::{Hold, WorkspaceError, Worktree};
use sillage_core::time::Timestamp;

use crate::content::Sign;
use crate::folders::exists;
use crate::git::names;
use crate::repository::{Listed, Repo};

/// A worktree that is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surveyed {
    /// The run that it was made for.
    pub run: String,
    /// The step that it was made for.
    pub step: String,
    /// Where it is, its own branch and its base; none where no record tells them: then it cannot be removed by us.
    pub worktree: Option<Worktree>,
    /// The working tree of the repository that it belongs to.
    pub repository: PathBuf,
    /// Its folder.
    pub path: PathBuf,
    /// Whether the folder is there.
    pub present: bool,
    /// The branch that its head is on; none: detached.
    pub branch: Option<String>,
    /// What keeps it from being removed; empty: nothing.
    pub held_by: Vec<Hold>,
    /// The processes that work there, with their names.
    pub processes: Vec<Process>,
    /// Where the content of its branch's commits was found, if anywhere; asked only where commits hold it.
    pub content: Option<Content>,
    /// What its folder takes on the disk, in bytes.
    pub disk_bytes: u64,
    /// When it was made, as far as git's entry tells.
    pub made: Option<Timestamp>,
}

/// A process that works in a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its identifier.
    pub pid: u32,
    /// Its program's name; empty where it cannot be seen.
    pub name: String,
}

/// Where the content of commits was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The branch that has it; `HEAD` for the person's detached head.
    pub into: String,
    /// By what sign.
    pub sign: Sign,
}

impl Repo<'_> {
    /// The worktrees that git lists and that lie in our folder, with all that is known of each but its size.
    /// `integration` gives a run's integration branch.
    pub(crate) async fn survey(
        &self,
        integration: impl Fn(&str) -> String,
    ) -> Result<Vec<Surveyed>, WorkspaceError> {
        let mut all = Vec::new();
        let listed = self.worktrees().await?;
        for entry in &listed {
            if self.folders.place(&entry.path).is_ok() {
                all.push(self.survey_one(entry, &integration).await?);
            }
        }
        for path in self.unlisted(&listed) {
            all.push(self.survey_unlisted(path)?);
        }
        Ok(all)
    }

    /// Folders of worktrees that git lists no more, because its entry was deleted or the worktree's `.git` was moved:
    /// what they hold is still there.
    fn unlisted(&self, listed: &[Listed]) -> Vec<PathBuf> {
        let known: HashSet<&Path> = listed.iter().map(|entry| entry.path.as_path()).collect();
        let folders = |folder: &Path| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            folders.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let steps = folders(&self.folders.worktrees)
            .into_iter()
            .flat_map(|run| folders(&run));
        let mut unlisted: Vec<PathBuf> = steps.filter(|step| !known.contains(step.as_path())).collect();
        unlisted.sort();
        unlisted
    }

    fn survey_unlisted(&self, path: PathBuf) -> Result<Surveyed, WorkspaceError> {
        let (run, step) = self.owner(&path)?;
        let why = "git does not list it any more; look at what is in it, then delete the folder yourself";
        Ok(Surveyed {
            run,
            step,
            // Nothing tells what of it is kept elsewhere: we do not remove it.
            worktree: None,
            repository: self.root.clone(),
            present: true,
            branch: None,
            held_by: vec![Hold::Changed(why.to_owned())],
            processes: Vec::new(),
            content: None,
            disk_bytes: 0,
            made: None,
            path,
        })
    }

    async fn survey_one(
        &self,
        entry: &Listed,
        integration: impl Fn(&str) -> String,
    ) -> Result<Surveyed, WorkspaceError> {
        let (run, step) = self.owner(&entry.path)?;
        let integration = integration(&run);
        let lease = self.recorded(&entry.path)?;
        let worktree = lease.map(|lease| Worktree {
            // Where the repository is now: it may have been moved since.
            repository: self.root.clone(),
            ..lease.worktree()
        });
        let held_by = self.held_by(entry, &integration).await;
        let unmerged = held_by.iter().any(|hold| matches!(hold, Hold::Commits(_)));
        let content = match &worktree {
            Some(worktree) if unmerged => self.content_of(worktree, &integration).await?,
            _ => None,
        };
        let processes = held_by.iter().filter_map(|hold| {
            let Hold::Process(pid) = hold else { return None };
            let name = name_of(*pid);
            Some(Process { pid: *pid, name })
        });
        let path = entry.path.clone();
        Ok(Surveyed {
            run,
            step,
            worktree,
            repository: self.root.clone(),
            present: exists(&path),
            branch: entry
                .branch
                .as_ref()
                .map(|name| name.trim_start_matches("refs/heads/").to_owned()),
            processes: processes.collect(),
            held_by,
            content,
            disk_bytes: 0,
            made: self.admin_of(&path).and_then(|admin| made(&admin)),
            path,
        })
    }

    /// Looks for the content of a worktree's branch in the run's integration branch and where the person stands.
    async fn content_of(
        &self,
        worktree: &Worktree,
        integration: &str,
    ) -> Result<Option<Content>, WorkspaceError> {
        let Some(tip) = self.tip(&names::branch_reference(&worktree.branch)?).await? else {
            return Ok(None);
        };
        let mut places = Vec::new();
        if let Some(merged) = self.tip(&names::branch_reference(integration)?).await? {
            places.push((integration.to_owned(), merged));
        }
        let listed = self.worktrees().await?;
        let persons = listed
            .iter()
            .filter(|entry| self.folders.place(&entry.path).is_err());
        for entry in persons {
            let Some(branch) = &entry.branch else { continue };
            if let Some(tip) = self.tip(branch).await? {
                places.push((branch.trim_start_matches("refs/heads/").to_owned(), tip));
            }
        }
        for (into, there) in places {
            if let Some(sign) = self.sign_of(&tip, &there).await? {
                return Ok(Some(Content { into, sign }));
            }
        }
        Ok(None)
    }
}

/// When git made its entry: this file of it is written once.
fn made(admin: &Path) -> Option<Timestamp> {
    let modified = fs::metadata(admin.join("commondir")).ok()?.modified().ok()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp(i64::try_from(since.as_millis()).ok()?))
}

/// What a folder takes on the disk, in bytes: links are not followed, and a file under two names counts once. What
/// cannot be looked at counts nothing.
pub(crate) fn disk_used(folder: &Path) -> u64 {
    let (mut bytes, mut seen) = (0_u64, HashSet::new());
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        bytes = bytes.saturating_add(size_of(&found, &mut seen));
        if found.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| entry.path()));
        }
    }
    bytes
}

#[cfg(unix)]
fn size_of(found: &fs::Metadata, seen: &mut HashSet<(u64, u64)>) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let counted = !found.is_dir() && found.nlink() > 1 && !seen.insert((found.dev(), found.ino()));
    if counted {
        0
    } else {
        found.blocks().saturating_mul(512)
    }
}

#[cfg(not(unix))]
fn size_of(found: &fs::Metadata, _: &mut HashSet<(u64, u64)>) -> u64 {
    if found.is_dir() { 0 } else { found.len() }
}

/// The name of a process's program.
fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_on_the_disk_once() {
        let folder = tempfile::tempdir().unwrap();
        let empty = disk_used(folder.path());
        fs::write(folder.path().join("a"), vec![1; 1 << 16]).unwrap();
        let one = disk_used(folder.path());
        assert!(one >= empty + (1 << 16), "{one}");
        fs::hard_link(folder.path().join("a"), folder.path().join("b")).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("c")).unwrap();
        assert!(disk_used(folder.path()) < one + (1 << 15));
        assert_eq!(disk_used(&folder.path().join("missing")), 0);
    }
}

//! What holds a worktree, and removing one that nothing holds (R19).
//!
//! git's own idea of a clean worktree loses ignored files, files edited under index flags and commits of a detached
//! head; this one does not.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sillage_core::ports::workspace::{Hold, Removal, WorkspaceError, Worktree, WorktreeState};

use crate::folders::{exists, io, remove_file};
use crate::git::names;
use crate::repository::{Listed, Repo};
use crate::scan;
use crate::worktree::{Head, lost};

/// How long what was removed can still be found in the trash.
const TRASH_DAYS: u64 = 7;

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |passed| passed.as_secs())
}

/// What was made for a worktree, as far as it is known.
#[derive(Debug, Clone, Copy)]
struct Made<'a> {
    branch: Option<&'a str>,
    base: Option<&'a str>,
}

impl Repo<'_> {
    /// The worktrees that git lists and that lie in our folder, with what holds each.
    pub(crate) async fn list(&self, integration: &str) -> Result<Vec<WorktreeState>, WorkspaceError> {
        let mut states = Vec::new();
        for entry in self.worktrees().await? {
            if self.folders.place(&entry.path).is_err() {
                continue;
            }
            let lease = self.recorded(&entry.path)?;
            let made = Made {
                branch: lease.as_ref().map(|lease| lease.branch.as_str()),
                base: lease.as_ref().map(|lease| lease.wish.base.as_str()),
            };
            let held_by = match self.admin(&entry.path) {
                Err(_) if !exists(&entry.path) => self.holds_on_entry(&entry, made).await?,
                Err(_) if exists(&entry.path.join(".git")) => {
                    vec![Hold::NestedRepository(PathBuf::from("."))]
                }
                Err(_) => vec![Hold::Files(vec![PathBuf::from(".")])],
                Ok(admin) => self.holds(&entry, &admin, made, integration).await?,
            };
            let branch = entry
                .branch
                .map(|name| name.trim_start_matches("refs/heads/").to_owned());
            states.push(WorktreeState {
                path: entry.path,
                branch,
                held_by,
            });
        }
        Ok(states)
    }

    /// Removes the worktree unless something holds it. The locks of repository and worktree are held.
    ///
    /// Its folder is moved to the trash first and looked at again there: who came in meanwhile is found, and gets it
    /// back.
    pub(crate) async fn remove(
        &self,
        worktree: &Worktree,
        integration: &str,
    ) -> Result<Removal, WorkspaceError> {
        let path = &worktree.path;
        self.folders.place(path)?;
        let made = Made {
            branch: Some(&worktree.branch),
            base: Some(&worktree.base),
        };
        let entry = self
            .worktrees()
            .await?
            .into_iter()
            .find(|entry| entry.path == *path);
        let Some(entry) = entry else {
            let why = format!("is not a worktree of {} any more", self.root.display());
            return if exists(path) {
                Err(lost(path, why))
            } else {
                Ok(Removal::Removed)
            };
        };
        let holds = if exists(path) {
            let admin = self.admin(path)?;
            self.holds(&entry, &admin, made, integration).await?
        } else {
            self.holds_on_entry(&entry, made).await?
        };
        if !holds.is_empty() {
            return Ok(Removal::Held(holds));
        }
        if exists(path) {
            let late = self.move_to_trash(worktree).await?;
            if !late.is_empty() {
                return Ok(Removal::Held(late));
            }
        }
        self.forget(path, &[]).await?;
        let place = self.folders.place(path)?;
        remove_file(&place.index)?;
        remove_file(&place.fresh_index)?;
        self.empty_trash();
        Ok(Removal::Removed)
    }

    /// Moves the folder to the trash, or back when something turns up that came in after the first look.
    async fn move_to_trash(&self, worktree: &Worktree) -> Result<Vec<Hold>, WorkspaceError> {
        let path = &worktree.path;
        let tip = self.tip(&names::branch_reference(&worktree.branch)?).await?;
        let trash = self.folders.trash_name(path, now());
        let place = self.folders.place(path)?;
        std::fs::rename(path, &trash).map_err(|error| io(path, &error))?;
        let files = match &tip {
            Some(tip) => self.uncommitted(&trash, &place.fresh_index, tip).await,
            None => Ok(Vec::new()),
        };
        let mut late: Vec<Hold> = scan::processes_in(&trash)
            .into_iter()
            .map(Hold::Process)
            .collect();
        late.extend(
            files
                .as_ref()
                .ok()
                .filter(|files| !files.is_empty())
                .cloned()
                .map(Hold::Files),
        );
        if files.is_err() || !late.is_empty() {
            std::fs::rename(&trash, path).map_err(|error| io(&trash, &error))?;
        }
        files.map(|_| late)
    }

    /// What holds git's entry of a worktree whose folder is gone: a lock, or the only name of a commit.
    async fn holds_on_entry(&self, entry: &Listed, made: Made<'_>) -> Result<Vec<Hold>, WorkspaceError> {
        let mut holds: Vec<Hold> = entry.lock.clone().map(Hold::Lock).into_iter().collect();
        let Some(admin) = self.admin_of(&entry.path) else {
            return Ok(holds);
        };
        let head = self.head_of(&admin).await?;
        if let (None, Some(commit)) = (&head.reference, &head.commit) {
            let branch = match made.branch {
                Some(branch) => self.tip(&names::branch_reference(branch)?).await?,
                None => None,
            };
            let kept = match &branch {
                Some(tip) => self.contains(tip, commit).await?,
                None => false,
            };
            if !kept {
                holds.push(Hold::OtherBranch(format!("detached at {commit}")));
            }
        }
        Ok(holds)
    }

    async fn holds(
        &self,
        entry: &Listed,
        admin: &Path,
        made: Made<'_>,
        integration: &str,
    ) -> Result<Vec<Hold>, WorkspaceError> {
        let path = &entry.path;
        let head = self.head_of(admin).await?;
        let mut holds: Vec<Hold> = entry.lock.clone().map(Hold::Lock).into_iter().collect();
        holds.extend(other_branch(&head, made.branch)?.map(Hold::OtherBranch));
        holds.extend(
            self.operations(admin)
                .await?
                .into_iter()
                .map(|name| Hold::Operation(name.to_owned())),
        );
        let nested = self.oddities(path).await?.nested;
        if let Some(commit) = head.commit.as_deref().or(made.base) {
            let fresh = self.folders.place(path)?.fresh_index;
            let mut files = self.uncommitted(path, &fresh, commit).await?;
            files.retain(|file| !nested.iter().any(|folder| file.starts_with(folder)));
            if !files.is_empty() {
                holds.push(Hold::Files(files));
            }
        }
        holds.extend(nested.into_iter().map(Hold::NestedRepository));
        let commits = self.unmerged(&head, made, integration).await?;
        if commits > 0 {
            holds.push(Hold::Commits(commits));
        }
        holds.extend(scan::processes_in(path).into_iter().map(Hold::Process));
        Ok(holds)
    }

    /// Files that the commit does not have so: changed, new or ignored. A folder of new files counts as one.
    ///
    /// A fresh index sees through flags that hide changes, and no file is taken for unchanged by its date.
    async fn uncommitted(
        &self,
        path: &Path,
        index: &Path,
        commit: &str,
    ) -> Result<Vec<PathBuf>, WorkspaceError> {
        let blocking = self.oddities(path).await?.blocking;
        if !blocking.is_empty() {
            // git would wait for them.
            return Ok(blocking);
        }
        remove_file(index)?;
        self.fill(path, index, commit).await?;
        let refresh = self
            .files(path, index, "update-index -q --ignore-submodules --refresh")
            .await?;
        // 1: some file differs, which the next call names.
        refresh.holds().await?;
        let changed = self
            .files(path, index, "diff-files --name-only -z --ignore-submodules=all")
            .await?;
        let new = self
            .files(
                path,
                index,
                "ls-files --others --directory --no-empty-directory -z",
            )
            .await?;
        let mut names = changed.bytes().await?;
        names.extend(new.bytes().await?);
        Ok(names
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(as_path)
            .collect())
    }

    /// How many commits of the worktree neither the integration branch nor the base has.
    async fn unmerged(&self, head: &Head, made: Made<'_>, integration: &str) -> Result<u32, WorkspaceError> {
        let own = match made.branch {
            Some(branch) => self.tip(&names::branch_reference(branch)?).await?,
            None => None,
        };
        let merged = self.tip(&names::branch_reference(integration)?).await?;
        let of: Vec<&str> = head.commit.iter().chain(&own).map(String::as_str).collect();
        let without: Vec<&str> = merged.as_deref().into_iter().chain(made.base).collect();
        if of.is_empty() {
            Ok(0)
        } else {
            self.count(&of, &without).await
        }
    }

    /// Deletes what has been in the trash for seven days. What cannot be deleted now will be tried again.
    fn empty_trash(&self) {
        let oldest = now().saturating_sub(TRASH_DAYS * 24 * 60 * 60);
        let Ok(entries) = std::fs::read_dir(&self.folders.trash) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let since = name
                .split_once('-')
                .and_then(|(seconds, _)| seconds.parse::<u64>().ok());
            if since.is_some_and(|since| since < oldest)
                && let Err(error) = std::fs::remove_dir_all(entry.path())
            {
                tracing::warn!(path = %entry.path().display(), %error, "old trash could not be deleted");
            }
        }
    }
}

/// Where the head is, when that is not the branch made for the worktree.
fn other_branch(head: &Head, made: Option<&str>) -> Result<Option<String>, WorkspaceError> {
    let wanted = made.map(names::branch_reference).transpose()?;
    Ok(match (&head.reference, wanted) {
        (Some(reference), Some(wanted)) if *reference == wanted => None,
        (Some(_), None) => None,
        (Some(reference), Some(_)) => Some(reference.trim_start_matches("refs/heads/").to_owned()),
        (None, _) => Some(format!(
            "detached at {}",
            head.commit.as_deref().unwrap_or("nothing")
        )),
    })
}

#[cfg(unix)]
fn as_path(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(name))
}

#[cfg(not(unix))]
fn as_path(name: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(name).into_owned())
}

//! Removing a worktree that nothing holds, or that a person insists on (R19).

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sillage_core::ports::workspace::{Hold, WorkspaceError, Worktree};
use sillage_core::time::Timestamp;

use crate::folders::{exists, io, remove_file};
use crate::git::names;
use crate::holds::{FilesThatHold, Made};
use crate::repository::{Listed, Repo};
use crate::scan;
use crate::trash::{self, TrashNote};
use crate::worktree::lost;

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |passed| passed.as_secs())
}

/// How much a person insists on a removal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Insistence {
    /// Not at all: anything that could be lost holds the worktree.
    #[default]
    None,
    /// Files that git ignores do not hold it: they stay in the trash for seven days.
    IgnoredFiles,
    /// Only what cannot be undone holds it: a process that works there, a lock, repositories that would be deleted with
    /// git's entry. Everything that a commit can hold is kept under a rescue reference first; ignored files and
    /// repositories within stay in the trash for seven days.
    Everything,
}

/// How a removal went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakenAway {
    /// It is gone.
    Gone(Gone),
    /// These hold it.
    Held(Vec<Hold>),
}

/// What became of a worktree that was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gone {
    /// Where its folder is now, and until when; none where there was no folder any more.
    pub trash: Option<(PathBuf, Timestamp)>,
    /// References under which work was kept that would have become unreachable.
    pub rescued: Vec<String>,
}

impl Repo<'_> {
    /// Removes the worktree unless something holds it. The locks of repository and worktree are held.
    ///
    /// Its folder is moved to the trash first and looked at again there: who came in meanwhile is found, and gets it
    /// back.
    pub(crate) async fn remove(
        &self,
        worktree: &Worktree,
        integration: &str,
        insistence: Insistence,
        now: Timestamp,
    ) -> Result<TakenAway, WorkspaceError> {
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
                Ok(TakenAway::Gone(Gone::default()))
            };
        };
        let there = exists(path);
        let (admin, mut holds) = if there {
            let admin = self.admin(path)?;
            let which = match insistence {
                Insistence::None => FilesThatHold::All,
                Insistence::IgnoredFiles | Insistence::Everything => FilesThatHold::NotIgnored,
            };
            let holds = self.holds(&entry, &admin, made, integration, which).await?;
            (Some(admin), holds)
        } else {
            (self.admin_of(path), self.holds_on_entry(&entry, made).await?)
        };
        if insistence == Insistence::Everything {
            holds.retain(cannot_be_undone);
        }
        if !holds.is_empty() {
            return Ok(TakenAway::Held(holds));
        }
        let mut rescued = Vec::new();
        if let Some(admin) = &admin {
            if there && insistence == Insistence::Everything {
                rescued.extend(self.rescue_everything(worktree, admin).await?);
            }
            rescued.extend(self.rescue_unreachable(worktree, admin).await?);
        }
        let mut trash = None;
        if there {
            match self.move_to_trash(worktree, insistence, &rescued, now).await? {
                Moved::To(place) => trash = Some((place, trash::until(now))),
                Moved::Back(late) => return Ok(TakenAway::Held(late)),
            }
        }
        self.forget(path, &[]).await?;
        let place = self.folders.place(path)?;
        remove_file(&place.index)?;
        remove_file(&place.fresh_index)?;
        Ok(TakenAway::Gone(Gone { trash, rescued }))
    }

    /// Removes git's entries of worktrees of ours whose folders are gone, one by one, unless something holds them
    /// (G3): no other entry is touched, as `git worktree prune` would. The repository's lock is held.
    pub(crate) async fn mend(&self) -> Result<(), WorkspaceError> {
        for entry in self.worktrees().await? {
            if self.folders.place(&entry.path).is_err() || exists(&entry.path) {
                continue;
            }
            if let Err(error) = self.mend_one(&entry).await {
                // It stands in nobody's way but of whoever wants this very place, who will be told.
                tracing::warn!(worktree = %entry.path.display(), %error, "git's entry of a missing worktree stays");
            }
        }
        Ok(())
    }

    async fn mend_one(&self, entry: &Listed) -> Result<(), WorkspaceError> {
        let Some(lease) = self.recorded(&entry.path)? else {
            return Ok(());
        };
        let made = Made {
            branch: Some(&lease.branch),
            base: Some(&lease.wish.base),
        };
        if !self.holds_on_entry(entry, made).await?.is_empty() {
            return Ok(());
        }
        if let Some(admin) = self.admin_of(&entry.path) {
            self.rescue_unreachable(&lease.worktree(), &admin).await?;
        }
        self.forget(&entry.path, &[]).await
    }

    /// Moves the folder to the trash, or back when something turns up that came in after the first look.
    async fn move_to_trash(
        &self,
        worktree: &Worktree,
        insistence: Insistence,
        rescued: &[String],
        now: Timestamp,
    ) -> Result<Moved, WorkspaceError> {
        let path = &worktree.path;
        let tip = self.tip(&names::branch_reference(&worktree.branch)?).await?;
        let seconds = u64::try_from(now.0 / 1000).unwrap_or_default();
        let trashed = self.folders.trash_name(path, seconds);
        let place = self.folders.place(path)?;
        trash::write_note(&trashed, &self.note(worktree, rescued)?)?;
        if let Err(error) = std::fs::rename(path, &trashed) {
            trash::remove_note(&trashed)?;
            return Err(io(path, &error));
        }
        let files = match (&tip, insistence) {
            (Some(tip), Insistence::None) => {
                self.uncommitted(path, &trashed, &place.fresh_index, tip, FilesThatHold::All)
                    .await
            }
            (Some(tip), Insistence::IgnoredFiles) => {
                self.uncommitted(path, &trashed, &place.fresh_index, tip, FilesThatHold::NotIgnored)
                    .await
            }
            (None, _) | (_, Insistence::Everything) => Ok(Default::default()),
        };
        let mut late: Vec<Hold> = scan::processes_in(&trashed)
            .into_iter()
            .map(Hold::Process)
            .collect();
        if let Ok(files) = &files
            && !files.is_empty()
        {
            late.push(Hold::Files(files.iter().cloned().collect()));
        }
        if files.is_err() || !late.is_empty() {
            std::fs::rename(&trashed, path).map_err(|error| io(&trashed, &error))?;
            trash::remove_note(&trashed)?;
        }
        files.map(|_| match late.is_empty() {
            true => Moved::To(trashed),
            false => Moved::Back(late),
        })
    }

    fn note(&self, worktree: &Worktree, rescued: &[String]) -> Result<TrashNote, WorkspaceError> {
        let (run, step) = self.owner(&worktree.path)?;
        Ok(TrashNote {
            repository: self.root.clone(),
            path: worktree.path.clone(),
            run,
            step,
            branch: worktree.branch.clone(),
            rescued: rescued.to_vec(),
        })
    }

    /// The run and the step that a worktree was made for: by its record, else by its place.
    pub(crate) fn owner(&self, path: &Path) -> Result<(String, String), WorkspaceError> {
        if let Some(lease) = self.recorded(path)? {
            return Ok((lease.wish.run, lease.wish.step));
        }
        self.folders.place(path)?;
        let name = |path: Option<&Path>| {
            let name = path.and_then(Path::file_name).unwrap_or_default();
            name.to_string_lossy().replace('+', "/")
        };
        Ok((name(path.parent()), name(Some(path))))
    }
}

/// Where a folder is after it was to go to the trash.
enum Moved {
    To(PathBuf),
    /// Where it was, held by these.
    Back(Vec<Hold>),
}

/// Whether not even a rescue reference and the trash can make up for a removal.
fn cannot_be_undone(hold: &Hold) -> bool {
    match hold {
        Hold::Process(_) | Hold::Lock(_) | Hold::Changed(_) => true,
        Hold::NestedRepository(path) => path.starts_with(".git"),
        Hold::Files(_) | Hold::Commits(_) | Hold::Operation(_) | Hold::OtherBranch(_) => false,
        // One that a newer core knows and this does not.
        _ => true,
    }
}

//! Making a worktree, so that a crash at any point is repaired by asking again.
//!
//! The wish is recorded before anything is made, with the branch that was free then; a second call finds the record
//! and makes what is missing. Neither hooks nor filters of the repository run: git makes the entry without files,
//! the shadow writes the files.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sillage_core::ports::workspace::{WorkspaceError, Worktree, WorktreeWanted};

use crate::folders::{create_parent, exists, io, remove_file, replace};
use crate::git::{failed, names};
use crate::repository::{Listed, Repo, unsupported};
use crate::worktree::{lock_of, lost};

/// How many names are tried for a branch or a folder that others have taken.
const NAMES_TRIED: u32 = 1000;

/// What is known of a worktree of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lease {
    pub(crate) wish: WorktreeWanted,
    pub(crate) path: PathBuf,
    /// The branch in fact: the wished one, or a fresh one where that was taken.
    pub(crate) branch: String,
    /// Whether it was made to the end once. Until then nobody has worked in it.
    pub(crate) made: bool,
}

impl Lease {
    pub(crate) fn worktree(&self) -> Worktree {
        Worktree {
            repository: self.wish.repository.clone(),
            path: self.path.clone(),
            branch: self.branch.clone(),
            base: self.wish.base.clone(),
        }
    }
}

impl Repo<'_> {
    /// Makes the worktree or finds the one made before, never at `apart_from`. The repository's lock is held.
    pub(crate) async fn lease(
        &self,
        wish: &WorktreeWanted,
        apart_from: Option<&Path>,
    ) -> Result<Worktree, WorkspaceError> {
        names::branch_reference(&wish.branch)?;
        self.require(names::full_hash(&wish.base)?).await?;
        let folder = self.folders.worktrees.join(names::folder_name(&wish.run)?);
        let step = names::folder_name(&wish.step)?;
        for number in 1..NAMES_TRIED {
            let path = folder.join(numbered(&step, number));
            if apart_from == Some(path.as_path()) {
                continue;
            }
            match self.recorded(&path)? {
                Some(lease) if lease.wish == *wish => return self.complete(lease).await,
                Some(_) => {}
                None if exists(&path) => {}
                None => return self.begin(wish, path).await,
            }
        }
        Err(failed(
            "worktree add",
            format!("every folder name for {} is taken", wish.step),
        ))
    }

    /// The record of the worktree at this path.
    pub(crate) fn recorded(&self, path: &Path) -> Result<Option<Lease>, WorkspaceError> {
        let file = self.folders.place(path)?.record;
        match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| io(&file, &error.into())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io(&file, &error)),
        }
    }

    fn record(&self, lease: &Lease) -> Result<(), WorkspaceError> {
        let file = self.folders.place(&lease.path)?.record;
        let bytes = serde_json::to_vec(lease).map_err(|error| io(&file, &error.into()))?;
        replace(&file, &bytes)
    }

    /// Records the wish with the first branch name that nobody has, then makes everything.
    async fn begin(&self, wish: &WorktreeWanted, path: PathBuf) -> Result<Worktree, WorkspaceError> {
        for number in 1..NAMES_TRIED {
            let branch = numbered(&wish.branch, number);
            let reference = names::branch_reference(&branch)?;
            // Also taken: a name below which others lie.
            if !self.references(&reference).await?.is_empty() {
                continue;
            }
            let lease = Lease {
                wish: wish.clone(),
                path: path.clone(),
                branch,
                made: false,
            };
            self.record(&lease)?;
            if self.move_ref(&reference, &wish.base, None).await? {
                return self.complete(lease).await;
            }
        }
        Err(failed(
            "update-ref",
            format!("every name like {} is taken", wish.branch),
        ))
    }

    /// Makes what is missing of a recorded worktree.
    async fn complete(&self, mut lease: Lease) -> Result<Worktree, WorkspaceError> {
        let reference = names::branch_reference(&lease.branch)?;
        let tip = match self.tip(&reference).await? {
            // Recorded and not made: it points elsewhere, so somebody else took the name in between.
            Some(tip) if !lease.made && tip != lease.wish.base => {
                return Box::pin(self.begin(&lease.wish, lease.path)).await;
            }
            Some(tip) => tip,
            None if self.move_ref(&reference, &lease.wish.base, None).await? => lease.wish.base.clone(),
            None => {
                return Err(failed(
                    "update-ref",
                    format!("{} changes all the time", lease.branch),
                ));
            }
        };
        let listed = self.worktrees().await?;
        let entry = listed.iter().find(|entry| entry.path == lease.path);
        match (lease.made, self.admin(&lease.path)) {
            (true, Ok(_)) => return Ok(lease.worktree()),
            // Nobody has worked in it: whatever is there is a rest of ours, and goes to the trash.
            (false, _) => self.clear(&lease.path, entry).await?,
            (true, Err(_)) if !exists(&lease.path) => self.clear(&lease.path, entry).await?,
            (true, Err(why)) => return Err(why),
        }
        let elsewhere =
            |other: &&Listed| other.branch.as_ref() == Some(&reference) && other.path != lease.path;
        if let Some(other) = listed.iter().find(elsewhere) {
            let why = format!(
                "its branch {} is checked out in {}",
                lease.branch,
                other.path.display()
            );
            return Err(lost(&lease.path, why));
        }
        self.add_worktree(&lease, &tip).await?;
        lease.made = true;
        self.record(&lease)?;
        Ok(lease.worktree())
    }

    /// Takes away what is left of a worktree in which nobody works: folder to the trash, entry removed.
    async fn clear(&self, path: &Path, entry: Option<&Listed>) -> Result<(), WorkspaceError> {
        if exists(path) {
            let trash = self.folders.trash_name(path, crate::removal::now());
            std::fs::rename(path, &trash).map_err(|error| io(path, &error))?;
        }
        match entry {
            None => Ok(()),
            // git's own lock while it makes a worktree: left by a crash, since the repository's lock is ours.
            Some(Listed { lock: None, .. }) => self.forget(path, &["--force"]).await,
            Some(Listed {
                lock: Some(reason), ..
            }) if reason == "initializing" => self.forget(path, &["--force", "--force"]).await,
            Some(Listed {
                lock: Some(reason), ..
            }) => Err(lost(
                path,
                format!("is gone and its entry is locked ({reason}): unlock it"),
            )),
        }
    }

    /// Removes git's entry of a worktree whose folder is gone; only that one.
    pub(crate) async fn forget(&self, path: &Path, force: &[&str]) -> Result<(), WorkspaceError> {
        debug_assert!(!exists(path), "git would delete the folder's files");
        self.refs("worktree remove")
            .await?
            .args(force)
            .arg("--")
            .arg(path)
            .bytes()
            .await
            .map(drop)
    }

    async fn add_worktree(&self, lease: &Lease, tip: &str) -> Result<(), WorkspaceError> {
        create_parent(&lease.path)?;
        self.refuse_links(&["worktrees"])?;
        let add = self
            .refs("worktree add")
            .await?
            .args(["--quiet", "--no-checkout", "--"]);
        add.arg(&lease.path).arg(&lease.branch).bytes().await?;
        let admin = self.admin(&lease.path)?;
        let head = self.head_of(&admin).await?;
        if head.reference != Some(names::branch_reference(&lease.branch)?) {
            return Err(unsupported(
                &self.root,
                format!("git did not put {} on its branch", lease.path.display()),
            ));
        }
        // git takes over what the person's own checkout leaves out: an agent gets all files, and can add any.
        remove_file(&admin.join("info/sparse-checkout"))?;
        // One that knows of files of an earlier folder would take them for unchanged.
        remove_file(&self.folders.place(&lease.path)?.index)?;
        self.check_out(&lease.path, &admin, tip).await
    }

    /// Writes a commit's files into the worktree over whatever it holds, and makes its index agree. Files that the
    /// index of ours does not know, ignored ones above all, stay.
    pub(crate) async fn check_out(
        &self,
        worktree: &Path,
        admin: &Path,
        commit: &str,
    ) -> Result<(), WorkspaceError> {
        let index = self.folders.place(worktree)?.index;
        create_parent(&index)?;
        // Left by a call of ours that was killed: whoever calls here is alone at this worktree.
        remove_file(&lock_of(&index))?;
        let call = self.files(worktree, &index, "read-tree --reset -u").await?;
        call.arg(commit).bytes().await?;
        self.publish_index(worktree, admin, &index).await
    }
}

/// `name`, then `name-2`, `name-3` …
fn numbered(name: &str, number: u32) -> String {
    if number == 1 {
        name.to_owned()
    } else {
        format!("{name}-{number}")
    }
}

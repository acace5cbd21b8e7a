//! A fresh worktree for a run's check (W10b). Nothing in it is anybody's work: it is made from a commit, and goes with
//! whatever the check left there.

use std::path::PathBuf;

use sillage_core::ports::workspace::WorkspaceError;

use crate::folders::{create_parent, exists, io, remove_file};
use crate::git::names;
use crate::repository::Repo;

/// The folder beside a run's steps: no agent can have this name.
const NAME: &str = "+check";

impl Repo<'_> {
    /// Makes the folder, on no branch. The repository's lock is held.
    pub(crate) async fn check_folder(&self, run: &str, commit: &str) -> Result<PathBuf, WorkspaceError> {
        let commit = names::full_hash(commit)?;
        self.require(commit).await?;
        let path = self.clear_check(run).await?;
        create_parent(&path)?;
        let add = self
            .refs("worktree add")
            .await?
            .args(["--quiet", "--no-checkout", "--detach", "--"]);
        add.arg(&path).arg(commit).bytes().await?;
        let admin = self.admin(&path)?;
        self.check_out(&path, &admin, commit).await?;
        Ok(path)
    }

    /// Removes the folder and what git knows of it; gives where it lies. The repository's lock is held.
    ///
    /// It goes to the trash in one step, so that a crash leaves no half of it, and is deleted there.
    pub(crate) async fn clear_check(&self, run: &str) -> Result<PathBuf, WorkspaceError> {
        let path = self.folders.worktrees.join(names::folder_name(run)?).join(NAME);
        if exists(&path) {
            let trash = self.folders.trash_name(&path, crate::removal::now());
            std::fs::rename(&path, &trash).map_err(|error| io(&path, &error))?;
            let gone = trash.clone();
            let deleted = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(&gone)).await;
            if !matches!(deleted, Ok(Ok(()))) {
                tracing::warn!(path = %trash.display(), ?deleted, "stays in the trash until that is emptied");
            }
        }
        let listed = self.worktrees().await?;
        if let Some(entry) = listed.iter().find(|entry| entry.path == path) {
            // git's own lock while it makes a worktree takes a second word.
            let force: &[&str] = match entry.lock {
                Some(_) => &["--force", "--force"],
                None => &["--force"],
            };
            self.forget(&path, force).await?;
        }
        let place = self.folders.place(&path)?;
        remove_file(&place.index)?;
        Ok(path)
    }
}

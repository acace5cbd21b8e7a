//! Starting a step again from its base, after keeping what it left (R12).

use std::path::Path;

use sillage_core::ports::workspace::{Restarted, WorkspaceError, Worktree, WorktreeWanted};

use crate::folders::{exists, io, remove_file};
use crate::git::{failed, names};
use crate::repository::Repo;
use crate::rescue::rescues;
use crate::worktree::ended_by_nul;

impl Repo<'_> {
    /// Keeps what the worktree holds, then puts it back to its base. The locks of repository and worktree are held.
    ///
    /// Ignored files stay where they are, and so do repositories within: neither can be kept by a commit.
    pub(crate) async fn restart(
        &self,
        worktree: &Worktree,
        run: &str,
        step: &str,
    ) -> Result<Restarted, WorkspaceError> {
        let reference = names::branch_reference(&worktree.branch)?;
        self.require(names::full_hash(&worktree.base)?).await?;
        self.folders.place(&worktree.path)?;
        let rescues = rescues(run, step)?;
        let tip = self.tip(&reference).await?;
        let Ok(admin) = self.admin(&worktree.path) else {
            return self.restart_missing(worktree, run, step, tip).await;
        };
        let head = self.head_of(&admin).await?;
        let kept = self
            .keep(
                &worktree.path,
                &admin,
                &head,
                tip.as_deref().unwrap_or(&worktree.base),
                "What was left when the step was started again",
            )
            .await?;
        let kept = self.with_hidden(worktree, &kept.commit).await?;
        let mut rescued = self.rescue_if_new(&rescues, &kept, &worktree.base).await?;
        if let Some(tip) = &tip
            && !self.contains(&kept, tip).await?
        {
            let branch = self.rescue_if_new(&rescues, tip, &worktree.base).await?;
            rescued = rescued.or(branch);
        }
        self.put_back(worktree, &admin, &reference, tip.as_deref())
            .await?;
        Ok(Restarted {
            worktree: worktree.clone(),
            rescued,
        })
    }

    /// The worktree is gone or became something else: what its branch holds is kept, and another is made.
    async fn restart_missing(
        &self,
        worktree: &Worktree,
        run: &str,
        step: &str,
        tip: Option<String>,
    ) -> Result<Restarted, WorkspaceError> {
        let rescued = match &tip {
            Some(tip) => {
                self.rescue_if_new(&rescues(run, step)?, tip, &worktree.base)
                    .await?
            }
            None => None,
        };
        let recorded = self
            .recorded(&worktree.path)?
            .filter(|lease| lease.branch == worktree.branch);
        let wish = WorktreeWanted {
            repository: worktree.repository.clone(),
            run: run.to_owned(),
            step: step.to_owned(),
            branch: recorded.map_or_else(|| worktree.branch.clone(), |lease| lease.wish.branch),
            base: worktree.base.clone(),
        };
        if exists(&worktree.path) {
            // Something else is in its place: it is left alone, with the entry that still names it.
            return Ok(Restarted {
                worktree: self.lease(&wish, Some(&worktree.path)).await?,
                rescued,
            });
        }
        if let Some(tip) = tip {
            let reference = names::branch_reference(&worktree.branch)?;
            self.move_ref(&reference, &worktree.base, Some(&tip)).await?;
        }
        Ok(Restarted {
            worktree: self.lease(&wish, None).await?,
            rescued,
        })
    }

    /// Adds to a commit the ignored files that the base has under the same names: putting the base back would
    /// overwrite them.
    pub(crate) async fn with_hidden(
        &self,
        worktree: &Worktree,
        commit: &str,
    ) -> Result<String, WorkspaceError> {
        let call = self
            .objects("diff-tree -r --name-only --diff-filter=D -z")
            .await?;
        let gone = call
            .args(["--no-renames", &worktree.base, commit])
            .bytes()
            .await?;
        let names: Vec<String> = String::from_utf8_lossy(&gone)
            .split('\0')
            .map(str::to_owned)
            .collect();
        let there = |name: &String| {
            let found = std::fs::symlink_metadata(worktree.path.join(name));
            !name.is_empty() && found.is_ok_and(|found| found.is_file() || found.is_symlink())
        };
        let hidden: Vec<String> = names.into_iter().filter(there).collect();
        if hidden.is_empty() {
            return Ok(commit.to_owned());
        }
        let index = self.folders.place(&worktree.path)?.index;
        let call = self
            .files(&worktree.path, &index, "update-index --add -z --stdin")
            .await?;
        call.stdin(ended_by_nul(&hidden)).bytes().await?;
        let tree = self
            .files(&worktree.path, &index, "write-tree")
            .await?
            .text()
            .await?;
        self.make_commit(&tree, &[commit], "Ignored files that the base has too")
            .await
    }

    async fn put_back(
        &self,
        worktree: &Worktree,
        admin: &Path,
        reference: &str,
        tip: Option<&str>,
    ) -> Result<(), WorkspaceError> {
        self.end_operations(admin).await?;
        if tip != Some(worktree.base.as_str()) && !self.move_ref(reference, &worktree.base, tip).await? {
            return Err(failed(
                "update-ref",
                format!("{reference} moved while its step was started again"),
            ));
        }
        self.set_head(admin, reference).await?;
        self.check_out(&worktree.path, admin, &worktree.base).await
    }

    /// Forgets whatever was under way; what it had done is kept already.
    pub(crate) async fn end_operations(&self, admin: &Path) -> Result<(), WorkspaceError> {
        self.end_merge(admin)?;
        for name in ["CHERRY_PICK_HEAD", "REVERT_HEAD"] {
            if self.pseudo(admin, name).await?.is_some() {
                self.head(admin, "update-ref -d").await?.arg(name).bytes().await?;
            }
        }
        for file in [
            "BISECT_LOG",
            "BISECT_START",
            "BISECT_NAMES",
            "BISECT_TERMS",
            "SQUASH_MSG",
        ] {
            remove_file(&admin.join(file))?;
        }
        for folder in ["rebase-merge", "rebase-apply", "sequencer"] {
            let folder = admin.join(folder);
            match std::fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(io(&folder, &error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

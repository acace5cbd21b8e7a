//! Merging into the integration branch: commits and trees only, no working tree is touched.

use sillage_core::ports::workspace::{MergeOutcome, MergeWanted, MergedPart, WorkspaceError};

use crate::git::{failed, names};
use crate::repository::{Repo, unsupported};

/// How often another's move of the branch is answered by merging again.
const TRIES: u32 = 50;

impl Repo<'_> {
    /// Merges a commit into a branch, always by a merge commit, so that the branch tells one agent's work from
    /// another's. Does nothing when the branch holds the commit.
    ///
    /// # Errors
    /// [`WorkspaceError::Unsupported`] when someone has the branch checked out: moving it would make their
    /// files look like an undoing of the merge.
    pub(crate) async fn merge(&self, wish: &MergeWanted) -> Result<MergeOutcome, WorkspaceError> {
        let into = names::branch_reference(&wish.into)?;
        let (base, commit) = (names::full_hash(&wish.base)?, names::full_hash(&wish.commit)?);
        self.require(base).await?;
        self.require(commit).await?;
        for _ in 0..TRIES {
            let tip = self.tip(&into).await?;
            if let Some(tip) = &tip
                && self.contains(tip, commit).await?
            {
                return Ok(MergeOutcome::Merged(tip.clone()));
            }
            self.refuse_checked_out(&wish.into, &into).await?;
            let Some(tip) = tip else {
                self.move_ref(&into, base, None).await?;
                continue;
            };
            let merged = match &wish.parts[..] {
                [] => self.merged_tree(&tip, commit).await?,
                parts => self.tree_of_parts(&tip, parts).await?,
            };
            let tree = match merged {
                Ok(tree) => tree,
                Err(files) => return Ok(MergeOutcome::Conflict(files)),
            };
            let merged = self.make_commit(&tree, &[&tip, commit], &wish.message).await?;
            if self.move_ref(&into, &merged, Some(&tip)).await? {
                return Ok(MergeOutcome::Merged(merged));
            }
        }
        Err(failed(
            "update-ref",
            format!("{} was moved by someone else {TRIES} times: try again", wish.into),
        ))
    }

    async fn refuse_checked_out(&self, branch: &str, reference: &str) -> Result<(), WorkspaceError> {
        let listed = self.worktrees().await?;
        match listed
            .iter()
            .find(|entry| entry.branch.as_deref() == Some(reference))
        {
            None => Ok(()),
            Some(entry) => {
                let why = format!("{branch} is checked out here: switch to another branch, then resume");
                Err(unsupported(&entry.path, why))
            }
        }
    }

    /// The tree of `ours` with what each of the parts changed, or the files in conflict.
    async fn tree_of_parts(
        &self,
        ours: &str,
        parts: &[MergedPart],
    ) -> Result<Result<String, Vec<String>>, WorkspaceError> {
        let mut tree = self.tree_of(ours).await?;
        for part in parts {
            let (onto, tip) = (names::full_hash(&part.onto)?, names::full_hash(&part.tip)?);
            self.require(onto).await?;
            self.require(tip).await?;
            // Two commits on the part's own start, which no history holds: git merges from where they part. It can be
            // told that start in words from 2.40 on only.
            let ours = self.make_commit(&tree, &[onto], "part of a merge\n").await?;
            let changed = self.tree_of(tip).await?;
            let theirs = self.make_commit(&changed, &[onto], "part of a merge\n").await?;
            match self.merged_tree(&ours, &theirs).await? {
                Ok(merged) => tree = merged,
                Err(files) => return Ok(Err(files)),
            }
        }
        Ok(Ok(tree))
    }

    async fn tree_of(&self, commit: &str) -> Result<String, WorkspaceError> {
        let call = self.objects("rev-parse --verify").await?;
        call.args(["--end-of-options", &format!("{commit}^{{tree}}")])
            .text()
            .await
    }

    /// The tree of a merge, or the files in conflict.
    async fn merged_tree(
        &self,
        ours: &str,
        theirs: &str,
    ) -> Result<Result<String, Vec<String>>, WorkspaceError> {
        let call = self.objects("merge-tree --write-tree").await?;
        let output = call
            .args(["--no-messages", "--name-only", "-z", ours, theirs])
            .output()
            .await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut parts = text.split('\0').filter(|part| !part.is_empty());
        match (output.code, parts.next()) {
            (Some(0), Some(tree)) => Ok(Ok(tree.to_owned())),
            (Some(1), Some(_)) => {
                let mut files: Vec<String> = parts.map(str::to_owned).collect();
                files.dedup();
                Ok(Err(files))
            }
            (_, _) => Err(output.failure("merge-tree")),
        }
    }
}

//! Whether a branch's work is in another by its content where its commits are not (G9).
//!
//! What is found here is told to a person and never taken as proof: a worktree is not removed on it.

use sillage_core::ports::workspace::WorkspaceError;

use crate::repository::Repo;

/// The most commits of the other branch that are compared.
const LOOKED_AT: u32 = 500;

/// By what sign the content of commits is found elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The other branch has the commits themselves.
    Commits,
    /// Each commit has one there that makes the same changes: they were rebased or picked.
    EachChange,
    /// Merging them would change nothing there.
    SameFiles,
    /// One commit there makes the same changes as all of them: they were squashed.
    OneChange,
}

impl Repo<'_> {
    /// By what sign the branch at `into` has the work of `tip`, if by any.
    pub(crate) async fn sign_of(&self, tip: &str, into: &str) -> Result<Option<Sign>, WorkspaceError> {
        if self.contains(into, tip).await? {
            return Ok(Some(Sign::Commits));
        }
        let Some(fork) = self.fork(tip, into).await? else {
            return Ok(None);
        };
        if self.each_change_is_in(tip, into, &fork).await? {
            return Ok(Some(Sign::EachChange));
        }
        if self.merging_changes_nothing(tip, into).await? {
            return Ok(Some(Sign::SameFiles));
        }
        let squashed = self.one_change_is_in(tip, into, &fork).await?;
        Ok(squashed.then_some(Sign::OneChange))
    }

    /// The commit where two histories part.
    async fn fork(&self, one: &str, other: &str) -> Result<Option<String>, WorkspaceError> {
        let output = self
            .objects("merge-base")
            .await?
            .args([one, other])
            .output()
            .await?;
        let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        match output.code {
            Some(0) => Ok(Some(text)),
            Some(1) => Ok(None),
            _ => Err(output.failure("merge-base")),
        }
    }

    /// `git cherry`, which looks at no merge: a history with one is not proved so.
    async fn each_change_is_in(&self, tip: &str, into: &str, fork: &str) -> Result<bool, WorkspaceError> {
        let call = self.objects("rev-list --count --merges").await?;
        let merges = call.args([tip, &format!("^{into}")]).text().await?;
        if merges != "0" || self.count(&[into], &[fork]).await? > LOOKED_AT {
            return Ok(false);
        }
        let told = self.objects("cherry").await?.args([into, tip]).text().await?;
        Ok(!told.is_empty() && told.lines().all(|line| line.starts_with('-')))
    }

    async fn merging_changes_nothing(&self, tip: &str, into: &str) -> Result<bool, WorkspaceError> {
        let call = self.objects("merge-tree --write-tree").await?;
        let output = call.args(["--no-messages", into, tip]).output().await?;
        let tree = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        Ok(output.code == Some(0) && tree == self.tree(into).await?)
    }

    /// Compares the change from the fork to the tip with each commit's since the fork.
    async fn one_change_is_in(&self, tip: &str, into: &str, fork: &str) -> Result<bool, WorkspaceError> {
        let whole = self
            .objects("diff-tree -p --binary --full-index --no-ext-diff --no-textconv")
            .await?;
        let whole = self.patch_ids(whole.args([fork, tip]).bytes().await?).await?;
        let [wanted] = whole.as_slice() else {
            return Ok(false);
        };
        let call = self.objects("rev-list --no-merges").await?;
        let commits = call
            .args([&format!("--max-count={LOOKED_AT}"), into, &format!("^{fork}")])
            .text()
            .await?;
        let each = self
            .objects("diff-tree --stdin -p --binary --full-index --no-ext-diff --no-textconv")
            .await?;
        let each = self.patch_ids(each.stdin(commits + "\n").bytes().await?).await?;
        Ok(each.contains(wanted))
    }

    async fn patch_ids(&self, patches: Vec<u8>) -> Result<Vec<String>, WorkspaceError> {
        let text = self
            .objects("patch-id --stable")
            .await?
            .stdin(patches)
            .text()
            .await?;
        let ids = text.lines().filter_map(|line| line.split(' ').next());
        Ok(ids.map(str::to_owned).collect())
    }
}

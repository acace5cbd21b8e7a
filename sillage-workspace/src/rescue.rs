//! Rescue references: names for work that would otherwise become unreachable.
//!
//! They are `refs/sillage/rescue/<run>/<step>/<n>`. Nothing of ours deletes one.

use std::fs;
use std::path::Path;

use sillage_core::ports::workspace::{WorkspaceError, Worktree};

use crate::git::names;
use crate::repository::Repo;

/// The most entries of a head's log that are looked at, the newest first.
const LOGGED: usize = 1000;

impl Repo<'_> {
    /// Keeps the commits of a worktree's branch before the branch goes elsewhere.
    pub(crate) async fn rescue_of(&self, worktree: &Worktree, commit: &str) -> Result<(), WorkspaceError> {
        let rescues = self.rescues_of(worktree)?;
        self.rescue_if_new(&rescues, commit, &worktree.base)
            .await
            .map(drop)
    }

    /// Keeps what the worktree's folder and index hold and no commit does, and the commits of operations under way.
    /// Ignored files and repositories within are not kept so: they stay in the trash.
    pub(crate) async fn rescue_everything(
        &self,
        worktree: &Worktree,
        admin: &Path,
    ) -> Result<Vec<String>, WorkspaceError> {
        let rescues = self.rescues_of(worktree)?;
        let head = self.head_of(admin).await?;
        let start = match self.tip(&names::branch_reference(&worktree.branch)?).await? {
            Some(tip) => tip,
            None => worktree.base.clone(),
        };
        let message = "What was left when the worktree was removed";
        let kept = self.keep(&worktree.path, admin, &head, &start, message).await?;
        let mut all = vec![kept.commit.clone()];
        all.extend(
            self.staged_as_commit(worktree, admin, &kept.on, &kept.commit)
                .await?,
        );
        all.extend(self.commits_of_operations(admin).await?);
        self.rescue_all(&rescues, all).await
    }

    /// Keeps commits that only the worktree's own part of the git folder names: its head where it is detached, its own
    /// references, and what its log tells of commits that were amended or left.
    pub(crate) async fn rescue_unreachable(
        &self,
        worktree: &Worktree,
        admin: &Path,
    ) -> Result<Vec<String>, WorkspaceError> {
        let rescues = self.rescues_of(worktree)?;
        let mut all: Vec<String> = self.head_of(admin).await?.commit.into_iter().collect();
        let own = self
            .head(admin, "for-each-ref")
            .await?
            .args([
                "--format=%(objectname)",
                "--",
                "refs/worktree",
                "refs/bisect",
                "refs/rewritten",
            ])
            .text()
            .await?;
        all.extend(own.lines().map(str::to_owned));
        // The branch's log stays with the branch, as after any other amend.
        let branch = names::branch_reference(&worktree.branch)?;
        let staying = self
            .logged(&self.common.join("logs").join(&branch), &self.common, &branch)
            .await?;
        let mut leaving = self.logged(&admin.join("logs/HEAD"), admin, "HEAD").await?;
        leaving.retain(|commit| !staying.contains(commit));
        all.extend(leaving);
        self.rescue_all(&rescues, all).await
    }

    /// The commits that the log of a reference names, the newest first; `file` is where it is kept unless the
    /// repository keeps references elsewhere than in files.
    async fn logged(
        &self,
        file: &Path,
        git_folder: &Path,
        name: &str,
    ) -> Result<Vec<String>, WorkspaceError> {
        if let Ok(text) = fs::read_to_string(file) {
            return Ok(logged(&text));
        }
        let call = self.head(git_folder, "rev-list --walk-reflogs").await?;
        let told = call
            .args([&format!("--max-count={LOGGED}"), name])
            .output()
            .await?;
        // Without a log, or with commits in it that are gone, nothing is to be kept.
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Puts each commit that no reference reaches under a rescue reference, unless one before it in the list does.
    async fn rescue_all(&self, rescues: &str, commits: Vec<String>) -> Result<Vec<String>, WorkspaceError> {
        let mut unreachable = self.unreachable(&commits).await?;
        let mut rescued = Vec::new();
        while let Some(commit) = unreachable.first().cloned() {
            rescued.push(self.rescue(rescues, &commit).await?);
            let mut left = Vec::new();
            for other in unreachable.drain(..) {
                if !self.contains(&commit, &other).await? {
                    left.push(other);
                }
            }
            unreachable = left;
        }
        Ok(rescued)
    }

    /// Those of the commits that no reference of the repository reaches, in their order and each once. What is no
    /// commit, or is gone, is left out.
    async fn unreachable(&self, commits: &[String]) -> Result<Vec<String>, WorkspaceError> {
        let mut asked = String::new();
        for commit in commits.iter().filter(|commit| names::full_hash(commit).is_ok()) {
            asked.push_str(commit);
            asked.push('\n');
        }
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        for (_, tip) in self.references("refs").await? {
            asked.push('^');
            asked.push_str(&tip);
            asked.push('\n');
        }
        let call = self.objects("rev-list --ignore-missing --stdin").await?;
        let found = call.stdin(asked).text().await?;
        let found: std::collections::HashSet<&str> = found.lines().collect();
        let mut all: Vec<String> = Vec::new();
        for commit in commits {
            if found.contains(commit.as_str()) && !all.contains(commit) {
                all.push(commit.clone());
            }
        }
        Ok(all)
    }

    /// What is staged, as a commit on `on`, where neither that nor `kept` has the same tree. None for an index with
    /// conflicts: their sides are in commits.
    async fn staged_as_commit(
        &self,
        worktree: &Worktree,
        admin: &Path,
        on: &str,
        kept: &str,
    ) -> Result<Option<String>, WorkspaceError> {
        let copy = self.folders.place(&worktree.path)?.fresh_index;
        if !self.copy_index(&admin.join("index"), &copy)? {
            return Ok(None);
        }
        let written = self
            .files(&worktree.path, &copy, "write-tree")
            .await?
            .output()
            .await?;
        if written.code != Some(0) {
            return Ok(None);
        }
        let tree = String::from_utf8_lossy(&written.stdout).trim_end().to_owned();
        if tree == self.tree(on).await? || tree == self.tree(kept).await? {
            return Ok(None);
        }
        self.make_commit(&tree, &[on], "What was staged when the worktree was removed")
            .await
            .map(Some)
    }

    /// Commits that operations under way name: what is merged, picked, rebased, and what was stashed away for that.
    async fn commits_of_operations(&self, admin: &Path) -> Result<Vec<String>, WorkspaceError> {
        const FILES: &[&str] = &[
            "MERGE_HEAD",
            "ORIG_HEAD",
            "MERGE_AUTOSTASH",
            "rebase-merge/orig-head",
            "rebase-merge/autostash",
            "rebase-apply/orig-head",
            "rebase-apply/autostash",
        ];
        let mut all = Vec::new();
        for file in FILES {
            let text = fs::read_to_string(admin.join(file)).unwrap_or_default();
            all.extend(text.lines().map(|line| line.trim().to_owned()));
        }
        for name in ["CHERRY_PICK_HEAD", "REVERT_HEAD"] {
            all.extend(self.pseudo(admin, name).await?);
        }
        Ok(all)
    }

    /// Keeps a commit under a rescue reference of the step, unless the base holds it.
    pub(crate) async fn keep_reference(
        &self,
        run: &str,
        step: &str,
        commit: &str,
        base: &str,
    ) -> Result<Option<String>, WorkspaceError> {
        self.rescue_if_new(&rescues(run, step)?, commit, base).await
    }

    /// Puts a commit under the first free number, unless the base holds it; a rescue of the same content on the same
    /// commit, made before a crash, is not made again.
    pub(crate) async fn rescue_if_new(
        &self,
        rescues: &str,
        commit: &str,
        base: &str,
    ) -> Result<Option<String>, WorkspaceError> {
        if self.contains(base, commit).await? {
            return Ok(None);
        }
        self.rescue(rescues, commit).await.map(Some)
    }

    async fn rescue(&self, rescues: &str, commit: &str) -> Result<String, WorkspaceError> {
        let same = self.origin(commit).await?;
        for (name, kept) in self.references(rescues).await? {
            let number = name.strip_prefix(rescues).and_then(|rest| rest.strip_prefix('/'));
            if number.is_some_and(|number| !number.contains('/')) && self.origin(&kept).await? == same {
                return Ok(name);
            }
        }
        let mut number = 1_u32;
        loop {
            let name = format!("{rescues}/{number}");
            if self.references(&name).await?.is_empty() && self.move_ref(&name, commit, None).await? {
                return Ok(name);
            }
            number += 1;
        }
    }

    /// A commit's tree and parents: what it is apart from when and by whom it was made.
    async fn origin(&self, commit: &str) -> Result<String, WorkspaceError> {
        self.objects("log -1 --no-show-signature")
            .await?
            .args(["--format=%T %P", commit])
            .text()
            .await
    }

    fn rescues_of(&self, worktree: &Worktree) -> Result<String, WorkspaceError> {
        let (run, step) = self.owner(&worktree.path)?;
        rescues(&run, &step)
    }
}

/// Where a step's rescue references lie.
pub(crate) fn rescues(run: &str, step: &str) -> Result<String, WorkspaceError> {
    names::folder_name(run)?;
    names::folder_name(step)?;
    Ok(format!("refs/sillage/rescue/{run}/{step}"))
}

/// The commits that a log of a head names, the newest first: `old new who when zone\twhat`.
fn logged(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.lines().rev().take(LOGGED) {
        let mut hashes = line.split(' ');
        if let (Some(old), Some(new)) = (hashes.next(), hashes.next()) {
            all.extend([new, old].map(str::to_owned));
        }
    }
    all.retain(|hash| hash.bytes().any(|byte| byte != b'0'));
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_log_of_a_head_from_its_end() {
        let (zero, one, two) = ("0".repeat(40), "1".repeat(40), "2".repeat(40));
        let text = format!(
            "{zero} {one} A <a@b> 1 +0000\tcommit (initial): x\n{one} {two} A <a@b> 2 +0000\tcommit: y\n"
        );
        assert_eq!(logged(&text), [two, one]);
        assert!(logged("").is_empty() && logged("garbage\n").is_empty());
    }
}

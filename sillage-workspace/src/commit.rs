//! Committing what an agent left, wherever it left its head.

use std::collections::BTreeMap;
use std::path::Path;

use sillage_core::ports::workspace::{Committed, DiffStat, WorkspaceError, Worktree};

use crate::confined::bounded;
use crate::folders::remove_file;
use crate::git::{failed, names};
use crate::repository::Repo;
use crate::worktree::Head;

/// The most that is read of a file in which marks of a conflict are looked for, in bytes.
const MOST_READ: u64 = 64 * 1024 * 1024;

/// A worktree's content as a commit that is on no branch yet.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The commit: a new one, or where the head was when nothing was left.
    pub(crate) commit: String,
    /// The commit that the head was on.
    pub(crate) on: String,
}

impl Repo<'_> {
    /// Commits what is left and moves the worktree's branch there. The worktree's lock is held.
    ///
    /// The agent may have left its head elsewhere. What is left is committed on top of its head, and the branch made
    /// for the worktree goes there; commits of that branch which the head does not have are kept under a rescue
    /// reference first, so that no work is lost. Unless an operation is under way, the head is then put back on the
    /// branch; the agent's own branch stays where it is.
    pub(crate) async fn commit_left(
        &self,
        worktree: &Worktree,
        message: &str,
    ) -> Result<Committed, WorkspaceError> {
        let admin = self.admin(&worktree.path)?;
        let reference = names::branch_reference(&worktree.branch)?;
        let old = self.tip(&reference).await?;
        let head = self.head_of(&admin).await?;
        let message = self.told(worktree, &head, &reference, message).await?;
        let start = old.as_deref().unwrap_or(&worktree.base);
        let kept = self.keep(&worktree.path, &admin, &head, start, &message).await?;
        // The folder may have been taken away while it was read: then its emptiness is not the agent's work.
        self.admin(&worktree.path)?;
        if old.as_ref() != Some(&kept.commit) {
            if let Some(old) = &old
                && !self.contains(&kept.commit, old).await?
            {
                self.rescue_of(worktree, old).await?;
            }
            self.advance(&reference, &kept.commit, old.as_deref()).await?;
        }
        self.settle(worktree, &admin, &head, &reference, &kept).await?;
        let commits = self.count(&[&kept.commit], &[&worktree.base]).await?;
        let diff = self.diff(&worktree.base, &kept.commit).await?;
        Ok(Committed {
            tip: kept.commit,
            commits,
            diff,
        })
    }

    /// The message, with a word on where the work was found when that is not the branch made for it or its history
    /// does not start from the base.
    async fn told(
        &self,
        worktree: &Worktree,
        head: &Head,
        reference: &str,
        message: &str,
    ) -> Result<String, WorkspaceError> {
        if head.reference.as_deref() == Some(reference) {
            return Ok(message.to_owned());
        }
        let place = head.reference.as_deref().unwrap_or("a detached head");
        let mut told = format!(
            "{}\n\nFound on {place}, not on {}.",
            message.trim_end(),
            worktree.branch
        );
        if let Some(commit) = &head.commit
            && !self.contains(commit, &worktree.base).await?
        {
            told.push_str(&format!(" Its history does not hold the base {}.", worktree.base));
        }
        tracing::warn!(worktree = %worktree.path.display(), place, "work found on another branch than its own");
        Ok(told)
    }

    /// Writes what the folder holds as a commit on top of its head, or on `start` where the head has no commit.
    pub(crate) async fn keep(
        &self,
        path: &Path,
        admin: &Path,
        head: &Head,
        start: &str,
        message: &str,
    ) -> Result<Kept, WorkspaceError> {
        let on = head.commit.as_deref().unwrap_or(start);
        let index = self.folders.place(path)?.index;
        let tree = self.snapshot(path, &index, on).await?;
        let merged = self.concluded_merge(path, admin, on).await?;
        if merged.is_empty() && tree == self.tree(on).await? {
            return Ok(Kept {
                commit: on.to_owned(),
                on: on.to_owned(),
            });
        }
        let parents: Vec<&str> = std::iter::once(on)
            .chain(merged.iter().map(String::as_str))
            .collect();
        let commit = self.make_commit(&tree, &parents, message).await?;
        Ok(Kept {
            commit,
            on: on.to_owned(),
        })
    }

    /// The commits that a merge under way in the worktree brings in, when no conflict of it is left: they become
    /// parents, or the same conflict would come up again.
    async fn concluded_merge(
        &self,
        path: &Path,
        admin: &Path,
        on: &str,
    ) -> Result<Vec<String>, WorkspaceError> {
        let merged = self.merging(admin, on).await?;
        let open = !merged.is_empty() && !self.open_conflicts(path, admin).await?.is_empty();
        Ok(if open { Vec::new() } else { merged })
    }

    /// The commits of a merge under way in the worktree that `commit` does not hold.
    async fn merging(&self, admin: &Path, commit: &str) -> Result<Vec<String>, WorkspaceError> {
        let text = bounded(admin, "MERGE_HEAD", MOST_READ).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut merging = Vec::new();
        for other in text.lines() {
            let other = names::full_hash(other)?;
            self.require(other).await?;
            if !self.contains(commit, other).await? {
                merging.push(other.to_owned());
            }
        }
        Ok(merging)
    }

    /// The files that are in conflict in the worktree's own index and show no sign of having been resolved.
    pub(crate) async fn open_conflicts(
        &self,
        path: &Path,
        admin: &Path,
    ) -> Result<Vec<String>, WorkspaceError> {
        let index = admin.join("index");
        if !std::fs::symlink_metadata(&index).is_ok_and(|found| found.is_file()) {
            // Without its index nobody can tell what was resolved.
            return Ok(vec!["(the worktree's index)".to_owned()]);
        }
        let call = self.files(path, &index, "ls-files --unmerged -z").await?;
        let bytes = call.bytes().await?;
        // By name: whether each of the two sides has the file.
        let mut sides: BTreeMap<String, [bool; 2]> = BTreeMap::new();
        for entry in bytes.split(|b| *b == 0) {
            let entry = String::from_utf8_lossy(entry);
            if let Some((version, name)) = entry.split_once('\t') {
                let sides = sides.entry(name.to_owned()).or_default();
                sides[0] |= version.ends_with(" 2");
                sides[1] |= version.ends_with(" 3");
            }
        }
        let open = |(name, sides): &(String, [bool; 2])| {
            // One side removed or renamed it: only `git add` or `git rm` tells what the agent chose.
            *sides != [true, true] || bounded(path, name, MOST_READ).is_none_or(|bytes| in_conflict(&bytes))
        };
        Ok(sides.into_iter().filter(open).map(|(name, _)| name).collect())
    }

    /// Moves our branch to a commit, whatever it is on now.
    async fn advance(&self, reference: &str, to: &str, old: Option<&str>) -> Result<(), WorkspaceError> {
        if self.move_ref(reference, to, old).await? {
            return Ok(());
        }
        Err(failed(
            "update-ref",
            format!("{reference} moved while its worktree was being committed: try again"),
        ))
    }

    /// Leaves the worktree as after `git commit` on its branch: nothing shows as changed, no merge is under way.
    async fn settle(
        &self,
        worktree: &Worktree,
        admin: &Path,
        head: &Head,
        reference: &str,
        kept: &Kept,
    ) -> Result<(), WorkspaceError> {
        let merging = admin.join("MERGE_HEAD").exists();
        let merged = merging && self.merging(admin, &kept.commit).await?.is_empty();
        if merged {
            self.end_merge(admin)?;
        }
        if head.reference.as_deref() != Some(reference) && self.operations(admin).await?.is_empty() {
            self.set_head(admin, reference).await?;
        }
        if merged || kept.commit != kept.on {
            let index = self.folders.place(&worktree.path)?.index;
            if let Err(error) = self.publish_index(&worktree.path, admin, &index).await {
                // The commit is made; only what `git status` shows there is out of date.
                tracing::warn!(worktree = %worktree.path.display(), %error, "its index could not be renewed");
            }
        }
        Ok(())
    }

    /// Forgets a merge under way, as git does when it is committed.
    pub(crate) fn end_merge(&self, admin: &Path) -> Result<(), WorkspaceError> {
        for file in ["MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "MERGE_RR", "AUTO_MERGE"] {
            remove_file(&admin.join(file))?;
        }
        Ok(())
    }

    /// Changes between two commits.
    pub(crate) async fn diff(&self, from: &str, to: &str) -> Result<DiffStat, WorkspaceError> {
        // Not a line a file: of very many files that would be more than a call may print.
        let call = self.objects("diff-tree -r --shortstat").await?;
        let call = call.args(["--no-renames", "--no-ext-diff", "--no-textconv", from, to]);
        Ok(parse_shortstat(&call.text().await?))
    }
}

/// Whether a file in conflict shows the marks of one, or cannot show any.
pub(crate) fn in_conflict(bytes: &[u8]) -> bool {
    let marked = |line: &[u8]| line.starts_with(b"<<<<<<< ") || line.starts_with(b">>>>>>> ");
    bytes.contains(&0) || bytes.split(|byte| *byte == b'\n').any(marked)
}

/// Reads `--shortstat`: ` 3 files changed, 2 insertions(+), 1 deletion(-)`, without the parts that are none.
fn parse_shortstat(text: &str) -> DiffStat {
    let mut stat = DiffStat::default();
    for part in text.trim().split(", ") {
        let (number, what) = part.split_once(' ').unwrap_or((part, ""));
        let number = number.parse().unwrap_or(0);
        match what.get(..3) {
            Some("fil") => stat.files = number,
            Some("ins") => stat.insertions = number,
            Some("del") => stat.deletions = number,
            _ => {}
        }
    }
    stat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_how_much_changed() {
        let read = |text| {
            let stat = parse_shortstat(text);
            (stat.files, stat.insertions, stat.deletions)
        };
        assert_eq!(
            read(" 3 files changed, 20 insertions(+), 1 deletion(-)"),
            (3, 20, 1)
        );
        assert_eq!(read(" 1 file changed, 1 insertion(+)"), (1, 1, 0));
        assert_eq!(read(" 1 file changed, 7 deletions(-)"), (1, 0, 7));
        assert_eq!(
            read(" 1 file changed, 0 insertions(+), 0 deletions(-)"),
            (1, 0, 0)
        );
        assert_eq!(read(""), (0, 0, 0));
    }

    #[test]
    fn sees_the_marks_of_a_conflict() {
        assert!(in_conflict(b"a\n<<<<<<< ours\nb\n"));
        assert!(in_conflict(b"\0binary"));
        assert!(!in_conflict(b"a\n <<<<<<< quoted\n"));
    }
}

//! A merge begun in a worktree for its agent to resolve, looked at, and given up (R17).
//!
//! It is begun as git would leave it, by our own means: the shadow computes the merge and writes the files, so that no
//! hook, driver or filter of the repository runs; then the worktree gets an index with the conflicting entries, and
//! what tells its git that a merge is under way.

use std::path::{Path, PathBuf};

use sillage_core::ports::workspace::{MergeBegun, MergeWanted, WorkspaceError, Worktree};

use crate::folders::replace;
use crate::git::{failed, names};
use crate::repository::{Repo, unsupported};

/// What git makes of a merge: the tree, conflicts and all, and the entries of the index that conflict.
#[derive(Debug, Default, PartialEq, Eq)]
struct Merged {
    tree: String,
    /// Lines for `update-index --index-info`: mode, object and stage, a tab, the name.
    entries: Vec<Vec<u8>>,
}

impl Merged {
    /// The files in conflict, each once.
    fn files(&self) -> Vec<String> {
        let mut files: Vec<String> = self
            .names()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect();
        files.dedup();
        files
    }

    fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().filter_map(|entry| {
            let tab = entry.iter().position(|byte| *byte == b'\t')?;
            Some(&entry[tab + 1..])
        })
    }

    /// What makes an index that holds the merged tree hold the conflicting entries instead, for git's stdin.
    fn index_info(&self, zeros: &str) -> Vec<u8> {
        let mut info = Vec::new();
        for name in self.names() {
            info.extend_from_slice(format!("0 {zeros}\t").as_bytes());
            info.extend_from_slice(name);
            info.push(0);
        }
        for entry in &self.entries {
            info.extend_from_slice(entry);
            info.push(0);
        }
        info
    }
}

impl Repo<'_> {
    /// Merges the branch that `wish` merges into into the worktree, whose tip is the commit of the wish. The
    /// worktree's lock is held.
    ///
    /// Each call begins afresh: only calls that were cut by a crash come before, and no agent worked there since.
    /// What is there and stands in neither the commit nor the merge is kept under a rescue reference first.
    pub(crate) async fn begin_merge(
        &self,
        worktree: &Worktree,
        wish: &MergeWanted,
    ) -> Result<MergeBegun, WorkspaceError> {
        let admin = self.admin(&worktree.path)?;
        let reference = names::branch_reference(&worktree.branch)?;
        let (base, ours) = (names::full_hash(&wish.base)?, names::full_hash(&wish.commit)?);
        self.require(ours).await?;
        let into = self.tip(&names::branch_reference(&wish.into)?).await?;
        let theirs = into.unwrap_or_else(|| base.to_owned());
        let merged = self.merge_files(ours, &theirs).await?;
        let begun = MergeBegun {
            onto: theirs,
            files: merged.files(),
        };
        if begun.files.is_empty() {
            return Ok(begun);
        }
        if self.tip(&reference).await?.as_deref() != Some(ours) {
            let why = format!(
                "its branch {} is not where its work was committed",
                worktree.branch
            );
            return Err(unsupported(&worktree.path, why));
        }
        self.keep_unknown(worktree, ours, &merged.tree).await?;
        self.end_operations(&admin).await?;
        let call = self.head(&admin, "symbolic-ref -m sillage").await?;
        call.args(["HEAD", &reference]).bytes().await?;
        self.write_merge(worktree, &admin, ours, &merged).await?;
        let words = format!(
            "Merge {} into {}\n\n# Conflicts:\n{}",
            wish.into,
            worktree.branch,
            begun
                .files
                .iter()
                .map(|file| format!("#\t{file}\n"))
                .collect::<String>()
        );
        replace(&admin.join("MERGE_MSG"), words.as_bytes())?;
        replace(&admin.join("MERGE_MODE"), b"")?;
        replace(&admin.join("MERGE_HEAD"), format!("{}\n", begun.onto).as_bytes())?;
        Ok(begun)
    }

    async fn merge_files(&self, ours: &str, theirs: &str) -> Result<Merged, WorkspaceError> {
        let call = self.objects("merge-tree --write-tree").await?;
        let output = call.args(["--no-messages", "-z", ours, theirs]).output().await?;
        match (output.code, parse_merged(&output.stdout)) {
            (Some(0 | 1), Some(merged)) => Ok(merged),
            (_, _) => Err(output.failure("merge-tree")),
        }
    }

    /// Keeps what the worktree holds if it is neither the commit nor the merge that an earlier call may have written:
    /// something else wrote there after the work was committed.
    async fn keep_unknown(
        &self,
        worktree: &Worktree,
        ours: &str,
        merged: &str,
    ) -> Result<(), WorkspaceError> {
        let index = self.folders.place(&worktree.path)?.index;
        let tree = self.snapshot(&worktree.path, &index, ours).await?;
        let kept = match tree == merged || tree == self.tree(ours).await? {
            true => ours.to_owned(),
            false => {
                self.make_commit(&tree, &[ours], "What was there before a merge was begun")
                    .await?
            }
        };
        // Ignored files that the merge has under the same names would be overwritten.
        let hidden = Worktree {
            base: merged.to_owned(),
            ..worktree.clone()
        };
        let kept = self.with_hidden(&hidden, &kept).await?;
        if kept != ours {
            self.rescue_of(worktree, &kept).await?;
        }
        Ok(())
    }

    /// Writes the merged files, and gives the worktree an index with the conflicting entries.
    async fn write_merge(
        &self,
        worktree: &Worktree,
        admin: &Path,
        ours: &str,
        merged: &Merged,
    ) -> Result<(), WorkspaceError> {
        let index = self.folders.place(&worktree.path)?.index;
        self.fill(&worktree.path, &index, ours).await?;
        let call = self.files(&worktree.path, &index, "read-tree --reset -u").await?;
        call.arg(&merged.tree).bytes().await?;
        let call = self
            .files(&worktree.path, &index, "update-index -z --index-info")
            .await?;
        let zeros = "0".repeat(ours.len());
        call.stdin(merged.index_info(&zeros)).bytes().await?;
        self.publish_index(&worktree.path, admin, &index).await
    }

    /// Those of `files` that are still in conflict.
    pub(crate) async fn unresolved(
        &self,
        worktree: &Worktree,
        files: &[String],
    ) -> Result<Vec<String>, WorkspaceError> {
        let admin = self.admin(&worktree.path)?;
        let open = self.open_conflicts(&worktree.path, &admin).await?;
        let folder = worktree.path.clone();
        let wanted = files.to_vec();
        let looked = tokio::task::spawn_blocking(move || marked(&folder, &wanted)).await;
        let mut left =
            looked.map_err(|error| failed("ls-files", format!("looking for marks ended early: {error}")))?;
        left.extend(open);
        left.sort();
        left.dedup();
        Ok(left)
    }

    /// Keeps what the worktree holds, then puts branch and files back to `tip`. The locks of repository and worktree
    /// are held.
    pub(crate) async fn abandon_merge(
        &self,
        worktree: &Worktree,
        tip: &str,
        run: &str,
        step: &str,
    ) -> Result<Option<String>, WorkspaceError> {
        let tip = names::full_hash(tip)?;
        let back = Worktree {
            base: tip.to_owned(),
            ..worktree.clone()
        };
        if self.admin(&worktree.path).is_ok() {
            return Ok(self.restart(&back, run, step).await?.rescued);
        }
        // Without a worktree there is a branch still, which may hold what the agent committed of the merge.
        let reference = names::branch_reference(&worktree.branch)?;
        self.require(tip).await?;
        let Some(old) = self.tip(&reference).await?.filter(|old| old != tip) else {
            return Ok(None);
        };
        let kept = self.keep_reference(run, step, &old, tip).await?;
        self.move_ref(&reference, tip, Some(&old)).await?;
        Ok(kept)
    }
}

/// Whether a text holds marks of a conflict as they are written here, or as git writes them for an agent that merges
/// anew: the label is a commit or a head. Other lines that begin so may be what the file is about.
fn holds_marks(bytes: &[u8]) -> bool {
    let label = |line: &[u8]| {
        let rest = line
            .strip_prefix(b"<<<<<<< ")
            .or(line.strip_prefix(b">>>>>>> "))?;
        let word = rest.split(|byte| byte.is_ascii_whitespace()).next()?;
        let hash = word.len() >= 40 && word.iter().all(u8::is_ascii_hexdigit);
        Some(hash || word == b"HEAD" || word == b"MERGE_HEAD" || word.starts_with(b"sillage/"))
    };
    bytes
        .split(|byte| *byte == b'\n')
        .any(|line| label(line) == Some(true))
}

/// Those of `files` that are texts with the marks of a conflict.
fn marked(folder: &Path, files: &[String]) -> Vec<String> {
    let shows = |file: &&String| {
        let path: PathBuf = folder.join(file);
        let regular = std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        regular && std::fs::read(&path).is_ok_and(|bytes| !bytes.contains(&0) && holds_marks(&bytes))
    };
    files.iter().filter(shows).cloned().collect()
}

/// Reads `merge-tree --write-tree -z --no-messages`: the tree, then an entry for each version of a file in conflict.
fn parse_merged(bytes: &[u8]) -> Option<Merged> {
    let mut parts = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    let tree = String::from_utf8(parts.next()?.to_vec()).ok()?;
    names::full_hash(tree.trim_end()).ok()?;
    Some(Merged {
        tree: tree.trim_end().to_owned(),
        entries: parts.map(<[u8]>::to_vec).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r17_a_line_that_only_looks_like_a_mark_is_the_files_own() {
        let hash = "a".repeat(40);
        assert!(holds_marks(format!("x\n<<<<<<< {hash}\ny\n").as_bytes()));
        assert!(holds_marks(b">>>>>>> HEAD\n") && holds_marks(b">>>>>>> sillage/r1\n"));
        assert!(!holds_marks(
            b"<<<<<<< doc\n=======\n>>>>>>> quoted mail\n<<<<<<<\n"
        ));
    }

    #[test]
    fn reads_gits_merge_and_writes_its_index() {
        let (tree, object) = ("a".repeat(40), "b".repeat(40));
        let text = format!("{tree}\0100644 {object} 1\tx y\0100644 {object} 2\tx y\0100644 {object} 3\tz\0");
        let merged = parse_merged(text.as_bytes()).unwrap();
        assert_eq!(
            (merged.tree.clone(), merged.files()),
            (tree, vec!["x y".to_owned(), "z".to_owned()])
        );
        let info = String::from_utf8(merged.index_info("00")).unwrap();
        assert!(info.starts_with("0 00\tx y\0"), "{info:?}");
        assert!(info.ends_with(&format!("100644 {object} 3\tz\0")), "{info:?}");
        assert_eq!(parse_merged(b"fatal: no"), None);
    }
}

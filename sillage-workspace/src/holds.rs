//! What holds a worktree (R19).
//!
//! git's own idea of a clean worktree loses ignored files, files edited under index flags, what is only staged, and
//! commits of a detached head; this one does not.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use sillage_core::ports::workspace::{Hold, WorkspaceError, WorktreeState};

use crate::folders::{exists, remove_file};
use crate::git::names;
use crate::repository::{Listed, Repo};
use crate::scan;
use crate::worktree::{Head, as_path};

/// What was made for a worktree, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made<'a> {
    pub(crate) branch: Option<&'a str>,
    pub(crate) base: Option<&'a str>,
}

/// Which files hold a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilesThatHold {
    /// All that are in no commit.
    All,
    /// Those that git does not ignore.
    NotIgnored,
}

impl Repo<'_> {
    /// The worktrees that git lists and that lie in our folder, with what holds each.
    pub(crate) async fn list(&self, integration: &str) -> Result<Vec<WorktreeState>, WorkspaceError> {
        let mut states = Vec::new();
        for entry in self.worktrees().await? {
            if self.folders.place(&entry.path).is_err() {
                continue;
            }
            let held_by = self.held_by(&entry, integration).await;
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

    /// What holds a worktree of the list. One that cannot be looked at is held by that, and hides no other.
    pub(crate) async fn held_by(&self, entry: &Listed, integration: &str) -> Vec<Hold> {
        self.try_held_by(entry, integration)
            .await
            .unwrap_or_else(|error| vec![Hold::Changed(error.to_string())])
    }

    async fn try_held_by(&self, entry: &Listed, integration: &str) -> Result<Vec<Hold>, WorkspaceError> {
        let lease = self.recorded(&entry.path)?;
        let made = Made {
            branch: lease.as_ref().map(|lease| lease.branch.as_str()),
            base: lease.as_ref().map(|lease| lease.wish.base.as_str()),
        };
        if !exists(&entry.path) {
            return self.holds_on_entry(entry, made).await;
        }
        match self.admin(&entry.path) {
            Ok(admin) => {
                self.holds(entry, &admin, made, integration, FilesThatHold::All)
                    .await
            }
            Err(WorkspaceError::WorktreeLost { why, .. }) => Ok(vec![Hold::Changed(why)]),
            Err(error) => Err(error),
        }
    }

    /// What holds git's entry of a worktree whose folder is gone: a lock, or the only name of a commit.
    pub(crate) async fn holds_on_entry(
        &self,
        entry: &Listed,
        made: Made<'_>,
    ) -> Result<Vec<Hold>, WorkspaceError> {
        let mut holds: Vec<Hold> = entry.lock.clone().map(Hold::Lock).into_iter().collect();
        let Some(admin) = self.admin_of(&entry.path) else {
            return Ok(holds);
        };
        holds.extend(submodules_in(&admin));
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

    /// What holds a worktree whose folder and entry name each other.
    pub(crate) async fn holds(
        &self,
        entry: &Listed,
        admin: &Path,
        made: Made<'_>,
        integration: &str,
        which: FilesThatHold,
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
        let mut nested: BTreeSet<PathBuf> = self.oddities(path).await?.nested.into_iter().collect();
        if let Some(commit) = head.commit.as_deref().or(made.base) {
            if let Some(base) = made.base {
                nested.extend(self.new_gitlinks(base, commit).await?);
            }
            let fresh = self.folders.place(path)?.fresh_index;
            let mut files = self.uncommitted(path, path, &fresh, commit, which).await?;
            files.extend(self.only_staged(path, admin, &fresh, commit, made.base).await?);
            files.retain(|file| !nested.iter().any(|folder| file.starts_with(folder)));
            if !files.is_empty() {
                holds.push(Hold::Files(files.into_iter().collect()));
            }
        }
        holds.extend(nested.into_iter().map(Hold::NestedRepository));
        holds.extend(submodules_in(admin));
        let commits = self.unmerged(&head, made, integration).await?;
        if commits > 0 {
            holds.push(Hold::Commits(commits));
        }
        holds.extend(scan::processes_in(path).into_iter().map(Hold::Process));
        Ok(holds)
    }

    /// Files that the commit does not have so: changed, new or ignored. A folder of new files counts as one. `made_at`
    /// is where the worktree was made, when its files lie elsewhere by now.
    ///
    /// A fresh index sees through flags that hide changes, no file is taken for unchanged by its date, and no name for
    /// another that differs by its case only, whatever the repository is set to.
    pub(crate) async fn uncommitted(
        &self,
        made_at: &Path,
        path: &Path,
        index: &Path,
        commit: &str,
        which: FilesThatHold,
    ) -> Result<BTreeSet<PathBuf>, WorkspaceError> {
        let blocking = self.oddities(path).await?.blocking;
        if !blocking.is_empty() {
            // git would wait for them.
            return Ok(blocking.into_iter().collect());
        }
        remove_file(index)?;
        self.fill(path, index, commit).await?;
        self.mark_left_out(made_at, path, index).await?;
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
        let new = match which {
            FilesThatHold::All => new,
            FilesThatHold::NotIgnored => new.arg("--exclude-standard"),
        };
        // Files are told apart by case where the system does so, also when the repository says that it does not.
        let new = if cfg!(target_os = "linux") {
            new.set("core.ignorecase", "false")
        } else {
            new
        };
        let mut names = changed.bytes().await?;
        names.extend(new.bytes().await?);
        Ok(paths(&names).collect())
    }

    /// Files of which the worktree's index has a content that no commit of the worktree has: what was staged and then
    /// edited or taken back. An index that is only behind, as a crash between a commit and its index leaves it, has
    /// none.
    async fn only_staged(
        &self,
        path: &Path,
        admin: &Path,
        copy: &Path,
        commit: &str,
        base: Option<&str>,
    ) -> Result<Vec<PathBuf>, WorkspaceError> {
        // A copy, for git writes what it finds out about files into an index.
        if !self.copy_index(&admin.join("index"), copy)? {
            return Ok(Vec::new());
        }
        let call = self
            .files(path, copy, "diff-index --cached --raw -z --ignore-submodules=all")
            .await?;
        let mut staged = parse_staged(&call.arg(commit).bytes().await?);
        if staged.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.contents(commit, base).await?;
        staged.retain(|(content, _)| !known.contains(content));
        Ok(staged.into_iter().map(|(_, path)| path).collect())
    }

    /// The contents that the commits from the base to this one have; without a base, those of this one.
    async fn contents(&self, commit: &str, base: Option<&str>) -> Result<HashSet<String>, WorkspaceError> {
        let first = base.unwrap_or(commit);
        let since = self.objects("rev-list --objects --no-object-names").await?;
        let since = since.args([commit, &format!("^{first}")]).text().await?;
        let tree = self
            .objects("ls-tree -r --object-only")
            .await?
            .arg(first)
            .text()
            .await?;
        Ok(since.lines().chain(tree.lines()).map(str::to_owned).collect())
    }

    /// Repositories within that commits name and the base does not. Nobody else may have what the names stand for.
    async fn new_gitlinks(&self, base: &str, commit: &str) -> Result<Vec<PathBuf>, WorkspaceError> {
        let call = self.objects("diff-tree -r -z --no-renames").await?;
        Ok(parse_new_gitlinks(&call.args([base, commit]).bytes().await?))
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
}

/// Where the head is, when that is not the branch made for the worktree. Where no record tells which that is, any
/// place is another.
fn other_branch(head: &Head, made: Option<&str>) -> Result<Option<String>, WorkspaceError> {
    let wanted = made.map(names::branch_reference).transpose()?;
    Ok(match (&head.reference, wanted) {
        (Some(reference), Some(wanted)) if *reference == wanted => None,
        (Some(reference), _) => Some(reference.trim_start_matches("refs/heads/").to_owned()),
        (None, _) => Some(format!(
            "detached at {}",
            head.commit.as_deref().unwrap_or("nothing")
        )),
    })
}

/// Repositories of submodules that lie in the worktree's own part of the git folder, and would go with it.
fn submodules_in(admin: &Path) -> impl Iterator<Item = Hold> {
    let modules = fs::read_dir(admin.join("modules"))
        .into_iter()
        .flatten()
        .flatten();
    modules.map(|module| Hold::NestedRepository(Path::new(".git/modules").join(module.file_name())))
}

/// Reads `diff-tree -r -z`: `:old new old new status\0path\0`; the paths that became gitlinks.
fn parse_new_gitlinks(bytes: &[u8]) -> Vec<PathBuf> {
    let mut parts = bytes.split(|byte| *byte == 0);
    let mut found = Vec::new();
    while let (Some(change), Some(path)) = (parts.next(), parts.next()) {
        let change = String::from_utf8_lossy(change);
        let mut modes = change.trim_start_matches(':').split(' ');
        let (old, new) = (modes.next(), modes.next());
        if new == Some("160000") && old != Some("160000") {
            found.push(as_path(path));
        }
    }
    found
}

/// Reads `diff-index --raw -z`: `:mode mode content content status\0path\0`; what the index has, by content. What it has
/// not is none.
fn parse_staged(bytes: &[u8]) -> Vec<(String, PathBuf)> {
    let mut parts = bytes.split(|byte| *byte == 0);
    let mut found = Vec::new();
    while let (Some(change), Some(path)) = (parts.next(), parts.next()) {
        let change = String::from_utf8_lossy(change);
        let mut words = change.split(' ').skip(3);
        if let (Some(content), Some(status)) = (words.next(), words.next())
            && status != "D"
        {
            found.push((content.to_owned(), as_path(path)));
        }
    }
    found
}

fn paths(names: &[u8]) -> impl Iterator<Item = PathBuf> {
    names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(as_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_gitlinks_that_the_base_does_not_have() {
        let raw = b":000000 160000 0 1 A\0new\0:160000 160000 1 2 M\0moved\0:100644 160000 1 2 T\0file\0:160000 000000 1 0 D\0gone\0";
        assert_eq!(
            parse_new_gitlinks(raw),
            [PathBuf::from("new"), PathBuf::from("file")]
        );
        assert!(parse_new_gitlinks(b"").is_empty());
    }

    #[test]
    fn reads_what_is_staged() {
        let raw = b":100644 100644 1 2 M\0a b\0:100644 000000 1 0 D\0gone\0:000000 100644 0 3 A\0new\0:100644 000000 1 0 U\0open\0";
        let expected = [("2", "a b"), ("3", "new"), ("0", "open")];
        let expected = expected.map(|(content, path)| (content.to_owned(), PathBuf::from(path)));
        assert_eq!(parse_staged(raw), expected);
        assert!(parse_staged(b"").is_empty());
    }
}

//! Merges begun in worktrees, looks at a checkout, and folders for checks, in memory.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use sillage_core::ports::workspace::{
    Checkout, FileStamp, MergeBegun, MergeWanted, WorkspaceError, Worktree,
};

use super::State;
use crate::workspace::history::Files;

/// The mark of a conflict that nobody resolved.
const MARK: &str = "<<<<<<< ";

impl State {
    pub(super) fn begin_merge(
        &mut self,
        worktree: &Worktree,
        wish: &MergeWanted,
    ) -> Result<MergeBegun, WorkspaceError> {
        let onto = self.branch_tip(&wish.into).unwrap_or_else(|| wish.base.clone());
        let Err(conflicts) = self.history.merge(&wish.commit, &onto) else {
            return Ok(MergeBegun {
                onto,
                files: Vec::new(),
            });
        };
        let (ours, theirs) = (self.history.files(&wish.commit), self.history.files(&onto));
        let mut files = theirs.clone();
        files.extend(ours.clone());
        for name in &conflicts {
            let text = |side: &Files| side.get(name).cloned().unwrap_or_default();
            let both = format!(
                "{MARK}ours\n{}=======\n{}>>>>>>> theirs\n",
                text(&ours),
                text(&theirs)
            );
            files.insert(name.clone(), both);
        }
        let leased = self
            .worktrees
            .get_mut(&worktree.path)
            .filter(|leased| leased.files.is_some());
        let leased = leased.ok_or_else(|| WorkspaceError::WorktreeLost {
            path: worktree.path.clone(),
            why: "is gone".to_owned(),
        })?;
        leased.files = Some(files);
        leased.merging = Some(onto.clone());
        let files = conflicts.iter().map(|file| file.display().to_string()).collect();
        Ok(MergeBegun { onto, files })
    }

    pub(super) fn unresolved(&self, worktree: &Worktree, files: &[String]) -> Vec<String> {
        let held = self
            .worktrees
            .get(&worktree.path)
            .and_then(|leased| leased.files.as_ref());
        let open = |file: &&String| {
            held.and_then(|held| held.get(Path::new(file)))
                .is_some_and(|content| content.contains(MARK))
        };
        files.iter().filter(open).cloned().collect()
    }

    /// The commit that a merge under way brings in, when no file shows a conflict any more.
    pub(super) fn concluded(&self, worktree: &Worktree) -> Option<String> {
        let leased = self.worktrees.get(&worktree.path)?;
        let open = leased
            .files
            .as_ref()?
            .values()
            .any(|content| content.contains(MARK));
        leased.merging.clone().filter(|_| !open)
    }

    pub(super) fn abandon_merge(
        &mut self,
        worktree: &Worktree,
        tip: &str,
        run: &str,
        step: &str,
    ) -> Result<Option<String>, WorkspaceError> {
        let back = Worktree {
            base: tip.to_owned(),
            ..worktree.clone()
        };
        let there = self
            .worktrees
            .get(&worktree.path)
            .is_some_and(|leased| leased.files.is_some());
        let held = match there {
            true => self.commit(worktree)?,
            false => self
                .branch_tip(&worktree.branch)
                .unwrap_or_else(|| tip.to_owned()),
        };
        let rescued = (held != back.base).then(|| self.rescue(run, step, held));
        self.history
            .refs
            .insert(format!("refs/heads/{}", worktree.branch), back.base);
        if there {
            self.fill(&worktree.path);
        }
        if let Some(leased) = self.worktrees.get_mut(&worktree.path) {
            leased.merging = None;
        }
        Ok(rescued)
    }

    pub(super) fn checkout(&self, folder: &Path, also: &[PathBuf]) -> Checkout {
        let held: Files = match self.worktrees.get(folder) {
            Some(leased) => leased.files.clone().unwrap_or_default(),
            None => {
                let below = |(path, content): (&PathBuf, &String)| {
                    Some((path.strip_prefix(folder).ok()?.to_owned(), content.clone()))
                };
                self.loose.iter().filter_map(below).collect()
            }
        };
        let committed = self
            .worktrees
            .get(folder)
            .and_then(|leased| self.branch_tip(&leased.worktree.branch));
        let committed = committed.map(|tip| self.history.files(&tip)).unwrap_or_default();
        let names = held.keys().chain(committed.keys());
        let changed = names.filter(|name| held.get(*name) != committed.get(*name));
        let stamped = changed
            .chain(also)
            .map(|name| (name.clone(), held.get(name).map(stamp)));
        Checkout {
            at: 0,
            files: stamped.collect(),
            too_many: false,
        }
    }

    pub(super) fn check_folder(&mut self, run: &str, commit: &str) -> PathBuf {
        let folder = self.clear_check(run);
        for (file, content) in self.history.files(commit) {
            self.loose.insert(folder.join(file), content);
        }
        folder
    }

    pub(super) fn clear_check(&mut self, run: &str) -> PathBuf {
        let folder = Path::new("/memory/worktrees").join(run).join("+check");
        self.loose.retain(|path, _| !path.starts_with(&folder));
        folder
    }
}

/// There is no clock here: what a file holds stands for when it was written.
fn stamp(content: &String) -> FileStamp {
    let mut hash = DefaultHasher::new();
    content.hash(&mut hash);
    FileStamp {
        size: content.len() as u64,
        modified: hash.finish(),
        changed: 0,
        number: 0,
    }
}

//! Commits and branches in memory: as much of git's model as a [`super::MemoryWorkspace`] needs.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::path::PathBuf;

use sillage_core::ports::workspace::{DiffStat, MergeWanted};

/// The files of a commit or of a worktree: path to content.
pub(super) type Files = BTreeMap<PathBuf, String>;

#[derive(Debug, Clone)]
struct Commit {
    parents: Vec<String>,
    /// One more than the greatest of the parents': an ancestor's is always smaller, which bounds every search.
    generation: u64,
    files: Files,
}

#[derive(Debug, Default)]
pub(super) struct History {
    commits: HashMap<String, Commit>,
    pub(super) refs: BTreeMap<String, String>,
}

impl History {
    /// Adds a commit. Its hash is its number in the order of creation, written as git writes hashes.
    pub(super) fn commit(&mut self, parents: Vec<String>, files: Files) -> String {
        let hash = format!("{:040x}", self.commits.len() + 1);
        let generation = parents
            .iter()
            .map(|parent| self.generation(parent) + 1)
            .max()
            .unwrap_or(0);
        self.commits.insert(
            hash.clone(),
            Commit {
                parents,
                generation,
                files,
            },
        );
        hash
    }

    pub(super) fn knows(&self, commit: &str) -> bool {
        self.commits.contains_key(commit)
    }

    pub(super) fn files(&self, commit: &str) -> Files {
        self.commits
            .get(commit)
            .map(|found| found.files.clone())
            .unwrap_or_default()
    }

    fn generation(&self, commit: &str) -> u64 {
        self.commits.get(commit).map_or(0, |found| found.generation)
    }

    fn parents(&self, commit: &str) -> &[String] {
        self.commits.get(commit).map_or(&[], |found| &found.parents)
    }

    /// Whether `tip` is `commit` or descends from it. Visits no commit older than `commit`.
    pub(super) fn contains(&self, tip: &str, commit: &str) -> bool {
        let floor = self.generation(commit);
        let mut seen = HashSet::new();
        let mut left = vec![tip];
        while let Some(next) = left.pop() {
            if next == commit {
                return true;
            }
            if self.generation(next) > floor && seen.insert(next) {
                left.extend(self.parents(next).iter().map(String::as_str));
            }
        }
        false
    }

    /// How many commits `tip` has that `base` has not.
    pub(super) fn count(&self, base: &str, tip: &str) -> u32 {
        let mut seen = HashSet::new();
        let mut left = vec![tip];
        while let Some(next) = left.pop() {
            if !self.contains(base, next) && seen.insert(next) {
                left.extend(self.parents(next).iter().map(String::as_str));
            }
        }
        u32::try_from(seen.len()).unwrap_or(u32::MAX)
    }

    /// The youngest commit that both contain.
    fn merge_base<'a>(&'a self, ours: &'a str, theirs: &'a str) -> Option<&'a str> {
        let mut left = BinaryHeap::from([(self.generation(ours), ours)]);
        while let Some((_, next)) = left.pop() {
            if self.contains(theirs, next) {
                return Some(next);
            }
            left.extend(
                self.parents(next)
                    .iter()
                    .map(|parent| (self.generation(parent), parent.as_str())),
            );
        }
        None
    }

    /// The merged files, or those changed differently on both sides.
    pub(super) fn merge(&self, ours: &str, theirs: &str) -> Result<Files, Vec<PathBuf>> {
        let base = self
            .merge_base(ours, theirs)
            .map(|base| self.files(base))
            .unwrap_or_default();
        merge_files(&base, &self.files(ours), &self.files(theirs))
    }

    /// The same for a merge that is wanted, which may be of parts only.
    pub(super) fn merge_wanted(&self, ours: &str, wish: &MergeWanted) -> Result<Files, Vec<PathBuf>> {
        if wish.parts.is_empty() {
            return self.merge(ours, &wish.commit);
        }
        let mut merged = self.files(ours);
        for part in &wish.parts {
            merged = merge_files(&self.files(&part.onto), &merged, &self.files(&part.tip))?;
        }
        Ok(merged)
    }

    /// Files that differ, and their lines counted whole: a changed file counts all its old and new lines.
    pub(super) fn diff(&self, from: &str, to: &str) -> DiffStat {
        if from == to {
            return DiffStat::default();
        }
        let (old, new) = (self.files(from), self.files(to));
        let names: BTreeSet<&PathBuf> = old.keys().chain(new.keys()).collect();
        let lines = |text: Option<&String>| {
            u32::try_from(text.map_or(0, |text| text.lines().count())).unwrap_or(u32::MAX)
        };
        let mut stat = DiffStat::default();
        for name in names {
            let (before, after) = (old.get(name), new.get(name));
            if before != after {
                stat.files += 1;
                stat.insertions += lines(after);
                stat.deletions += lines(before);
            }
        }
        stat
    }
}

/// Merges by whole files: the merged files, or those changed differently on both sides.
fn merge_files(base: &Files, left: &Files, right: &Files) -> Result<Files, Vec<PathBuf>> {
    let names: BTreeSet<PathBuf> = [base, left, right]
        .into_iter()
        .flat_map(Files::keys)
        .cloned()
        .collect();
    let mut merged = Files::new();
    let mut conflicts = Vec::new();
    for name in names {
        let (was, a, b) = (base.get(&name), left.get(&name), right.get(&name));
        let now = match (a == was, b == was) {
            (true, _) => b,
            (false, true) => a,
            (false, false) if a == b => a,
            (false, false) => {
                conflicts.push(name);
                continue;
            }
        };
        if let Some(content) = now {
            merged.insert(name, content.clone());
        }
    }
    if conflicts.is_empty() {
        Ok(merged)
    } else {
        Err(conflicts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(entries: &[(&str, &str)]) -> Files {
        entries
            .iter()
            .map(|(name, content)| (PathBuf::from(name), (*content).to_owned()))
            .collect()
    }

    #[test]
    fn merges_changes_of_different_files_and_names_the_files_changed_twice() {
        let mut history = History::default();
        let base = history.commit(vec![], files(&[("a", "1\n"), ("b", "1\n")]));
        let left = history.commit(vec![base.clone()], files(&[("a", "2\n"), ("b", "1\n")]));
        let right = history.commit(vec![base.clone()], files(&[("a", "1\n")]));
        let clash = history.commit(vec![base.clone()], files(&[("a", "3\n"), ("b", "1\n")]));
        assert_eq!(history.merge(&left, &right), Ok(files(&[("a", "2\n")])));
        assert_eq!(history.merge(&left, &clash), Err(vec![PathBuf::from("a")]));
    }

    #[test]
    fn counts_commits_and_finds_ancestors() {
        let mut history = History::default();
        let base = history.commit(vec![], Files::new());
        let one = history.commit(vec![base.clone()], Files::new());
        let two = history.commit(vec![one.clone()], Files::new());
        let side = history.commit(vec![base.clone()], Files::new());
        let merge = history.commit(vec![two.clone(), side.clone()], Files::new());
        assert_eq!(history.count(&base, &merge), 4);
        assert_eq!(history.count(&side, &merge), 3);
        assert!(history.contains(&merge, &side) && !history.contains(&two, &side));
    }

    #[test]
    fn counts_the_lines_of_files_that_differ() {
        let mut history = History::default();
        let from = history.commit(vec![], files(&[("a", "1\n2\n"), ("same", "x\n")]));
        let to = history.commit(vec![from.clone()], files(&[("b", "1\n"), ("same", "x\n")]));
        assert_eq!(
            history.diff(&from, &to),
            DiffStat {
                files: 2,
                insertions: 1,
                deletions: 2
            }
        );
    }
}

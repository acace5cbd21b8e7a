//! [`MemoryWorkspace`]: one repository in memory, whose calls are recorded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{
    Checkout, Committed, DiffStat, Hold, MergeBegun, MergeOutcome, MergeWanted, Removal, Repository,
    Restarted, WorkspaceError, Worktree, WorktreeState, WorktreeWanted,
};

use super::history::{Files, History};

mod call;
mod conflicts;

pub use call::Call;

/// The branch that the person of a [`MemoryWorkspace`] stands on.
const PERSONS_BRANCH: &str = "main";

/// One repository in memory, with the same answers as git's for the same story, merged by whole files.
///
/// Nothing is on the disk: an agent's work is written with [`MemoryWorkspace::write`], to a worktree's folder or to
/// any other. Every call is recorded ([`MemoryWorkspace::calls`]) and can be made to fail
/// ([`MemoryWorkspace::fail_next`]).
#[derive(Debug)]
pub struct MemoryWorkspace {
    root: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    history: History,
    worktrees: BTreeMap<PathBuf, Leased>,
    /// Files in folders that are not worktrees.
    loose: Files,
    calls: Vec<Call>,
    faults: VecDeque<WorkspaceError>,
}

#[derive(Debug, Clone)]
struct Leased {
    wish: WorktreeWanted,
    worktree: Worktree,
    /// None: the folder was taken away.
    files: Option<Files>,
    /// The commit that a merge under way brings in.
    merging: Option<String>,
}

impl MemoryWorkspace {
    /// A repository at `root` with one empty commit on `main`, on which the person stands.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let mut state = State::default();
        let first = state.history.commit(Vec::new(), Files::new());
        state
            .history
            .refs
            .insert(format!("refs/heads/{PERSONS_BRANCH}"), first);
        Self {
            root: root.into(),
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the call, then fails if it was told to.
    fn called(&self, call: Call) -> Result<MutexGuard<'_, State>, WorkspaceError> {
        let mut state = self.state();
        state.calls.push(call);
        match state.faults.pop_front() {
            Some(fault) => Err(fault),
            None => Ok(state),
        }
    }

    /// Writes a file, as an agent does: uncommitted when `folder` is a worktree.
    pub fn write(&self, folder: &Path, file: impl AsRef<Path>, content: impl Into<String>) {
        let mut state = self.state();
        let file = file.as_ref();
        match state
            .worktrees
            .get_mut(folder)
            .and_then(|leased| leased.files.as_mut())
        {
            Some(files) => files.insert(file.to_owned(), content.into()),
            None => state.loose.insert(folder.join(file), content.into()),
        };
    }

    /// Takes the worktree's folder away, as someone does by hand.
    pub fn lose(&self, folder: &Path) {
        if let Some(leased) = self.state().worktrees.get_mut(folder) {
            leased.files = None;
        }
    }

    /// Points a reference (`refs/heads/…`) to a commit, as someone else does.
    pub fn point(&self, reference: &str, commit: &str) {
        self.state()
            .history
            .refs
            .insert(reference.to_owned(), commit.to_owned());
    }

    /// Makes the next call fail; told several times, as many calls fail, in order.
    pub fn fail_next(&self, fault: WorkspaceError) {
        self.state().faults.push_back(fault);
    }

    /// The calls received so far, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// The commit that a reference (`refs/heads/…`) points to.
    #[must_use]
    pub fn tip(&self, reference: &str) -> Option<String> {
        self.state().history.refs.get(reference).cloned()
    }

    /// A file's content in a commit.
    #[must_use]
    pub fn content(&self, commit: &str, file: impl AsRef<Path>) -> Option<String> {
        self.state().history.files(commit).get(file.as_ref()).cloned()
    }
}

impl State {
    fn lease(&mut self, wish: &WorktreeWanted) -> Result<Worktree, WorkspaceError> {
        let path = Path::new("/memory/worktrees")
            .join(&wish.run)
            .join(wish.step.replace('/', "+"));
        if let Some(leased) = self
            .worktrees
            .get(&path)
            .filter(|leased| leased.wish == *wish)
            .cloned()
        {
            if leased.files.is_none() {
                self.fill(&path);
            }
            return Ok(leased.worktree);
        }
        if !self.history.knows(&wish.base) {
            let words = format!("there is no commit {}", wish.base);
            return Err(WorkspaceError::Git {
                command: "worktree add".to_owned(),
                words,
            });
        }
        let mut branch = wish.branch.clone();
        let mut attempt = 1;
        while self.history.refs.contains_key(&format!("refs/heads/{branch}")) {
            attempt += 1;
            branch = format!("{}-{attempt}", wish.branch);
        }
        self.history
            .refs
            .insert(format!("refs/heads/{branch}"), wish.base.clone());
        let worktree = Worktree {
            repository: wish.repository.clone(),
            path: path.clone(),
            branch,
            base: wish.base.clone(),
        };
        let files = Some(self.history.files(&wish.base));
        self.worktrees.insert(
            path,
            Leased {
                wish: wish.clone(),
                worktree: worktree.clone(),
                files,
                merging: None,
            },
        );
        Ok(worktree)
    }

    /// Puts the files of its branch's tip into a worktree.
    fn fill(&mut self, path: &Path) {
        let Some(leased) = self.worktrees.get(path) else {
            return;
        };
        let (branch, base) = (leased.worktree.branch.clone(), leased.worktree.base.clone());
        let tip = self
            .history
            .refs
            .entry(format!("refs/heads/{branch}"))
            .or_insert(base)
            .clone();
        let files = self.history.files(&tip);
        if let Some(leased) = self.worktrees.get_mut(path) {
            leased.files = Some(files);
        }
    }

    fn branch_tip(&self, branch: &str) -> Option<String> {
        self.history.refs.get(&format!("refs/heads/{branch}")).cloned()
    }

    /// Commits what the worktree holds beyond its branch; the tip after.
    fn commit(&mut self, worktree: &Worktree) -> Result<String, WorkspaceError> {
        let lost = |why: &str| WorkspaceError::WorktreeLost {
            path: worktree.path.clone(),
            why: why.to_owned(),
        };
        let files = match self.worktrees.get(&worktree.path) {
            Some(Leased {
                worktree: known,
                files: Some(files),
                ..
            }) if known.branch == worktree.branch => files.clone(),
            Some(Leased { files: Some(_), .. }) => return Err(lost("is another worktree")),
            Some(Leased { files: None, .. }) | None => return Err(lost("is gone")),
        };
        let tip = self
            .branch_tip(&worktree.branch)
            .ok_or_else(|| lost("has no branch any more"))?;
        let merged = self.concluded(worktree);
        if self.history.files(&tip) == files && merged.is_none() {
            return Ok(tip);
        }
        if let Some(leased) = self
            .worktrees
            .get_mut(&worktree.path)
            .filter(|_| merged.is_some())
        {
            leased.merging = None;
        }
        let parents = std::iter::once(tip).chain(merged).collect();
        let tip = self.history.commit(parents, files);
        self.history
            .refs
            .insert(format!("refs/heads/{}", worktree.branch), tip.clone());
        Ok(tip)
    }

    fn merge(&mut self, wish: &MergeWanted) -> MergeOutcome {
        let into = format!("refs/heads/{}", wish.into);
        let tip = self
            .history
            .refs
            .entry(into.clone())
            .or_insert_with(|| wish.base.clone())
            .clone();
        if self.history.contains(&tip, &wish.commit) {
            return MergeOutcome::Merged(tip);
        }
        match self.history.merge_wanted(&tip, wish) {
            Ok(files) => {
                let merged = self.history.commit(vec![tip, wish.commit.clone()], files);
                self.history.refs.insert(into, merged.clone());
                MergeOutcome::Merged(merged)
            }
            Err(files) => {
                MergeOutcome::Conflict(files.iter().map(|file| file.display().to_string()).collect())
            }
        }
    }

    fn restart(&mut self, worktree: &Worktree, run: &str, step: &str) -> Result<Restarted, WorkspaceError> {
        let there = self
            .worktrees
            .get(&worktree.path)
            .is_some_and(|leased| leased.files.is_some());
        let tip = if there {
            self.commit(worktree)?
        } else {
            self.branch_tip(&worktree.branch)
                .unwrap_or_else(|| worktree.base.clone())
        };
        let rescued = (tip != worktree.base).then(|| self.rescue(run, step, tip));
        self.history
            .refs
            .insert(format!("refs/heads/{}", worktree.branch), worktree.base.clone());
        self.fill(&worktree.path);
        if let Some(leased) = self.worktrees.get_mut(&worktree.path) {
            leased.worktree = worktree.clone();
        }
        Ok(Restarted {
            worktree: worktree.clone(),
            rescued,
        })
    }

    fn rescue(&mut self, run: &str, step: &str, tip: String) -> String {
        let mut number = 1;
        let name = loop {
            let name = format!("refs/sillage/rescue/{run}/{step}/{number}");
            if !self.history.refs.contains_key(&name) {
                break name;
            }
            number += 1;
        };
        self.history.refs.insert(name.clone(), tip);
        name
    }

    fn holds(&self, leased: &Leased, integration: &str) -> Vec<Hold> {
        let worktree = &leased.worktree;
        let mut holds = Vec::new();
        let Some(files) = &leased.files else { return holds };
        let Some(tip) = self.branch_tip(&worktree.branch) else {
            return holds;
        };
        let committed = self.history.files(&tip);
        let names: BTreeSet<&PathBuf> = files.keys().chain(committed.keys()).collect();
        let changed: Vec<PathBuf> = names
            .into_iter()
            .filter(|name| files.get(*name) != committed.get(*name))
            .cloned()
            .collect();
        if !changed.is_empty() {
            holds.push(Hold::Files(changed));
        }
        let merged = self
            .branch_tip(integration)
            .unwrap_or_else(|| worktree.base.clone());
        let ahead = self.history.count(&merged, &tip);
        if ahead > 0 {
            holds.push(Hold::Commits(ahead));
        }
        holds
    }
}

#[async_trait]
impl Workspace for MemoryWorkspace {
    async fn inspect(&self, folder: &Path) -> Result<Option<Repository>, WorkspaceError> {
        let state = self.called(Call::Inspect(folder.to_owned()))?;
        let head = state
            .branch_tip(PERSONS_BRANCH)
            .filter(|_| folder.starts_with(&self.root));
        Ok(head.map(|head| Repository {
            root: self.root.clone(),
            common_dir: self.root.join(".git"),
            head,
            branch: Some(PERSONS_BRANCH.to_owned()),
            warnings: Vec::new(),
            uncommitted: 0,
        }))
    }

    async fn lease(&self, wish: &WorktreeWanted) -> Result<Worktree, WorkspaceError> {
        self.called(Call::Lease(wish.clone()))?.lease(wish)
    }

    async fn commit(&self, worktree: &Worktree, message: &str) -> Result<Committed, WorkspaceError> {
        let mut state = self.called(Call::Commit(worktree.clone(), message.to_owned()))?;
        let tip = state.commit(worktree)?;
        let commits = state.history.count(&worktree.base, &tip);
        let diff = state.history.diff(&worktree.base, &tip);
        Ok(Committed { tip, commits, diff })
    }

    async fn merge(&self, wish: &MergeWanted) -> Result<MergeOutcome, WorkspaceError> {
        Ok(self.called(Call::Merge(wish.clone()))?.merge(wish))
    }

    async fn restart(&self, worktree: &Worktree, run: &str, step: &str) -> Result<Restarted, WorkspaceError> {
        self.called(Call::Restart(worktree.clone()))?
            .restart(worktree, run, step)
    }

    async fn begin_merge(
        &self,
        worktree: &Worktree,
        wish: &MergeWanted,
    ) -> Result<MergeBegun, WorkspaceError> {
        let call = Call::BeginMerge(worktree.clone(), wish.clone());
        self.called(call)?.begin_merge(worktree, wish)
    }

    async fn unresolved(&self, worktree: &Worktree, files: &[String]) -> Result<Vec<String>, WorkspaceError> {
        let call = Call::Unresolved(worktree.clone(), files.to_vec());
        Ok(self.called(call)?.unresolved(worktree, files))
    }

    async fn abandon_merge(
        &self,
        worktree: &Worktree,
        tip: &str,
        run: &str,
        step: &str,
    ) -> Result<Option<String>, WorkspaceError> {
        let call = Call::AbandonMerge(worktree.clone(), tip.to_owned());
        self.called(call)?.abandon_merge(worktree, tip, run, step)
    }

    async fn checkout(&self, repository: &Path, also: &[PathBuf]) -> Result<Checkout, WorkspaceError> {
        let state = self.called(Call::Checkout(repository.to_owned()))?;
        Ok(state.checkout(repository, also))
    }

    async fn check_folder(
        &self,
        _repository: &Path,
        run: &str,
        commit: &str,
    ) -> Result<PathBuf, WorkspaceError> {
        let call = Call::CheckFolder(run.to_owned(), commit.to_owned());
        Ok(self.called(call)?.check_folder(run, commit))
    }

    async fn clear_check(&self, _repository: &Path, run: &str) -> Result<(), WorkspaceError> {
        self.called(Call::ClearCheck(run.to_owned()))?.clear_check(run);
        Ok(())
    }

    async fn lost(&self, worktree: &Worktree) -> Result<Option<String>, WorkspaceError> {
        let state = self.state();
        let there = state
            .worktrees
            .get(&worktree.path)
            .is_some_and(|leased| leased.files.is_some());
        Ok((!there).then(|| "is gone".to_owned()))
    }

    async fn missing(&self, folder: &Path, files: &[PathBuf]) -> Result<Vec<PathBuf>, WorkspaceError> {
        let state = self.called(Call::Missing(folder.to_owned(), files.to_vec()))?;
        let there = |file: &PathBuf| {
            let content = match state.worktrees.get(folder) {
                Some(leased) => leased.files.as_ref().and_then(|files| files.get(file)),
                None => state.loose.get(&folder.join(file)),
            };
            file.components()
                .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
                && content.is_some_and(|content| !content.is_empty())
        };
        Ok(files.iter().filter(|file| !there(file)).cloned().collect())
    }

    async fn list(&self, repository: &Path, integration: &str) -> Result<Vec<WorktreeState>, WorkspaceError> {
        let state = self.called(Call::List(repository.to_owned()))?;
        let told = |leased: &Leased| WorktreeState {
            path: leased.worktree.path.clone(),
            branch: Some(leased.worktree.branch.clone()),
            held_by: state.holds(leased, integration),
        };
        Ok(state
            .worktrees
            .values()
            .filter(|leased| leased.files.is_some())
            .map(told)
            .collect())
    }

    async fn remove(&self, worktree: &Worktree, integration: &str) -> Result<Removal, WorkspaceError> {
        let mut state = self.called(Call::Remove(worktree.clone()))?;
        let Some(leased) = state.worktrees.get(&worktree.path) else {
            return Ok(Removal::Removed);
        };
        let holds = state.holds(leased, integration);
        if !holds.is_empty() {
            return Ok(Removal::Held(holds));
        }
        if let Some(leased) = state.worktrees.get_mut(&worktree.path) {
            leased.files = None;
        }
        Ok(Removal::Removed)
    }

    async fn diff(&self, _repository: &Path, from: &str, to: &str) -> Result<DiffStat, WorkspaceError> {
        Ok(self
            .called(Call::Diff(from.to_owned(), to.to_owned()))?
            .history
            .diff(from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace_suite::Scene;

    impl Scene for MemoryWorkspace {
        fn workspace(&self) -> &dyn Workspace {
            self
        }
        fn repository(&self) -> PathBuf {
            self.root.clone()
        }
        fn write(&self, folder: &Path, file: &str, content: &str) {
            MemoryWorkspace::write(self, folder, file, content);
        }
        fn lose(&self, folder: &Path) {
            MemoryWorkspace::lose(self, folder);
        }
        fn point(&self, reference: &str, commit: &str) {
            MemoryWorkspace::point(self, reference, commit);
        }
        fn tip(&self, reference: &str) -> Option<String> {
            MemoryWorkspace::tip(self, reference)
        }
        fn content(&self, commit: &str, file: &str) -> Option<String> {
            MemoryWorkspace::content(self, commit, file)
        }
        fn persons(&self) -> String {
            self.tip("refs/heads/main").unwrap_or_default()
        }
    }

    crate::workspace_suite!(conforms, MemoryWorkspace::new("/memory/repository"));

    #[tokio::test]
    async fn records_calls_and_fails_as_told() {
        let workspace = MemoryWorkspace::new("/r");
        let fault = WorkspaceError::Git {
            command: "rev-parse".into(),
            words: "told to".into(),
        };
        workspace.fail_next(fault.clone());
        assert_eq!(workspace.inspect(Path::new("/r")).await, Err(fault));
        assert!(
            workspace
                .inspect(Path::new("/elsewhere"))
                .await
                .unwrap()
                .is_none()
        );
        assert_eq!(
            workspace.calls(),
            [Call::Inspect("/r".into()), Call::Inspect("/elsewhere".into())]
        );
    }
}

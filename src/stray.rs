//! Looking for what an agent with a worktree of its own writes into the person's checkout (G6).
//!
//! The checkout is looked at when the step's session is opened and when its work is committed; both cost a few calls
//! of git, beside the opening and the commit. What was seen at first stands in a file of the run, so that it outlives
//! this process; whoever finds the session again notes there that nobody watched in between. Nothing is changed by
//! what is found: a look that fails is a word in the program's own log.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sillage_core::id::StepIndex;
use sillage_core::ports::workspace::{Checkout, WorkspaceError};
use sillage_core::ports::{RunFiles, Workspace};
use sillage_core::run::{CheckoutWatch, StraySeen};

/// Most files that the tool calls of one step are remembered to name.
const MOST_NAMED: usize = 10_000;

/// Files that tool calls name, by step, as far as this process heard of them.
#[derive(Debug, Default)]
pub(crate) struct Named {
    files: Mutex<HashMap<StepIndex, HashSet<PathBuf>>>,
}

impl Named {
    pub(crate) fn add(&self, step: StepIndex, paths: &[PathBuf]) {
        let absolute: Vec<&PathBuf> = paths.iter().filter(|path| path.is_absolute()).collect();
        if absolute.is_empty() {
            return;
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let known = files.entry(step).or_default();
        for path in absolute {
            if known.len() < MOST_NAMED {
                known.insert(path.clone());
            }
        }
    }

    fn names(&self, step: StepIndex, path: &Path) -> bool {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.get(&step).is_some_and(|known| known.contains(path))
    }
}

/// The first look, as it stands in its file.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    checkout: Checkout,
    /// Whether an engine died, or the run was stopped, since.
    cut: bool,
}

/// Looks at the checkout before the agent is told anything.
pub(crate) async fn begin(workspace: &dyn Workspace, disk: &dyn RunFiles, watch: &CheckoutWatch) {
    let looked = workspace.checkout(&watch.repository, &[]).await;
    let kept = match looked {
        Ok(checkout) => Kept { checkout, cut: false },
        Err(error) => return not_looked(watch, &error),
    };
    keep(disk, watch, &kept).await;
}

/// Notes that the session was found again.
pub(crate) async fn cut(disk: &dyn RunFiles, watch: &CheckoutWatch) {
    if let Some(kept) = read(disk, watch).await.filter(|kept| !kept.cut) {
        keep(disk, watch, &Kept { cut: true, ..kept }).await;
    }
}

/// Looks again, and tells what changed since.
pub(crate) async fn end(
    workspace: &dyn Workspace,
    disk: &dyn RunFiles,
    watch: &CheckoutWatch,
    named: &Named,
    step: StepIndex,
) -> StraySeen {
    let Some(Kept {
        checkout: before,
        cut,
    }) = read(disk, watch).await
    else {
        return StraySeen::default();
    };
    let also: Vec<PathBuf> = before.files.keys().cloned().collect();
    let after = match workspace.checkout(&watch.repository, &also).await {
        Ok(after) => after,
        Err(error) => {
            not_looked(watch, &error);
            return StraySeen::default();
        }
    };
    let mut changed = after.changed_since(&before);
    changed.retain(|path| {
        let path = watch.repository.join(path);
        !watch.apart.iter().any(|folder| path.starts_with(folder))
    });
    let is_named = |path: &&PathBuf| named.names(step, &watch.repository.join(path));
    StraySeen {
        named: changed.iter().filter(is_named).cloned().collect(),
        changed,
        cut,
    }
}

async fn read(disk: &dyn RunFiles, watch: &CheckoutWatch) -> Option<Kept> {
    serde_json::from_slice(&disk.read(&watch.file).await.ok()?).ok()
}

async fn keep(disk: &dyn RunFiles, watch: &CheckoutWatch, kept: &Kept) {
    let written = match serde_json::to_vec(kept) {
        Ok(bytes) => disk.write(&watch.file, bytes).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = written {
        tracing::warn!(file = %watch.file.display(), %error, "what the checkout was is not kept");
    }
}

fn not_looked(watch: &CheckoutWatch, error: &WorkspaceError) {
    tracing::warn!(repository = %watch.repository.display(), %error, "the checkout was not looked at");
}

#[cfg(test)]
mod tests {
    use sillage_testkit::workspace::MemoryWorkspace;

    use super::*;
    use crate::files::DiskFiles;

    #[tokio::test]
    async fn g6_what_changed_is_told_with_what_was_named_and_whether_nobody_watched() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = MemoryWorkspace::new("/memory/repository");
        let root = PathBuf::from("/memory/repository");
        let watch = CheckoutWatch {
            repository: root.clone(),
            file: folder.path().join("a/checkout.json"),
            apart: vec![root.join("state")],
        };
        let (named, step) = (Named::default(), StepIndex(2));
        assert_eq!(
            end(&workspace, &DiskFiles, &watch, &named, step).await,
            StraySeen::default()
        );
        workspace.write(&root, "mine", "mine\n");
        begin(&workspace, &DiskFiles, &watch).await;
        assert_eq!(
            end(&workspace, &DiskFiles, &watch, &named, step).await,
            StraySeen::default()
        );
        workspace.write(&root, "mine", "written\n");
        workspace.write(&root, "new", "new\n");
        workspace.write(&root, "state/db", "ours\n");
        named.add(step, &[root.join("new"), PathBuf::from("mine")]);
        named.add(StepIndex(3), &[root.join("mine")]);
        let mut expected = StraySeen {
            changed: ["mine", "new"].map(PathBuf::from).to_vec(),
            named: vec![PathBuf::from("new")],
            cut: false,
        };
        assert_eq!(end(&workspace, &DiskFiles, &watch, &named, step).await, expected);
        cut(&DiskFiles, &watch).await;
        expected.cut = true;
        assert_eq!(end(&workspace, &DiskFiles, &watch, &named, step).await, expected);
    }
}

//! Preparing a relaunch from an agent (R13): everything that is read, compared and refused before launch.

use sillage_core::changes::Changes;
use sillage_core::id::RunId;
use sillage_core::ports::store::Store;
use sillage_core::ports::workspace::Workspace;
use sillage_core::run::{NotRelaunched, RelaunchOf, Run, RunDefinition, Taken, relaunch_from};

use crate::launch::{LaunchError, LaunchRequest, prepare};

/// A relaunch that nothing stands in the way of.
#[derive(Debug)]
pub struct Relaunched {
    /// The new run.
    pub definition: RunDefinition,
    /// What its steps take from the earlier run, for [`Engine::relaunch`](crate::Engine::relaunch).
    pub taken: Vec<Taken>,
    /// What the task has otherwise than the earlier run had it.
    pub changes: Changes,
    /// What is worth a word before launch.
    pub warnings: Vec<String>,
}

/// Why a run was not relaunched. Nothing was started, and nothing was written but a version of the task.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelaunchError {
    /// The new run cannot be launched.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// What is upstream cannot be taken.
    #[error(transparent)]
    Refused(#[from] NotRelaunched),
    /// A commit of the earlier run is in its repository no more.
    #[error("commit {commit} of {agent}, on branch {branch}, is not in the repository any more: {why}")]
    CommitLost {
        /// The agent.
        agent: String,
        /// The commit.
        commit: String,
        /// The branch that held it.
        branch: String,
        /// What the workspace says.
        why: String,
    },
}

/// Reads and resolves all that a relaunch of the run `earlier` from the agent `from` needs, with the task's file as it
/// is now.
///
/// # Errors
/// [`RelaunchError`]: nothing was started.
pub async fn prepare_relaunch(
    request: &LaunchRequest,
    run: RunId,
    earlier: &Run,
    from: &str,
    store: &dyn Store,
    workspace: &dyn Workspace,
) -> Result<Relaunched, RelaunchError> {
    let (mut definition, mut warnings) = prepare(request, run, store, workspace).await?;
    let relaunch = relaunch_from(earlier, &definition.task, definition.repository.as_ref(), from)?;
    let work = relaunch.taken.iter().any(|taken| taken.work.is_some());
    let before = earlier.definition().repository.as_ref().filter(|_| work);
    if let (Some(before), Some(now)) = (before, definition.repository.as_mut()) {
        if now.base != before.base {
            warnings.push(format!(
                "the run starts from commit {}, as run {} did, not from where you stand",
                before.base,
                earlier.id()
            ));
        }
        now.base.clone_from(&before.base);
        for taken in &relaunch.taken {
            let Some(work) = &taken.work else { continue };
            let parts = work.parts.iter().flat_map(|part| [&part.onto, &part.tip]);
            for commit in parts.chain([&work.committed.tip]) {
                let there = workspace.diff(&now.root, &now.base, commit).await;
                there.map_err(|why| RelaunchError::CommitLost {
                    agent: definition.task.agents[taken.step.position()].id.clone(),
                    commit: commit.clone(),
                    branch: work.branch.clone(),
                    why: why.to_string(),
                })?;
            }
        }
    }
    definition.relaunch_of = Some(RelaunchOf {
        run: earlier.id().clone(),
        from: from.to_owned(),
        changes: relaunch.changes.lines(),
    });
    Ok(Relaunched {
        definition,
        taken: relaunch.taken,
        changes: relaunch.changes,
        warnings,
    })
}

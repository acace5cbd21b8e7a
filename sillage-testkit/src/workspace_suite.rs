//! What every [`Workspace`] does, as checks over a [`Scene`]: a repository and a person's and an agent's hands in it.
//!
//! [`workspace_suite!`](crate::workspace_suite!) turns the checks into tests of their own.

use std::path::{Path, PathBuf};

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{
    DiffStat, Hold, MergeOutcome, MergeWanted, MergedPart, Removal, WorkspaceError, Worktree, WorktreeWanted,
};

mod conflicts;

pub use conflicts::*;

/// A repository with at least one commit, which the person stands on, in a workspace under test.
pub trait Scene {
    /// The workspace under test.
    fn workspace(&self) -> &dyn Workspace;
    /// The repository's working tree.
    fn repository(&self) -> PathBuf;
    /// Writes a file in a folder, as an agent does.
    fn write(&self, folder: &Path, file: &str, content: &str);
    /// Takes a folder away, as somebody does by hand.
    fn lose(&self, folder: &Path);
    /// Points a reference to a commit, as somebody else does.
    fn point(&self, reference: &str, commit: &str);
    /// What a reference points to.
    fn tip(&self, reference: &str) -> Option<String>;
    /// A file's content in a commit.
    fn content(&self, commit: &str, file: &str) -> Option<String>;
    /// Everything that is the person's: branch, index, working tree, settings.
    fn persons(&self) -> String;
}

/// A check's end; its failures are panics with a word on what was expected.
pub type Checked = Result<(), WorkspaceError>;

/// Makes a test of each check: `workspace_suite!(name, scene)`, where `scene` is an expression for a new [`Scene`].
/// The crate needs tokio with `macros`.
#[macro_export]
macro_rules! workspace_suite {
    ($name:ident, $scene:expr) => {
        $crate::workspace_suite!(@ $name, $scene,
            inspect_tells_where_the_person_stands,
            lease_gives_the_same_worktree_again,
            lease_leaves_a_branch_of_someone_else_alone,
            lease_makes_a_lost_worktree_anew,
            commit_takes_what_is_left_once,
            commit_in_a_lost_worktree_commits_nothing,
            merge_makes_the_branch_and_repeats_nothing,
            merge_of_parts_leaves_out_what_they_stand_on,
            merge_of_a_changed_line_on_both_sides_is_a_conflict,
            restart_keeps_everything_first,
            restart_makes_a_lost_worktree_anew,
            restart_moves_a_worktree_to_another_base,
            lost_tells_a_worktree_that_is_gone,
            missing_names_what_is_not_there,
            a_conflict_is_begun_resolved_and_merged,
            a_conflict_is_given_up_and_nothing_is_lost,
            a_conflict_in_a_lost_worktree_is_given_up,
            without_a_conflict_nothing_is_begun,
            a_check_gets_a_fresh_folder_that_goes,
            a_checkout_tells_what_changed,
            a_held_worktree_stays,
            a_merged_worktree_goes_and_its_branch_stays
        );
    };
    (@ $name:ident, $scene:expr, $($check:ident),+) => {
        mod $name {
            use super::*;
            $(
                #[tokio::test]
                async fn $check() {
                    let scene = $scene;
                    let before = $crate::workspace_suite::Scene::persons(&scene);
                    $crate::workspace_suite::$check(&scene).await.unwrap();
                    assert_eq!($crate::workspace_suite::Scene::persons(&scene), before, "R16: the person's own was touched");
                }
            )+
        }
    };
}

async fn head(scene: &impl Scene) -> Result<String, WorkspaceError> {
    let found = scene.workspace().inspect(&scene.repository()).await?;
    assert!(found.is_some(), "the scene's folder is a repository");
    Ok(found.map(|found| found.head).unwrap_or_default())
}

async fn lease(scene: &impl Scene, step: &str) -> Result<Worktree, WorkspaceError> {
    scene.workspace().lease(&wish(scene, step).await?).await
}

async fn wish(scene: &impl Scene, step: &str) -> Result<WorktreeWanted, WorkspaceError> {
    Ok(WorktreeWanted {
        repository: scene.repository(),
        run: "run-1".to_owned(),
        step: step.to_owned(),
        branch: format!("sillage/steps/run-1/{}", step.replace('/', "-")),
        base: head(scene).await?,
    })
}

fn merge_of(worktree: &Worktree, commit: &str) -> MergeWanted {
    MergeWanted {
        repository: worktree.repository.clone(),
        into: "sillage/run-1".to_owned(),
        base: worktree.base.clone(),
        commit: commit.to_owned(),
        parts: Vec::new(),
        message: "Merge the work of an agent".to_owned(),
    }
}

fn branch(worktree: &Worktree) -> String {
    format!("refs/heads/{}", worktree.branch)
}

/// The head is a full hash, and the folder's repository is the one of the scene.
pub async fn inspect_tells_where_the_person_stands(scene: &impl Scene) -> Checked {
    let found = scene.workspace().inspect(&scene.repository()).await?;
    let found = found.map(|found| (found.root, found.head.len(), found.branch));
    assert!(
        matches!(&found, Some((root, 40 | 64, Some(branch))) if *root == scene.repository() && !branch.is_empty()),
        "{found:?}"
    );
    Ok(())
}

/// R15, R1: asking again after a crash changes nothing, and steps do not share a folder.
pub async fn lease_gives_the_same_worktree_again(scene: &impl Scene) -> Checked {
    let first = lease(scene, "a").await?;
    scene.write(&first.path, "new", "new\n");
    let tip = scene.workspace().commit(&first, "Add a file").await?.tip;
    assert_eq!(lease(scene, "a").await?, first);
    assert_eq!(
        scene.tip(&branch(&first)),
        Some(tip),
        "its branch stays where the agent brought it"
    );
    let (other, sub) = (lease(scene, "b").await?, lease(scene, "a/b").await?);
    assert!(other.path != first.path && !sub.path.starts_with(&first.path));
    Ok(())
}

/// G4: the name is taken, even by a branch at the same commit: a fresh one is made from the real base.
pub async fn lease_leaves_a_branch_of_someone_else_alone(scene: &impl Scene) -> Checked {
    let wish = wish(scene, "a").await?;
    let taken = format!("refs/heads/{}", wish.branch);
    scene.point(&taken, &wish.base);
    let worktree = scene.workspace().lease(&wish).await?;
    assert_ne!(worktree.branch, wish.branch);
    assert_eq!(worktree.base, wish.base);
    scene.write(&worktree.path, "new", "new\n");
    scene.workspace().commit(&worktree, "Add a file").await?;
    assert_eq!(scene.tip(&taken), Some(wish.base.clone()));
    assert_eq!(
        scene.workspace().lease(&wish).await?,
        worktree,
        "the fresh name is remembered"
    );
    Ok(())
}

/// G3: the folder was removed by hand.
pub async fn lease_makes_a_lost_worktree_anew(scene: &impl Scene) -> Checked {
    let worktree = lease(scene, "a").await?;
    scene.write(&worktree.path, "new", "new\n");
    let tip = scene.workspace().commit(&worktree, "Add a file").await?.tip;
    scene.lose(&worktree.path);
    assert_eq!(lease(scene, "a").await?, worktree);
    let again = scene.workspace().commit(&worktree, "Nothing").await?;
    assert_eq!(again.tip, tip, "the files of the branch are back");
    Ok(())
}

/// R16: one commit for what is left, none when nothing is.
pub async fn commit_takes_what_is_left_once(scene: &impl Scene) -> Checked {
    let worktree = lease(scene, "a").await?;
    let none = scene.workspace().commit(&worktree, "Nothing").await?;
    assert_eq!(
        (none.tip.as_str(), none.commits, none.diff),
        (worktree.base.as_str(), 0, DiffStat::default())
    );
    scene.write(&worktree.path, "one", "1\n2\n");
    let first = scene.workspace().commit(&worktree, "Add one").await?;
    assert_eq!(
        (first.commits, first.diff),
        (
            1,
            DiffStat {
                files: 1,
                insertions: 2,
                deletions: 0
            }
        )
    );
    assert_eq!(scene.tip(&branch(&worktree)), Some(first.tip.clone()));
    assert_eq!(scene.content(&first.tip, "one").as_deref(), Some("1\n2\n"));
    assert_eq!(scene.workspace().commit(&worktree, "Again").await?, first);
    scene.write(&worktree.path, "two", "x\n");
    let second = scene.workspace().commit(&worktree, "Add two").await?;
    assert_eq!((second.commits, second.diff.files), (2, 2));
    assert_eq!(
        scene
            .workspace()
            .diff(&worktree.repository, &first.tip, &second.tip)
            .await?
            .files,
        1
    );
    Ok(())
}

/// G1: the folder is gone.
pub async fn commit_in_a_lost_worktree_commits_nothing(scene: &impl Scene) -> Checked {
    let worktree = lease(scene, "a").await?;
    scene.lose(&worktree.path);
    let answer = scene.workspace().commit(&worktree, "Nothing").await;
    assert!(
        matches!(&answer, Err(WorkspaceError::WorktreeLost { path, .. }) if *path == worktree.path),
        "{answer:?}"
    );
    assert_eq!(scene.tip(&branch(&worktree)), Some(worktree.base.clone()));
    Ok(())
}

/// R16: the integration branch starts at the base; a second call finds the work there.
pub async fn merge_makes_the_branch_and_repeats_nothing(scene: &impl Scene) -> Checked {
    let (a, b) = (lease(scene, "a").await?, lease(scene, "b").await?);
    scene.write(&a.path, "a", "a\n");
    scene.write(&b.path, "b", "b\n");
    let one = scene.workspace().commit(&a, "Add a").await?.tip;
    let two = scene.workspace().commit(&b, "Add b").await?.tip;
    let first = scene.workspace().merge(&merge_of(&a, &one)).await?;
    let second = scene.workspace().merge(&merge_of(&b, &two)).await?;
    assert_eq!(
        scene.workspace().merge(&merge_of(&a, &one)).await?,
        second,
        "it is there already"
    );
    assert_ne!(first, second);
    let tip = scene.tip("refs/heads/sillage/run-1");
    assert_eq!(Some(second), tip.clone().map(MergeOutcome::Merged));
    let tip = tip.unwrap_or_default();
    assert_eq!(scene.content(&tip, "a").as_deref(), Some("a\n"));
    assert_eq!(scene.content(&tip, "b").as_deref(), Some("b\n"));
    let base = scene.workspace().merge(&merge_of(&a, &a.base)).await?;
    assert_eq!(base, MergeOutcome::Merged(tip), "the base is there already");
    Ok(())
}

/// R13: of a commit that stands on another's work, only what was merged for it is taken.
pub async fn merge_of_parts_leaves_out_what_they_stand_on(scene: &impl Scene) -> Checked {
    let a = lease(scene, "a").await?;
    scene.write(&a.path, "a", "a\n");
    let one = scene.workspace().commit(&a, "Add a").await?.tip;
    let first = tip_of(scene.workspace().merge(&merge_of(&a, &one)).await?);
    let on_top = WorktreeWanted {
        base: first.clone(),
        ..wish(scene, "b").await?
    };
    let b = scene.workspace().lease(&on_top).await?;
    scene.write(&b.path, "b", "b\n");
    let two = scene.workspace().commit(&b, "Add b").await?.tip;
    let second = tip_of(scene.workspace().merge(&merge_of(&b, &two)).await?);
    let elsewhere = MergeWanted {
        into: "sillage/run-2".to_owned(),
        base: a.base.clone(),
        parts: vec![MergedPart {
            onto: first,
            tip: second,
        }],
        ..merge_of(&b, &two)
    };
    let merged = scene.workspace().merge(&elsewhere).await?;
    assert_eq!(
        scene.workspace().merge(&elsewhere).await?,
        merged,
        "it is there already"
    );
    let merged = tip_of(merged);
    assert_eq!(scene.content(&merged, "b").as_deref(), Some("b\n"));
    assert_eq!(scene.content(&merged, "a"), None, "that is another's work");
    Ok(())
}

fn tip_of(outcome: MergeOutcome) -> String {
    assert!(matches!(outcome, MergeOutcome::Merged(_)), "{outcome:?}");
    match outcome {
        MergeOutcome::Merged(tip) => tip,
        MergeOutcome::Conflict(_) => String::new(),
    }
}

/// G7: two agents change the same line.
pub async fn merge_of_a_changed_line_on_both_sides_is_a_conflict(scene: &impl Scene) -> Checked {
    let (a, b) = (lease(scene, "a").await?, lease(scene, "b").await?);
    scene.write(&a.path, "same", "from a\n");
    scene.write(&b.path, "same", "from b\n");
    scene.write(&b.path, "other", "b\n");
    let one = scene.workspace().commit(&a, "Say a").await?.tip;
    let two = scene.workspace().commit(&b, "Say b").await?.tip;
    let merged = scene.workspace().merge(&merge_of(&a, &one)).await?;
    let conflict = scene.workspace().merge(&merge_of(&b, &two)).await?;
    assert_eq!(conflict, MergeOutcome::Conflict(vec!["same".to_owned()]));
    assert_eq!(
        scene.tip("refs/heads/sillage/run-1").map(MergeOutcome::Merged),
        Some(merged)
    );
    assert_eq!(scene.tip(&branch(&b)), Some(two), "both branches are kept");
    Ok(())
}

/// R12: committed and uncommitted work is kept before the worktree is put back to its base.
pub async fn restart_keeps_everything_first(scene: &impl Scene) -> Checked {
    let worktree = lease(scene, "a").await?;
    let nothing = scene.workspace().restart(&worktree, "run-1", "a").await?;
    assert_eq!((nothing.worktree, nothing.rescued), (worktree.clone(), None));
    scene.write(&worktree.path, "committed", "1\n");
    scene.workspace().commit(&worktree, "Add a file").await?;
    scene.write(&worktree.path, "left", "2\n");
    let restarted = scene.workspace().restart(&worktree, "run-1", "a").await?;
    assert_eq!(
        restarted.rescued.as_deref(),
        Some("refs/sillage/rescue/run-1/a/1")
    );
    let kept = scene.tip("refs/sillage/rescue/run-1/a/1").unwrap_or_default();
    assert_eq!(scene.content(&kept, "committed").as_deref(), Some("1\n"));
    assert_eq!(scene.content(&kept, "left").as_deref(), Some("2\n"));
    let after = scene.workspace().commit(&restarted.worktree, "Nothing").await?;
    assert_eq!(
        (after.tip, after.commits),
        (worktree.base.clone(), 0),
        "it is back at its base"
    );
    scene.write(&worktree.path, "left", "3\n");
    let second = scene.workspace().restart(&worktree, "run-1", "a").await?;
    assert_eq!(second.rescued.as_deref(), Some("refs/sillage/rescue/run-1/a/2"));
    Ok(())
}

/// R12: what the branch of a missing worktree holds is kept too.
pub async fn restart_makes_a_lost_worktree_anew(scene: &impl Scene) -> Checked {
    let worktree = lease(scene, "a").await?;
    scene.write(&worktree.path, "committed", "1\n");
    let tip = scene.workspace().commit(&worktree, "Add a file").await?.tip;
    scene.lose(&worktree.path);
    let restarted = scene.workspace().restart(&worktree, "run-1", "a").await?;
    assert_eq!(
        restarted.rescued.as_deref().and_then(|name| scene.tip(name)),
        Some(tip)
    );
    let after = scene.workspace().commit(&restarted.worktree, "Nothing").await?;
    assert_eq!((after.tip, after.commits), (worktree.base.clone(), 0));
    Ok(())
}

/// R18, W22: a worktree can be put to a later commit, such as the one that holds the work of sub-agents. It stays where
/// it is, and what it held is kept; a worktree that is gone is made anew from that commit.
pub async fn restart_moves_a_worktree_to_another_base(scene: &impl Scene) -> Checked {
    let (coordinator, sub) = (lease(scene, "a").await?, lease(scene, "a/b").await?);
    scene.write(&sub.path, "part", "1\n");
    let tip = scene.workspace().commit(&sub, "Add a part").await?.tip;
    scene.write(&coordinator.path, "left", "2\n");
    let wanted = Worktree {
        base: tip.clone(),
        ..coordinator.clone()
    };
    let moved = scene.workspace().restart(&wanted, "run-1", "a").await?;
    assert_eq!(moved.worktree, wanted);
    let kept = moved.rescued.as_deref().and_then(|name| scene.tip(name));
    assert_eq!(
        kept.and_then(|kept| scene.content(&kept, "left")).as_deref(),
        Some("2\n")
    );
    let files = [PathBuf::from("part")];
    assert!(
        scene
            .workspace()
            .missing(&coordinator.path, &files)
            .await?
            .is_empty()
    );
    assert_eq!(scene.tip(&branch(&wanted)), Some(tip.clone()));
    let again = scene.workspace().restart(&wanted, "run-1", "a").await?;
    assert_eq!((again.worktree, again.rescued), (wanted.clone(), None));
    scene.write(&wanted.path, "more", "3\n");
    let committed = scene.workspace().commit(&wanted, "Add more").await?;
    assert_eq!(committed.commits, 1, "counted from where it was put");
    scene.lose(&wanted.path);
    let anew = scene.workspace().restart(&wanted, "run-1", "a").await?;
    let after = scene.workspace().commit(&anew.worktree, "Nothing").await?;
    assert_eq!((after.tip, after.commits), (tip, 0));
    assert!(
        scene
            .workspace()
            .missing(&anew.worktree.path, &files)
            .await?
            .is_empty()
    );
    Ok(())
}

/// R12: a session is not looked for where its worktree is gone.
pub async fn lost_tells_a_worktree_that_is_gone(scene: &impl Scene) -> Checked {
    let worktree = lease(scene, "a").await?;
    assert_eq!(scene.workspace().lost(&worktree).await?, None);
    scene.lose(&worktree.path);
    assert!(scene.workspace().lost(&worktree).await?.is_some());
    let restarted = scene.workspace().restart(&worktree, "run-1", "a").await?;
    assert_eq!(scene.workspace().lost(&restarted.worktree).await?, None);
    Ok(())
}

/// W6: declared files must exist, not be empty, and lie below the folder.
pub async fn missing_names_what_is_not_there(scene: &impl Scene) -> Checked {
    let worktree = lease(scene, "a").await?;
    scene.write(&worktree.path, "full", "1\n");
    scene.write(&worktree.path, "empty", "");
    let files = ["full", "empty", "nothing", "../a/../../escape"].map(PathBuf::from);
    let missing = scene.workspace().missing(&worktree.path, &files).await?;
    assert_eq!(missing, files[1..]);
    Ok(())
}

/// G2, R19: uncommitted files and unmerged commits hold a worktree, and the list says so.
pub async fn a_held_worktree_stays(scene: &impl Scene) -> Checked {
    let worktree = lease(scene, "a").await?;
    scene.write(&worktree.path, "committed", "1\n");
    let tip = scene.workspace().commit(&worktree, "Add a file").await?.tip;
    scene.write(&worktree.path, "left", "2\n");
    let holds = vec![Hold::Files(vec![PathBuf::from("left")]), Hold::Commits(1)];
    let removal = scene.workspace().remove(&worktree, "sillage/run-1").await?;
    assert_eq!(removal, Removal::Held(holds.clone()));
    let listed = scene
        .workspace()
        .list(&worktree.repository, "sillage/run-1")
        .await?;
    let listed: Vec<_> = listed
        .into_iter()
        .map(|state| (state.path, state.branch, state.held_by))
        .collect();
    assert_eq!(
        listed,
        [(worktree.path.clone(), Some(worktree.branch.clone()), holds)]
    );
    assert_eq!(scene.tip(&branch(&worktree)), Some(tip));
    assert!(
        scene
            .workspace()
            .missing(&worktree.path, &[PathBuf::from("left")])
            .await?
            .is_empty()
    );
    Ok(())
}

/// R19: a clean and merged worktree is removed, twice without harm; its branch stays.
pub async fn a_merged_worktree_goes_and_its_branch_stays(scene: &impl Scene) -> Checked {
    let worktree = lease(scene, "a").await?;
    scene.write(&worktree.path, "committed", "1\n");
    let tip = scene.workspace().commit(&worktree, "Add a file").await?.tip;
    scene.workspace().merge(&merge_of(&worktree, &tip)).await?;
    for _ in 0..2 {
        let removal = scene.workspace().remove(&worktree, "sillage/run-1").await?;
        assert_eq!(removal, Removal::Removed);
    }
    assert_eq!(
        scene
            .workspace()
            .list(&worktree.repository, "sillage/run-1")
            .await?,
        []
    );
    assert_eq!(scene.tip(&branch(&worktree)), Some(tip));
    Ok(())
}

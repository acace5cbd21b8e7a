//! What every workspace does about conflicts, checks and the person's checkout (R17, W10b, G6).

use std::path::PathBuf;

use sillage_core::ports::workspace::{MergeBegun, MergeOutcome, MergeWanted, WorkspaceError, Worktree};

use super::{Checked, Scene, branch, lease, merge_of};

/// The tip of a branch that holds what was to be merged.
fn merged(outcome: MergeOutcome) -> String {
    assert!(matches!(outcome, MergeOutcome::Merged(_)), "{outcome:?}");
    match outcome {
        MergeOutcome::Merged(tip) => tip,
        MergeOutcome::Conflict(_) => String::new(),
    }
}

/// Two steps that wrote the same file; the first is merged. Gives the second with its commit, and the merge's tip.
async fn clash(scene: &impl Scene) -> Result<(Worktree, MergeWanted, String), WorkspaceError> {
    let workspace = scene.workspace();
    let (first, second) = (lease(scene, "a").await?, lease(scene, "b").await?);
    scene.write(&first.path, "both", "first\n");
    scene.write(&first.path, "theirs", "theirs\n");
    scene.write(&second.path, "both", "second\n");
    scene.write(&second.path, "ours", "ours\n");
    let tip = workspace.commit(&first, "First").await?.tip;
    let onto = merged(workspace.merge(&merge_of(&first, &tip)).await?);
    let tip = workspace.commit(&second, "Second").await?.tip;
    let wish = merge_of(&second, &tip);
    let outcome = workspace.merge(&wish).await?;
    assert_eq!(outcome, MergeOutcome::Conflict(vec!["both".to_owned()]));
    Ok((second, wish, onto))
}

/// R17: the conflict is in the worktree, and stays the same when it is asked for again; once it is resolved, the work
/// is committed with both sides and merges.
pub async fn a_conflict_is_begun_resolved_and_merged(scene: &impl Scene) -> Checked {
    let workspace = scene.workspace();
    let (worktree, wish, onto) = clash(scene).await?;
    let expected = MergeBegun {
        onto: onto.clone(),
        files: vec!["both".to_owned()],
    };
    for _ in 0..2 {
        assert_eq!(workspace.begin_merge(&worktree, &wish).await?, expected);
        assert_eq!(workspace.unresolved(&worktree, &expected.files).await?, ["both"]);
    }
    let there = ["theirs", "ours"].map(PathBuf::from);
    assert!(
        workspace.missing(&worktree.path, &there).await?.is_empty(),
        "both sides' files"
    );
    scene.write(&worktree.path, "both", "first and second\n");
    assert!(workspace.unresolved(&worktree, &expected.files).await?.is_empty());
    let committed = workspace.commit(&worktree, "Resolve").await?;
    assert_ne!(committed.tip, wish.commit);
    let again = MergeWanted {
        commit: committed.tip.clone(),
        ..wish.clone()
    };
    let tip = merged(workspace.merge(&again).await?);
    assert_eq!(scene.content(&tip, "both").as_deref(), Some("first and second\n"));
    assert_eq!(scene.content(&tip, "theirs").as_deref(), Some("theirs\n"));
    assert_eq!(scene.content(&tip, "ours").as_deref(), Some("ours\n"));
    assert_eq!(scene.tip(&branch(&worktree)), Some(committed.tip));
    Ok(())
}

/// R17: given up, the branch holds the work as it was, nothing is under way, and what was half done is kept.
pub async fn a_conflict_is_given_up_and_nothing_is_lost(scene: &impl Scene) -> Checked {
    let workspace = scene.workspace();
    let (worktree, wish, _) = clash(scene).await?;
    workspace.begin_merge(&worktree, &wish).await?;
    scene.write(&worktree.path, "half", "half\n");
    let kept = workspace
        .abandon_merge(&worktree, &wish.commit, "run-1", "b")
        .await?;
    let kept = kept.and_then(|name| scene.tip(&name));
    let kept = kept.unwrap_or_default();
    assert_eq!(scene.content(&kept, "half").as_deref(), Some("half\n"));
    assert_eq!(scene.tip(&branch(&worktree)).as_ref(), Some(&wish.commit));
    assert_eq!(
        workspace.commit(&worktree, "Nothing").await?.tip,
        wish.commit,
        "nothing is left there"
    );
    let again = workspace
        .abandon_merge(&worktree, &wish.commit, "run-1", "b")
        .await?;
    assert_eq!(again, None, "a second time there is nothing to keep");
    Ok(())
}

/// R17: a worktree that is gone has nothing to be given up, and its branch still goes back.
pub async fn a_conflict_in_a_lost_worktree_is_given_up(scene: &impl Scene) -> Checked {
    let workspace = scene.workspace();
    let (worktree, wish, _) = clash(scene).await?;
    workspace.begin_merge(&worktree, &wish).await?;
    scene.lose(&worktree.path);
    assert_eq!(
        workspace
            .abandon_merge(&worktree, &wish.commit, "run-1", "b")
            .await?,
        None
    );
    assert_eq!(scene.tip(&branch(&worktree)), Some(wish.commit));
    Ok(())
}

/// R17: what does not conflict is not begun.
pub async fn without_a_conflict_nothing_is_begun(scene: &impl Scene) -> Checked {
    let workspace = scene.workspace();
    let worktree = lease(scene, "a").await?;
    scene.write(&worktree.path, "new", "new\n");
    let tip = workspace.commit(&worktree, "Add a file").await?.tip;
    let begun = workspace
        .begin_merge(&worktree, &merge_of(&worktree, &tip))
        .await?;
    assert!(begun.files.is_empty(), "{begun:?}");
    assert_eq!(workspace.commit(&worktree, "Nothing").await?.tip, tip);
    Ok(())
}

/// W10b: the folder holds the commit's files and nothing that an earlier one held, and goes whatever is in it.
pub async fn a_check_gets_a_fresh_folder_that_goes(scene: &impl Scene) -> Checked {
    let workspace = scene.workspace();
    let worktree = lease(scene, "a").await?;
    scene.write(&worktree.path, "new", "new\n");
    let tip = workspace.commit(&worktree, "Add a file").await?.tip;
    let repository = scene.repository();
    let looked = ["new", "left"].map(PathBuf::from);
    for _ in 0..2 {
        let folder = workspace.check_folder(&repository, "run-1", &tip).await?;
        assert_eq!(
            workspace.missing(&folder, &looked).await?,
            [PathBuf::from("left")]
        );
        scene.write(&folder, "left", "left\n");
    }
    let folder = workspace.check_folder(&repository, "run-1", &tip).await?;
    for _ in 0..2 {
        workspace.clear_check(&repository, "run-1").await?;
    }
    if let Ok(missing) = workspace.missing(&folder, &looked).await {
        assert_eq!(missing, looked);
    }
    let listed = workspace.list(&repository, "sillage/run-1").await?;
    assert_eq!(listed.len(), 1, "only the step's is left: {listed:?}");
    Ok(())
}

/// G6: a look at a checkout tells what changed since another.
pub async fn a_checkout_tells_what_changed(scene: &impl Scene) -> Checked {
    let workspace = scene.workspace();
    let worktree = lease(scene, "a").await?;
    scene.write(&worktree.path, "dirty", "before\n");
    let before = workspace.checkout(&worktree.path, &[]).await?;
    let also: Vec<PathBuf> = before.files.keys().cloned().collect();
    assert_eq!(also, [PathBuf::from("dirty")]);
    let after = workspace.checkout(&worktree.path, &also).await?;
    assert!(after.changed_since(&before).is_empty(), "{after:?}");
    scene.write(&worktree.path, "new", "new\n");
    scene.write(&worktree.path, "dirty", "written again\n");
    let after = workspace.checkout(&worktree.path, &also).await?;
    let changed = after.changed_since(&before);
    assert_eq!(changed, ["dirty", "new"].map(PathBuf::from));
    Ok(())
}

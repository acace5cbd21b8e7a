//! What a runtime knows of provider accounts.

use sillage_core::ports::runtime::{AccountState, PermissionPolicy};

use super::{Act, Scene, Stage, must};

/// R8: what is known of an account is told without trying it, the same as long as nothing happens, and whoever asks for
/// one that nobody has is not told that it can be used. Which account a model uses does not change.
pub async fn accounts_are_told_without_being_tried(stage: &dyn Stage) {
    let scene = Scene::open(stage, PermissionPolicy::Deny).await;
    let runtime = &scene.runtime;
    let offers = must(runtime.status().await, "status").models;
    assert!(
        offers.iter().all(|offer| !offer.account.is_empty()),
        "a model without an account: {offers:?}"
    );
    let mut known = Vec::new();
    for offer in &offers {
        known.push(must(runtime.account(&offer.account).await, "an account"));
    }
    for odd in ["", "nobody's", "a\0b", "../..", &"x".repeat(100_000)] {
        let state = must(runtime.account(odd).await, "an account that nobody has");
        assert_ne!(state, AccountState::Available, "{}", odd.len());
    }
    let message = scene.say(Act::Answer).await;
    must(scene.end_of(&message).await.1, "the answer");
    let asked_again =
        futures_util::future::join_all(offers.iter().map(|offer| runtime.account(&offer.account)));
    let again: Vec<AccountState> = asked_again
        .await
        .into_iter()
        .map(|state| must(state, "an account"))
        .collect();
    assert_eq!(again, known);
    assert_eq!(stage.times_asked(&message.text), 1, "an account was tried");
    assert_eq!(must(runtime.status().await, "status").models, offers);
    scene.close().await;
}

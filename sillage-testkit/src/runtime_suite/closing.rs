//! Closing a session while it is being opened or looked for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{OpenedSession, PermissionPolicy, RuntimeError, SessionRequest};

use super::{Act, BOUND, Scene, Stage, is_lost, message, must};

/// What was asked for and has not come back yet.
type Asked<'a, T> = Pin<Box<dyn Future<Output = Result<T, RuntimeError>> + Send + 'a>>;

/// What a call that was asked for came to, after the session was closed; none: it had come back before.
async fn closed_meanwhile<T>(
    runtime: &Arc<dyn AgentRuntime>,
    request: &SessionRequest,
    mut asked: Asked<'_, T>,
    waits_for_it: bool,
) -> Option<Result<T, RuntimeError>> {
    // Asked for: it is on its way from its first step on.
    let at_once = (&mut asked).now_or_never();
    let close = tokio::time::timeout(BOUND, runtime.close(request.client_session_id)).await;
    let Ok(closed) = close else {
        panic!("a session that is on its way is not closed within {BOUND:?}")
    };
    must(closed, "close");
    match at_once {
        Some(outcome) => Some(outcome),
        None if waits_for_it => match tokio::time::timeout(BOUND, asked).await {
            Ok(outcome) => Some(outcome),
            Err(_) => panic!("who waits for a session that was closed waits for ever"),
        },
        // As a driver does with what it no longer wants.
        None => None,
    }
}

async fn assert_gone(
    runtime: &Arc<dyn AgentRuntime>,
    request: &SessionRequest,
    opened: Option<OpenedSession>,
) {
    let id = request.client_session_id;
    assert!(
        is_lost(&runtime.events(id, 0).await.map(|_| ())),
        "it came back after it was closed"
    );
    assert!(is_lost(&runtime.send(id, &message(Act::Answer)).await));
    if let Some(pid) = opened.and_then(|opened| opened.pid) {
        assert!(!cfg!(target_os = "linux") || !std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
    must(runtime.close(id).await, "close what is closed");
}

/// R4: an opening that was asked for before a close and arrives after it brings no session back, whether anybody still
/// waits for it or not. One that is asked for after it opens a session, or says that it is lost.
pub async fn closing_outlasts_an_opening_on_its_way(stage: &dyn Stage) {
    for waits_for_it in [true, false] {
        let runtime = stage.runtime().await;
        let request = stage.request(PermissionPolicy::Deny);
        let asked = runtime.open(&request);
        let outcome = closed_meanwhile(&runtime, &request, asked, waits_for_it).await;
        assert_gone(&runtime, &request, outcome.and_then(Result::ok)).await;
        match runtime.open(&request).await {
            Ok(_) => {
                let id = request.client_session_id;
                let scene = Scene { runtime, request, id };
                assert_eq!(scene.answer_to(Act::Answer).await.text, "the answer");
                scene.close().await;
            }
            outcome => assert!(is_lost(&outcome), "{outcome:?}"),
        }
    }
}

/// The same of a search, for a session that an engine before left.
pub async fn closing_outlasts_a_search_on_its_way(stage: &dyn Stage) {
    for waits_for_it in [true, false] {
        let scene = Scene::open(stage, PermissionPolicy::Deny).await;
        let opened = must(scene.runtime.open(&scene.request).await, "open again");
        scene.answer_to(Act::Answer).await;
        let Scene { runtime, request, .. } = scene;
        let runtime = stage.restart(runtime).await;
        let asked = runtime.find(&request, opened.native.as_deref(), None);
        let outcome = closed_meanwhile(&runtime, &request, asked, waits_for_it).await;
        let found = outcome.and_then(Result::ok).map(|found| found.opened);
        assert_gone(&runtime, &request, found).await;
    }
}

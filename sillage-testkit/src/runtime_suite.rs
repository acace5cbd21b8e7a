//! What every [`AgentRuntime`] promises, as checks to run over each implementation.
//!
//! An implementation gives a [`Stage`]: runtimes whose agent understands the words of [`Act`]. The macro
//! [`runtime_suite!`](macro@crate::runtime_suite) makes a test of each check:
//!
//! ```
//! use sillage_testkit::runtime_suite::ScriptedStage;
//!
//! sillage_testkit::runtime_suite!(ScriptedStage::new());
//! ```
#![expect(
    clippy::panic,
    reason = "a promise that is not kept fails its test with words"
)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    Answer, MessageRequest, PermissionPolicy, RuntimeError, SessionEvent, SessionEventKind, SessionRequest,
    StopReason,
};
use uuid::Uuid;

mod accounts;
mod closing;
mod finding;
mod permission;
mod scripted;

pub use accounts::accounts_are_told_without_being_tried;
pub use closing::{closing_outlasts_a_search_on_its_way, closing_outlasts_an_opening_on_its_way};
pub use finding::{finding_after_a_restart_asks_nothing_twice, finding_tells_what_became_of_a_message};
pub use permission::{
    cancelling_answers_open_permissions, permission_is_answered_by_a_person,
    permission_is_answered_by_the_policy,
};
pub use scripted::ScriptedStage;

/// Longer than anything that ends takes, on a machine with much else to do.
const BOUND: Duration = Duration::from_secs(60);

/// Makes a `#[tokio::test]` of every check, over the [`Stage`] that the expression makes for each of them.
#[macro_export]
macro_rules! runtime_suite {
    ($stage:expr) => {
        $crate::runtime_suite!(@tests $stage;
            a_message_is_answered_with_its_last_words
            a_model_that_nobody_offers_is_permanent
            a_second_message_waits_for_the_first
            a_session_opens_once
            accounts_are_told_without_being_tried
            an_agent_that_dies_ends_its_message
            cancelling_answers_open_permissions
            cancelling_ends_the_message_and_keeps_the_session
            closing_leaves_nothing
            closing_outlasts_a_search_on_its_way
            closing_outlasts_an_opening_on_its_way
            another_request_under_the_same_identifier_is_a_conflict
            events_are_read_from_any_number
            failures_have_their_class
            finding_tells_what_became_of_a_message
            finding_after_a_restart_asks_nothing_twice
            permission_is_answered_by_a_person
            permission_is_answered_by_the_policy
            sending_again_does_nothing
        );
    };
    (@tests $stage:expr; $($check:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                let stage = $stage;
                $crate::runtime_suite::$check(&stage).await;
            }
        )*
    };
}

/// What a message makes the agent do. Its text holds [`Act::words`], and no other act's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Says "first", calls a tool, says "the answer", and ends its turn; 30 tokens read and 5 written in all.
    Answer,
    /// Nothing, until it is cancelled.
    Silence,
    /// Asks permission to edit `asked.txt` in the session's folder, with the options `allow` (`allow_once`) and
    /// `reject` (`reject_once`), and says "allowed" or "refused".
    Permission,
    /// Fails as an overloaded provider.
    Overload,
    /// Fails as a quota used up.
    Quota,
    /// Fails for want of a sign-in.
    SignIn,
    /// Fails as a bad request.
    BadRequest,
    /// Its process dies.
    Death,
}

impl Act {
    /// All of them as a script of the scripted agent, for stages whose agent is that one. Its model is `fake-1`.
    pub const SCRIPT: &str = r#"
options:
  - { id: m, category: model, values: [other, fake-1] }
sessions: sessions
prompts:
  - { match: please answer, times: always, steps: [
      say: first, tool: { id: t1, title: look, kind: read }, tool: { id: t1, status: completed },
      say: { text: the answer, chunks: 2 }, turn_usage: { input: 30, output: 5 } ] }
  - { match: please be silent, times: always, steps: [silent: until_cancelled] }
  - { match: please ask me, times: always, steps: [
      ask: { title: edit asked.txt, kind: edit, paths: [asked.txt], allowed: [say: allowed], rejected: [say: refused] } ] }
  - { match: please be overloaded, times: always, steps: [
      error: { code: -32603, message: Internal error, data: { details: "API Error: 529 overloaded_error" } } ] }
  - { match: please use up the quota, times: always, steps: [
      error: { code: -32603, message: "usage limit reached, resets 3:20pm (UTC)" } ] }
  - { match: please want a sign-in, times: always, steps: [error: { code: -32000, message: Authentication required }] }
  - { match: please call it a bad request, times: always, steps: [error: { code: 400, message: bad request }] }
  - { match: please die, times: always, steps: [say: hal, stderr: "panic: boom", crash] }
"#;

    /// The words by which the agent knows what to do.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Act::Answer => "please answer",
            Act::Silence => "please be silent",
            Act::Permission => "please ask me",
            Act::Overload => "please be overloaded",
            Act::Quota => "please use up the quota",
            Act::SignIn => "please want a sign-in",
            Act::BadRequest => "please call it a bad request",
            Act::Death => "please die",
        }
    }
}

/// An implementation under test.
#[async_trait]
pub trait Stage: Send + Sync {
    /// A new runtime.
    async fn runtime(&self) -> Arc<dyn AgentRuntime>;

    /// What the engine finds after it was started again, when `runtime` was all that it had: another runtime that
    /// reaches the same agents. Whoever keeps sessions elsewhere may give them back.
    async fn restart(&self, runtime: Arc<dyn AgentRuntime>) -> Arc<dyn AgentRuntime>;

    /// A request that opens a session with an effort other than `other`, in a folder that may be written.
    fn request(&self, permissions: PermissionPolicy) -> SessionRequest;

    /// How often an agent was asked a message with exactly this text, over all runtimes of the stage.
    fn times_asked(&self, text: &str) -> usize;
}

/// A session of a new runtime.
struct Scene {
    runtime: Arc<dyn AgentRuntime>,
    request: SessionRequest,
    id: ClientSessionId,
}

impl Scene {
    async fn open(stage: &dyn Stage, permissions: PermissionPolicy) -> Self {
        let runtime = stage.runtime().await;
        let request = stage.request(permissions);
        let id = request.client_session_id;
        must(runtime.open(&request).await, "open");
        Self { runtime, request, id }
    }

    async fn say(&self, act: Act) -> MessageRequest {
        let message = message(act);
        must(self.runtime.send(self.id, &message).await, "send");
        message
    }

    /// The events from number `after + 1` to the first that `last` accepts.
    async fn until(&self, after: u64, last: impl Fn(&SessionEventKind) -> bool) -> Vec<SessionEvent> {
        let mut stream = must(self.runtime.events(self.id, after).await, "events");
        let mut seen = Vec::new();
        let read = async {
            while let Some(event) = stream.next().await {
                assert_eq!(event.number, after + seen.len() as u64 + 1, "numbers have a gap");
                seen.push(event);
                if seen.last().is_some_and(|event| last(&event.kind)) {
                    return;
                }
            }
            panic!("the stream ended before what was waited for");
        };
        if tokio::time::timeout(BOUND, read).await.is_err() {
            panic!("nothing within {BOUND:?} after {seen:?}");
        }
        seen
    }

    /// How `message` ended, and the number of the event that says so.
    async fn end_of(&self, message: &MessageRequest) -> (u64, Result<Answer, RuntimeError>) {
        let id = message.client_message_id;
        let events = self.until(0, |kind| ends(kind, id)).await;
        match events.last() {
            Some(SessionEvent {
                number,
                kind: SessionEventKind::Answer { answer, .. },
            }) => (*number, Ok(answer.clone())),
            Some(SessionEvent {
                number,
                kind: SessionEventKind::Error { error, .. },
            }) => (*number, Err(error.clone())),
            other => panic!("the message has no end: {other:?}"),
        }
    }

    async fn answer_to(&self, act: Act) -> Answer {
        let message = self.say(act).await;
        must(self.end_of(&message).await.1, "the answer")
    }

    async fn close(self) {
        must(self.runtime.close(self.id).await, "close");
    }
}

fn ends(kind: &SessionEventKind, id: ClientMessageId) -> bool {
    if let SessionEventKind::Answer { message, .. } = kind {
        return *message == id;
    }
    matches!(kind, SessionEventKind::Error { message, .. } if *message == Some(id))
}

fn must<T>(outcome: Result<T, RuntimeError>, what: &str) -> T {
    match outcome {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error:?}"),
    }
}

fn message(act: Act) -> MessageRequest {
    let id = Uuid::new_v4();
    MessageRequest {
        client_message_id: ClientMessageId(id),
        text: format!("{} ({id})", act.words()),
    }
}

fn is_lost<T>(outcome: &Result<T, RuntimeError>) -> bool {
    matches!(outcome, Err(RuntimeError::Lost { .. }))
}

/// R5: however often and at once it is asked for, one session opens.
pub async fn a_session_opens_once(stage: &dyn Stage) {
    let runtime = stage.runtime().await;
    let request = stage.request(PermissionPolicy::Deny);
    let all = futures_util::future::join_all((0..5).map(|_| runtime.open(&request))).await;
    let mut opened: Vec<_> = all.into_iter().map(|outcome| must(outcome, "open")).collect();
    opened.push(must(runtime.open(&request).await, "open again"));
    assert!(
        opened.iter().all(|one| *one == opened[0]),
        "several sessions: {opened:?}"
    );
    must(runtime.close(request.client_session_id).await, "close");
}

/// R6: the same identifier with another request is refused, and the fields are named.
pub async fn another_request_under_the_same_identifier_is_a_conflict(stage: &dyn Stage) {
    let scene = Scene::open(stage, PermissionPolicy::Deny).await;
    let other = SessionRequest {
        effort: "other".to_owned(),
        permissions: PermissionPolicy::Ask,
        ..scene.request.clone()
    };
    let found = scene.runtime.find(&other, None, None).await.map(|_| ());
    for outcome in [scene.runtime.open(&other).await.map(|_| ()), found] {
        let Err(RuntimeError::Conflict { fields, .. }) = outcome else {
            panic!("no conflict: {outcome:?}")
        };
        assert_eq!(fields, ["effort", "permissions"]);
    }
    scene.close().await;
}

/// R9: a model that is not on offer.
pub async fn a_model_that_nobody_offers_is_permanent(stage: &dyn Stage) {
    let runtime = stage.runtime().await;
    let offers = must(runtime.status().await, "status").models;
    let request = SessionRequest {
        model: "never-heard-of".to_owned(),
        ..stage.request(PermissionPolicy::Deny)
    };
    assert!(offers.iter().all(|offer| offer.model != request.model));
    let outcome = runtime.open(&request).await;
    assert!(
        matches!(outcome, Err(RuntimeError::Permanent { .. })),
        "{outcome:?}"
    );
    let id = request.client_session_id;
    assert!(
        is_lost(&runtime.send(id, &message(Act::Answer)).await),
        "a session that did not open takes messages"
    );
}

/// The final text is what was said after the last tool call; usage is what was told.
pub async fn a_message_is_answered_with_its_last_words(stage: &dyn Stage) {
    let scene = Scene::open(stage, PermissionPolicy::Deny).await;
    let first = scene.say(Act::Answer).await;
    let (number, answer) = scene.end_of(&first).await;
    let answer = must(answer, "the answer");
    assert_eq!(
        (answer.text.as_str(), &answer.stop),
        ("the answer", &StopReason::EndTurn)
    );
    assert_eq!(
        (answer.usage.input_tokens, answer.usage.output_tokens),
        (Some(30), Some(5))
    );
    let events = scene.until(0, |kind| ends(kind, first.client_message_id)).await;
    assert_eq!(events.last().map(|event| event.number), Some(number));
    let texts = events
        .iter()
        .filter(|event| matches!(event.kind, SessionEventKind::Text { .. }))
        .count();
    assert!(texts >= 2, "the pieces of the answer are not told: {events:?}");
    assert!(
        events
            .iter()
            .any(|event| matches!(event.kind, SessionEventKind::Tool { .. }))
    );
    assert_eq!(
        scene.answer_to(Act::Answer).await.text,
        "the answer",
        "a session answers once only"
    );
    scene.close().await;
}

/// R5: a message sent again, before or after its answer, is not asked again.
pub async fn sending_again_does_nothing(stage: &dyn Stage) {
    let scene = Scene::open(stage, PermissionPolicy::Deny).await;
    let first = scene.say(Act::Answer).await;
    must(scene.runtime.send(scene.id, &first).await, "send again at once");
    let (number, _) = scene.end_of(&first).await;
    must(
        scene.runtime.send(scene.id, &first).await,
        "send again after the answer",
    );
    let changed = MessageRequest {
        text: "another".to_owned(),
        ..first.clone()
    };
    let outcome = scene.runtime.send(scene.id, &changed).await;
    let Err(RuntimeError::Conflict { fields, .. }) = outcome else {
        panic!("no conflict: {outcome:?}")
    };
    assert_eq!(fields, ["text"]);
    let second = scene.say(Act::Answer).await;
    let events = scene
        .until(number, |kind| ends(kind, second.client_message_id))
        .await;
    assert!(
        !events
            .iter()
            .any(|event| ends(&event.kind, first.client_message_id)),
        "answered twice: {events:?}"
    );
    assert_eq!(stage.times_asked(&first.text), 1);
    scene.close().await;
}

/// One message at a time.
pub async fn a_second_message_waits_for_the_first(stage: &dyn Stage) {
    let scene = Scene::open(stage, PermissionPolicy::Deny).await;
    let silent = scene.say(Act::Silence).await;
    let second = message(Act::Answer);
    let outcome = scene.runtime.send(scene.id, &second).await;
    assert!(
        matches!(outcome, Err(RuntimeError::Conflict { .. })),
        "{outcome:?}"
    );
    must(scene.runtime.cancel(scene.id).await, "cancel");
    must(scene.end_of(&silent).await.1, "the end of a cancelled message");
    must(scene.runtime.send(scene.id, &second).await, "send the second");
    assert!(scene.end_of(&second).await.1.is_ok());
    assert_eq!(stage.times_asked(&second.text), 1);
    scene.close().await;
}

/// Events can be read again from any number, and a reader who waits gets what comes.
pub async fn events_are_read_from_any_number(stage: &dyn Stage) {
    let scene = Scene::open(stage, PermissionPolicy::Deny).await;
    let waiting = must(scene.runtime.events(scene.id, 0).await, "events");
    let first = scene.say(Act::Answer).await;
    let (number, _) = scene.end_of(&first).await;
    let all = scene.until(0, |kind| ends(kind, first.client_message_id)).await;
    for after in 1..number {
        let rest = scene
            .until(after, |kind| ends(kind, first.client_message_id))
            .await;
        assert_eq!(rest, all[usize::try_from(after).unwrap_or(usize::MAX)..]);
    }
    let length = all.len();
    let live = tokio::time::timeout(BOUND, waiting.take(length).collect::<Vec<_>>()).await;
    assert_eq!(live.ok(), Some(all));
    scene.close().await;
}

/// R4, V3: a cancelled message ends `cancelled` with the usage so far, and the session goes on. Cancelling what is idle
/// or unknown does nothing.
pub async fn cancelling_ends_the_message_and_keeps_the_session(stage: &dyn Stage) {
    let scene = Scene::open(stage, PermissionPolicy::Deny).await;
    must(scene.runtime.cancel(scene.id).await, "cancel an idle session");
    must(
        scene.runtime.cancel(ClientSessionId(Uuid::new_v4())).await,
        "cancel an unknown session",
    );
    scene.answer_to(Act::Answer).await;
    let silent = scene.say(Act::Silence).await;
    must(scene.runtime.cancel(scene.id).await, "cancel");
    must(scene.runtime.cancel(scene.id).await, "cancel again");
    let answer = must(scene.end_of(&silent).await.1, "the end of a cancelled message");
    assert_eq!(answer.stop, StopReason::Cancelled);
    assert_eq!(
        answer.usage.output_tokens,
        Some(5),
        "the usage so far is not kept"
    );
    assert_eq!(scene.answer_to(Act::Answer).await.text, "the answer");
    scene.close().await;
}

/// R7, R8, R9: failures are told apart, and the session lives on.
pub async fn failures_have_their_class(stage: &dyn Stage) {
    let scene = Scene::open(stage, PermissionPolicy::Deny).await;
    for act in [Act::Overload, Act::Quota, Act::SignIn, Act::BadRequest] {
        let message = scene.say(act).await;
        let Err(error) = scene.end_of(&message).await.1 else {
            panic!("{act:?} has an answer")
        };
        let right = match act {
            Act::Overload => matches!(error, RuntimeError::Temporary { .. }),
            Act::Quota => matches!(error, RuntimeError::Quota { .. }),
            Act::SignIn => matches!(error, RuntimeError::SignIn { .. }),
            Act::BadRequest => matches!(error, RuntimeError::Permanent { .. }),
            Act::Answer | Act::Silence | Act::Permission | Act::Death => false,
        };
        assert!(right, "{act:?} is {error:?}");
    }
    assert_eq!(scene.answer_to(Act::Answer).await.text, "the answer");
    scene.close().await;
}

/// A4: a death is told, with the message that it cut; what follows is refused, never awaited.
pub async fn an_agent_that_dies_ends_its_message(stage: &dyn Stage) {
    let scene = Scene::open(stage, PermissionPolicy::Deny).await;
    let message = scene.say(Act::Death).await;
    let (_, end) = scene.end_of(&message).await;
    assert!(is_lost(&end), "{end:?}");
    scene.until(0, |kind| *kind == SessionEventKind::Ended).await;
    let after = self::message(Act::Answer);
    assert!(is_lost(&scene.runtime.send(scene.id, &after).await));
    must(scene.runtime.cancel(scene.id).await, "cancel what is dead");
    let runtime = Arc::clone(&scene.runtime);
    let id = scene.id;
    scene.close().await;
    assert!(is_lost(&runtime.events(id, 0).await.map(|_| ())));
}

/// After a close the streams end, the session is unknown, and its process is gone.
pub async fn closing_leaves_nothing(stage: &dyn Stage) {
    let scene = Scene::open(stage, PermissionPolicy::Deny).await;
    let opened = must(scene.runtime.open(&scene.request).await, "open again");
    scene.say(Act::Silence).await;
    let stream = must(scene.runtime.events(scene.id, 0).await, "events");
    must(scene.runtime.close(scene.id).await, "close");
    if let Some(pid) = opened.pid {
        assert!(!cfg!(target_os = "linux") || !std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
    let events = tokio::time::timeout(BOUND, stream.collect::<Vec<_>>())
        .await
        .unwrap_or_default();
    assert_eq!(
        events.last().map(|event| &event.kind),
        Some(&SessionEventKind::Ended)
    );
    assert!(is_lost(&scene.runtime.events(scene.id, 0).await.map(|_| ())));
    assert!(is_lost(
        &scene.runtime.send(scene.id, &message(Act::Answer)).await
    ));
    must(scene.runtime.close(scene.id).await, "close again");
}

#[cfg(test)]
mod tests {
    use super::ScriptedStage;

    crate::runtime_suite!(ScriptedStage::new());
}

//! L3, L5: what is asked for again is done once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use sillage_core::id::ClientSessionId;
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{MessageFate, RuntimeError, SessionEventKind};
use sillage_testkit::scripted_runtime::{Call, Fault, Reply, ScriptedRuntime};
use uuid::Uuid;

use crate::hindered::Hindered;
use crate::house::{BOUND, House, client, folder, message, request};
use crate::raw::{Answer, ask};

fn creation(id: Uuid) -> Value {
    json!({
        "client_session_id": id, "application_name": "test", "model": "fake", "effort": "low", "workspace": "/nowhere",
        "filesystem_scope": { "read": ["/a", "/b"], "write": ["/nowhere"] }, "ttl_seconds": 3600,
    })
}

/// The same JSON with its keys in another order.
fn turned(value: &Value) -> String {
    let Some(object) = value.as_object() else {
        return value.to_string();
    };
    let mut keys: Vec<_> = object
        .iter()
        .map(|(key, value)| format!("{}:{}", json!(key), turned(value)))
        .collect();
    keys.reverse();
    format!("{{{}}}", keys.join(","))
}

fn statuses(answers: &[Answer]) -> (usize, usize) {
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    (count(201), count(200))
}

async fn replayed(house: &House, body: &Value, times: usize) -> Vec<Answer> {
    let bodies: Vec<String> = (0..times)
        .map(|n| {
            if n % 2 == 0 {
                body.to_string()
            } else {
                turned(body)
            }
        })
        .collect();
    join_all(
        bodies
            .iter()
            .map(|body| ask(house.address, "POST /api/sessions", body)),
    )
    .await
}

/// One session, however often and at once it is asked for; the same after the gateway was started again, whose runtime
/// goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b1_sixty_four_simultaneous_replays_are_one_session() {
    let scripted = ScriptedRuntime::new(|_| Reply::Silent);
    let (folder, id) = (folder(), Uuid::new_v4());
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    let body = creation(id);
    let answers = replayed(&house, &body, 64).await;
    assert_eq!(statuses(&answers), (1, 63));
    assert!(answers.iter().all(|answer| answer.json()["id"] == json!(id)));
    assert_eq!(scripted.starts(ClientSessionId(id)), 1);

    house.end().await;
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    let answers = replayed(&house, &body, 64).await;
    assert_eq!(statuses(&answers), (0, 64), "{answers:?}");
    assert_eq!(scripted.starts(ClientSessionId(id)), 1);

    for (field, value) in [
        ("effort", json!("high")),
        ("model", json!("other")),
        ("ttl_seconds", json!(60)),
        ("application_name", json!("other")),
        (
            "filesystem_scope",
            json!({ "read": ["/b", "/a"], "write": ["/nowhere"] }),
        ),
        ("workspace", json!("/elsewhere")),
        ("permissions", json!("ask")),
    ] {
        let mut other = creation(id);
        other[field] = value;
        let answer = ask(house.address, "POST /api/sessions", &other.to_string()).await;
        assert_eq!((answer.status, answer.problem().as_str()), (409, "conflict"));
        assert_eq!(answer.json()["fields"], json!([field]));
    }
    house.end().await;
}

/// Messages too: one is taken, the others are told so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_replays_of_a_message_are_one_message() {
    let scripted = ScriptedRuntime::new(|_| Reply::Silent);
    let folder = folder();
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    let id = Uuid::new_v4();
    assert_eq!(
        ask(house.address, "POST /api/sessions", &creation(id).to_string())
            .await
            .status,
        201
    );
    let line = format!("POST /api/sessions/{id}/messages");
    let body =
        json!({ "client_message_id": Uuid::new_v4(), "content": [{ "type": "text", "text": "hello" }] });
    let text = body.to_string();
    let answers = join_all((0..32).map(|_| ask(house.address, &line, &text))).await;
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(202), count(200)), (1, 31));
    assert_eq!(scripted.asked(), 1);

    let mut other = body.clone();
    other["content"][0]["text"] = json!("another");
    let answer = ask(house.address, &line, &other.to_string()).await;
    assert_eq!(
        (answer.status, answer.json()["fields"].clone()),
        (409, json!(["content"]))
    );
    let next =
        json!({ "client_message_id": Uuid::new_v4(), "content": [{ "type": "text", "text": "next" }] });
    let answer = ask(house.address, &line, &next.to_string()).await;
    assert_eq!((answer.status, answer.problem().as_str()), (409, "busy"));

    house.end().await;
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    assert_eq!(ask(house.address, &line, &text).await.status, 200);
    assert_eq!(ask(house.address, &line, &other.to_string()).await.status, 409);
    assert_eq!(scripted.asked(), 1);
    house.end().await;
}

/// B1: a client that gives up while its session opens finds it when it asks again; the opening is not begun anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b1_a_client_that_gives_up_finds_its_session() {
    let runtime = Hindered::slow();
    let folder = folder();
    let house = House::open(Arc::clone(&runtime) as Arc<dyn AgentRuntime>, &folder).await;
    let asked = request();
    let mut options = sillage_relais::ClientOptions::new("test");
    options.open = Duration::from_millis(100);
    let hasty =
        sillage_relais::RelaisClient::new(&format!("http://{}", house.address), crate::house::TOKEN, options);
    let outcome = hasty.expect("a client").open(&asked).await;
    assert!(
        matches!(outcome, Err(RuntimeError::Temporary { .. })),
        "{outcome:?}"
    );
    let patient = house.client();
    let opening = patient.open(&asked);
    runtime.let_it.notify_one();
    assert!(opening.await.is_ok());
    assert_eq!(runtime.begun.load(Ordering::SeqCst), 1);
    house.end().await;
}

/// A close that arrives before the opening has ended, or before it was asked for, leaves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b2_what_was_closed_is_not_opened_by_a_late_request() {
    let runtime = Hindered::slow();
    let folder = folder();
    let house = House::open(Arc::clone(&runtime) as Arc<dyn AgentRuntime>, &folder).await;
    let (first, second) = (house.client(), house.client());
    let asked = request();
    let id = asked.client_session_id;
    let opening = tokio::spawn({
        let asked = asked.clone();
        async move { first.open(&asked).await }
    });
    crate::house::eventually("it opens", || async { runtime.begun.load(Ordering::SeqCst) == 1 }).await;
    let closing = tokio::spawn(async move { second.close(id).await });
    runtime.let_it.notify_one();
    assert_eq!(closing.await.expect("no panic"), Ok(()));
    // Whoever opened it learns that it is over, if not that it was there.
    let _ = opening.await.expect("no panic");
    assert_eq!(runtime.runtime.open_sessions(), Vec::new());

    let never = request();
    let client = house.client();
    assert_eq!(client.close(never.client_session_id).await, Ok(()));
    let outcome = client.open(&never).await;
    assert!(matches!(outcome, Err(RuntimeError::Lost { .. })), "{outcome:?}");
    assert_eq!(runtime.begun.load(Ordering::SeqCst), 1);
    house.end().await;
}

/// A creation that failed may be asked for again; who asked at once is told the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_that_failed_leaves_nothing() {
    let mut left = 1;
    let scripted = ScriptedRuntime::new(|_| Reply::Silent).with_faults(move |call| {
        let fails = matches!(call, Call::Open(_)) && left > 0;
        fails.then(|| {
            left -= 1;
            Fault::Before(RuntimeError::Quota {
                words: "enough for today".to_owned(),
                resets_at: "2026-11-30T14:00:00Z".parse().ok(),
            })
        })
    });
    let folder = folder();
    let house = House::open(Arc::new(scripted), &folder).await;
    let (client, asked) = (house.client(), request());
    let Err(RuntimeError::Quota { words, resets_at }) = client.open(&asked).await else {
        panic!("no quota")
    };
    assert_eq!(
        (words.as_str(), resets_at),
        ("enough for today", "2026-11-30T14:00:00Z".parse().ok())
    );
    assert!(client.open(&asked).await.is_ok());
    house.end().await;
}

/// B12: a session that ended is remembered: a replay is told how it ended, and starts nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b12_a_session_that_ended_is_not_started_again() {
    let scripted = ScriptedRuntime::new(|_| Reply::Die("it died".to_owned()));
    let folder = folder();
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    let (closed, lost) = (Uuid::new_v4(), Uuid::new_v4());
    for id in [closed, lost] {
        assert_eq!(
            ask(house.address, "POST /api/sessions", &creation(id).to_string())
                .await
                .status,
            201
        );
    }
    for _ in 0..2 {
        assert_eq!(
            ask(house.address, &format!("DELETE /api/sessions/{closed}"), "")
                .await
                .status,
            204
        );
    }
    let body = json!({ "client_message_id": Uuid::new_v4(), "content": [{ "type": "text", "text": "die" }] });
    let sent = ask(
        house.address,
        &format!("POST /api/sessions/{lost}/messages"),
        &body.to_string(),
    )
    .await;
    assert_eq!(sent.status, 202);
    let address = house.address;
    let is_lost = || async move {
        ask(address, &format!("GET /api/sessions/{lost}"), "")
            .await
            .json()["state"]
            == json!("lost")
    };
    crate::house::eventually("it is lost", is_lost).await;
    house.end().await;
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    for (id, state) in [(closed, "ended"), (lost, "lost")] {
        let answer = ask(house.address, "POST /api/sessions", &creation(id).to_string()).await;
        assert_eq!((answer.status, &answer.json()["state"]), (200, &json!(state)));
        assert_eq!(scripted.starts(ClientSessionId(id)), 1);
        let events = ask(
            house.address,
            &format!("GET /api/sessions/{id}/events?after=99"),
            "",
        )
        .await;
        assert_eq!(events.status, 400);
    }
    house.end().await;
}

/// An answer that is lost on its way to the client, with all that the client does about it: nothing is asked twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r5_a_message_whose_answer_was_lost_is_asked_once() {
    let scripted = ScriptedRuntime::new(|_| Reply::text("done"));
    let folder = folder();
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    let (first, asked, said) = (house.client(), request(), message("hello"));
    let id = asked.client_session_id;
    first.open(&asked).await.expect("open");
    first.send(id, &said).await.expect("send");
    drop(first);
    let second = client(house.address);
    let found = second.find(&asked, None, Some(&said)).await.expect("find");
    assert_eq!(found.in_flight, MessageFate::InHand);
    second.send(id, &said).await.expect("send again");
    let mut events = second.events(id, 0).await.expect("events");
    let answered = async {
        while let Some(event) = events.next().await {
            if matches!(event.kind, SessionEventKind::Answer { .. }) {
                return true;
            }
        }
        false
    };
    assert_eq!(tokio::time::timeout(BOUND, answered).await, Ok(true));
    assert_eq!(scripted.asked(), 1);
    house.end().await;
}

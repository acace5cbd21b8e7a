//! L6, L8, L11, R12: what was acknowledged outlives the gateway, and what nobody uses does not live for ever.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{MessageFate, RuntimeError, SessionEvent, SessionEventKind};
use sillage_core::time::Timestamp;
use sillage_relais::Gateway;
use sillage_relais::GatewayOptions;
use sillage_relais::gateway::{Bounds, JournalError};
use sillage_testkit::scripted_runtime::{Call, Fault, Reply, ScriptedRuntime};

use crate::hindered::Hindered;
use crate::house::{BOUND, House, eventually, folder, message, request};

async fn until(
    runtime: &dyn AgentRuntime,
    session: sillage_core::id::ClientSessionId,
    last: impl Fn(&SessionEventKind) -> bool,
) -> Vec<SessionEvent> {
    let mut stream = runtime.events(session, 0).await.expect("events");
    let mut seen: Vec<SessionEvent> = Vec::new();
    let read = async {
        while let Some(event) = stream.next().await {
            assert_eq!(event.number, seen.len() as u64 + 1, "numbers have a gap");
            let is_last = last(&event.kind);
            seen.push(event);
            if is_last {
                return;
            }
        }
    };
    assert!(
        tokio::time::timeout(BOUND, read).await.is_ok(),
        "nothing after {seen:?}"
    );
    seen
}

fn answered(kind: &SessionEventKind) -> bool {
    matches!(kind, SessionEventKind::Answer { .. })
}

/// An answer that comes while no gateway is there is collected by the next; the client's stream goes on where it was
/// cut, each number once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b12_what_is_answered_meanwhile_is_collected() {
    let scripted = ScriptedRuntime::new(|asked| match asked.turn {
        0 => Reply::text("first"),
        _ => Reply::Silent,
    });
    let folder = folder();
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    let (client, asked) = (house.client(), request());
    let id = asked.client_session_id;
    client.open(&asked).await.expect("open");
    client.send(id, &message("one")).await.expect("send");
    let before = until(&client, id, answered).await;
    let second = message("two");
    client.send(id, &second).await.expect("send");
    let mut live = client.events(id, 0).await.expect("events");
    let address = house.address;
    house.end().await;

    assert!(
        scripted.answer(id, Reply::text("second")),
        "nothing is being answered"
    );
    let options = GatewayOptions::new(folder.path().join("relais"));
    let house = House::with(
        Arc::new(scripted.clone()),
        options,
        Bounds::default(),
        address.port(),
    )
    .await;
    let mut seen = Vec::new();
    let read = async {
        while let Some(event) = live.next().await {
            seen.push(event);
            if seen.iter().filter(|event| answered(&event.kind)).count() == 2 {
                return;
            }
        }
    };
    assert!(
        tokio::time::timeout(BOUND, read).await.is_ok(),
        "nothing after {seen:?}"
    );
    let numbers: Vec<u64> = seen.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=seen.len() as u64).collect::<Vec<_>>());
    assert_eq!(seen[..before.len()], before[..]);
    let engine = house.client();
    let found = engine.find(&asked, None, Some(&second)).await.expect("find");
    assert_eq!((found.restarted, found.in_flight), (false, MessageFate::InHand));
    assert_eq!(
        until(
            &engine,
            id,
            |kind| matches!(kind, SessionEventKind::Answer { answer, .. } if answer.text == "second")
        )
        .await,
        seen
    );
    assert_eq!(scripted.asked(), 2);
    house.end().await;
}

/// A session that the runtime lost meanwhile is said to be lost, with the message that it cut.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_not_found_again_is_said_to_be_lost() {
    let scripted = ScriptedRuntime::new(|_| Reply::Silent);
    let folder = folder();
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    let (client, asked, said) = (house.client(), request(), message("one"));
    let id = asked.client_session_id;
    client.open(&asked).await.expect("open");
    client.send(id, &said).await.expect("send");
    house.end().await;
    scripted.lose_all("the machine was started again");
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    let client = house.client();
    let outcome = client.find(&asked, None, Some(&said)).await;
    assert!(matches!(outcome, Err(RuntimeError::Lost { .. })), "{outcome:?}");
    let outcome = client.open(&asked).await;
    assert!(matches!(outcome, Err(RuntimeError::Lost { .. })), "{outcome:?}");
    assert_eq!(scripted.starts(id), 1);
    house.end().await;
}

/// A passing reason is none to say that a session is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_cannot_be_looked_for_now_is_looked_for_again() {
    let scripted = ScriptedRuntime::new(|_| Reply::text("done"));
    let folder = folder();
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    let asked = request();
    house.client().open(&asked).await.expect("open");
    house.end().await;
    let mut left = 2;
    let faulty = scripted.clone().with_faults(move |call| {
        let fails = matches!(call, Call::Find(_)) && left > 0;
        left -= i32::from(fails);
        fails.then(|| {
            Fault::Before(RuntimeError::Temporary {
                words: "not now".to_owned(),
                retry_after: Some(Duration::from_secs(3)),
            })
        })
    });
    let house = House::open(Arc::new(faulty), &folder).await;
    let client = house.client();
    let found = || async {
        match client.find(&asked, None, None).await {
            Ok(_) => true,
            Err(RuntimeError::Temporary { words, retry_after }) => {
                assert_eq!(
                    (words.as_str(), retry_after),
                    ("not now", Some(Duration::from_secs(3)))
                );
                false
            }
            other => panic!("{other:?}"),
        }
    };
    eventually("it is found", found).await;
    house.end().await;
}

/// A message that was acknowledged and had not reached the runtime when the gateway was killed is passed on by the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_was_kept_and_not_passed_on_is_passed_on() {
    let scripted = ScriptedRuntime::new(|_| Reply::text("done"));
    let folder = folder();
    // Its runtime takes the message into its hands and never comes back: as if it was killed meanwhile.
    let stuck = Hindered::stuck(scripted.clone());
    let house = House::open(Arc::new(stuck), &folder).await;
    let (asked, said) = (request(), message("one"));
    let id = asked.client_session_id;
    let client = house.client();
    client.open(&asked).await.expect("open");
    let sending = tokio::spawn({
        let said = said.clone();
        async move { client.send(id, &said).await }
    });
    let address = house.address;
    let is_working = || async move {
        let line = format!("GET /api/sessions/{id}");
        crate::raw::ask(address, &line, "").await.json()["state"] == "working"
    };
    eventually("it is kept", is_working).await;
    sending.abort();
    house.end().await;
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    let client = house.client();
    client.find(&asked, None, Some(&said)).await.expect("find");
    client.send(id, &said).await.expect("send again");
    until(&client, id, answered).await;
    assert_eq!(scripted.asked(), 1);
    house.end().await;
}

/// An opening that nobody was told of when the gateway was killed is begun anew by its replay: one session, and the
/// replay is told that it is new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b2_an_opening_that_a_kill_cut_is_begun_anew() {
    let slow = Hindered::slow();
    let folder = folder();
    let house = House::open(Arc::clone(&slow) as Arc<dyn AgentRuntime>, &folder).await;
    let (client, asked) = (house.client(), request());
    let id = asked.client_session_id;
    let opening = tokio::spawn({
        let asked = asked.clone();
        async move { client.open(&asked).await }
    });
    eventually("it opens", || async { slow.begun.load(Ordering::SeqCst) == 1 }).await;
    opening.abort();
    house.end().await;
    for (known, starts) in [(false, 1), (true, 1)] {
        let house = House::open(Arc::new(slow.runtime.clone()), &folder).await;
        let client = house.client();
        let found = client.find(&asked, None, None).await;
        assert_eq!(found.is_ok(), known, "{found:?}");
        let all = futures_util::future::join_all((0..8).map(|_| client.open(&asked))).await;
        assert!(all.iter().all(Result::is_ok), "{all:?}");
        assert_eq!(slow.runtime.starts(id), starts);
        house.end().await;
    }
}

/// L8: a session that nobody uses for its time is closed; one that is read, or asked about, is used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l8_a_session_that_nobody_uses_is_closed() {
    static CLOCK: AtomicI64 = AtomicI64::new(crate::house::NOW.0);
    let forward = |seconds: i64| CLOCK.fetch_add(seconds * 1000, Ordering::SeqCst);
    let scripted = ScriptedRuntime::new(|_| Reply::Silent);
    let folder = folder();
    let options = GatewayOptions {
        clock: || Timestamp(CLOCK.load(Ordering::SeqCst)),
        ..GatewayOptions::new(folder.path().join("relais"))
    };
    let house = House::with(Arc::new(scripted.clone()), options.clone(), Bounds::default(), 0).await;
    let client = house.client();
    let sessions: HashMap<&str, _> = ["unused", "asked about", "read", "at work"]
        .map(|name| (name, request()))
        .into_iter()
        .collect();
    for asked in sessions.values() {
        client.open(asked).await.expect("open");
    }
    let id = |name: &str| sessions[name].client_session_id;
    let reading = client.events(id("read"), 0).await.expect("events");
    client.send(id("at work"), &message("work")).await.expect("send");
    forward(3000);
    client
        .find(&sessions["asked about"], None, None)
        .await
        .expect("find");
    forward(601);
    house.gateway.tick();
    let open = || {
        let mut open = scripted.open_sessions();
        open.sort();
        open
    };
    let mut kept = vec![id("asked about"), id("read"), id("at work")];
    kept.sort();
    eventually("the unused one is closed", || async { open() == kept }).await;
    let outcome = client.find(&sessions["unused"], None, None).await;
    let Err(RuntimeError::Lost { words }) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(words.contains("nobody used it"), "{words}");

    // From the end of the reading on it is unused; the one at work stays.
    drop(reading);
    forward(4000);
    let only = vec![id("at work")];
    eventually("all that nobody uses are closed", || async {
        forward(3601);
        house.gateway.tick();
        open() == only
    })
    .await;

    // L3: seven days after its end an identifier is forgotten, and may be used again.
    forward(8 * 24 * 3600);
    house.gateway.tick();
    assert!(client.open(&sessions["unused"]).await.is_ok());
    assert_eq!(scripted.starts(id("unused")), 2);
    house.end().await;
    // On disk as well.
    let house = House::with(Arc::new(scripted.clone()), options, Bounds::default(), 0).await;
    let outcome = house.client().find(&sessions["asked about"], None, None).await;
    let Err(RuntimeError::Lost { words }) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(words.contains("there is no session"), "{words}");
    house.end().await;
}

/// A10: one gateway at a time holds its folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_has_one_gateway() {
    let folder = folder();
    let scripted = ScriptedRuntime::new(|_| Reply::Silent);
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    let options = GatewayOptions::new(folder.path().join("relais"));
    let second = Gateway::open(Arc::new(scripted.clone()), options.clone());
    assert!(matches!(second.map(|_| ()), Err(JournalError::Held { .. })));
    house.end().await;
    drop(Gateway::open(Arc::new(scripted), options).expect("a gateway"));
}

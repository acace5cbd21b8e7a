//! L6: event streams, resumed anywhere, and readers that are slow or many.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{Answer, SessionEventKind, StopReason, Usage};
use sillage_relais::GatewayOptions;
use sillage_relais::gateway::Bounds;
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::house::{BOUND, House, eventually, folder, message, request};
use crate::raw;

/// An answer after so many pieces of this text.
fn pieces(count: usize, text: &str) -> Reply {
    let piece = |n: usize| SessionEventKind::Text {
        text: format!("{n} {text}"),
    };
    Reply::Answer {
        before: (0..count).map(piece).collect(),
        answer: Answer {
            text: "done".to_owned(),
            stop: StopReason::EndTurn,
            usage: Usage::default(),
        },
    }
}

/// More events than are kept in memory, from any number on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d15_a_stream_is_taken_up_at_any_number() {
    let scripted = ScriptedRuntime::new(|_| pieces(1000, "é\n\"\u{1b}"));
    let folder = folder();
    let house = House::open(Arc::new(scripted), &folder).await;
    let (client, asked) = (house.client(), request());
    let id = asked.client_session_id;
    client.open(&asked).await.expect("open");
    client.send(id, &message("go")).await.expect("send");
    let stream = client.events(id, 0).await.expect("events");
    // idle, working, 1000 pieces, the answer, idle
    let all: Vec<_> = tokio::time::timeout(BOUND, stream.take(1004).collect())
        .await
        .expect("events");
    for after in [1_u64, 2, 500, 746, 747, 748, 1003] {
        let rest = client.events(id, after).await.expect("events");
        let left = 1004 - after;
        let rest: Vec<_> = tokio::time::timeout(BOUND, rest.take(left as usize).collect())
            .await
            .expect("events");
        assert_eq!(rest, all[after as usize..], "after {after}");
    }
    let line = format!("GET /api/sessions/{id}/events");
    for (line, head) in [
        (format!("{line}?after=1005"), ""),
        (format!("{line}?after=-1"), ""),
        (format!("{line}?after=x"), ""),
        (format!("{line}?after=1&other=2"), ""),
        (line.clone(), "Last-Event-ID: 1005"),
        (line.clone(), "Last-Event-ID: x"),
        (line.clone(), "Last-Event-ID: 99999999999999999999999"),
    ] {
        let lines: Vec<&str> = [head].into_iter().filter(|head| !head.is_empty()).collect();
        let text = raw::request(house.address, &line, &lines, "");
        let answer = raw::exchange(house.address, text.as_bytes())
            .await
            .expect("an answer");
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (400, "bad-request"),
            "{line} {head}"
        );
    }
    // What the header says holds.
    let text = raw::request(
        house.address,
        &format!("{line}?after=3"),
        &["Last-Event-ID: 1003"],
        "",
    );
    let mut stream = TcpStream::connect(house.address).await.expect("a connection");
    stream.write_all(text.as_bytes()).await.expect("written");
    let mut told = String::new();
    let mut buffer = [0; 1024];
    while !told.contains("id: ") {
        let count = tokio::time::timeout(BOUND, stream.read(&mut buffer))
            .await
            .expect("in time")
            .expect("read");
        assert!(count > 0, "{told}");
        told.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    assert!(told.contains("id: 1004\nevent: state\ndata: {"), "{told}");
    house.end().await;
}

/// D14: who stops reading is cut after a bound, and nobody else is slowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d14_a_reader_that_stops_is_cut_and_slows_nobody() {
    let scripted = ScriptedRuntime::new(|_| pieces(400, &"x".repeat(64 << 10)));
    let folder = folder();
    let bounds = Bounds {
        write: Duration::from_millis(300),
        ..Bounds::default()
    };
    let options = GatewayOptions::new(folder.path().join("relais"));
    let house = House::with(Arc::new(scripted), options, bounds, 0).await;
    let (client, asked) = (house.client(), request());
    let id = asked.client_session_id;
    client.open(&asked).await.expect("open");
    let text = raw::request(house.address, &format!("GET /api/sessions/{id}/events"), &[], "");
    let mut stuck = TcpStream::connect(house.address).await.expect("a connection");
    stuck.write_all(text.as_bytes()).await.expect("written");
    client.send(id, &message("go")).await.expect("send");
    let stream = client.events(id, 0).await.expect("events");
    let all: Vec<_> = tokio::time::timeout(BOUND, stream.take(404).collect())
        .await
        .expect("events");
    assert_eq!(all.len(), 404);
    // It reads nothing until it is cut: what the kernel took for it is all that it gets.
    let address = house.address;
    let unused = || async move {
        let session = raw::ask(address, &format!("GET /api/sessions/{id}"), "")
            .await
            .json();
        session.get("expires_at").is_some()
    };
    eventually("it is cut", unused).await;
    let mut told = Vec::new();
    let read = tokio::time::timeout(BOUND, stuck.read_to_end(&mut told))
        .await
        .expect("the end");
    assert!(
        read.is_err() || told.len() < 400 * (64 << 10),
        "it was sent everything"
    );
    house.end().await;
}

/// Many readers of one session see the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_readers_see_the_same() {
    let scripted = ScriptedRuntime::new(|_| pieces(50, "x"));
    let folder = folder();
    let house = House::open(Arc::new(scripted), &folder).await;
    let (client, asked) = (house.client(), request());
    let id = asked.client_session_id;
    client.open(&asked).await.expect("open");
    let readers = join_all((0..50).map(|_| client.events(id, 0))).await;
    client.send(id, &message("go")).await.expect("send");
    let read = readers
        .into_iter()
        .map(|stream| stream.expect("events").take(54).collect::<Vec<_>>());
    let seen = tokio::time::timeout(BOUND, join_all(read))
        .await
        .expect("in time");
    assert!(seen.iter().all(|one| *one == seen[0]));
    house.end().await;
}

/// A stream ends when the gateway does, and is not taken for the session's end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_streams_end_with_the_gateway() {
    let scripted = ScriptedRuntime::new(|_| Reply::Silent);
    let folder = folder();
    let house = House::open(Arc::new(scripted.clone()), &folder).await;
    let (client, asked) = (house.client(), request());
    let id = asked.client_session_id;
    client.open(&asked).await.expect("open");
    let mut stream = client.events(id, 1).await.expect("events");
    let address = house.address;
    house.end().await;
    assert_eq!(scripted.open_sessions(), [id]);
    let options = GatewayOptions::new(folder.path().join("relais"));
    let house = House::with(Arc::new(scripted), options, Bounds::default(), address.port()).await;
    house.client().close(id).await.expect("close");
    let next = tokio::time::timeout(BOUND, stream.next())
        .await
        .expect("an event")
        .expect("an event");
    assert_eq!((next.number, next.kind), (2, SessionEventKind::Ended));
    assert_eq!(stream.next().await, None);
    house.end().await;
}

//! L3, L6, L11: the program is killed, and what it acknowledged holds. The agents' own records prove it.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{PermissionPolicy, RuntimeError, SessionEvent, SessionEventKind};
use sillage_testkit::condition;
use uuid::Uuid;

use crate::program::{BOUND, Program, ask, command};
use crate::theatre::{Theatre, message};

fn creation(theatre: &Theatre, id: Uuid) -> Value {
    let work = theatre.place("work");
    json!({
        "client_session_id": id, "application_name": "test", "model": "fake", "effort": "low", "workspace": work,
        "filesystem_scope": { "write": [work] },
    })
}

/// How often each status was answered: 201, 200.
fn replayed(program: &Program, body: &Value, times: usize) -> (usize, usize) {
    let (address, token) = (program.address, program.token().to_owned());
    let asked: Vec<_> = (0..times)
        .map(|_| {
            let (body, token) = (body.to_string(), token.clone());
            std::thread::spawn(move || ask(address, &token, "POST /api/sessions", &body))
        })
        .collect();
    let told: Vec<(u16, Value)> = asked
        .into_iter()
        .map(|one| one.join().expect("an answer"))
        .collect();
    assert!(
        told.iter()
            .all(|(_, session)| session["id"] == body["client_session_id"]),
        "{told:?}"
    );
    let count = |status: u16| told.iter().filter(|(found, _)| *found == status).count();
    (count(201), count(200))
}

async fn eventually(what: &str, holds: impl Fn() -> bool) {
    condition::eventually(what, BOUND, async || holds()).await;
}

/// One session and one agent process, before and after the gateway was killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b1_sixty_four_replays_before_and_after_a_kill_are_one_session() {
    let theatre = Theatre::new();
    let program = Program::start(&theatre, 0);
    let body = creation(&theatre, Uuid::new_v4());
    assert_eq!(replayed(&program, &body, 64), (1, 63));
    assert_eq!(
        (theatre.received("session/new").len(), theatre.agents().len()),
        (1, 1)
    );
    program.kill();
    eventually("its agent ends with it", || theatre.living().is_empty()).await;

    let program = Program::start(&theatre, 0);
    assert_eq!(replayed(&program, &body, 64), (0, 64));
    let mut other = body.clone();
    other["effort"] = json!("high");
    let (status, problem) = program.ask("POST /api/sessions", &other.to_string());
    assert_eq!((status, &problem["fields"]), (409, &json!(["effort"])));
    assert_eq!(
        theatre.received("session/new").len(),
        1,
        "a second session was started"
    );
    assert_eq!(theatre.living().len(), 1);
    let (status, words) = program.terminate();
    assert!(status.success(), "{status} {words}");
    assert_eq!(theatre.living(), Vec::<u32>::new());
}

/// A client's stream goes on over a kill, each number once; the message that was being answered ends, and is not asked
/// twice; the session goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l6_a_stream_goes_on_over_a_kill() {
    let theatre = Theatre::new();
    let program = Program::start(&theatre, 0);
    let port = program.address.port();
    let client = Arc::new(program.client());
    let asked = theatre.request(PermissionPolicy::Deny);
    let id = asked.client_session_id;
    client.open(&asked).await.expect("open");
    let first = message("please answer (1)");
    client.send(id, &first).await.expect("send");
    let mut stream = client.events(id, 0).await.expect("events");
    let mut seen: Vec<SessionEvent> = Vec::new();
    until(&mut stream, &mut seen, |kind| {
        matches!(kind, SessionEventKind::Answer { .. })
    })
    .await;
    let silent = message("please be silent (2)");
    client.send(id, &silent).await.expect("send");
    eventually("the agent has it", || theatre.times_asked(&silent.text) == 1).await;
    program.kill();

    let program = Program::start(&theatre, port);
    let cut = silent.client_message_id;
    until(&mut stream, &mut seen, |kind| {
        let answered = matches!(kind, SessionEventKind::Answer { message, .. } if *message == cut);
        answered || matches!(kind, SessionEventKind::Error { message, .. } if *message == Some(cut))
    })
    .await;
    assert_eq!(client.send(id, &first).await, Ok(()), "a replay");
    let last = message("please answer (3)");
    client.send(id, &last).await.expect("send");
    let last = last.client_message_id;
    until(
        &mut stream,
        &mut seen,
        |kind| matches!(kind, SessionEventKind::Answer { message, .. } if *message == last),
    )
    .await;
    let numbers: Vec<u64> = seen.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=seen.len() as u64).collect::<Vec<_>>());
    for text in [&first.text, &silent.text] {
        assert_eq!(theatre.times_asked(text), 1, "{text}");
    }
    // The whole story is there for who reads it from the start.
    let again = client.events(id, 0).await.expect("events");
    let read = tokio::time::timeout(BOUND, again.take(seen.len()).collect::<Vec<_>>()).await;
    assert_eq!(read.expect("in time"), seen);
    client.close(id).await.expect("close");
    assert_eq!(theatre.living(), Vec::<u32>::new());
    let (status, words) = program.terminate();
    assert!(status.success(), "{status} {words}");
}

async fn until(
    stream: &mut (impl futures_util::Stream<Item = SessionEvent> + Unpin),
    seen: &mut Vec<SessionEvent>,
    last: impl Fn(&SessionEventKind) -> bool,
) {
    let read = async {
        while let Some(event) = stream.next().await {
            let is_last = last(&event.kind);
            seen.push(event);
            if is_last {
                return true;
            }
        }
        false
    };
    let outcome = tokio::time::timeout(BOUND, read).await;
    assert_eq!(outcome, Ok(true), "after {seen:#?}");
}

/// Many kills at any moment: what a client was told is never taken back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d16_what_was_told_is_kept_whenever_it_is_killed() {
    let theatre = Theatre::new();
    let asked = theatre.request(PermissionPolicy::Deny);
    let id = asked.client_session_id;
    let mut port = 0;
    let mut story: Vec<SessionEvent> = Vec::new();
    for round in 0..6_usize {
        let program = Program::start(&theatre, port);
        port = program.address.port();
        let client = program.client();
        match client.open(&asked).await {
            Ok(_) => {}
            Err(error) => panic!("round {round}: {error:?}"),
        }
        let stream = client.events(id, 0).await.expect("events");
        // A message may be under way from before.
        let _ = client
            .send(id, &message(&format!("please answer ({round})")))
            .await;
        let told: Vec<SessionEvent> =
            tokio::time::timeout(BOUND, stream.take(story.len() + 1 + round).collect())
                .await
                .expect("in time");
        program.kill();
        assert_eq!(told[..story.len()], story, "round {round}");
        story = told;
    }
}

/// D8, H6: the token is nowhere but in its file; the end is asked for once, and leaves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d8_the_token_is_nowhere_but_in_its_file() {
    let theatre = Theatre::new();
    let program = Program::start(&theatre, 0);
    let mode = std::fs::metadata(theatre.place("token"))
        .expect("a token")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let asked = theatre.request(PermissionPolicy::Deny);
    program.client().open(&asked).await.expect("open");
    let agent = theatre.living();
    for pid in [program.pid()].into_iter().chain(agent) {
        for place in ["cmdline", "environ"] {
            let told = std::fs::read(format!("/proc/{pid}/{place}")).unwrap_or_default();
            assert!(
                !String::from_utf8_lossy(&told).contains(program.token()),
                "{place}"
            );
        }
    }
    let token = program.token().to_owned();
    let (status, words) = program.terminate();
    assert!(status.success() && !words.contains(&token), "{status} {words}");
    assert_eq!(theatre.living(), Vec::<u32>::new());
    let sessions = std::fs::read(theatre.place("data/sessions/sled/db")).expect("a log");
    assert!(
        !sessions
            .windows(token.len())
            .any(|window| window == token.as_bytes())
    );
}

/// A10: a second gateway on the same folder says who holds it, and changes nothing.
#[test]
fn a10_a_folder_has_one_gateway() {
    let theatre = Theatre::new();
    let program = Program::start(&theatre, 0);
    let second = command(&theatre, 0).output().expect("it runs");
    let words = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(6), "{words}");
    assert!(words.contains("held by another gateway"), "{words}");
    let (status, _) = program.ask("GET /api/status", "");
    assert_eq!(status, 200);
}

/// L9: the agents of the settings are started and stopped outside of sessions.
#[test]
fn l9_agents_are_started_and_stopped() {
    let theatre = Theatre::new();
    let program = Program::start(&theatre, 0);
    let state = || program.ask("GET /api/agents", "").1["agents"][0]["state"].clone();
    assert_eq!(state(), json!("stopped"));
    assert_eq!(program.ask("POST /api/agents/scripted/start", "").0, 204);
    assert_eq!(state(), json!("ready"));
    assert_eq!(program.ask("POST /api/agents/scripted/restart", "").0, 204);
    assert_eq!(program.ask("GET /api/agents/scripted/logs", "").0, 200);
    assert_eq!(program.ask("POST /api/agents/scripted/stop", "").0, 204);
    assert_eq!(state(), json!("stopped"));
    let (status, problem) = program.ask("POST /api/agents/nobody/start", "");
    assert_eq!(
        (status, &problem["type"]),
        (404, &json!("urn:relais:problem:not-found"))
    );
    let (_, models) = program.ask("GET /api/models", "");
    assert_eq!(
        (&models["models"][0]["agent"], &models["models"][0]["model"]),
        (&json!("scripted"), &json!("fake"))
    );
    drop(program);
}

/// A model that nobody offers is refused for good; nothing is left of the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r9_a_refused_model_is_permanent() {
    let theatre = Theatre::new();
    let program = Program::start(&theatre, 0);
    let mut asked = theatre.request(PermissionPolicy::Deny);
    asked.model = "never-heard-of".to_owned();
    let outcome = program.client().open(&asked).await;
    assert!(
        matches!(outcome, Err(RuntimeError::Permanent { .. })),
        "{outcome:?}"
    );
    assert_eq!(program.ask("GET /api/sessions", "").1["sessions"], json!([]));
}

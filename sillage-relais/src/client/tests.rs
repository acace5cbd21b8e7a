//! Gateways that are broken, slow, or none.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use sillage_core::folders::Folders;
use sillage_core::id::ClientMessageId;
use sillage_core::ports::runtime::{PermissionPolicy, SessionEventKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::*;

/// What a false gateway answers to the request with this head; none: it is cut. After what it answers, the connection
/// ends, or stays without a word.
type Script = Box<dyn Fn(&str) -> Option<(Vec<u8>, Then)> + Send + Sync>;

#[derive(Clone, Copy)]
enum Then {
    End,
    Stay,
}

struct FalseGateway {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Drop for FalseGateway {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn false_gateway(script: Script) -> FalseGateway {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let script = Arc::new(script);
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (script, counted) = (Arc::clone(&script), Arc::clone(&counted));
            tokio::spawn(async move {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") {
                    if stream.read(&mut byte).await.unwrap_or(0) == 0 {
                        return;
                    }
                    head.push(byte[0]);
                }
                counted.fetch_add(1, Ordering::SeqCst);
                let Some((bytes, then)) = script(&String::from_utf8_lossy(&head)) else {
                    return;
                };
                let _ = stream.write_all(&bytes).await;
                if let Then::Stay = then {
                    std::future::pending::<()>().await;
                }
                // What was not read of the request would cut the answer short.
                let _ = stream.shutdown().await;
                let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
            });
        }
    });
    FalseGateway {
        address,
        asked,
        serving,
    }
}

fn always(bytes: impl Into<Vec<u8>>, then: Then) -> Script {
    let bytes = bytes.into();
    Box::new(move |_| Some((bytes.clone(), then)))
}

fn answer(status: &str, head: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{head}\r\n{body}",
        body.len()
    )
}

fn client(gateway: &FalseGateway) -> RelaisClient {
    let short = Duration::from_millis(200);
    let options = ClientOptions {
        connect: short,
        answer: short,
        open: short,
        silence: short,
        ..ClientOptions::new("test")
    };
    RelaisClient::new(&format!("http://{}", gateway.address), "secret", options).unwrap()
}

fn request() -> SessionRequest {
    SessionRequest {
        client_session_id: ClientSessionId(Uuid::new_v4()),
        model: "m".to_owned(),
        effort: "e".to_owned(),
        workspace: "/w".into(),
        filesystem_scope: Folders::default(),
        protected: Default::default(),
        permissions: PermissionPolicy::Ask,
        autocompact_tokens: None,
    }
}

fn session(id: Uuid, state: &str) -> String {
    let session = serde_json::json!({
        "id": id, "client_session_id": id, "application_name": "test", "state": state, "model": "m", "effort": "e",
        "workspace": "/w", "filesystem_scope": {}, "permissions": "ask", "ttl_seconds": 3600, "usage": {},
        "created_at": "2026-11-30T14:00:00Z", "last_activity_at": "2026-11-30T14:00:00Z", "last_event": 0,
        "something_new": true,
    });
    session.to_string()
}

fn class(error: &RuntimeError) -> &'static str {
    match error {
        RuntimeError::Temporary { .. } => "temporary",
        RuntimeError::Permanent { .. } => "permanent",
        RuntimeError::Lost { .. } => "lost",
        RuntimeError::Quota { .. } => "quota",
        RuntimeError::SignIn { .. } => "sign-in",
        RuntimeError::Capacity { .. } => "capacity",
        RuntimeError::Conflict { .. } => "conflict",
        RuntimeError::Unstoppable { .. } => "unstoppable",
        _ => "another",
    }
}

/// All that a stream tells until it ends.
async fn collected(stream: BoxStream<'static, SessionEvent>) -> Vec<SessionEvent> {
    tokio::time::timeout(Duration::from_secs(60), stream.collect())
        .await
        .unwrap()
}

/// Why a session's events cannot be had.
async fn no_events(client: &RelaisClient, asked: &SessionRequest) -> RuntimeError {
    let again = client.events(asked.client_session_id, 0).await;
    again.err().expect("no events")
}

/// B6, B10, B11: whatever is answered, or not, is one readable error of its class, within bounds, after one request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b10_b11_a_broken_gateway_is_one_readable_error() {
    let json = "Content-Type: application/json\r\n";
    let endless = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    let large = format!("1000000\r\n{}\r\n", "x".repeat(0x100_0000));
    for (what, script, expected) in [
        ("no answer", always("", Then::Stay), "temporary"),
        (
            "half a head",
            always("HTTP/1.1 200 OK\r\nContent-", Then::Stay),
            "temporary",
        ),
        (
            "half a body",
            always(
                format!("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n{json}\r\n{{"),
                Then::Stay,
            ),
            "temporary",
        ),
        (
            "a body cut short",
            always(
                format!("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n{json}\r\n{{"),
                Then::End,
            ),
            "temporary",
        ),
        (
            "a connection cut",
            Box::new(|_: &str| None) as Script,
            "temporary",
        ),
        ("no HTTP", always("hello\r\n\r\n", Then::End), "temporary"),
        (
            "an endless body",
            always(endless + &large + &large, Then::End),
            "permanent",
        ),
        (
            "no JSON",
            always(answer("200 OK", json, "hello"), Then::End),
            "permanent",
        ),
        (
            "another type",
            always(answer("200 OK", json, "[1, 2]"), Then::End),
            "permanent",
        ),
        (
            "no UTF-8",
            always(
                [answer("200 OK", json, "ab").into_bytes(), vec![0xff]].concat(),
                Then::End,
            ),
            "permanent",
        ),
        (
            "nothing",
            always(answer("200 OK", "", ""), Then::End),
            "permanent",
        ),
        (
            "a redirection",
            always(
                answer(
                    "307 Temporary Redirect",
                    "Location: http://127.0.0.1:9/api\r\n",
                    "",
                ),
                Then::End,
            ),
            "permanent",
        ),
        (
            "500",
            always(answer("500 Oops", "", "words"), Then::End),
            "temporary",
        ),
        (
            "529",
            always(answer("529 Overloaded", "Retry-After: 7\r\n", ""), Then::End),
            "temporary",
        ),
        (
            "503",
            always(answer("503 No", "Retry-After: -1\r\n", ""), Then::End),
            "temporary",
        ),
        (
            "a date",
            always(
                answer("503 No", "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n", ""),
                Then::End,
            ),
            "temporary",
        ),
        (
            "a wait beyond all reason",
            always(
                answer("503 No", "Retry-After: 99999999999999999999999\r\n", ""),
                Then::End,
            ),
            "temporary",
        ),
        (
            "429",
            always(answer("429 Too Many", "", ""), Then::End),
            "temporary",
        ),
        ("401", always(answer("401 No", "", ""), Then::End), "permanent"),
        ("404", always(answer("404 No", "", ""), Then::End), "lost"),
        (
            "a problem of another make",
            always(
                answer(
                    "418 Teapot",
                    json,
                    r#"{"type":"about:blank","title":"t","status":418,"detail":"d"}"#,
                ),
                Then::End,
            ),
            "permanent",
        ),
    ] {
        let gateway = false_gateway(script).await;
        let error = client(&gateway).open(&request()).await.expect_err(what);
        assert_eq!(class(&error), expected, "{what}: {error:?}");
        assert!(
            !error.to_string().is_empty() && !error.to_string().contains("secret"),
            "{what}: {error}"
        );
        assert_eq!(gateway.asked.load(Ordering::SeqCst), 1, "{what}: tried again");
    }
}

/// B6: nobody listens.
#[tokio::test]
async fn b6_a_gateway_that_is_not_there_is_temporary() {
    let gateway = false_gateway(always("", Then::End)).await;
    let client = client(&gateway);
    gateway.serving.abort();
    while !gateway.serving.is_finished() {
        tokio::task::yield_now().await;
    }
    for error in [
        client.open(&request()).await.expect_err("open"),
        client.status().await.expect_err("status"),
        client
            .close(request().client_session_id)
            .await
            .expect_err("close"),
        client.account("a").await.expect_err("account"),
    ] {
        assert_eq!(class(&error), "temporary", "{error:?}");
    }
}

/// A wait that the gateway asks for is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r7_a_wait_that_is_asked_for_is_told() {
    let gateway = false_gateway(always(
        answer("529 Overloaded", "Retry-After: 7\r\n", ""),
        Then::End,
    ))
    .await;
    let error = client(&gateway).open(&request()).await.expect_err("overload");
    assert!(matches!(error, RuntimeError::Temporary { retry_after: Some(span), .. } if span.as_secs() == 7));
}

/// B13: a session that is somebody else's is not taken for ours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b13_another_session_than_asked_for_is_refused() {
    let other = Uuid::new_v4();
    let gateway = false_gateway(always(
        answer("201 Created", "", &session(other, "idle")),
        Then::End,
    ))
    .await;
    let client = client(&gateway);
    let asked = request();
    for error in [
        client.open(&asked).await.expect_err("open"),
        client.find(&asked, None, None).await.expect_err("find"),
    ] {
        assert_eq!(class(&error), "permanent", "{error:?}");
    }
    let message = MessageRequest {
        client_message_id: ClientMessageId(Uuid::new_v4()),
        text: "x".to_owned(),
    };
    let sent = client
        .send(asked.client_session_id, &message)
        .await
        .expect_err("send");
    assert_eq!(class(&sent), "lost");
}

/// What a stream says is told once each, whatever is cut, repeated, missing or unknown in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d15_a_stream_is_taken_up_without_gap_or_repeat() {
    let asked = request();
    let id = asked.client_session_id.0;
    let tries = AtomicUsize::new(0);
    let event = |number: u64, text: &str| {
        let at = "2026-11-30T14:00:00Z";
        format!(
            "id: {number}\nevent: text\ndata: {{\"number\":{number},\"at\":\"{at}\",\"kind\":\"text\",\"text\":\"{text}\"}}\n\n"
        )
    };
    let over =
        "id: 6\nevent: state\ndata: {\"number\":6,\"at\":\"\",\"kind\":\"state\",\"state\":\"ended\"}\n\n";
    let script = move |head: &str| {
        if head.starts_with("POST") {
            return Some((
                answer("201 Created", "", &session(id, "idle")).into_bytes(),
                Then::End,
            ));
        }
        let stream = |body: String| {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
            Some((format!("{head}{body}").into_bytes(), Then::End))
        };
        let after = head
            .split("after=")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        match (tries.fetch_add(1, Ordering::SeqCst), after) {
            (0, Some("0")) => stream(format!("{}{}id: 3\nevent: te", event(1, "a"), event(2, "b"))),
            // What was told before is told again; then one is missing.
            (1, Some("2")) => stream(format!(
                "{}{}{}{}",
                event(1, "a"),
                event(2, "b"),
                event(3, "c"),
                event(5, "e")
            )),
            (2, Some("3")) => Some((answer("503 No", "", "").into_bytes(), Then::End)),
            (3, Some("3")) => None,
            (4, Some("3")) => Some((Vec::new(), Then::Stay)),
            (5, Some("3")) => stream(format!(
                "id: 4\nevent: new\ndata: {{\"number\":4,\"at\":\"\",\"kind\":\"new\"}}\n\n{}{over}",
                event(5, "e")
            )),
            other => panic!("{other:?}"),
        }
    };
    let gateway = false_gateway(Box::new(script)).await;
    let client = client(&gateway);
    client.open(&asked).await.unwrap();
    let stream = client.events(asked.client_session_id, 0).await.unwrap();
    let told = collected(stream).await;
    let numbers: Vec<u64> = told.iter().map(|event| event.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert!(matches!(&told[3].kind, SessionEventKind::Note { text } if text.contains("\"new\"")));
    assert_eq!(told[4].kind, SessionEventKind::Text { text: "e".to_owned() });
    assert_eq!(told[5].kind, SessionEventKind::Ended);
}

/// B5, B12: a gateway that does not know the session any more says so, and the session is lost with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b5_a_session_that_the_gateway_forgot_is_lost() {
    let asked = request();
    let id = asked.client_session_id.0;
    let tries = AtomicUsize::new(0);
    let script = move |head: &str| {
        let text = match (head.starts_with("POST"), tries.fetch_add(1, Ordering::SeqCst)) {
            (true, _) => answer("201 Created", "", &session(id, "idle")),
            (false, 1) => "HTTP/1.1 200 OK\r\n\r\n:\n\n".to_owned(),
            (false, _) => answer("404 No", "", ""),
        };
        Some((text.into_bytes(), Then::End))
    };
    let gateway = false_gateway(Box::new(script)).await;
    let client = client(&gateway);
    client.open(&asked).await.unwrap();
    let stream = client.events(asked.client_session_id, 0).await.unwrap();
    let told = collected(stream).await;
    // It did not fail by itself: the stream ends, and whoever asks for its events again is told.
    assert_eq!(told, []);
    assert_eq!(class(&no_events(&client, &asked).await), "lost");
    let found = client.find(&asked, None, None).await.expect_err("find");
    assert_eq!(class(&found), "lost");
}

/// R7: a gateway that does not come back within a moment is out of reach: the stream ends without having said that the
/// session did, and asking again tells why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r7_a_stream_of_a_gateway_that_is_gone_ends() {
    let asked = request();
    let id = asked.client_session_id.0;
    let script = move |head: &str| {
        let text = match head.starts_with("POST") {
            true => answer("201 Created", "", &session(id, "idle")),
            false => "HTTP/1.1 200 OK\r\n\r\n:\n\n".to_owned(),
        };
        Some((text.into_bytes(), Then::End))
    };
    let gateway = false_gateway(Box::new(script)).await;
    let client = client(&gateway);
    client.open(&asked).await.unwrap();
    let stream = client.events(asked.client_session_id, 0).await.unwrap();
    drop(gateway);
    let told = collected(stream).await;
    assert_eq!(told, []);
    assert_eq!(class(&no_events(&client, &asked).await), "temporary");
}

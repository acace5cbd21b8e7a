//! What the gateway costs, against a bare route of the same library in the same process, and what many readers cost.
//!
//! `cargo bench -p sillage-relais --bench gateway` prints a line for each; `--quick` with fewer of everything.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measure that cannot be taken ends with words"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use sillage_core::folders::Folders;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    Answer, MessageRequest, PermissionPolicy, SessionEventKind, SessionRequest, StopReason, Usage,
};
use sillage_relais::gateway::{Bounds, Server, Token};
use sillage_relais::{ClientOptions, Gateway, GatewayOptions, RelaisClient};
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Connections that ask at once.
const ASKING: usize = 8;

fn main() {
    let quick = std::env::args().any(|word| word == "--quick");
    let (requests, readers, sessions) = if quick {
        (2_000, 100, 25)
    } else {
        (40_000, 500, 100)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("threads");
    runtime.block_on(async {
        statuses(requests).await;
        messages(requests / 20).await;
        streams(readers, 4, 10).await;
        attaching(sessions).await;
    });
}

async fn served(runtime: Arc<dyn AgentRuntime>, folder: &std::path::Path) -> (Gateway, SocketAddr) {
    let options = GatewayOptions {
        most_sessions: 10_000,
        ..GatewayOptions::new(folder)
    };
    let gateway = Gateway::open(runtime, options).expect("a gateway");
    gateway.begin();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let server = Server::new(&gateway, listener, Token::new(TOKEN), Bounds::default()).expect("a server");
    let address = server.address();
    tokio::spawn(server.serve(std::future::pending()));
    (gateway, address)
}

fn client(address: SocketAddr) -> RelaisClient {
    RelaisClient::new(&format!("http://{address}"), TOKEN, ClientOptions::new("bench")).expect("a client")
}

fn request() -> SessionRequest {
    SessionRequest {
        client_session_id: ClientSessionId(Uuid::new_v4()),
        model: "fake".to_owned(),
        effort: "low".to_owned(),
        workspace: "/nowhere".into(),
        filesystem_scope: Folders::default(),
        protected: Default::default(),
        permissions: PermissionPolicy::Deny,
        autocompact_tokens: None,
    }
}

fn message() -> MessageRequest {
    MessageRequest {
        client_message_id: ClientMessageId(Uuid::new_v4()),
        text: "go".to_owned(),
    }
}

/// Requests a second of one path over kept connections.
async fn rate(address: SocketAddr, path: &str, requests: usize) -> f64 {
    let asking = (0..ASKING).map(|_| async move {
        let text = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let mut buffer = vec![0; 8192];
        for _ in 0..requests / ASKING {
            stream.write_all(text.as_bytes()).await.expect("written");
            // An answer of this size comes as one piece.
            let count = stream.read(&mut buffer).await.expect("an answer");
            assert!(buffer[..count].starts_with(b"HTTP/1.1 200"));
        }
    });
    let began = Instant::now();
    join_all(asking).await;
    requests as f64 / began.elapsed().as_secs_f64()
}

async fn statuses(requests: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let (gateway, address) = served(Arc::new(ScriptedRuntime::new(|_| Reply::Silent)), folder.path()).await;
    let answer = "x".repeat(300);
    let bare = Router::new().route("/api/status", get(move || std::future::ready(answer.clone())));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let other = listener.local_addr().expect("an address");
    tokio::spawn(serve_bare(listener, bare));
    // By turns, so that what else the machine does falls on both.
    let (mut ours, mut theirs) = (0.0_f64, 0.0_f64);
    for _ in 0..3 {
        theirs = theirs.max(rate(other, "/api/status", requests / 3).await);
        ours = ours.max(rate(address, "/api/status", requests / 3).await);
    }
    println!(
        "status: {ours:.0} a second; a bare route {theirs:.0}; ratio {:.2}",
        ours / theirs
    );
    gateway.end().await;
}

async fn serve_bare(listener: TcpListener, router: Router) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        let _ = stream.set_nodelay(true);
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        let io = hyper_util::rt::TokioIo::new(stream);
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
    }
}

/// Messages a second, each durable before it is acknowledged, of sessions that answer at once.
async fn messages(count: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let (gateway, address) = served(
        Arc::new(ScriptedRuntime::new(|_| Reply::text("done"))),
        folder.path(),
    )
    .await;
    let client = Arc::new(client(address));
    let sessions = 32;
    let asked: Vec<_> = (0..sessions).map(|_| request()).collect();
    join_all(asked.iter().map(|asked| client.open(asked))).await;
    let began = Instant::now();
    let talking = asked.iter().map(|asked| {
        let client = Arc::clone(&client);
        async move {
            let id = asked.client_session_id;
            let mut events = client.events(id, 0).await.expect("events");
            for _ in 0..count / sessions {
                client.send(id, &message()).await.expect("send");
                while let Some(event) = events.next().await {
                    if matches!(&event.kind, SessionEventKind::Note { text } if text.ends_with("idle"))
                        && event.number > 1
                    {
                        break;
                    }
                }
            }
        }
    });
    join_all(talking).await;
    println!(
        "messages: {:.0} exchanges a second over {sessions} sessions",
        count as f64 / began.elapsed().as_secs_f64()
    );
    gateway.end().await;
}

/// Memory of this process in KiB, where the system tells.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

/// So many streams, each of a session that tells so many events a second for so many seconds.
async fn streams(readers: usize, a_second: u32, seconds: u32) {
    let folder = tempfile::tempdir().expect("a folder");
    let piece = |_| SessionEventKind::Text {
        text: "a piece of an answer".to_owned(),
    };
    let answer = move |_: &sillage_testkit::scripted_runtime::Asked<'_>| Reply::Answer {
        before: vec![piece(0)],
        answer: Answer {
            text: "done".to_owned(),
            stop: StopReason::EndTurn,
            usage: Usage::default(),
        },
    };
    let scripted = ScriptedRuntime::new(answer);
    let (gateway, address) = served(Arc::new(scripted.clone()), folder.path()).await;
    let client = Arc::new(client(address));
    let asked: Vec<_> = (0..readers).map(|_| request()).collect();
    for asked in &asked {
        client.open(asked).await.expect("open");
    }
    let before = resident();
    // An exchange is four events here: working, a piece, the answer, idle.
    let exchanges = u64::from(a_second * seconds / 4);
    let reading = join_all(
        asked
            .iter()
            .map(|asked| client.events(asked.client_session_id, 1)),
    )
    .await;
    let open = resident();
    let reading = reading.into_iter().map(|stream| {
        let wanted = usize::try_from(exchanges * 4).expect("few");
        tokio::spawn(stream.expect("events").take(wanted).collect::<Vec<_>>())
    });
    let reading: Vec<_> = reading.collect();
    let began = Instant::now();
    let mut every = tokio::time::interval(Duration::from_secs_f64(4.0 / f64::from(a_second)));
    for _ in 0..exchanges {
        every.tick().await;
        let sent = asked.iter().map(|asked| {
            let (client, id) = (Arc::clone(&client), asked.client_session_id);
            async move { client.send(id, &message()).await }
        });
        for outcome in join_all(sent).await {
            outcome.expect("send");
        }
    }
    let told = join_all(reading).await;
    let whole = told.iter().filter(|told| {
        told.as_ref().is_ok_and(|events| {
            events
                .iter()
                .zip(2..)
                .all(|(event, number)| event.number == number)
        })
    });
    println!(
        "streams: {} of {readers} told all {} events in order within {:.1} s; {:.0} KiB a stream, both ends counted",
        whole.count(),
        exchanges * 4,
        began.elapsed().as_secs_f64(),
        (open.saturating_sub(before)) as f64 / readers as f64
    );
    gateway.end().await;
}

/// How long a gateway takes from its start until it has found all sessions again.
async fn attaching(sessions: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let scripted = ScriptedRuntime::new(|_| Reply::Silent);
    let asked: Vec<_> = (0..sessions).map(|_| request()).collect();
    {
        let (gateway, address) = served(Arc::new(scripted.clone()), &folder.path().join("first")).await;
        let client = client(address);
        for asked in &asked {
            client.open(asked).await.expect("open");
        }
        gateway.end().await;
    }
    // Its folder as a kill would leave it.
    copy(&folder.path().join("first"), &folder.path().join("second"));
    let began = Instant::now();
    let (gateway, address) = served(Arc::new(scripted), &folder.path().join("second")).await;
    let client = client(address);
    for found in join_all(asked.iter().map(|asked| client.find(asked, None, None))).await {
        found.expect("found");
    }
    println!(
        "attaching: {sessions} sessions in {:.0} ms",
        began.elapsed().as_secs_f64() * 1000.0
    );
    gateway.end().await;
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let place = to.join(entry.file_name());
        if entry.file_type().expect("a kind").is_dir() {
            copy(&entry.path(), &place);
        } else {
            std::fs::copy(entry.path(), place).expect("a copy");
        }
    }
}

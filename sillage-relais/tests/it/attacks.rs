//! Group D: who may not ask, and who asks so that others would have to wait.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sillage_core::ports::AgentRuntime;
use sillage_relais::GatewayOptions;
use sillage_relais::gateway::{BadListener, Bounds, Server, Token};
use sillage_relais::openapi;
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use crate::hindered::Hindered;
use crate::house::{BOUND, House, TOKEN, folder};
use crate::raw;
use crate::raw::{Answer, answer, ask, exchange};

async fn house(bounds: Bounds) -> (House, tempfile::TempDir, ScriptedRuntime) {
    let scripted = ScriptedRuntime::new(|_| Reply::Silent);
    let folder = folder();
    let options = GatewayOptions::new(folder.path().join("relais"));
    let house = House::with(Arc::new(scripted.clone()), options, bounds, 0).await;
    (house, folder, scripted)
}

/// Every route of the document, with its method and its names filled in.
fn routes() -> Vec<String> {
    let document = openapi();
    let paths = document["paths"].as_object().expect("paths").clone();
    let mut routes = Vec::new();
    for (path, methods) in &paths {
        for method in methods.as_object().expect("methods").keys() {
            let mut filled = path.replace("{id}", &Uuid::new_v4().to_string());
            for name in ["{permission_id}", "{name}", "{account}"] {
                filled = filled.replace(name, "x");
            }
            assert!(!filled.contains('{'), "{filled}");
            routes.push(format!("{} {filled}", method.to_uppercase()));
        }
    }
    assert!(routes.len() >= 17, "{routes:?}");
    routes
}

async fn told(address: SocketAddr, line: &str, lines: &[String]) -> Option<Answer> {
    let mut text = format!("{line} HTTP/1.1\r\n");
    for line in lines {
        text.push_str(line);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    exchange(address, text.as_bytes()).await
}

/// D1, D9: every route asks for the token, in its one header, whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d1_every_route_asks_for_the_token() {
    let (house, _folder, scripted) = house(Bounds::default()).await;
    let host = format!("Host: {}", house.address);
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let bad: [Vec<String>; 12] = [
        vec![],
        vec!["Authorization: Bearer wrong".to_owned()],
        vec![format!("Authorization: Bearer {}", &TOKEN[..31])],
        vec![format!("Authorization: Bearer {TOKEN}0")],
        vec![format!("Authorization: Bearer {}", TOKEN.to_uppercase())],
        vec![format!("Authorization: Bearer  {TOKEN}")],
        vec![format!("Authorization: Bearer {TOKEN}, Bearer {TOKEN}")],
        vec![bearer.clone(), bearer.clone()],
        vec![format!("Authorization: Basic {TOKEN}")],
        vec![format!("Authorization: {TOKEN}")],
        vec![format!("Cookie: token={TOKEN}; Authorization={TOKEN}")],
        vec![format!("X-Authorization: Bearer {TOKEN}")],
    ];
    for route in routes() {
        for lines in &bad {
            let lines = [std::slice::from_ref(&host), lines.as_slice()].concat();
            let answer = told(house.address, &route, &lines).await.expect("an answer");
            assert_eq!(
                (answer.status, answer.problem().as_str()),
                (401, "unauthorized"),
                "{route} {lines:?}"
            );
        }
        let in_query = format!("{route}?token={TOKEN}&access_token={TOKEN}");
        let answer = told(house.address, &in_query, std::slice::from_ref(&host))
            .await
            .expect("an answer");
        assert_eq!(answer.status, 401, "{in_query}");
    }
    for unknown in [
        "GET /",
        "GET /api",
        "POST /api/nothing",
        "OPTIONS /api/status",
        "PATCH /api/sessions",
    ] {
        let answer = told(house.address, unknown, std::slice::from_ref(&host))
            .await
            .expect("an answer");
        assert_eq!(answer.status, 401, "{unknown}");
    }
    assert_eq!(scripted.open_sessions(), []);
    house.end().await;
}

/// D2, D4, D5: a foreign `Host` or `Origin` is refused on every route, though the token is right; so is what a browser
/// says is another site's. No answer allows anything to other sites.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d2_a_foreign_host_or_origin_is_refused_on_every_route() {
    let (house, _folder, _) = house(Bounds::default()).await;
    let port = house.address.port();
    let other = port.wrapping_add(1).max(1);
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let ours = format!("Host: {}", house.address);
    let hosts = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("127.0.0.1.nip.io:{port}"),
        format!("127.0.0.1:{other}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1.:{port}"),
        format!("localhost.:{port}"),
        format!("user@127.0.0.1:{port}"),
        format!("127.0.0.1:{port},evil.example"),
        format!("127.0.0.1:{port} evil.example"),
        format!("0.0.0.0:{port}"),
        format!("[::]:{port}"),
        format!("127.1:{port}"),
        String::new(),
    ];
    let origins = [
        "null".to_owned(),
        "http://localhost:1".to_owned(),
        format!("http://localhost.evil.example:{port}"),
        format!("https://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}, http://evil.example"),
        format!("127.0.0.1:{port}"),
        "file://".to_owned(),
        String::new(),
    ];
    for route in routes() {
        let mut refused: Vec<Vec<String>> = hosts
            .iter()
            .map(|host| vec![format!("Host: {host}"), bearer.clone()])
            .collect();
        for origin in &origins {
            refused.push(vec![ours.clone(), bearer.clone(), format!("Origin: {origin}")]);
        }
        let own = format!("Origin: http://127.0.0.1:{port}");
        refused.push(vec![ours.clone(), bearer.clone(), own.clone(), own.clone()]);
        for site in ["cross-site", "same-site"] {
            refused.push(vec![
                ours.clone(),
                bearer.clone(),
                format!("Sec-Fetch-Site: {site}"),
            ]);
        }
        for lines in refused {
            let answer = told(house.address, &route, &lines).await.expect("an answer");
            assert_eq!(
                (answer.status, answer.problem().as_str()),
                (403, "forbidden"),
                "{route} {lines:?}"
            );
            assert!(
                !answer.head.to_lowercase().contains("access-control"),
                "{}",
                answer.head
            );
        }
    }
    // Eight-bit names are no text at all.
    let mut bytes = format!("GET /api/status HTTP/1.1\r\n{bearer}\r\nHost: 127.0.0.1:{port}").into_bytes();
    bytes.extend_from_slice(b"\xe9\r\n\r\n");
    let answer = exchange(house.address, &bytes).await.expect("an answer");
    assert!([400, 403].contains(&answer.status), "{answer:?}");
    // Our own names are let pass.
    for name in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"] {
        let lines = [
            format!("Host: {name}:{port}"),
            format!("authorization: bearer {TOKEN}"),
            format!("Origin: http://{name}:{port}"),
            "Sec-Fetch-Site: same-origin".to_owned(),
        ];
        let answer = told(house.address, "GET /api/status", &lines)
            .await
            .expect("an answer");
        assert_eq!(answer.status, 200, "{name}");
        assert!(
            !answer.head.to_lowercase().contains("access-control"),
            "{}",
            answer.head
        );
    }
    house.end().await;
}

/// D3, D12: what HTTP forbids, or what may be read in two ways, is refused, and its connection closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d3_what_may_be_read_in_two_ways_is_refused() {
    let (house, _folder, scripted) = house(Bounds::default()).await;
    let address = house.address;
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let host = format!("Host: {address}\r\n");
    let json = "Content-Type: application/json\r\n";
    let post = "POST /api/sessions HTTP/1.1\r\n";
    let cases = [
        (
            "no host",
            format!("GET /api/status HTTP/1.1\r\n{bearer}\r\n"),
            400,
        ),
        (
            "two hosts",
            format!("GET /api/status HTTP/1.1\r\n{host}{host}{bearer}\r\n"),
            400,
        ),
        (
            "two hosts that differ",
            format!("GET /api/status HTTP/1.1\r\n{host}Host: evil.example\r\n{bearer}\r\n"),
            400,
        ),
        (
            "no host in 1.0",
            format!("GET /api/status HTTP/1.0\r\n{bearer}\r\n"),
            400,
        ),
        (
            "a host in the target",
            format!("GET http://evil.example/api/status HTTP/1.1\r\n{host}{bearer}\r\n"),
            400,
        ),
        (
            "our host in the target",
            format!("GET http://{address}/api/status HTTP/1.1\r\n{host}{bearer}\r\n"),
            400,
        ),
        (
            "length and chunks",
            format!(
                "{post}{host}{bearer}{json}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
            411,
        ),
        (
            "chunks and length",
            format!(
                "{post}{host}{bearer}{json}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n"
            ),
            411,
        ),
        (
            "chunks",
            format!("{post}{host}{bearer}{json}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            411,
        ),
        (
            "two lengths",
            format!("{post}{host}{bearer}{json}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}"),
            400,
        ),
        (
            "a negative length",
            format!("{post}{host}{bearer}{json}Content-Length: -1\r\n\r\n{{}}"),
            400,
        ),
        (
            "a folded line",
            format!("GET /api/status HTTP/1.1\r\n{host}X-A: b\r\n c\r\n{bearer}\r\n"),
            400,
        ),
        (
            "space before a colon",
            format!("GET /api/status HTTP/1.1\r\n{host}X-A : b\r\n{bearer}\r\n"),
            400,
        ),
        ("no HTTP", "hello\r\n\r\n".to_owned(), 400),
        (
            "another version",
            format!("GET /api/status HTTP/3.0\r\n{host}{bearer}\r\n"),
            400,
        ),
        (
            "two requests in one",
            format!("GET /api/sta\0tus HTTP/1.1\r\n{host}{bearer}\r\n"),
            400,
        ),
    ];
    for (what, text, status) in cases {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(text.as_bytes()).await.expect("written");
        let told = answer(&mut stream).await;
        let told = told.unwrap_or_else(|| panic!("{what}: cut without a word"));
        assert_eq!(told.status, status, "{what}: {told:?}");
        let mut rest = Vec::new();
        let end = tokio::time::timeout(BOUND, stream.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "{what}: the connection stays");
    }
    assert_eq!(scripted.open_sessions(), []);
    house.end().await;
}

/// D6: nothing but loopback is listened on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d6_only_loopback_is_listened_on() {
    let (house, _folder, _) = house(Bounds::default()).await;
    assert!(house.address.ip().is_loopback());
    let everywhere = TcpListener::bind("0.0.0.0:0").await.expect("a port");
    let refused = Server::new(&house.gateway, everywhere, Token::new(TOKEN), Bounds::default());
    assert!(matches!(refused.map(|_| ()), Err(BadListener::NotLoopback(_))));
    house.end().await;
}

/// D7: nothing changes by GET or by what a form can send, and no header makes another method of one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d7_nothing_changes_by_get_or_by_a_form() {
    let (house, _folder, scripted) = house(Bounds::default()).await;
    let id = Uuid::new_v4();
    for line in [
        format!("GET /api/sessions/{id}/messages"),
        format!("GET /api/sessions/{id}/cancel"),
        format!("GET /api/sessions/{id}/permissions/p"),
        "GET /api/agents/x/start".to_owned(),
        "PUT /api/sessions".to_owned(),
        format!("POST /api/sessions/{id}"),
        "DELETE /api/sessions".to_owned(),
        "TRACE /api/status".to_owned(),
    ] {
        let told = ask(house.address, &line, "").await;
        assert_eq!(
            (told.status, told.problem().as_str()),
            (405, "method-not-allowed"),
            "{line}"
        );
    }
    let body = format!(
        r#"{{"client_session_id":"{id}","application_name":"a","model":"m","effort":"e","workspace":"/w"}}"#
    );
    for kind in [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/jsonx",
    ] {
        let mut lines = vec![
            format!("Host: {}", house.address),
            format!("Authorization: Bearer {TOKEN}"),
            "X-HTTP-Method-Override: DELETE".to_owned(),
            format!("Content-Length: {}", body.len()),
        ];
        if !kind.is_empty() {
            lines.push(format!("Content-Type: {kind}"));
        }
        let text = format!(
            "POST /api/sessions HTTP/1.1\r\n{}\r\n\r\n{body}",
            lines.join("\r\n")
        );
        let told = exchange(house.address, text.as_bytes()).await.expect("an answer");
        assert_eq!(
            (told.status, told.problem().as_str()),
            (415, "unsupported-media-type"),
            "{kind}"
        );
    }
    assert_eq!(scripted.open_sessions(), []);
    house.end().await;
}

fn impatient() -> Bounds {
    Bounds {
        headers: Duration::from_millis(200),
        body: Duration::from_millis(200),
        idle: Duration::from_millis(400),
        write: Duration::from_millis(400),
        ..Bounds::default()
    }
}

/// D10: who sends nothing, or for ever, is cut; others are served meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d10_slow_clients_are_cut_and_others_served() {
    let (house, _folder, _) = house(impatient()).await;
    let address = house.address;
    let head = format!("Host: {address}\r\nAuthorization: Bearer {TOKEN}\r\n");
    let slow_body = format!(
        "POST /api/sessions HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    );
    let starts = [
        ("nothing", String::new()),
        ("half a line", "GET /api/st".to_owned()),
        ("half a head", format!("GET /api/status HTTP/1.1\r\n{head}")),
        ("half a body", slow_body),
        (
            "a whole request and no other",
            format!("GET /api/status HTTP/1.1\r\n{head}\r\n"),
        ),
    ];
    let mut held = Vec::new();
    for (what, start) in &starts {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(address).await.expect("a connection");
            stream.write_all(start.as_bytes()).await.expect("written");
            held.push((what, stream));
        }
    }
    assert_eq!(ask(address, "GET /api/status", "").await.status, 200);
    for (what, mut stream) in held {
        let mut told = Vec::new();
        let end = tokio::time::timeout(BOUND, stream.read_to_end(&mut told)).await;
        assert!(end.is_ok(), "{what}: it is not cut");
        if *what == "half a body" {
            assert!(
                told.starts_with(b"HTTP/1.1 408"),
                "{}",
                String::from_utf8_lossy(&told)
            );
        }
    }
    assert_eq!(ask(address, "GET /api/status", "").await.status, 200);
    house.end().await;
}

/// D10: more connections than there are places wait, and are served once others are cut; one drop at a time does not
/// keep a place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d10_connections_are_bounded() {
    let bounds = Bounds {
        connections: 4,
        ..impatient()
    };
    let (house, _folder, _) = house(bounds).await;
    let mut held = Vec::new();
    for _ in 0..32 {
        held.push(TcpStream::connect(house.address).await.expect("a connection"));
    }
    assert_eq!(ask(house.address, "GET /api/status", "").await.status, 200);
    drop(held);
    house.end().await;
}

/// D11: heads and bodies have a bound, told before they are read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_large_heads_and_bodies_are_refused() {
    let (house, _folder, _) = house(Bounds::default()).await;
    let address = house.address;
    let head = format!("Host: {address}\r\nAuthorization: Bearer {TOKEN}\r\n");
    let long = format!(
        "GET /api/status HTTP/1.1\r\n{head}X-Long: {}\r\n\r\n",
        "x".repeat(20 << 10)
    );
    assert_eq!(
        exchange(address, long.as_bytes()).await.map(|told| told.status),
        Some(431)
    );
    let many: String = (0..101).map(|n| format!("X-{n}: y\r\n")).collect();
    let many = format!("GET /api/status HTTP/1.1\r\n{head}{many}\r\n");
    assert_eq!(
        exchange(address, many.as_bytes()).await.map(|told| told.status),
        Some(431)
    );
    let line = format!("GET /api/{} HTTP/1.1\r\n{head}\r\n", "x".repeat(20 << 10));
    let told = exchange(address, line.as_bytes()).await.expect("an answer");
    assert!([414, 431].contains(&told.status), "{told:?}");
    let post = format!("POST /api/sessions HTTP/1.1\r\n{head}Content-Type: application/json\r\n");
    let too_large = format!("{post}Content-Length: {}\r\n\r\n", (4 << 20) + 1);
    let told = exchange(address, too_large.as_bytes()).await.expect("an answer");
    assert_eq!((told.status, told.problem().as_str()), (413, "too-large"));
    let endless = format!("{post}Content-Length: 18446744073709551615\r\n\r\n");
    let told = exchange(address, endless.as_bytes())
        .await
        .map(|told| told.status);
    assert!(matches!(told, Some(400 | 413 | 431) | None), "{told:?}");
    // The largest that is taken is taken.
    let filling = " ".repeat((4 << 20) - 2);
    let told = ask(address, "POST /api/sessions", &format!("{{{filling}}}")).await;
    assert_eq!((told.status, told.problem().as_str()), (400, "bad-request"));
    house.end().await;
}

/// D13: a path is what it is, and no other way leads to a route.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d13_a_path_is_what_it_is() {
    let (house, _folder, _) = house(Bounds::default()).await;
    for path in [
        "//api/status",
        "/api//status",
        "/api/status/",
        "/%2e%2e/api/status",
        "/x/../api/status",
        "/api%2fstatus",
        "/api/status%00",
        "/API/STATUS",
        "/api/sessions/not-a-uuid",
        "/etc/passwd",
        "/api/../../etc/passwd",
        "/api/agents/%2e%2e%2fsecrets/logs",
        "/api/agents/%ff/logs",
    ] {
        let told = ask(house.address, &format!("GET {path}"), "").await;
        assert_eq!(
            (told.status, told.problem().as_str()),
            (404, "not-found"),
            "{path}"
        );
    }
    house.end().await;
}

/// Half-open streams: a client that is gone without a word does not keep its session in use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_gone_does_not_keep_its_session() {
    let bounds = Bounds {
        keep_alive: Duration::from_millis(50),
        ..impatient()
    };
    let (house, _folder, _) = house(bounds).await;
    let id = Uuid::new_v4();
    let body = format!(
        r#"{{"client_session_id":"{id}","application_name":"a","model":"m","effort":"e","workspace":"/w"}}"#
    );
    assert_eq!(ask(house.address, "POST /api/sessions", &body).await.status, 201);
    let text = raw::request(house.address, &format!("GET /api/sessions/{id}/events"), &[], "");
    let mut reader = TcpStream::connect(house.address).await.expect("a connection");
    reader.write_all(text.as_bytes()).await.expect("written");
    let mut buffer = [0; 16];
    reader.read_exact(&mut buffer).await.expect("the answer begins");
    let address = house.address;
    let expires = || async move {
        let session = ask(address, &format!("GET /api/sessions/{id}"), "").await.json();
        session.get("expires_at").is_some()
    };
    assert!(!expires().await, "a session that is read is not in use");
    drop(reader);
    crate::house::eventually("it is unused", expires).await;
    house.end().await;
}

/// D10: a client that waits long for its answer is not taken for an idle one, nor right after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d10_who_waits_for_an_answer_is_not_idle() {
    let runtime = Hindered::slow();
    let folder = folder();
    let options = GatewayOptions::new(folder.path().join("relais"));
    let served = Arc::clone(&runtime) as Arc<dyn AgentRuntime>;
    let house = House::with(served, options, impatient(), 0).await;
    let creation = format!(
        r#"{{"client_session_id":"{}","application_name":"a","model":"m","effort":"e","workspace":"/w"}}"#,
        Uuid::new_v4()
    );
    let status = raw::request(house.address, "GET /api/status", &[], "");
    let text = raw::request(house.address, "POST /api/sessions", &[], &creation);
    let mut waiting = TcpStream::connect(house.address).await.expect("a connection");
    waiting.write_all(text.as_bytes()).await.expect("written");
    // Longer than an idle one is left alone, as those show that begin now, one after the other.
    for _ in 0..3 {
        let mut idle = TcpStream::connect(house.address).await.expect("a connection");
        idle.write_all(status.as_bytes()).await.expect("written");
        let mut told = Vec::new();
        let end = tokio::time::timeout(BOUND, idle.read_to_end(&mut told)).await;
        assert!(end.is_ok(), "it is not cut");
    }
    runtime.let_it.notify_one();
    assert_eq!(answer(&mut waiting).await.map(|told| told.status), Some(201));
    waiting.write_all(status.as_bytes()).await.expect("written");
    assert_eq!(answer(&mut waiting).await.map(|told| told.status), Some(200));
    house.end().await;
}

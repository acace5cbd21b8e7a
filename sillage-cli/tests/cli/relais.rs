//! `sillage relais` as a process, and what can stand between it and who asks it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longer than any answer takes, on a machine with much else to do.
const BOUND: Duration = Duration::from_secs(60);

/// A gateway; killed when the test gives up on it.
pub(crate) struct Gateway {
    child: Child,
    pub(crate) url: String,
    pub(crate) token: String,
}

impl Gateway {
    /// Starts what the command says, with `--json`, and waits until it listens.
    pub(crate) fn start(mut command: Command) -> Gateway {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("its output");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let told: Value = serde_json::from_str(&line).unwrap_or_default();
        let (Some(url), Some(file)) = (told["url"].as_str(), told["token_file"].as_str()) else {
            let mut words = line;
            let _ = child
                .stderr
                .take()
                .expect("its errors")
                .read_to_string(&mut words);
            unreachable!("it does not say where it listens: {words}")
        };
        let token = std::fs::read_to_string(file).expect("a token");
        Gateway {
            url: url.to_owned(),
            token: token.trim().to_owned(),
            child,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let address = self.url.trim_start_matches("http://");
        address.parse().expect("an address")
    }

    /// How many of its sessions are in this state.
    pub(crate) fn sessions(&self, state: &str) -> u64 {
        let address = self.address();
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(BOUND)).expect("a bound");
        let token = &self.token;
        let text = format!(
            "GET /api/status HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(text.as_bytes()).expect("written");
        let mut told = String::new();
        stream.read_to_string(&mut told).expect("an answer");
        let body = told.split_once("\r\n\r\n").expect("an answer").1;
        let status: Value = serde_json::from_str(body).expect("JSON");
        status["sessions"][state].as_u64().expect("a number")
    }

    /// As by a machine that is out of memory: nothing of it goes on.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it is killed");
        self.child.wait().expect("it is gone");
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn terminate(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it is told");
        let status = self.child.wait().expect("it ends");
        let mut words = String::new();
        let _ = self
            .child
            .stderr
            .take()
            .expect("its errors")
            .read_to_string(&mut words);
        assert!(status.success(), "{status}: {words}");
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Answers each connection by one answer, in the place of a gateway.
pub(crate) fn always(status: &'static str, body: String) -> String {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", server.local_addr().expect("a port"));
    std::thread::spawn(move || {
        for mut stream in server.incoming().flatten() {
            if read(&mut stream).is_some() {
                refuse(&mut stream, status, &body);
            }
        }
    });
    url
}

/// Stands before a gateway, passes on what is asked, and at times refuses to have a session looked for.
pub(crate) struct Between {
    pub(crate) url: String,
    left: Arc<AtomicUsize>,
}

impl Between {
    pub(crate) fn new(gateway: SocketAddr) -> Between {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let here = server.local_addr().expect("a port");
        let left = Arc::new(AtomicUsize::new(0));
        let refusals = Arc::clone(&left);
        std::thread::spawn(move || {
            for stream in server.incoming().flatten() {
                let refusals = Arc::clone(&refusals);
                std::thread::spawn(move || pass_on(stream, here, gateway, &refusals));
            }
        });
        Between {
            url: format!("http://{here}"),
            left,
        }
    }

    /// The next so many times a session is looked for, that fails for a passing reason.
    pub(crate) fn refuses(&self, times: usize) {
        self.left.store(times, Ordering::SeqCst);
    }

    /// How often it will still refuse.
    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }
}

/// One connection, request by request: a client asks nothing before it was answered.
fn pass_on(
    mut client: TcpStream,
    here: SocketAddr,
    gateway: SocketAddr,
    refusals: &AtomicUsize,
) -> Option<()> {
    let mut server = TcpStream::connect(gateway).ok()?;
    let (mut answers, mut back) = (server.try_clone().ok()?, client.try_clone().ok()?);
    std::thread::spawn(move || {
        // Either side may go at any time.
        let _ = std::io::copy(&mut answers, &mut back);
        let _ = back.shutdown(std::net::Shutdown::Both);
    });
    while let Some((head, body)) = read(&mut client) {
        let path = head.split(' ').nth(1)?;
        let looks =
            head.starts_with("GET ") && path.matches('/').count() == 3 && path.starts_with("/api/sessions/");
        let take = |left: usize| left.checked_sub(1);
        if looks
            && refusals
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
                .is_ok()
        {
            refuse(&mut client, "503 Service Unavailable", "{}");
            break;
        }
        let head = head.replace(&here.to_string(), &gateway.to_string());
        server.write_all(head.as_bytes()).ok()?;
        server.write_all(&body).ok()?;
    }
    server.shutdown(std::net::Shutdown::Both).ok()
}

fn refuse(stream: &mut TcpStream, status: &str, body: &str) {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    // Whoever asked may be gone.
    let _ = stream.write_all(text.as_bytes());
}

/// Reads a request: its head and its body; none when there is no further one.
fn read(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let length = name.eq_ignore_ascii_case("content-length").then_some(value)?;
        length.trim().parse().ok()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    Some((head, body))
}

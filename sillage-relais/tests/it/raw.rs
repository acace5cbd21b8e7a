//! HTTP as bytes, for what no client would send.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::house::{BOUND, TOKEN};

/// An answer: its status, its head and its body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The last word of the problem's type.
    pub(crate) fn problem(&self) -> String {
        assert!(
            self.head
                .to_lowercase()
                .contains("content-type: application/problem+json"),
            "{self:?}"
        );
        let kind = self.json()["type"].as_str().expect("a type").to_owned();
        kind.rsplit(':').next().unwrap_or_default().to_owned()
    }
}

/// Sends bytes and reads to the end of the connection, or to what the answer says is its end. None: cut without a word.
pub(crate) async fn exchange(address: SocketAddr, bytes: &[u8]) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // It may be cut while it is written to.
    let _ = stream.write_all(bytes).await;
    answer(&mut stream).await
}

/// Reads one answer.
pub(crate) async fn answer(stream: &mut TcpStream) -> Option<Answer> {
    let read = async {
        let mut told = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            if let Some(answer) = whole(&told) {
                return Some(answer);
            }
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => told.extend_from_slice(&buffer[..count]),
            }
        }
    };
    tokio::time::timeout(BOUND, read)
        .await
        .expect("an answer, or the end")
}

fn whole(told: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(told);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head
        .lines()
        .find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse::<usize>()
                .ok()
        })
        .unwrap_or(0);
    let status = head.split(' ').nth(1)?.parse().ok()?;
    (body.len() >= length).then(|| Answer {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

/// An ordinary request with these lines besides `Host` and the token.
pub(crate) fn request(address: SocketAddr, line: &str, lines: &[&str], body: &str) -> String {
    let mut text = format!("{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n");
    for line in lines {
        text.push_str(line);
        text.push_str("\r\n");
    }
    if !body.is_empty() {
        text.push_str(&format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        ));
    }
    text.push_str("\r\n");
    text.push_str(body);
    text
}

/// Asks as an ordinary client does.
pub(crate) async fn ask(address: SocketAddr, line: &str, body: &str) -> Answer {
    let text = request(address, line, &[], body);
    exchange(address, text.as_bytes()).await.expect("an answer")
}

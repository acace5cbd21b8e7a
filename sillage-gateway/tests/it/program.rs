//! The program `relais` as a process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sillage_relais::{ClientOptions, RelaisClient};

use crate::theatre::Theatre;

/// Longer than anything that ends takes, on a machine with much else to do.
pub(crate) const BOUND: Duration = Duration::from_secs(90);

pub(crate) struct Program {
    child: Child,
    pub(crate) address: SocketAddr,
    token: String,
}

impl Program {
    /// Starts the program on the theatre's folder; on a port that is free with 0.
    pub(crate) fn start(theatre: &Theatre, port: u16) -> Program {
        let mut child = command(theatre, port).spawn().expect("the program starts");
        let output = child.stdout.take().expect("its output");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line");
        let address = line.trim().rsplit_once("http://").map(|(_, address)| address);
        let address = address.and_then(|address| address.parse().ok());
        let address = address.unwrap_or_else(|| {
            let mut words = line.clone();
            let _ = child
                .stderr
                .take()
                .expect("its errors")
                .read_to_string(&mut words);
            unreachable!("it does not say where it listens: {words}")
        });
        let token = std::fs::read_to_string(theatre.place("token")).expect("a token");
        Program {
            child,
            address,
            token: token.trim().to_owned(),
        }
    }

    pub(crate) fn client(&self) -> RelaisClient {
        let address = format!("http://{}", self.address);
        RelaisClient::new(&address, &self.token, ClientOptions::new("test")).expect("a client")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// As by a machine that is out of memory: nothing of it goes on.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it is killed");
        self.child.wait().expect("it is gone");
    }

    /// Asks it to end, and waits for it; what it wrote on standard error too.
    pub(crate) fn terminate(mut self) -> (ExitStatus, String) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("it is told");
        let status = self.child.wait().expect("it ends");
        let mut words = String::new();
        let _ = self
            .child
            .stderr
            .take()
            .expect("its errors")
            .read_to_string(&mut words);
        (status, words)
    }

    /// Asks once, as any client does: the status and the body of the answer.
    pub(crate) fn ask(&self, line: &str, body: &str) -> (u16, Value) {
        ask(self.address, &self.token, line, body)
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn command(theatre: &Theatre, port: u16) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relais"));
    command
        .arg("--config")
        .arg(theatre.place("settings.yaml"))
        .arg("--data-dir")
        .arg(theatre.place("data"))
        .arg("--token-file")
        .arg(theatre.place("token"))
        .args(["--port", &port.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn ask(address: SocketAddr, token: &str, line: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(BOUND)).expect("a bound");
    let text = format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).expect("written");
    let mut told = String::new();
    stream.read_to_string(&mut told).expect("an answer");
    let (head, body) = told.split_once("\r\n\r\n").expect("an answer");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (
        status.expect("a status"),
        serde_json::from_str(body).unwrap_or_default(),
    )
}

//! A bare client for driving the agent frame by frame, in memory or as a process.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use sillage_acp::scripted_agent::record::{self, Entry};
use sillage_acp::scripted_agent::{Agent, Ending, Record, Script};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// No wait of a test is longer than this.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

pub(crate) async fn within<F: Future>(work: F) -> F::Output {
    tokio::time::timeout(LIMIT, work).await.expect("in time")
}

/// What is at the other end.
enum End {
    Memory(JoinHandle<Ending>),
    Process(Child),
}

pub(crate) struct Peer {
    end: Option<End>,
    to_agent: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    from_agent: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    folder: PathBuf,
    next: u64,
    pub(crate) session: String,
}

impl Peer {
    /// An agent in this process; its files are in `folder`.
    pub(crate) fn in_memory(folder: &Path, script: &str) -> Self {
        let script = Script::parse(script).expect("a script");
        let record = Record::append(&folder.join("record")).expect("a record");
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        let agent = Agent::new(script, folder.to_owned(), record);
        let (from_agent, to_agent) = tokio::io::split(ours);
        let end = End::Memory(tokio::spawn(agent.serve(input, output)));
        Peer::over(end, Box::new(to_agent), Box::new(from_agent), folder)
    }

    /// An agent as a process of its own; its files are in `folder`.
    pub(crate) fn process(folder: &Path, script: &str) -> Self {
        let path = folder.join("script.yaml");
        std::fs::write(&path, script).expect("a script file");
        let mut child = Command::new(env!("CARGO_BIN_EXE_scripted-agent"))
            .arg("--script")
            .arg(path)
            .arg("--record")
            .arg(folder.join("record"))
            .env("SILLAGE_TEST_FOLDER", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .expect("the agent");
        let (to_agent, from_agent) = (
            child.stdin.take().expect("stdin"),
            child.stdout.take().expect("stdout"),
        );
        Peer::over(
            End::Process(child),
            Box::new(to_agent),
            Box::new(from_agent),
            folder,
        )
    }

    fn over(
        end: End,
        to_agent: Box<dyn AsyncWrite + Send + Unpin>,
        from_agent: Box<dyn AsyncRead + Send + Unpin>,
        folder: &Path,
    ) -> Self {
        Peer {
            end: Some(end),
            to_agent: Some(to_agent),
            from_agent: BufReader::new(from_agent),
            folder: folder.to_owned(),
            next: 0,
            session: String::new(),
        }
    }

    pub(crate) async fn send_line(&mut self, line: &str) {
        let to_agent = self.to_agent.as_mut().expect("not closed");
        within(to_agent.write_all(format!("{line}\n").as_bytes()))
            .await
            .expect("the agent reads");
        within(to_agent.flush()).await.expect("the agent reads");
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = json!(self.next);
        self.send_line(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        )
        .await;
        id
    }

    pub(crate) async fn tell(&mut self, method: &str, params: Value) {
        self.send_line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string())
            .await;
    }

    pub(crate) async fn answer(&mut self, id: &Value, result: Value) {
        self.send_line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())
            .await;
    }

    /// The next line of the agent, without its line feed; none at its end.
    pub(crate) async fn bytes(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        within(self.from_agent.read_until(b'\n', &mut line))
            .await
            .expect("readable");
        (!line.is_empty()).then(|| line.strip_suffix(b"\n").map(<[u8]>::to_vec).unwrap_or(line))
    }

    pub(crate) async fn frame(&mut self) -> Value {
        let line = self.bytes().await.expect("a line before the end");
        serde_json::from_slice(&line).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&line)))
    }

    /// The response to request `id`, and the frames before it.
    pub(crate) async fn until_answer(&mut self, id: &Value) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let frame = self.frame().await;
            if frame.get("method").is_none() && &frame["id"] == id {
                return (before, frame);
            }
            before.push(frame);
        }
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.until_answer(&id).await.1
    }

    pub(crate) async fn initialize(&mut self) -> Value {
        self.call(
            "initialize",
            json!({ "protocolVersion": 1, "clientCapabilities": {} }),
        )
        .await
    }

    /// Initialises, and opens a session in the folder.
    pub(crate) async fn open(&mut self) -> Value {
        self.initialize().await;
        let answer = self
            .call("session/new", json!({ "cwd": self.folder, "mcpServers": [] }))
            .await;
        self.session = answer["result"]["sessionId"]
            .as_str()
            .expect("a session")
            .to_owned();
        answer
    }

    pub(crate) async fn ask_prompt(&mut self, text: &str) -> Value {
        let prompt = json!({ "sessionId": self.session, "prompt": [{ "type": "text", "text": text }] });
        self.ask("session/prompt", prompt).await
    }

    /// The answer to a prompt, and the frames before it.
    pub(crate) async fn prompt(&mut self, text: &str) -> (Vec<Value>, Value) {
        let id = self.ask_prompt(text).await;
        self.until_answer(&id).await
    }

    pub(crate) async fn cancel(&mut self) {
        self.tell("session/cancel", json!({ "sessionId": self.session }))
            .await;
    }

    /// The next frame that asks for permission.
    pub(crate) async fn permission(&mut self) -> Value {
        loop {
            let frame = self.frame().await;
            if frame["method"] == "session/request_permission" {
                return frame;
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        match &self.end {
            Some(End::Process(child)) => child.id().expect("still there"),
            Some(End::Memory(_)) | None => panic!("no process"),
        }
    }

    /// Closes the agent's input.
    pub(crate) fn hang_up(&mut self) {
        self.to_agent = None;
    }

    /// Closes the agent's input and waits for its end, in memory.
    pub(crate) async fn ending(mut self) -> Ending {
        if let Some(mut to_agent) = self.to_agent.take() {
            // Half of a pair in memory closes only by shutting down.
            to_agent.shutdown().await.expect("closable");
        }
        match self.end.take() {
            Some(End::Memory(agent)) => within(agent).await.expect("no panic"),
            Some(End::Process(_)) | None => panic!("a process"),
        }
    }

    /// Waits for the process to end; gives its status and what it wrote on standard error.
    pub(crate) async fn exit(mut self) -> (ExitStatus, String) {
        match self.end.take() {
            Some(End::Process(child)) => {
                let output = within(child.wait_with_output()).await.expect("it was ours");
                (
                    output.status,
                    String::from_utf8_lossy(&output.stderr).into_owned(),
                )
            }
            Some(End::Memory(_)) | None => panic!("no process"),
        }
    }

    pub(crate) fn record(&self) -> Vec<Entry> {
        record::read(&self.folder.join("record")).expect("a record")
    }
}

/// What the agent said in some frames.
pub(crate) fn said(frames: &[Value]) -> String {
    frames
        .iter()
        .map(|frame| &frame["params"]["update"])
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
        .filter_map(|update| update["content"]["text"].as_str())
        .collect()
}

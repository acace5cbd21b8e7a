//! A model server for tests of real agents: loopback only, no model behind it.
//!
//! It speaks two wire formats with server-sent events: OpenAI chat completions (`POST /v1/chat/completions`) and
//! OpenAI responses (`POST /v1/responses`). What the "model" does stands in the prompt, as a [`Script`]; the step that
//! answers a call is found by counting the rounds of tool results since that prompt. The server keeps no state but a
//! list of what it was asked, so tests that run at once cannot disturb each other.
//!
//! A call that declares no tools is one that an agent makes for itself, such as for a title: it gets a few words and
//! never takes part in a script.

mod chat;
mod responses;
mod script;
mod tools;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use self::script::{Script, Step, Tokens, ToolUse};
use self::script::{Turn, choose};
use self::tools::{Call, DeclaredTool, translate};

/// Most bytes of a request: agents send their instructions and tools with every call.
const MAX_BODY: usize = 16 << 20;

/// A running server, which ends when this is dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    serving: JoinHandle<io::Result<()>>,
}

/// One request that the server got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Method and path.
    pub request: String,
    /// The model; empty for what is not a call of a model.
    pub model: String,
    /// The effort, where one was asked for.
    pub effort: Option<String>,
    /// The names of the tools that the agent declared.
    pub tools: Vec<String>,
    /// Whether the server knows the path.
    pub known: bool,
}

/// A call of a model, whatever its wire format.
struct ModelCall {
    turns: Vec<Turn>,
    tools: Vec<DeclaredTool>,
    effort: Option<String>,
}

/// A wire format: how a call is read and how an answer is written.
struct WireFormat {
    read: fn(&Value) -> ModelCall,
    write: fn(model: &str, serial: usize, step: &Step, calls: &[Call]) -> Vec<Frame>,
}

/// One server-sent event.
struct Frame {
    event: Option<&'static str>,
    data: String,
}

impl ModelServer {
    /// Starts a server on a free port of the loopback address.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start() -> io::Result<ModelServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let router = Router::new()
            .route("/v1/models", get(models))
            .route("/v1/chat/completions", post(chat_completions))
            .route("/v1/responses", post(create_response))
            .fallback(unknown)
            .layer(DefaultBodyLimit::max(MAX_BODY))
            .with_state(Arc::clone(&asked));
        let serving = tokio::spawn(axum::serve(listener, router).into_future());
        Ok(ModelServer {
            address,
            asked,
            serving,
        })
    }

    /// The base address that agents are configured with, such as `http://127.0.0.1:4000/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What the server was asked, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

type Log = State<Arc<Mutex<Vec<Asked>>>>;

/// Adds to the list and gives the length that it has then, which serves as a unique number.
fn note(log: &Log, asked: Asked) -> usize {
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    log.push(asked);
    log.len()
}

async fn models(log: Log) -> Response {
    let request = "GET /v1/models".to_owned();
    note(
        &log,
        Asked {
            request,
            model: String::new(),
            effort: None,
            tools: vec![],
            known: true,
        },
    );
    let model = json!({ "id": "test-model", "object": "model", "created": 1, "owned_by": "test" });
    axum::Json(json!({ "object": "list", "data": [model] })).into_response()
}

async fn unknown(log: Log, method: Method, uri: Uri) -> Response {
    let request = format!("{method} {}", uri.path());
    let message = format!("this server does not know {request}");
    note(
        &log,
        Asked {
            request,
            model: String::new(),
            effort: None,
            tools: vec![],
            known: false,
        },
    );
    refusal(StatusCode::NOT_FOUND, &message)
}

async fn chat_completions(log: Log, body: Bytes) -> Response {
    answer(&log, "POST /v1/chat/completions", &body, &chat::FORMAT).await
}

async fn create_response(log: Log, body: Bytes) -> Response {
    answer(&log, "POST /v1/responses", &body, &responses::FORMAT).await
}

async fn answer(log: &Log, request: &str, body: &[u8], format: &WireFormat) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return refusal(StatusCode::BAD_REQUEST, "the body is not JSON");
    };
    if body["stream"] != true {
        return refusal(StatusCode::BAD_REQUEST, "this server answers with a stream only");
    }
    let model = body["model"].as_str().unwrap_or_default();
    let ModelCall { turns, tools, effort } = (format.read)(&body);
    let names = tools.iter().map(|tool| tool.name.clone()).collect();
    let (request, known) = (request.to_owned(), true);
    let serial = note(
        log,
        Asked {
            request,
            model: model.to_owned(),
            effort,
            tools: names,
            known,
        },
    );
    let step = if tools.is_empty() {
        Step::saying("A short title")
    } else {
        choose(&turns)
    };
    tokio::time::sleep(Duration::from_millis(step.wait_ms)).await;
    if let Some(status) = step.status {
        return step_refusal(status, &step);
    }
    match step
        .tools
        .iter()
        .map(|wanted| translate(wanted, &tools))
        .collect::<Result<Vec<Call>, String>>()
    {
        Ok(calls) => streamed((format.write)(model, serial, &step, &calls), step.hang_up),
        Err(why) => streamed((format.write)(model, serial, &Step::saying(&why), &[]), false),
    }
}

/// Server-sent events; `hang_up` breaks the connection in their middle.
fn streamed(mut frames: Vec<Frame>, hang_up: bool) -> Response {
    if hang_up {
        frames.truncate(frames.len().div_ceil(2));
    }
    let texts = frames.into_iter().map(|Frame { event, data }| {
        let event = event.map(|event| format!("event: {event}\n")).unwrap_or_default();
        Ok(format!("{event}data: {data}\n\n"))
    });
    let broken = stream::iter(hang_up.then_some(())).then(|()| async {
        // What came before is sent while this waits; an error at once would take it along.
        tokio::task::yield_now().await;
        Err(io::Error::from(io::ErrorKind::ConnectionAborted))
    });
    let body = Body::from_stream(stream::iter(texts).chain(broken));
    (
        [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-cache"),
        ],
        body,
    )
        .into_response()
}

fn step_refusal(status: u16, step: &Step) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = refusal(status, &step.text);
    if let Some(seconds) = step.retry_after_seconds {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn refusal(status: StatusCode, message: &str) -> Response {
    let error = json!({ "message": message, "type": "api_error", "code": status.as_u16() });
    (status, axum::Json(json!({ "error": error }))).into_response()
}

/// The text of a message's content, which is a text or a list of parts.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<&str>>()
            .join("\n"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

#[cfg(test)]
mod tests;

//! A model server for tests of real agents: loopback only, no model behind it.
//!
//! It speaks three wire formats with server-sent events: OpenAI chat completions (`POST /v1/chat/completions`), OpenAI
//! responses (`POST /v1/responses`) and Gemini's (`POST /v1beta/models/MODEL:streamGenerateContent`; also
//! `:generateContent` and `:countTokens`, answered at once). What the "model" does stands in the prompt, as a
//! [`Script`]; the step that answers a call is found by counting the rounds of tool results since that prompt. The
//! server keeps no state but a list of what it was asked, so tests that run at once cannot disturb each other.
//!
//! A call that declares no tools is one that an agent makes for itself, such as for a title: it gets a few words and
//! never takes part in a script. Some agents declare tools in such calls too: [`ModelServer::scripting`] names the models
//! that take part.

mod chat;
mod gemini;
mod responses;
mod script;
mod tools;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
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
    shared: Arc<Shared>,
    serving: JoinHandle<io::Result<()>>,
}

/// One request that the server got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Method and path.
    pub request: String,
    /// The model; empty for what is not a call of a model.
    pub model: String,
    /// The effort, where one was asked for.
    pub effort: Option<String>,
    /// The names of the tools that the agent declared.
    pub tools: Vec<String>,
    /// What the person had said so far in the conversation, as the agent tells it.
    pub prompts: Vec<String>,
    /// Whether the server knows the path.
    pub known: bool,
}

/// What the server's handlers share.
#[derive(Debug)]
struct Shared {
    asked: watch::Sender<Vec<Asked>>,
    /// The models that take part in scripts; empty: all.
    scripted: Vec<String>,
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
        ModelServer::scripting(&[]).await
    }

    /// The same, where only these models take part in scripts; none: all do.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn scripting(models: &[&str]) -> io::Result<ModelServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            asked: watch::Sender::default(),
            scripted: models.iter().map(|&model| model.to_owned()).collect(),
        });
        let router = Router::new()
            .route("/v1/models", get(self::models))
            .route("/v1/chat/completions", post(chat_completions))
            .route("/v1/responses", post(create_response))
            .route("/v1beta/models/{call}", post(generate_content))
            .fallback(unknown)
            .layer(DefaultBodyLimit::max(MAX_BODY))
            .with_state(Arc::clone(&shared));
        let serving = tokio::spawn(axum::serve(listener, router).into_future());
        Ok(ModelServer {
            address,
            shared,
            serving,
        })
    }

    /// The base address that agents are configured with, such as `http://127.0.0.1:4000/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.root_url())
    }

    /// The address of the server, for agents that add the version of the interface themselves.
    #[must_use]
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What the server was asked, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.borrow().clone()
    }

    /// Waits until what the server was asked is as `enough` wants it.
    pub async fn asked_until(&self, enough: impl Fn(&[Asked]) -> bool) {
        let mut asked = self.shared.asked.subscribe();
        // The sender lives as long as the server.
        let _ = asked.wait_for(|asked| enough(asked)).await;
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

type Server = State<Arc<Shared>>;

impl Shared {
    /// Adds to the list and gives the length that it has then, which serves as a unique number.
    fn note(&self, asked: Asked) -> usize {
        let mut serial = 0;
        self.asked.send_modify(|all| {
            all.push(asked);
            serial = all.len();
        });
        serial
    }

    fn takes_part(&self, model: &str) -> bool {
        self.scripted.is_empty() || self.scripted.iter().any(|one| one == model)
    }
}

async fn models(server: Server) -> Response {
    server.note(Asked {
        request: "GET /v1/models".to_owned(),
        known: true,
        ..Asked::default()
    });
    let model = json!({ "id": "test-model", "object": "model", "created": 1, "owned_by": "test" });
    axum::Json(json!({ "object": "list", "data": [model] })).into_response()
}

async fn unknown(server: Server, method: Method, uri: Uri) -> Response {
    let request = format!("{method} {}", uri.path());
    let message = format!("this server does not know {request}");
    server.note(Asked {
        request,
        ..Asked::default()
    });
    refusal(StatusCode::NOT_FOUND, &message)
}

async fn chat_completions(server: Server, body: Bytes) -> Response {
    answer_openai(&server, "POST /v1/chat/completions", &body, &chat::FORMAT).await
}

async fn create_response(server: Server, body: Bytes) -> Response {
    answer_openai(&server, "POST /v1/responses", &body, &responses::FORMAT).await
}

async fn answer_openai(server: &Shared, request: &str, body: &[u8], format: &WireFormat) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return refusal(StatusCode::BAD_REQUEST, "the body is not JSON");
    };
    if body["stream"] != true {
        return refusal(StatusCode::BAD_REQUEST, "this server answers with a stream only");
    }
    let model = body["model"].as_str().unwrap_or_default();
    match answer(server, request, model, &body, format).await {
        Ok(Answered { serial, step, calls }) => streamed((format.write)(model, serial, &step, &calls), &step),
        Err(refusal) => *refusal,
    }
}

async fn generate_content(server: Server, Path(call): Path<String>, body: Bytes) -> Response {
    let request = format!("POST /v1beta/models/{call}");
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return refusal(StatusCode::BAD_REQUEST, "the body is not JSON");
    };
    let format = &gemini::FORMAT;
    let (model, method) = call.split_once(':').unwrap_or((&call, ""));
    match method {
        "countTokens" => {
            server.note(Asked {
                request,
                known: true,
                ..Asked::default()
            });
            axum::Json(json!({ "totalTokens": 42 })).into_response()
        }
        "generateContent" | "streamGenerateContent" => {
            match answer(&server, &request, model, &body, format).await {
                Ok(Answered { serial, step, calls }) if method == "generateContent" => {
                    axum::Json(gemini::whole(model, serial, &body, &step, &calls)).into_response()
                }
                Ok(Answered { serial, step, calls }) => {
                    streamed((format.write)(model, serial, &step, &calls), &step)
                }
                Err(refusal) => *refusal,
            }
        }
        _ => {
            let message = format!("this server does not know {request}");
            server.note(Asked {
                request,
                ..Asked::default()
            });
            refusal(StatusCode::NOT_FOUND, &message)
        }
    }
}

/// What is answered to a call.
struct Answered {
    serial: usize,
    step: Step,
    calls: Vec<Call>,
}

/// The step that answers a call, waited for; an error is what it answers instead.
async fn answer(
    server: &Shared,
    request: &str,
    model: &str,
    body: &Value,
    format: &WireFormat,
) -> Result<Answered, Box<Response>> {
    let ModelCall { turns, tools, effort } = (format.read)(body);
    let prompts = turns.iter().filter_map(|turn| match turn {
        Turn::Prompt(text) => Some(text.clone()),
        Turn::ToolResult | Turn::Model => None,
    });
    let serial = server.note(Asked {
        request: request.to_owned(),
        model: model.to_owned(),
        effort,
        tools: tools.iter().map(|tool| tool.name.clone()).collect(),
        prompts: prompts.collect(),
        known: true,
    });
    let step = if tools.is_empty() || !server.takes_part(model) {
        Step::saying("A short title")
    } else {
        choose(&turns)
    };
    tokio::time::sleep(Duration::from_millis(step.wait_ms)).await;
    if let Some(status) = step.status {
        return Err(Box::new(step_refusal(status, &step)));
    }
    let calls: Result<Vec<Call>, String> = step
        .tools
        .iter()
        .map(|wanted| translate(wanted, &tools))
        .collect();
    Ok(match calls {
        Ok(calls) => Answered { serial, step, calls },
        Err(why) => Answered {
            serial,
            step: Step::saying(&why),
            calls: Vec::new(),
        },
    })
}

/// Server-sent events, at the step's pace; its `hang_up` breaks the connection in their middle.
fn streamed(mut frames: Vec<Frame>, step: &Step) -> Response {
    let (hang_up, pace) = (step.hang_up, Duration::from_millis(step.pace_ms));
    if hang_up {
        frames.truncate(frames.len().div_ceil(2));
    }
    let texts = stream::iter(frames).then(move |Frame { event, data }| async move {
        if !pace.is_zero() {
            tokio::time::sleep(pace).await;
        }
        let event = event.map(|event| format!("event: {event}\n")).unwrap_or_default();
        Ok(format!("{event}data: {data}\n\n"))
    });
    let broken = stream::iter(hang_up.then_some(())).then(|()| async {
        // What came before is sent while this waits; an error at once would take it along.
        tokio::task::yield_now().await;
        Err(io::Error::from(io::ErrorKind::ConnectionAborted))
    });
    let body = Body::from_stream(texts.chain(broken));
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

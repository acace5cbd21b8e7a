//! One call over HTTP, and what an answer means.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
pub(super) use reqwest::{Method, Response};
use reqwest::{RequestBuilder, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sillage_core::ports::runtime::RuntimeError;

use crate::translate::error_of;
use crate::wire::{ErrorClass, Problem, ProblemKind};

/// The largest answer that is read, in bytes; an event stream has no end and is bounded by its frames.
const LARGEST_ANSWER: usize = 16 << 20;

/// Characters of an answer that nobody understands which are repeated.
const SHOWN: usize = 200;

/// Why a gateway cannot be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadAddress {
    /// It is no address.
    #[error("`{address}` is no address of a gateway: write it as in http://127.0.0.1:7433")]
    NoAddress {
        /// What was written.
        address: String,
    },
    /// It may be another machine's.
    #[error("`{address}` is not this machine: a gateway is asked over http on 127.0.0.1, [::1] or localhost")]
    NotLoopback {
        /// What was written.
        address: String,
    },
    /// The token cannot stand in a header.
    #[error(
        "the token holds something other than printable characters: copy it from the gateway's token file"
    )]
    Token,
    /// The client cannot be made.
    #[error("cannot make an HTTP client")]
    Client(#[source] reqwest::Error),
}

/// What an answer says is wrong, before it is known whether that concerns a session.
#[derive(Debug)]
pub(super) struct Wrong(RuntimeError);

impl From<Wrong> for RuntimeError {
    fn from(wrong: Wrong) -> Self {
        wrong.0
    }
}

/// Asks one gateway.
#[derive(Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    base: Url,
}

impl Http {
    pub(super) fn new(address: &str, token: &str, connect: Duration) -> Result<Self, BadAddress> {
        let address = address.to_owned();
        let Ok(base) = Url::parse(&address) else {
            return Err(BadAddress::NoAddress { address });
        };
        if base.cannot_be_a_base() || base.host_str().is_none() {
            return Err(BadAddress::NoAddress { address });
        }
        if base.scheme() != "http" || !is_loopback(&base) || !base.username().is_empty() {
            return Err(BadAddress::NotLoopback { address });
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| BadAddress::Token)?;
        bearer.set_sensitive(true);
        let client = reqwest::Client::builder()
            .default_headers(HeaderMap::from_iter([(AUTHORIZATION, bearer)]))
            // The token goes to the gateway and nowhere else.
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(connect)
            .build()
            .map_err(BadAddress::Client)?;
        Ok(Self { client, base })
    }

    /// Where the gateway is.
    pub(super) fn address(&self) -> &Url {
        &self.base
    }

    /// Asks for something.
    pub(super) async fn get<A: DeserializeOwned>(&self, path: &[&str], within: Duration) -> Result<A, Wrong> {
        self.send::<(), A>(Method::GET, path, None, within).await
    }

    /// Asks with a body, and reads the answer.
    pub(super) async fn send<B: Serialize, A: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&B>,
        within: Duration,
    ) -> Result<A, Wrong> {
        let call = async {
            let bytes = self.call(method, path, body).await?;
            serde_json::from_slice(&bytes).map_err(|error| {
                let start: String = String::from_utf8_lossy(&bytes).chars().take(SHOWN).collect();
                permanent(format!(
                    "the gateway's answer is not understood ({error}): {start}"
                ))
            })
        };
        bounded(within, call).await
    }

    /// Asks for something whose answer says nothing.
    pub(super) async fn do_it<B: Serialize>(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&B>,
        within: Duration,
    ) -> Result<(), Wrong> {
        bounded(within, async { self.call(method, path, body).await.map(|_| ()) }).await
    }

    /// Begins an event stream after a number; none when the session is over and nothing follows.
    pub(super) async fn stream(
        &self,
        session: &str,
        after: u64,
        within: Duration,
    ) -> Result<Option<Response>, Wrong> {
        let mut url = self.url(&["api", "sessions", session, "events"])?;
        url.query_pairs_mut().append_pair("after", &after.to_string());
        let call = async {
            let answer = self
                .client
                .get(url)
                .send()
                .await
                .map_err(|error| unreached(&error))?;
            match answer.status() {
                StatusCode::OK => Ok(Some(answer)),
                StatusCode::NO_CONTENT => Ok(None),
                _ => Err(refusal(answer).await),
            }
        };
        bounded(within, call).await
    }

    async fn call<B: Serialize>(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&B>,
    ) -> Result<Vec<u8>, Wrong> {
        let mut request = self.client.request(method, self.url(path)?);
        if let Some(body) = body {
            request = with_json(request, body)?;
        }
        let answer = request.send().await.map_err(|error| unreached(&error))?;
        if !answer.status().is_success() {
            return Err(refusal(answer).await);
        }
        read(answer).await
    }

    fn url(&self, path: &[&str]) -> Result<Url, Wrong> {
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => segments.pop_if_empty().extend(path),
            Err(()) => return Err(permanent(format!("{} is no address of a gateway", self.base))),
        };
        Ok(url)
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn with_json<B: Serialize>(request: RequestBuilder, body: &B) -> Result<RequestBuilder, Wrong> {
    let json = serde_json::to_vec(body)
        .map_err(|error| permanent(format!("the request cannot be written: {error}")))?;
    Ok(request.header(CONTENT_TYPE, "application/json").body(json))
}

async fn bounded<T>(within: Duration, call: impl Future<Output = Result<T, Wrong>>) -> Result<T, Wrong> {
    match tokio::time::timeout(within, call).await {
        Ok(told) => told,
        Err(_) => Err(temporary(
            format!("the gateway did not answer within {} s", within.as_secs()),
            None,
        )),
    }
}

fn permanent(words: String) -> Wrong {
    Wrong(RuntimeError::Permanent { words })
}

fn temporary(words: String, retry_after: Option<u64>) -> Wrong {
    Wrong(error_of(ErrorClass::Temporary, words, retry_after, None))
}

/// With the words of the causes: the first alone tells but the address. Joined here, for this crate names nothing of the
/// core but its ports.
fn unreached(error: &reqwest::Error) -> Wrong {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let words = causes.fold("the gateway cannot be reached".to_owned(), |words, cause| {
        format!("{words}: {cause}")
    });
    temporary(words, None)
}

/// Reads an answer, up to a bound.
async fn read(mut answer: Response) -> Result<Vec<u8>, Wrong> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| unreached(&error))? {
        if bytes.len() + chunk.len() > LARGEST_ANSWER {
            return Err(permanent(format!(
                "the gateway's answer is larger than {LARGEST_ANSWER} bytes"
            )));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// What an answer without success means: by its problem document, or by its status where it has none.
async fn refusal(answer: Response) -> Wrong {
    let status = answer.status();
    let retry_after = answer
        .headers()
        .get(RETRY_AFTER)
        .and_then(|told| told.to_str().ok())
        .and_then(|told| told.trim().parse().ok());
    let bytes = match read(answer).await {
        Ok(bytes) => bytes,
        Err(wrong) => return wrong,
    };
    match serde_json::from_slice::<Problem>(&bytes) {
        Ok(problem) => Wrong(of_problem(status, problem, retry_after)),
        Err(_) => {
            let start: String = String::from_utf8_lossy(&bytes).chars().take(SHOWN).collect();
            Wrong(of_status(
                status,
                format!("the gateway answered {status}: {start}"),
                retry_after,
            ))
        }
    }
}

fn of_problem(status: StatusCode, problem: Problem, told: Option<u64>) -> RuntimeError {
    let words = problem.detail.clone();
    let retry_after = problem.retry_after.or(told);
    let class = match ProblemKind::of(&problem.kind) {
        Some(ProblemKind::Conflict | ProblemKind::Busy) => {
            return RuntimeError::Conflict {
                words,
                fields: problem.fields,
            };
        }
        Some(ProblemKind::Unstoppable) => {
            let pid = problem.pid.unwrap_or_default();
            return RuntimeError::Unstoppable { pid, words };
        }
        Some(ProblemKind::Temporary | ProblemKind::Storage | ProblemKind::Timeout) => ErrorClass::Temporary,
        Some(ProblemKind::Quota) => ErrorClass::Quota,
        Some(ProblemKind::SignIn) => ErrorClass::SignIn,
        Some(ProblemKind::Capacity) => ErrorClass::Capacity,
        Some(ProblemKind::NotFound | ProblemKind::Lost) => ErrorClass::Lost,
        Some(
            ProblemKind::BadRequest
            | ProblemKind::Unauthorized
            | ProblemKind::Forbidden
            | ProblemKind::MethodNotAllowed
            | ProblemKind::LengthRequired
            | ProblemKind::TooLarge
            | ProblemKind::UnsupportedMediaType
            | ProblemKind::Permanent
            | ProblemKind::Capability,
        ) => ErrorClass::Permanent,
        // A problem of a later version, or of another make.
        None => return of_status(status, words, retry_after),
    };
    error_of(class, words, retry_after, problem.resets_at.as_deref())
}

fn of_status(status: StatusCode, words: String, retry_after: Option<u64>) -> RuntimeError {
    let class = match status.as_u16() {
        404 | 410 => ErrorClass::Lost,
        408 | 425 | 429 | 500..=599 => ErrorClass::Temporary,
        _ => ErrorClass::Permanent,
    };
    error_of(class, words, retry_after, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(address: &str) -> Result<Http, BadAddress> {
        Http::new(address, "t", Duration::from_secs(1))
    }

    /// L1: the token is sent to this machine alone.
    #[test]
    fn only_this_machine_is_asked() {
        for good in [
            "http://127.0.0.1:7433",
            "http://localhost:1/",
            "http://[::1]:80",
            "http://127.3.2.1",
        ] {
            assert!(http(good).is_ok(), "{good}");
        }
        for other in [
            "http://example.org:7433",
            "http://localhost.evil.example",
            "http://0.0.0.0:1",
            "https://127.0.0.1:1",
            "http://127.0.0.1@evil.example",
            "http://user@127.0.0.1",
            "ftp://127.0.0.1",
        ] {
            assert!(
                matches!(http(other), Err(BadAddress::NotLoopback { .. })),
                "{other}"
            );
        }
        for none in ["", "127.0.0.1:7433", "mailto:a", "data:x"] {
            assert!(http(none).is_err(), "{none}");
        }
        assert!(matches!(
            Http::new("http://[::1]", "a\nb", Duration::ZERO),
            Err(BadAddress::Token)
        ));
    }

    /// R7–R9: every class by its document, and by its status where there is none.
    #[test]
    fn answers_have_their_class() {
        let of = |kind: ProblemKind| {
            let problem = Problem {
                fields: vec!["effort".to_owned()],
                retry_after: Some(7),
                resets_at: Some("2026-11-30T14:00:00Z".to_owned()),
                pid: Some(3),
                ..kind.document("words")
            };
            of_problem(StatusCode::OK, problem, None)
        };
        assert!(matches!(
            of(ProblemKind::Temporary),
            RuntimeError::Temporary { retry_after: Some(span), .. } if span.as_secs() == 7
        ));
        let date = "2026-11-30T14:00:00Z".parse().ok();
        assert!(matches!(of(ProblemKind::Quota), RuntimeError::Quota { resets_at, .. } if resets_at == date));
        assert!(matches!(of(ProblemKind::SignIn), RuntimeError::SignIn { .. }));
        assert!(matches!(of(ProblemKind::Capacity), RuntimeError::Capacity { .. }));
        assert!(matches!(of(ProblemKind::Lost), RuntimeError::Lost { .. }));
        assert!(matches!(
            of(ProblemKind::Unstoppable),
            RuntimeError::Unstoppable { pid: 3, .. }
        ));
        assert!(
            matches!(of(ProblemKind::Conflict), RuntimeError::Conflict { fields, .. } if fields == ["effort"])
        );
        assert!(matches!(
            of(ProblemKind::Unauthorized),
            RuntimeError::Permanent { .. }
        ));
        let class = |status: u16| {
            let status = StatusCode::from_u16(status).expect("a status");
            of_status(status, String::new(), None)
        };
        for status in [500, 502, 503, 504, 529, 429, 408] {
            assert!(
                matches!(class(status), RuntimeError::Temporary { .. }),
                "{status}"
            );
        }
        for status in [404, 410] {
            assert!(matches!(class(status), RuntimeError::Lost { .. }), "{status}");
        }
        for status in [301, 400, 401, 403, 422] {
            assert!(
                matches!(class(status), RuntimeError::Permanent { .. }),
                "{status}"
            );
        }
    }
}

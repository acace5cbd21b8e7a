//! [`RelaisClient`]: an [`AgentRuntime`] over a gateway.
//!
//! Each call is made once and its outcome classified; only a stream of events is taken up again where it was cut, for
//! that asks for nothing twice. It is for a moment, within which a gateway may be started again; then the stream ends.

mod events;
mod frames;
mod http;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_core::stream::BoxStream;
pub use http::BadAddress;
use http::{Http, Method, Wrong};
use sillage_core::id::ClientSessionId;
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    AccountState, FoundSession, MessageFate, MessageRequest, ModelOffer, OpenedSession, RuntimeError,
    RuntimeStatus, SessionEvent, SessionRequest,
};

use crate::translate::{request_of_session, request_to_wire};
use crate::wire::{
    self, Account, ContentBlock, ModelList, PermissionAnswer, SendMessage, Session, Status, USUAL_TTL_SECONDS,
};

/// The most bytes of an account's name that a gateway is asked about.
const LONGEST_ACCOUNT: usize = 1000;

/// How a client asks.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// What the client's sessions are told apart by from those of other applications.
    pub application_name: String,
    /// Seconds without use after which the gateway closes a session. Part of each request: a session that was asked for
    /// with another value is asked for again with that one.
    pub ttl_seconds: u64,
    /// How long the gateway may take to accept a connection.
    pub connect: Duration,
    /// How long it may take over an ordinary call.
    pub answer: Duration,
    /// How long it may take to open, find or close a session.
    pub open: Duration,
    /// How long an event stream may be without a sign of life before it is taken up again.
    pub silence: Duration,
    /// For how long a cut event stream is taken up again before it ends, so that whoever reads it learns that the gateway
    /// is out of reach.
    pub patience: Duration,
}

impl ClientOptions {
    /// Usual options, under this name.
    #[must_use]
    pub fn new(application_name: impl Into<String>) -> Self {
        Self {
            application_name: application_name.into(),
            ttl_seconds: USUAL_TTL_SECONDS,
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(30),
            open: Duration::from_secs(180),
            silence: Duration::from_secs(60),
            patience: Duration::from_secs(2),
        }
    }
}

/// Holds sessions through a gateway on this machine. Dropping it leaves them alive.
#[derive(Debug)]
pub struct RelaisClient {
    http: Arc<Http>,
    options: ClientOptions,
    /// Sessions that this client asked for and did not close.
    sessions: Mutex<HashMap<ClientSessionId, Known>>,
}

/// What a client knows of a session.
#[derive(Debug, Default)]
struct Known {
    /// Set once it is closed, for those whose asking for it has not come back yet.
    closed: Arc<AtomicBool>,
    /// Whether it was opened or found.
    here: bool,
}

impl RelaisClient {
    /// A client of the gateway at this address, such as `http://127.0.0.1:7433`; nothing is asked yet.
    ///
    /// # Errors
    /// [`BadAddress`] when the address is none of this machine's own, or the token cannot stand in a header.
    pub fn new(address: &str, token: &str, options: ClientOptions) -> Result<Self, BadAddress> {
        Ok(Self {
            http: Arc::new(Http::new(address, token, options.connect)?),
            options,
            sessions: Mutex::default(),
        })
    }

    /// What the gateway is and can do (L2).
    ///
    /// # Errors
    /// By class, as for any call.
    pub async fn gateway(&self) -> Result<Status, RuntimeError> {
        let status = self.http.get(&["api", "status"], self.options.answer);
        Ok(status.await?)
    }

    /// The gateway's address, as it is asked.
    #[must_use]
    pub fn address(&self) -> &str {
        self.http.address().as_str()
    }

    /// Whether the gateway knows a session under this identifier, alive or over.
    ///
    /// # Errors
    /// By class, as for any call.
    pub async fn knows(&self, session: ClientSessionId) -> Result<bool, RuntimeError> {
        let name = session.to_string();
        let path = ["api", "sessions", &name];
        let told: Result<Session, Wrong> = self.http.get(&path, self.options.answer).await;
        match told.map_err(RuntimeError::from) {
            Ok(_) => Ok(true),
            Err(RuntimeError::Lost { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<ClientSessionId, Known>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, session: ClientSessionId) -> Result<String, RuntimeError> {
        if self.sessions().get(&session).is_some_and(|known| known.here) {
            return Ok(session.to_string());
        }
        let words = format!("there is no session {session} here");
        Err(RuntimeError::Lost { words })
    }

    fn forget(&self, id: ClientSessionId) {
        let mut sessions = self.sessions();
        if let Some(known) = sessions.remove(&id) {
            known.closed.store(true, Ordering::Release);
        }
    }

    /// A session is about to be asked for: what tells whether it is closed before that comes back.
    fn asks_for(&self, id: ClientSessionId) -> Arc<AtomicBool> {
        Arc::clone(&self.sessions().entry(id).or_default().closed)
    }

    /// A session that the gateway told of is the one that was asked for, lives, and was not closed meanwhile.
    fn taken(
        &self,
        session: &Session,
        id: ClientSessionId,
        closed: &AtomicBool,
    ) -> Result<OpenedSession, RuntimeError> {
        if session.client_session_id != id.0 || session.id != id.0 {
            let words = format!(
                "the gateway answered with session {} where {id} was asked for: it is not to be trusted",
                session.id
            );
            return Err(RuntimeError::Permanent { words });
        }
        if session.state.is_over() {
            let because = session
                .because
                .as_deref()
                .unwrap_or("the gateway does not say why");
            let words = format!("session {id} is over: {because}");
            return Err(RuntimeError::Lost { words });
        }
        let mut sessions = self.sessions();
        // Under the lock that a close takes too.
        if closed.load(Ordering::Acquire) {
            let words = format!("session {id} was closed while it was asked for");
            return Err(RuntimeError::Lost { words });
        }
        sessions.entry(id).or_default().here = true;
        Ok(OpenedSession {
            native: Some(session.id.to_string()),
            agent: session.agent.clone().unwrap_or_default(),
            pid: session.pid,
        })
    }
}

#[async_trait]
impl AgentRuntime for RelaisClient {
    async fn status(&self) -> Result<RuntimeStatus, RuntimeError> {
        let offers: ModelList = self.http.get(&["api", "models"], self.options.answer).await?;
        let models = offers.models.into_iter().map(|model| ModelOffer {
            agent: model.agent,
            model: model.model,
            efforts: model.efforts,
            account: model.account,
        });
        Ok(RuntimeStatus {
            name: format!("Relais at {}", self.http.address()),
            models: models.collect(),
        })
    }

    async fn open(&self, request: &SessionRequest) -> Result<OpenedSession, RuntimeError> {
        let body = request_to_wire(request, &self.options.application_name, self.options.ttl_seconds);
        let body = body.map_err(|error| RuntimeError::Permanent {
            words: error.to_string(),
        })?;
        let closed = self.asks_for(request.client_session_id);
        let answer = self
            .http
            .send(Method::POST, &["api", "sessions"], Some(&body), self.options.open);
        let session: Session = answer.await?;
        self.taken(&session, request.client_session_id, &closed)
    }

    async fn find(
        &self,
        request: &SessionRequest,
        _native: Option<&str>,
        in_flight: Option<&MessageRequest>,
    ) -> Result<FoundSession, RuntimeError> {
        let id = request.client_session_id;
        let name = id.to_string();
        let closed = self.asks_for(id);
        let session: Session = self
            .http
            .get(&["api", "sessions", &name], self.options.open)
            .await?;
        let fields = request_of_session(&session).differences(request);
        if session.client_session_id == id.0 && !fields.is_empty() {
            let words = format!("session {id} came before with another {}", fields.join(", "));
            return Err(RuntimeError::Conflict { words, fields });
        }
        let opened = self.taken(&session, id, &closed)?;
        // A session takes a message only when the one before has ended: one in flight is its last, or never arrived.
        let last = session.last_message.map(|last| last.client_message_id);
        let in_flight = match in_flight {
            None => MessageFate::None,
            Some(message) if last == Some(message.client_message_id.0) => MessageFate::InHand,
            Some(_) => MessageFate::NotReceived,
        };
        Ok(FoundSession {
            opened,
            restarted: false,
            in_flight,
        })
    }

    async fn send(&self, session: ClientSessionId, message: &MessageRequest) -> Result<(), RuntimeError> {
        let name = self.known(session)?;
        let body = SendMessage {
            client_message_id: message.client_message_id.0,
            content: vec![ContentBlock::Text {
                text: message.text.clone(),
            }],
        };
        let path = ["api", "sessions", &name, "messages"];
        let answer =
            self.http
                .send::<_, wire::MessageAccepted>(Method::POST, &path, Some(&body), self.options.answer);
        match answer.await.map_err(RuntimeError::from) {
            Ok(_) => Ok(()),
            Err(RuntimeError::Conflict { words, fields }) => {
                // What the wire calls its content is a text here.
                let fields = fields.into_iter().map(|field| {
                    if field == "content" {
                        "text".to_owned()
                    } else {
                        field
                    }
                });
                Err(RuntimeError::Conflict {
                    words,
                    fields: fields.collect(),
                })
            }
            Err(error) => Err(error),
        }
    }

    async fn events(
        &self,
        session: ClientSessionId,
        after: u64,
    ) -> Result<BoxStream<'static, SessionEvent>, RuntimeError> {
        let name = self.known(session)?;
        let bounds = events::Bounds {
            silence: self.options.silence,
            patience: self.options.patience,
        };
        events::events(Arc::clone(&self.http), name, after, bounds).await
    }

    async fn answer_permission(
        &self,
        session: ClientSessionId,
        permission: &str,
        option: &str,
    ) -> Result<(), RuntimeError> {
        let name = self.known(session)?;
        let body = PermissionAnswer {
            option: option.to_owned(),
        };
        let path = ["api", "sessions", &name, "permissions", permission];
        let answer = self
            .http
            .do_it(Method::POST, &path, Some(&body), self.options.answer);
        Ok(answer.await?)
    }

    async fn cancel(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        let name = session.to_string();
        let path = ["api", "sessions", &name, "cancel"];
        let answer = self
            .http
            .do_it::<()>(Method::POST, &path, None, self.options.answer);
        match answer.await.map_err(RuntimeError::from) {
            Err(RuntimeError::Lost { .. }) => Ok(()), // there is nothing to stop
            told => told,
        }
    }

    async fn account(&self, account: &str) -> Result<AccountState, RuntimeError> {
        if account.len() > LONGEST_ACCOUNT {
            return Ok(AccountState::Unknown); // no address has room for it
        }
        let told: Result<Account, Wrong> = self
            .http
            .get(&["api", "accounts", account], self.options.answer)
            .await;
        match told.map_err(RuntimeError::from) {
            Ok(account) => Ok(match account.state {
                wire::AccountState::Unknown => AccountState::Unknown,
                wire::AccountState::Available => AccountState::Available,
                wire::AccountState::Unavailable => AccountState::Unavailable,
            }),
            // A gateway of another make need not know of accounts.
            Err(RuntimeError::Lost { .. }) => Ok(AccountState::Unknown),
            Err(error) => Err(error),
        }
    }

    async fn close(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        let name = session.to_string();
        let path = ["api", "sessions", &name];
        let answer = self
            .http
            .do_it::<()>(Method::DELETE, &path, None, self.options.open);
        match answer.await.map_err(RuntimeError::from) {
            Ok(()) | Err(RuntimeError::Lost { .. }) => {
                self.forget(session);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;

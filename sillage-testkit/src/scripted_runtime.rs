//! [`ScriptedRuntime`]: an [`AgentRuntime`] without processes, answering as a script says.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_core::stream::BoxStream;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    AccountState, FoundSession, MessageFate, MessageRequest, ModelOffer, OpenedSession, RuntimeError,
    RuntimeStatus, SessionEvent, SessionRequest,
};

mod reply;
mod session;

pub use reply::{Asked, Call, Fault, Reply};
use session::Session;

type Script = Box<dyn FnMut(&Asked<'_>) -> Reply + Send>;
type Faults = Box<dyn FnMut(&Call<'_>) -> Option<Fault> + Send>;
type Accounts = Box<dyn FnMut(&str) -> AccountState + Send>;

/// Answers messages by a closure or a table, at once unless told otherwise; nothing runs between calls.
///
/// Idempotent by identifiers, as [`AgentRuntime`] asks. A session costs a few hundred bytes and a message one call
/// of the script, so that benches may run 100,000 steps through it. Cloning gives another handle of the same runtime,
/// which outlives an engine that is dropped and started again, as a gateway would.
#[derive(Clone)]
pub struct ScriptedRuntime {
    shared: Arc<Shared>,
}

struct Shared {
    script: Mutex<Script>,
    faults: Mutex<Option<Faults>>,
    offers: Mutex<Vec<ModelOffer>>,
    accounts: Mutex<Option<Accounts>>,
    sessions: Mutex<HashMap<ClientSessionId, Arc<Session>>>,
    /// How often a session was started under each identifier; kept after it is closed.
    starts: Mutex<HashMap<ClientSessionId, u32>>,
    asked: AtomicU64,
}

impl ScriptedRuntime {
    /// A runtime that answers each message by `script`, which is called once for each message accepted.
    pub fn new(script: impl FnMut(&Asked<'_>) -> Reply + Send + 'static) -> Self {
        Self {
            shared: Arc::new(Shared {
                script: Mutex::new(Box::new(script)),
                faults: Mutex::new(None),
                offers: Mutex::new(Vec::new()),
                accounts: Mutex::new(None),
                sessions: Mutex::new(HashMap::new()),
                starts: Mutex::new(HashMap::new()),
                asked: AtomicU64::new(0),
            }),
        }
    }

    /// A runtime that answers by a table: the first row whose words occur in the message's text gives its next reply,
    /// its last one again and again. A message that no row knows fails as [`RuntimeError::Permanent`].
    pub fn table<W: Into<String>>(rows: impl IntoIterator<Item = (W, Vec<Reply>)>) -> Self {
        let mut rows: Vec<(String, VecDeque<Reply>)> = rows
            .into_iter()
            .map(|(words, replies)| (words.into(), replies.into()))
            .collect();
        Self::new(move |asked| {
            let row = rows
                .iter_mut()
                .find(|(words, _)| asked.message.text.contains(words.as_str()));
            let reply = row.and_then(|(_, replies)| match replies.len() {
                0 | 1 => replies.front().cloned(),
                _ => replies.pop_front(),
            });
            reply.unwrap_or_else(|| {
                let words = format!("the script's table has no row for: {}", asked.message.text);
                Reply::Fail(RuntimeError::Permanent { words })
            })
        })
    }

    /// Asks `faults` before each call whether it is to fail, and how.
    #[must_use]
    pub fn with_faults(self, faults: impl FnMut(&Call<'_>) -> Option<Fault> + Send + 'static) -> Self {
        *lock(&self.shared.faults) = Some(Box::new(faults));
        self
    }

    /// Offers these models and no others. Without it, any model is accepted and `status` names none.
    #[must_use]
    pub fn offering(self, offers: Vec<ModelOffer>) -> Self {
        *lock(&self.shared.offers) = offers;
        self
    }

    /// Knows of provider accounts what `accounts` says. Without it, nothing is known of any.
    #[must_use]
    pub fn knowing_accounts(self, accounts: impl FnMut(&str) -> AccountState + Send + 'static) -> Self {
        *lock(&self.shared.accounts) = Some(Box::new(accounts));
        self
    }

    /// Ends the message that `session` is answering (one answered [`Reply::Silent`] or [`Reply::Later`]) with
    /// `reply`. Says whether there was one.
    pub fn answer(&self, session: ClientSessionId, reply: Reply) -> bool {
        self.session(session).is_some_and(|session| {
            let current = session.current();
            current.is_some_and(|message| session.play(message, reply).is_ok())
        })
    }

    /// Loses the session, as when its process dies: its message ends with [`RuntimeError::Lost`], its stream ends,
    /// and it is not found again.
    pub fn lose(&self, session: ClientSessionId, words: &str) {
        if let Some(session) = lock(&self.shared.sessions).remove(&session) {
            session.die(words);
        }
    }

    /// Loses every session, as a runtime that is started again.
    pub fn lose_all(&self, words: &str) {
        let sessions = std::mem::take(&mut *lock(&self.shared.sessions));
        sessions.values().for_each(|session| session.die(words));
    }

    /// How many sessions were started under this identifier since the runtime was made: more than one only when it
    /// was opened again after a close or a loss.
    #[must_use]
    pub fn starts(&self, session: ClientSessionId) -> u32 {
        lock(&self.shared.starts).get(&session).copied().unwrap_or(0)
    }

    /// How many messages the script was asked to answer since the runtime was made.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// The sessions that are open, in no order.
    #[must_use]
    pub fn open_sessions(&self) -> Vec<ClientSessionId> {
        lock(&self.shared.sessions).keys().copied().collect()
    }

    fn session(&self, id: ClientSessionId) -> Option<Arc<Session>> {
        lock(&self.shared.sessions).get(&id).cloned()
    }

    fn expect_session(&self, id: ClientSessionId) -> Result<Arc<Session>, RuntimeError> {
        self.session(id).ok_or_else(|| RuntimeError::Lost {
            words: format!("there is no session {id} here"),
        })
    }

    fn fault(&self, call: &Call<'_>) -> Option<Fault> {
        lock(&self.shared.faults).as_mut().and_then(|faults| faults(call))
    }

    /// Runs `work` unless the call is to fail first; forgets what it gave when its answer is to be lost.
    fn faulty<T>(
        &self,
        call: &Call<'_>,
        work: impl FnOnce() -> Result<T, RuntimeError>,
    ) -> Result<T, RuntimeError> {
        match self.fault(call) {
            None => work(),
            Some(Fault::Before(error)) => Err(error),
            Some(Fault::After(error)) => {
                work()?;
                Err(error)
            }
        }
    }

    fn start_or_join(&self, request: &SessionRequest) -> Result<OpenedSession, RuntimeError> {
        let agent = self.agent_of(request)?;
        let mut sessions = lock(&self.shared.sessions);
        if let Some(session) = sessions.get(&request.client_session_id) {
            session.same_request(request)?;
            return Ok(session.opened.clone());
        }
        let session = Arc::new(Session::new(request.clone(), agent));
        let opened = session.opened.clone();
        sessions.insert(request.client_session_id, session);
        *lock(&self.shared.starts)
            .entry(request.client_session_id)
            .or_default() += 1;
        Ok(opened)
    }

    fn agent_of(&self, request: &SessionRequest) -> Result<String, RuntimeError> {
        let offers = lock(&self.shared.offers);
        if offers.is_empty() {
            return Ok("scripted".to_owned());
        }
        let offer = offers.iter().find(|offer| {
            request.model == offer.model || request.model == format!("{}/{}", offer.agent, offer.model)
        });
        let offer = offer.ok_or_else(|| {
            let names: Vec<&str> = offers.iter().map(|offer| offer.model.as_str()).collect();
            let words = format!(
                "no agent offers the model `{}`; there is: {}",
                request.model,
                names.join(", ")
            );
            RuntimeError::Permanent { words }
        })?;
        if !offer.efforts.is_empty() && !offer.efforts.contains(&request.effort) {
            let words = format!("`{}` has no effort `{}`", offer.model, request.effort);
            return Err(RuntimeError::Permanent { words });
        }
        Ok(offer.agent.clone())
    }

    fn deliver(&self, session: &Arc<Session>, message: &MessageRequest) -> Result<(), RuntimeError> {
        let Some(turn) = session.accept(message)? else {
            return Ok(());
        };
        self.shared.asked.fetch_add(1, Ordering::Relaxed);
        let asked = Asked {
            session: &session.request,
            message,
            turn,
        };
        let reply = (lock(&self.shared.script))(&asked);
        session.play(message.client_message_id, reply)
    }
}

#[async_trait]
impl AgentRuntime for ScriptedRuntime {
    async fn status(&self) -> Result<RuntimeStatus, RuntimeError> {
        self.faulty(&Call::Status, || {
            let models = lock(&self.shared.offers).clone();
            Ok(RuntimeStatus {
                name: "scripted".to_owned(),
                models,
            })
        })
    }

    async fn open(&self, request: &SessionRequest) -> Result<OpenedSession, RuntimeError> {
        self.faulty(&Call::Open(request), || self.start_or_join(request))
    }

    async fn find(
        &self,
        request: &SessionRequest,
        _native: Option<&str>,
        in_flight: Option<&MessageRequest>,
    ) -> Result<FoundSession, RuntimeError> {
        self.faulty(&Call::Find(request), || {
            let session = self.expect_session(request.client_session_id)?;
            session.same_request(request)?;
            let in_flight = match in_flight {
                None => MessageFate::None,
                Some(message) if session.knows(message.client_message_id) => MessageFate::InHand,
                Some(_) => MessageFate::NotReceived,
            };
            Ok(FoundSession {
                opened: session.opened.clone(),
                restarted: false,
                in_flight,
            })
        })
    }

    async fn send(&self, session: ClientSessionId, message: &MessageRequest) -> Result<(), RuntimeError> {
        self.faulty(&Call::Send(session, message), || {
            let session = self.expect_session(session)?;
            self.deliver(&session, message)
        })
    }

    async fn events(
        &self,
        session: ClientSessionId,
        after: u64,
    ) -> Result<BoxStream<'static, SessionEvent>, RuntimeError> {
        self.faulty(&Call::Events(session), || {
            Ok(self.expect_session(session)?.events(after))
        })
    }

    async fn answer_permission(
        &self,
        session: ClientSessionId,
        permission: &str,
        option: &str,
    ) -> Result<(), RuntimeError> {
        self.faulty(&Call::AnswerPermission(session), || {
            self.expect_session(session)?
                .answer_permission(permission, option)
        })
    }

    async fn cancel(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        self.faulty(&Call::Cancel(session), || {
            if let Some(session) = self.session(session) {
                session.cancel();
            }
            Ok(())
        })
    }

    async fn account(&self, account: &str) -> Result<AccountState, RuntimeError> {
        self.faulty(&Call::Account(account), || {
            let mut accounts = lock(&self.shared.accounts);
            Ok(accounts
                .as_mut()
                .map_or(AccountState::Unknown, |known| known(account)))
        })
    }

    async fn close(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        self.faulty(&Call::Close(session), || {
            if let Some(session) = lock(&self.shared.sessions).remove(&session) {
                session.end();
            }
            Ok(())
        })
    }
}

/// A lock whose holder cannot leave it half-changed: a script that panicked has not touched what it guards.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Plays `reply` when `after` has passed, if the message is still being answered then.
fn play_later(session: Arc<Session>, message: ClientMessageId, after: Duration, reply: Reply) {
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        if session.current() == Some(message) {
            // A refusal has nobody to go to any more: the message was accepted.
            let _ = session.play(message, reply);
        }
    });
}

#[cfg(test)]
mod tests;

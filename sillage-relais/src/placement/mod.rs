//! [`Gateways`]: an [`AgentRuntime`] over several gateways (L12).
//!
//! A session goes to the least loaded gateway that offers its model, and stays there: where it was placed is written
//! down before its request leaves, so that neither a lost answer nor a crash has it started on another while it may be
//! alive on the first. To ask all gateways instead, before each opening, would have one that is out of reach keep every
//! session waiting; so only its own do.

mod choice;
mod record;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use choice::{Candidate, Choice, choose};
use futures_core::stream::BoxStream;
use futures_util::future::{join, join_all};
use record::Records;
use sillage_core::id::ClientSessionId;
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    AccountState, FoundSession, MessageRequest, ModelOffer, OpenedSession, RuntimeError, RuntimeStatus,
    SessionEvent, SessionRequest,
};

use crate::RelaisClient;

/// How long a gateway may take to tell how it stands before a session is placed without it.
const STANDING: Duration = Duration::from_secs(3);

/// Holds sessions through several gateways. Dropping it leaves them alive.
#[derive(Debug)]
pub struct Gateways {
    gateways: Vec<One>,
    records: Records,
    sessions: Mutex<HashMap<ClientSessionId, Known>>,
}

/// A gateway.
#[derive(Debug)]
struct One {
    client: RelaisClient,
    address: String,
    capacity: u64,
    /// What it offered when it was last asked.
    offers: Mutex<Vec<ModelOffer>>,
}

/// What is known of a session that was asked for and not closed.
#[derive(Debug, Default)]
struct Known {
    /// The position of the gateway that it is placed on.
    at: Option<usize>,
    /// Whether it was placed for work that its gateway was not told of yet.
    is_fresh: bool,
    /// Set once it is closed, for those whose asking for it has not come back yet.
    closed: Arc<AtomicBool>,
}

/// How a gateway stands: the sessions at work there, those being started, and what it offers.
type Standing = Result<(Load, Vec<ModelOffer>), RuntimeError>;

/// What a gateway does, as it tells. Sessions that wait for a message or a person are no load: a coordinator keeps its
/// own while others work for it, and were they counted, coordinators could take all places and wait for ever.
#[derive(Debug, Clone, Copy)]
struct Load {
    working: u64,
    starting: u64,
}

impl Gateways {
    /// Sessions over these gateways, each with the most sessions that are to be at work there at once when a new one is
    /// placed. Where they are placed is kept in `folder`, which is made when it is needed; several programs may share it.
    #[must_use]
    pub fn new(gateways: Vec<(RelaisClient, NonZeroU32)>, folder: impl Into<PathBuf>) -> Self {
        let gateways = gateways.into_iter().map(|(client, capacity)| One {
            address: client.address().to_owned(),
            client,
            capacity: u64::from(capacity.get()),
            offers: Mutex::default(),
        });
        Self {
            gateways: gateways.collect(),
            records: Records::new(folder.into()),
            sessions: Mutex::default(),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<ClientSessionId, Known>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asks_for(&self, id: ClientSessionId) -> Arc<AtomicBool> {
        Arc::clone(&self.sessions().entry(id).or_default().closed)
    }

    /// The gateway at an address. One that is named no more may hold the session all the same.
    fn named(&self, id: ClientSessionId, address: &str) -> Result<usize, RuntimeError> {
        let found = self.gateways.iter().position(|one| one.address == address);
        found.ok_or_else(|| RuntimeError::Temporary {
            words: format!(
                "session {id} may be alive at the gateway {address}, which is not named any more: name it again"
            ),
            retry_after: None,
        })
    }

    /// Where the session was placed, by this program or an earlier one; none: nowhere.
    async fn place(&self, id: ClientSessionId, native: Option<&str>) -> Result<Option<usize>, RuntimeError> {
        if let Some(at) = self.sessions().get(&id).and_then(|known| known.at) {
            return Ok(Some(at));
        }
        // A session that was opened through one gateway alone has its own name there.
        let native = native.filter(|native| native.contains("://"));
        let address = match native {
            Some(native) => Some(native.to_owned()),
            None => self.records.read(id).await?,
        };
        address.map(|address| self.named(id, &address)).transpose()
    }

    async fn standings(&self) -> Vec<Standing> {
        join_all(self.gateways.iter().map(One::standing)).await
    }

    /// Chooses a gateway for a session that was never placed, and takes the place.
    async fn choose(&self, request: &SessionRequest, closed: &AtomicBool) -> Result<usize, RuntimeError> {
        let standings = self.standings().await;
        let id = request.client_session_id;
        let mut sessions = self.sessions();
        // Under the lock that a close takes too.
        if closed.load(Ordering::Acquire) {
            let words = format!("session {id} was closed while it was asked for");
            return Err(RuntimeError::Lost { words });
        }
        // Somebody else asked for the same meanwhile.
        if let Some(at) = sessions.get(&id).and_then(|known| known.at) {
            return Ok(at);
        }
        let candidates: Vec<Candidate> = (self.gateways.iter().zip(&standings).enumerate())
            .map(|(position, (one, standing))| {
                // It tells of those of ours that are being started, and not of what others are to do.
                let fresh = sessions
                    .values()
                    .filter(|known| known.is_fresh && known.at == Some(position));
                let fresh = u64::try_from(fresh.count()).unwrap_or(u64::MAX);
                let (load, offers) = match standing {
                    Ok((load, offers)) => {
                        let load = load.working.saturating_add(load.starting.max(fresh));
                        (load, Some(is_offered(&request.model, offers)))
                    }
                    Err(_) => (0, None),
                };
                Candidate {
                    offers,
                    load,
                    capacity: one.capacity,
                }
            })
            .collect();
        match choose(&candidates) {
            Choice::On(position) => {
                let known = sessions.entry(id).or_default();
                (known.at, known.is_fresh) = (Some(position), true);
                Ok(position)
            }
            Choice::Full => Err(RuntimeError::Capacity {
                words: format!(
                    "every gateway that offers {} has as many sessions at work as it may",
                    request.model
                ),
                retry_after: None,
            }),
            Choice::OutOfReach => {
                let words = standings.into_iter().find_map(Result::err);
                let words = words.map_or_else(String::new, |error| error.to_string());
                Err(RuntimeError::Temporary {
                    words: format!("no gateway within reach offers {}: {words}", request.model),
                    retry_after: None,
                })
            }
            Choice::Refused => Err(RuntimeError::Permanent {
                words: self.refusal(&request.model, &standings),
            }),
        }
    }

    fn refusal(&self, model: &str, standings: &[Standing]) -> String {
        let told = self.gateways.iter().zip(standings).map(|(one, standing)| {
            let offers = standing.as_ref().map_or(&[][..], |(_, offers)| offers);
            let names: Vec<&str> = offers.iter().map(|offer| &*offer.model).collect();
            match names.is_empty() {
                true => format!("{} offers none", one.address),
                false => format!("{} offers {}", one.address, names.join(", ")),
            }
        });
        format!(
            "no gateway offers model `{model}`: {}",
            told.collect::<Vec<_>>().join("; ")
        )
    }

    /// The session is at this gateway, unless it was closed meanwhile.
    fn settle(&self, id: ClientSessionId, at: usize, closed: &AtomicBool) {
        let mut sessions = self.sessions();
        if !closed.load(Ordering::Acquire) {
            sessions.entry(id).or_default().at = Some(at);
        }
    }

    /// The session is nowhere: it may be placed anew.
    async fn leave(&self, id: ClientSessionId) {
        self.records.forget(id).await;
        if let Some(known) = self.sessions().get_mut(&id) {
            (known.at, known.is_fresh) = (None, false);
        }
    }

    fn here(&self, id: ClientSessionId) -> Result<&RelaisClient, RuntimeError> {
        let at = self.sessions().get(&id).and_then(|known| known.at);
        at.map(|at| &self.gateways[at].client)
            .ok_or_else(|| RuntimeError::Lost {
                words: format!("there is no session {id} here"),
            })
    }

    /// Looks at all gateways for a session of which nobody knows where it was placed. It is lost only where all say so.
    async fn find_anywhere(
        &self,
        request: &SessionRequest,
        in_flight: Option<&MessageRequest>,
    ) -> Result<(usize, FoundSession), RuntimeError> {
        let asked = self
            .gateways
            .iter()
            .map(|one| one.client.find(request, None, in_flight));
        let mut worst = RuntimeError::Lost {
            words: format!("no gateway knows session {}", request.client_session_id),
        };
        for (position, told) in join_all(asked).await.into_iter().enumerate() {
            match told {
                Ok(found) => return Ok((position, found)),
                Err(RuntimeError::Lost { .. }) => {}
                Err(error) => worst = error,
            }
        }
        Err(worst)
    }
}

impl One {
    async fn standing(&self) -> Standing {
        let asked = join(self.client.gateway(), self.client.status());
        let Ok((gateway, status)) = tokio::time::timeout(STANDING, asked).await else {
            return Err(RuntimeError::Temporary {
                words: format!("the gateway {} did not tell how it stands", self.address),
                retry_after: None,
            });
        };
        let (sessions, offers) = (gateway?.sessions, status?.models);
        self.offers().clone_from(&offers);
        let load = Load {
            working: sessions.working,
            starting: sessions.starting,
        };
        Ok((load, offers))
    }

    fn offers(&self) -> MutexGuard<'_, Vec<ModelOffer>> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn named(&self, opened: OpenedSession) -> OpenedSession {
        OpenedSession {
            native: Some(self.address.clone()),
            ..opened
        }
    }
}

/// Whether a model, with or without its agent's name, is among these.
fn is_offered(model: &str, offers: &[ModelOffer]) -> bool {
    offers.iter().any(|offer| {
        let of_its_agent = model
            .strip_prefix(&*offer.agent)
            .and_then(|rest| rest.strip_prefix('/'));
        offer.model == model || of_its_agent == Some(&*offer.model)
    })
}

#[async_trait]
impl AgentRuntime for Gateways {
    /// What all of them offer. One that is out of reach offers what it did when it was last asked.
    async fn status(&self) -> Result<RuntimeStatus, RuntimeError> {
        let standings = self.standings().await;
        if let (false, Some(Err(error))) = (standings.iter().any(Result::is_ok), standings.first()) {
            return Err(error.clone());
        }
        let mut models: Vec<ModelOffer> = Vec::new();
        for offer in self.gateways.iter().flat_map(|one| one.offers().clone()) {
            let same = |known: &&mut ModelOffer| known.agent == offer.agent && known.model == offer.model;
            match models.iter_mut().find(same) {
                None => models.push(offer),
                // No efforts: any.
                Some(known) if known.efforts.is_empty() || offer.efforts.is_empty() => known.efforts.clear(),
                Some(known) => {
                    let new = offer.efforts.into_iter();
                    let new: Vec<String> = new.filter(|effort| !known.efforts.contains(effort)).collect();
                    known.efforts.extend(new);
                }
            }
        }
        let addresses: Vec<&str> = self.gateways.iter().map(|one| &*one.address).collect();
        Ok(RuntimeStatus {
            name: format!("Relais at {}", addresses.join(", ")),
            models,
        })
    }

    async fn open(&self, request: &SessionRequest) -> Result<OpenedSession, RuntimeError> {
        let id = request.client_session_id;
        let closed = self.asks_for(id);
        let at = match self.place(id, None).await? {
            Some(at) => {
                self.settle(id, at, &closed);
                at
            }
            None => self.choose(request, &closed).await?,
        };
        let one = &self.gateways[at];
        self.records.write(id, one.address.clone()).await?;
        if closed.load(Ordering::Acquire) {
            self.records.forget(id).await;
            let words = format!("session {id} was closed while it was asked for");
            return Err(RuntimeError::Lost { words });
        }
        match one.client.open(request).await {
            Ok(opened) => Ok(one.named(opened)),
            Err(error @ RuntimeError::Capacity { .. }) => {
                // Another may have a place, once it is certain that this one began nothing.
                if one.client.knows(id).await == Ok(false) {
                    self.leave(id).await;
                }
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    async fn find(
        &self,
        request: &SessionRequest,
        native: Option<&str>,
        in_flight: Option<&MessageRequest>,
    ) -> Result<FoundSession, RuntimeError> {
        let id = request.client_session_id;
        let closed = self.asks_for(id);
        let (at, found) = match self.place(id, native).await? {
            Some(at) => {
                let client = &self.gateways[at].client;
                match client.find(request, None, in_flight).await {
                    Ok(found) => (at, found),
                    Err(error) => {
                        if let RuntimeError::Lost { .. } = &error {
                            self.leave(id).await;
                        }
                        return Err(error);
                    }
                }
            }
            None => self.find_anywhere(request, in_flight).await?,
        };
        self.settle(id, at, &closed);
        let opened = self.gateways[at].named(found.opened);
        Ok(FoundSession { opened, ..found })
    }

    async fn send(&self, session: ClientSessionId, message: &MessageRequest) -> Result<(), RuntimeError> {
        self.here(session)?.send(session, message).await?;
        // From here on its gateway tells of it.
        if let Some(known) = self.sessions().get_mut(&session) {
            known.is_fresh = false;
        }
        Ok(())
    }

    async fn events(
        &self,
        session: ClientSessionId,
        after: u64,
    ) -> Result<BoxStream<'static, SessionEvent>, RuntimeError> {
        self.here(session)?.events(session, after).await
    }

    async fn answer_permission(
        &self,
        session: ClientSessionId,
        permission: &str,
        option: &str,
    ) -> Result<(), RuntimeError> {
        let client = self.here(session)?;
        client.answer_permission(session, permission, option).await
    }

    async fn cancel(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        match self.here(session) {
            Ok(client) => client.cancel(session).await,
            Err(_) => Ok(()), // there is nothing to stop
        }
    }

    /// Available where any of them says so, for a session may be placed there.
    async fn account(&self, account: &str) -> Result<AccountState, RuntimeError> {
        let told = join_all(self.gateways.iter().map(|one| one.client.account(account))).await;
        let says = |state| told.contains(&Ok(state));
        if says(AccountState::Available) {
            return Ok(AccountState::Available);
        }
        if says(AccountState::Unavailable) {
            return Ok(AccountState::Unavailable);
        }
        match told.into_iter().find(Result::is_err) {
            Some(Err(error)) => Err(error),
            Some(Ok(_)) | None => Ok(AccountState::Unknown),
        }
    }

    async fn close(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        let asking = self
            .sessions()
            .get(&session)
            .map(|known| Arc::clone(&known.closed));
        if let Some(closed) = asking {
            closed.store(true, Ordering::Release);
        }
        // No request of it ever left where it was placed nowhere.
        if let Some(at) = self.place(session, None).await? {
            if let Err(error) = self.gateways[at].client.close(session).await {
                // It is still there, and so may be asked for.
                if let Some(known) = self.sessions().get_mut(&session) {
                    known.closed = Arc::default();
                }
                return Err(error);
            }
            self.records.forget(session).await;
        }
        self.sessions().remove(&session);
        Ok(())
    }
}

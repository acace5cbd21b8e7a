//! The runtime of a simulated world: requests that are lost, doubled, answered late or not, and sessions that come back
//! in every way.

use async_trait::async_trait;
use futures_core::stream::BoxStream;
use futures_util::StreamExt as _;
use futures_util::stream;
use sillage_core::id::ClientSessionId;
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    FoundSession, MessageFate, MessageRequest, OpenedSession, RuntimeError, RuntimeStatus, SessionEvent,
    SessionRequest, StopReason,
};

use super::doors::Life;
use super::faults::Fault;
use super::judge::Promise;
use super::sessions::{Given, Received, Session, Standing};
use super::story::AGENT;
use super::world::World;

/// The runtime as an engine of one life sees it.
#[derive(Debug, Clone)]
pub struct SimRuntime(pub Life);

fn failed(words: &str) -> RuntimeError {
    RuntimeError::Temporary {
        words: words.to_owned(),
        retry_after: None,
    }
}

fn lost(words: &str) -> RuntimeError {
    RuntimeError::Lost {
        words: words.to_owned(),
    }
}

impl World {
    fn open(&mut self, request: &SessionRequest) -> Result<OpenedSession, RuntimeError> {
        let id = request.client_session_id;
        if self.strikes(Fault::LostRequests) {
            return Err(failed("connection refused"));
        }
        if let Some(error) = self.bad_news() {
            return Err(error);
        }
        if self.strikes_at(Fault::Conflict, self.story.per_mille / 8) {
            return Err(conflict("model"));
        }
        let known = self
            .sessions
            .get(&id)
            .map(|session| (session.request == *request, session.standing));
        match known {
            Some((false, _)) => {
                self.violated(Promise::OneStart, || {
                    format!("session {id} was asked for with two requests")
                });
            }
            Some((true, Standing::Lost | Standing::Ended)) => return Err(lost("it is gone")),
            Some((true, Standing::Attached | Standing::Apart)) => {}
            None => {
                self.sessions.insert(id, Session::new(request.clone()));
            }
        }
        let now = self.now();
        self.trace.tell(now, || format!("session {id} is open"));
        if self.strikes(Fault::LostReplies) {
            return Err(failed("connection reset"));
        }
        Ok(opened(id))
    }

    fn find(
        &mut self,
        request: &SessionRequest,
        native: Option<&str>,
        in_flight: Option<&MessageRequest>,
    ) -> Result<FoundSession, RuntimeError> {
        let id = request.client_session_id;
        if self.strikes(Fault::LostRequests) || self.strikes(Fault::LostReplies) {
            return Err(failed("connection refused"));
        }
        if let Some(error) = self.bad_news() {
            return Err(error);
        }
        let forgets = self.strikes(Fault::Lost);
        // Some agents keep no history of what ended.
        let no_history = self.dice.chance(AGENT, 200);
        let unsure = self.dice.below(AGENT, 3);
        let Some(session) = self.sessions.get_mut(&id) else {
            // Should its opening arrive yet, it is refused.
            let mut session = Session::new(request.clone());
            session.standing = Standing::Lost;
            self.sessions.insert(id, session);
            return Err(lost("nobody knows it"));
        };
        let ended = session.standing == Standing::Ended;
        if forgets || session.standing == Standing::Lost || (ended && (no_history || native.is_none())) {
            session.end(Standing::Lost);
            return Err(lost("it cannot be brought back"));
        }
        let mut restarted = false;
        if ended {
            session.revive();
            restarted = true;
        }
        session.standing = Standing::Attached;
        session.found += 1;
        let fate = match in_flight {
            None => MessageFate::None,
            Some(message) => {
                let id = message.client_message_id;
                let in_hand = session.in_hand == Some(id);
                let told = session.told_answer(id);
                match session.message_mut(id) {
                    None => MessageFate::NotReceived,
                    Some(_) if !restarted && in_hand => MessageFate::InHand,
                    Some(Received { given: Some(_), .. }) if told => MessageFate::InHand,
                    Some(Received {
                        given: Some(given),
                        replayed,
                        ..
                    }) if unsure < 2 => {
                        *replayed = Some(given.text.clone());
                        MessageFate::Replayed(given.text.clone())
                    }
                    Some(Received { replayed, .. }) if unsure == 0 => {
                        let half = "{\"outcome\": \"comp".to_owned();
                        *replayed = Some(half.clone());
                        MessageFate::Replayed(half)
                    }
                    Some(_) => MessageFate::Unknown,
                }
            }
        };
        let now = self.now();
        self.trace.tell(now, || {
            format!("session {id} is found: {fate:?}, restarted: {restarted}")
        });
        Ok(FoundSession {
            opened: opened(id),
            restarted,
            in_flight: fate,
        })
    }

    fn send(&mut self, id: ClientSessionId, message: &MessageRequest) -> Result<(), RuntimeError> {
        if self.strikes(Fault::LostRequests) {
            return Err(failed("connection refused"));
        }
        if let Some(error) = self.bad_news() {
            return Err(error);
        }
        // One that it has as it is asked for is in conflict with nothing.
        let known = |session: &Session| session.message(message.client_message_id).is_some();
        let known = self.sessions.get(&id).is_some_and(known);
        if !known && self.strikes_at(Fault::Conflict, self.story.per_mille / 16) {
            return Err(conflict("content"));
        }
        let Some(session) = self
            .sessions
            .get_mut(&id)
            .filter(|session| session.standing == Standing::Attached)
        else {
            return Err(lost("there is no such session"));
        };
        let new = match session.message(message.client_message_id) {
            Some(before) if before.text != message.text => {
                self.violated(Promise::OneMessage, || {
                    format!("message {} was sent with two texts", message.client_message_id)
                });
                return Ok(());
            }
            Some(_) => false,
            None => true,
        };
        if new {
            if let Some(other) = session.in_hand {
                self.violated(Promise::OneMessage, || {
                    format!(
                        "message {} while {other} is being answered",
                        message.client_message_id
                    )
                });
                return Ok(());
            }
            session.received.push(Received {
                id: message.client_message_id,
                text: message.text.clone(),
                given: None,
                replayed: None,
            });
            session.in_hand = Some(message.client_message_id);
            let now = self.now();
            self.trace.tell(now, || {
                format!("session {id} receives {}", message.client_message_id)
            });
            self.received(id, message.client_message_id);
            self.begin_work(id);
        }
        if self.strikes(Fault::LostReplies) {
            return Err(failed("connection reset"));
        }
        Ok(())
    }

    /// A message arrived for the first time.
    fn received(&mut self, id: ClientSessionId, _message: sillage_core::id::ClientMessageId) {
        let World { judge, sessions, .. } = self;
        if let Some(session) = sessions.get(&id) {
            judge.received(id, session);
        }
        self.stop_if_violated();
    }

    fn cancel(&mut self, id: ClientSessionId) -> Result<(), RuntimeError> {
        if self.strikes(Fault::Closing) {
            return Err(failed("not passed on"));
        }
        let Some(message) = self.sessions.get(&id).and_then(|session| session.in_hand) else {
            return Ok(());
        };
        let takes = self.dice.between(AGENT, 10, 20_000);
        let heeds = !self.strikes(Fault::Closing);
        self.after(takes, move |world| {
            let at_it = world
                .sessions
                .get(&id)
                .is_some_and(|session| session.in_hand == Some(message));
            if at_it && heeds {
                world.permission_answered(id, None, "cancel");
                world.give(id, message, Given::default(), StopReason::Cancelled);
            }
        });
        Ok(())
    }

    /// Times that the session was closed.
    fn closings(&self, id: ClientSessionId) -> u32 {
        self.sessions.get(&id).map_or(0, |session| session.closings)
    }

    fn close(&mut self, id: ClientSessionId) -> Result<(), RuntimeError> {
        let now = self.now();
        self.trace.tell(now, || format!("session {id} is closed"));
        match self.sessions.get_mut(&id) {
            Some(session) if session.is_alive() => session.end(Standing::Ended),
            Some(_) => {}
            // Should its opening arrive yet, it is refused.
            None => {
                if let Some(request) = self.judge.request_of(id) {
                    let mut session = Session::new(request);
                    session.standing = Standing::Lost;
                    self.sessions.insert(id, session);
                }
            }
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            session.closings += 1;
        }
        if self.strikes(Fault::Closing) {
            return Err(RuntimeError::Unstoppable {
                pid: 1,
                words: "simulated".to_owned(),
            });
        }
        Ok(())
    }
}

fn conflict(field: &str) -> RuntimeError {
    RuntimeError::Conflict {
        words: "this identifier came before".to_owned(),
        fields: vec![field.to_owned()],
    }
}

fn opened(id: ClientSessionId) -> OpenedSession {
    OpenedSession {
        native: Some(id.to_string()),
        agent: "simulated".to_owned(),
        pid: None,
    }
}

#[async_trait]
impl AgentRuntime for SimRuntime {
    async fn status(&self) -> Result<RuntimeStatus, RuntimeError> {
        Ok(RuntimeStatus::default())
    }

    async fn open(&self, request: &SessionRequest) -> Result<OpenedSession, RuntimeError> {
        let (asked, wanted) = (request.clone(), request.clone());
        self.0
            .call(
                "an opening",
                move |world| world.judge_open(&asked),
                move |world| world.open(&wanted),
            )
            .await
    }

    async fn find(
        &self,
        request: &SessionRequest,
        native: Option<&str>,
        in_flight: Option<&MessageRequest>,
    ) -> Result<FoundSession, RuntimeError> {
        let (request, native, in_flight) = (request.clone(), native.map(str::to_owned), in_flight.cloned());
        let id = request.client_session_id;
        let closings = self.0.world().map_or(0, |world| world.closings(id));
        let act = move |world: &mut World| match world.closings(id) == closings {
            true => world.find(&request, native.as_deref(), in_flight.as_ref()),
            // It was closed since: like an opening that is late, a search does not bring it back.
            false => Err(lost("it was closed meanwhile")),
        };
        self.0.call("a search", |_| {}, act).await
    }

    async fn send(&self, session: ClientSessionId, message: &MessageRequest) -> Result<(), RuntimeError> {
        let (asked, wanted) = (message.clone(), message.clone());
        let check = move |world: &mut World| world.judge_send(session, &asked);
        let told = self
            .0
            .call("a message", check, move |world| world.send(session, &wanted))
            .await;
        // Only what reaches the engine binds it.
        if let (Err(RuntimeError::Conflict { .. }), Some(mut world)) = (&told, self.0.world()) {
            world.judge.in_conflict(message.client_message_id);
        }
        told
    }

    async fn events(
        &self,
        session: ClientSessionId,
        after: u64,
    ) -> Result<BoxStream<'static, SessionEvent>, RuntimeError> {
        let Some(mut world) = self.0.world() else {
            return std::future::pending().await;
        };
        if world.strikes(Fault::Streams) {
            return Err(failed("the stream cannot be had"));
        }
        let heard = world
            .sessions
            .get_mut(&session)
            .filter(|session| session.is_alive())
            .map(|session| session.listen(after));
        let receiver = heard.ok_or_else(|| lost("there is no such session"))?;
        let events = stream::unfold(receiver, |mut receiver| async {
            let event = receiver.recv().await?;
            Some((event, receiver))
        });
        Ok(events.boxed())
    }

    async fn answer_permission(
        &self,
        session: ClientSessionId,
        permission: &str,
        option: &str,
    ) -> Result<(), RuntimeError> {
        let (permission, option) = (permission.to_owned(), option.to_owned());
        let act = move |world: &mut World| {
            let open = world
                .sessions
                .get(&session)
                .and_then(|session| session.asks.as_ref());
            if open != Some(&permission) {
                return Err(RuntimeError::Permanent {
                    words: "no such request is open".to_owned(),
                });
            }
            world.permission_answered(session, Some(option), "person");
            Ok(())
        };
        self.0.call("a permission's answer", |_| {}, act).await
    }

    async fn cancel(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        self.0
            .call("a cancel", |_| {}, move |world| world.cancel(session))
            .await
    }

    async fn close(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        self.0
            .call("a closing", |_| {}, move |world| world.close(session))
            .await
    }
}

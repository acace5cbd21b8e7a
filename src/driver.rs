//! The loop that drives one run: the only place where the machine meets the world.
//!
//! Inputs that are waiting make one turn: the machine decides and believes, the facts become durable as one batch,
//! and only then is anything shown or done. Recovery is the same loop over a run read from its log.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use sillage_core::id::{ClientSessionId, StepIndex};
use sillage_core::planted::{Bug, planted};
use sillage_core::ports::Ids;
use sillage_core::run::{
    ClockWatch, Command, Effect, EffectKey, Event, Input, Recorded, Refused, Run, RunEnd,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::accounts::Accounts;
use crate::effects::{self, Files};
use crate::engine::{Engine, EngineError};
use crate::feed::Feed;
use crate::listening::Listening;
use crate::pump::Pump;

/// Longest sleep before the clock is looked at again: the machine may have slept, or its clock been set.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// Inputs taken in one turn at most.
const MOST_INPUTS: usize = 1024;

/// How long news waits for company that nothing waits for: alone it would cost a wait for the disk.
const COMPANY: Duration = Duration::from_millis(50);

/// What reaches the driver.
#[derive(Debug)]
pub(crate) enum Message {
    /// News from outside.
    Input(Input),
    /// A person's command, by somebody who waits until what follows from it is durable.
    Command(Command, oneshot::Sender<Result<(), Refused>>),
    /// An effect was carried out, with what came of it.
    Done(EffectKey, Option<Input>),
    /// What was at work for the run panicked: what it was, and its words.
    Panicked(String, String),
}

/// Drives one run until it is over.
pub(crate) struct Driver {
    pub(crate) engine: Engine,
    ids: Box<dyn Ids>,
    pub(crate) run: Run,
    pub(crate) feed: Feed,
    sender: mpsc::UnboundedSender<Message>,
    pub(crate) receiver: mpsc::UnboundedReceiver<Message>,
    /// Effects begun and still wanted; no task once it is carried out.
    begun: HashMap<EffectKey, Option<JoinHandle<()>>>,
    listening: Listening,
    accounts: Accounts,
    clocks: ClockWatch,
    files: Arc<Files>,
    /// Whose commands are among the inputs of the turn.
    commanders: Vec<(Input, oneshot::Sender<Result<(), Refused>>)>,
    /// What came while the disk was waited for.
    pub(crate) held: Vec<Message>,
}

impl Driver {
    pub(crate) fn new(
        engine: Engine,
        ids: Box<dyn Ids>,
        run: Run,
        feed: Feed,
        sender: mpsc::UnboundedSender<Message>,
        receiver: mpsc::UnboundedReceiver<Message>,
    ) -> Self {
        Self {
            engine,
            ids,
            run,
            feed,
            sender,
            receiver,
            begun: HashMap::new(),
            listening: Listening::default(),
            accounts: Accounts::default(),
            clocks: ClockWatch::default(),
            files: Arc::default(),
            commanders: Vec::new(),
            held: Vec::new(),
        }
    }

    pub(crate) async fn drive(mut self, inputs: Vec<Input>) -> Result<RunEnd, EngineError> {
        let result = self.drive_to_end(inputs).await;
        self.leave_nothing().await;
        result
    }

    async fn drive_to_end(&mut self, inputs: Vec<Input>) -> Result<RunEnd, EngineError> {
        self.turn(inputs).await?;
        // What the log left to be done, beyond what this turn changed.
        let mut wanted: Vec<EffectKey> = self.run.outbox().iter().collect();
        // The same log begins the same things in the same order.
        wanted.sort_unstable();
        self.begin_missing(wanted);
        self.accounts
            .follow(&self.run, &self.engine.runtime, &self.sender);
        loop {
            if let Some(end) = self.run.end() {
                return Ok(end);
            }
            let inputs = self.next_inputs().await?;
            self.turn(inputs).await?;
        }
    }

    /// Waits for news or for the run's deadline.
    async fn next_inputs(&mut self) -> Result<Vec<Input>, EngineError> {
        let mut messages = std::mem::take(&mut self.held);
        if messages.is_empty() {
            let due = self.run.deadline().map(|at| at.since(self.engine.clock.now()));
            let sleep = due.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP);
            let news = self.receiver.recv_many(&mut messages, MOST_INPUTS);
            let _ = tokio::time::timeout(sleep, news).await;
        }
        self.gather(&mut messages).await;
        let mut inputs = Vec::with_capacity(messages.len());
        for message in messages {
            match message {
                Message::Input(input) => inputs.push(input),
                Message::Command(command, commander) => {
                    let input = Input::Command(command);
                    self.commanders.push((input.clone(), commander));
                    inputs.push(input);
                }
                Message::Done(key, input) => {
                    if let Some(begun) = self.begun.get_mut(&key) {
                        *begun = None;
                    }
                    if let Some(Input::NotSent { session, message, .. }) = &input {
                        self.listening.not_sent(*session, *message);
                    }
                    if let Some(Input::Found {
                        session,
                        result: Ok(found),
                    }) = &input
                        && found.restarted
                    {
                        self.listening.restarted(*session);
                    }
                    inputs.extend(input);
                }
                // What it left half-changed cannot be known: nothing more is begun over it.
                Message::Panicked(what, words) => {
                    let run = self.run.id().clone();
                    return Err(EngineError::Panicked { run, what, words });
                }
            }
        }
        Ok(inputs)
    }

    /// Takes what else belongs into the turn: one wait for the disk serves all of it.
    async fn gather(&mut self, messages: &mut Vec<Message>) {
        let company = async {
            // A deadline that is due meanwhile can wait as well.
            while !messages.is_empty() && can_wait(&self.run, messages) {
                self.receiver.recv_many(messages, MOST_INPUTS).await;
            }
        };
        let _ = tokio::time::timeout(COMPANY, company).await;
        let mut known = 0;
        while known < messages.len() && messages.len() < MOST_INPUTS {
            known = messages.len();
            // Lets those speak who are ready to.
            tokio::task::yield_now().await;
            while let Ok(message) = self.receiver.try_recv() {
                messages.push(message);
            }
        }
    }

    /// One turn: decide, make durable, show, act.
    async fn turn(&mut self, inputs: Vec<Input>) -> Result<(), EngineError> {
        // First of all what the clocks tell: whatever else is decided now goes by their time.
        let reading = self.engine.clock.reading();
        let mut news = reading.map_or_else(Vec::new, |reading| self.clocks.read(reading));
        news.extend(inputs);
        let now = reading.map_or_else(|| self.engine.clock.now(), |reading| reading.wall);
        let run = self.run.id().clone();
        let turn = self
            .run
            .turn(now, &mut *self.ids, news)
            .map_err(|source| EngineError::Corrupt {
                run: run.clone(),
                source,
            })?;
        for (input, refused) in turn.refused {
            tracing::info!(%run, ?input, %refused, "command refused");
            if let Some(at) = self.commanders.iter().position(|(asked, _)| *asked == input) {
                // Whoever commanded may have gone.
                let _ = self.commanders.swap_remove(at).1.send(Err(refused));
            }
        }
        if turn.facts.is_empty() {
            self.obeyed();
            return Ok(());
        }
        if planted(Bug::ActsFirst) {
            let changes = self.run.take_outbox_changes();
            self.act(changes);
        }
        if planted(Bug::ShowsFirst) {
            turn.facts.iter().cloned().for_each(|fact| self.feed.fact(fact));
        }
        self.append(&turn.facts).await?;
        self.obeyed();
        let mut gates_moved = false;
        for fact in turn.facts {
            self.follow_sessions(&fact);
            gates_moved |= matches!(fact.event, Event::GateClosed { .. } | Event::GateOpened { .. });
            self.feed.fact(fact);
        }
        if gates_moved {
            self.accounts
                .follow(&self.run, &self.engine.runtime, &self.sender);
        }
        let changes = self.run.take_outbox_changes();
        self.act(changes);
        Ok(())
    }

    /// Tells those whose commands were taken that what follows is durable.
    fn obeyed(&mut self) {
        for (_, commander) in self.commanders.drain(..) {
            let _ = commander.send(Ok(()));
        }
    }

    /// Starts and stops listening to sessions as facts say.
    fn follow_sessions(&mut self, fact: &Recorded) {
        if let Event::SessionOpened { step, session, .. } | Event::SessionFound { step, session, .. } =
            &fact.event
        {
            self.feed.heard(*step, fact.at);
            let pump = self.pump(*step, *session);
            self.listening.begin(pump);
        }
        if let Event::SessionClosed { session, .. } | Event::SessionLost { session, .. } = &fact.event {
            self.listening.end(*session);
        }
    }

    fn pump(&self, step: StepIndex, session: ClientSessionId) -> Pump {
        Pump {
            run: self.run.id().clone(),
            step,
            session,
            store: Arc::clone(&self.engine.store),
            runtime: Arc::clone(&self.engine.runtime),
            clock: Arc::clone(&self.engine.clock),
            feed: self.feed.clone(),
            files: Arc::clone(&self.files),
            sender: self.sender.clone(),
        }
    }

    /// Begins what is newly wanted and lets go of what no longer is.
    fn act(&mut self, changes: Vec<EffectKey>) {
        for (position, key) in changes.iter().enumerate() {
            let wanted = self.run.outbox().contains(key);
            // A key that went and came back is wanted anew.
            let came_back = wanted && changes[..position].contains(key);
            if !wanted || came_back {
                self.let_go(*key);
            }
        }
        self.begin_missing(changes);
    }

    fn let_go(&mut self, key: EffectKey) {
        let Some(Some(task)) = self.begun.remove(&key) else {
            return;
        };
        // A session that is no longer wanted is closed next: nothing may go on opening it. A check that is no longer
        // wanted was stopped. The rest is safe to finish, and safer than to be cut.
        if matches!(key, EffectKey::Open(..) | EffectKey::Find(..) | EffectKey::Check) {
            task.abort();
        }
    }

    fn begin_missing(&mut self, keys: Vec<EffectKey>) {
        for key in keys {
            if self.begun.contains_key(&key) {
                continue;
            }
            let Some(effect) = self.run.effect(key) else {
                continue;
            };
            if let (EffectKey::Send(step, message), Effect::Send { session, .. }) = (key, &effect)
                && !planted(Bug::NotHeardAgain)
            {
                let pump = self.pump(step, *session);
                self.listening.sends(message, pump);
            }
            let mut watch = None;
            if let EffectKey::Open(step, _) | EffectKey::Find(step, _) | EffectKey::Commit(step) = key {
                watch = self.run.checkout_watch(step);
            }
            let (engine, sender, files) = (self.engine.clone(), self.sender.clone(), Arc::clone(&self.files));
            let task = tokio::spawn(async move {
                let carried_out = effects::carry_out(&engine, &files, watch, key, effect);
                let message = match AssertUnwindSafe(carried_out).catch_unwind().await {
                    Ok(input) => Message::Done(key, input),
                    Err(panic) => Message::Panicked(format!("{key:?}"), words(panic)),
                };
                // The driver is gone: whoever takes the run up does it again.
                let _ = sender.send(message);
            });
            self.begun.insert(key, Some(task));
        }
    }

    /// Closes what may still be alive, so that a run that is over leaves no process.
    async fn leave_nothing(&mut self) {
        self.accounts.stop();
        self.listening.end_all();
        for (key, task) in self.begun.drain() {
            if let (EffectKey::Open(..) | EffectKey::Find(..) | EffectKey::Check, Some(task)) = (key, task) {
                task.abort();
            }
        }
        let mut sessions: Vec<ClientSessionId> = self.run.sessions_to_leave().collect();
        sessions.sort_unstable();
        for session in sessions {
            let close = self.engine.runtime.close(session);
            match AssertUnwindSafe(close).catch_unwind().await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(run = %self.run.id(), %session, %error, "session not closed");
                }
                Err(panic) => {
                    let words = words(panic);
                    tracing::error!(run = %self.run.id(), %session, words, "session not closed");
                }
            }
        }
    }
}

/// What a panic says.
pub(crate) fn words(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(words) => *words,
        Err(panic) => panic
            .downcast_ref::<&str>()
            .map_or("it said nothing", |words| words)
            .to_owned(),
    }
}

/// Whether this news may wait for more: it changes nothing for what goes on, and something else does go on.
fn can_wait(run: &Run, news: &[Message]) -> bool {
    let mut closed = 0;
    for message in news {
        match message {
            Message::Done(_, Some(Input::Closed { result: Ok(()), .. })) => closed += 1,
            Message::Done(_, None) | Message::Input(Input::UsageCounted { .. }) => {}
            // What a session says while it is being closed.
            Message::Input(Input::Failed { session, .. } | Input::OutOfReach { session, .. })
                if !run.is_live(*session) => {}
            Message::Input(_) | Message::Command(..) | Message::Done(_, Some(_)) | Message::Panicked(..) => {
                return false;
            }
        }
    }
    run.outbox().len() > closed
}

//! What an engine of one life reaches the world through: its calls, the clock, identifiers, a run's files.

use std::fmt;
use std::future::pending;
use std::io;
use std::path::Path;
use std::sync::{Arc, MutexGuard};

use async_trait::async_trait;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::{Clock, Ids, RunFiles};
use sillage_core::time::Timestamp;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Duration, Instant, sleep_until};
use uuid::Uuid;

use super::faults::Fault;
use super::simulation::Simulation;
use super::world::World;

/// One life of an engine. What a dead one asks for stays unanswered.
#[derive(Clone)]
pub struct Life {
    simulation: Simulation,
    number: u64,
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Life")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl Life {
    pub(crate) fn new(simulation: Simulation, number: u64) -> Life {
        Life { simulation, number }
    }

    /// The world, while this life goes on.
    pub(crate) fn world(&self) -> Option<MutexGuard<'_, World>> {
        let world = self.simulation.lock();
        (world.alive && world.life == self.number).then_some(world)
    }

    /// Whether an engine of a later life is there.
    pub(crate) fn was_followed(&self, world: &World) -> bool {
        world.life > self.number
    }

    /// A call: `asked` happens now, `act` when the request arrives, and its value is what is answered. The engine may
    /// die before it leaves and once it acted.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        what: &'static str,
        asked: impl FnOnce(&mut World),
        act: impl FnOnce(&mut World) -> T + Send + 'static,
    ) -> T {
        match self.ask(what, asked, act) {
            Some(answer) => match answer.await {
                Ok(answer) => answer,
                Err(_) => pending().await,
            },
            None => pending().await,
        }
    }

    fn ask<T: Send + 'static>(
        &self,
        what: &'static str,
        asked: impl FnOnce(&mut World),
        act: impl FnOnce(&mut World) -> T + Send + 'static,
    ) -> Option<oneshot::Receiver<T>> {
        let mut world = self.world()?;
        world.called();
        if !world.alive || world.point(|| format!("before {what}")) {
            return None;
        }
        asked(&mut world);
        if !world.alive {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        let (life, on_its_way) = (self.number, world.latency());
        world.after(on_its_way, move |world| {
            let answer = act(world);
            world.stop_if_violated();
            // What an earlier engine asked for still acts, and its answer finds nobody.
            if world.life != life || !world.alive || world.point(|| format!("after {what}")) {
                return;
            }
            let back = world.latency();
            world.after(back, move |_| {
                // Whoever asked may have been told to let go.
                let _ = sender.send(answer);
            });
        });
        Some(receiver)
    }

    /// Makes the world go on; to be spawned beside the engine.
    pub async fn go_on(self) {
        loop {
            match self.next() {
                Next::Over => return,
                Next::Again => tokio::task::yield_now().await,
                Next::Wait(until, changed) => tokio::select! {
                    biased;
                    () = changed.notified() => {}
                    () = sleep_until(until) => {}
                },
            }
        }
    }

    /// Does what is due, or tells until when nothing is.
    fn next(&self) -> Next {
        let Some(mut world) = self.world() else {
            return Next::Over;
        };
        if world.do_next() {
            return Next::Again;
        }
        let now = world.now();
        let wait = world.next_due().map_or(86_400_000, |at| at.saturating_sub(now));
        Next::Wait(
            Instant::now() + Duration::from_millis(wait),
            world.changed.clone(),
        )
    }

    /// Returns when the engine dies.
    pub async fn died(&self) {
        let died = {
            let Some(world) = self.world() else { return };
            world.died.clone()
        };
        died.notified().await;
    }
}

/// What the world does next.
enum Next {
    Over,
    Again,
    Wait(Instant, Arc<Notify>),
}

/// The world's clock.
#[derive(Debug, Clone)]
pub struct SimClock(pub Simulation);

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let mut world = self.0.lock();
        world.looked();
        world.wall()
    }
}

/// Identifiers by number.
#[derive(Debug, Clone)]
pub struct SimIds(pub Simulation);

impl SimIds {
    fn next(&self) -> Uuid {
        let mut world = self.0.lock();
        world.ids += 1;
        Uuid::from_u128(u128::from(world.ids))
    }
}

impl Ids for SimIds {
    fn session(&mut self) -> ClientSessionId {
        ClientSessionId(self.next())
    }

    fn message(&mut self) -> ClientMessageId {
        ClientMessageId(self.next())
    }
}

/// A run's own files.
#[derive(Debug, Clone)]
pub struct SimFiles(pub Life);

#[async_trait]
impl RunFiles for SimFiles {
    async fn write(&self, file: &Path, content: Vec<u8>) -> io::Result<()> {
        let file = file.to_owned();
        let act = move |world: &mut World| {
            if world.strikes(Fault::Files) {
                return Err(io::Error::other("simulated"));
            }
            world.files.insert(file, content);
            Ok(())
        };
        self.0.call("a file's write", |_| {}, act).await
    }

    async fn read(&self, file: &Path) -> io::Result<Vec<u8>> {
        let file = file.to_owned();
        let act = move |world: &mut World| {
            world
                .files
                .get(&file)
                .cloned()
                .ok_or(io::ErrorKind::NotFound.into())
        };
        self.0.call("a file's read", |_| {}, act).await
    }
}

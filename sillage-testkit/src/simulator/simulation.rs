//! A simulated world from outside: lives begin and end, and the story is told.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sillage_core::run::{Command, Recorded, RunDefinition};
use tokio::sync::mpsc;

use super::doors::Life;
use super::faults::Fault;
use super::judge::{Promise, Violation};
use super::story::Story;
use super::world::{Deed, World};

/// A simulated world, from outside.
#[derive(Clone)]
pub struct Simulation {
    world: Arc<Mutex<World>>,
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").finish_non_exhaustive()
    }
}

/// What came of a story.
#[derive(Debug, Clone)]
pub struct Tale {
    /// The promise that was broken, if one was.
    pub violation: Option<Violation>,
    /// A digest of everything that happened.
    pub digest: u64,
    /// The points at which the engine died.
    pub deaths: Vec<u64>,
    /// Points at which it could have died.
    pub points: u64,
    /// How it ended, each step and its work in words: the same for stories that came to the same.
    pub outcome: String,
    /// Milliseconds that the story took, in its own time.
    pub took: u64,
    /// Events in its log.
    pub events: u64,
    /// Lives.
    pub lives: u64,
    /// What happened last.
    pub last: Vec<String>,
}

impl Simulation {
    /// The world at the beginning of a story.
    #[must_use]
    pub fn new(story: Story) -> Option<Simulation> {
        let world = World::new(story)?;
        Some(Simulation {
            world: Arc::new(Mutex::new(world)),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a life, within the tokio runtime of its engine: what the engine reaches the world through.
    #[must_use]
    pub fn begin_life(&self) -> Life {
        let mut world = self.lock();
        world.begin_life();
        Life::new(self.clone(), world.life)
    }

    /// Ends a life whose engine ended by itself.
    pub fn end_life(&self) {
        self.lock().die();
    }

    /// The engine says that the run is over.
    pub fn ended(&self) {
        let mut world = self.lock();
        let World { judge, sessions, .. } = &mut *world;
        judge.let_go(sessions);
    }

    /// The run's definition.
    #[must_use]
    pub fn definition(&self) -> RunDefinition {
        RunDefinition::clone(&self.lock().definition)
    }

    /// Whether the run's launch is in the log.
    #[must_use]
    pub fn is_launched(&self) -> bool {
        !self.lock().log.is_empty()
    }

    /// Whether a promise was broken.
    #[must_use]
    pub fn is_violated(&self) -> bool {
        self.lock().judge.found().is_some()
    }

    /// Whether the faults are over.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        let world = self.lock();
        world.now() >= world.story.calm
    }

    /// Lets the world go on without an engine until the faults are over.
    pub fn sleep_until_calm(&self) {
        let mut world = self.lock();
        world.base = world.base.max(world.story.calm);
    }

    /// Whether a person takes the ended run up again, as the dice say.
    #[must_use]
    pub fn resumes(&self) -> bool {
        let mut world = self.lock();
        world.strikes_at(Fault::Resumes, 700) || world.strikes_at(Fault::Hands, 700)
    }

    /// How a person takes the run up.
    #[must_use]
    pub fn taking_up(&self) -> Command {
        self.lock().taking_up()
    }

    /// Whether the run is over, by its log.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.lock().judge.is_over()
    }

    /// What the person does in this life.
    #[must_use]
    pub fn person(&self) -> mpsc::UnboundedReceiver<Deed> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.lock().person = Some(sender);
        receiver
    }

    /// Says that a promise was broken.
    pub fn violated(&self, promise: Promise, words: impl FnOnce() -> String) {
        self.lock().violated(promise, words);
    }

    /// Adds a line to what is told.
    pub fn tell(&self, line: impl FnOnce() -> String) {
        let mut world = self.lock();
        let now = world.now();
        world.trace.tell(now, line);
    }

    /// Whether the fact at this position is in the log, as it was told.
    #[must_use]
    pub fn holds(&self, fact: &Recorded) -> bool {
        self.lock().log.holds(fact)
    }

    /// What came of it.
    #[must_use]
    pub fn tale(&self) -> Tale {
        let mut world = self.lock();
        let outcome = world.outcome();
        world.trace.mix_bytes(outcome.as_bytes());
        Tale {
            violation: world.judge.found().cloned(),
            digest: world.trace.digest(),
            deaths: world.deaths.clone(),
            points: world.points,
            outcome,
            took: world.now(),
            events: world.log.len(),
            lives: world.life,
            last: world.trace.last(400),
        }
    }
}

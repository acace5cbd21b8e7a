//! The world: its time, what is due in it, its lives, and what a person does.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::PathBuf;
use std::sync::Arc;

use sillage_core::id::{ClientSessionId, Seq};
use sillage_core::run::{PermissionAnswer, RunDefinition};
use sillage_core::time::Timestamp;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::dice::Dice;
use super::faults::Fault;
use super::judge::{Judge, Promise};
use super::sessions::Session;
use super::store::Log;
use super::story::{Crashes, LIFE, PERSON, Story, TIME};
use super::tasks;
use super::trace::Trace;
use crate::workspace::MemoryWorkspace;

/// The wall clock at a story's beginning: 2030-01-01 in UTC.
const BEGINNING: i64 = 1_893_456_000_000;

/// How long a story may go on without any fault before it must have ended: five days.
const PATIENCE: u64 = 5 * 24 * 3_600_000;

/// Calls after which a story is a storm.
const MOST_CALLS: u64 = 60_000;

/// Looks at the clock within a millisecond after which an engine goes round in circles.
const MOST_LOOKS: u64 = 100_000;

/// Deaths in one story at most, so that it comes to something.
const MOST_DEATHS: usize = 24;

type Act = Box<dyn FnOnce(&mut World) + Send>;

/// Something that is due at a time.
struct Due {
    at: u64,
    number: u64,
    act: Act,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// What a person does to a run that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Asks it to stop.
    Stop,
    /// Answers a permission request.
    Answer(Seq, PermissionAnswer),
}

/// The world under one seed.
pub(crate) struct World {
    pub(crate) story: Story,
    pub(crate) dice: Dice,
    pub(crate) definition: Arc<RunDefinition>,
    pub(crate) log: Log,
    pub(crate) sessions: BTreeMap<ClientSessionId, Session>,
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
    pub(crate) workspace: Arc<MemoryWorkspace>,
    pub(crate) judge: Judge,
    pub(crate) trace: Trace,
    /// The present life, from 1; 0: none yet.
    pub(crate) life: u64,
    pub(crate) alive: bool,
    pub(crate) died: Arc<Notify>,
    pub(crate) changed: Arc<Notify>,
    /// Until when the disk is full.
    pub(crate) full_until: u64,
    pub(crate) ids: u64,
    due: BinaryHeap<Reverse<Due>>,
    dues: u64,
    /// Where in the story's time the present life began.
    pub(crate) base: u64,
    since: Option<Instant>,
    skew: i64,
    pub(crate) points: u64,
    /// Points of the present life.
    points_of_life: u64,
    pub(crate) deaths: Vec<u64>,
    calls: u64,
    /// Looks at the clock, and when.
    looks: (u64, u64),
    pub(crate) person: Option<mpsc::UnboundedSender<Deed>>,
    ids_of_words: u64,
}

impl World {
    pub(crate) fn new(story: Story) -> Option<World> {
        let mut dice = Dice::new(story.seed);
        let workspace = Arc::new(MemoryWorkspace::new(tasks::REPOSITORY));
        let base = workspace.tip("refs/heads/main").unwrap_or_default();
        let definition = tasks::definition(&story, &mut dice, &base)?;
        let mut world = World {
            trace: Trace::new(story.told),
            story,
            dice,
            definition: Arc::new(definition),
            log: Log::default(),
            sessions: BTreeMap::new(),
            files: BTreeMap::new(),
            workspace,
            judge: Judge::default(),
            life: 0,
            alive: false,
            died: Arc::default(),
            changed: Arc::default(),
            full_until: 0,
            ids: 0,
            due: BinaryHeap::new(),
            dues: 0,
            base: 0,
            since: None,
            skew: 0,
            points: 0,
            points_of_life: 0,
            deaths: Vec::new(),
            calls: 0,
            looks: (0, 0),
            person: None,
            ids_of_words: 0,
        };
        world.plan();
        Some(world)
    }

    /// What comes of itself: the clock's jumps, the person's stops, the end of patience.
    fn plan(&mut self) {
        let calm = self.story.calm;
        if self.story.faults.has(Fault::Clock) {
            for _ in 0..self.dice.below(TIME, 5) {
                let at = self.dice.below(TIME, calm);
                let jump = [100, 40_000, 3_600_000, 90_000_000]
                    [usize::try_from(self.dice.below(TIME, 4)).unwrap_or(0)];
                let jump = i64::try_from(self.dice.below(TIME, jump)).unwrap_or(0);
                let jump = if self.dice.chance(TIME, 500) { jump } else { -jump };
                self.later(at, Box::new(move |world| world.skew += jump));
            }
        }
        if self.story.faults.has(Fault::Sleep) {
            for _ in 0..self.dice.below(TIME, 3) {
                let at = self.dice.below(TIME, calm);
                let asleep = i64::try_from(self.dice.between(TIME, 1_000, 30_000_000)).unwrap_or(0);
                // A sleep that the monotonic clock does not count.
                self.later(at, Box::new(move |world| world.skew += asleep));
            }
        }
        if self.story.faults.has(Fault::Stops) {
            let at = self.dice.below(PERSON, calm / 4 + 1);
            self.later(at, Box::new(|world| world.deed(Deed::Stop)));
            if self.dice.chance(PERSON, 400) {
                let again = at + self.dice.below(PERSON, 20_000);
                self.later(again, Box::new(|world| world.deed(Deed::Stop)));
            }
        }
        self.later(
            calm + PATIENCE,
            Box::new(|world| {
                let now = world.now();
                world.violated(Promise::Ends, || {
                    format!("it goes on at {} s, long after the last fault", now / 1000)
                });
            }),
        );
    }

    // --- Time ---

    /// Milliseconds since the story's beginning.
    pub(crate) fn now(&self) -> u64 {
        let passed = self.since.map_or(0, |since| {
            Instant::now().saturating_duration_since(since).as_millis()
        });
        self.base + u64::try_from(passed).unwrap_or(0)
    }

    /// The time of day.
    pub(crate) fn wall(&self) -> Timestamp {
        Timestamp(BEGINNING + i64::try_from(self.now()).unwrap_or(0) + self.skew)
    }

    pub(crate) fn later(&mut self, at: u64, act: Act) {
        self.dues += 1;
        self.due.push(Reverse(Due {
            at,
            number: self.dues,
            act,
        }));
        self.changed.notify_one();
    }

    /// After so many milliseconds.
    pub(crate) fn after(&mut self, wait: u64, act: impl FnOnce(&mut World) + Send + 'static) {
        let at = self.now() + wait;
        self.later(at, Box::new(act));
    }

    /// When the next thing is due.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.due.peek().map(|Reverse(due)| due.at)
    }

    /// Does the next thing if it is due.
    pub(crate) fn do_next(&mut self) -> bool {
        if self.next_due().is_none_or(|at| at > self.now()) {
            return false;
        }
        if let Some(Reverse(due)) = self.due.pop() {
            self.trace.mix(due.at);
            (due.act)(self);
        }
        true
    }

    /// How long a request or an answer is on its way.
    pub(crate) fn latency(&mut self) -> u64 {
        if self.strikes(Fault::Late) {
            return self.dice.between(Fault::Late as usize, 1_000, 120_000);
        }
        self.dice.below(TIME, 30)
    }

    // --- Faults ---

    /// Whether a fault of this kind happens now.
    pub(crate) fn strikes(&mut self, fault: Fault) -> bool {
        self.strikes_at(fault, self.story.per_mille)
    }

    pub(crate) fn strikes_at(&mut self, fault: Fault, per_mille: u64) -> bool {
        self.story.faults.has(fault)
            && self.now() < self.story.calm
            && self.dice.chance(fault as usize, per_mille)
    }

    /// A point at which the engine may die. True: it did.
    pub(crate) fn point(&mut self, what: impl FnOnce() -> String) -> bool {
        let number = self.points;
        self.points += 1;
        self.points_of_life += 1;
        let dies = match &self.story.crashes {
            Crashes::At(points) => points.contains(&number),
            Crashes::AsRolled if self.deaths.len() >= MOST_DEATHS => false,
            Crashes::AsRolled => {
                let again = self.life > 1 && self.points_of_life < 12;
                let quick = again && self.strikes_at(Fault::CrashAgain, 60);
                quick || self.strikes_at(Fault::Crashes, self.story.per_mille / 6 + 1)
            }
        };
        if dies {
            self.deaths.push(number);
            let now = self.now();
            self.trace
                .tell(now, || format!("the engine dies at point {number}: {}", what()));
            self.die();
        }
        dies
    }

    pub(crate) fn violated(&mut self, promise: Promise, words: impl FnOnce() -> String) {
        self.judge.violated(promise, words);
        self.stop_if_violated();
    }

    pub(crate) fn stop_if_violated(&mut self) {
        if self.judge.found().is_some() && self.alive {
            self.die();
        }
    }

    /// A word that was never said before.
    pub(crate) fn fresh_word(&mut self) -> u64 {
        self.ids_of_words += 1;
        self.ids_of_words
    }

    /// One more call. Too many of them are a storm.
    pub(crate) fn called(&mut self) {
        self.calls += 1;
        if self.calls > MOST_CALLS {
            self.violated(Promise::NoStorm, || format!("more than {MOST_CALLS} calls"));
        }
    }

    /// Somebody looks at the clock. Time passes only while nobody is busy, so whoever looks for ever never sees it pass.
    pub(crate) fn looked(&mut self) {
        let now = self.now();
        let looks = if self.looks.0 == now { self.looks.1 + 1 } else { 0 };
        self.looks = (now, looks);
        if looks == MOST_LOOKS {
            self.violated(Promise::NoStorm, || "the engine goes round in circles".to_owned());
        }
    }

    // --- Lives ---

    /// The engine is gone, with the processes that it held.
    pub(crate) fn die(&mut self) {
        if !self.alive {
            return;
        }
        self.alive = false;
        self.base = self.now();
        self.since = None;
        self.person = None;
        let ids: Vec<ClientSessionId> = self.sessions.keys().copied().collect();
        for id in ids {
            let survives = self.dice.chance(LIFE, 400);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.engine_died(survives);
            }
        }
        // Files are not synced: some are lost with the machine.
        if self.dice.chance(LIFE, 100) {
            self.files.clear();
        }
        self.died.notify_one();
    }

    pub(crate) fn begin_life(&mut self) {
        // Lives follow each other after a while, in which the world goes on.
        if self.life > 0 {
            let gap = self.dice.below(LIFE, 11);
            self.base += self.dice.below(LIFE, 1 << (2 * gap));
        }
        while self.do_next() {}
        self.life += 1;
        self.points_of_life = 0;
        self.alive = true;
        self.log.opened_anew();
        self.since = Some(Instant::now());
        self.died = Arc::default();
        self.changed = Arc::default();
    }

    // --- The person ---

    pub(crate) fn deed(&mut self, deed: Deed) {
        let now = self.now();
        self.trace.tell(now, || format!("a person: {deed:?}"));
        if let Some(person) = &self.person {
            // A person may act on a run whose engine just ended.
            let _ = person.send(deed);
        }
    }

    /// The person answers a request after a while, mostly once and rightly.
    pub(crate) fn will_answer(&mut self, asked: Seq) {
        let wait = self.dice.between(PERSON, 500, 600_000);
        let answer = |world: &mut World| match world.dice.below(PERSON, 4) {
            0 => PermissionAnswer::Deny,
            1 => PermissionAnswer::Option("yes".to_owned()),
            _ => PermissionAnswer::Allow,
        };
        if self.dice.chance(PERSON, 200) {
            let wrong = PermissionAnswer::Option("nonsense".to_owned());
            self.after(wait / 2, move |world| world.deed(Deed::Answer(asked, wrong)));
        }
        for time in [wait, wait + 1_000_000, wait + 20_000_000] {
            let answer = answer(self);
            self.after(time, move |world| world.deed(Deed::Answer(asked, answer)));
        }
    }
}

impl World {
    /// How the run and its steps stand, with the work that is merged.
    pub(crate) fn outcome(&self) -> String {
        let mut words = self.judge.outcome();
        let integration = format!("refs/heads/{}", self.definition.integration_branch());
        if let Some(tip) = self.workspace.tip(&integration) {
            for agent in &self.definition.task.agents {
                let merged = self
                    .workspace
                    .content(&tip, format!("work-{}", agent.id))
                    .is_some();
                words.push_str(if merged { " +" } else { " -" });
            }
        }
        words
    }
}

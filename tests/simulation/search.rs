//! Living many stories, and making a failing one small.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use sillage_testkit::simulator::{Crashes, Promise, Story, Tale, Violation};

use crate::live::live;

/// What came of many stories.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The first failing seed, with what was broken.
    pub(crate) failing: Option<(u64, Violation)>,
    pub(crate) stories: u64,
    pub(crate) deaths: u64,
    pub(crate) events: u64,
    pub(crate) lives: u64,
    /// Seconds of the stories' own time.
    pub(crate) seconds: u64,
}

/// Which stories to live.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) threads: usize,
    /// No story is begun after this.
    pub(crate) until: Option<Instant>,
}

impl Search {
    /// Lives them all, or until one fails. Of a hundred stories one is lived twice.
    pub(crate) fn run(self) -> Found {
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let found = Mutex::new(Found::default());
        thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let late = self.until.is_some_and(|until| Instant::now() >= until);
                        if number >= self.count || late || stop.load(Ordering::Relaxed) {
                            return;
                        }
                        let seed = self.first.wrapping_add(number);
                        let tale = lived(seed, number % 100 == 0);
                        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                        found.add(seed, tale);
                        if found.failing.is_some() {
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Found {
    fn add(&mut self, seed: u64, tale: Tale) {
        self.stories += 1;
        self.deaths += tale.deaths.len() as u64;
        self.events += tale.events;
        self.lives += tale.lives;
        self.seconds += tale.took / 1000;
        if let Some(violation) = tale.violation
            && self.failing.as_ref().is_none_or(|(first, _)| seed < *first)
        {
            self.failing = Some((seed, violation));
        }
    }
}

/// The story of a seed, lived once or twice.
fn lived(seed: u64, twice: bool) -> Tale {
    let mut tale = live(Story::of(seed)).expect("a story can be lived");
    if twice && tale.violation.is_none() {
        let again = live(Story::of(seed)).expect("a story can be lived");
        if again.digest != tale.digest {
            tale.violation = Some(Violation {
                promise: Promise::SameStory,
                words: format!("{} and {}", tale.outcome, again.outcome),
            });
        }
    }
    tale
}

/// The smallest story that still breaks a promise: fewer kinds of fault, a smaller task, fewer deaths, one at a time.
pub(crate) fn shrink(story: &Story) -> Story {
    let mut smallest = story.clone();
    let fails = |story: &Story| live(story.clone()).filter(|tale| tale.violation.is_some());
    for agents in 1..smallest.most_agents {
        let smaller = Story {
            most_agents: agents,
            ..smallest.clone()
        };
        if fails(&smaller).is_some() {
            smallest = smaller;
            break;
        }
    }
    let mut again = true;
    while again {
        again = false;
        for fault in smallest.faults.iter() {
            let smaller = Story {
                faults: smallest.faults.without(fault),
                ..smallest.clone()
            };
            if fails(&smaller).is_some() {
                smallest = smaller;
                again = true;
            }
        }
    }
    let Some(tale) = fails(&smallest) else {
        return smallest;
    };
    let mut points = tale.deaths;
    let listed = Story {
        crashes: Crashes::At(points.clone()),
        ..smallest.clone()
    };
    if fails(&listed).is_none() {
        return smallest;
    }
    smallest = listed;
    let mut position = 0;
    while position < points.len() {
        let mut fewer = points.clone();
        fewer.remove(position);
        let smaller = Story {
            crashes: Crashes::At(fewer.clone()),
            ..smallest.clone()
        };
        if fails(&smaller).is_some() {
            (smallest, points) = (smaller, fewer);
        } else {
            position += 1;
        }
    }
    smallest
}

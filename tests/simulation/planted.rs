//! Bugs planted in the engine, one at a time: the judge finds each.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use sillage_core::planted::{Bug, plant};
use sillage_testkit::simulator::{Story, Violation};

use crate::live::live;

/// What came of a bug.
#[derive(Debug, Clone)]
pub(crate) struct Caught {
    pub(crate) bug: Bug,
    /// The first seed that finds it, with the promise that it breaks there.
    pub(crate) first: Option<(u64, Violation)>,
    /// Seeds that find it, and seeds that were lived.
    pub(crate) finds: u64,
    /// Seeds that break a promise without the bug, too.
    pub(crate) without: u64,
    pub(crate) lived: u64,
}

/// Looks for each bug in so many seeds from 1 on, until it is found; `whole`: in all of them.
pub(crate) fn catch_all(bugs: &[Bug], most: u64, whole: bool, threads: usize) -> Vec<Caught> {
    let next = AtomicUsize::new(0);
    let caught = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = catch(*bug, most, whole);
                    println!("{}", found.line());
                    caught.lock().unwrap_or_else(PoisonError::into_inner).push(found);
                }
            });
        }
    });
    caught.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The engine of a story runs in the thread that lives it, so that the bug is nowhere else.
fn catch(bug: Bug, most: u64, whole: bool) -> Caught {
    let mut caught = Caught {
        bug,
        first: None,
        finds: 0,
        without: 0,
        lived: 0,
    };
    plant(Some(bug));
    for seed in 1..=most {
        let tale = live(Story::of(seed)).expect("a story can be lived");
        caught.lived += 1;
        if let Some(violation) = tale.violation {
            // A story that breaks a promise by itself finds nothing.
            plant(None);
            let without = live(Story::of(seed)).expect("a story can be lived");
            plant(Some(bug));
            if without.violation.is_some() {
                caught.without += 1;
                continue;
            }
            caught.finds += 1;
            caught.first.get_or_insert((seed, violation));
            if !whole {
                break;
            }
        }
    }
    plant(None);
    caught
}

impl Caught {
    /// A row of the table.
    pub(crate) fn line(&self) -> String {
        let (promise, seed) = match &self.first {
            Some((seed, violation)) => (violation.promise.word(), seed.to_string()),
            None => ("NOT FOUND", "-".to_owned()),
        };
        format!(
            "| `{}` | `{promise}` | {seed} | {} of {} |",
            self.bug.word(),
            self.finds,
            self.lived
        )
    }
}

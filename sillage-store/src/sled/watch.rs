//! sled's flush may wait for ever: where a write fails whose buffer was sealed by a flush and left by its last
//! writer afterwards, 0.34.7 notes the error and wakes nobody. Any other flush that sees the error wakes the one
//! that waits. So a thread watches flushes that take long, and flushes as well once sled has noted an error.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a flush takes before it is looked at.
const LONG: Duration = Duration::from_millis(100);

/// The flush under way.
#[derive(Debug, Default)]
pub(super) struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How many flushes began.
    begun: u64,
    busy: bool,
    /// Whether the watching thread sleeps until the next flush begins.
    asleep: bool,
    over: bool,
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches while `flush` runs.
    pub(super) fn during<T>(&self, flush: impl FnOnce() -> T) -> T {
        let mut state = self.lock();
        state.begun += 1;
        state.busy = true;
        let wake = std::mem::take(&mut state.asleep);
        drop(state);
        if wake {
            self.changed.notify_all();
        }
        let result = flush();
        self.lock().busy = false;
        result
    }

    /// Ends the watching thread.
    pub(super) fn end(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }

    /// Runs until [`Watch::end`]: calls `look` again and again during a flush that takes long. Between flushes it
    /// sleeps.
    pub(super) fn serve(&self, look: impl Fn()) {
        let mut state = self.lock();
        while !state.over {
            if !state.busy {
                state.asleep = true;
                let woken = self
                    .changed
                    .wait_while(state, |state| state.asleep && !state.over);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let begun = state.begun;
            let waited = self.changed.wait_timeout_while(state, LONG, |state| !state.over);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.busy && state.begun == begun {
                drop(state);
                look();
                state = self.lock();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn a_long_flush_is_looked_at_until_it_ends() {
        let watch = Watch::default();
        let (looked, looks) = channel();
        thread::scope(|scope| {
            let watch = &watch;
            scope.spawn(move || watch.serve(|| looked.send(()).unwrap()));
            for _ in 0..2 {
                watch.during(|| {
                    looks.recv_timeout(Duration::from_secs(10)).unwrap();
                    looks.recv_timeout(Duration::from_secs(10)).unwrap();
                });
            }
            watch.end();
        });
    }
}

//! A session's events, numbered without gaps and readable from any number on.
//!
//! Memory is bounded by forgetting the words of old chatter: past a budget of bytes, the oldest piece of chatter
//! becomes part of a run of forgotten numbers. A reader who still asks for it gets a [`SessionEventKind::Note`] in
//! its place, so that numbers stay without gaps; what decides something (answers, errors, permissions that a person is
//! asked for, the end) is kept. Usage counts as chatter here: a later total replaces an earlier one, and an answer
//! holds the last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_core::stream::BoxStream;
use sillage_core::ports::runtime::{SessionEvent, SessionEventKind};
use tokio::sync::Notify;

/// What a piece of chatter costs besides its words.
const OVERHEAD: usize = 128;

/// Who answered a permission request, where it was the session's policy.
pub(super) const POLICY: &str = "policy";

/// What stands in the place of chatter that was forgotten.
const FORGOTTEN: &str = "(no longer kept)";

/// The log. Many may read; one writes.
#[derive(Debug)]
pub(crate) struct EventLog {
    state: Mutex<State>,
    news: Notify,
    budget: usize,
}

#[derive(Debug, Default)]
struct State {
    /// Older than `recent`: in the order of their numbers.
    old: Vec<Old>,
    /// The number of the first of `recent`.
    first_recent: u64,
    recent: VecDeque<SessionEventKind>,
    /// What the chatter in `recent` costs.
    bytes: usize,
    ended: bool,
}

#[derive(Debug)]
enum Old {
    /// Numbers from `first` to `last`.
    Forgotten {
        first: u64,
        last: u64,
    },
    Kept {
        number: u64,
        kind: SessionEventKind,
    },
}

impl EventLog {
    /// An empty log whose chatter may cost `budget` bytes.
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            state: Mutex::new(State {
                first_recent: 1,
                ..State::default()
            }),
            news: Notify::new(),
            budget,
        }
    }

    /// Adds an event; nothing once the session has ended.
    pub(crate) fn push(&self, kind: SessionEventKind) {
        let mut state = self.state();
        if state.ended {
            return;
        }
        state.ended = kind == SessionEventKind::Ended;
        state.bytes += cost(&kind);
        state.recent.push_back(kind);
        while state.bytes > self.budget && state.recent.len() > 1 {
            state.retire_oldest();
        }
        drop(state);
        self.news.notify_waiters();
    }

    /// The events after number `after`, going on until the session ends.
    pub(crate) fn after(self: &Arc<Self>, after: u64) -> BoxStream<'static, SessionEvent> {
        let start = (Arc::clone(self), after.saturating_add(1));
        Box::pin(futures_util::stream::unfold(start, |(log, number)| async move {
            let kind = log.wait_for(number).await?;
            Some((SessionEvent { number, kind }, (log, number + 1)))
        }))
    }

    async fn wait_for(&self, number: u64) -> Option<SessionEventKind> {
        loop {
            // Made before the look, so that news between the look and the wait wakes it.
            let news = self.news.notified();
            {
                let state = self.state();
                if let Some(kind) = state.event(number) {
                    return Some(kind);
                }
                if state.ended {
                    return None;
                }
            }
            news.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn event(&self, number: u64) -> Option<SessionEventKind> {
        if let Some(position) = number.checked_sub(self.first_recent) {
            return self.recent.get(usize::try_from(position).ok()?).cloned();
        }
        let at = self.old.partition_point(|old| old.last() < number);
        match self.old.get(at)? {
            Old::Kept { kind, .. } => Some(kind.clone()),
            Old::Forgotten { .. } => Some(SessionEventKind::Note {
                text: FORGOTTEN.to_owned(),
            }),
        }
    }

    /// Moves the oldest recent event to the old ones, and forgets its words when it is chatter.
    fn retire_oldest(&mut self) {
        let Some(kind) = self.recent.pop_front() else {
            return;
        };
        let number = self.first_recent;
        self.first_recent += 1;
        self.bytes -= cost(&kind);
        if cost(&kind) == 0 {
            self.old.push(Old::Kept { number, kind });
        } else if let Some(Old::Forgotten { last, .. }) = self.old.last_mut() {
            *last = number;
        } else {
            self.old.push(Old::Forgotten {
                first: number,
                last: number,
            });
        }
    }
}

impl Old {
    fn last(&self) -> u64 {
        match self {
            Old::Forgotten { first, last } => *last.max(first),
            Old::Kept { number, .. } => *number,
        }
    }
}

/// What keeping an event costs against the budget: nothing for one that decides something.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a kind that is not known to be chatter is kept"
)]
fn cost(kind: &SessionEventKind) -> usize {
    let words = match kind {
        SessionEventKind::Text { text }
        | SessionEventKind::Thought { text }
        | SessionEventKind::Note { text } => text.len(),
        SessionEventKind::Tool {
            id,
            title,
            status,
            locations,
        } => {
            let paths: usize = locations.iter().map(|path| path.as_os_str().len()).sum();
            id.len() + title.len() + status.len() + paths
        }
        SessionEventKind::Plan { entries } => entries.iter().map(String::len).sum(),
        SessionEventKind::Usage { .. } => 0,
        // The policy's own doing; a person's answer comes no oftener than persons do.
        SessionEventKind::PermissionAnswered { id, by, .. } if by == POLICY => id.len(),
        SessionEventKind::PermissionRefused { request, rule } => {
            let paths: usize = request.paths.iter().map(|path| path.as_os_str().len()).sum();
            request.title.len() + paths + rule.len()
        }
        _ => return 0,
    };
    OVERHEAD + words
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use proptest::prelude::*;
    use sillage_core::ports::runtime::{RuntimeError, Usage};

    use super::*;

    fn event(n: usize, decisive: bool) -> SessionEventKind {
        if decisive {
            SessionEventKind::Error {
                message: None,
                error: RuntimeError::Permanent { words: n.to_string() },
            }
        } else {
            SessionEventKind::Text {
                text: format!("piece {n}"),
            }
        }
    }

    proptest! {
        /// Numbers have no gaps whatever was forgotten; what decides is never forgotten; memory is bounded.
        #[test]
        fn numbers_stay_without_gaps(kinds in proptest::collection::vec(any::<bool>(), 1..200), after in 0u64..220) {
            let log = Arc::new(EventLog::new(10 * OVERHEAD));
            for (n, decisive) in kinds.iter().enumerate() {
                log.push(event(n, *decisive));
            }
            log.push(SessionEventKind::Ended);
            log.push(event(0, true));
            prop_assert!(log.state().bytes <= 10 * OVERHEAD);
            let total = kinds.len() as u64 + 1;
            let seen = futures_util::FutureExt::now_or_never(log.after(after).collect::<Vec<_>>()).unwrap();
            prop_assert_eq!(seen.len() as u64, total.saturating_sub(after));
            for (event_seen, number) in seen.iter().zip(after + 1..) {
                prop_assert_eq!(event_seen.number, number);
                let position = usize::try_from(number).unwrap() - 1;
                if kinds.get(position) == Some(&true) {
                    prop_assert_eq!(&event_seen.kind, &event(position, true));
                }
            }
            if let Some(last) = seen.last() {
                prop_assert_eq!(&last.kind, &SessionEventKind::Ended);
            }
        }
    }

    #[test]
    fn c11_what_an_agent_can_repeat_without_end_is_forgotten() {
        let log = EventLog::new(10 * OVERHEAD);
        for n in 0..10_000 {
            let usage = Usage {
                context_used: Some(n),
                ..Usage::default()
            };
            log.push(SessionEventKind::Usage { usage });
            log.push(SessionEventKind::PermissionAnswered {
                id: format!("p{n}"),
                option: None,
                by: POLICY.to_owned(),
            });
        }
        let state = log.state();
        assert!(state.old.len() <= 1 && state.recent.len() <= 10, "{state:?}");
    }

    #[tokio::test]
    async fn a_reader_gets_what_is_added_while_it_waits() {
        let log = Arc::new(EventLog::new(1 << 20));
        let mut stream = log.after(0);
        let writer = tokio::spawn({
            let log = Arc::clone(&log);
            async move {
                log.push(event(1, false));
                log.push(SessionEventKind::Ended);
            }
        });
        assert_eq!(stream.next().await.unwrap().number, 1);
        assert_eq!(stream.next().await.unwrap().kind, SessionEventKind::Ended);
        assert_eq!(stream.next().await, None);
        writer.await.unwrap();
    }
}

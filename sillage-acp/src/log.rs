//! What an agent wrote last on its standard error, line by line.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::pool::PoolEvent;

/// Lines that are kept of each agent.
pub const LINES_KEPT: usize = 200;

/// Bytes of a line past which the rest is left out.
const LONGEST_LINE: usize = 4 << 10;

/// A line of an agent: the event `agent:log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The agent.
    pub agent: String,
    /// The line, without its end.
    pub line: String,
}

/// The log of one agent. Copies share it.
#[derive(Debug, Clone)]
pub(crate) struct AgentLog {
    agent: Arc<str>,
    kept: Arc<Mutex<Kept>>,
    events: Option<broadcast::Sender<PoolEvent>>,
}

#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<String>,
    /// A line whose end did not come yet.
    begun: Vec<u8>,
    /// Lines that ever were.
    count: u64,
}

impl AgentLog {
    /// An empty log, whose lines are told to `events` as they come.
    pub(crate) fn new(agent: &str, events: Option<broadcast::Sender<PoolEvent>>) -> Self {
        Self {
            agent: agent.into(),
            kept: Arc::default(),
            events,
        }
    }

    /// The same log, told to others from now on.
    pub(crate) fn told_to(self, events: Option<broadcast::Sender<PoolEvent>>) -> Self {
        Self { events, ..self }
    }

    /// Adds what was written, which may begin and end within lines.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let mut kept = self.kept();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match part.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (part, false),
            };
            let room = LONGEST_LINE.saturating_sub(kept.begun.len());
            kept.begun.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                self.end_line(&mut kept);
            }
        }
    }

    /// Adds a whole line.
    pub(crate) fn line(&self, line: &str) {
        self.finish();
        self.write(line.as_bytes());
        self.write(b"\n");
    }

    /// Ends a line that was begun: nothing more comes from who wrote it.
    pub(crate) fn finish(&self) {
        let mut kept = self.kept();
        if !kept.begun.is_empty() {
            self.end_line(&mut kept);
        }
    }

    /// The lines that are kept, oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.kept().lines.iter().cloned().collect()
    }

    /// How many lines there were so far.
    pub(crate) fn count(&self) -> u64 {
        self.kept().count
    }

    /// The last `most` lines of those after the first `from`.
    pub(crate) fn since(&self, from: u64, most: usize) -> Vec<String> {
        let kept = self.kept();
        let fresh = usize::try_from(kept.count - from.min(kept.count)).unwrap_or(usize::MAX);
        let wanted = fresh.min(most).min(kept.lines.len());
        kept.lines
            .iter()
            .skip(kept.lines.len() - wanted)
            .cloned()
            .collect()
    }

    fn end_line(&self, kept: &mut Kept) {
        let bytes = std::mem::take(&mut kept.begun);
        let line = String::from_utf8_lossy(&bytes).trim_end_matches('\r').to_owned();
        if let Some(events) = &self.events {
            // Nobody may be watching.
            let _ = events.send(PoolEvent::Log(LogLine {
                agent: self.agent.to_string(),
                line: line.clone(),
            }));
        }
        if kept.lines.len() == LINES_KEPT {
            kept.lines.pop_front();
        }
        kept.lines.push_back(line);
        kept.count += 1;
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a1_the_last_200_lines_are_kept_however_they_were_cut() {
        let log = AgentLog::new("a", None);
        log.write(b"one\ntw");
        assert_eq!(log.lines(), ["one"]);
        log.write(b"o\r\n\nla\xffst");
        log.finish();
        log.finish();
        assert_eq!(log.lines(), ["one", "two", "", "la\u{fffd}st"]);
        for number in 0..250 {
            log.line(&format!("line {number}"));
        }
        let lines = log.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (200, "line 50"));
        assert_eq!(log.since(252, 10), ["line 248", "line 249"]);
        assert_eq!(log.since(0, 1), ["line 249"]);
    }

    #[test]
    fn a4_a_line_without_an_end_is_cut() {
        let log = AgentLog::new("a", None);
        for _ in 0..10 {
            log.write(&[b'x'; 1000]);
        }
        log.write(b"\nnext\n");
        let lines = log.lines();
        assert_eq!((lines[0].len(), lines[1].as_str()), (LONGEST_LINE, "next"));
    }
}

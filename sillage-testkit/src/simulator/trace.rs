//! What happened in a story: a digest always, words where somebody reads them.

use std::collections::VecDeque;

use super::dice::mixed;

/// Lines kept for people.
const KEPT: usize = 400;

/// What happened, so far.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    told: bool,
    digest: u64,
    lines: VecDeque<String>,
}

impl Trace {
    pub(crate) fn new(told: bool) -> Trace {
        Trace {
            told,
            ..Trace::default()
        }
    }

    /// Adds something to the digest.
    pub(crate) fn mix(&mut self, number: u64) {
        self.digest = mixed(self.digest.rotate_left(7) ^ number);
    }

    /// Adds bytes to the digest.
    pub(crate) fn mix_bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    /// Adds a line, written only where it is read.
    pub(crate) fn tell(&mut self, now: u64, line: impl FnOnce() -> String) {
        if self.told {
            if self.lines.len() == KEPT {
                self.lines.pop_front();
            }
            self.lines
                .push_back(format!("{:>10}.{:03} {}", now / 1000, now % 1000, line()));
        }
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// The last lines.
    pub(crate) fn last(&self, count: usize) -> Vec<String> {
        let skipped = self.lines.len().saturating_sub(count);
        self.lines.iter().skip(skipped).cloned().collect()
    }
}

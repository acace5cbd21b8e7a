//! Numbers that only depend on a seed, in streams that do not disturb each other.

/// Streams: as many independent sequences of numbers. What is drawn from one changes nothing in the others, so that a
/// kind of fault that is switched off leaves the rest of a story as far as possible as it was.
const STREAMS: usize = 64;

/// Numbers that only depend on a seed.
#[derive(Debug, Clone)]
pub struct Dice {
    streams: [u64; STREAMS],
}

impl Dice {
    /// The numbers of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Dice {
        let mut streams = [0; STREAMS];
        for (number, stream) in (0u64..).zip(&mut streams) {
            *stream = mixed(seed ^ mixed(number.wrapping_add(0x51_11A6)));
        }
        Dice { streams }
    }

    /// The next number of a stream.
    pub fn roll(&mut self, stream: usize) -> u64 {
        let state = &mut self.streams[stream % STREAMS];
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(*state)
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, stream: usize, bound: u64) -> u64 {
        self.roll(stream) % bound.max(1)
    }

    /// A number of a range, its ends included.
    pub fn between(&mut self, stream: usize, least: u64, most: u64) -> u64 {
        least + self.below(stream, most.saturating_sub(least) + 1)
    }

    /// True so many times in a thousand.
    pub fn chance(&mut self, stream: usize, per_mille: u64) -> bool {
        self.below(stream, 1000) < per_mille
    }
}

/// The finaliser of SplitMix64: a number that looks like nothing of what it was made from.
#[must_use]
pub fn mixed(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_streams_do_not_disturb_each_other() {
        let (mut one, mut two) = (Dice::new(7), Dice::new(7));
        let first: Vec<u64> = (0..8).map(|_| one.roll(3)).collect();
        two.roll(4);
        let second: Vec<u64> = (0..8).map(|_| two.roll(3)).collect();
        assert_eq!(first, second);
        assert_ne!(first, (0..8).map(|_| Dice::new(8).roll(3)).collect::<Vec<_>>());
    }
}

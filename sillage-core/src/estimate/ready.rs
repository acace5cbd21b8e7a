//! Ready nodes by rank: a set of numbers whose least is found at once.

const BITS: u32 = u64::BITS;

/// A set of numbers below a bound, as bits, and over them bits that say which words have any.
#[derive(Debug, Clone)]
pub(super) struct Ready {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl Ready {
    pub(super) fn new(bound: usize) -> Ready {
        let words = bound.div_ceil(BITS as usize);
        Ready {
            words: vec![0; words],
            summary: vec![0; words.div_ceil(BITS as usize)],
        }
    }

    pub(super) fn insert(&mut self, number: u32) {
        let word = number / BITS;
        self.words[word as usize] |= 1 << (number % BITS);
        self.summary[(word / BITS) as usize] |= 1 << (word % BITS);
    }

    pub(super) fn remove(&mut self, number: u32) {
        let word = number / BITS;
        self.words[word as usize] &= !(1 << (number % BITS));
        if self.words[word as usize] == 0 {
            self.summary[(word / BITS) as usize] &= !(1 << (word % BITS));
        }
    }

    pub(super) fn first(&self) -> Option<u32> {
        let (at, bits) = (0_u32..).zip(&self.summary).find(|(_, bits)| **bits != 0)?;
        let word = at * BITS + bits.trailing_zeros();
        Some(word * BITS + self.words[word as usize].trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_set_holds(steps in prop::collection::vec((any::<bool>(), 0_u32..10_000), 0..200)) {
            let (mut ready, mut set) = (Ready::new(10_000), BTreeSet::new());
            for (adds, number) in steps {
                if adds {
                    ready.insert(number);
                    set.insert(number);
                } else {
                    ready.remove(number);
                    set.remove(&number);
                }
                prop_assert_eq!(ready.first(), set.first().copied());
            }
        }
    }
}

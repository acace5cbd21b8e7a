//! Draws that depend on who draws and in which replay, and on nothing else.
//!
//! An agent draws the same numbers whatever stands around it, so that two estimates of a graph before and after an edit
//! differ by the edit and not by luck.

/// What a draw is for: each purpose of an agent has numbers of its own.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Work = 1,
    Returned,
    Correction,
    Pauses,
    Pause,
    PauseAt,
    Closes,
    Closure,
    Group,
}

/// The key under which an agent draws: that of its name, and of what it does under it.
pub(super) fn key(name: &str, part: u64) -> u64 {
    // FNV-1a: stable over machines and versions, as a seed has to be.
    let hashed = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mixed(hashed ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The number that `key` draws for this purpose in this replay: any of 2^64, all alike.
pub(super) fn draw(key: u64, replay: u64, purpose: Purpose) -> u64 {
    let replay = replay.wrapping_mul(0xd1b5_4a32_d192_ed03);
    mixed(key ^ replay ^ (purpose as u64).wrapping_mul(0x8cb9_2ba7_2f3d_8dd7))
}

/// Spreads a number over all bits.
const fn mixed(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A share of one, as what a draw's upper half must be below.
pub(super) fn threshold(share: f64) -> u32 {
    // Saturating, as floats are cast: a share of one leaves out one draw in four thousand million.
    (share.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32
}

/// Whether a draw falls below the threshold.
pub(super) const fn falls(draw: u64, threshold: u32) -> bool {
    ((draw >> 32) as u32) < threshold
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_spread_evenly_and_differ_by_who_draws_when_and_for_what() {
        let key = key("explore", 0);
        let mut buckets = [0_u32; 16];
        for replay in 0..16_000 {
            buckets[(draw(key, replay, Purpose::Work) >> 60) as usize] += 1;
        }
        assert!(
            buckets.iter().all(|count| (850..1150).contains(count)),
            "{buckets:?}"
        );
        let all = [
            draw(key, 0, Purpose::Work),
            draw(key, 1, Purpose::Work),
            draw(key, 0, Purpose::Pauses),
            draw(super::key("explore", 1), 0, Purpose::Work),
            draw(super::key("explor", 0), 0, Purpose::Work),
        ];
        let distinct: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn a_share_of_draws_falls_below_its_threshold() {
        let quarter = threshold(0.25);
        let fell = (0..10_000).filter(|replay| falls(draw(7, *replay, Purpose::Pauses), quarter));
        assert!((2_300..2_700).contains(&fell.count()));
        assert!(!falls(draw(7, 1, Purpose::Pauses), threshold(0.0)));
        assert!(falls(draw(7, 1, Purpose::Pauses), threshold(1.0)));
    }
}

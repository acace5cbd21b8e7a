//! How long something takes, as a table of quantiles: a draw is one look-up.

use std::sync::LazyLock;

/// Entries of a table.
const ENTRIES: usize = 1024;

/// From so many samples on they speak for themselves; fewer are taken for draws of a log-normal.
pub(super) const ENOUGH: usize = 12;

/// How widely sessions of one model and effort usually spread: the standard deviation of the logarithm. Two sessions in
/// three are then within half and twice the median.
pub(super) const USUAL_SPREAD: f64 = 0.7;

/// How many samples the usual spread weighs against those that there are.
const USUAL_WEIGHT: f64 = 4.0;

/// The longest that is believed of one session: 30 days.
const LONGEST_MS: f64 = 30.0 * 86_400_000.0;

/// Quantiles of a duration in milliseconds, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spread(Box<[u32]>);

impl Spread {
    /// A log-normal with this median, in milliseconds, and this standard deviation of the logarithm.
    pub(super) fn log_normal(median_ms: f64, deviation: f64) -> Spread {
        let quantile = |z: &f64| whole(median_ms * (deviation * z).exp());
        Spread(NORMAL.iter().map(quantile).collect())
    }

    /// What samples tell, in milliseconds; none when there are none. Few of them say little about how widely the next
    /// ones spread, and not exactly where their middle is: both widen the spread.
    pub(super) fn of(mut samples: Vec<u32>) -> Option<Spread> {
        if samples.is_empty() {
            return None;
        }
        samples.sort_unstable();
        if samples.len() >= ENOUGH {
            return Some(Spread::observed(&samples));
        }
        let logs: Vec<f64> = samples.iter().copied().map(log).collect();
        let count = float(logs.len());
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let usual = USUAL_WEIGHT * USUAL_SPREAD * USUAL_SPREAD;
        let variance = (usual + squares) / (USUAL_WEIGHT + count - 1.0);
        let deviation = (variance * (1.0 + 1.0 / count)).sqrt();
        Some(Spread::log_normal(mean.exp(), deviation))
    }

    /// The samples themselves, with a straight line between the logarithms of neighbours.
    fn observed(sorted: &[u32]) -> Spread {
        let last = sorted.len() - 1;
        let quantile = |entry: usize| {
            let at = (float(entry) + 0.5) / float(ENTRIES) * float(sorted.len()) - 0.5;
            let at = at.clamp(0.0, float(last));
            let below = at as usize;
            let (low, high) = (log(sorted[below]), log(sorted[(below + 1).min(last)]));
            whole((low + (high - low) * (at - float(below))).exp())
        };
        Spread((0..ENTRIES).map(quantile).collect())
    }

    /// The duration that a draw means, in milliseconds.
    pub(super) fn at(&self, draw: u64) -> u32 {
        // The upper bits are as many as there are entries.
        self.0[(draw >> (64 - ENTRIES.ilog2())) as usize]
    }

    /// The median, in milliseconds.
    pub(super) fn median(&self) -> u32 {
        self.0[ENTRIES / 2 - 1].midpoint(self.0[ENTRIES / 2])
    }
}

fn log(ms: u32) -> f64 {
    f64::from(ms.max(1)).ln()
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn whole(ms: f64) -> u32 {
    // It fits: the longest is less than a u32 holds.
    ms.clamp(0.0, LONGEST_MS).round() as u32
}

/// The middles of `ENTRIES` equal shares of the standard normal distribution.
static NORMAL: LazyLock<Box<[f64]>> = LazyLock::new(|| {
    let mut z = 0.0;
    // The upper half by Newton's method, each from the one before; the lower half is its mirror.
    let upper: Vec<f64> = (ENTRIES / 2..ENTRIES)
        .map(|entry| {
            let wanted = (float(entry) + 0.5) / float(ENTRIES) - 0.5;
            for _ in 0..20 {
                let step = (above_middle(z) - wanted) / density(z);
                z -= step;
                if step.abs() < 1e-12 {
                    break;
                }
            }
            z
        })
        .collect();
    upper
        .iter()
        .rev()
        .map(|z| -z)
        .chain(upper.iter().copied())
        .collect()
});

fn density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

/// How much of the standard normal distribution lies between 0 and `z`: the sum of `z^(2n+1) / (1·3·…·(2n+1))`, times
/// the density.
fn above_middle(z: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term > 1e-17 {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    sum * density(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_table_has_the_known_quantiles() {
        // 87.5 % lie below 1.150349, and 96.875 % below 1.862732.
        let between = |at: usize| (NORMAL[at - 1] + NORMAL[at]) / 2.0;
        assert!((between(896) - 1.150_349).abs() < 1e-4, "{}", between(896));
        assert!((between(992) - 1.862_732).abs() < 1e-3, "{}", between(992));
        assert!((NORMAL[0] + NORMAL[1023]).abs() < 1e-9);
        assert!(NORMAL.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn few_samples_spread_wider_than_many_alike() {
        let quantiles = |samples: Vec<u32>| {
            let spread = Spread::of(samples).unwrap();
            (spread.0[102], spread.median(), spread.0[921])
        };
        let (low, median, high) = quantiles(vec![60_000]);
        assert!((59_800..60_300).contains(&median), "{median}");
        assert!(low < 20_000 && high > 180_000, "{low} {high}");
        let (low, median, high) = quantiles(vec![60_000; 12]);
        assert_eq!((low, median, high), (60_000, 60_000, 60_000));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn many_samples_give_their_own_quantiles() {
        let spread = Spread::of((1..=1000).rev().map(|n| n * 1000).collect()).unwrap();
        let near = |found: u32, wanted: u32| found.abs_diff(wanted) < 3_000;
        assert!(near(spread.median(), 500_000), "{}", spread.median());
        assert!(near(spread.at(u64::MAX / 10), 100_000));
        assert!(near(spread.at(u64::MAX), 1_000_000));
        assert!(near(spread.at(0), 1_000));
    }

    #[test]
    fn samples_of_nothing_and_of_an_age_are_told_within_bounds() {
        assert!(Spread::of(vec![0]).unwrap().median() <= 1);
        assert!(f64::from(Spread::of(vec![u32::MAX]).unwrap().at(u64::MAX)) <= LONGEST_MS);
    }
}

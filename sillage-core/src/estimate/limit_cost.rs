//! What limits cost: how much sooner a run would be over without them.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::estimator::{Estimator, Replays};
use super::replay::Limits;
use super::told::about;

/// A limit as it might be instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifted {
    /// So many sessions at work at once: with more, hardly anything is gained.
    Parallel(u32),
    /// No limit of its own for this model.
    Model(String),
}

/// What a limit costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LimitCost {
    /// The limit as it might be instead.
    pub lifted: Lifted,
    /// How much sooner the run would then typically be over.
    #[serde(rename = "less_ms", serialize_with = "crate::time::as_millis")]
    pub less: Duration,
    /// How long it would then typically take.
    #[serde(rename = "typical_ms", serialize_with = "crate::time::as_millis")]
    pub typical: Duration,
}

/// E.g. `with parallel 6: 12 min less`.
impl fmt::Display for LimitCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lifted {
            Lifted::Parallel(parallel) => write!(f, "with parallel {parallel}")?,
            Lifted::Model(model) => write!(f, "without the limit of {}", crate::plain::line(model))?,
        }
        write!(f, ": {} less", about(self.less))
    }
}

impl Estimator {
    /// What the limits of the task cost, each alone: those without which the run would be over sooner by a fiftieth of
    /// its time or more. Dearer than an estimate: it replays the task under about ten other limits at most.
    #[must_use]
    pub fn limit_costs(&self, replays: Replays) -> Vec<LimitCost> {
        let (typical, _) = self.typical_under(self.limits(), replays);
        let worth = typical / 50;
        let cost = |lifted: Lifted, then: Duration| {
            let less = typical.saturating_sub(then);
            (less > Duration::ZERO && less >= worth).then_some(LimitCost {
                lifted,
                less,
                typical: then,
            })
        };
        let mut costs = Vec::new();
        costs.extend(
            self.enough_parallel(typical, replays)
                .and_then(|(parallel, then)| cost(Lifted::Parallel(parallel), then)),
        );
        for (at, (model, limit)) in self.models().iter().enumerate() {
            if limit.is_some() {
                let mut limits = self.limits().clone();
                limits.models[at] = u32::MAX;
                let (then, _) = self.typical_under(&limits, replays);
                costs.extend(cost(Lifted::Model(model.clone()), then));
            }
        }
        costs
    }

    /// The least parallel limit with which a run takes hardly longer than without one.
    fn enough_parallel(&self, typical: Duration, replays: Replays) -> Option<(u32, Duration)> {
        let under = |parallel: u32| {
            let limits = Limits {
                parallel,
                ..self.limits().clone()
            };
            self.typical_under(&limits, replays)
        };
        let (without, peak) = under(u32::MAX);
        let near = without + without / 100;
        if typical <= near {
            return None;
        }
        // More is not always faster, but for the median of many replays it is, as near as makes no difference here.
        let (mut too_few, mut enough) = (self.limits().parallel, peak);
        let mut then = without;
        while enough.saturating_sub(too_few) > 1 {
            let middle = too_few + (enough - too_few) / 2;
            let (took, _) = under(middle);
            if took <= near {
                (enough, then) = (middle, took);
            } else {
                too_few = middle;
            }
        }
        Some((enough, then))
    }
}

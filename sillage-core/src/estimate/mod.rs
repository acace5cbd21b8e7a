//! How long a graph should take, before it is launched (R24 to R27).
//!
//! The graph is replayed many times with sessions drawn from past runs ([`Past`]), under the limits that a run has:
//! sessions at work at once, those of each model, and accounts that cannot be used for a while. What comes out is a
//! median, a range that holds four runs in five, each agent's typical start and end, and the path that decides.
//!
//! What is drawn depends on the agent and the replay only: the same inputs give the same figures, and two estimates
//! before and after an edit differ by the edit. See `docs/estimate.md` for the model and what it leaves out.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::num::NonZeroU32;
//! use std::time::Duration;
//! use sillage_core::document::Format;
//! use sillage_core::estimate::{Estimator, Past, Replays, SessionSample, Subject};
//! use sillage_core::task;
//!
//! let text = "
//! task: Two in a row
//! agents:
//!   - { id: first, mission: Begin., model: m, effort: low }
//!   - { id: then, mission: Go on., model: m, effort: low }
//! links: [ first -> then ]
//! ";
//! let task = task::read(text, Format::Either, None).expect("a task without faults");
//! let mut past = Past::default();
//! for minutes in 1..=20 {
//!     past.add_session(SessionSample::mission("m", "low", Duration::from_secs(60 * minutes)));
//! }
//! let subject = Subject {
//!     task: &task,
//!     task_file: None,
//!     parallel: NonZeroU32::new(4).expect("four"),
//!     accounts: &BTreeMap::new(),
//! };
//! let estimator = Estimator::new(&subject, &past).expect("no cycle");
//! let estimate = estimator.estimate(Replays::default());
//! assert_eq!(estimate, estimator.estimate(Replays::default()));
//! assert!(estimate.low <= estimate.typical && estimate.typical <= estimate.high);
//! assert!(estimate.typical > Duration::from_secs(15 * 60) && estimate.typical < Duration::from_secs(27 * 60));
//! ```

mod basis;
mod calibration;
mod draw;
mod estimator;
mod gather;
mod limit_cost;
mod network;
mod past;
mod path;
mod ready;
mod replay;
mod spread;
mod subject;
#[cfg(test)]
mod tests;
mod told;

pub use basis::{Basis, Source};
pub use calibration::{Calibration, Foretold, Verdict};
pub use estimator::{AgentEstimate, Estimate, Estimator, PairEstimate, Replays};
pub use gather::Gather;
pub use limit_cost::{Lifted, LimitCost};
pub use past::{ClosureSample, GroupSample, Part, Past, RunSample, SessionSample};
pub use path::{Leg, LegBecause};
pub use subject::Subject;
pub use told::about;

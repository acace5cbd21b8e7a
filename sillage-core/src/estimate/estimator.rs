//! Many replays, and what they come to.

use std::time::Duration;

use serde::Serialize;

use super::basis::{Basis, Source};
use super::network::Network;
use super::past::{Part, Past};
use super::path::{self, Leg};
use super::replay::{Dice, Limits, Stage};
use super::subject::Subject;
use crate::graph::Cycle;

/// How often a graph is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replays {
    /// How often; 0 is taken for 1.
    pub count: u32,
    /// What the draws start from.
    pub seed: u64,
}

impl Default for Replays {
    fn default() -> Self {
        Replays { count: 1000, seed: 0 }
    }
}

impl Replays {
    /// As many as are told at once for a graph of so many agents: 1,000, and fewer for large graphs, whose range is
    /// narrow.
    #[must_use]
    pub fn of(agents: usize) -> Replays {
        let count = u32::try_from(1_000_000 / agents.max(1)).unwrap_or(u32::MAX);
        Replays {
            count: count.clamp(100, 1000),
            ..Replays::default()
        }
    }
}

/// How long a run should take. Times count from the launch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The median.
    #[serde(rename = "typical_ms", serialize_with = "crate::time::as_millis")]
    pub typical: Duration,
    /// One run in ten is over sooner.
    #[serde(rename = "low_ms", serialize_with = "crate::time::as_millis")]
    pub low: Duration,
    /// One run in ten takes longer.
    #[serde(rename = "high_ms", serialize_with = "crate::time::as_millis")]
    pub high: Duration,
    /// Replays that this rests on.
    pub replays: u32,
    /// Sessions at work at once, at most.
    pub parallel: u32,
    /// The agents, in the order of the task.
    pub agents: Vec<AgentEstimate>,
    /// What decides, with each session at its median and nothing going wrong.
    pub critical_path: Vec<Leg>,
    /// What is known of each model and effort that is used.
    pub pairs: Vec<PairEstimate>,
}

/// An agent's part in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentEstimate {
    /// The agent.
    pub agent: String,
    /// The model.
    pub model: String,
    /// The effort.
    pub effort: String,
    /// When it typically begins: the median.
    #[serde(rename = "start_ms", serialize_with = "crate::time::as_millis")]
    pub start: Duration,
    /// When it typically ends: the median.
    #[serde(rename = "end_ms", serialize_with = "crate::time::as_millis")]
    pub end: Duration,
    /// In what share of the replays it is on the critical path, from 0 to 1.
    pub critical: f64,
    /// On what its figure rests: for a coordinator, that of its plan.
    pub basis: Basis,
    /// Sub-agents that it typically has, where it is a coordinator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_agents: Option<u32>,
}

/// What is known of a model at an effort.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PairEstimate {
    /// The model.
    pub model: String,
    /// The effort.
    pub effort: String,
    /// What it is asked to do.
    pub part: Part,
    /// The median of its work.
    #[serde(rename = "typical_ms", serialize_with = "crate::time::as_millis")]
    pub typical: Duration,
    /// On what that rests.
    pub basis: Basis,
}

impl Estimate {
    /// The agents whose figures rest on no session at all.
    #[must_use]
    pub fn guessed(&self) -> usize {
        let guessed = self
            .agents
            .iter()
            .filter(|agent| agent.basis.source == Source::Prior);
        guessed.count()
    }

    /// The sessions that the figures rest on, each pair of model and effort counted once.
    #[must_use]
    pub fn sessions(&self) -> u32 {
        let sessions = self.pairs.iter().map(|pair| pair.basis.sessions);
        sessions.fold(0, u32::saturating_add)
    }
}

/// A task made ready to be replayed.
#[derive(Debug, Clone)]
pub struct Estimator {
    network: Network,
    limits: Limits,
    agents: Vec<(String, String, String)>,
}

impl Estimator {
    /// Takes in a task and what is known of the past.
    ///
    /// # Errors
    /// The cycles, when the task was not checked and has some.
    pub fn new(subject: &Subject<'_>, past: &Past) -> Result<Estimator, Vec<Cycle>> {
        let network = Network::new(subject, past)?;
        let agents = subject.task.agents.iter();
        Ok(Estimator {
            limits: Limits::new(&network, subject.parallel.get()),
            network,
            agents: agents
                .map(|agent| (agent.id.clone(), agent.model.clone(), agent.effort.clone()))
                .collect(),
        })
    }

    /// Replays the task so often.
    #[must_use]
    pub fn estimate(&self, replays: Replays) -> Estimate {
        let network = &self.network;
        let count = replays.count.max(1);
        let mut stage = Stage::new(network);
        let mut totals = Vec::with_capacity(count as usize);
        // Starts and ends, a row for each replay.
        let mut spans = vec![(0_u64, 0_u64); network.agents * count as usize];
        let mut critical = vec![0_u32; network.agents];
        let mut seen = vec![u32::MAX; network.agents];
        for replay in 0..count {
            let dice = Dice::Drawn {
                seed: replays.seed,
                replay: u64::from(replay),
            };
            let last = stage.play(&self.limits, dice);
            totals.push(last.map_or(0, |last| stage.ended[last as usize]));
            let row = &mut spans[network.agents * replay as usize..][..network.agents];
            for (span, (first, last)) in row.iter_mut().zip(&network.ends) {
                *span = (stage.begun[*first as usize], stage.ended[*last as usize]);
            }
            if let Some(last) = last {
                path::back(&stage, last, |node| {
                    let agent = network.nodes[node as usize].agent as usize;
                    if seen[agent] != replay {
                        seen[agent] = replay;
                        critical[agent] += 1;
                    }
                });
            }
        }
        let critical_path = match stage.play(&self.limits, Dice::Medians) {
            Some(last) => path::legs(network, &stage, last, |agent| &self.agents[agent as usize].0),
            None => Vec::new(),
        };
        totals.sort_unstable();
        Estimate {
            typical: quantile(&totals, 0.5),
            low: quantile(&totals, 0.1),
            high: quantile(&totals, 0.9),
            replays: count,
            parallel: self.limits.parallel,
            agents: self.agents(&spans, &critical, count),
            critical_path,
            pairs: self.pairs(),
        }
    }

    fn agents(&self, spans: &[(u64, u64)], critical: &[u32], count: u32) -> Vec<AgentEstimate> {
        let network = &self.network;
        let mut column = vec![0; count as usize];
        let mut median = |agent: usize, which: fn(&(u64, u64)) -> u64| {
            let rows = spans.chunks_exact(network.agents);
            for (cell, row) in column.iter_mut().zip(rows) {
                *cell = which(&row[agent]);
            }
            let middle = place(column.len(), 0.5);
            Duration::from_millis(*column.select_nth_unstable(middle).1)
        };
        let agents = self.agents.iter().enumerate();
        let agents = agents.map(|(at, (agent, model, effort))| {
            let (first, last) = network.ends[at];
            let spread = network.nodes[first as usize].spread;
            AgentEstimate {
                agent: agent.clone(),
                model: model.clone(),
                effort: effort.clone(),
                start: median(at, |span| span.0),
                end: median(at, |span| span.1),
                critical: f64::from(critical[at]) / f64::from(count),
                basis: self.basis(spread),
                sub_agents: network
                    .groups
                    .iter()
                    .find(|group| group.synthesis == last)
                    .and_then(|group| group.plans.get(group.plans.len() / 2))
                    .map(|(_, size)| *size),
            }
        });
        agents.collect()
    }

    fn basis(&self, spread: u32) -> Basis {
        let pair = self.network.pairs.iter().find(|pair| pair.spread == spread);
        pair.map_or(
            Basis {
                source: Source::Prior,
                sessions: 0,
            },
            |pair| pair.basis,
        )
    }

    fn pairs(&self) -> Vec<PairEstimate> {
        let pairs = self.network.pairs.iter().map(|pair| PairEstimate {
            model: pair.model.clone(),
            effort: pair.effort.clone(),
            part: pair.part,
            typical: Duration::from_millis(u64::from(self.network.spreads[pair.spread as usize].median())),
            basis: pair.basis,
        });
        pairs.collect()
    }

    /// The median under other limits, and the most sessions that were at work at once.
    pub(super) fn typical_under(&self, limits: &Limits, replays: Replays) -> (Duration, u32) {
        let mut stage = Stage::new(&self.network);
        let mut totals: Vec<u64> = (0..replays.count.max(1))
            .map(|replay| {
                let dice = Dice::Drawn {
                    seed: replays.seed,
                    replay: u64::from(replay),
                };
                let last = stage.play(limits, dice);
                last.map_or(0, |last| stage.ended[last as usize])
            })
            .collect();
        totals.sort_unstable();
        let peak = u32::try_from(stage.peak).unwrap_or(u32::MAX);
        (quantile(&totals, 0.5), peak)
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn models(&self) -> &[(String, Option<u32>)] {
        &self.network.models
    }

    /// How many things happen in one replay of the task: what a bench divides by.
    #[doc(hidden)]
    #[must_use]
    pub fn events(&self, replays: Replays) -> u64 {
        let mut stage = Stage::new(&self.network);
        for replay in 0..replays.count {
            let dice = Dice::Drawn {
                seed: replays.seed,
                replay: u64::from(replay),
            };
            stage.play(&self.limits, dice);
        }
        stage.happened
    }
}

/// The place of a quantile among so many, from the least.
fn place(count: usize, share: f64) -> usize {
    let last = u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX);
    (f64::from(last) * share).round() as usize
}

fn quantile(sorted: &[u64], share: f64) -> Duration {
    Duration::from_millis(sorted.get(place(sorted.len(), share)).copied().unwrap_or(0))
}

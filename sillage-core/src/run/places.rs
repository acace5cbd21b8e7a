//! Who gets a place: ready steps in order, under the limits of sessions at work (R3, W10).

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;

use super::definition::RunDefinition;
use crate::planted::{Bug, planted};

/// Ready steps and places taken. The order is: longest remaining path first, then the order of the definition.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// Each step's longest remaining path, by position.
    remaining: Vec<u32>,
    /// Each step's model, by position.
    model: Vec<u32>,
    models: Vec<ModelPlaces>,
    /// Where each model stands among them.
    known: HashMap<String, u32>,
    /// Below zero when a session that held no place went to work by itself: nothing starts until it is made up for.
    free: i64,
}

#[derive(Debug, Clone)]
struct ModelPlaces {
    free: i64,
    ready: BTreeSet<(Reverse<u32>, u32)>,
}

impl Places {
    pub(super) fn new(definition: &RunDefinition, remaining: Vec<u64>) -> Self {
        let agents = &definition.task.agents;
        let mut places = Self {
            remaining: Vec::with_capacity(agents.len()),
            model: Vec::with_capacity(agents.len()),
            models: Vec::new(),
            known: HashMap::new(),
            free: i64::from(definition.parallel.get()) + i64::from(planted(Bug::OneTooMany)),
        };
        for (agent, remaining) in agents.iter().zip(remaining) {
            let limit = definition.task.limits.models.get(&agent.model).copied();
            let limit = limit.filter(|_| !planted(Bug::ModelLimitIgnored));
            places.add(&agent.model, limit, remaining);
        }
        places
    }

    /// Makes room for the next step: its model, the limit of sessions at work with that, and its longest remaining
    /// path.
    pub(super) fn add(&mut self, model: &str, limit: Option<NonZeroU32>, remaining: u64) {
        let index = match self.known.get(model) {
            Some(index) => *index,
            None => {
                let index = u32::try_from(self.models.len()).unwrap_or(u32::MAX);
                self.models.push(ModelPlaces {
                    free: limit.map_or(i64::from(u32::MAX), |n| i64::from(n.get())),
                    ready: BTreeSet::new(),
                });
                self.known.insert(model.to_owned(), index);
                index
            }
        };
        self.model.push(index);
        self.remaining.push(u32::try_from(remaining).unwrap_or(u32::MAX));
    }

    /// The step's longest remaining path.
    pub(super) fn remaining(&self, position: usize) -> u64 {
        u64::from(self.remaining[position])
    }

    fn of(&mut self, position: usize) -> &mut ModelPlaces {
        &mut self.models[self.model[position] as usize]
    }

    /// Its place in the order in which ready steps start.
    pub(super) fn key(&self, position: usize) -> (Reverse<u32>, u32) {
        (
            Reverse(self.remaining[position]),
            u32::try_from(position).unwrap_or(u32::MAX),
        )
    }

    pub(super) fn ready(&mut self, position: usize) {
        let key = self.key(position);
        self.of(position).ready.insert(key);
    }

    pub(super) fn not_ready(&mut self, position: usize) {
        let key = self.key(position);
        self.of(position).ready.remove(&key);
    }

    pub(super) fn take(&mut self, position: usize) {
        self.free -= 1;
        self.of(position).free -= 1;
    }

    pub(super) fn give_back(&mut self, position: usize) {
        self.free += 1;
        self.of(position).free += 1;
    }

    /// All ready steps, whether there is a place for them or not.
    pub(super) fn all_ready(&self) -> Vec<usize> {
        let ready = self.models.iter().flat_map(|model| &model.ready);
        ready.map(|(_, position)| *position as usize).collect()
    }

    /// The steps that may start now, in order.
    pub(super) fn startable(&self) -> Vec<usize> {
        let mut free = self.free;
        if free <= 0 || self.models.iter().all(|m| m.ready.is_empty()) {
            return Vec::new();
        }
        // One head a model, each in order: the best of the heads is the best of all.
        let mut heads: Vec<_> = self
            .models
            .iter()
            .map(|model| {
                let mut rest = model
                    .ready
                    .iter()
                    .copied()
                    .take(usize::try_from(model.free).unwrap_or(0));
                (rest.next(), rest)
            })
            .collect();
        let mut chosen = Vec::new();
        while free > 0 {
            let best = heads
                .iter_mut()
                .filter(|(head, _)| head.is_some())
                .min_by_key(|(head, _)| *head);
            let Some((head, rest)) = best else { break };
            chosen.extend(head.map(|(_, position)| position as usize));
            *head = rest.next();
            free -= 1;
        }
        chosen
    }

    /// Which limit keeps a ready step from starting: the model's name's limit, else the run's.
    pub(super) fn model_is_full(&self, position: usize) -> bool {
        self.models[self.model[position] as usize].free <= 0
    }
}

//! Who gets a place: ready steps in order, under the limits of sessions at work (R3, W10).

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::definition::RunDefinition;

/// Ready steps and places taken. The order is: longest remaining path first, then the order of the definition.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// Each step's longest remaining path, by position.
    remaining: Vec<u32>,
    /// Each step's model, by position.
    model: Vec<u32>,
    models: Vec<ModelPlaces>,
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
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut models = Vec::new();
        let mut model = Vec::with_capacity(definition.task.agents.len());
        for agent in &definition.task.agents {
            let index = *known.entry(&agent.model).or_insert_with(|| {
                let limit = definition
                    .task
                    .limits
                    .models
                    .get(&agent.model)
                    .map_or(i64::from(u32::MAX), |n| i64::from(n.get()));
                models.push(ModelPlaces {
                    free: limit,
                    ready: BTreeSet::new(),
                });
                u32::try_from(models.len() - 1).unwrap_or(u32::MAX)
            });
            model.push(index);
        }
        let remaining = remaining
            .into_iter()
            .map(|n| u32::try_from(n).unwrap_or(u32::MAX))
            .collect();
        Self {
            remaining,
            model,
            models,
            free: i64::from(definition.parallel.get()),
        }
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

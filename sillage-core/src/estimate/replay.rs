//! One replay: who starts when, under the limits that a run has, in the order in which a run gives places.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::draw::{Purpose, draw, falls};
use super::network::{Chance, Network, OUT_OF_REACH};
use super::ready::Ready;

/// No node; no time.
pub(super) const NONE: u32 = u32::MAX;
const NEVER: u64 = u64::MAX;
const NO_CAUSE: Cause = Cause {
    node: NONE,
    place: false,
};

/// How much may go on at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) parallel: u32,
    /// By model, as the network numbers them.
    pub(super) models: Vec<u32>,
}

impl Limits {
    pub(super) fn new(network: &Network, parallel: u32) -> Limits {
        Limits {
            parallel,
            models: network
                .models
                .iter()
                .map(|(_, limit)| limit.unwrap_or(u32::MAX))
                .collect(),
        }
    }
}

/// Where the durations of a replay come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dice {
    /// Drawn for this replay under this seed.
    Drawn { seed: u64, replay: u64 },
    /// Each session at its median, nothing going wrong.
    Medians,
}

/// What happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    /// The node is done.
    Done(u32),
    /// The node waits, and gives its place to others.
    Pauses(u32),
    /// The node is ready to go on.
    Ready(u32),
}

/// Why a node began when it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cause {
    /// The node that let it; none: nothing had to.
    pub(super) node: u32,
    /// Whether it had been ready before and only a place was missing.
    pub(super) place: bool,
}

/// All that a replay writes to: made once, and nothing is allocated while replays go on.
pub(super) struct Stage<'n> {
    network: &'n Network,
    unmet: Vec<u32>,
    /// Time that each node still has to hold a place, once it has begun.
    left: Vec<u32>,
    /// Of that, the time after which it waits; `u32::MAX`: it does not.
    pause_after: Vec<u32>,
    /// For how long it waits, and whether all of its account does.
    pause: Vec<(u32, bool)>,
    pub(super) begun: Vec<u64>,
    pub(super) ended: Vec<u64>,
    ready_since: Vec<u64>,
    pub(super) cause: Vec<Cause>,
    events: BinaryHeap<Reverse<(u64, Happens)>>,
    ready: Vec<Ready>,
    free: i64,
    free_of_model: Vec<i64>,
    /// Until when each account cannot be used.
    closed_until: Vec<u64>,
    /// The node to which something happened last.
    latest: u32,
    /// The most sessions that were at work at once.
    pub(super) peak: i64,
    /// How many things happened, over all replays.
    pub(super) happened: u64,
    /// Told of the places that are free whenever one was taken.
    #[cfg(test)]
    pub(super) watch: Option<Watch>,
}

#[cfg(test)]
pub(super) type Watch = Box<dyn FnMut(i64, &[i64])>;

impl<'n> Stage<'n> {
    pub(super) fn new(network: &'n Network) -> Stage<'n> {
        let nodes = network.nodes.len();
        Stage {
            network,
            unmet: vec![0; nodes],
            left: vec![0; nodes],
            pause_after: vec![NONE; nodes],
            pause: vec![(0, false); nodes],
            begun: vec![NEVER; nodes],
            ended: vec![NEVER; nodes],
            ready_since: vec![NEVER; nodes],
            cause: vec![NO_CAUSE; nodes],
            events: BinaryHeap::with_capacity(nodes),
            ready: vec![Ready::new(nodes); network.classes.len()],
            free: 0,
            free_of_model: vec![0; network.models.len()],
            closed_until: vec![0; network.accounts],
            latest: NONE,
            peak: 0,
            happened: 0,
            #[cfg(test)]
            watch: None,
        }
    }

    /// Plays the graph to its end; says the last node, none where there is none. Times are milliseconds from the launch.
    pub(super) fn play(&mut self, limits: &Limits, dice: Dice) -> Option<u32> {
        self.set(limits, dice);
        let mut now = 0;
        let mut last = None;
        self.start_ready(now, limits, dice);
        while let Some(Reverse((at, happens))) = self.events.pop() {
            now = at;
            last = self.believe(now, happens).or(last);
            // All that happens at one time comes before who starts is decided.
            while let Some(Reverse((at, happens))) = self.events.peek().copied()
                && at == now
            {
                self.events.pop();
                last = self.believe(now, happens).or(last);
            }
            self.start_ready(now, limits, dice);
        }
        last
    }

    /// Everything as at the launch.
    fn set(&mut self, limits: &Limits, dice: Dice) {
        let network = self.network;
        self.unmet.copy_from_slice(&network.unmet);
        self.begun.fill(NEVER);
        self.ended.fill(NEVER);
        self.closed_until.fill(0);
        self.free = i64::from(limits.parallel);
        for (free, limit) in self.free_of_model.iter_mut().zip(&limits.models) {
            *free = i64::from(*limit);
        }
        self.latest = NONE;
        for group in &network.groups {
            let plans = group.plans.len() as u64;
            let chosen = match dice {
                Dice::Medians => plans / 2,
                Dice::Drawn { seed, replay } => draw(group.key ^ seed, replay, Purpose::Group) % plans.max(1),
            };
            // A coordinator without a plan to make would wait for ever.
            let Some((first, size)) = usize::try_from(chosen).ok().and_then(|at| group.plans.get(at)) else {
                continue;
            };
            self.unmet[group.synthesis as usize] = *size;
            for node in *first..first + size {
                self.unmet[node as usize] -= OUT_OF_REACH;
            }
        }
        for (unmet, node) in self.unmet.iter().zip(0_u32..) {
            if *unmet == 0 {
                self.ready_since[node as usize] = 0;
                self.cause[node as usize] = NO_CAUSE;
                let node = &network.nodes[node as usize];
                self.ready[node.class as usize].insert(node.rank);
            }
        }
    }

    /// Says the node, where it is done.
    fn believe(&mut self, now: u64, happens: Happens) -> Option<u32> {
        self.happened += 1;
        match happens {
            Happens::Done(node) => {
                self.give_back(node);
                self.ended[node as usize] = now;
                self.latest = node;
                for &child in self.network.children(node) {
                    let unmet = &mut self.unmet[child as usize];
                    *unmet -= 1;
                    if *unmet == 0 {
                        self.is_ready(child, now);
                    }
                }
                return Some(node);
            }
            Happens::Pauses(node) => {
                self.give_back(node);
                self.latest = node;
                let (pause, of_account) = self.pause[node as usize];
                let mut until = now + u64::from(pause);
                if of_account {
                    let (_, account) = self.network.classes[self.network.nodes[node as usize].class as usize];
                    let closed = &mut self.closed_until[account as usize];
                    *closed = until.max(*closed);
                    until = *closed;
                }
                self.events.push(Reverse((until, Happens::Ready(node))));
            }
            Happens::Ready(node) => {
                self.latest = node;
                self.is_ready(node, now);
            }
        }
        None
    }

    fn is_ready(&mut self, node: u32, now: u64) {
        self.ready_since[node as usize] = now;
        if self.begun[node as usize] == NEVER {
            self.cause[node as usize] = Cause {
                node: self.latest,
                place: false,
            };
        }
        let node = &self.network.nodes[node as usize];
        self.ready[node.class as usize].insert(node.rank);
    }

    fn give_back(&mut self, node: u32) {
        let (model, _) = self.network.classes[self.network.nodes[node as usize].class as usize];
        self.free += 1;
        self.free_of_model[model as usize] += 1;
    }

    /// Ready nodes in order, while there are places: the same as a run does (R3).
    fn start_ready(&mut self, now: u64, limits: &Limits, dice: Dice) {
        while self.free > 0 {
            let classes = self.network.classes.iter().zip(&self.ready);
            let heads = classes.filter_map(|((model, account), ready)| {
                let open =
                    self.free_of_model[*model as usize] > 0 && self.closed_until[*account as usize] <= now;
                if open { ready.first() } else { None }
            });
            let Some(rank) = heads.min() else { return };
            self.start(self.network.by_rank[rank as usize], now, dice);
            #[cfg(test)]
            if let Some(watch) = &mut self.watch {
                watch(self.free, &self.free_of_model);
            }
            self.peak = self.peak.max(i64::from(limits.parallel) - self.free);
        }
    }

    fn start(&mut self, node: u32, now: u64, dice: Dice) {
        let at = node as usize;
        let facts = &self.network.nodes[at];
        let (model, _) = self.network.classes[facts.class as usize];
        self.ready[facts.class as usize].remove(facts.rank);
        self.free -= 1;
        self.free_of_model[model as usize] -= 1;
        if self.begun[at] == NEVER {
            self.begun[at] = now;
            if self.ready_since[at] != now {
                self.cause[at] = Cause {
                    node: self.latest,
                    place: true,
                };
            }
            self.throw(node, dice);
        }
        let event = match self.pause_after[at] {
            NONE => (now + u64::from(self.left[at]), Happens::Done(node)),
            after => {
                self.left[at] -= after;
                self.pause_after[at] = NONE;
                (now + u64::from(after), Happens::Pauses(node))
            }
        };
        self.events.push(Reverse(event));
    }

    /// How long the node works, and what happens to it meanwhile.
    fn throw(&mut self, node: u32, dice: Dice) {
        let network = self.network;
        let at = node as usize;
        let facts = &network.nodes[at];
        let spread = &network.spreads[facts.spread as usize];
        self.pause_after[at] = NONE;
        let Dice::Drawn { seed, replay } = dice else {
            self.left[at] = spread.median().min(facts.most).saturating_add(network.around);
            return;
        };
        let key = facts.key ^ seed;
        let mut work = spread.at(draw(key, replay, Purpose::Work));
        let luck = &network.luck[facts.class as usize];
        let strikes = |chance: Chance, whether: Purpose, how_long: Purpose| {
            let struck = chance.below > 0 && falls(draw(key, replay, whether), chance.below);
            struck.then(|| network.spreads[chance.spread as usize].at(draw(key, replay, how_long)))
        };
        if let Some(more) = strikes(luck.returned, Purpose::Returned, Purpose::Correction) {
            work = work.saturating_add(more);
        }
        self.left[at] = work.min(facts.most).saturating_add(network.around);
        let own = strikes(luck.pauses, Purpose::Pauses, Purpose::Pause).map(|pause| (pause, false));
        let account = || strikes(luck.closes, Purpose::Closes, Purpose::Closure).map(|pause| (pause, true));
        if let Some(pause) = own.or_else(account) {
            self.pause[at] = pause;
            // Anywhere in its work.
            let share = draw(key, replay, Purpose::PauseAt) >> 32;
            let after = (u64::from(self.left[at]) * share) >> 32;
            self.pause_after[at] = u32::try_from(after).unwrap_or(0);
        }
    }
}

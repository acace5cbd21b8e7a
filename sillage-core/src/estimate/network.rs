//! A task as replays read it: flat arrays, made once.
//!
//! An agent with a fixed place is one node; a coordinator is two, its plan and its report, with the sub-agents of each
//! plan that it may make between them. Which of these plans it makes is drawn in each replay; the nodes of the others
//! are then never reached.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::basis::{self, Basis};
use super::draw::{key, threshold};
use super::past::{Events, GroupSample, Part, Past, millis};
use super::spread::Spread;
use super::subject::Subject;
use crate::graph::{Cycle, Graph};
use crate::task::{AgentDefinition, SubAgentRules};

/// Added to what a node of a plan waits for: nothing reaches it unless the replay takes the plan.
pub(super) const OUT_OF_REACH: u32 = 1 << 30;

/// What is fixed about a task and its past.
#[derive(Debug, Clone)]
pub(super) struct Network {
    /// Agents of the task.
    pub(super) agents: usize,
    pub(super) nodes: Vec<Node>,
    /// How many nodes each one waits for.
    pub(super) unmet: Vec<u32>,
    child_starts: Vec<u32>,
    children: Vec<u32>,
    /// The nodes in the order in which ready ones start.
    pub(super) by_rank: Vec<u32>,
    pub(super) groups: Vec<Group>,
    /// Models, each with its limit of sessions at work.
    pub(super) models: Vec<(String, Option<u32>)>,
    /// Model and account of the nodes that start alike.
    pub(super) classes: Vec<(u32, u32)>,
    pub(super) accounts: usize,
    pub(super) spreads: Vec<Spread>,
    pub(super) pairs: Vec<Pair>,
    pub(super) luck: Vec<Luck>,
    /// First and last node of each agent.
    pub(super) ends: Vec<(u32, u32)>,
    /// Time around the work of each session, in milliseconds.
    pub(super) around: u32,
}

/// A session's part in the graph.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Under which it draws.
    pub(super) key: u64,
    /// Index of how long it works.
    pub(super) spread: u32,
    /// The most that it may work, in milliseconds.
    pub(super) most: u32,
    /// Index of its model and account.
    pub(super) class: u32,
    /// Its place in the order in which ready nodes start.
    pub(super) rank: u32,
    /// The agent of the task that it belongs to.
    pub(super) agent: u32,
    /// Its place in the coordinator's plan, where it is a sub-agent.
    pub(super) sub_agent: Option<u32>,
    pub(super) part: Part,
}

/// What sessions of one model and effort take for one part.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) part: Part,
    pub(super) model: String,
    pub(super) effort: String,
    pub(super) basis: Basis,
    /// Index of how long they work.
    pub(super) spread: u32,
}

/// A coordinator.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) key: u64,
    /// The node of its report.
    pub(super) synthesis: u32,
    /// First node and number of nodes of each plan that it may make, by ascending size.
    pub(super) plans: Vec<(u32, u32)>,
}

/// What may happen to the sessions of a class: thresholds of draws, and indices of how long it takes.
#[derive(Debug, Clone, Default)]
pub(super) struct Luck {
    pub(super) returned: Chance,
    pub(super) pauses: Chance,
    pub(super) closes: Chance,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chance {
    pub(super) below: u32,
    pub(super) spread: u32,
}

impl Network {
    pub(super) fn children(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.children[self.child_starts[node] as usize..self.child_starts[node + 1] as usize]
    }

    /// # Errors
    /// The cycles, when the task was not checked and has some.
    pub(super) fn new(subject: &Subject<'_>, past: &Past) -> Result<Network, Vec<Cycle>> {
        let graph = Graph::of(subject.task)?;
        Ok(Builder::new(subject, past).build(&graph))
    }
}

/// A network in the making.
struct Builder<'a> {
    subject: &'a Subject<'a>,
    past: &'a Past,
    nodes: Vec<Node>,
    /// What orders each node: longest remaining path, position of its step.
    orders: Vec<(Reverse<u64>, u32)>,
    edges: Vec<(u32, u32)>,
    groups: Vec<Group>,
    spreads: Vec<Spread>,
    pairs: Vec<Pair>,
    known: HashMap<(Part, String, String), u32>,
    models: Vec<(String, Option<u32>)>,
    accounts: BTreeMap<String, u32>,
    classes: Vec<(u32, u32)>,
    luck: Vec<Luck>,
    class_of: HashMap<String, u32>,
    /// The position of the next sub-agent's step.
    next_position: u32,
}

impl<'a> Builder<'a> {
    fn new(subject: &'a Subject<'a>, past: &'a Past) -> Self {
        Builder {
            subject,
            past,
            nodes: Vec::new(),
            orders: Vec::new(),
            edges: Vec::new(),
            groups: Vec::new(),
            spreads: Vec::new(),
            pairs: Vec::new(),
            known: HashMap::new(),
            models: Vec::new(),
            accounts: BTreeMap::new(),
            classes: Vec::new(),
            luck: Vec::new(),
            class_of: HashMap::new(),
            next_position: number(subject.task.agents.len()),
        }
    }

    fn build(mut self, graph: &Graph) -> Network {
        let agents = &self.subject.task.agents;
        // The same weights as a run's: a step counts one.
        let remaining = graph.longest_remaining(&vec![1; graph.len()]);
        let mut ends = Vec::with_capacity(agents.len());
        for ((position, agent), remaining) in (0..).zip(agents).zip(remaining) {
            ends.push(match &agent.sub_agents {
                None => {
                    let order = (Reverse(remaining), position);
                    let node = self.node(position, agent, Part::Mission, None, order);
                    (node, node)
                }
                Some(rules) => self.coordinator(position, agent, rules, remaining),
            });
        }
        let own = ends.clone();
        for (node, &(_, last)) in (0..).zip(&own) {
            for &child in graph.children(node) {
                self.edges.push((last, own[child as usize].0));
            }
        }
        self.finish(ends)
    }

    fn finish(mut self, ends: Vec<(u32, u32)>) -> Network {
        let count = self.nodes.len();
        let mut by_rank: Vec<u32> = (0..number(count)).collect();
        by_rank.sort_by_key(|node| (self.orders[*node as usize], *node));
        for (rank, node) in (0..).zip(&by_rank) {
            self.nodes[*node as usize].rank = rank;
        }
        let mut unmet = vec![0_u32; count];
        self.edges.sort_unstable();
        let mut child_starts = Vec::with_capacity(count + 1);
        let mut children = Vec::with_capacity(self.edges.len());
        for (from, to) in &self.edges {
            child_starts.resize(*from as usize + 1, number(children.len()));
            children.push(*to);
            unmet[*to as usize] += 1;
        }
        child_starts.resize(count + 1, number(children.len()));
        for group in &self.groups {
            unmet[group.synthesis as usize] = OUT_OF_REACH;
            for (first, size) in &group.plans {
                for node in *first..first + size {
                    unmet[node as usize] += OUT_OF_REACH;
                }
            }
        }
        Network {
            agents: ends.len(),
            nodes: self.nodes,
            unmet,
            child_starts,
            children,
            by_rank,
            groups: self.groups,
            models: self.models,
            classes: self.classes,
            accounts: self.accounts.len(),
            spreads: self.spreads,
            pairs: self.pairs,
            luck: self.luck,
            ends,
            around: self.past.around(),
        }
    }

    /// A coordinator's nodes; says its first and its last.
    fn coordinator(
        &mut self,
        position: u32,
        agent: &AgentDefinition,
        rules: &SubAgentRules,
        remaining: u64,
    ) -> (u32, u32) {
        let order = (Reverse(remaining), position);
        let planning = self.node(position, agent, Part::Planning, None, order);
        let synthesis = self.node(position, agent, Part::Synthesis, None, order);
        let mut plans = Vec::new();
        for plan in self.plans(agent, rules) {
            // What cannot be a plan's order was no plan of ours.
            let Ok(graph) = Graph::new(number(plan.sub_agents.len()), &plan.after) else {
                continue;
            };
            let after = graph.longest_remaining(&vec![1; graph.len()]);
            let first = number(self.nodes.len());
            for ((at, (model, effort)), after) in (0..).zip(&plan.sub_agents).zip(after) {
                let order = (Reverse(after.saturating_add(remaining)), self.next_position + at);
                let sub = AgentDefinition {
                    id: format!("{}/{at}", agent.id),
                    model: model.clone(),
                    effort: effort.clone(),
                    max_duration: agent.max_duration,
                    ..AgentDefinition::default()
                };
                let node = self.node(position, &sub, Part::Mission, Some(at), order);
                if graph.parents(at).is_empty() {
                    self.edges.push((planning, node));
                }
                self.edges
                    .extend(graph.children(at).iter().map(|child| (node, first + child)));
                self.edges.push((node, synthesis));
            }
            plans.push((first, number(plan.sub_agents.len())));
        }
        self.next_position += plans.iter().map(|(_, size)| *size).max().unwrap_or(0);
        plans.sort_by_key(|(first, size)| (*size, *first));
        self.groups.push(Group {
            key: key(&agent.id, u64::MAX),
            synthesis,
            plans,
        });
        (planning, synthesis)
    }

    /// The plans that a coordinator may make: those that it made, as the task allows them now; else one of as many
    /// sub-agents as it may have.
    fn plans(&self, agent: &AgentDefinition, rules: &SubAgentRules) -> Vec<GroupSample> {
        let fallback = fallback_pair(agent, rules);
        let known = self
            .past
            .groups
            .get(&(self.subject.task_name(), agent.id.clone()));
        let mut plans: Vec<GroupSample> = known.into_iter().flatten().cloned().collect();
        for plan in &mut plans {
            plan.sub_agents.truncate(rules.max.get() as usize);
            let most = number(plan.sub_agents.len());
            plan.after.retain(|(first, then)| *first < most && *then < most);
            for pair in &mut plan.sub_agents {
                if !is_allowed(rules, pair) {
                    *pair = fallback.clone();
                }
            }
        }
        if plans.is_empty() {
            plans.push(GroupSample {
                task: String::new(),
                agent: agent.id.clone(),
                sub_agents: vec![fallback; rules.max.get() as usize],
                after: Vec::new(),
            });
        }
        plans
    }

    fn node(
        &mut self,
        position: u32,
        agent: &AgentDefinition,
        part: Part,
        sub_agent: Option<u32>,
        order: (Reverse<u64>, u32),
    ) -> u32 {
        let node = Node {
            key: key(&agent.id, part as u64),
            spread: self.spread(part, &agent.model, &agent.effort),
            most: agent.max_duration.map_or(u32::MAX, millis),
            class: self.class(&agent.model),
            rank: 0,
            agent: position,
            sub_agent,
            part,
        };
        self.nodes.push(node);
        self.orders.push(order);
        number(self.nodes.len() - 1)
    }

    fn spread(&mut self, part: Part, model: &str, effort: &str) -> u32 {
        let name = (part, model.to_owned(), effort.to_owned());
        if let Some(known) = self.known.get(&name) {
            return *known;
        }
        let (spread, basis) = basis::worked(self.past, part, model, effort);
        let index = self.add(spread);
        self.pairs.push(Pair {
            part,
            model: model.to_owned(),
            effort: effort.to_owned(),
            basis,
            spread: index,
        });
        self.known.insert(name, index);
        index
    }

    fn add(&mut self, spread: Spread) -> u32 {
        self.spreads.push(spread);
        number(self.spreads.len() - 1)
    }

    fn class(&mut self, model: &str) -> u32 {
        if let Some(known) = self.class_of.get(model) {
            return *known;
        }
        let account = self.subject.account(model);
        let next = number(self.accounts.len());
        let index = *self.accounts.entry(account.to_owned()).or_insert(next);
        let limit = self.subject.task.limits.models.get(model);
        self.models
            .push((model.to_owned(), limit.map(|limit| limit.get())));
        let past = self.past;
        let luck = Luck {
            returned: self.chance(&basis::happens(past.corrections.iter(), model)),
            pauses: self.chance(&basis::happens(past.pauses.iter(), account)),
            closes: self.chance(&basis::happens(past.closures.iter(), account)),
        };
        self.luck.push(luck);
        self.classes.push((number(self.models.len() - 1), index));
        let class = number(self.classes.len() - 1);
        self.class_of.insert(model.to_owned(), class);
        class
    }

    fn chance(&mut self, events: &Events) -> Chance {
        match Spread::of(events.took.clone()) {
            None => Chance::default(),
            Some(spread) => Chance {
                below: threshold(events.share()),
                spread: self.add(spread),
            },
        }
    }
}

fn is_allowed(rules: &SubAgentRules, (model, effort): &(String, String)) -> bool {
    rules
        .allow
        .iter()
        .any(|pair| pair.model == *model && pair.efforts.contains(effort))
}

/// What a sub-agent of which nothing is known works with: what its coordinator does where that is allowed, else the
/// first that is.
fn fallback_pair(agent: &AgentDefinition, rules: &SubAgentRules) -> (String, String) {
    let own = (agent.model.clone(), agent.effort.clone());
    let first = rules
        .allow
        .iter()
        .find_map(|pair| Some((pair.model.clone(), pair.efforts.first()?.clone())));
    match first {
        Some(first) if !is_allowed(rules, &own) => first,
        Some(_) | None => own,
    }
}

/// Nodes and edges are counted in 32 bits, as in the graph that they are made from.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

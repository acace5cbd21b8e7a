//! The graph of a task's agents: an order, who waits for whom, and what may go on at once.
//!
//! Made once and then read, in flat arrays: 100,000 agents cost a few allocations, and nothing here recurses. It grows
//! by whole groups at its end, when sub-agents come to be.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::task::Task;

/// A graph without cycles over the nodes `0..len`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    children: Adjacency,
    parents: Adjacency,
    order: Vec<u32>,
}

/// Nodes that wait for one another: a strongly connected component, told by one of its shortest cycles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// The nodes of a cycle in the order of its links, from the least one; the last leads back to the first.
    pub along: Vec<u32>,
    /// The other nodes of the component, each on some cycle with them, in ascending order.
    pub tangled: Vec<u32>,
}

impl Cycle {
    /// The cycle in words; `names` are those of the nodes.
    pub(crate) fn told(&self, names: &[&str]) -> String {
        let named = |nodes: &[u32], between: &str| {
            let named: Vec<String> = nodes
                .iter()
                .map(|&node| format!("`{}`", names[node as usize]))
                .collect();
            named.join(between)
        };
        let first = self
            .along
            .first()
            .map(|&node| named(&[node], ""))
            .unwrap_or_default();
        let mut told = format!(
            "these agents wait for one another: {} -> {first}",
            named(&self.along, " -> ")
        );
        if !self.tangled.is_empty() {
            told = format!("{told}, and with them {}", named(&self.tangled, ", "));
        }
        told
    }
}

impl Graph {
    /// The graph of a task that has passed its checks. Links between the same two agents count once.
    ///
    /// # Errors
    /// The cycles, when the task was not checked and has some.
    pub fn of(task: &Task) -> Result<Graph, Vec<Cycle>> {
        let edges: Vec<(u32, u32)> = task
            .links
            .iter()
            .map(|link| (link.from.agent, link.to.agent))
            .collect();
        let nodes = u32::try_from(task.agents.len()).unwrap_or(u32::MAX);
        Graph::new(nodes, &edges)
    }

    /// The graph with these edges, which may come in any order and more than once. Edges to or from nodes past
    /// the end are left out. Takes time in proportion to nodes and edges, but for sorting the edges.
    ///
    /// # Errors
    /// The cycles, one for each strongly connected component, by their least node.
    pub fn new(nodes: u32, edges: &[(u32, u32)]) -> Result<Graph, Vec<Cycle>> {
        let children = Adjacency::new(nodes, edges.iter().copied());
        let mut cycles = Vec::new();
        let mut order = Vec::with_capacity(nodes as usize);
        for component in components(nodes, &children) {
            match component.as_slice() {
                [node] if !children.has(*node, *node) => order.push(*node),
                _ => cycles.push(shortest_cycle(&children, component)),
            }
        }
        if !cycles.is_empty() {
            cycles.sort_by_key(|cycle| cycle.along.first().copied());
            return Err(cycles);
        }
        let parents = Adjacency::new(nodes, children.edges().map(|(from, to)| (to, from)));
        Ok(Graph {
            children,
            parents,
            order,
        })
    }

    /// Adds the nodes of another graph after its own, with their edges: node 0 there becomes the next node here. No edge
    /// joins the two, so that no cycle can come of it. Takes time in proportion to what is added.
    pub fn append(&mut self, more: &Graph) {
        let first = offset(self.len());
        self.children.append(&more.children, first);
        self.parents.append(&more.parents, first);
        self.order.extend(more.order.iter().map(|node| node + first));
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is no node.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// All nodes, each after its parents.
    #[must_use]
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The nodes that wait for `node`, ascending.
    ///
    /// # Panics
    /// When there is no such node, as do the other questions about one node.
    #[must_use]
    pub fn children(&self, node: u32) -> &[u32] {
        self.children.of(node)
    }

    /// The nodes that `node` waits for, ascending.
    #[must_use]
    pub fn parents(&self, node: u32) -> &[u32] {
        self.parents.of(node)
    }

    /// For each node the weight of the heaviest path that starts with it, itself included; `u64::MAX` where that
    /// cannot be counted. Ready steps start by it, the largest first (R3).
    ///
    /// # Panics
    /// When there is not one weight a node.
    #[must_use]
    pub fn longest_remaining(&self, weights: &[u64]) -> Vec<u64> {
        assert_eq!(weights.len(), self.len(), "one weight a node");
        let mut remaining = weights.to_vec();
        for &node in self.order.iter().rev() {
            let after = self
                .children(node)
                .iter()
                .map(|&child| remaining[child as usize])
                .max()
                .unwrap_or(0);
            remaining[node as usize] = remaining[node as usize].saturating_add(after);
        }
        remaining
    }

    /// All that follows `node`, itself not included, in the order of [`Graph::order`].
    #[must_use]
    pub fn descendants(&self, node: u32) -> Vec<u32> {
        self.reached(node, &self.children)
    }

    /// All that `node` follows, itself not included, in the order of [`Graph::order`].
    #[must_use]
    pub fn ancestors(&self, node: u32) -> Vec<u32> {
        self.reached(node, &self.parents)
    }

    fn reached(&self, node: u32, next: &Adjacency) -> Vec<u32> {
        let mut seen = vec![false; self.len()];
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            for &other in next.of(node) {
                if !std::mem::replace(&mut seen[other as usize], true) {
                    open.push(other);
                }
            }
        }
        self.order
            .iter()
            .copied()
            .filter(|&other| seen[other as usize])
            .collect()
    }

    /// For each node, whether another one may run at the same time: one that it neither follows nor precedes
    /// (R15). Takes time in proportion to nodes and edges.
    ///
    /// In a fixed topological order, all nodes after `v` descend from it exactly when `v` alone is ready once the
    /// nodes before it are done; read backwards, all before it are its ancestors. Both must hold of the *same*
    /// order, or a node before `v` in one and before it in the other would escape.
    #[must_use]
    pub fn have_company(&self) -> Vec<bool> {
        let last = self.len().saturating_sub(1);
        let mut position = vec![0_usize; self.len()];
        for (at, &node) in self.order.iter().enumerate() {
            position[node as usize] = at;
        }
        let forwards = alone(self.order.iter().map(|&node| {
            self.parents(node)
                .iter()
                .map(|&parent| position[parent as usize] + 1)
                .max()
                .unwrap_or(0)
        }));
        let backwards = alone(self.order.iter().rev().map(|&node| {
            self.children(node)
                .iter()
                .map(|&child| last - position[child as usize] + 1)
                .max()
                .unwrap_or(0)
        }));
        let mut company = vec![true; self.len()];
        for (at, &node) in self.order.iter().enumerate() {
            company[node as usize] = !(forwards[at] && backwards[last - at]);
        }
        company
    }
}

/// For each position of an order, whether its node alone is ready when all before it are done. `ready_after` gives
/// for each position how many nodes must be done before its node is ready.
fn alone(ready_after: impl ExactSizeIterator<Item = usize>) -> Vec<bool> {
    let mut becoming_ready = vec![0_usize; ready_after.len() + 1];
    let len = ready_after.len();
    for done in ready_after {
        becoming_ready[done] += 1;
    }
    let mut ready_or_done = 0;
    (0..len)
        .map(|at| {
            ready_or_done += becoming_ready[at];
            ready_or_done == at + 1
        })
        .collect()
}

/// The strongly connected components, parents before children.
fn components(nodes: u32, children: &Adjacency) -> impl Iterator<Item = Vec<u32>> {
    let mut graph: DiGraph<(), (), u32> = DiGraph::with_capacity(nodes as usize, children.targets.len());
    for _ in 0..nodes {
        graph.add_node(());
    }
    for (from, to) in children.edges() {
        graph.add_edge(from.into(), to.into(), ());
    }
    // Not petgraph's Tarjan, which recurses: a chain of 100,000 agents would end it.
    let components = kosaraju_scc(&graph);
    // It gives children first. Its numbers have the 32 bits that were asked for.
    let number = |node: NodeIndex<u32>| u32::try_from(node.index()).unwrap_or(u32::MAX);
    components
        .into_iter()
        .rev()
        .map(move |component| component.into_iter().map(number).collect())
}

/// The neighbours of every node, one after the other in one array.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Adjacency {
    /// Where each node's neighbours start in `targets`; one more for the end of the last.
    starts: Vec<u32>,
    /// Neighbours, ascending and without repetition for each node.
    targets: Vec<u32>,
}

impl Adjacency {
    fn new(nodes: u32, edges: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut edges: Vec<(u32, u32)> = edges.filter(|&(from, to)| from < nodes && to < nodes).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut starts = Vec::with_capacity(nodes as usize + 1);
        let mut targets = Vec::with_capacity(edges.len());
        for (from, to) in edges {
            starts.resize(from as usize + 1, offset(targets.len()));
            targets.push(to);
        }
        starts.resize(nodes as usize + 1, offset(targets.len()));
        Adjacency { starts, targets }
    }

    /// Adds the nodes of another, whose node 0 becomes `first`, the next one here.
    fn append(&mut self, more: &Adjacency, first: u32) {
        let before = offset(self.targets.len());
        // The end of the last node's neighbours is where those of the next start.
        self.starts.pop();
        self.starts.extend(more.starts.iter().map(|start| start + before));
        self.targets
            .extend(more.targets.iter().map(|target| target + first));
    }

    fn of(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.targets[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    fn has(&self, from: u32, to: u32) -> bool {
        self.of(from).binary_search(&to).is_ok()
    }

    fn edges(&self) -> impl Iterator<Item = (u32, u32)> {
        (0_u32..).zip(self.starts.windows(2)).flat_map(|(from, bounds)| {
            self.targets[bounds[0] as usize..bounds[1] as usize]
                .iter()
                .map(move |&to| (from, to))
        })
    }
}

/// Edges are counted in 32 bits: a task's text is far too short for more.
fn offset(edges: usize) -> u32 {
    u32::try_from(edges).unwrap_or(u32::MAX)
}

/// The shortest way from the least node of a strongly connected component back to itself.
fn shortest_cycle(children: &Adjacency, mut component: Vec<u32>) -> Cycle {
    component.sort_unstable();
    let start = component[0];
    // For each node of the component the one it was reached from, by its rank in the component.
    let mut reached_from: Vec<Option<u32>> = vec![None; component.len()];
    let mut queue = std::collections::VecDeque::from([start]);
    'search: while let Some(node) = queue.pop_front() {
        for &child in children.of(node) {
            let Ok(rank) = component.binary_search(&child) else {
                continue;
            };
            if reached_from[rank].is_none() {
                reached_from[rank] = Some(node);
                if child == start {
                    break 'search;
                }
                queue.push_back(child);
            }
        }
    }
    let mut along = vec![];
    let mut at = start;
    while let Some(from) = component
        .binary_search(&at)
        .ok()
        .and_then(|rank| reached_from[rank])
    {
        along.push(from);
        at = from;
        if from == start {
            break;
        }
    }
    along.reverse();
    let on_cycle: std::collections::HashSet<u32> = along.iter().copied().collect();
    let tangled = component
        .into_iter()
        .filter(|node| !on_cycle.contains(node))
        .collect();
    Cycle { along, tangled }
}

#[cfg(test)]
mod tests;

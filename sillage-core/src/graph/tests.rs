use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn graph(nodes: u32, edges: &[(u32, u32)]) -> Graph {
    Graph::new(nodes, edges).unwrap()
}

fn along(nodes: u32, edges: &[(u32, u32)]) -> Vec<Vec<u32>> {
    Graph::new(nodes, edges)
        .unwrap_err()
        .into_iter()
        .map(|cycle| cycle.along)
        .collect()
}

#[test]
fn neighbours_come_once_and_in_order() {
    let graph = graph(4, &[(0, 3), (0, 1), (1, 3), (0, 3), (2, 3)]);
    assert_eq!(graph.children(0), [1, 3]);
    assert_eq!(graph.children(3), [0_u32; 0]);
    assert_eq!(graph.parents(3), [0, 1, 2]);
    assert_eq!(
        graph.descendants(0),
        graph
            .order()
            .iter()
            .copied()
            .filter(|n| [1, 3].contains(n))
            .collect::<Vec<_>>()
    );
    assert_eq!(graph.ancestors(1), [0]);
}

#[test]
fn w8_cycles_are_told_in_order_one_a_component() {
    assert_eq!(along(3, &[(2, 0), (0, 1), (1, 2)]), [[0, 1, 2]]);
    assert_eq!(along(4, &[(3, 2), (2, 3), (1, 0), (0, 1)]), [[0, 1], [2, 3]]);
    assert_eq!(along(2, &[(1, 1)]), [[1]]);
    let figure_of_eight = Graph::new(3, &[(0, 1), (1, 0), (1, 2), (2, 1)]).unwrap_err();
    assert_eq!(
        figure_of_eight,
        [Cycle {
            along: vec![0, 1],
            tangled: vec![2]
        }]
    );
    // The long way round is not told when there is a short one.
    assert_eq!(
        along(5, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 0)]),
        [[0, 1]]
    );
}

#[test]
fn r3_the_longest_remaining_path_counts_the_node_itself() {
    let graph = graph(4, &[(0, 1), (1, 3), (0, 2), (2, 3)]);
    assert_eq!(graph.longest_remaining(&[1, 1, 5, 2]), [8, 3, 7, 2]);
    assert_eq!(graph.longest_remaining(&[1, u64::MAX, 0, 2])[0], u64::MAX);
}

#[test]
fn r15_an_isolated_node_is_company_for_all() {
    assert_eq!(graph(3, &[(0, 1), (1, 2)]).have_company(), [false; 3]);
    assert_eq!(graph(4, &[(1, 2), (2, 3)]).have_company(), [true; 4]);
    assert_eq!(
        graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]).have_company(),
        [false, true, true, false]
    );
    assert_eq!(graph(1, &[]).have_company(), [false]);
    assert_eq!(graph(0, &[]).have_company(), [false; 0]);
}

/// Chains end whatever recurses; layers end whatever looks at all pairs.
#[test]
fn w12_a_hundred_thousand_nodes_take_flat_arrays_and_no_recursion() {
    const NODES: u32 = 100_000;
    let chain: Vec<(u32, u32)> = (1..NODES).map(|node| (node - 1, node)).collect();
    let long = graph(NODES, &chain);
    assert_eq!(
        long.longest_remaining(&vec![1; NODES as usize])[0],
        u64::from(NODES)
    );
    assert!(!long.have_company().contains(&true));
    assert_eq!(
        (long.children.targets.len(), long.parents.targets.len()),
        (chain.len(), chain.len())
    );

    let mut ring = chain.clone();
    ring.push((NODES - 1, 0));
    assert_eq!(along(NODES, &ring)[0].len(), NODES as usize);

    let layers: Vec<(u32, u32)> = (0..NODES - 10)
        .flat_map(|n| (0..4).map(move |k| (n, n / 10 * 10 + 10 + (n + k) % 10)))
        .collect();
    let wide = graph(NODES, &layers);
    assert_eq!(wide.children.targets.len(), layers.len());
    assert!(!wide.have_company().contains(&false));
    assert_eq!(
        wide.longest_remaining(&vec![1; NODES as usize])[0],
        u64::from(NODES / 10)
    );

    let star: Vec<(u32, u32)> = (1..NODES).map(|node| (0, node)).collect();
    assert_eq!(graph(NODES, &star).have_company()[..2], [false, true]);
}

/// Edges from lower to higher numbers, then renamed, so that the order of the numbers says nothing.
fn acyclic() -> impl Strategy<Value = (u32, Vec<(u32, u32)>)> {
    (1_u32..9).prop_flat_map(|nodes| {
        let edges = prop::collection::vec((0..nodes, 0..nodes), 0..14);
        let names = Just((0..nodes).collect::<Vec<u32>>()).prop_shuffle();
        (Just(nodes), edges, names).prop_map(|(nodes, edges, names)| {
            let edges = edges
                .into_iter()
                .filter(|(a, b)| a != b)
                .map(|(a, b)| (names[a.min(b) as usize], names[a.max(b) as usize]));
            (nodes, edges.collect())
        })
    })
}

proptest! {
    #[test]
    fn every_node_comes_after_its_parents((nodes, edges) in acyclic()) {
        let graph = Graph::new(nodes, &edges).unwrap();
        prop_assert_eq!(graph.order().iter().copied().collect::<BTreeSet<_>>(), (0..nodes).collect());
        let at = |node| graph.order().iter().position(|&other| other == node);
        for (from, to) in edges {
            prop_assert!(at(from) < at(to));
            prop_assert!(graph.children(from).contains(&to) && graph.parents(to).contains(&from));
        }
    }

    #[test]
    fn r15_company_is_what_comparing_all_pairs_would_say((nodes, edges) in acyclic()) {
        let graph = Graph::new(nodes, &edges).unwrap();
        let expected: Vec<bool> = (0..nodes)
            .map(|node| graph.descendants(node).len() + graph.ancestors(node).len() + 1 < nodes as usize)
            .collect();
        prop_assert_eq!(graph.have_company(), expected);
    }

    #[test]
    fn w8_a_cycle_told_is_a_cycle((nodes, edges) in (1_u32..9).prop_flat_map(|n| (Just(n), prop::collection::vec((0..n, 0..n), 0..20)))) {
        if let Err(cycles) = Graph::new(nodes, &edges) {
            let mut seen = BTreeSet::new();
            for cycle in cycles {
                let next = cycle.along.iter().cycle().skip(1);
                for (from, to) in cycle.along.iter().zip(next) {
                    prop_assert!(edges.contains(&(*from, *to)));
                }
                for node in cycle.along.iter().chain(&cycle.tangled) {
                    prop_assert!(seen.insert(*node), "each node in one component, and once");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn a_graph_that_grew_is_the_graph_of_both(
        (nodes, edges) in acyclic(), (more, added) in acyclic(),
    ) {
        let mut grown = Graph::new(nodes, &edges).unwrap();
        grown.append(&Graph::new(more, &added).unwrap());
        let shifted = added.iter().map(|(from, to)| (from + nodes, to + nodes));
        let both: Vec<(u32, u32)> = edges.iter().copied().chain(shifted).collect();
        let whole = Graph::new(nodes + more, &both).unwrap();
        prop_assert_eq!(grown.len(), whole.len());
        for node in 0..nodes + more {
            prop_assert_eq!(grown.children(node), whole.children(node));
            prop_assert_eq!(grown.parents(node), whole.parents(node));
            prop_assert_eq!(grown.descendants(node).len(), whole.descendants(node).len());
        }
        let place = |node: u32| grown.order().iter().position(|other| *other == node);
        prop_assert!(both.iter().all(|(from, to)| place(*from) < place(*to)), "each after its parents");
    }
}

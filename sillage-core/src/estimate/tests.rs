//! What holds of every estimate.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;

use super::network::Network;
use super::replay::{Dice, Limits, Stage};
use super::*;
use crate::task::{AgentDefinition, AgentKind, AllowedPair, Link, Port, SubAgentRules, Task};

const MODELS: [&str; 3] = ["opus", "sonnet", "haiku"];
const EFFORTS: [&str; 3] = ["low", "medium", "high"];

/// A graph with its limits and its past.
#[derive(Debug, Clone)]
struct Case {
    task: Task,
    accounts: BTreeMap<String, String>,
    parallel: u32,
    past: Past,
}

impl Case {
    fn subject(&self) -> Subject<'_> {
        Subject {
            task: &self.task,
            task_file: None,
            parallel: NonZeroU32::new(self.parallel).unwrap(),
            accounts: &self.accounts,
        }
    }

    fn estimator(&self) -> Estimator {
        Estimator::new(&self.subject(), &self.past).unwrap()
    }

    fn network(&self) -> Network {
        Network::new(&self.subject(), &self.past).unwrap()
    }
}

fn link(from: u32, to: u32) -> Link {
    let port = |agent| Port { agent, name: None };
    Link {
        from: port(from),
        to: port(to),
    }
}

fn agent(number: usize, model: usize, effort: usize) -> AgentDefinition {
    AgentDefinition {
        id: format!("a{number}"),
        mission: "Work.".to_owned(),
        model: MODELS[model].to_owned(),
        effort: EFFORTS[effort].to_owned(),
        ..AgentDefinition::default()
    }
}

fn dynamic(mut agent: AgentDefinition, max: u32) -> AgentDefinition {
    agent.kind = AgentKind::Dynamic;
    agent.sub_agents = Some(SubAgentRules {
        max: NonZeroU32::new(max).unwrap(),
        delegate: Vec::new(),
        allow: vec![AllowedPair {
            model: agent.model.clone(),
            efforts: vec![agent.effort.clone()],
        }],
    });
    agent
}

fn past_of(sessions: &[(usize, usize, u32, bool, bool)]) -> Past {
    let mut past = Past::default();
    for (model, effort, seconds, returned, paused) in sessions {
        let span = Duration::from_secs(u64::from(*seconds));
        let mut session = SessionSample::mission(MODELS[*model], EFFORTS[*effort], span);
        session.corrections.extend(returned.then_some(span / 4));
        session.pauses.extend(paused.then_some(span * 2));
        past.add_session(session);
    }
    past
}

prop_compose! {
    fn case()(
        agents in prop::collection::vec((0..3_usize, 0..3_usize, prop::option::weighted(0.2, 1..5_u32)), 1..14),
        edges in prop::collection::vec((0..14_u32, 0..14_u32), 0..24),
        limits in prop::collection::btree_map(0..3_usize, 1..4_u32, 0..3),
        parallel in 1..6_u32,
        sessions in prop::collection::vec((0..3_usize, 0..3_usize, 1..4_000_u32, prop::bool::weighted(0.2), prop::bool::weighted(0.2)), 0..40),
        closed in prop::option::of(1..8_000_u32),
        one_account in any::<bool>(),
    ) -> Case {
        let count = agents.len() as u32;
        let agents = agents.into_iter().enumerate().map(|(number, (model, effort, subs))| {
            let agent = agent(number, model, effort);
            match subs {
                None => agent,
                Some(max) => dynamic(agent, max),
            }
        });
        let task = Task {
            title: "Any".to_owned(),
            agents: agents.collect(),
            links: edges
                .into_iter()
                .map(|(from, to)| (from % count, to % count))
                .filter(|(from, to)| from < to)
                .map(|(from, to)| link(from, to))
                .collect(),
            limits: crate::task::Limits {
                parallel: None,
                models: limits
                    .into_iter()
                    .map(|(model, limit)| (MODELS[model].to_owned(), NonZeroU32::new(limit).unwrap()))
                    .collect(),
            },
            ..Task::default()
        };
        let accounts = MODELS.iter().filter(|_| one_account);
        let accounts = accounts.map(|model| ((*model).to_owned(), "one".to_owned())).collect();
        let mut past = past_of(&sessions);
        past.add(RunSample {
            closures: closed
                .into_iter()
                .map(|seconds| ClosureSample {
                    account: "opus".to_owned(),
                    closed: Duration::from_secs(u64::from(seconds)),
                })
                .collect(),
            ..RunSample::default()
        });
        Case { task, accounts, parallel, past }
    }
}

const FEW: Replays = Replays { count: 40, seed: 3 };

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// R24: the median lies within the range; the same inputs give the same figures; no agent typically starts before
    /// those that it needs are typically done; somebody is always on the critical path.
    #[test]
    fn r24_an_estimate_agrees_with_itself_and_with_the_graph(case in case()) {
        let estimator = case.estimator();
        let estimate = estimator.estimate(FEW);
        prop_assert_eq!(&estimate, &case.estimator().estimate(FEW));
        prop_assert!(estimate.low <= estimate.typical && estimate.typical <= estimate.high);
        for agent in &estimate.agents {
            prop_assert!(agent.start <= agent.end);
            prop_assert!((0.0..=1.0).contains(&agent.critical));
        }
        for link in &case.task.links {
            let (from, to) = (&estimate.agents[link.from.agent as usize], &estimate.agents[link.to.agent as usize]);
            prop_assert!(from.end <= to.start, "{} ends after {} starts", from.agent, to.agent);
        }
        prop_assert!(estimate.agents.iter().any(|agent| agent.critical > 0.0));
        prop_assert!(!estimate.critical_path.is_empty());
    }

    /// R3, W10: in every replay each session begins after those that it needs, and never more are at work at once than
    /// the run and the model allow.
    #[test]
    fn w10_no_replay_has_more_at_work_than_the_limits_allow(case in case(), replay in 0..1000_u64) {
        let network = case.network();
        let limits = Limits::new(&network, case.parallel);
        let mut stage = Stage::new(&network);
        stage.watch = Some(Box::new(|free: i64, of_model: &[i64]| {
            assert!(free >= 0 && of_model.iter().all(|free| *free >= 0));
        }));
        let last = stage.play(&limits, Dice::Drawn { seed: 1, replay }).unwrap();
        let taken = |node: u32| stage.begun[node as usize] != u64::MAX;
        for node in 0..network.nodes.len() as u32 {
            if !taken(node) {
                continue;
            }
            prop_assert!(stage.begun[node as usize] <= stage.ended[node as usize]);
            prop_assert!(stage.ended[node as usize] <= stage.ended[last as usize]);
            for child in network.children(node) {
                prop_assert!(!taken(*child) || stage.ended[node as usize] <= stage.begun[*child as usize]);
            }
        }
        for (first, last) in &network.ends {
            prop_assert!(taken(*first) && taken(*last), "every agent is done");
        }
    }

    /// Where no limit binds, the critical path is a chain of sessions each of which needs the one before, and their
    /// durations sum to the whole.
    #[test]
    fn the_critical_path_sums_to_the_whole_where_no_limit_binds(mut case in case()) {
        case.parallel = 10_000;
        case.task.limits.models.clear();
        let network = case.network();
        let mut stage = Stage::new(&network);
        let last = stage.play(&Limits::new(&network, 10_000), Dice::Medians).unwrap();
        let legs = case.estimator().estimate(FEW).critical_path;
        let sum: Duration = legs.iter().map(|leg| leg.takes).sum();
        prop_assert_eq!(sum, Duration::from_millis(stage.ended[last as usize]));
        prop_assert_eq!(legs[0].because, LegBecause::Launch);
        prop_assert!(legs[1..].iter().all(|leg| leg.because == LegBecause::Link));
        for pair in legs.windows(2) {
            prop_assert_eq!(pair[0].start + pair[0].takes, pair[1].start);
            let place = |leg: &Leg| case.task.agents.iter().position(|agent| agent.id == leg.agent).unwrap() as u32;
            let (from, to) = (place(&pair[0]), place(&pair[1]));
            prop_assert!(from == to || case.task.links.contains(&link(from, to)));
        }
    }

    /// More at once is never slower where that can be proved: agents that need nothing of one another, of one length,
    /// and chains. (In general it can be: the anomalies of list scheduling.)
    #[test]
    fn more_at_once_is_never_slower_for_chains_and_for_equals_in_a_row(
        count in 1..12_usize,
        chain in any::<bool>(),
        parallel in 1..6_u32,
    ) {
        let task = Task {
            agents: (0..count).map(|number| agent(number, 0, 0)).collect(),
            links: (1..count as u32).filter(|_| chain).map(|to| link(to - 1, to)).collect(),
            ..Task::default()
        };
        let past = past_of(&[(0, 0, 60, false, false); 20]);
        let case = Case { task, accounts: BTreeMap::new(), parallel, past };
        let more = Case { parallel: parallel + 1, ..case.clone() };
        let (fewer, more) = (case.estimator().estimate(FEW), more.estimator().estimate(FEW));
        prop_assert!(more.typical <= fewer.typical);
        prop_assert!(more.high <= fewer.high);
        let rounds = if chain { count } else { count.div_ceil(parallel as usize) };
        prop_assert_eq!(fewer.typical, Duration::from_secs(60 * rounds as u64));
    }

    /// An agent added beside the others changes none of their draws: without limits none of their figures either.
    #[test]
    fn an_edit_elsewhere_changes_no_draw(mut case in case()) {
        case.parallel = 10_000;
        case.task.limits.models.clear();
        case.past.closures.clear();
        let before = case.estimator().estimate(FEW);
        let mut after = case.clone();
        after.task.agents.push(agent(99, 0, 0));
        let after = after.estimator().estimate(FEW);
        for (before, after) in before.agents.iter().zip(&after.agents) {
            prop_assert_eq!((before.start, before.end), (after.start, after.end));
        }
        prop_assert!(after.typical >= before.typical);
    }
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

fn flat(task: Task, parallel: u32, past: Past) -> Case {
    Case {
        task,
        accounts: BTreeMap::new(),
        parallel,
        past,
    }
}

/// R24: `with parallel 6: 12 min less`.
#[test]
fn r24_what_limits_cost_is_told() {
    let mut task = Task {
        agents: (0..6).map(|number| agent(number, 0, 0)).collect(),
        ..Task::default()
    };
    let past = past_of(&[(0, 0, 600, false, false); 20]);
    let case = flat(task.clone(), 3, past.clone());
    let costs = case.estimator().limit_costs(FEW);
    let told: Vec<String> = costs.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["with parallel 6: 10 min less"]);
    let wide = flat(task.clone(), 6, past.clone());
    assert_eq!(wide.estimator().limit_costs(FEW), []);
    task.limits
        .models
        .insert("opus".to_owned(), NonZeroU32::new(2).unwrap());
    let costs = flat(task, 6, past).estimator().limit_costs(FEW);
    let told: Vec<String> = costs.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["without the limit of opus: 20 min less"]);
}

/// A coordinator without a past takes as many sub-agents as it may have; with one, as many as it had.
#[test]
fn r24_a_coordinators_group_is_that_of_its_past_or_its_cap() {
    let task = Task {
        title: "Split".to_owned(),
        agents: vec![dynamic(agent(0, 0, 0), 8)],
        ..Task::default()
    };
    let session = |part: Part, minutes: u64| SessionSample {
        part,
        ..SessionSample::mission("opus", "low", self::minutes(minutes))
    };
    let mut past = Past::default();
    for _ in 0..20 {
        past.add_session(session(Part::Planning, 2));
        past.add_session(session(Part::Mission, 10));
        past.add_session(session(Part::Synthesis, 3));
    }
    let estimate = flat(task.clone(), 4, past.clone()).estimator().estimate(FEW);
    assert_eq!(estimate.agents[0].sub_agents, Some(8));
    assert_eq!(estimate.typical, minutes(2 + 2 * 10 + 3), "eight, four at a time");
    past.add(RunSample {
        groups: vec![GroupSample {
            task: "Split".to_owned(),
            agent: "a0".to_owned(),
            sub_agents: vec![("opus".to_owned(), "low".to_owned()); 3],
            after: vec![(0, 2)],
        }],
        ..RunSample::default()
    });
    let estimate = flat(task.clone(), 4, past.clone()).estimator().estimate(FEW);
    assert_eq!(estimate.agents[0].sub_agents, Some(3));
    assert_eq!(estimate.typical, minutes(2 + 2 * 10 + 3), "one after another");
    let parts: Vec<Part> = estimate.critical_path.iter().map(|leg| leg.part).collect();
    assert_eq!(
        parts,
        [Part::Planning, Part::Mission, Part::Mission, Part::Synthesis]
    );
    // What is no longer allowed is not taken over.
    let mut other = task;
    other.agents[0] = dynamic(agent(0, 1, 0), 2);
    let estimate = flat(other, 4, past).estimator().estimate(FEW);
    assert_eq!(estimate.agents[0].sub_agents, Some(2));
    assert!(estimate.pairs.iter().all(|pair| pair.model == "sonnet"));
}

/// R25: waits are not work; their frequency widens the range.
#[test]
fn r25_waits_widen_the_range_and_are_not_counted_as_work() {
    let task = Task {
        agents: vec![agent(0, 0, 0)],
        ..Task::default()
    };
    let sessions = |paused: usize| -> Vec<(usize, usize, u32, bool, bool)> {
        (0..20).map(|nth| (0, 0, 600, false, nth < paused)).collect()
    };
    let many = Replays { count: 1000, seed: 0 };
    let estimate = |paused| {
        let case = flat(task.clone(), 1, past_of(&sessions(paused)));
        case.estimator().estimate(many)
    };
    let (calm, stormy) = (estimate(0), estimate(4));
    assert_eq!((calm.low, calm.high), (minutes(10), minutes(10)));
    assert_eq!((stormy.low, stormy.typical), (minutes(10), minutes(10)));
    assert!(
        stormy.high > minutes(25),
        "one in five waits, for twenty minutes or so"
    );
    assert_eq!(stormy.pairs[0].typical, minutes(10));
}

/// A quota that is used up holds all agents of its account, and no other.
#[test]
fn r8_a_closed_account_holds_its_agents_only() {
    let task = Task {
        agents: vec![agent(0, 0, 0), agent(1, 0, 0), agent(2, 1, 0)],
        links: Vec::new(),
        ..Task::default()
    };
    let mut past = past_of(&[(0, 0, 600, false, false); 20]);
    for _ in 0..20 {
        past.add_session(SessionSample::mission("sonnet", "low", minutes(10)));
    }
    past.add(RunSample {
        closures: vec![
            ClosureSample {
                account: "opus".to_owned(),
                closed: minutes(100)
            };
            20
        ],
        ..RunSample::default()
    });
    let mut case = flat(task, 1, past);
    case.accounts.insert("opus".to_owned(), "opus".to_owned());
    let estimate = case.estimator().estimate(FEW);
    // The first meets the quota; the one of the other account goes on meanwhile.
    assert!(estimate.agents[2].end < minutes(100), "{estimate:?}");
    assert!(estimate.agents[0].end > minutes(100));
    assert!(estimate.agents[1].end > minutes(100));
}

#[test]
fn an_empty_task_takes_no_time() {
    let estimate = flat(Task::default(), 1, Past::default())
        .estimator()
        .estimate(FEW);
    assert_eq!((estimate.low, estimate.high), (Duration::ZERO, Duration::ZERO));
    assert!(estimate.critical_path.is_empty());
}

#[test]
fn an_agent_works_no_longer_than_it_may() {
    let mut only = agent(0, 0, 0);
    only.max_duration = Some(minutes(5));
    let task = Task {
        agents: vec![only],
        ..Task::default()
    };
    let past = past_of(&[(0, 0, 600, false, false); 20]);
    assert_eq!(flat(task, 1, past).estimator().estimate(FEW).high, minutes(5));
}

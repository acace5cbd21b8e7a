//! Whatever is asked and reported, in whatever order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Something that may happen; what is reported is reported of a process that is there, or that once was.
#[derive(Debug, Clone)]
enum Happening {
    Ask(u8, usize, u64),
    /// A report of the nth process that is being started, used, or ended.
    Report(u8, usize),
    /// Agents of the settings, what they are launched with, and whether the limit changes with them.
    Configure(u8, u8, Option<u32>),
    Wait(i64),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        4 => (0u8..5, 0..NAMES.len(), 0u64..3).prop_map(|(what, agent, user)| Happening::Ask(what, agent, user)),
        5 => (0u8..5, 0usize..6).prop_map(|(what, nth)| Happening::Report(what, nth)),
        1 => (0u8..16, 0u8..4, proptest::option::of(1u32..4)).prop_map(|(set, version, most)| Happening::Configure(set, version, most)),
        1 => (0i64..900).prop_map(Happening::Wait),
    ];
    proptest::collection::vec(one, 0..80)
}

/// The processes as an obedient world has them.
#[derive(Default)]
struct World {
    starting: BTreeMap<u64, String>,
    running: BTreeMap<u64, String>,
    ending: BTreeMap<u64, String>,
    all: BTreeSet<u64>,
}

impl World {
    fn obey(&mut self, outputs: &[Output<&'static str>]) {
        for output in outputs {
            match output {
                Output::Launch { agent, process, .. } => {
                    assert!(
                        self.all.insert(process.0),
                        "number {} was given before",
                        process.0
                    );
                    self.starting.insert(process.0, agent.clone());
                }
                Output::End { agent, process } => {
                    let running = self.running.remove(&process.0);
                    assert_eq!(running.as_ref(), Some(agent), "only what runs is ended, and once");
                    self.ending.insert(process.0, agent.clone());
                }
                Output::Changed(_) => {}
            }
        }
    }

    fn live(&self) -> Vec<&String> {
        let all = self.starting.values().chain(self.running.values());
        all.chain(self.ending.values()).collect()
    }

    fn nth(map: &BTreeMap<u64, String>, nth: usize) -> Option<u64> {
        map.keys().nth(nth).copied()
    }

    /// The report that is meant, with what it does to this world.
    fn report(&mut self, what: u8, nth: usize) -> Option<Input<&'static str>> {
        let words = || "words".to_owned();
        Some(match what {
            0 => {
                let process = Self::nth(&self.starting, nth)?;
                let agent = self.starting.remove(&process)?;
                self.running.insert(process, agent);
                Input::Started(ProcessNumber(process))
            }
            1 => {
                let process = Self::nth(&self.starting, nth)?;
                self.starting.remove(&process);
                Input::StartFailed(ProcessNumber(process), words())
            }
            2 => {
                let process = Self::nth(&self.running, nth)?;
                self.running.remove(&process);
                Input::Exited(ProcessNumber(process), words())
            }
            3 => {
                let process = Self::nth(&self.ending, nth)?;
                self.ending.remove(&process);
                Input::Ended(ProcessNumber(process), (nth % 3 == 2).then(words))
            }
            // A process that was never there, or is no more, in a report that comes late.
            _ => {
                let process = self.all.len() as u64 - nth.min(self.all.len()) as u64;
                let there = self.starting.contains_key(&process)
                    || self.running.contains_key(&process)
                    || self.ending.contains_key(&process);
                if there {
                    return None;
                }
                Input::Exited(ProcessNumber(process), words())
            }
        })
    }
}

fn input(happening: &Happening, world: &mut World, most: &mut Option<u32>) -> Option<Input<&'static str>> {
    Some(match happening {
        Happening::Ask(what, agent, user) => {
            let agent = NAMES[*agent].to_owned();
            match what {
                0 => Input::Start(agent),
                1 => Input::Stop(agent),
                2 => Input::Restart(agent),
                3 => Input::Use(agent, UserId(*user)),
                _ => Input::Release(agent, UserId(*user)),
            }
        }
        Happening::Report(what, nth) => world.report(*what, *nth)?,
        Happening::Configure(set, version, limit) => {
            let there = NAMES.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
            let names: Vec<_> = there
                .map(|(at, name)| {
                    (
                        *name,
                        if version & (1 << (at % 2)) != 0 {
                            "v2"
                        } else {
                            "v1"
                        },
                    )
                })
                .collect();
            if limit.is_some() {
                *most = *limit;
            }
            Input::Configured {
                definitions: defined(&names),
                limits: limits(*most),
            }
        }
        Happening::Wait(_) => Input::Checked,
    })
}

fn limits(most: Option<u32>) -> PoolLimits {
    PoolLimits {
        most: most.and_then(NonZeroU32::new),
        idle: Some(Duration::from_secs(600)),
    }
}

/// What must hold after every input.
fn hold(pool: &Pool, world: &World, most: Option<u32>) {
    let live = world.live();
    if let Some(most) = most {
        assert!(live.len() <= most as usize, "{live:?} with a limit of {most}");
    }
    let agents: BTreeSet<_> = live.iter().collect();
    assert_eq!(agents.len(), live.len(), "two processes of one agent: {live:?}");
    for status in pool.statuses() {
        let held = |map: &BTreeMap<u64, String>| map.values().any(|agent| *agent == status.agent);
        match status.state {
            AgentState::Ready | AgentState::Busy => assert!(held(&world.running), "{status:?}"),
            AgentState::Stopped | AgentState::Error => {
                assert!(!held(&world.running) && !held(&world.starting), "{status:?}");
            }
            AgentState::Starting => assert!(!held(&world.running), "{status:?}"),
        }
        assert_eq!(status.error.is_some(), status.state == AgentState::Error);
    }
    assert_eq!(
        pool.at_rest(),
        live.is_empty() && no_start_waits(pool),
        "{live:?}"
    );
}

fn no_start_waits(pool: &Pool) -> bool {
    pool.statuses()
        .iter()
        .all(|status| status.state != AgentState::Starting)
}

/// Once every report is made, no start is left without an end.
fn settle(pool: &mut Pool, world: &mut World, now: Timestamp) {
    for _ in 0..100 {
        let next = [0, 3].iter().find_map(|what| world.report(*what, 0));
        let Some(input) = next else { break };
        world.obey(&pool.decide(now, input).expect("reports are not refused"));
    }
    assert!(
        no_start_waits(pool),
        "a start that never ends: {:?}",
        pool.statuses()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a1_whatever_happens_no_agent_has_two_processes_and_no_limit_is_exceeded(
        most in proptest::option::of(1u32..4),
        happenings in happenings(),
    ) {
        let mut now = START;
        let mut pool: Pool = Agents::new(defined(&NAMES.map(|name| (name, "v1"))), limits(most));
        let mut world = World::default();
        let mut limit = most;
        // A limit that was lowered below what runs is held by what starts later only.
        let mut lowered = false;
        for happening in &happenings {
            if let Happening::Wait(seconds) = happening {
                now = now.plus(Duration::from_secs(seconds.unsigned_abs()));
            }
            let before = (pool.statuses(), limit);
            let Some(input) = input(happening, &mut world, &mut limit) else { continue };
            lowered |= limit != before.1;
            match pool.decide(now, input) {
                Ok(outputs) => world.obey(&outputs),
                Err(_) => prop_assert_eq!(pool.statuses(), before.0, "a refusal changes nothing"),
            }
            hold(&pool, &world, limit.filter(|_| !lowered));
        }
        settle(&mut pool, &mut world, now);
        hold(&pool, &world, limit.filter(|_| !lowered));
        world.obey(&pool.decide(now, Input::Quit).unwrap());
        settle(&mut pool, &mut world, now);
        prop_assert!(pool.at_rest() && world.live().is_empty());
    }
}

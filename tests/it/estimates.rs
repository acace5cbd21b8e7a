//! The estimator against the engine: graphs that are run by the real driver, in paused time, with sessions that take
//! what their past says (R24, R27).

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sillage::core::document::Format;
use sillage::core::estimate::{
    Calibration, Estimator, Foretold, GroupSample, Part, Past, Replays, RunSample, SessionSample, Subject,
};
use sillage::core::id::{ClientSessionId, Seq};
use sillage::core::ports::runtime::RuntimeError;
use sillage::core::ports::{Clock, RunFiles};
use sillage::core::run::{Run, RunDefinition, RunEnd};
use sillage::core::task;
use sillage::core::time::Timestamp;
use sillage::store::MemoryStore;
use sillage::{Engine, Reader};
use sillage_testkit::scripted_runtime::{Asked, Reply, ScriptedRuntime};
use sillage_testkit::workspace::NoWorkspace;

use crate::engine::REPORT;

const GRAPHS: u64 = 200;
const MODELS: [&str; 2] = ["opus", "sonnet"];
const EFFORTS: [&str; 2] = ["low", "high"];
/// Sessions that the past has of each model, effort and part.
const KNOWN: u32 = 400;
/// Sessions in a hundred whose report goes back once, and that wait for their provider once.
const RETURNED: u64 = 10;
const PAUSED: u64 = 5;
const PAUSE: Duration = Duration::from_secs(400);

/// Tokio's clock.
struct PausedClock(tokio::time::Instant);

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_000_000).plus(self.0.elapsed())
    }
}

/// Nothing is written, so that no time passes outside of the story.
struct NoFiles;

#[async_trait]
impl RunFiles for NoFiles {
    async fn write(&self, _: &Path, _: Vec<u8>) -> io::Result<()> {
        Ok(())
    }

    async fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Numbers that depend on what they are for only.
fn number(seed: u64, what: &str) -> u64 {
    let hash = what.bytes().fold(seed ^ 0x5161_1a6e, |hash, byte| {
        (hash ^ u64::from(byte))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    });
    let hash = (hash ^ (hash >> 31)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

fn share(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

/// The median of what a session works, and the log-normal around it: read at a quantile.
fn duration(part: Part, model: &str, effort: &str, quantile: f64) -> Duration {
    let minutes = match part {
        Part::Mission => 4.0,
        Part::Planning => 2.0,
        Part::Synthesis => 1.5,
    };
    let slower = if model == "opus" { 2.0 } else { 1.0 } * if effort == "high" { 2.5 } else { 1.0 };
    Duration::from_secs_f64(60.0 * minutes * slower * (0.5 * normal(quantile)).exp())
}

fn correction(quantile: f64) -> Duration {
    Duration::from_secs_f64(120.0 * (0.4 * normal(quantile)).exp())
}

/// The standard normal's quantile, near enough: the logistic with the same middle and spread, bent to its tails.
fn normal(quantile: f64) -> f64 {
    let odds = (quantile / (1.0 - quantile)).ln() / 1.702;
    odds.clamp(-3.0, 3.0)
}

/// A past of sessions spread evenly over what they may take.
fn past(title: &str) -> Past {
    let mut past = Past::default();
    for (model, effort) in pairs() {
        for part in [Part::Mission, Part::Planning, Part::Synthesis] {
            for nth in 0..KNOWN {
                let at = |nth: u32| (f64::from(nth) + 0.5) / f64::from(KNOWN);
                // In an order that has nothing to do with how long they took.
                let luck = number(u64::from(nth), "luck") % 100;
                let mission = part == Part::Mission;
                let returned = mission && luck < RETURNED;
                let paused = mission && (50..50 + PAUSED).contains(&luck);
                let other = number(u64::from(nth), "other");
                past.add_session(SessionSample {
                    part,
                    corrections: returned.then(|| correction(share(other))).into_iter().collect(),
                    pauses: paused.then_some(PAUSE).into_iter().collect(),
                    ..SessionSample::mission(model, effort, duration(part, model, effort, at(nth)))
                });
            }
        }
    }
    let groups = (2..=4).map(|size| GroupSample {
        task: title.to_owned(),
        agent: "a0".to_owned(),
        sub_agents: vec![("sonnet".to_owned(), "low".to_owned()); size],
        after: Vec::new(),
    });
    past.add(RunSample {
        groups: groups.collect(),
        ..RunSample::default()
    });
    past
}

fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    MODELS
        .into_iter()
        .flat_map(|model| EFFORTS.into_iter().map(move |effort| (model, effort)))
}

/// A graph of 3 to 12 agents under limits; in one of three the first agent is a coordinator.
fn graph(seed: u64) -> String {
    let below = |what: &str, bound: u64| number(seed, what) % bound;
    let agents = 3 + below("agents", 10);
    let mut text = format!(
        "task: Graph {seed}\nlimits: {{ parallel: {}, models: {{ opus: {} }} }}\nagents:\n",
        1 + below("parallel", 5),
        1 + below("opus", 3)
    );
    for agent in 0..agents {
        let model = MODELS[below(&format!("model {agent}"), 2) as usize];
        let effort = EFFORTS[below(&format!("effort {agent}"), 2) as usize];
        let group = match agent == 0 && below("group", 3) == 0 {
            true => {
                ", kind: dynamic, sub_agents: { max: 4, delegate: [mission, model, effort], allow: [{ model: sonnet, efforts: [low] }] }"
            }
            false => "",
        };
        let _ = writeln!(
            text,
            "  - {{ id: a{agent}, mission: Work on <<a{agent}>>., model: {model}, effort: {effort}{group} }}"
        );
    }
    let mut links = Vec::new();
    for to in 1..agents {
        for from in 0..to {
            if below(&format!("link {from} {to}"), 100) < 25 {
                links.push(format!("a{from} -> a{to}"));
            }
        }
    }
    if !links.is_empty() {
        let _ = writeln!(text, "links: [ {} ]", links.join(", "));
    }
    text
}

/// Agents that take what their past says.
fn agents(seed: u64) -> ScriptedRuntime {
    let mut names: HashMap<ClientSessionId, String> = HashMap::new();
    let mut asked_before: HashMap<String, u32> = HashMap::new();
    ScriptedRuntime::new(move |asked: &Asked<'_>| {
        let session = asked.session;
        let text = &asked.message.text;
        let name = names
            .entry(session.client_session_id)
            .or_insert_with(|| {
                let (_, rest) = text.split_once("<<").unwrap();
                rest.split_once(">>").unwrap().0.to_owned()
            })
            .clone();
        let nth = asked_before.entry(name.clone()).or_default();
        *nth += 1;
        let nth = *nth;
        let quantile = |what: &str| share(number(seed, &format!("{name} {what}")));
        let luck = number(seed, &format!("{name} luck")) % 100;
        let takes = |part| {
            duration(
                part,
                &session.model,
                &session.effort,
                quantile(&format!("{part:?}")),
            )
        };
        let later = |after: Duration, text: &str| Reply::Later(after, Box::new(Reply::text(text)));
        if nth == 1 && text.contains("done by sub-agents") {
            let size = 2 + number(seed, "size") % 3;
            return later(takes(Part::Planning), &plan(&name, size));
        }
        if text.starts_with("The sub-agents of your plan have ended.") {
            return later(takes(Part::Synthesis), REPORT);
        }
        let paused = u32::from((50..50 + PAUSED).contains(&luck));
        match nth {
            1 if paused == 1 => Reply::Refuse(RuntimeError::Temporary {
                words: "529 overloaded".to_owned(),
                retry_after: Some(PAUSE),
            }),
            nth if nth == 1 + paused => {
                let answer = if luck < RETURNED { "no report" } else { REPORT };
                later(takes(Part::Mission), answer)
            }
            _ => later(correction(quantile("again")), REPORT),
        }
    })
}

fn plan(name: &str, size: u64) -> String {
    let units: Vec<String> = (0..size).map(|unit| format!(r#"{{"id": "u{unit}"}}"#)).collect();
    let subs: Vec<String> = (0..size)
        .map(|sub| {
            format!(
                r#"{{"id": "s{sub}", "units": ["u{sub}"], "mission": "Work on <<{name}/{sub}>>.", "model": "sonnet", "effort": "low"}}"#
            )
        })
        .collect();
    format!(
        r#"{{"units": [{}], "sub_agents": [{}]}}"#,
        units.join(", "),
        subs.join(", ")
    )
}

fn definition(seed: u64) -> RunDefinition {
    let text = graph(seed);
    let task = task::read(&text, Format::Either, None).unwrap();
    RunDefinition {
        parallel: task.limits.parallel.unwrap_or(NonZeroU32::MIN),
        task: Arc::new(task),
        accounts: BTreeMap::new(),
        ..crate::engine::definition(Path::new("/nowhere"))
    }
}

/// Runs the graph by the engine; the run at its end, and the store that holds it.
async fn run(seed: u64, definition: RunDefinition) -> (Run, Reader) {
    let store = Arc::new(MemoryStore::new());
    let engine = Engine::builder(store.clone(), Arc::new(agents(seed)), Arc::new(NoWorkspace))
        .clock(Arc::new(PausedClock(tokio::time::Instant::now())))
        .files(Arc::new(NoFiles))
        .build();
    let handle = engine.launch(definition).await.unwrap();
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete, "graph {seed}");
    let reader = Reader::over(store);
    (reader.load(handle.id()).await.unwrap(), reader)
}

/// R24, R27: on random graphs under limits, with coordinators, corrections and waits, runs take what was foretold.
#[tokio::test(start_paused = true)]
async fn r27_runs_of_the_engine_take_what_was_foretold() {
    let mut outcomes: Vec<(Foretold, Duration)> = Vec::new();
    for seed in 0..GRAPHS {
        let definition = definition(seed);
        let past = past(&definition.task.title);
        let estimator = Estimator::new(&Subject::of(&definition), &past).unwrap();
        let estimate = estimator.estimate(Replays { count: 500, seed: 0 });
        let (run, _) = run(seed, definition).await;
        outcomes.push((Foretold::from(&estimate), run.took().unwrap()));
    }
    let mut ratios: Vec<f64> = outcomes
        .iter()
        .map(|(foretold, took)| took.as_secs_f64() * 1000.0 / foretold.typical_ms as f64)
        .collect();
    ratios.sort_by(f64::total_cmp);
    let median = (ratios[ratios.len() / 2 - 1] + ratios[ratios.len() / 2]) / 2.0;
    let calibration: Calibration = outcomes.into_iter().collect();
    let within = calibration.share_within().unwrap();
    println!("median of took / foretold {median:.4}; {calibration}");
    assert!((median - 1.0).abs() <= 0.03, "{median}");
    assert!((0.75..=0.85).contains(&within), "{calibration}");
}

/// What is read off a run's log is what its sessions worked: no wait, no place, no other's time.
#[tokio::test(start_paused = true)]
async fn r25_the_samples_of_a_run_are_what_its_sessions_worked() {
    let (mut missions, mut plans, mut returned, mut paused) = (0, 0, 0, 0);
    for seed in 0..40 {
        let (run, reader) = run(seed, definition(seed)).await;
        let log = reader.events(run.id(), Seq::FIRST).await.unwrap();
        let mut log = log.into_iter();
        let mut gather = sillage::core::estimate::Gather::start(log.next().unwrap()).unwrap();
        for fact in log {
            gather.take(&fact).unwrap();
        }
        let sample = gather.finish();
        let worked: Duration = sample
            .sessions
            .iter()
            .map(|session| session.worked + session.corrections.iter().sum::<Duration>())
            .sum();
        let of_run: Duration = run.steps().iter().map(|step| step.worked(run.updated())).sum();
        assert_eq!(
            worked, of_run,
            "graph {seed}: nothing is left out, nothing counts twice"
        );
        for session in &sample.sessions {
            assert!(session.corrections.len() <= 1);
            assert!(
                session
                    .pauses
                    .iter()
                    .all(|pause| *pause >= PAUSE && *pause < PAUSE * 2)
            );
            missions += u32::from(session.part == Part::Mission);
            returned += session.corrections.len();
            paused += session.pauses.len();
        }
        for group in &sample.groups {
            plans += 1;
            assert!((2..=4).contains(&group.sub_agents.len()));
            let of = |part| {
                sample
                    .sessions
                    .iter()
                    .filter(|session| session.part == part)
                    .count()
            };
            assert_eq!((of(Part::Planning), of(Part::Synthesis)), (1, 1));
        }
        let all = run.steps().len() + sample.groups.len();
        assert_eq!(sample.sessions.len(), all, "a coordinator is two");
    }
    assert!(missions > 200 && plans > 5 && returned > 10 && paused > 5);
}

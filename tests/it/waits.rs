//! Waits through the real driver, in paused time: what the runtime was asked, and when.

mod accounts;
mod clocks;
mod outages;

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sillage::core::document::Format;
use sillage::core::folders::Folders;
use sillage::core::id::{ClientSessionId, RunId};
use sillage::core::ports::runtime::RuntimeError;
use sillage::core::ports::{Clock, Store};
use sillage::core::run::{ClockReading, Event, Recorded, Run, RunDefinition, RunPolicy, Step};
use sillage::core::task;
use sillage::core::time::Timestamp;
use sillage::store::MemoryStore;
use sillage::{Engine, RunHandle};
use sillage_testkit::scripted_runtime::{Asked, Call, Fault, Reply, ScriptedRuntime};
use sillage_testkit::workspace::NoWorkspace;
use tokio::time::Instant;

use crate::engine::{REPORT, log};

/// When each of these stories begins.
const START: Timestamp = Timestamp(1_795_000_000_000);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
/// What a turn and its timers may add to a time in these stories.
const SOON: Duration = Duration::from_secs(1);

/// Clocks that follow tokio's, and can be set or sleep.
#[derive(Debug)]
struct TestClock {
    from: (Instant, Duration),
    /// What the machine slept, and by how much its clock was set, in milliseconds.
    moved: Mutex<(u64, i64)>,
}

impl TestClock {
    /// Clocks of a story that is `passed` old.
    fn at(passed: Duration) -> Arc<TestClock> {
        Arc::new(TestClock {
            from: (Instant::now(), passed),
            moved: Mutex::new((0, 0)),
        })
    }

    fn sleep(&self, span: Duration) {
        self.moved.lock().unwrap().0 += u64::try_from(span.as_millis()).unwrap();
    }

    fn set(&self, by_ms: i64) {
        self.moved.lock().unwrap().1 += by_ms;
    }

    /// How old the story is, by the time in which the machine was awake.
    fn awake(&self) -> Duration {
        self.from.0.elapsed() + self.from.1
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.reading().unwrap().wall
    }

    fn reading(&self) -> Option<ClockReading> {
        let (slept, set) = *self.moved.lock().unwrap();
        let awake = self.awake();
        let passed = awake + Duration::from_millis(slept);
        Some(ClockReading {
            wall: START.plus(passed).shifted(set),
            awake,
            passed,
        })
    }
}

/// A call that was made of the runtime and could cost something: when, what, and for which agent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Made {
    at: Duration,
    call: &'static str,
    agent: String,
}

/// The runtime's own record of the calls that were made of it, whatever became of them.
#[derive(Default)]
struct Record {
    calls: Vec<Made>,
    agents: HashMap<ClientSessionId, String>,
}

impl Record {
    fn note(&mut self, at: Duration, call: &Call<'_>) {
        let (call, session) = match call {
            Call::Open(request) | Call::Find(request) => {
                let session = request.client_session_id;
                self.agents.insert(session, request.model.clone());
                (
                    if matches!(call, Call::Open(_)) {
                        "open"
                    } else {
                        "find"
                    },
                    session,
                )
            }
            Call::Send(session, _) => ("send", *session),
            Call::Cancel(session) => ("cancel", *session),
            Call::Close(session) => ("close", *session),
            _ => return,
        };
        let agent = self.agents.get(&session).cloned().unwrap_or_default();
        self.calls.push(Made { at, call, agent });
    }
}

/// A task, clocks, and a runtime that keeps a record. Each agent has a model of its own, which is called as it is.
struct Story {
    clock: Arc<Mutex<Arc<TestClock>>>,
    store: Arc<dyn Store>,
    runtime: ScriptedRuntime,
    record: Arc<Mutex<Record>>,
}

impl Story {
    /// Each message is answered as `reply` says by the age of the story and the agent.
    fn new(mut reply: impl FnMut(Duration, &str, &Asked<'_>) -> Reply + Send + 'static) -> Story {
        let clock = Arc::new(Mutex::new(TestClock::at(Duration::ZERO)));
        let times = Arc::clone(&clock);
        let runtime = ScriptedRuntime::new(move |asked| {
            let now = times.lock().unwrap().awake();
            reply(now, &asked.session.model, asked)
        });
        Story {
            clock,
            store: Arc::new(MemoryStore::new()),
            runtime,
            record: Arc::default(),
        }
        .with_faults(|_, _| None)
    }

    /// Calls fail as `faults` says by the age of the story.
    fn with_faults(
        self,
        mut faults: impl FnMut(Duration, &Call<'_>) -> Option<Fault> + Send + 'static,
    ) -> Story {
        let (times, record) = (Arc::clone(&self.clock), Arc::clone(&self.record));
        let runtime = self.runtime.with_faults(move |call| {
            let now = times.lock().unwrap().awake();
            record.lock().unwrap().note(now, call);
            faults(now, call)
        });
        Story { runtime, ..self }
    }

    /// The clocks of now.
    fn clock(&self) -> Arc<TestClock> {
        Arc::clone(&self.clock.lock().unwrap())
    }

    /// An engine of this story.
    fn engine(&self) -> Engine {
        Engine::builder(
            Arc::clone(&self.store),
            Arc::new(self.runtime.clone()),
            Arc::new(NoWorkspace),
        )
        .clock(self.clock())
        .build()
    }

    async fn launch(&self, definition: RunDefinition) -> RunHandle {
        self.engine().launch(definition).await.unwrap()
    }

    /// The calls of these kinds that were made for these agents, in their order.
    fn made(&self, calls: &[&str], agents: &[&str]) -> Vec<Made> {
        let record = self.record.lock().unwrap();
        let made = record.calls.iter();
        made.filter(|made| calls.contains(&made.call) && agents.contains(&&*made.agent))
            .cloned()
            .collect()
    }

    /// When these agents were sent something, to the second.
    fn sent(&self, agents: &[&str]) -> Vec<u64> {
        let sent = self.made(&["send"], agents);
        sent.iter().map(|made| made.at.as_secs()).collect()
    }

    async fn log(&self) -> Vec<Recorded> {
        log(&*self.store).await
    }

    /// The run as its log tells it.
    async fn run(&self) -> Run {
        Run::replay(self.log().await).unwrap()
    }

    /// The facts of a kind so far.
    async fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.log().await.iter().filter(|fact| is(&fact.event)).count()
    }
}

/// Agents by their names and accounts, each of which may work for two hours; links as a task has them.
fn definition(agents: &[(&str, &str)], links: &[&str]) -> RunDefinition {
    let agent = |(id, _): &(&str, &str)| {
        format!("  - {{ id: {id}, mission: Do {id}., model: {id}, effort: low, max_duration: 2h }}\n")
    };
    let agent_lines: String = agents.iter().map(agent).collect();
    let text = format!(
        "task: Waits\nagents:\n{agent_lines}links: [{}]\n",
        links.join(", ")
    );
    RunDefinition {
        run: RunId::new("r1").unwrap(),
        task: Arc::new(task::read(&text, Format::Either, None).unwrap()),
        task_file: None,
        task_version: 1,
        project: None,
        folders: Folders::default(),
        step_folder: PathBuf::from("/"),
        repository: None,
        worktrees: Vec::new(),
        parallel: NonZeroU32::new(8).unwrap(),
        accounts: agents
            .iter()
            .map(|(id, account)| ((*id).to_owned(), (*account).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        // Nothing of these tasks is written there.
        files: PathBuf::from("/nowhere"),
        relaunch_of: None,
        gateways: Vec::new(),
        foretold: None,
        policy: RunPolicy::default(),
    }
}

fn step<'r>(run: &'r Run, agent: &str) -> &'r Step {
    let index = run.step_named(agent).unwrap();
    run.step(index).unwrap()
}

fn temporary(words: &str, retry_after: Option<Duration>) -> RuntimeError {
    RuntimeError::Temporary {
        words: words.to_owned(),
        retry_after,
    }
}

/// Lets paused time pass until this age of the story.
async fn until(story: &Story, age: Duration) {
    let now = story.clock().awake();
    tokio::time::sleep(age.checked_sub(now).unwrap()).await;
}

/// The waits of an agent, as its journal tells them: the second at which each began, and for how long it was to be.
fn waits(log: &[Recorded]) -> Vec<(u64, Duration)> {
    log.iter()
        .filter_map(|fact| match &fact.event {
            Event::WaitStarted { until, .. } => Some((fact.at.since(START).as_secs(), until.since(fact.at))),
            _ => None,
        })
        .collect()
}

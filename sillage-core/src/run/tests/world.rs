//! A world that does at once what a run asks, from a script.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use crate::folders::Folders;
use crate::id::{ClientMessageId, ClientSessionId, RunId};
use crate::ports::Ids;
use crate::ports::runtime::{
    Answer, FoundSession, MessageFate, OpenedSession, RuntimeError, StopReason, Usage,
};
use crate::ports::workspace::{Committed, DiffStat, MergeOutcome, Removal, Restarted, Worktree};
use crate::run::{
    Command, Effect, EffectKey, Event, Input, Recorded, Run, RunDefinition, RunPolicy, RunRepository,
};
use crate::task::{AgentDefinition, AgentKind, FolderLists, Limits, Link, Port, Task, WorktreeWish};
use crate::time::Timestamp;

/// What an agent does with a message.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Answer(String, StopReason),
    Error(RuntimeError),
    Silence,
}

impl Reply {
    pub(crate) fn text(text: &str) -> Reply {
        Reply::Answer(text.to_owned(), StopReason::EndTurn)
    }
}

pub(crate) fn report(outcome: &str) -> String {
    let blockers = if outcome == "blocked" {
        r#", "blockers": ["x"]"#
    } else {
        ""
    };
    format!(r#"{{"outcome": "{outcome}", "summary": "ok"{blockers}}}"#)
}

pub(crate) fn ids(seed: u128) -> impl Ids {
    struct Counted(u128);
    impl Ids for Counted {
        fn session(&mut self) -> ClientSessionId {
            self.0 += 1;
            ClientSessionId(uuid::Uuid::from_u128(self.0))
        }
        fn message(&mut self) -> ClientMessageId {
            self.0 += 1;
            ClientMessageId(uuid::Uuid::from_u128(self.0))
        }
    }
    Counted(seed << 64)
}

pub(crate) fn task(agents: &[&str], links: &[(&str, &str)]) -> RunDefinition {
    let index = |id: &str| u32::try_from(agents.iter().position(|a| *a == id).unwrap()).unwrap();
    let port = |id: &str| Port {
        agent: index(id),
        name: None,
    };
    let agent = |id: &&str| AgentDefinition {
        id: (*id).to_owned(),
        title: None,
        mission: format!("Mission of {id}."),
        resources: vec![],
        deliverable: None,
        model: "m".to_owned(),
        effort: "low".to_owned(),
        kind: AgentKind::Deterministic,
        max_duration: None,
        browser: None,
        worktree: WorktreeWish::Auto,
        inputs: vec![],
        outputs: vec![],
        sub_agents: None,
    };
    let task = Task {
        title: "t".to_owned(),
        context: None,
        method: None,
        folders: FolderLists::default(),
        limits: Limits::default(),
        check: None,
        autocompact: Default::default(),
        agents: agents.iter().map(agent).collect(),
        links: links
            .iter()
            .map(|(from, to)| Link {
                from: port(from),
                to: port(to),
            })
            .collect(),
    };
    RunDefinition {
        run: RunId::new("r1").unwrap(),
        task: Arc::new(task),
        task_file: None,
        task_version: 1,
        project: None,
        folders: Folders {
            read: vec![],
            write: vec![PathBuf::from("/repo")],
        },
        step_folder: PathBuf::from("/repo"),
        repository: None,
        worktrees: vec![],
        parallel: 16.try_into().unwrap(),
        accounts: BTreeMap::new(),
        files: PathBuf::from("/data/r1"),
        policy: RunPolicy::default(),
    }
}

impl RunDefinition {
    pub(crate) fn with_repository(mut self) -> Self {
        self.worktrees = vec![true; self.task.agents.len()];
        self.repository = Some(RunRepository {
            root: PathBuf::from("/repo"),
            place: PathBuf::new(),
            base: "base".to_owned(),
            branch: Some("main".to_owned()),
        });
        self
    }
}

pub(crate) struct World {
    pub(crate) definition: RunDefinition,
    scripts: HashMap<String, VecDeque<Reply>>,
    pub(crate) now: Timestamp,
    pub(crate) log: Vec<Recorded>,
    /// Lengths of the log after each batch.
    pub(crate) batches: Vec<usize>,
    pub(crate) inputs: Vec<Input>,
    ids: Box<dyn Ids>,
    /// Done without news, and still wanted.
    done: HashSet<EffectKey>,
    /// Sessions that are alive, with their agents.
    pub(crate) open: HashMap<ClientSessionId, String>,
    /// What each session said last and to which message, kept by the agent across restarts.
    history: HashMap<ClientSessionId, (ClientMessageId, String)>,
    opened: HashSet<ClientSessionId>,
    sent: Vec<(ClientMessageId, String)>,
    pub(crate) texts: Vec<String>,
    pub(crate) sessions_opened: usize,
    pub(crate) most_at_work: usize,
    pub(crate) cancelled: usize,
    pub(crate) merged: Vec<String>,
    pub(crate) conflicts: Vec<String>,
    pub(crate) missing: Vec<Vec<PathBuf>>,
}

impl World {
    pub(crate) fn new(definition: RunDefinition) -> Self {
        World {
            definition,
            scripts: HashMap::new(),
            now: Timestamp(1_000_000),
            log: vec![],
            batches: vec![],
            inputs: vec![],
            ids: Box::new(ids(1)),
            done: HashSet::new(),
            open: HashMap::new(),
            history: HashMap::new(),
            opened: HashSet::new(),
            sent: vec![],
            texts: vec![],
            sessions_opened: 0,
            most_at_work: 0,
            cancelled: 0,
            merged: vec![],
            conflicts: vec![],
            missing: vec![],
        }
    }

    pub(crate) fn script(&mut self, agent: &str, replies: impl IntoIterator<Item = Reply>) {
        self.scripts
            .insert(agent.to_owned(), replies.into_iter().collect());
    }

    pub(crate) fn start(&mut self) -> Run {
        let launch = Run::launch(self.now, self.definition.clone());
        self.log.push(launch.clone());
        self.batches.push(1);
        let mut run = Run::start(launch).unwrap();
        self.turn(&mut run, vec![]);
        run
    }

    pub(crate) fn turn(&mut self, run: &mut Run, inputs: Vec<Input>) {
        self.inputs.extend(inputs.clone());
        let turn = run.turn(self.now, &mut *self.ids, inputs).unwrap();
        let at_work = run
            .steps()
            .iter()
            .filter(|step| step.phase().holds_place())
            .count();
        self.most_at_work = self.most_at_work.max(at_work);
        if !turn.facts.is_empty() {
            self.log.extend(turn.facts);
            self.batches.push(self.log.len());
        }
    }

    pub(crate) fn input(&mut self, run: &mut Run, input: Input) {
        self.turn(run, vec![input]);
    }

    /// Does what is asked until nothing new is, one effect a turn, in a fixed order.
    pub(crate) fn settle(&mut self, run: &mut Run) {
        self.settle_until(run, usize::MAX);
    }

    fn settle_until(&mut self, run: &mut Run, length: usize) {
        loop {
            if self.log.len() >= length || run.end().is_some() {
                return;
            }
            self.done.retain(|key| run.outbox().contains(key));
            let mut wanted: Vec<EffectKey> = run
                .outbox()
                .iter()
                .filter(|key| !self.done.contains(key))
                .collect();
            wanted.sort();
            let Some(key) = wanted.first().copied() else {
                return;
            };
            let effect = run.effect(key).unwrap();
            if let Some(input) = self.carry_out(run, key, effect) {
                self.turn(run, vec![input]);
            } else {
                self.done.insert(key);
            }
        }
    }

    pub(crate) fn go_on(&mut self, mut run: Run) -> Run {
        loop {
            self.settle(&mut run);
            if run.end().is_some() {
                return run;
            }
            self.now = run
                .deadline()
                .expect("a run that is not over has something to wait for")
                .max(self.now);
            self.turn(&mut run, vec![]);
        }
    }

    pub(crate) fn run_to_end(&mut self) -> Run {
        let run = self.start();
        self.go_on(run)
    }

    pub(crate) fn run_until(&mut self, length: usize) -> Run {
        if length <= 1 {
            let launch = Run::launch(self.now, self.definition.clone());
            self.log.push(launch.clone());
            return Run::start(launch).unwrap();
        }
        let mut run = self.start();
        self.settle_until(&mut run, length);
        run
    }

    /// The engine died: what was asked of the world goes on to its end there, processes die, and a new engine reads
    /// the log.
    pub(crate) fn recover(&mut self) -> Run {
        let mut run = Run::replay(self.log.clone()).unwrap();
        let mut wanted: Vec<EffectKey> = run.outbox().iter().collect();
        wanted.sort();
        for key in wanted {
            let effect = run.effect(key).unwrap();
            let _ = self.carry_out(&run, key, effect);
        }
        self.open.clear();
        self.done.clear();
        self.ids = Box::new(ids(2));
        self.turn(&mut run, vec![Input::EngineStarted { pid: 2 }]);
        self.go_on(run)
    }

    pub(crate) fn resume(&mut self, mut run: Run) -> Run {
        self.turn(&mut run, vec![Input::Command(Command::Resume)]);
        self.go_on(run)
    }

    fn agent_of(run: &Run, session: ClientSessionId) -> String {
        run.agent(run.step_of(session).unwrap()).id.clone()
    }

    fn carry_out(&mut self, run: &Run, key: EffectKey, effect: Effect) -> Option<Input> {
        let opened = |agent: &str| OpenedSession {
            native: Some("n".into()),
            agent: agent.to_owned(),
            pid: Some(1),
        };
        match (key, effect) {
            (EffectKey::Lease(step), Effect::Lease(wish)) => {
                let worktree = Worktree {
                    repository: wish.repository,
                    path: PathBuf::from(format!("/wt/{}", wish.step)),
                    branch: wish.branch,
                    base: wish.base,
                };
                Some(Input::Leased {
                    step,
                    result: Ok(worktree),
                })
            }
            (EffectKey::Restart(step), Effect::Restart { worktree, .. }) => Some(Input::Restarted {
                step,
                result: Ok(Restarted {
                    worktree,
                    rescued: None,
                }),
            }),
            (EffectKey::Open(_, session), Effect::Open(_)) => {
                let agent = Self::agent_of(run, session);
                if self.opened.insert(session) {
                    self.sessions_opened += 1;
                }
                self.open.insert(session, agent.clone());
                Some(Input::Opened {
                    session,
                    result: Ok(opened(&agent)),
                })
            }
            (EffectKey::Find(_, session), Effect::Find { in_flight, .. }) => {
                let agent = Self::agent_of(run, session);
                if !self.opened.contains(&session) {
                    let words = "nobody knows it".to_owned();
                    return Some(Input::Found {
                        session,
                        result: Err(RuntimeError::Lost { words }),
                    });
                }
                self.open.insert(session, agent.clone());
                let fate = match (in_flight, self.history.get(&session)) {
                    (None, _) => MessageFate::None,
                    (Some(m), Some((last, text))) if *last == m.client_message_id => {
                        MessageFate::Replayed(text.clone())
                    }
                    (Some(m), _) if self.sent.iter().any(|(id, _)| *id == m.client_message_id) => {
                        MessageFate::Unknown
                    }
                    (Some(_), _) => MessageFate::NotReceived,
                };
                let found = FoundSession {
                    opened: opened(&agent),
                    restarted: true,
                    in_flight: fate,
                };
                Some(Input::Found {
                    session,
                    result: Ok(found),
                })
            }
            (EffectKey::Send(_, id), Effect::Send { session, message, .. }) => {
                let agent = self.open.get(&session).cloned()?;
                self.texts.push(message.text.clone());
                self.sent.push((id, agent.clone()));
                let default = || Reply::text(&report("complete"));
                let reply = self
                    .scripts
                    .get_mut(&agent)
                    .and_then(VecDeque::pop_front)
                    .unwrap_or_else(default);
                match reply {
                    Reply::Silence => None,
                    Reply::Error(error) => Some(Input::Failed {
                        session,
                        message: Some(id),
                        error,
                    }),
                    Reply::Answer(text, stop) => {
                        self.history.insert(session, (id, text.clone()));
                        let answer = Answer {
                            text,
                            stop,
                            usage: Usage::default(),
                        };
                        Some(Input::Answered {
                            session,
                            message: id,
                            answer,
                        })
                    }
                }
            }
            (EffectKey::Verify(step), Effect::Verify { .. }) => {
                let missing = if self.missing.is_empty() {
                    vec![]
                } else {
                    self.missing.remove(0)
                };
                Some(Input::Verified {
                    step,
                    result: Ok(missing),
                })
            }
            (EffectKey::Commit(step), Effect::Commit { .. }) => {
                let tip = format!("commit-of-{}", run.agent(step).id);
                let work = Committed {
                    tip,
                    commits: 1,
                    diff: DiffStat::default(),
                };
                Some(Input::Committed {
                    step,
                    result: Ok(work),
                })
            }
            (EffectKey::Merge(step), Effect::Merge(_)) => {
                let agent = run.agent(step).id.clone();
                if self.conflicts.contains(&agent) {
                    return Some(Input::Merged {
                        step,
                        result: Ok(MergeOutcome::Conflict(vec!["f".into()])),
                    });
                }
                let tip = format!("merge-of-{agent}");
                self.merged.push(agent);
                Some(Input::Merged {
                    step,
                    result: Ok(MergeOutcome::Merged(tip)),
                })
            }
            (EffectKey::Cancel(..), Effect::Cancel(_)) => {
                self.cancelled += 1;
                None
            }
            (EffectKey::Close(_, session), Effect::Close(_)) => {
                self.open.remove(&session);
                Some(Input::Closed {
                    session,
                    result: Ok(()),
                })
            }
            (EffectKey::Remove(step), Effect::Remove { .. }) => Some(Input::Removed {
                step,
                result: Ok(Removal::Removed),
            }),
            (key, effect) => panic!("{key:?} asks for {effect:?}"),
        }
    }

    pub(crate) fn prompted_order(&self) -> Vec<&str> {
        self.sent.iter().map(|(_, agent)| agent.as_str()).collect()
    }

    pub(crate) fn prompts_to(&self, agent: &str) -> usize {
        self.sent.iter().filter(|(_, to)| to == agent).count()
    }

    pub(crate) fn answers(&self) -> usize {
        self.log
            .iter()
            .filter(|fact| matches!(fact.event, Event::Answered { .. }))
            .count()
    }

    pub(crate) fn accepted_reports(&self) -> usize {
        self.log
            .iter()
            .filter(|fact| matches!(fact.event, Event::ReportAccepted { .. }))
            .count()
    }

    pub(crate) fn merged_once(&self) -> Vec<&str> {
        let mut merged: Vec<&str> = self.merged.iter().map(String::as_str).collect();
        merged.sort_unstable();
        merged.dedup();
        merged
    }

    pub(crate) fn no_identifier_twice(&self) {
        let mut seen = HashSet::new();
        for (message, agent) in &self.sent {
            assert!(seen.insert(*message), "a message to {agent} was sent twice");
        }
    }
}

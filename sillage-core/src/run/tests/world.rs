//! A world that does at once what a run asks, from a script.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use crate::folders::Folders;
use crate::id::{ClientMessageId, ClientSessionId, RunId, StepIndex};
use crate::ports::Ids;
use crate::ports::runtime::{
    Answer, FoundSession, MessageFate, OpenedSession, PermissionOption, PermissionRequest, RuntimeError,
    StopReason, Usage,
};
use crate::ports::workspace::{Committed, DiffStat, MergeBegun, MergeOutcome, Removal, Restarted, Worktree};
use crate::run::{
    AnsweredBy, BudgetChange, CeilingChange, CheckResult, Command, Effect, EffectKey, Event, Input,
    MessagePurpose, PermissionAnswer, Phase, Recorded, Run, RunDefinition, RunPolicy, RunRepository,
    StraySeen,
};
use crate::task::{
    AgentDefinition, AgentKind, AllowedPair, DelegatedField, FolderLists, Limits, Link, Port, SubAgentRules,
    Task, WorktreeWish,
};
use crate::time::Timestamp;

/// What an agent does with a message.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Answer(String, StopReason),
    Error(RuntimeError),
    Silence,
    /// Asks a person for a permission under this identifier, then goes on with the next reply.
    Ask(&'static str),
    /// Asks, and goes on without waiting.
    AskToo(&'static str, Box<Reply>),
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

/// A plan of sub-agents, each with a unit of its own and those that it comes after.
pub(crate) fn plan(sub_agents: &[(&str, &[&str])]) -> String {
    let units: Vec<serde_json::Value> = sub_agents
        .iter()
        .map(|(id, _)| serde_json::json!({ "id": format!("u-{id}"), "title": id }))
        .collect();
    let agents: Vec<serde_json::Value> = sub_agents
        .iter()
        .map(|(id, after)| {
            serde_json::json!({
                "id": id, "units": [format!("u-{id}")], "mission": format!("Do {id}."), "after": after
            })
        })
        .collect();
    serde_json::json!({ "units": units, "sub_agents": agents }).to_string()
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
        relaunch_of: None,
        gateways: Vec::new(),
        foretold: None,
        policy: RunPolicy::default(),
    }
}

impl RunDefinition {
    /// Makes an agent dynamic: at most four sub-agents, which write their own missions.
    pub(crate) fn with_dynamic(mut self, agent: &str) -> Self {
        let task = Arc::get_mut(&mut self.task).unwrap();
        let agent = task.agents.iter_mut().find(|one| one.id == agent).unwrap();
        agent.kind = AgentKind::Dynamic;
        agent.sub_agents = Some(SubAgentRules {
            max: 4.try_into().unwrap(),
            delegate: vec![DelegatedField::Mission],
            allow: vec![AllowedPair {
                model: "m".to_owned(),
                efforts: vec!["low".to_owned()],
            }],
        });
        self
    }

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

/// News of a permission request with the options `allow` and `reject`.
pub(crate) fn asked(session: ClientSessionId, id: &str) -> Input {
    let option = |id: &str| PermissionOption {
        id: id.to_owned(),
        name: id.to_owned(),
        kind: format!("{id}_once"),
    };
    let request = PermissionRequest {
        id: id.to_owned(),
        title: format!("Write {id}"),
        kind: Some("edit".to_owned()),
        paths: vec![format!("/repo/{id}").into()],
        options: vec![option("allow"), option("reject")],
    };
    Input::PermissionAsked {
        session,
        request: Arc::new(request),
    }
}

fn returns(run: &Run, step: StepIndex) -> u8 {
    run.step(step)
        .unwrap()
        .work()
        .map_or(0, |work| work.conflict_returns)
}

pub(crate) struct World {
    pub(crate) definition: RunDefinition,
    scripts: HashMap<String, VecDeque<Reply>>,
    /// What coordinators answer when they are asked for a plan.
    plans: HashMap<String, VecDeque<Reply>>,
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
    pub(crate) history: HashMap<ClientSessionId, (ClientMessageId, String)>,
    opened: HashSet<ClientSessionId>,
    sent: Vec<(ClientMessageId, String)>,
    pub(crate) texts: Vec<String>,
    pub(crate) sessions_opened: usize,
    pub(crate) most_at_work: usize,
    pub(crate) cancelled: usize,
    pub(crate) merged: Vec<String>,
    /// Times that the merge of an agent's work conflicts before it does not.
    pub(crate) clashes: HashMap<String, u8>,
    /// Steps whose worktrees hold no commit of their own at their end.
    pub(crate) writes_nothing: Vec<&'static str>,
    /// Times that an agent reports on a conflict that it left.
    pub(crate) stubborn: HashMap<String, u8>,
    /// Whether the task's check passes.
    pub(crate) passes: bool,
    pub(crate) seen: StraySeen,
    pub(crate) abandoned: usize,
    pub(crate) missing: Vec<Vec<PathBuf>>,
    /// Permission requests that are open in their session, with the message they belong to.
    asking: Vec<(ClientSessionId, &'static str, ClientMessageId)>,
    /// News that the world has and has not told yet.
    due: VecDeque<Input>,
    /// What each answer of an agent adds to its session's usage.
    pub(crate) spends: HashMap<String, Usage>,
    /// Usage of each session so far.
    pub(crate) spent: BTreeMap<ClientSessionId, Usage>,
    /// What agents were told: session, request, option; none: cancelled.
    pub(crate) told: Vec<(ClientSessionId, &'static str, Option<String>)>,
    /// What a person answers to each request that is open when nothing else goes on; none: nobody is there.
    pub(crate) person: Option<PermissionAnswer>,
}

impl World {
    pub(crate) fn new(definition: RunDefinition) -> Self {
        World {
            definition,
            scripts: HashMap::new(),
            plans: HashMap::new(),
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
            clashes: HashMap::new(),
            writes_nothing: Vec::new(),
            stubborn: HashMap::new(),
            passes: true,
            seen: StraySeen::default(),
            abandoned: 0,
            missing: vec![],
            asking: vec![],
            due: VecDeque::new(),
            told: vec![],
            spends: HashMap::new(),
            spent: BTreeMap::new(),
            person: None,
        }
    }

    pub(crate) fn script(&mut self, agent: &str, replies: impl IntoIterator<Item = Reply>) {
        self.scripts
            .insert(agent.to_owned(), replies.into_iter().collect());
    }

    pub(crate) fn plans(&mut self, agent: &str, replies: impl IntoIterator<Item = Reply>) {
        self.plans.insert(agent.to_owned(), replies.into_iter().collect());
    }

    /// The agent's session ends by itself, and nobody knows it any more.
    pub(crate) fn lose_session_of(&mut self, run: &mut Run, agent: &str) {
        let step = run.step_named(agent).unwrap();
        let session = run.step(step).unwrap().session().unwrap().id();
        self.open.remove(&session);
        self.opened.remove(&session);
        let words = "exit 1".to_owned();
        self.input(
            run,
            Input::Failed {
                session,
                message: None,
                error: RuntimeError::Lost { words },
            },
        );
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
            if let Some(news) = self.due.pop_front() {
                self.turn(run, vec![news]);
                continue;
            }
            self.done.retain(|key| run.outbox().contains(key));
            let mut wanted: Vec<EffectKey> = run
                .outbox()
                .iter()
                .filter(|key| !self.done.contains(key))
                .collect();
            wanted.sort();
            let Some(key) = wanted.first().copied() else {
                let open = run.permissions().into_iter().next();
                let (Some(open), Some(answer)) = (open, self.person.clone()) else {
                    return;
                };
                let asked = open.id.asked;
                self.now = self.now.plus(std::time::Duration::from_secs(10));
                self.turn(
                    run,
                    vec![Input::Command(Command::AnswerPermission { asked, answer })],
                );
                continue;
            };
            let effect = run.effect(key).unwrap();
            if let Some(input) = self.carry_out(run, key, effect) {
                self.turn(run, vec![input]);
            } else {
                self.done.insert(key);
            }
        }
    }

    /// The same world before anything happened.
    pub(crate) fn clone_of_script(&self) -> World {
        let mut other = World::new(self.definition.clone());
        other.scripts.clone_from(&self.scripts);
        other.clashes.clone_from(&self.clashes);
        other.writes_nothing.clone_from(&self.writes_nothing);
        other.stubborn.clone_from(&self.stubborn);
        other.passes = self.passes;
        other.person.clone_from(&self.person);
        other
    }

    /// As [`World::recover`], without going on.
    pub(crate) fn take_up_again(&mut self) -> Run {
        let mut run = Run::replay(self.log.clone()).unwrap();
        let mut wanted: Vec<EffectKey> = run.outbox().iter().collect();
        wanted.sort();
        for key in wanted {
            let effect = run.effect(key).unwrap();
            let _ = self.carry_out(&run, key, effect);
        }
        self.lose_processes();
        self.turn(&mut run, vec![Input::EngineStarted { pid: 2, left: vec![] }]);
        run
    }

    /// Does one thing that is asked.
    pub(crate) fn settle_once(&mut self, run: &mut Run) {
        let length = self.log.len() + 1;
        self.settle_until(run, length);
    }

    /// Does what is asked until a step stands so.
    pub(crate) fn settle_until_phase(&mut self, run: &mut Run, step: u32, stands: impl Fn(&Phase) -> bool) {
        while !stands(run.step(StepIndex(step)).unwrap().phase()) {
            let before = self.log.len();
            self.settle_once(run);
            assert!(self.log.len() > before, "it never stands so");
        }
    }

    /// Nobody knows the sessions any more.
    pub(crate) fn forget_sessions(&mut self) {
        self.open.clear();
        self.opened.clear();
        self.history.clear();
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
        let run = self.take_up_again();
        self.go_on(run)
    }

    /// Resumes, to the run's end.
    pub(crate) fn resume(&mut self, mut run: Run) -> Run {
        self.ask_to_resume(&mut run);
        self.go_on(run)
    }

    /// Resumes without ceilings: one that is reached would have it refused.
    pub(crate) fn ask_to_resume(&mut self, run: &mut Run) {
        let budget = BudgetChange {
            tokens: CeilingChange::Lift,
            cost: CeilingChange::Lift,
            time: CeilingChange::Lift,
            mode: None,
        };
        self.turn(run, vec![Input::Command(Command::Resume { budget })]);
    }

    fn agent_of(run: &Run, session: ClientSessionId) -> String {
        run.step_name(run.step_of(session).unwrap()).to_owned()
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
            (EffectKey::Send(step, id), Effect::Send { session, message, .. }) => {
                if self.has_in_hand(id) {
                    return None; // accepted before
                }
                let agent = self.open.get(&session).cloned()?;
                self.texts.push(message.text.clone());
                self.sent.push((id, agent.clone()));
                let reply = match run.is_planning(step) {
                    true => self.next_plan(&agent),
                    false => self.next_reply(&agent),
                };
                self.play(session, id, reply);
                self.due.pop_front()
            }
            (
                EffectKey::AnswerPermission(_, asked),
                Effect::AnswerPermission {
                    session,
                    permission,
                    option,
                },
            ) => {
                let mut open = self.asking.iter();
                let Some(open) = open.position(|(of, id, _)| *of == session && *id == permission) else {
                    let words = "no such request is open".to_owned();
                    let error = RuntimeError::Permanent { words };
                    return Some(Input::PermissionNotPassed {
                        session,
                        asked,
                        error,
                    });
                };
                let (_, id, message) = self.asking.remove(open);
                self.told.push((session, id, Some(option.clone())));
                self.due.push_back(Input::PermissionSettled {
                    session,
                    permission,
                    option: Some(option),
                    by: AnsweredBy::Person,
                });
                if !self.asking.iter().any(|(of, ..)| *of == session) {
                    let agent = self.open[&session].clone();
                    let reply = self.next_reply(&agent);
                    self.play(session, message, reply);
                }
                self.due.pop_front()
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
                let name = run.step_name(step);
                let tip = match returns(run, step) {
                    0 => format!("commit-of-{name}"),
                    again => format!("commit-of-{name}-{again}"),
                };
                let writes = !self.writes_nothing.contains(&name);
                let work = Committed {
                    tip: match run.step(step).and_then(|state| state.worktree()) {
                        Some(worktree) if !writes => worktree.base.clone(),
                        _ => tip,
                    },
                    commits: u32::from(writes),
                    diff: DiffStat::default(),
                };
                Some(Input::Committed {
                    step,
                    result: Ok(work),
                    seen: self.seen.clone(),
                })
            }
            (EffectKey::Merge(step), Effect::Merge(_)) => {
                let agent = run.step_name(step).to_owned();
                if returns(run, step) < self.clashes.get(&agent).copied().unwrap_or(0) {
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
            (EffectKey::BeginMerge(step), Effect::BeginMerge { wish, .. }) => {
                assert!(wish.commit.starts_with("commit-of-"));
                let result = Ok(MergeBegun {
                    onto: run.tip().unwrap_or("base").to_owned(),
                    files: vec!["f".into(), "g".into()],
                });
                Some(Input::MergeBegun { step, result })
            }
            (EffectKey::Inspect(step), Effect::Inspect { files, .. }) => {
                assert_eq!(files, ["f", "g"]);
                let agent = run.step_name(step);
                let left = returns(run, step) <= self.stubborn.get(agent).copied().unwrap_or(0);
                let result = Ok(if left { vec!["f".into()] } else { vec![] });
                Some(Input::Inspected { step, result })
            }
            (EffectKey::AbandonMerge(step), Effect::AbandonMerge { .. }) => {
                self.abandoned += 1;
                let result = Ok(Some("refs/sillage/rescue/r1/x/1".to_owned()));
                Some(Input::MergeAbandoned { step, result })
            }
            (EffectKey::Check, Effect::Check { command, .. }) => {
                assert_eq!(command, "make check");
                Some(Input::Checked(CheckResult {
                    passed: self.passes,
                    code: Some(i32::from(!self.passes)),
                    why: None,
                    output: "said\n".to_owned(),
                    written: 5,
                    file: Some(PathBuf::from("/data/r1/check.log")),
                }))
            }
            (EffectKey::ClearCheck, Effect::ClearCheck { .. }) => {
                Some(Input::CheckCleared { result: Ok(()) })
            }
            (EffectKey::Cancel(_, session), Effect::Cancel(_)) => {
                self.cancelled += 1;
                let open: Vec<_> = self.asking.extract_if(.., |(of, ..)| *of == session).collect();
                let message = open.first().map(|(_, _, message)| *message);
                for (_, id, _) in open {
                    self.told.push((session, id, None));
                    self.due.push_back(Input::PermissionSettled {
                        session,
                        permission: id.to_owned(),
                        option: None,
                        by: AnsweredBy::Cancel,
                    });
                }
                if let Some(message) = message {
                    self.play(
                        session,
                        message,
                        Reply::Answer(String::new(), StopReason::Cancelled),
                    );
                }
                self.due.pop_front()
            }
            (EffectKey::Close(_, session), Effect::Close(_)) => {
                self.open.remove(&session);
                self.asking.retain(|(of, ..)| *of != session);
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

    /// The engine died, and with it every process that it had started.
    pub(crate) fn lose_processes(&mut self) {
        self.open.clear();
        self.asking.clear();
        self.due.clear();
        self.done.clear();
        self.ids = Box::new(ids(2));
    }

    /// An agent takes back what it asked, and does not say so.
    pub(crate) fn withdraw(&mut self) {
        self.asking.clear();
    }

    fn next_plan(&mut self, agent: &str) -> Reply {
        let scripted = self.plans.get_mut(agent).and_then(VecDeque::pop_front);
        scripted.unwrap_or_else(|| Reply::text(&plan(&[("x", &[]), ("y", &[])])))
    }

    fn next_reply(&mut self, agent: &str) -> Reply {
        let scripted = self.scripts.get_mut(agent).and_then(VecDeque::pop_front);
        scripted.unwrap_or_else(|| Reply::text(&report("complete")))
    }

    /// Whether the message was accepted and its answer is to come.
    fn has_in_hand(&self, message: ClientMessageId) -> bool {
        self.asking.iter().any(|(_, _, of)| *of == message)
            || self.due.iter().any(|news| {
                matches!(news, Input::Answered { message: of, .. } | Input::Failed { message: Some(of), .. }
                    if *of == message)
            })
    }

    /// What an agent does: as news that is due.
    fn play(&mut self, session: ClientSessionId, message: ClientMessageId, reply: Reply) {
        let news = match reply {
            Reply::Silence => return,
            Reply::Ask(id) => {
                self.asking.push((session, id, message));
                asked(session, id)
            }
            Reply::AskToo(id, next) => {
                self.asking.push((session, id, message));
                self.due.push_back(asked(session, id));
                return self.play(session, message, *next);
            }
            Reply::Error(error) => Input::Failed {
                session,
                message: Some(message),
                error,
            },
            Reply::Answer(text, stop) => {
                self.history.insert(session, (message, text.clone()));
                let usage = self.spend(session);
                Input::Answered {
                    session,
                    message,
                    answer: Answer { text, stop, usage },
                }
            }
        };
        self.due.push_back(news);
    }

    /// An answer adds to what its session has used; the session tells its totals.
    fn spend(&mut self, session: ClientSessionId) -> Usage {
        let agent = self.open.get(&session).cloned().unwrap_or_default();
        let Some(more) = self.spends.get(&agent).copied() else {
            return Usage::default();
        };
        let total = self.spent.entry(session).or_default();
        *total = crate::run::step::added(*total, more);
        *total
    }

    /// How often this was told to an agent.
    pub(crate) fn told(&self, step: u32, wanted: MessagePurpose) -> usize {
        let is = |event: &Event| matches!(event, Event::MessagePlanned { step: of, purpose, .. } if of.0 == step && *purpose == wanted);
        self.log.iter().filter(|fact| is(&fact.event)).count()
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

    /// C13: whatever an agent was let do, a person had answered that very request.
    pub(crate) fn nothing_granted_in_silence(&self) {
        for (session, permission, option) in &self.told {
            let Some(option) = option else { continue };
            let mut asked = self.log.iter().filter_map(|fact| {
                let is = matches!(&fact.event, Event::PermissionAsked { session: of, request, .. }
                    if of == session && request.id == *permission);
                is.then_some(fact.seq)
            });
            let answered = asked.any(|position| {
                self.log.iter().any(|fact| {
                    matches!(&fact.event, Event::PermissionAnswered { asked, option: with, .. }
                        if *asked == position && with == option)
                })
            });
            assert!(answered, "{permission} of {session} was granted in silence");
        }
    }
}

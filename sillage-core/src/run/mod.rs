//! The run as a state machine, folded from an append-only log of events (R1).
//!
//! [`Run::decide`] says what follows from an input and changes nothing; [`Run::apply`] believes one fact and decides
//! nothing; [`Run::outbox`] says what ought to be going on outside; [`Run::deadline`] says when to look again.
//! [`Run::turn`] joins them for an engine: several inputs, one batch of facts. Time and identifiers come in.

mod account_view;
mod apply;
mod budget;
mod by_hand;
mod check;
mod cleaning;
mod clocks;
pub mod codec;
mod commands;
mod compose;
mod conflict;
mod decide;
mod definition;
mod effect;
mod ends;
mod event;
mod failure;
mod gates;
mod group;
mod hand;
mod input;
mod not_run;
mod outbox;
mod permissions;
mod phases;
mod places;
mod purpose;
mod relaunch;
mod spending;
mod spent;
mod step;
mod stray;
#[cfg(test)]
pub(crate) mod tests;
mod view;
mod waiting;
mod wall;
mod work;
mod worktrees;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

pub use account_view::AccountView;
pub use budget::{
    BadCeiling, BadCurrency, Budget, BudgetChange, BudgetKind, BudgetMode, BudgetView, Ceiling,
    CeilingChange, CeilingView, Currency, Money, parse_cost, parse_time, parse_tokens,
};
pub use by_hand::Taken;
pub use check::{CHECK_LIMIT, CHECK_OUTPUT, CHECK_TAIL, CheckPlace, CheckResult, check_overran};
pub use clocks::{ClockReading, ClockWatch};
pub use conflict::CONFLICT_RETURNS;
pub use definition::{RelaunchOf, RunDefinition, RunGateway, RunPolicy, RunRepository};
pub use effect::{Effect, ReportFile};
pub use ends::{RunEnd, StepEnd};
pub use event::{AnsweredBy, Event, MessagePurpose, Recorded};
pub use failure::{Failure, FailureClass, WaitCause};
pub use gates::{DOUBTFUL_AFTER, DOUBTFUL_RETRY, Gate, OpenedBy, Wall};
pub use hand::{Hand, TakenWork};
pub use input::{Command, Input, LeftBehind, PermissionAnswer, Refused, StepCommand};
pub use not_run::{NotRun, NotRunBecause};
pub use outbox::{EffectKey, Outbox};
pub use permissions::{BadPermissionId, OpenPermission, PermissionId, PermissionView, REFUSALS_TOLD};
pub use relaunch::{InTheWay, NotRelaunched, Relaunch, relaunch_from};
pub use spent::{Cost, Spent};
pub use step::{Conflict, Ledger, Phase, Step, StepSession, Wait, Work};
pub use stray::{CheckoutWatch, StraySeen, StraySign, StrayWrite};
pub(crate) use view::SUPERSEDED;
pub use view::{CheckView, ConflictView, RunView, StepView};
pub use waiting::{PlaceLimit, WaitingFor};
pub use worktrees::worktrees;

use crate::graph::Graph;
use crate::id::{ClientSessionId, RunId, Seq, StepIndex};
use crate::ports::Ids;
use crate::ports::store::RunSummary;
use crate::time::Timestamp;
use places::Places;

/// One execution of one version of a task.
#[derive(Debug, Clone)]
pub struct Run {
    definition: Arc<RunDefinition>,
    graph: Graph,
    /// Of the task's links those that name an output or an input, by the agent that they lead to.
    named_links: HashMap<u32, Vec<usize>>,
    steps: Vec<Step>,
    /// What the steps after the task's own are: sub-agents.
    sub_steps: Vec<group::SubStep>,
    places: Places,
    gates: gates::Gates,
    outbox: Outbox,
    timers: BTreeSet<(Timestamp, StepIndex)>,
    stage: Stage,
    launched: Timestamp,
    last: Seq,
    updated: Timestamp,
    /// The integration branch's tip, once something was merged.
    tip: Option<String>,
    /// The merges that changed the integration branch, in their order.
    merges: Vec<work::MergeDone>,
    merge_queue: VecDeque<StepIndex>,
    merging: Option<StepIndex>,
    /// Sessions being closed, with their steps.
    closing: HashMap<ClientSessionId, StepIndex>,
    /// Steps whose session may be attached or asked for: all but the resting ones.
    live: HashMap<ClientSessionId, StepIndex>,
    /// Steps on their way to an end, past their session's work.
    ending: u32,
    ended: u32,
    /// Of those that ended, the ones that succeeded.
    succeeded: u32,
    /// Steps that wait for a person.
    asking: u32,
    /// Worktrees that are still to be asked to go, at the end of a successful run.
    removing: u32,
    /// Steps whose result, or whose end without one, rests on an earlier try upstream, and that are to be done again,
    /// each with the step upstream.
    outdated: BTreeMap<StepIndex, StepIndex>,
    check: check::CheckState,
    spending: spending::Spending,
}

/// Where the run as a whole stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Running,
    Stopping { since: Timestamp, forced: bool },
    Ended(RunEnd),
}

/// A log that no run of this program can have written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} cannot follow what is before it: {why}")]
pub struct CorruptLog {
    /// The event.
    pub seq: Seq,
    /// Why it cannot.
    pub why: String,
}

impl Run {
    /// The facts that launch a run: the first turn of its log.
    #[must_use]
    pub fn launch(now: Timestamp, definition: RunDefinition) -> Recorded {
        Recorded {
            seq: Seq::FIRST,
            at: now,
            event: Event::RunCreated(Box::new(definition)),
        }
    }

    /// The run as its log tells it.
    ///
    /// # Errors
    /// [`CorruptLog`] when the log does not start with a launch, has gaps, or holds an event that cannot follow.
    pub fn replay(log: impl IntoIterator<Item = Recorded>) -> Result<Run, CorruptLog> {
        let mut log = log.into_iter();
        let Some(first) = log.next() else {
            return Err(CorruptLog {
                seq: Seq::FIRST,
                why: "the log is empty".to_owned(),
            });
        };
        let mut run = Run::start(first)?;
        for fact in log {
            run.apply(&fact)?;
        }
        Ok(run)
    }

    /// The run after its first event.
    ///
    /// # Errors
    /// [`CorruptLog`] when that is not a launch at position 1.
    pub fn start(first: Recorded) -> Result<Run, CorruptLog> {
        match first {
            Recorded {
                seq: Seq::FIRST,
                at,
                event: Event::RunCreated(definition),
            } => Run::created(at, *definition),
            other => Err(CorruptLog {
                seq: other.seq,
                why: "a log starts with the run's launch".to_owned(),
            }),
        }
    }

    fn created(at: Timestamp, definition: RunDefinition) -> Result<Run, CorruptLog> {
        let graph = Graph::of(&definition.task).map_err(|_| CorruptLog {
            seq: Seq::FIRST,
            why: "its links form a cycle".to_owned(),
        })?;
        let weights = vec![1; graph.len()];
        let steps: Vec<Step> = (0..u32::try_from(graph.len()).unwrap_or(u32::MAX))
            .map(|node| Step::new(u32::try_from(graph.parents(node).len()).unwrap_or(u32::MAX)))
            .collect();
        let mut places = Places::new(&definition, graph.longest_remaining(&weights));
        for (position, step) in steps.iter().enumerate() {
            if step.phase == Phase::Ready {
                places.ready(position);
            }
        }
        Ok(Run {
            gates: gates::Gates::new(&definition),
            named_links: compose::index_named_links(&definition.task),
            spending: spending::Spending::of(definition.policy.budget, at),
            definition: Arc::new(definition),
            graph,
            steps,
            sub_steps: Vec::new(),
            places,
            outbox: Outbox::default(),
            timers: BTreeSet::new(),
            stage: Stage::Running,
            launched: at,
            last: Seq::FIRST,
            updated: at,
            tip: None,
            merges: Vec::new(),
            merge_queue: VecDeque::new(),
            merging: None,
            closing: HashMap::new(),
            live: HashMap::new(),
            ending: 0,
            ended: 0,
            succeeded: 0,
            asking: 0,
            removing: 0,
            outdated: BTreeMap::new(),
            check: check::CheckState::default(),
        })
    }

    /// Takes several inputs at once: decides and applies each, then everything that follows from them. The facts
    /// are to be made durable as one batch before anything is done about them; if that fails, this value is ahead
    /// of the log and must be replayed from it. Commands that are refused are told with the facts of the others.
    ///
    /// # Errors
    /// [`CorruptLog`] when a decision cannot be applied: a defect.
    pub fn turn(
        &mut self,
        now: Timestamp,
        ids: &mut dyn Ids,
        inputs: impl IntoIterator<Item = Input>,
    ) -> Result<Turn, CorruptLog> {
        let mut turn = Turn::default();
        for input in inputs {
            match self.decide(now, ids, &input) {
                Ok(events) => self.believe(now, events, &mut turn.facts)?,
                Err(refused) => turn.refused.push((input, refused)),
            }
        }
        loop {
            match self.decide(now, ids, &Input::Tick) {
                Ok(events) if events.is_empty() => return Ok(turn),
                Ok(events) => self.believe(now, events, &mut turn.facts)?,
                Err(_) => return Ok(turn),
            }
        }
    }

    fn believe(
        &mut self,
        at: Timestamp,
        events: Vec<Event>,
        facts: &mut Vec<Recorded>,
    ) -> Result<(), CorruptLog> {
        for event in events {
            let fact = Recorded {
                seq: self.last.next(),
                at,
                event,
            };
            self.apply(&fact)?;
            facts.push(fact);
        }
        Ok(())
    }

    /// What ought to be going on outside; the same after a restart.
    #[must_use]
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Keys of the outbox that came or went since the last call.
    pub fn take_outbox_changes(&mut self) -> Vec<EffectKey> {
        self.outbox.take_changes()
    }

    /// When to send [`Input::Tick`] if nothing else happens.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        match self.stage {
            Stage::Running => {
                let timer = self.timers.first().map(|(at, _)| *at);
                let due = timer.into_iter().chain(self.time_is_up());
                due.chain(self.gates_deadline()).min()
            }
            Stage::Stopping { since, forced: false } => Some(since.plus(self.definition.policy.stop_grace)),
            Stage::Stopping { forced: true, .. } | Stage::Ended(_) => None,
        }
    }

    /// What it was asked to do.
    #[must_use]
    pub fn definition(&self) -> &RunDefinition {
        &self.definition
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.definition.run
    }

    /// Its steps, by index.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// A step.
    #[must_use]
    pub fn step(&self, step: StepIndex) -> Option<&Step> {
        self.steps.get(step.position())
    }

    /// The graph of its agents.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn end(&self) -> Option<RunEnd> {
        match self.stage {
            Stage::Ended(end) => Some(end),
            Stage::Running | Stage::Stopping { .. } => None,
        }
    }

    /// Whether it is over and something in it did not succeed, its check included, or a sub-agent never ran (R12).
    #[must_use]
    pub fn can_resume(&self) -> bool {
        let of_the_task = &self.steps[..self.definition.task.agents.len()];
        let left = || !of_the_task.iter().all(Step::succeeded) || !self.reported_without().is_empty();
        self.end().is_some() && (left() || self.check_left())
    }

    /// Whether every step has succeeded, and the check, if there is one, has passed.
    fn is_done(&self) -> bool {
        let check_passed = self.check().is_some_and(|check| check.passed);
        let of_the_task = &self.steps[..self.definition.task.agents.len()];
        of_the_task.iter().all(Step::succeeded) && (self.check_command().is_none() || check_passed)
    }

    /// Its state in the words of R2.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self.stage {
            Stage::Ended(end) => end.word(),
            Stage::Stopping { .. } => "stopping",
            Stage::Running if self.is_waiting() => "waiting",
            Stage::Running => "running",
        }
    }

    /// Whether nothing is under way but waits.
    fn is_waiting(&self) -> bool {
        let waits = |step: &Step| matches!(step.phase, Phase::Waiting(_) | Phase::Held(_) | Phase::Asking(_));
        self.outbox.is_empty() && self.steps.iter().any(waits)
    }

    /// The commit of the integration branch, once something was merged.
    #[must_use]
    pub fn tip(&self) -> Option<&str> {
        self.tip.as_deref()
    }

    /// When it was launched.
    #[must_use]
    pub fn launched(&self) -> Timestamp {
        self.launched
    }

    /// When its last event was decided.
    #[must_use]
    pub fn updated(&self) -> Timestamp {
        self.updated
    }

    /// The position of its last event.
    #[must_use]
    pub fn last(&self) -> Seq {
        self.last
    }

    /// Steps past their session's work whose end is being brought about now.
    fn ending_now(&self) -> usize {
        (self.ending as usize).saturating_sub(self.merge_queue.len())
    }

    /// Sessions that may be alive in the runtime though the run does not ask anything of them.
    pub fn sessions_to_leave(&self) -> impl Iterator<Item = ClientSessionId> + '_ {
        self.live.keys().chain(self.closing.keys()).copied()
    }

    /// Whether the run asks anything of the session: it was planned, and is not being closed.
    #[must_use]
    pub fn is_live(&self, session: ClientSessionId) -> bool {
        self.live.contains_key(&session)
    }

    /// The step that a live session belongs to.
    #[must_use]
    pub fn step_of(&self, session: ClientSessionId) -> Option<StepIndex> {
        self.live
            .get(&session)
            .or_else(|| self.closing.get(&session))
            .copied()
    }

    /// What lists of runs show of it.
    #[must_use]
    pub fn summary(&self) -> RunSummary {
        // Steps of plans in place of which another was made count no more.
        let (mut steps, mut ended, mut succeeded) = (self.steps.len(), self.ended, self.succeeded);
        for step in self.superseded() {
            steps -= 1;
            ended -= u32::from(step.end().is_some());
            succeeded -= u32::from(step.succeeded());
        }
        RunSummary {
            run: self.definition.run.clone(),
            title: self.definition.task.title.clone(),
            task_file: self.definition.task_file.clone(),
            launched: self.launched,
            updated: self.updated,
            state: match self.stage {
                // Told without a look at every step: lists are written with each batch.
                Stage::Running => "running".to_owned(),
                Stage::Stopping { .. } | Stage::Ended(_) => self.word().to_owned(),
            },
            finished: matches!(self.stage, Stage::Ended(_)),
            steps: u32::try_from(steps).unwrap_or(u32::MAX),
            ended,
            succeeded,
            asking: self.asking,
            resumable: self.can_resume(),
            last: self.last,
        }
    }
}

/// What a turn decided.
#[derive(Debug, Default)]
pub struct Turn {
    /// The facts, in order: one batch.
    pub facts: Vec<Recorded>,
    /// The commands that made no sense.
    pub refused: Vec<(Input, Refused)>,
}

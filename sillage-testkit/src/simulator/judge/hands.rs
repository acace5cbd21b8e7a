//! What the judge expects where a person takes a hand: resumes, retries, skips, ceilings.

use sillage_core::id::StepIndex;
use sillage_core::run::{Budget, BudgetKind, BudgetMode, Event, Phase, Recorded, StepEnd};

use super::book::StepBook;
use super::{Judge, Promise};

impl Judge {
    pub(super) fn engine_started(&mut self) {
        for session in self.sessions.values_mut() {
            session.excuses += 1;
        }
        // What the engine before was told may not be in the log.
        for message in self.messages.values_mut() {
            message.in_conflict = false;
        }
        self.conflicts.clear();
    }

    /// The steps that are over and did not succeed.
    pub(crate) fn lost_steps(&self) -> Vec<StepIndex> {
        let steps = (0..).map(StepIndex).zip(&self.steps);
        let lost = steps.filter(|(_, book)| book.end.is_some() && !book.succeeded());
        lost.map(|(step, _)| step).collect()
    }

    /// The coordinator of a step that a plan made.
    pub(crate) fn coordinator_of(&self, step: StepIndex) -> Option<StepIndex> {
        self.steps.get(step.position())?.of
    }

    /// A run that is over goes on.
    fn goes_on(&mut self) {
        self.ended = None;
        self.stopping = false;
        self.reached.clear();
        self.failed_first = None;
        self.engine_started();
    }

    pub(super) fn resumed(&mut self) {
        let over = self.ended.is_some();
        self.expect(Promise::Order, over, || {
            "a run that is under way was taken up as one that ended".to_owned()
        });
        self.goes_on();
    }

    /// Whether the step is a coordinator whose report was made without a sub-agent that a person or a ceiling kept from
    /// its work: a resume has it made anew.
    fn reported_without_one_kept_from_it(&self, position: usize) -> bool {
        self.steps.iter().any(|book| {
            book.of.is_some_and(|of| of.position() == position)
                && matches!(
                    book.end,
                    Some(StepEnd::Skipped | StepEnd::OverBudget | StepEnd::FailedFast(_))
                )
        })
    }

    /// After a resume was believed: what did not succeed is to be done again, unless its group's report was made
    /// without it; what succeeded stays.
    pub(super) fn taken_up(&mut self, fact: &Recorded) {
        if !matches!(fact.event, Event::ResumeAsked) {
            return;
        }
        let Some(run) = &self.run else { return };
        let over: Vec<bool> = run
            .steps()
            .iter()
            .map(|step| matches!(step.phase(), Phase::Ended(_)))
            .collect();
        for (position, over) in over.into_iter().enumerate() {
            let book = &self.steps[position];
            let (succeeded, sub, ended) = (book.succeeded(), book.of.is_some(), book.end.clone());
            let Some(end) = ended else { continue };
            let remade = self.reported_without_one_kept_from_it(position);
            self.expect(Promise::EndsOnce, over || !succeeded || remade, || {
                format!("step {position} succeeded, and is done again")
            });
            // One that is outdated is begun anew a little later: what did not run because of what does now.
            let stays = sub || succeeded || matches!(end, StepEnd::NotRun(_) | StepEnd::FailedFast(_));
            self.expect(
                Promise::EndsOnce,
                !over || stays || self.is_downstream(position),
                || format!("step {position} did not succeed, and is not done again"),
            );
            if over {
                continue;
            }
            let book = &mut self.steps[position];
            if end == StepEnd::Skipped {
                book.begin_anew();
            }
            book.end = None;
            book.lets_follow = false;
            book.tries = 0;
            book.accepted = None;
            book.conflicted = false;
            book.skipping = false;
            let kept = matches!(end, StepEnd::Cancelled | StepEnd::OverBudget);
            // The session of a step that was cancelled, or whose wait a ceiling ended, is looked for again; no other's ever.
            if let Some(session) = book.session.and_then(|id| self.sessions.get_mut(&id)) {
                session.left |= !kept;
                session.over &= session.left || !session.opened;
            }
        }
    }

    fn is_downstream(&self, position: usize) -> bool {
        let node = u32::try_from(position).unwrap_or(u32::MAX);
        self.run
            .as_ref()
            .is_some_and(|run| !run.graph().parents(node).is_empty())
    }

    /// A person wants a step done again.
    pub(super) fn retried(&mut self, step: StepIndex) {
        self.hand_on(step);
        self.steps[step.position()].tries = 0;
        if self.steps[step.position()].end.is_some() {
            self.gathers_anew(step);
            self.begun_anew(step);
        }
    }

    /// The coordinator that reported on a group of which this is one waits for it, and reports anew.
    fn gathers_anew(&mut self, step: StepIndex) {
        let Some(of) = self.steps[step.position()].of else {
            return;
        };
        let coordinator = &self.steps[of.position()];
        let group = coordinator.group.clone().filter(|group| group.contains(&step.0));
        let reported = matches!(
            coordinator.end,
            Some(StepEnd::Complete | StepEnd::Partial | StepEnd::Blocked | StepEnd::Failed(_))
        );
        if reported && group.is_some() {
            self.begun_anew(of);
            self.steps[of.position()].group = group;
            self.failed_first = self.failed_first.filter(|first| *first != of);
        }
    }

    /// A person wants to go on without a step.
    pub(super) fn skipped(&mut self, step: StepIndex) {
        self.hand_on(step);
        let book = &mut self.steps[step.position()];
        let succeeded = book.succeeded();
        if book.end.is_some() {
            book.begin_anew();
        }
        book.skipping = true;
        self.expect(Promise::EndsOnce, !succeeded, || {
            format!("step {} succeeded, and is skipped", step.0)
        });
    }

    fn hand_on(&mut self, step: StepIndex) {
        let stopping = self.stopping && self.ended.is_none();
        self.expect(Promise::StopWins, !stopping, || {
            format!("a hand is laid on step {} after a stop", step.0)
        });
        if self.ended.is_some() {
            self.goes_on();
        }
        self.failed_first = self.failed_first.filter(|first| *first != step);
    }

    /// What a step did counts no more.
    pub(super) fn begun_anew(&mut self, step: StepIndex) {
        let book = &mut self.steps[step.position()];
        book.begin_anew();
        if let Some(session) = book.session.and_then(|id| self.sessions.get_mut(&id)) {
            session.over = true;
            session.left = true;
        }
    }

    // --- Ceilings ---

    pub(super) fn ceilings_changed(&mut self, budget: Option<Budget>) {
        let mode = |budget: Option<Budget>| budget.map(|budget| budget.mode);
        let same = mode(self.budget) == mode(budget);
        let known = |(kind, limit): &(BudgetKind, u64)| {
            let mut ceilings = budget.iter().flat_map(Budget::ceilings);
            ceilings.any(|one| one.kind == *kind && one.limit == *limit)
        };
        self.reached.retain(|one| same && known(one));
        self.budget = budget;
    }

    /// A ceiling is told once, when it is reached.
    pub(super) fn ceiling_reached(&mut self, kind: BudgetKind, limit: u64, used: u64, mode: BudgetMode) {
        let mine = self.budget.is_some_and(|budget| {
            budget.mode == mode
                && budget
                    .ceilings()
                    .any(|one| one.kind == kind && one.limit == limit)
        });
        let new = !self.reached.contains(&(kind, limit));
        self.expect(Promise::Ceilings, mine && new && used >= limit, || {
            format!("the ceiling of {limit} {} is told at {used}", kind.word())
        });
        self.reached.push((kind, limit));
    }

    pub(super) fn is_held_by_ceiling(&self) -> bool {
        let enforced = self
            .budget
            .is_some_and(|budget| budget.mode == BudgetMode::Enforce);
        enforced && !self.reached.is_empty()
    }

    /// A coordinator none of whose sub-agents was begun ends as the last of them, and what follows it ends so too.
    pub(super) fn follows_such_an_end(&self, step: StepIndex, end: &StepEnd) -> bool {
        let parents = self
            .run
            .as_ref()
            .map_or(&[][..], |run| run.graph().parents(step.0));
        let ended_so = |book: &StepBook| book.end.as_ref() == Some(end);
        let mut subs = self.steps.iter().filter(|book| book.of == Some(step));
        subs.any(ended_so)
            || parents
                .iter()
                .any(|parent| ended_so(&self.steps[*parent as usize]))
    }

    /// A step failed: where that is to stop the rest, nothing new begins.
    pub(super) fn failed(&mut self, step: StepIndex) {
        let fast = self
            .run
            .as_ref()
            .is_some_and(|run| run.definition().policy.fail_fast);
        if fast && self.steps[step.position()].of.is_none() {
            self.failed_first.get_or_insert(step);
        }
    }

    /// A session is planned.
    pub(super) fn may_open(&mut self, step: StepIndex) {
        let held = self.is_held_by_ceiling();
        let first = self.failed_first;
        self.expect(Promise::Ceilings, !held, || {
            format!("a session of step {} after an enforced ceiling", step.0)
        });
        self.expect(Promise::Ceilings, first.is_none(), || {
            format!("a session of step {} after {first:?} failed", step.0)
        });
    }
}

//! What a run has spent so far, kept as it comes in: tokens, costs and time under way.
//!
//! Each session tells totals of its own. What it told before is taken out and what it tells now is put in, so that a
//! session counts once however often it tells, whether it is a step's first or fifth; and so no step is looked at.

use std::collections::BTreeMap;
use std::time::Duration;

use super::budget::{Budget, BudgetKind, BudgetMode, Ceiling, Currency, millis};
use super::event::{RunEnd, StepEnd};
use super::step::{Step, added};
use super::{Run, Stage};
use crate::id::{ClientSessionId, StepIndex};
use crate::planted::{Bug, planted};
use crate::ports::runtime::Usage;
use crate::time::Timestamp;

/// Sums over a run's sessions, and what they may come to.
#[derive(Debug, Clone, Default)]
pub(super) struct Spending {
    pub(super) budget: Option<Budget>,
    /// The ceilings of it that were told to be reached.
    reached: Vec<Ceiling>,
    tokens: u64,
    costs: BTreeMap<[u8; 3], u64>,
    /// Time under way of engines before this one.
    under_way: Duration,
    /// Since when this one has it under way; none: nobody has.
    since: Option<Timestamp>,
    /// The first step that failed, where that is to stop the others.
    failed_first: Option<StepIndex>,
}

/// The tokens that count.
fn counted(usage: &Usage) -> u64 {
    [usage.input_tokens, usage.output_tokens, usage.cache_write_tokens]
        .into_iter()
        .flatten()
        .fold(0, u64::saturating_add)
}

impl Spending {
    pub(super) fn of(budget: Option<Budget>, launched: Timestamp) -> Spending {
        Spending {
            budget,
            since: Some(launched),
            ..Spending::default()
        }
    }

    /// A session that told `before` tells `after`.
    fn count(&mut self, before: &Usage, after: &Usage) {
        self.tokens = self
            .tokens
            .saturating_sub(counted(before))
            .saturating_add(counted(after));
        if let (Some(micros), Some(currency)) = (before.cost_micros, before.currency) {
            let sum = self.costs.entry(currency).or_default();
            *sum = sum.saturating_sub(micros);
        }
        if let (Some(micros), Some(currency)) = (after.cost_micros, after.currency) {
            let sum = self.costs.entry(currency).or_default();
            *sum = sum.saturating_add(micros);
        }
    }

    fn under_way(&self, now: Timestamp) -> Duration {
        self.under_way + self.since.map_or(Duration::ZERO, |since| now.since(since))
    }

    fn used(&self, ceiling: Ceiling, now: Timestamp) -> u64 {
        match ceiling.kind {
            BudgetKind::Tokens => self.tokens,
            BudgetKind::Cost => {
                let sum = ceiling.currency.and_then(|code| self.costs.get(&code.code()));
                sum.copied().unwrap_or(0)
            }
            BudgetKind::Time => millis(self.under_way(now)),
        }
    }

    /// Nobody has the run under way any more, since then.
    pub(super) fn pause(&mut self, at: Timestamp) {
        self.under_way = self.under_way(at);
        self.since = None;
    }

    /// An engine has the run under way from now.
    pub(super) fn go_on(&mut self, at: Timestamp) {
        self.since = Some(at);
    }

    /// What was told of a ceiling that stays as it was is not told again.
    pub(super) fn change_budget(&mut self, budget: Option<Budget>) {
        let mode = |budget: Option<Budget>| budget.map(|budget| budget.mode);
        let same = mode(self.budget) == mode(budget);
        let stays = |known: &Ceiling| budget.is_some_and(|budget| budget.ceilings().any(|one| one == *known));
        self.reached.retain(|known| same && stays(known));
        self.budget = budget;
    }

    pub(super) fn reach(&mut self, ceiling: Ceiling) {
        self.reached.push(ceiling);
    }

    /// A step failed, and the rest is not to be begun.
    pub(super) fn fail_fast(&mut self, step: StepIndex) {
        self.failed_first.get_or_insert(step);
    }

    /// A person saw to the step that failed first: the run goes on as they wish, whatever failed after it.
    pub(super) fn forget_failure(&mut self, step: StepIndex) {
        self.failed_first = self.failed_first.filter(|first| *first != step);
    }
}

impl Run {
    /// Its ceilings; none: it has none.
    #[must_use]
    pub fn budget(&self) -> Option<&Budget> {
        self.spending.budget.as_ref()
    }

    /// How long engines have had it under way, up to `now`.
    #[must_use]
    pub fn time_under_way(&self, now: Timestamp) -> Duration {
        self.spending.under_way(now)
    }

    /// How long it was under way in all, once it came to an end that an estimate can be held against (R27): it is
    /// complete or partial.
    #[must_use]
    pub fn took(&self) -> Option<Duration> {
        match self.end()? {
            RunEnd::Complete | RunEnd::Partial => Some(self.time_under_way(self.updated)),
            RunEnd::Blocked | RunEnd::Failed | RunEnd::Stopped => None,
        }
    }

    /// What is known to be used of a ceiling, in its unit.
    #[must_use]
    pub fn used(&self, ceiling: Ceiling, now: Timestamp) -> u64 {
        self.spending.used(ceiling, now)
    }

    /// Whether it was told that this ceiling is reached.
    #[must_use]
    pub fn was_reached(&self, ceiling: Ceiling) -> bool {
        self.spending.reached.contains(&ceiling)
    }

    /// The ceilings of a budget that are used up at `now`.
    pub(super) fn used_up(&self, budget: Budget, now: Timestamp) -> impl Iterator<Item = (Ceiling, u64)> {
        let used = move |ceiling: Ceiling| (ceiling, self.used(ceiling, now));
        budget
            .ceilings()
            .map(used)
            .filter(|(ceiling, used)| *used >= ceiling.limit)
    }

    /// What did not succeed is to be done again.
    pub(super) fn resume_spending(&mut self, at: Timestamp) {
        self.spending.go_on(at);
        self.spending.failed_first = None;
        // A ceiling is not reached any more where a session told less than before.
        let reached = std::mem::take(&mut self.spending.reached);
        let still = |ceiling: &Ceiling| self.spending.used(*ceiling, at) >= ceiling.limit;
        self.spending.reached = reached.into_iter().filter(still).collect();
    }

    /// The step failed: where that is asked for, the rest is not begun any more.
    pub(super) fn fail_fast(&mut self, step: StepIndex) {
        // A sub-agent that fails makes its group partial (W23).
        if self.definition.policy.fail_fast && self.coordinator_of(step).is_none() {
            self.spending.fail_fast(step);
        }
    }

    /// When a ceiling of time that was not told to be reached will be.
    pub(super) fn time_is_up(&self) -> Option<Timestamp> {
        let ceiling = self
            .budget()?
            .ceilings()
            .find(|ceiling| ceiling.kind == BudgetKind::Time)?;
        let left = ceiling.limit.saturating_sub(millis(self.spending.under_way));
        let since = self.spending.since.filter(|_| !self.was_reached(ceiling))?;
        Some(since.plus(Duration::from_millis(left)))
    }

    /// What the ceilings are of that are reached.
    pub(super) fn reached_kinds(&self) -> Vec<BudgetKind> {
        let mut kinds: Vec<BudgetKind> = self.spending.reached.iter().map(|one| one.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// How a step ends that would need a new session, where none is opened any more.
    pub(super) fn no_new_session(&self) -> Option<StepEnd> {
        if self.stage != Stage::Running {
            return None;
        }
        if let Some(first) = self.spending.failed_first {
            return Some(StepEnd::FailedFast(first));
        }
        let enforced = self
            .budget()
            .is_some_and(|budget| budget.mode == BudgetMode::Enforce);
        let held = enforced && !self.spending.reached.is_empty() && !planted(Bug::CeilingIgnored);
        held.then_some(StepEnd::OverBudget)
    }

    /// Whether steps that wait are to end, for the time under way has reached its ceiling.
    pub(super) fn ends_waits(&self) -> bool {
        let enforced = self
            .budget()
            .is_some_and(|budget| budget.mode == BudgetMode::Enforce);
        let mut reached = self.spending.reached.iter();
        enforced && reached.any(|ceiling| ceiling.kind == BudgetKind::Time)
    }

    /// What is not in what is used of a ceiling though it may have been spent, in words.
    #[must_use]
    pub fn not_counted(&self, ceiling: Ceiling) -> Vec<String> {
        let mut told = Vec::new();
        if ceiling.kind == BudgetKind::Time {
            return told;
        }
        if ceiling.kind == BudgetKind::Cost {
            for (code, micros) in &self.spending.costs {
                let currency = Currency::new(*code).ok();
                if currency != ceiling.currency && *micros > 0 {
                    told.push(super::budget::amount(BudgetKind::Cost, *micros, currency, true));
                }
            }
        }
        let silent = self.steps.iter().filter(|step| step.is_silent_on(ceiling.kind));
        match silent.count() {
            0 => {}
            1 => told.push(format!("1 agent that told no {}", ceiling.kind.word())),
            agents => told.push(format!("{agents} agents that told no {}", ceiling.kind.word())),
        }
        told
    }

    /// A session tells its totals.
    pub(super) fn count_usage(&mut self, step: StepIndex, session: Option<ClientSessionId>, usage: Usage) {
        let state = &mut self.steps[step.position()];
        let known = match (state.session.as_deref_mut(), session) {
            (Some(current), None) => Some(&mut current.usage),
            (Some(current), Some(session)) if current.id() == session => Some(&mut current.usage),
            // The step went on without it: usage told while it is being closed is its last.
            (_, Some(session)) => state.ledger.as_deref_mut().and_then(|ledger| {
                let mut leaving = ledger.leaving.iter_mut();
                leaving.find(|(id, _)| *id == session).map(|(_, usage)| usage)
            }),
            (None, None) => None,
        };
        if let Some(known) = known {
            let before = *known;
            *known = before.updated_by(usage);
            self.spending.count(&before, known);
        }
    }

    /// A session is its step's no more; its usage stays counted.
    pub(super) fn keep_usage(&mut self, step: StepIndex, session: ClientSessionId, usage: Usage) {
        let leaving = self.closing.contains_key(&session);
        let state = &mut self.steps[step.position()];
        if leaving {
            state.ledger_mut().leaving.push((session, usage));
        } else if !usage.is_unknown() {
            let ledger = state.ledger_mut();
            ledger.earlier_usage = added(ledger.earlier_usage, usage);
        }
    }

    /// A session is closed: it tells nothing more.
    pub(super) fn settle_usage(&mut self, step: StepIndex, session: ClientSessionId) {
        let Some(ledger) = self.steps[step.position()].ledger.as_deref_mut() else {
            return;
        };
        if let Some(at) = ledger.leaving.iter().position(|(id, _)| *id == session) {
            let (_, usage) = ledger.leaving.swap_remove(at);
            ledger.earlier_usage = added(ledger.earlier_usage, usage);
        }
    }
}

impl Step {
    /// Whether it got as far as spending something, and told nothing of that kind.
    fn is_silent_on(&self, kind: BudgetKind) -> bool {
        let usage = self.usage();
        let told = match kind {
            BudgetKind::Tokens => usage.input_tokens.or(usage.output_tokens).is_some(),
            BudgetKind::Cost => usage.cost_micros.is_some() && usage.currency.is_some(),
            BudgetKind::Time => true,
        };
        // One that is at its first answer has had no chance to tell, and one that is taken spent nothing here.
        let reported = self.report.is_some() && self.hand().is_none_or(|hand| hand.taken.is_none());
        !told && (reported || !self.worked.is_zero())
    }
}

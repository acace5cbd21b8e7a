//! A budget as it stands, for people and programs.

use std::fmt;

use serde::Serialize;

use super::{BudgetKind, BudgetMode, Ceiling, Currency, amount};
use crate::run::Run;
use crate::time::Timestamp;

/// A run's budget as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetView {
    /// What reaching a ceiling does.
    pub mode: BudgetMode,
    /// Its ceilings.
    pub ceilings: Vec<CeilingView>,
}

/// A ceiling, and how much of it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CeilingView {
    /// What it is of.
    pub kind: BudgetKind,
    /// The ceiling: tokens, millionths of the currency, or milliseconds.
    pub limit: u64,
    /// What is known to be used of it, in the same unit.
    pub used: u64,
    /// The currency of a cost.
    pub currency: Option<Currency>,
    /// Whether it is reached.
    pub reached: bool,
    /// What is spent or may be spent and is not in `used`, in words.
    pub not_counted: Vec<String>,
}

impl BudgetView {
    /// The budget of a run at `now`; none: it has no ceiling.
    #[must_use]
    pub fn of(run: &Run, now: Timestamp) -> Option<BudgetView> {
        let budget = run.budget()?;
        let ceilings = budget.ceilings();
        Some(BudgetView {
            mode: budget.mode,
            ceilings: ceilings
                .map(|ceiling| CeilingView::of(run, ceiling, now))
                .collect(),
        })
    }

    /// Whether any ceiling is reached.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.ceilings.iter().any(|ceiling| ceiling.reached)
    }
}

impl CeilingView {
    fn of(run: &Run, ceiling: Ceiling, now: Timestamp) -> CeilingView {
        let used = run.used(ceiling, now);
        CeilingView {
            kind: ceiling.kind,
            limit: ceiling.limit,
            used,
            currency: ceiling.currency,
            reached: used >= ceiling.limit || run.was_reached(ceiling),
            not_counted: run.not_counted(ceiling),
        }
    }
}

/// What comes after `budget`, e.g. `tokens 1,200 of 2,000 used; cost 5.20 of 5.00 USD used, reached (0.20 over)`.
impl fmt::Display for BudgetView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told: Vec<String> = self.ceilings.iter().map(ToString::to_string).collect();
        f.write_str(&told.join("; "))?;
        match self.mode {
            BudgetMode::Audit => f.write_str(" (told only)"),
            BudgetMode::Enforce => Ok(()),
        }
    }
}

impl fmt::Display for CeilingView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let say = |count, unit| amount(self.kind, count, self.currency, unit);
        let (kind, used) = (self.kind.word(), say(self.used, false));
        write!(
            f,
            "{kind} {used} of {} used",
            say(self.limit, self.kind == BudgetKind::Cost)
        )?;
        match self.used.checked_sub(self.limit) {
            Some(0) => f.write_str(", reached")?,
            Some(over) => write!(f, ", reached ({} over)", say(over, false))?,
            None if self.reached => f.write_str(", reached")?,
            None => {}
        }
        if !self.not_counted.is_empty() {
            write!(f, ", not counted: {}", self.not_counted.join(", "))?;
        }
        Ok(())
    }
}

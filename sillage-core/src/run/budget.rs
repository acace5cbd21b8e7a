//! Ceilings of a run: tokens, cost and time, told or enforced.
//!
//! **What counts.** Tokens: those read by models, written by them and written to providers' caches. Those read from
//! caches are left out: each call reads the whole conversation again, so that they would outweigh all else and cost
//! almost nothing. Cost: what agents tell in the ceiling's own currency; amounts in others are shown and not counted, for
//! no rate is known. Time: that of engines which have the run under way, waits included and the time between two engines
//! left out; of an engine that was killed it ends with its last event. It is the clock's time: a machine that sleeps, or
//! whose clock is set forward, uses it up.
//!
//! **What is not known is not counted**, and told in words: an agent that gives no usage cannot be held.
//!
//! **Reaching one** is an event, once a ceiling. Where the budget is enforced, no new session is opened from then on: a
//! step that needs one ends as over budget when its turn comes, and so does what follows it. Work in sessions that are
//! open goes on to its end, corrections, continuations and conflicts included. A step that waits, for a date or for a
//! person, has no work under way: once the time is up it ends as over budget too, so that no run waits past its ceiling.
//! Its session is kept for a resume. Waits under a ceiling of tokens or cost go on, for waiting spends neither.

mod read;
mod view;

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use read::{BadCeiling, parse_cost, parse_time, parse_tokens};
pub use view::{BudgetView, CeilingView};

use super::spent::grouped;
use crate::time::human;

/// The ceilings of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Whether reaching a ceiling changes anything.
    pub mode: BudgetMode,
    /// Tokens of all sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<NonZeroU64>,
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Time under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
}

/// What reaching a ceiling does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetMode {
    /// It is told, and changes nothing.
    Audit,
    /// No new session is opened.
    #[default]
    Enforce,
}

impl BudgetMode {
    /// What it is called.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            BudgetMode::Audit => "audit",
            BudgetMode::Enforce => "enforce",
        }
    }
}

/// An amount of money that is more than nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Money {
    /// Millionths.
    pub micros: NonZeroU64,
    /// In this currency.
    pub currency: Currency,
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&amount(
            BudgetKind::Cost,
            self.micros.get(),
            Some(self.currency),
            true,
        ))
    }
}

/// A currency, by its ISO 4217 code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Currency([u8; 3]);

/// Not a code of a currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a currency is a code of three capital letters as `EUR`")]
pub struct BadCurrency;

impl Currency {
    /// The currency with this code.
    ///
    /// # Errors
    /// [`BadCurrency`] for anything but three capital letters.
    pub fn new(code: [u8; 3]) -> Result<Currency, BadCurrency> {
        match code.iter().all(u8::is_ascii_uppercase) {
            true => Ok(Currency(code)),
            false => Err(BadCurrency),
        }
    }

    /// The code's bytes.
    #[must_use]
    pub const fn code(self) -> [u8; 3] {
        self.0
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}

impl TryFrom<String> for Currency {
    type Error = BadCurrency;

    fn try_from(code: String) -> Result<Self, BadCurrency> {
        Currency::new(code.as_bytes().try_into().map_err(|_| BadCurrency)?)
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> String {
        currency.to_string()
    }
}

/// What a ceiling is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// Tokens.
    Tokens,
    /// Cost, in millionths of a currency.
    Cost,
    /// Time under way, in milliseconds.
    Time,
}

impl BudgetKind {
    /// What it is called.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            BudgetKind::Tokens => "tokens",
            BudgetKind::Cost => "cost",
            BudgetKind::Time => "time",
        }
    }
}

/// One ceiling of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling {
    /// What it is of.
    pub kind: BudgetKind,
    /// The ceiling: tokens, millionths of the currency, or milliseconds.
    pub limit: u64,
    /// The currency of a cost.
    pub currency: Option<Currency>,
}

impl Budget {
    /// Its ceilings, in a fixed order.
    pub fn ceilings(&self) -> impl Iterator<Item = Ceiling> + use<> {
        let of = |kind, limit, currency| Ceiling {
            kind,
            limit,
            currency,
        };
        let tokens = self.tokens.map(|limit| of(BudgetKind::Tokens, limit.get(), None));
        let cost = self
            .cost
            .map(|money| of(BudgetKind::Cost, money.micros.get(), Some(money.currency)));
        let time = self.time.map(|limit| of(BudgetKind::Time, millis(limit), None));
        tokens.into_iter().chain(cost).chain(time)
    }

    /// The budget that `change` makes of what there is; none: no ceiling is left.
    #[must_use]
    pub fn changed(before: Option<Budget>, change: &BudgetChange) -> Option<Budget> {
        let before = before.unwrap_or_default();
        let budget = Budget {
            mode: change.mode.unwrap_or(before.mode),
            tokens: change.tokens.of(before.tokens),
            cost: change.cost.of(before.cost),
            time: change.time.of(before.time),
        };
        budget.ceilings().next().map(|_| budget)
    }
}

/// In words, e.g. `at most 2,000,000 tokens, 5.00 USD and 2h00m`.
impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ceilings: Vec<String> = self.ceilings().map(|ceiling| ceiling.to_string()).collect();
        let last = ceilings.pop().unwrap_or_default();
        f.write_str("at most ")?;
        if !ceilings.is_empty() {
            write!(f, "{} and ", ceilings.join(", "))?;
        }
        f.write_str(&last)
    }
}

impl Ceiling {
    /// What it is called in the middle of a sentence, e.g. `2,000,000 tokens`, `5.00 USD`, `2h00m of time`.
    #[must_use]
    pub fn words(&self) -> String {
        match self.kind {
            BudgetKind::Tokens | BudgetKind::Cost => self.to_string(),
            BudgetKind::Time => format!("{self} of time"),
        }
    }

    /// A round ceiling with which a run goes on that has used this much: as much again as the ceiling, beyond what is
    /// used, and never less than the double.
    #[must_use]
    pub fn raised(&self, used: u64) -> u64 {
        let least = used.max(self.limit).saturating_add(self.limit);
        let step = match self.kind {
            BudgetKind::Tokens | BudgetKind::Cost => 10_u64.pow(least.max(1).ilog10().saturating_sub(1)),
            // Whole seconds, minutes or quarters of an hour.
            BudgetKind::Time => match least {
                ..60_000 => 1_000,
                60_000..3_600_000 => 60_000,
                _ => 900_000,
            },
        };
        least.checked_next_multiple_of(step).unwrap_or(u64::MAX)
    }

    /// This much of it in words.
    #[must_use]
    pub fn used_words(&self, used: u64) -> String {
        amount(self.kind, used, self.currency, self.kind == BudgetKind::Cost)
    }
}

/// E.g. `2,000,000 tokens`, `5.00 USD`, `2h00m`.
impl fmt::Display for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&amount(self.kind, self.limit, self.currency, true))
    }
}

/// An amount in words, with or without its unit where that can be left out.
pub(super) fn amount(kind: BudgetKind, amount: u64, currency: Option<Currency>, unit: bool) -> String {
    match kind {
        BudgetKind::Tokens if unit => format!("{} tokens", grouped(amount)),
        BudgetKind::Tokens => grouped(amount),
        BudgetKind::Cost => {
            let cost = super::Cost {
                micros: amount,
                currency: currency.map(|code| code.to_string()),
            };
            let said = cost.to_string();
            match said.split_once(' ') {
                Some((number, _)) if !unit => number.to_owned(),
                Some(_) | None => said,
            }
        }
        BudgetKind::Time => human(Duration::from_millis(amount)),
    }
}

pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// What becomes of one ceiling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CeilingChange<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// There is none any more.
    Lift,
    /// It is this.
    Set(T),
}

impl<T> CeilingChange<T> {
    fn of(self, before: Option<T>) -> Option<T> {
        match self {
            CeilingChange::Keep => before,
            CeilingChange::Lift => None,
            CeilingChange::Set(limit) => Some(limit),
        }
    }
}

/// What a person changes of a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetChange {
    /// What reaching a ceiling does; none: as before.
    pub mode: Option<BudgetMode>,
    /// The ceiling of tokens.
    pub tokens: CeilingChange<NonZeroU64>,
    /// The ceiling of cost.
    pub cost: CeilingChange<Money>,
    /// The ceiling of time.
    pub time: CeilingChange<Duration>,
}

impl BudgetChange {
    /// A ceiling of cost in one currency that it replaces by one in another: what agents tell in the first is not held
    /// any more.
    #[must_use]
    pub fn exchanged(&self, before: Option<&Budget>) -> Option<(Money, Money)> {
        let CeilingChange::Set(cost) = self.cost else {
            return None;
        };
        let before = before?.cost?;
        (before.currency != cost.currency).then_some((before, cost))
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == BudgetChange::default()
    }
}

//! Ceilings of a run on the command line and in the settings, and what is said of them before anything starts.

use std::num::NonZeroU64;
use std::time::Duration;

use clap::{Args, ValueEnum};
use sillage::core::run::{
    BadCeiling, Budget, BudgetChange, BudgetKind, BudgetMode, Ceiling, CeilingChange, Money, Refused,
    parse_cost, parse_time, parse_tokens,
};
use sillage::core::settings::Settings;
use sillage::core::task::Task;

use crate::failure::Failure;
use crate::output::{Output, Tone};

/// The word that lifts a ceiling.
const LIFT: &str = "none";

/// Ceilings of a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Ceilings")]
pub(crate) struct Ceilings {
    /// Tokens that the run may use, as `500k` or `2M`: those read by models, written by them and written to caches;
    /// `none` for no ceiling.
    #[arg(long, value_name = "TOKENS", value_parser = tokens, allow_hyphen_values = true)]
    max_tokens: Option<CeilingChange<NonZeroU64>>,
    /// What the run may cost, as `5USD`, by what its agents tell in that currency; `none` for no ceiling.
    #[arg(long, value_name = "COST", value_parser = cost, allow_hyphen_values = true)]
    max_cost: Option<CeilingChange<Money>>,
    /// How long the run may be under way, waits included, as `2h`; `none` for no ceiling.
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    max_time: Option<CeilingChange<Duration>>,
    /// What reaching a ceiling does [default: as in the settings, else enforce].
    #[arg(long, value_enum, value_name = "MODE")]
    budget: Option<Mode>,
}

/// What reaching a ceiling does.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Mode {
    /// It is told, and changes nothing.
    Audit,
    /// No new session is opened; work in open ones goes on to its end.
    Enforce,
}

impl Ceilings {
    /// What they change of the ceilings that there are.
    pub(crate) fn change(&self) -> BudgetChange {
        BudgetChange {
            mode: self.budget.map(|mode| match mode {
                Mode::Audit => BudgetMode::Audit,
                Mode::Enforce => BudgetMode::Enforce,
            }),
            tokens: self.max_tokens.unwrap_or_default(),
            cost: self.max_cost.unwrap_or_default(),
            time: self.max_time.unwrap_or_default(),
        }
    }
}

/// What is said of a ceiling of cost that is replaced by one in another currency.
pub(crate) fn exchanged(change: &BudgetChange, before: Option<&Budget>) -> Option<String> {
    let (before, now) = change.exchanged(before)?;
    Some(format!(
        "the ceiling of {before} is replaced by one of {now}: what agents tell in {} is not held any more",
        before.currency
    ))
}

/// Tells it.
///
/// # Errors
/// When standard output cannot be written to.
pub(crate) fn tell_exchanged(
    change: &BudgetChange,
    before: Option<&Budget>,
    output: &mut Output,
) -> Result<(), Failure> {
    if let Some(words) = exchanged(change, before) {
        let warning = output.paint(Tone::Warning, "warning");
        output.line(format_args!("{warning}: {words}"))?;
    }
    Ok(())
}

fn change<T>(text: &str, parse: impl Fn(&str) -> Result<T, BadCeiling>) -> Result<CeilingChange<T>, String> {
    if text == LIFT {
        return Ok(CeilingChange::Lift);
    }
    parse(text)
        .map(CeilingChange::Set)
        .map_err(|bad| format!("{bad}; `{LIFT}` lifts it"))
}

fn tokens(text: &str) -> Result<CeilingChange<NonZeroU64>, String> {
    change(text, parse_tokens)
}

fn cost(text: &str) -> Result<CeilingChange<Money>, String> {
    change(text, parse_cost)
}

fn time(text: &str) -> Result<CeilingChange<Duration>, String> {
    change(text, parse_time)
}

/// What the ceilings are and what reaching one does.
pub(crate) fn told(budget: &Budget) -> String {
    match budget.mode {
        BudgetMode::Audit => format!("{budget}; reaching it is told, and changes nothing"),
        BudgetMode::Enforce => format!(
            "{budget}; once reached no new session is opened, and work in open ones goes on to its end"
        ),
    }
}

/// What cannot be held to a budget, as far as it is known before anything starts.
pub(crate) fn not_held(budget: &Budget, task: &Task, settings: &Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    if budget.tokens.is_some() {
        warnings.push("agents that tell no tokens are not held to the ceiling of tokens".to_owned());
    }
    let Some(cost) = budget.cost else {
        return warnings;
    };
    warnings.push(format!(
        "only what agents tell in {} counts for the ceiling of cost",
        cost.currency
    ));
    let mut models: Vec<&str> = task.agents.iter().map(|agent| agent.model.as_str()).collect();
    models.sort_unstable();
    models.dedup();
    for model in models {
        if let Some(price) = settings.prices.get(model)
            && price.currency != cost.currency.to_string()
        {
            warnings.push(format!(
                "model {model} is priced in {}: a ceiling in {} cannot be held for it",
                price.currency, cost.currency
            ));
        }
    }
    warnings
}

/// How a run goes on whose ceiling is reached.
pub(crate) fn hint(refused: &Refused) -> Option<String> {
    let Refused::OverBudget { ceiling, raised, .. } = refused else {
        return None;
    };
    let (flag, higher) = flag(ceiling, *raised);
    Some(format!(
        "`{flag} {higher}` or more raises it, `{flag} {LIFT}` lifts it, `--budget audit` only tells of it"
    ))
}

/// The flag of a ceiling, and a higher one as it is written there.
fn flag(ceiling: &Ceiling, higher: u64) -> (&'static str, String) {
    match ceiling.kind {
        BudgetKind::Tokens => ("--max-tokens", higher.to_string()),
        BudgetKind::Cost => {
            let currency = ceiling.currency.map(|code| code.to_string()).unwrap_or_default();
            let (whole, part) = (higher / 1_000_000, higher % 1_000_000);
            let part = format!("{part:06}");
            let part = part.trim_end_matches('0');
            let dot = if part.is_empty() { "" } else { "." };
            ("--max-cost", format!("{whole}{dot}{part}{currency}"))
        }
        BudgetKind::Time => ("--max-time", format!("{}s", higher.div_ceil(1000).max(1))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_hint_says_is_read_back_and_enough() {
        let budget = Budget {
            tokens: parse_tokens("1500").ok(),
            cost: parse_cost("2.25EUR").ok(),
            time: parse_time("1h").ok(),
            ..Budget::default()
        };
        let told = |used: [u64; 3]| -> Vec<_> {
            let ceilings = budget.ceilings().zip(used);
            ceilings
                .map(|(ceiling, used)| flag(&ceiling, ceiling.raised(used)).1)
                .collect()
        };
        assert_eq!(told([1_500, 2_250_000, 3_600_000]), ["3000", "4.5EUR", "7200s"]);
        assert_eq!(told([3_300, 9_000_001, 9_000_001]), ["4800", "12EUR", "13500s"]);
        for used in [1_500, 2_999, 3_000, 3_001, 99_999, 1_234_567_890_123] {
            for (ceiling, text) in budget.ceilings().zip(told([used; 3])) {
                let read = match ceiling.kind {
                    BudgetKind::Tokens => parse_tokens(&text).unwrap().get(),
                    BudgetKind::Cost => parse_cost(&text).unwrap().micros.get(),
                    BudgetKind::Time => u64::try_from(parse_time(&text).unwrap().as_millis()).unwrap(),
                };
                assert!(read > used && read >= 2 * ceiling.limit, "{text} of {used}");
            }
        }
    }
}

//! The ceilings of runs in the settings.

use crate::document::Value;
use crate::document::check::{Checker, Fields, Spot};
use crate::fault::FaultCode;
use crate::run::{BadCeiling, Budget, BudgetMode, parse_cost, parse_time, parse_tokens};

const MODES: [(&str, BudgetMode); 2] = [("audit", BudgetMode::Audit), ("enforce", BudgetMode::Enforce)];

/// Reads ceilings; at least one must be given.
pub(super) fn read(spot: Spot<'_>, checker: &mut Checker) -> Option<Budget> {
    let path = spot.clone();
    let fields = checker.fields(spot, "`budget`", &["tokens", "cost", "time", "mode"])?;
    let given = ["tokens", "cost", "time"]
        .iter()
        .any(|name| fields.optional(name).is_some());
    if !given {
        let message = "`budget` names no ceiling: give `tokens`, `cost` or `time`";
        checker.fault_at(&path, FaultCode::MissingField, message);
        return None;
    }
    Some(Budget {
        mode: fields
            .optional("mode")
            .and_then(|spot| checker.choice(&spot, &MODES))
            .unwrap_or_default(),
        tokens: ceiling(&fields, "tokens", checker, parse_tokens),
        cost: ceiling(&fields, "cost", checker, parse_cost),
        time: ceiling(&fields, "time", checker, parse_time),
    })
}

/// A ceiling: a text, or a plain number where its reader takes one.
fn ceiling<T>(
    fields: &Fields<'_>,
    name: &str,
    checker: &mut Checker,
    parse: impl Fn(&str) -> Result<T, BadCeiling>,
) -> Option<T> {
    let spot = fields.optional(name)?;
    let written = if let Value::Number(written) = &spot.node.value {
        written
    } else {
        checker.text(&spot)?
    };
    parse(written)
        .inspect_err(|bad| {
            let message = format!("{}: {bad}", spot.label());
            checker.fault_at(&spot, FaultCode::BadLimit, message);
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use crate::fault::FaultCode;
    use crate::run::{BudgetMode, parse_cost};
    use crate::settings::read;

    #[test]
    fn ceilings_of_runs_are_read_from_the_settings() {
        let text = "limits: { failFast: true, budget: { tokens: 2M, cost: 5USD, time: 2h, mode: audit } }";
        let limits = read(text).unwrap().limits;
        let budget = limits.budget.unwrap();
        assert_eq!(budget.tokens.unwrap().get(), 2_000_000);
        assert_eq!(budget.cost, parse_cost("5USD").ok());
        assert_eq!(budget.time.unwrap().as_secs(), 7200);
        assert_eq!((budget.mode, limits.fail_fast), (BudgetMode::Audit, Some(true)));
        let plain = read("limits: { budget: { tokens: 5000 } }").unwrap().limits;
        let budget = plain.budget.unwrap();
        assert_eq!(
            (budget.tokens.unwrap().get(), budget.mode),
            (5000, BudgetMode::Enforce)
        );
    }

    #[test]
    fn w10_bad_ceilings_are_told_all_at_once_with_their_places() {
        let text = "limits:\n  budget: { tokens: -5, cost: 5, time: soon, mode: strict, tokns: 5 }";
        let faults = read(text).unwrap_err();
        let mut told: Vec<_> = faults
            .iter()
            .map(|fault| (fault.path.as_str(), fault.code))
            .collect();
        told.sort_unstable_by_key(|(path, _)| *path);
        assert_eq!(
            told,
            [
                ("/limits/budget/cost", FaultCode::BadLimit),
                ("/limits/budget/mode", FaultCode::BadType),
                ("/limits/budget/time", FaultCode::BadLimit),
                ("/limits/budget/tokens", FaultCode::BadLimit),
                ("/limits/budget/tokns", FaultCode::UnknownField),
            ]
        );
        assert_eq!(
            read("limits: { budget: { mode: audit } }").unwrap_err()[0].code,
            FaultCode::MissingField
        );
    }
}

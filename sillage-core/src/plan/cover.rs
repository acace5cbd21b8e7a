//! What joins the parts of a plan: every unit covered once, and sub-agents that follow one another (W20).

use std::collections::HashMap;

use super::Unit;
use crate::document::check::{Checker, Spot};
use crate::fault::FaultCode;
use crate::graph::Graph;
use crate::report::shown;

/// What a sub-agent of a plan names.
pub(super) struct Covered<'a> {
    pub(super) spot: Spot<'a>,
    /// Its id as written; none where there is none.
    pub(super) id: Option<&'a str>,
    /// Its units, each at its place; none where they cannot be known.
    pub(super) units: Option<Vec<(Spot<'a>, &'a str)>>,
    /// The sub-agents that it follows, each at its place.
    pub(super) after: Vec<(Spot<'a>, &'a str)>,
}

impl<'a> Covered<'a> {
    /// Nothing known yet.
    pub(super) fn nothing(spot: Spot<'a>) -> Self {
        Covered {
            spot,
            id: None,
            units: None,
            after: Vec::new(),
        }
    }
}

/// How often a unit stands among those of the sub-agents.
#[derive(Clone, Default)]
struct Times<'c, 'a> {
    first: Option<&'c Covered<'a>>,
    again: Option<(&'c Spot<'a>, &'c Covered<'a>)>,
    count: usize,
}

/// Checks that each unit is covered exactly once and that none is invented. `all` says whether these are all units of
/// the plan: else one that is named may be among those that could not be read.
pub(super) fn check_units<'a>(
    checker: &mut Checker,
    units: &[(Spot<'a>, Unit)],
    all: bool,
    covered: &[Covered<'a>],
) {
    let mut positions: HashMap<&str, usize> = HashMap::with_capacity(units.len());
    for (position, (_, unit)) in units.iter().enumerate() {
        positions.entry(&unit.id).or_insert(position);
    }
    let mut times = vec![Times::default(); units.len()];
    for sub_agent in covered {
        for (spot, name) in sub_agent.units.iter().flatten() {
            let Some(&position) = positions.get(name) else {
                if !all {
                    continue;
                }
                let near = checker.near(name, units.iter().map(|(_, unit)| unit.id.as_str()));
                let message = format!("there is no unit `{}` in this plan", shown(name));
                let (path, place) = (spot.path.clone(), Some(spot.node.place));
                checker.fault(FaultCode::UnknownUnit, message, path, place, near);
                continue;
            };
            let times: &mut Times<'_, '_> = &mut times[position];
            times.count += 1;
            match times.first {
                None => times.first = Some(sub_agent),
                Some(_) if times.again.is_none() => times.again = Some((spot, sub_agent)),
                Some(_) => {}
            }
        }
    }
    // Where a list could not be read, the unit that nobody seems to have may be in it.
    let all_known = covered.iter().all(|sub_agent| sub_agent.units.is_some());
    for (position, ((spot, unit), times)) in units.iter().zip(&times).enumerate() {
        let counts = positions.get(unit.id.as_str()) == Some(&position);
        match (&times.first, &times.again) {
            (None, _) if counts && all_known => {
                let message = format!("no sub-agent has the unit `{}`", shown(&unit.id));
                checker.fault_at(spot, FaultCode::UnitUncovered, message);
            }
            (Some(first), Some((spot, again))) => {
                let message = covered_again(unit, times.count, first, again);
                checker.fault_at(spot, FaultCode::UnitCoveredTwice, message);
            }
            (None | Some(_), _) => {}
        }
    }
}

fn covered_again(unit: &Unit, count: usize, first: &Covered<'_>, again: &Covered<'_>) -> String {
    let name = |covered: &Covered<'_>| match covered.id {
        Some(id) => format!("`{}`", shown(id)),
        None => covered.spot.label(),
    };
    let unit = shown(&unit.id);
    if first.spot.path == again.spot.path {
        return format!(
            "the unit `{unit}` stands more than once in {}, it must stand once in all",
            name(first)
        );
    }
    let more = match count.saturating_sub(2) {
        0 => String::new(),
        more => format!(", and {more} more times"),
    };
    format!(
        "the unit `{unit}` is given to {} and again to {}{more}: exactly one must have it",
        name(first),
        name(again)
    )
}

/// Checks that sub-agents follow such as are there, and that none waits for itself in the end.
pub(super) fn check_after(checker: &mut Checker, covered: &[Covered<'_>], known: &HashMap<&str, u32>) {
    // A sub-agent whose id could not be read may be the one that is meant.
    let all_known = covered.iter().all(|sub_agent| sub_agent.id.is_some());
    let mut edges = Vec::new();
    for (then, sub_agent) in (0_u32..).zip(covered) {
        for (spot, name) in &sub_agent.after {
            match known.get(name) {
                Some(&first) => edges.push((first, then)),
                None if all_known => {
                    let ids = covered.iter().map(|sub_agent| sub_agent.id.unwrap_or_default());
                    let near = checker.near(name, ids);
                    let message = format!("there is no sub-agent `{}` in this plan", shown(name));
                    let (path, place) = (spot.path.clone(), Some(spot.node.place));
                    checker.fault(FaultCode::UnknownAfter, message, path, place, near);
                }
                None => {}
            }
        }
    }
    let count = u32::try_from(covered.len()).unwrap_or(u32::MAX);
    let Err(cycles) = Graph::new(count, &edges) else {
        return;
    };
    let names: Vec<String> = covered
        .iter()
        .map(|sub_agent| shown(sub_agent.id.unwrap_or_default()))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for cycle in cycles {
        let first = cycle.along.first().and_then(|first| covered.get(*first as usize));
        if let Some(first) = first {
            // It is on a cycle, so that it follows something.
            let spot = first.after.first().map_or(&first.spot, |(spot, _)| spot);
            checker.fault_at(spot, FaultCode::Cycle, cycle.told(&names));
        }
    }
}

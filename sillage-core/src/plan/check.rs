//! Whether an object is a plan: every fault at once, each with its place (W20).

use std::collections::HashMap;

use super::cover::{self, Covered};
use super::rules::{allowed, pairs, word};
use super::{Plan, SubAgent, Unit};
use crate::document::check::{Checker, Fields, Spot};
use crate::document::{Key, Node};
use crate::fault::{Fault, FaultCode};
use crate::planted::{Bug, planted};
use crate::report::shown;
use crate::task::{
    self, AGENT_FIELDS, AgentDefinition, DelegatedField, Deliverable, Resource, SubAgentRules,
};

pub(super) const FIELDS: &[&str] = &["units", "sub_agents", "why"];
pub(super) const UNIT_FIELDS: &[&str] = &["id", "title"];

/// Fields that a sub-agent has whatever is delegated.
pub(super) const OWN_FIELDS: &[&str] = &["id", "units", "after"];

/// Things of a task that a plan could try to set for one of its agents, besides the fields of agents.
const OF_THE_RUN: &[&str] = &["folders", "permissions", "limits"];

/// Reads a plan off its tree, for a dynamic agent (W20).
///
/// - The whole, each unit and each sub-agent are objects; `units` and `sub_agents` are required, and so is `id` in
///   both kinds of entry, `units` in a sub-agent, and `mission` where it is delegated. A required field that is not
///   there is `missing_field`, one that is `null` or of another type `bad_value`. An optional field that is `null`
///   counts as left out, as in reports. A unit's `title` is optional.
/// - A value at fault is told once. What cannot be judged because of it is not told as well: where a sub-agent's units
///   cannot be read, no unit is uncovered for certain, and where one of the plan's cannot, none is unknown.
/// - An empty `units` of the plan is `no_units`; of a sub-agent, `empty_sub_agent`. A unit that no sub-agent has is one
///   `unit_uncovered`; one that stands more than once, in one sub-agent or in several, is one `unit_covered_twice`,
///   however often; each entry that names no unit of the plan is one `unknown_unit`.
/// - Ids of units and of sub-agents are those of W6; the second of two equal ones is `duplicate_id`. One that is at
///   fault still names its unit or sub-agent.
/// - A field of an agent, or `folders`, `permissions` or `limits`, that is not delegated is `field_not_delegated`
///   whatever it holds: that a plan repeats what holds anyway, or says `null`, does not give it the right to say so.
/// - A model and effort, after what is left out or not delegated was taken from the dynamic agent, is in the allowed
///   list, or one `pair_not_allowed` a sub-agent. A name is taken for what it is, so a blank one is not allowed.
/// - A blank mission is `bad_value`; a blank `deliverable`, `title` or `why` says nothing.
/// - `after` may name a sub-agent more than once, which is no fault. A sub-agent after itself is a `cycle`; each
///   strongly connected component is one.
/// - A deliverable that comes from the dynamic agent keeps its words and loses its files: those are asked of the
///   group's report, once. Otherwise each sub-agent would have to make the same files, each in its own worktree.
///
/// # Errors
/// Every fault, in the order of the text.
pub fn check(root: &Node, agent: &AgentDefinition) -> Result<Plan, Vec<Fault>> {
    let mut checker = Checker::of_answer();
    let spot = Spot::root(root);
    let Some(rules) = &agent.sub_agents else {
        let message = format!(
            "the agent `{}` is not dynamic: it makes no plan",
            shown(&agent.id)
        );
        checker.fault_at(&spot, FaultCode::Contradiction, message);
        return checker.finish(Plan::default());
    };
    let mut reading = Reading {
        checker,
        agent,
        rules,
        own_pair: allowed(rules, &agent.model, &agent.effort),
    };
    let plan = reading.plan(spot).unwrap_or_default();
    reading.checker.finish(plan)
}

struct Reading<'r> {
    checker: Checker,
    agent: &'r AgentDefinition,
    rules: &'r SubAgentRules,
    /// Whether the dynamic agent's own model and effort may be used by its sub-agents.
    own_pair: bool,
}

/// The units of a plan.
struct Units<'a> {
    /// Those whose ids can be known, with the places of these.
    known: Vec<(Spot<'a>, Unit)>,
    /// Whether these are all.
    all: bool,
}

impl Reading<'_> {
    fn plan(&mut self, spot: Spot<'_>) -> Option<Plan> {
        let fields = self.checker.fields(spot, "a plan", FIELDS)?;
        let units = self.units(&fields);
        let items = match fields.present("sub_agents", &mut self.checker) {
            Some(spot) => self.checker.list(&spot).map(|items| (spot, items)),
            None => None,
        };
        let mut sub_agents = Vec::new();
        if let Some((spot, items)) = items {
            self.cap(&spot, items.len());
            let mut covered: Vec<Covered<'_>> = Vec::with_capacity(items.len());
            let mut known = HashMap::with_capacity(items.len());
            for (position, item) in (0_u32..).zip(items) {
                let mut cover = Covered::nothing(item.clone());
                sub_agents.extend(self.sub_agent(item, position, &mut cover, &mut known));
                covered.push(cover);
            }
            if let Some(units) = &units {
                cover::check_units(&mut self.checker, &units.known, units.all, &covered);
            }
            cover::check_after(&mut self.checker, &covered, &known);
        }
        let why = task::work::optional_text(&mut self.checker, &fields, "why");
        let units = units.map(|units| units.known).unwrap_or_default();
        Some(Plan {
            units: units.into_iter().map(|(_, unit)| unit).collect(),
            sub_agents,
            why,
        })
    }

    /// The units; none where there is no list of them.
    fn units<'a>(&mut self, plan: &Fields<'a>) -> Option<Units<'a>> {
        let spot = plan.present("units", &mut self.checker)?;
        let items = self.checker.list(&spot)?;
        if items.is_empty() {
            let message = "a plan needs at least one unit of work";
            self.checker.fault_at(&spot, FaultCode::NoUnits, message);
        }
        let mut seen = HashMap::with_capacity(items.len());
        let count = items.len();
        let known: Vec<(Spot<'_>, Unit)> = (0_u32..)
            .zip(items)
            .filter_map(|(position, item)| self.unit(item, position, &mut seen))
            .collect();
        Some(Units {
            all: known.len() == count,
            known,
        })
    }

    fn unit<'a>(
        &mut self,
        spot: Spot<'a>,
        position: u32,
        seen: &mut HashMap<&'a str, u32>,
    ) -> Option<(Spot<'a>, Unit)> {
        let fields = self.checker.fields(spot, "a unit", UNIT_FIELDS)?;
        let (spot, id) = self.id(&fields, "unit", position, seen)?;
        let title = task::work::optional_text(&mut self.checker, &fields, "title");
        let unit = Unit {
            id: id.to_owned(),
            title: title.unwrap_or_else(|| id.to_owned()),
        };
        Some((spot, unit))
    }

    /// An identifier, which counts as known by the first that has it, even where it is at fault.
    fn id<'a>(
        &mut self,
        fields: &Fields<'a>,
        what: &str,
        position: u32,
        seen: &mut HashMap<&'a str, u32>,
    ) -> Option<(Spot<'a>, &'a str)> {
        let spot = fields.present("id", &mut self.checker)?;
        let id = self.checker.text(&spot)?;
        let well_formed = task::work::check_id(&mut self.checker, &spot, id);
        let first = *seen.entry(id).or_insert(position);
        if well_formed && first != position {
            let message = format!("another {what} before this one has the id `{id}`");
            self.checker.fault_at(&spot, FaultCode::DuplicateId, message);
        }
        Some((spot, id))
    }

    fn cap(&mut self, spot: &Spot<'_>, count: usize) {
        let max = self.rules.max.get();
        if count > max as usize && !planted(Bug::PlanCapIgnored) {
            let message = format!("the plan has {count} sub-agents: at most {max} are allowed");
            self.checker.fault_at(spot, FaultCode::TooManySubAgents, message);
        }
    }

    fn sub_agent<'a>(
        &mut self,
        spot: Spot<'a>,
        position: u32,
        cover: &mut Covered<'a>,
        known: &mut HashMap<&'a str, u32>,
    ) -> Option<SubAgent> {
        let entries = self.checker.entries(&spot)?;
        self.fields(&spot, entries);
        let fields = Fields::new("a sub-agent", spot, entries);
        if let Some((_, id)) = self.id(&fields, "sub-agent", position, known) {
            cover.id = Some(id);
        }
        cover.units = self.unit_names(&fields);
        if let Some(spot) = fields.optional("after") {
            cover.after = self.checker.texts(&spot).unwrap_or_default();
        }
        let mission = self.mission(&fields);
        let resources = self.resources(&fields);
        let deliverable = self.deliverable(&fields);
        let (model, effort) = self.pair(&fields);
        let owned = |names: &[(Spot<'_>, &str)]| names.iter().map(|(_, name)| (*name).to_owned()).collect();
        Some(SubAgent {
            id: cover.id?.to_owned(),
            units: cover.units.as_deref().map(owned)?,
            mission,
            resources,
            deliverable,
            model,
            effort,
            after: owned(&cover.after),
        })
    }

    /// Tells the fields that a sub-agent may not have.
    fn fields(&mut self, spot: &Spot<'_>, entries: &[(Key, Node)]) {
        for (key, node) in entries {
            let name = key.name.as_str();
            if OWN_FIELDS.contains(&name) || self.may_write(name) {
                continue;
            }
            let path = spot.field(name, node).path;
            if AGENT_FIELDS.contains(&name) || OF_THE_RUN.contains(&name) {
                let message = format!("`{name}` is not delegated to this plan, leave it out");
                self.checker
                    .fault(FaultCode::FieldNotDelegated, message, path, Some(key.place), None);
                continue;
            }
            let allowed: Vec<&str> = OWN_FIELDS
                .iter()
                .copied()
                .chain(self.rules.delegate.iter().map(|field| word(*field)))
                .collect();
            let near = self.checker.near(name, allowed.iter().copied());
            let mut message = format!("a sub-agent has no field `{}`", shown(name));
            if near.is_none() {
                message = format!("{message}, only {}", allowed.join(", "));
            }
            self.checker
                .fault(FaultCode::UnknownField, message, path, Some(key.place), near);
        }
    }

    fn may_write(&self, name: &str) -> bool {
        self.rules.delegate.iter().any(|field| word(*field) == name)
    }

    /// Whether a field is the coordinator's to write.
    fn delegated(&self, field: DelegatedField) -> bool {
        self.rules.delegate.contains(&field)
    }

    /// The units that a sub-agent names; none where they cannot be known.
    fn unit_names<'a>(&mut self, fields: &Fields<'a>) -> Option<Vec<(Spot<'a>, &'a str)>> {
        let spot = fields.present("units", &mut self.checker)?;
        let items = self.checker.list(&spot)?;
        if items.is_empty() {
            let message = "a sub-agent needs at least one unit of work";
            self.checker.fault_at(&spot, FaultCode::EmptySubAgent, message);
        }
        let count = items.len();
        let names: Vec<(Spot<'_>, &str)> = items
            .into_iter()
            .filter_map(|item| self.checker.text(&item).map(|name| (item, name)))
            .collect();
        (names.len() == count).then_some(names)
    }

    fn mission(&mut self, fields: &Fields<'_>) -> String {
        if !self.delegated(DelegatedField::Mission) {
            return self.agent.mission.clone();
        }
        fields
            .present("mission", &mut self.checker)
            .and_then(|spot| self.checker.filled_text(&spot, FaultCode::BadValue))
            .unwrap_or_default()
            .to_owned()
    }

    fn resources(&mut self, fields: &Fields<'_>) -> Vec<Resource> {
        let given = self.delegated(DelegatedField::Resources) && fields.optional("resources").is_some();
        if given {
            task::work::resources(&mut self.checker, fields)
        } else {
            self.agent.resources.clone()
        }
    }

    fn deliverable(&mut self, fields: &Fields<'_>) -> Option<Deliverable> {
        let given = if self.delegated(DelegatedField::Deliverable) {
            task::work::deliverable(&mut self.checker, fields)
        } else {
            None
        };
        let says_something = |deliverable: &Deliverable| {
            let text = deliverable.text.as_deref().unwrap_or_default();
            !text.trim().is_empty() || !deliverable.files.is_empty()
        };
        given.filter(says_something).or_else(|| {
            let text = self.agent.deliverable.as_ref()?.text.clone()?;
            Some(Deliverable {
                text: Some(text),
                files: Vec::new(),
            })
        })
    }

    /// The model and the effort, once the pair was judged.
    fn pair(&mut self, fields: &Fields<'_>) -> (String, String) {
        let mut name = |field: DelegatedField| {
            if !self.rules.delegate.contains(&field) {
                return Some(None);
            }
            let Some(spot) = fields.optional(word(field)) else {
                return Some(None);
            };
            self.checker.text(&spot).map(|name| Some((spot, name)))
        };
        let (model, effort) = (name(DelegatedField::Model), name(DelegatedField::Effort));
        let (Some(model), Some(effort)) = (model, effort) else {
            return (String::new(), String::new());
        };
        let model_name = model
            .as_ref()
            .map_or(self.agent.model.as_str(), |(_, name)| *name);
        let effort_name = effort
            .as_ref()
            .map_or(self.agent.effort.as_str(), |(_, name)| *name);
        let is_allowed = match (&model, &effort) {
            (None, None) => self.own_pair,
            (Some(_), _) | (_, Some(_)) => allowed(self.rules, model_name, effort_name),
        };
        if !is_allowed {
            let spots = (
                model.as_ref().map(|(spot, _)| spot),
                effort.as_ref().map(|(spot, _)| spot),
            );
            self.pair_not_allowed(fields.spot(), spots, model_name, effort_name);
        }
        (model_name.to_owned(), effort_name.to_owned())
    }

    /// Tells of a pair at the name that is to blame: the model where no effort goes with it, else the effort. What the
    /// plan does not write itself is told at the sub-agent.
    fn pair_not_allowed(
        &mut self,
        whole: &Spot<'_>,
        (model_spot, effort_spot): (Option<&Spot<'_>>, Option<&Spot<'_>>),
        model: &str,
        effort: &str,
    ) {
        let rules = self.rules;
        let mut efforts = rules
            .allow
            .iter()
            .filter(|pair| pair.model == model)
            .flat_map(|pair| pair.efforts.iter().map(String::as_str))
            .peekable();
        let (spot, near) = if efforts.peek().is_some() {
            let efforts: Vec<&str> = efforts.collect();
            let near = self.checker.near(effort, efforts.into_iter());
            (effort_spot.or(model_spot), near)
        } else {
            let models = rules.allow.iter().map(|pair| pair.model.as_str());
            (model_spot.or(effort_spot), self.checker.near(model, models))
        };
        let spot = spot.unwrap_or(whole);
        let message = format!(
            "the model `{}` with the effort `{}` is not allowed, only {}",
            shown(model),
            shown(effort),
            pairs(rules)
        );
        self.checker.fault(
            FaultCode::PairNotAllowed,
            message,
            spot.path.clone(),
            Some(spot.node.place),
            near,
        );
    }
}

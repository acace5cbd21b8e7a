//! The agents of a task (W6, W7).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;

use super::super::models::{Named, Wish};
use super::super::{
    AgentDefinition, AgentKind, AllowedPair, DelegatedField, REPORT_PORT, SubAgentRules, WorktreeWish,
};
use super::Reading;
use super::work::{check_id, deliverable, optional_text, resources};
use crate::document::Value;
use crate::document::check::{Fields, Spot};
use crate::fault::FaultCode;

pub(crate) const AGENT_FIELDS: &[&str] = &[
    "id",
    "title",
    "mission",
    "resources",
    "deliverable",
    "model",
    "effort",
    "kind",
    "max_duration",
    "browser",
    "worktree",
    "inputs",
    "outputs",
    "sub_agents",
];
pub(in crate::task) const SUB_AGENT_FIELDS: &[&str] = &["max", "delegate", "allow"];
pub(in crate::task) const ALLOW_FIELDS: &[&str] = &["model", "efforts"];

const KINDS: &[(&str, AgentKind)] = &[
    ("deterministic", AgentKind::Deterministic),
    ("dynamic", AgentKind::Dynamic),
];
const WORKTREES: &[(&str, WorktreeWish)] = &[
    ("auto", WorktreeWish::Auto),
    ("always", WorktreeWish::Always),
    ("never", WorktreeWish::Never),
];
const DELEGATED: &[(&str, DelegatedField)] = &[
    ("mission", DelegatedField::Mission),
    ("resources", DelegatedField::Resources),
    ("deliverable", DelegatedField::Deliverable),
    ("model", DelegatedField::Model),
    ("effort", DelegatedField::Effort),
];

/// What links need to know of the agents.
#[derive(Default)]
pub(super) struct KnownAgents<'a> {
    /// Positions by identifier; of two agents with one identifier, the first.
    pub(super) by_id: HashMap<&'a str, u32>,
    /// Identifiers by position; empty where there is none.
    pub(super) ids: Vec<&'a str>,
    /// By position.
    pub(super) ports: Vec<Ports<'a>>,
}

impl<'a> KnownAgents<'a> {
    fn add(&mut self, id: &'a str, ports: Ports<'a>) {
        let index = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        if !id.is_empty() {
            self.by_id.entry(id).or_insert(index);
        }
        self.ids.push(id);
        self.ports.push(ports);
    }
}

/// The ports that an agent declares, even wrongly: a link to one that has a fault of its own is not another fault.
/// None where the list could not be read.
#[derive(Default)]
pub(super) struct Ports<'a> {
    pub(super) inputs: Option<BTreeSet<&'a str>>,
    pub(super) outputs: Option<BTreeSet<&'a str>>,
}

impl Reading<'_> {
    /// The agents, and what links may name; none when there is no list of agents to check links against.
    pub(super) fn agents<'a>(
        &mut self,
        task: &Fields<'a>,
    ) -> (Vec<AgentDefinition>, Option<KnownAgents<'a>>) {
        let items = match task.present("agents", &mut self.checker) {
            Some(spot) if spot.is_null() => self.no_agents(&spot),
            Some(spot) => match self.checker.list(&spot) {
                Some(items) if items.is_empty() => self.no_agents(&spot),
                items => items,
            },
            None => None,
        };
        let Some(items) = items else {
            return (Vec::new(), None);
        };
        let mut known = KnownAgents::default();
        let agents = items
            .into_iter()
            .map(|item| self.agent(item, &mut known))
            .collect();
        (agents, Some(known))
    }

    fn no_agents<T>(&mut self, spot: &Spot<'_>) -> Option<T> {
        self.checker
            .fault_at(spot, FaultCode::NoAgents, "a task needs at least one agent");
        None
    }

    fn agent<'a>(&mut self, spot: Spot<'a>, known: &mut KnownAgents<'a>) -> AgentDefinition {
        let Some(fields) = self.checker.fields(spot, "an agent", AGENT_FIELDS) else {
            known.add("", Ports::default());
            return AgentDefinition::default();
        };
        let id = self.agent_id(&fields, known);
        let mission = self.mission(&fields);
        let (model, effort) = self.model_and_effort(&fields);
        let kind = match fields.optional("kind") {
            Some(spot) => self.checker.choice(&spot, KINDS),
            None => Some(AgentKind::Deterministic),
        };
        let sub_agents = self.sub_agents(&fields, kind);
        let inputs = self.ports(&fields, "inputs");
        let outputs = self.ports(&fields, "outputs");
        let worktree = fields
            .optional("worktree")
            .and_then(|spot| self.checker.choice(&spot, WORKTREES));
        let definition = AgentDefinition {
            id: id.to_owned(),
            title: optional_text(&mut self.checker, &fields, "title"),
            mission,
            resources: resources(&mut self.checker, &fields),
            deliverable: deliverable(&mut self.checker, &fields),
            model,
            effort,
            kind: kind.unwrap_or_default(),
            max_duration: fields
                .optional("max_duration")
                .and_then(|spot| self.checker.duration(&spot)),
            browser: fields
                .optional("browser")
                .and_then(|spot| self.checker.flag(&spot)),
            worktree: worktree.unwrap_or_default(),
            inputs: owned(inputs.as_deref()),
            outputs: owned(outputs.as_deref()),
            sub_agents,
        };
        let names = |ports: Option<Vec<&'a str>>| ports.map(BTreeSet::from_iter);
        known.add(
            id,
            Ports {
                inputs: names(inputs),
                outputs: names(outputs),
            },
        );
        definition
    }

    /// The mission; one that says nothing is blank, whether it is a text or nothing at all.
    fn mission(&mut self, fields: &Fields<'_>) -> String {
        match fields.present("mission", &mut self.checker) {
            Some(spot) if spot.is_null() => {
                self.checker
                    .fault_at(&spot, FaultCode::BlankMission, "`mission` is blank");
                String::new()
            }
            Some(spot) => self
                .checker
                .filled_text(&spot, FaultCode::BlankMission)
                .unwrap_or_default()
                .to_owned(),
            None => String::new(),
        }
    }

    /// The identifier as it is written, even where it is at fault, so that links to it are not faults of their own.
    fn agent_id<'a>(&mut self, fields: &Fields<'a>, known: &KnownAgents<'a>) -> &'a str {
        let Some(spot) = fields.required("id", &mut self.checker) else {
            return "";
        };
        let Some(id) = self.checker.text(&spot) else {
            return match &spot.node.value {
                Value::Number(written) => written,
                Value::Null | Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => "",
            };
        };
        if check_id(&mut self.checker, &spot, id) && known.by_id.contains_key(id) {
            let message = format!("another agent before this one has the id `{id}`");
            self.checker.fault_at(&spot, FaultCode::DuplicateId, message);
        }
        id
    }

    fn model_and_effort(&mut self, fields: &Fields<'_>) -> (String, String) {
        let model = self.named(fields, "model");
        let effort = self.named(fields, "effort");
        let names = (name_of(model.as_ref()), name_of(effort.as_ref()));
        if let Some(model) = model {
            self.wishes.push(Wish {
                model,
                efforts: effort.into_iter().collect(),
                for_one: true,
            });
        }
        names
    }

    /// A required name of a model or effort.
    fn named(&mut self, fields: &Fields<'_>, name: &str) -> Option<Named> {
        let spot = fields.required(name, &mut self.checker)?;
        let name = self
            .checker
            .filled_text(&spot, FaultCode::MissingField)?
            .to_owned();
        Some(Named {
            name,
            path: spot.path,
            place: Some(spot.node.place),
        })
    }

    fn ports<'a>(&mut self, fields: &Fields<'a>, name: &str) -> Option<Vec<&'a str>> {
        let Some(spot) = fields.optional(name) else {
            return Some(Vec::new());
        };
        let ports = self.checker.texts(&spot)?;
        let mut seen = HashSet::new();
        for (spot, port) in &ports {
            if !check_id(&mut self.checker, spot, port) {
                continue;
            }
            if !seen.insert(*port) {
                let message = format!("`{port}` stands twice in `{name}`");
                self.checker.fault_at(spot, FaultCode::DuplicateId, message);
            } else if name == "outputs" && *port == REPORT_PORT {
                let message = "every agent has an output `report`, leave it out";
                self.checker.fault_at(spot, FaultCode::DuplicateId, message);
            }
        }
        Some(ports.into_iter().map(|(_, port)| port).collect())
    }

    /// `kind` is none when it is at fault itself: then `sub_agents` may be there or not.
    fn sub_agents(&mut self, agent: &Fields<'_>, kind: Option<AgentKind>) -> Option<SubAgentRules> {
        match (agent.optional("sub_agents"), kind) {
            (Some(spot), Some(AgentKind::Deterministic)) => {
                let message =
                    "only a dynamic agent has `sub_agents`: write `kind: dynamic` or leave them out";
                self.checker.fault_at(&spot, FaultCode::Contradiction, message);
                None
            }
            (Some(spot), Some(AgentKind::Dynamic) | None) => self.sub_agent_rules(spot),
            (None, Some(AgentKind::Dynamic)) => {
                let message = "a dynamic agent needs a field `sub_agents`";
                self.checker
                    .fault_at(agent.spot(), FaultCode::MissingField, message);
                None
            }
            (None, Some(AgentKind::Deterministic) | None) => None,
        }
    }

    fn sub_agent_rules(&mut self, spot: Spot<'_>) -> Option<SubAgentRules> {
        let fields = self.checker.fields(spot, "`sub_agents`", SUB_AGENT_FIELDS)?;
        let max = fields
            .required("max", &mut self.checker)
            .and_then(|spot| self.checker.limit(&spot));
        let delegate = fields
            .required("delegate", &mut self.checker)
            .and_then(|spot| self.checker.list(&spot));
        let delegate: BTreeSet<DelegatedField> = delegate
            .unwrap_or_default()
            .iter()
            .filter_map(|spot| self.checker.choice(spot, DELEGATED))
            .collect();
        let allow = fields
            .required("allow", &mut self.checker)
            .and_then(|spot| self.checker.list(&spot));
        let allow = allow
            .unwrap_or_default()
            .into_iter()
            .filter_map(|spot| self.allowed_pair(spot))
            .collect();
        Some(SubAgentRules {
            max: max.unwrap_or(NonZeroU32::MIN),
            delegate: delegate.into_iter().collect(),
            allow,
        })
    }

    fn allowed_pair(&mut self, spot: Spot<'_>) -> Option<AllowedPair> {
        let fields = self.checker.fields(spot, "an entry of `allow`", ALLOW_FIELDS)?;
        let model = self.named(&fields, "model");
        let efforts = fields.required("efforts", &mut self.checker);
        let efforts = efforts
            .and_then(|spot| self.checker.texts(&spot))
            .unwrap_or_default();
        let pair = AllowedPair {
            model: name_of(model.as_ref()),
            efforts: efforts.iter().map(|(_, effort)| (*effort).to_owned()).collect(),
        };
        if let Some(model) = model {
            let named = |(spot, effort): (Spot<'_>, &str)| Named {
                name: effort.to_owned(),
                path: spot.path,
                place: Some(spot.node.place),
            };
            self.wishes.push(Wish {
                model,
                efforts: efforts.into_iter().map(named).collect(),
                for_one: true,
            });
        }
        Some(pair)
    }
}

fn owned(names: Option<&[&str]>) -> Vec<String> {
    names
        .unwrap_or_default()
        .iter()
        .map(|name| (*name).to_owned())
        .collect()
}

fn name_of(named: Option<&Named>) -> String {
    named.map(|named| named.name.clone()).unwrap_or_default()
}

//! What changed between two versions of a task (R14).
//!
//! Agents are known by their ids: one that was renamed is one removed and one added, each naming the other where the
//! names are near. The order of agents and of links is not compared: it changes nothing but who starts first.

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde::Serialize;

pub use self::words::{Piece, Side, pieces};
use crate::fault::nearest;
use crate::plain;
use crate::task::{AgentDefinition, AgentKind, Autocompact, Link, Port, Task, WorktreeWish};

/// All that differs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Of the task itself: title, context, method, check, limits, folders.
    pub task: Vec<FieldChange>,
    /// Of its agents: in the order of the later version, those removed last.
    pub agents: Vec<AgentChange>,
    /// Links that only the later version has, as the file writes them.
    pub links_added: Vec<String>,
    /// Links that only the earlier version has.
    pub links_removed: Vec<String>,
}

/// A field that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldChange {
    /// The field, by its path: `mission`, `limits.parallel`.
    pub field: String,
    /// How it changed.
    #[serde(flatten)]
    pub change: Change,
}

/// How a field changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Change {
    /// A text, word by word.
    Text {
        /// Its pieces.
        pieces: Vec<Piece>,
    },
    /// A value.
    Value {
        /// What it was; none: not set.
        old: Option<String>,
        /// What it is; none: not set.
        new: Option<String>,
    },
    /// A list.
    List {
        /// What only the later one has.
        added: Vec<String>,
        /// What only the earlier one has.
        removed: Vec<String>,
    },
}

/// An agent that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub enum AgentChange {
    /// Only the later version has it.
    Added {
        /// The agent.
        agent: String,
        /// One that was removed and has a name near to it: it may have been renamed.
        #[serde(skip_serializing_if = "Option::is_none")]
        near: Option<String>,
    },
    /// Only the earlier version has it.
    Removed {
        /// The agent.
        agent: String,
        /// One that was added and has a name near to it.
        #[serde(skip_serializing_if = "Option::is_none")]
        near: Option<String>,
    },
    /// Both have it.
    Changed {
        /// The agent.
        agent: String,
        /// What differs.
        fields: Vec<FieldChange>,
    },
}

/// Compares two versions of a task.
#[must_use]
pub fn compare(old: &Task, new: &Task) -> Changes {
    let links = |task: &Task| -> BTreeSet<String> { task.links.iter().map(|one| link(task, one)).collect() };
    let (before, after) = (links(old), links(new));
    Changes {
        task: task_fields(old, new),
        agents: agents(old, new),
        links_added: after.difference(&before).cloned().collect(),
        links_removed: before.difference(&after).cloned().collect(),
    }
}

/// Compares two definitions of an agent.
#[must_use]
pub fn compare_agents(old: &AgentDefinition, new: &AgentDefinition) -> Vec<FieldChange> {
    let mut fields = Fields::default();
    fields.value("title", old.title.as_deref(), new.title.as_deref());
    fields.text("mission", Some(&old.mission), Some(&new.mission));
    let resources = |agent: &AgentDefinition| -> Vec<String> {
        agent
            .resources
            .iter()
            .map(|resource| resource.0.clone())
            .collect()
    };
    fields.list("resources", resources(old), resources(new));
    let wanted = |agent: &AgentDefinition| agent.deliverable.clone().unwrap_or_default();
    let (before, after) = (wanted(old), wanted(new));
    fields.text("deliverable", before.text.as_deref(), after.text.as_deref());
    fields.list("deliverable.files", paths(&before.files), paths(&after.files));
    fields.value("model", Some(&old.model), Some(&new.model));
    fields.value("effort", Some(&old.effort), Some(&new.effort));
    fields.value("kind", Some(kind(old.kind)), Some(kind(new.kind)));
    let longest = |agent: &AgentDefinition| agent.max_duration.map(duration);
    fields.value("max_duration", longest(old).as_deref(), longest(new).as_deref());
    let browser = |agent: &AgentDefinition| agent.browser.map(|browser| browser.to_string());
    fields.value("browser", browser(old).as_deref(), browser(new).as_deref());
    fields.value("worktree", Some(wish(old.worktree)), Some(wish(new.worktree)));
    fields.list("inputs", old.inputs.clone(), new.inputs.clone());
    fields.list("outputs", old.outputs.clone(), new.outputs.clone());
    rules(&mut fields, old, new);
    fields.0
}

fn rules(fields: &mut Fields, old: &AgentDefinition, new: &AgentDefinition) {
    let max = |agent: &AgentDefinition| agent.sub_agents.as_ref().map(|rules| rules.max.to_string());
    fields.value("sub_agents.max", max(old).as_deref(), max(new).as_deref());
    let delegated = |agent: &AgentDefinition| -> Vec<String> {
        let fields = agent.sub_agents.iter().flat_map(|rules| &rules.delegate);
        fields.map(|field| field_word(*field).to_owned()).collect()
    };
    fields.list("sub_agents.delegate", delegated(old), delegated(new));
    let allowed = |agent: &AgentDefinition| -> Vec<String> {
        let pairs = agent.sub_agents.iter().flat_map(|rules| &rules.allow);
        pairs
            .flat_map(|pair| {
                pair.efforts
                    .iter()
                    .map(|effort| format!("{} at {effort}", pair.model))
            })
            .collect()
    };
    fields.list("sub_agents.allow", allowed(old), allowed(new));
}

fn field_word(field: crate::task::DelegatedField) -> &'static str {
    use crate::task::DelegatedField as Field;
    match field {
        Field::Mission => "mission",
        Field::Resources => "resources",
        Field::Deliverable => "deliverable",
        Field::Model => "model",
        Field::Effort => "effort",
    }
}

fn task_fields(old: &Task, new: &Task) -> Vec<FieldChange> {
    let mut fields = Fields::default();
    fields.value("task", Some(&old.title), Some(&new.title));
    fields.text("context", old.context.as_deref(), new.context.as_deref());
    fields.text("method", old.method.as_deref(), new.method.as_deref());
    fields.list("folders.read", paths(&old.folders.read), paths(&new.folders.read));
    fields.list(
        "folders.write",
        paths(&old.folders.write),
        paths(&new.folders.write),
    );
    let parallel = |task: &Task| task.limits.parallel.map(|most| most.to_string());
    fields.value(
        "limits.parallel",
        parallel(old).as_deref(),
        parallel(new).as_deref(),
    );
    let models: BTreeSet<&String> = old.limits.models.keys().chain(new.limits.models.keys()).collect();
    for model in models {
        let most = |task: &Task| task.limits.models.get(model).map(|most| most.to_string());
        let field = format!("limits.models.{model}");
        fields.value(&field, most(old).as_deref(), most(new).as_deref());
    }
    fields.text("check", old.check.as_deref(), new.check.as_deref());
    let compact = |task: &Task| match task.autocompact {
        Autocompact::Default => None,
        Autocompact::Tokens(tokens) => Some(tokens.to_string()),
        Autocompact::Off => Some("off".to_owned()),
    };
    fields.value(
        "autocompact_tokens",
        compact(old).as_deref(),
        compact(new).as_deref(),
    );
    fields.0
}

fn agents(old: &Task, new: &Task) -> Vec<AgentChange> {
    let by_id = |task: &'_ Task| -> BTreeMap<String, usize> {
        let agents = task.agents.iter().enumerate();
        agents.map(|(at, agent)| (agent.id.clone(), at)).collect()
    };
    let (before, after) = (by_id(old), by_id(new));
    let added: Vec<&str> = ids_missing_in(new, &before);
    let removed: Vec<&str> = ids_missing_in(old, &after);
    let mut changes = Vec::new();
    for agent in &new.agents {
        match before.get(&agent.id) {
            Some(at) => {
                let fields = compare_agents(&old.agents[*at], agent);
                if !fields.is_empty() {
                    changes.push(AgentChange::Changed {
                        agent: agent.id.clone(),
                        fields,
                    });
                }
            }
            None => changes.push(AgentChange::Added {
                agent: agent.id.clone(),
                near: near(&agent.id, &removed),
            }),
        }
    }
    changes.extend(removed.iter().map(|agent| AgentChange::Removed {
        agent: (*agent).to_owned(),
        near: near(agent, &added),
    }));
    changes
}

/// Names beyond this are not compared with each other to find what was renamed: that many were not renamed by hand.
const MOST_NEAR: usize = 200;

fn near(name: &str, others: &[&str]) -> Option<String> {
    (others.len() <= MOST_NEAR)
        .then(|| nearest(name, others.iter().copied()))
        .flatten()
}

fn ids_missing_in<'t>(task: &'t Task, other: &BTreeMap<String, usize>) -> Vec<&'t str> {
    let ids = task.agents.iter().map(|agent| agent.id.as_str());
    ids.filter(|id| !other.contains_key(*id)).collect()
}

/// The link as a file writes it: `a.out -> b`.
#[must_use]
pub fn link(task: &Task, link: &Link) -> String {
    format!("{} -> {}", port(task, &link.from), port(task, &link.to))
}

fn port(task: &Task, port: &Port) -> String {
    let agent = task
        .agents
        .get(port.agent as usize)
        .map_or("?", |agent| agent.id.as_str());
    match &port.name {
        Some(name) => format!("{agent}.{name}"),
        None => agent.to_owned(),
    }
}

fn paths(paths: &[std::path::PathBuf]) -> Vec<String> {
    paths
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}

/// As a file writes it: `1h30m`.
fn duration(span: Duration) -> String {
    let seconds = span.as_secs();
    let parts = [
        (seconds / 3600, 'h'),
        (seconds / 60 % 60, 'm'),
        (seconds % 60, 's'),
    ];
    let told: String = parts
        .iter()
        .filter(|(amount, _)| *amount > 0)
        .map(|(amount, unit)| format!("{amount}{unit}"))
        .collect();
    if told.is_empty() { "0s".to_owned() } else { told }
}

const fn kind(kind: AgentKind) -> &'static str {
    match kind {
        AgentKind::Deterministic => "deterministic",
        AgentKind::Dynamic => "dynamic",
    }
}

const fn wish(wish: WorktreeWish) -> &'static str {
    match wish {
        WorktreeWish::Auto => "auto",
        WorktreeWish::Always => "always",
        WorktreeWish::Never => "never",
    }
}

/// Fields that differ, as they are found.
#[derive(Default)]
struct Fields(Vec<FieldChange>);

impl Fields {
    fn add(&mut self, field: &str, change: Change) {
        self.0.push(FieldChange {
            field: field.to_owned(),
            change,
        });
    }

    fn value(&mut self, field: &str, old: Option<&str>, new: Option<&str>) {
        if old != new {
            let (old, new) = (old.map(str::to_owned), new.map(str::to_owned));
            self.add(field, Change::Value { old, new });
        }
    }

    fn text(&mut self, field: &str, old: Option<&str>, new: Option<&str>) {
        if old != new {
            let pieces = pieces(old.unwrap_or_default(), new.unwrap_or_default());
            self.add(field, Change::Text { pieces });
        }
    }

    fn list(&mut self, field: &str, old: Vec<String>, new: Vec<String>) {
        if old == new {
            return;
        }
        let (before, after): (BTreeSet<&String>, BTreeSet<&String>) =
            (old.iter().collect(), new.iter().collect());
        let added: Vec<String> = new.iter().filter(|one| !before.contains(one)).cloned().collect();
        let removed: Vec<String> = old.iter().filter(|one| !after.contains(one)).cloned().collect();
        if added.is_empty() && removed.is_empty() {
            // The same in another order, or one of them twice.
            self.value(field, Some(&old.join(", ")), Some(&new.join(", ")));
        } else {
            self.add(field, Change::List { added, removed });
        }
    }
}

impl Changes {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.task.is_empty()
            && self.agents.is_empty()
            && self.links_added.is_empty()
            && self.links_removed.is_empty()
    }

    /// A line for each thing that differs, without texts in full.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.task.iter().map(|field| format!("task: {field}")).collect();
        for agent in &self.agents {
            match agent {
                AgentChange::Added { agent, .. } => lines.push(format!("{agent}: added")),
                AgentChange::Removed { agent, .. } => lines.push(format!("{agent}: removed")),
                AgentChange::Changed { agent, fields } => {
                    lines.extend(fields.iter().map(|field| format!("{agent}: {field}")));
                }
            }
        }
        lines.extend(self.links_added.iter().map(|link| format!("link {link} added")));
        lines.extend(
            self.links_removed
                .iter()
                .map(|link| format!("link {link} removed")),
        );
        lines
    }
}

/// E.g. `mission changed`, `model sonnet is now opus`.
impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = plain::line(&self.field);
        match &self.change {
            Change::Text { .. } => write!(f, "{field} changed"),
            Change::Value { old, new } => {
                let said = |value: &Option<String>| match value {
                    Some(value) => plain::line(value).to_string(),
                    None => "not set".to_owned(),
                };
                write!(f, "{field} was {} and is {}", said(old), said(new))
            }
            Change::List { added, removed } => {
                write!(f, "{field}")?;
                for (word, entries) in [(" with ", added), (" without ", removed)] {
                    if !entries.is_empty() {
                        write!(f, "{word}{}", plain::list(entries))?;
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::document::Format;

    const OLD: &str = "task: T\ncontext: Old words\nlimits: { parallel: 2 }\nagents:\n\
        \x20 - { id: a, mission: Find the doors, model: m, effort: low, outputs: [x] }\n\
        \x20 - { id: builder, mission: B, model: m, effort: low, inputs: [y], max_duration: 1h }\n\
        \x20 - { id: c, mission: C, model: m, effort: low }\nlinks: [a.x -> builder.y, a -> c]\n";

    fn task(text: &str) -> Task {
        crate::task::read(text, Format::Either, None).unwrap()
    }

    #[test]
    fn r14_everything_that_differs_is_told_field_by_field() {
        let new = OLD
            .replace("Old words", "New words")
            .replace("{ parallel: 2 }", "{ models: { m: 1 } }")
            .replace("Find the doors", "Find the windows")
            .replace("builder", "builders")
            .replace(
                "id: c, mission: C, model: m",
                "id: c, mission: C, model: n, resources: [docs]",
            )
            .replace("a -> c", "a -> c, c -> builders")
            .replace("task: T", "task: T\nfolders: { write: [.] }");
        let changes = compare(&task(OLD), &task(&new));
        assert_eq!(
            changes.lines(),
            [
                "task: context changed",
                "task: folders.write with .",
                "task: limits.parallel was 2 and is not set",
                "task: limits.models.m was not set and is 1",
                "a: mission changed",
                "builders: added",
                "c: resources with docs",
                "c: model was m and is n",
                "builder: removed",
                "link a.x -> builders.y added",
                "link c -> builders added",
                "link a.x -> builder.y removed",
            ]
        );
        let json = serde_json::to_value(&changes).unwrap();
        assert_eq!(json["agents"][1]["near"], "builder");
        assert_eq!(
            json["agents"][0]["fields"][0]["pieces"][1],
            serde_json::json!({ "side": "removed", "text": "doors" })
        );
    }

    #[test]
    fn r14_no_field_of_a_definition_is_left_out_of_the_comparison() {
        let task = task(OLD);
        let old = &task.agents[0];
        // Without `..`: the compiler asks for each field that is added.
        let AgentDefinition {
            id: _,
            title: _,
            mission: _,
            resources: _,
            deliverable: _,
            model: _,
            effort: _,
            kind: _,
            max_duration: _,
            browser: _,
            worktree: _,
            inputs: _,
            outputs: _,
            sub_agents: _,
        } = old.clone();
        let changes: [fn(&mut AgentDefinition); 10] = [
            |agent| agent.title = Some("T".to_owned()),
            |agent| agent.mission.push('x'),
            |agent| {
                agent.deliverable = Some(crate::task::Deliverable {
                    text: None,
                    files: vec![PathBuf::from("f")],
                })
            },
            |agent| agent.effort.push('x'),
            |agent| agent.kind = AgentKind::Dynamic,
            |agent| agent.max_duration = Some(std::time::Duration::from_secs(9)),
            |agent| agent.browser = Some(true),
            |agent| agent.worktree = WorktreeWish::Never,
            |agent| agent.outputs.push("z".to_owned()),
            |agent| {
                agent.sub_agents = Some(crate::task::SubAgentRules {
                    max: 2.try_into().unwrap(),
                    delegate: vec![],
                    allow: vec![],
                });
            },
        ];
        for change in changes {
            let mut new = old.clone();
            change(&mut new);
            assert_eq!(compare_agents(old, &new).len(), 1);
        }
        assert!(compare(&task, &task).is_nothing());
    }
}

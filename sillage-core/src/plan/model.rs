//! An accepted plan, and the agents that it makes.

use std::collections::HashMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::task::{AgentDefinition, AgentKind, Deliverable, Resource};

/// The division of a dynamic agent's work (W19). One that passed its checks, with every field resolved: what the
/// coordinator left out, or may not write, was taken from the dynamic agent. So a stored plan stays what it was, even
/// if the rules change later.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The units of work, in the order of the plan.
    pub units: Vec<Unit>,
    /// Who does them, in the order of the plan.
    pub sub_agents: Vec<SubAgent>,
    /// Why the work is divided so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A unit of work: what exactly one sub-agent does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Unique among the units of the plan.
    pub id: String,
    /// What it is; the id where the plan gives none.
    pub title: String,
}

/// A sub-agent of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubAgent {
    /// Unique among the sub-agents of the plan.
    pub id: String,
    /// The ids of its units of work, at least one.
    pub units: Vec<String>,
    /// What it has to do, besides the list of its units.
    pub mission: String,
    /// What it starts from.
    #[serde(default)]
    pub resources: Vec<Resource>,
    /// What it must hand over.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "deliverable")]
    pub deliverable: Option<Deliverable>,
    /// Model.
    pub model: String,
    /// Effort.
    pub effort: String,
    /// The sub-agents whose reports it needs: it starts when they have reported.
    #[serde(default)]
    pub after: Vec<String>,
}

impl Plan {
    /// The definitions of the sub-agents, in the order of the plan; `of` is the dynamic agent whose plan this is.
    ///
    /// What the plan does not settle is the dynamic agent's: `worktree`, `browser` and `max_duration`, which each
    /// sub-agent has whole. Ports are not passed on: they are places in the task's graph, where only the group stands,
    /// and its own report gives the declared outputs. Sub-agents are deterministic and make no plans. Folders and
    /// permissions are the run's for every agent, so that there is nothing here to widen (W20).
    #[must_use]
    pub fn agents(&self, of: &AgentDefinition) -> Vec<AgentDefinition> {
        let titles: HashMap<&str, &str> = self
            .units
            .iter()
            .map(|unit| (unit.id.as_str(), unit.title.as_str()))
            .collect();
        self.sub_agents
            .iter()
            .map(|sub_agent| {
                let units = sub_agent.units.iter().map(|id| {
                    let id = id.as_str();
                    (id, titles.get(id).copied().unwrap_or(id))
                });
                let units: Vec<(&str, &str)> = units.collect();
                AgentDefinition {
                    id: sub_agent.id.clone(),
                    title: title(&units),
                    mission: mission(&sub_agent.mission, &units),
                    resources: sub_agent.resources.clone(),
                    deliverable: sub_agent.deliverable.clone(),
                    model: sub_agent.model.clone(),
                    effort: sub_agent.effort.clone(),
                    kind: AgentKind::Deterministic,
                    max_duration: of.max_duration,
                    browser: of.browser,
                    worktree: of.worktree,
                    inputs: Vec::new(),
                    outputs: Vec::new(),
                    sub_agents: None,
                }
            })
            .collect()
    }

    /// Which sub-agent waits for which, by their positions in the plan: `(first, then)`, each pair once.
    #[must_use]
    pub fn after(&self) -> Vec<(u32, u32)> {
        let positions: HashMap<&str, u32> = (0_u32..)
            .zip(&self.sub_agents)
            .map(|(position, sub_agent)| (sub_agent.id.as_str(), position))
            .collect();
        let mut edges: Vec<(u32, u32)> = (0_u32..)
            .zip(&self.sub_agents)
            .flat_map(|(then, sub_agent)| {
                let first = sub_agent.after.iter().filter_map(|id| positions.get(id.as_str()));
                first.map(move |first| (*first, then))
            })
            .collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }
}

/// A sub-agent that does one unit is called as that is. Others are known by their ids alone.
fn title(units: &[(&str, &str)]) -> Option<String> {
    match units {
        [(id, title)] if id != title => Some((*title).to_owned()),
        [] | [_] | [_, _, ..] => None,
    }
}

/// A sub-agent's mission, with its units of work added.
fn mission(own: &str, units: &[(&str, &str)]) -> String {
    let mut text = own.trim_end().to_owned();
    text.push_str(
        "\n\nYour units of work are these, and all of them. Others are done by other agents: leave them alone.\n",
    );
    for (id, title) in units {
        text.push_str("\n- ");
        text.push_str(id);
        if id != title {
            text.push_str(": ");
            // A line for each, whatever the title holds.
            text.extend(title.chars().map(|c| if c.is_control() { ' ' } else { c }));
        }
    }
    text
}

/// A deliverable as plans and tasks write it: a text, or a text and files.
mod deliverable {
    use super::{Deliverable, PathBuf};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Parts {
            #[serde(default, skip_serializing_if = "Option::is_none")]
            text: Option<String>,
            #[serde(default)]
            files: Vec<PathBuf>,
        },
    }

    pub(super) fn serialize<S: Serializer>(value: &Option<Deliverable>, to: S) -> Result<S::Ok, S::Error> {
        let written = value.as_ref().map(|deliverable| match deliverable {
            Deliverable {
                text: Some(text),
                files,
            } if files.is_empty() => Written::Text(text.clone()),
            Deliverable { text, files } => Written::Parts {
                text: text.clone(),
                files: files.clone(),
            },
        });
        written.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Deliverable>, D::Error> {
        let written = Option::<Written>::deserialize(from)?;
        Ok(written.map(|written| match written {
            Written::Text(text) => Deliverable {
                text: Some(text),
                files: Vec::new(),
            },
            Written::Parts { text, files } => Deliverable { text, files },
        }))
    }
}

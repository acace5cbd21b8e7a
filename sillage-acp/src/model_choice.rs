//! Which agent a task's model means (A3), and how a session is told its model and effort.
//!
//! In this order: the configuration option of category `model` (or `thought_level`) that the agent shows; the older
//! list `models` with `session/set_model`; the placeholders `{model}` and `{effort}` in the agent's arguments and
//! environment, which were filled in when it was started. Each is checked against what the agent says afterwards.
//! An agent that offers none of them is an error, never silence.
//!
//! The effort `default` asks for nothing, and so does the model identifier `default` where the agent does not list a
//! model of that name. A model whose settings say `efforts: []` has no effort to choose: none is told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sillage_core::ports::runtime::{ModelOffer, RuntimeError};
use sillage_core::settings::McpServer;

use crate::sandbox::Sandbox;
use sillage_core::policy::ToolFacts;

/// An agent as the settings describe it (A12).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCommand {
    /// What models and people call it.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments. `{model}`, `{effort}` and `{autocompact_tokens}` are replaced by what the session asks for, here
    /// and in the values of `env`; an argument or value that holds one of them without a value for it is left out.
    pub args: Vec<String>,
    /// Variables set besides the few that are passed on ([`crate::Options::inherited`]); already expanded.
    pub env: BTreeMap<String, String>,
    /// Its folder outside of runs, absolute; a run uses its step's folder, which a box must have too.
    pub workspace: Option<PathBuf>,
    /// The box that it runs in; none: this machine.
    pub sandbox: Option<Sandbox>,
    /// The provider account, whose sessions share quota and sign-in waits.
    pub account: String,
    /// The agent's identifier of the way to sign in that may be used without a person (`authenticate`), once for each
    /// session. None: a sign-in that the agent asks for is an error.
    pub sign_in: Option<String>,
    /// What tasks may ask for, by name. Empty: any model, written `agent/model`.
    pub models: BTreeMap<String, AgentModel>,
    /// Limits that the launcher sets for it; what is not said is as in [`crate::Options::limits`].
    pub limits: crate::launcher::Limits,
    /// MCP servers that it is told to use in every session; the values of variables and headers are expanded already.
    pub mcp_servers: Vec<McpServer>,
}

/// A model of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentModel {
    /// What the agent calls it; none: as tasks do.
    pub id: Option<String>,
    /// Efforts that may be asked for. None: any, passed on as written. Empty: the model has no effort to choose.
    pub efforts: Option<Vec<String>>,
}

/// An effort or a model that asks for nothing.
const DEFAULT: &str = "default";

/// What a session asks of its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) agent: Arc<AgentCommand>,
    /// The agent's word for the model.
    pub(crate) model: String,
    /// None: nothing is asked.
    pub(crate) effort: Option<String>,
}

/// What the agents offer, for [`sillage_core::ports::runtime::RuntimeStatus`].
pub(crate) fn offers(agents: &[Arc<AgentCommand>]) -> Vec<ModelOffer> {
    let offers = agents.iter().flat_map(|agent| {
        agent.models.iter().map(|(name, model)| ModelOffer {
            agent: agent.name.clone(),
            model: name.clone(),
            efforts: model.efforts.clone().unwrap_or_default(),
            account: agent.account.clone(),
        })
    });
    offers.collect()
}

/// Finds the agent that `model` means: a name that one agent offers, or `agent/model`.
pub(crate) fn resolve(
    agents: &[Arc<AgentCommand>],
    model: &str,
    effort: &str,
) -> Result<Choice, RuntimeError> {
    let mut found: Vec<(&Arc<AgentCommand>, &str, Option<&AgentModel>)> = Vec::new();
    for agent in agents {
        let rest = model
            .strip_prefix(agent.name.as_str())
            .and_then(|rest| rest.strip_prefix('/'));
        if let Some(entry) = agent.models.get(model) {
            found.push((agent, model, Some(entry)));
        } else if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            match agent.models.get(rest) {
                Some(entry) => found.push((agent, rest, Some(entry))),
                None if agent.models.is_empty() => found.push((agent, rest, None)),
                None => {}
            }
        }
    }
    match found.as_slice() {
        [(agent, name, entry)] => {
            let effort = asked_effort(name, *entry, effort)?;
            let id = entry.and_then(|entry| entry.id.as_deref()).unwrap_or(name);
            Ok(Choice {
                agent: Arc::clone(agent),
                model: id.to_owned(),
                effort,
            })
        }
        [] => Err(permanent(unknown(agents, model))),
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|(agent, name, _)| format!("`{}/{name}`", agent.name))
                .collect();
            Err(permanent(format!(
                "several agents offer the model `{model}`: write {}",
                names.join(" or ")
            )))
        }
    }
}

fn asked_effort(
    name: &str,
    entry: Option<&AgentModel>,
    effort: &str,
) -> Result<Option<String>, RuntimeError> {
    let efforts = entry.and_then(|entry| entry.efforts.as_deref());
    match efforts {
        _ if effort == DEFAULT || effort.is_empty() => Ok(None),
        Some([]) => Ok(None),
        Some(efforts) if !efforts.iter().any(|one| one == effort) => Err(permanent(format!(
            "the model `{name}` has no effort `{effort}`: it has {}",
            efforts.join(", ")
        ))),
        Some(_) | None => Ok(Some(effort.to_owned())),
    }
}

fn unknown(agents: &[Arc<AgentCommand>], model: &str) -> String {
    let offers = offers(agents);
    let names = offers
        .iter()
        .flat_map(|offer| [offer.model.clone(), format!("{}/{}", offer.agent, offer.model)]);
    match nearest(model, names) {
        near if near.is_empty() => format!("no agent offers the model `{model}`"),
        near => format!(
            "no agent offers the model `{model}`; did you mean {}?",
            near.join(" or ")
        ),
    }
}

/// The names that resemble `wanted` most, the best first, three at most.
pub(crate) fn nearest(wanted: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut scored: Vec<(f64, String)> = names
        .into_iter()
        .map(|name| {
            (
                strsim::jaro_winkler(&wanted.to_lowercase(), &name.to_lowercase()),
                name,
            )
        })
        .filter(|(score, _)| *score >= 0.75)
        .collect();
    scored.sort_by(|(one, a), (other, b)| other.total_cmp(one).then_with(|| a.cmp(b)));
    scored.dedup_by(|(_, a), (_, b)| a == b);
    scored
        .into_iter()
        .take(3)
        .map(|(_, name)| format!("`{name}`"))
        .collect()
}

/// One configuration option that the agent shows, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigOption {
    pub(crate) id: String,
    /// `model`, `thought_level`, …
    pub(crate) category: String,
    pub(crate) current: String,
    /// Values with their names for people.
    pub(crate) values: Vec<(String, String)>,
}

/// The older way to choose a model: the `models` member of a new session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LegacyModels {
    pub(crate) current: String,
    pub(crate) available: Vec<String>,
}

/// What an agent shows of its model and effort.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) options: Vec<ConfigOption>,
    pub(crate) models: Option<LegacyModels>,
}

/// The next thing to do so that model and effort are in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// `session/set_config_option`; the list that comes back replaces the one shown.
    SetOption { id: String, value: String },
    /// `session/set_model`; what is shown is then current.
    SetModel(String),
    /// Both are in force.
    Done,
}

/// What is to be done next, given what the agent shows now. `tried` holds the steps already taken, which must have
/// had their effect.
pub(crate) fn next_step(
    choice: &Choice,
    shown: &Shown,
    tried: &[NextStep],
) -> Result<NextStep, RuntimeError> {
    let step = match model_step(choice, shown)? {
        NextStep::Done => effort_step(choice, shown)?,
        step @ (NextStep::SetOption { .. } | NextStep::SetModel(_)) => step,
    };
    if step != NextStep::Done && tried.contains(&step) {
        let (what, asked) = match &step {
            NextStep::SetOption { id, value } => (format!("its option `{id}`"), value.clone()),
            NextStep::SetModel(model) => ("its model".to_owned(), model.clone()),
            NextStep::Done => (String::new(), String::new()),
        };
        let agent = &choice.agent.name;
        let words = format!("agent `{agent}` was told `{asked}` for {what} and did not take it");
        return Err(permanent(words));
    }
    Ok(step)
}

fn model_step(choice: &Choice, shown: &Shown) -> Result<NextStep, RuntimeError> {
    let wanted = choice.model.as_str();
    if let Some(option) = shown.option("model") {
        return match option.value(wanted) {
            Some(value) if value == option.current => Ok(NextStep::Done),
            Some(value) => Ok(NextStep::SetOption {
                id: option.id.clone(),
                value: value.to_owned(),
            }),
            None if wanted == DEFAULT => Ok(NextStep::Done),
            None => Err(not_among(
                choice,
                "model",
                wanted,
                option.values.iter().map(|(value, _)| value),
            )),
        };
    }
    if let Some(models) = &shown.models {
        let combined = choice.effort.as_ref().map(|effort| format!("{wanted}[{effort}]"));
        let listed = |name: &&str| models.available.iter().any(|one| one == name);
        return match combined.as_deref().filter(listed).or(Some(wanted).filter(listed)) {
            Some(name) if name == models.current => Ok(NextStep::Done),
            Some(name) => Ok(NextStep::SetModel(name.to_owned())),
            None if wanted == DEFAULT => Ok(NextStep::Done),
            None => Err(not_among(choice, "model", wanted, &models.available)),
        };
    }
    if wanted == DEFAULT || choice.agent.mentions("{model}") {
        return Ok(NextStep::Done);
    }
    Err(no_way(choice, "model", wanted, "{model}"))
}

fn effort_step(choice: &Choice, shown: &Shown) -> Result<NextStep, RuntimeError> {
    let Some(wanted) = choice.effort.as_deref() else {
        return Ok(NextStep::Done);
    };
    if let Some(option) = shown.option("thought_level") {
        return match option.value(wanted) {
            Some(value) if value == option.current => Ok(NextStep::Done),
            Some(value) => Ok(NextStep::SetOption {
                id: option.id.clone(),
                value: value.to_owned(),
            }),
            None => Err(not_among(
                choice,
                "effort",
                wanted,
                option.values.iter().map(|(value, _)| value),
            )),
        };
    }
    let in_model = shown
        .models
        .as_ref()
        .is_some_and(|models| models.current.ends_with(&format!("[{wanted}]")));
    if in_model || choice.agent.mentions("{effort}") {
        return Ok(NextStep::Done);
    }
    Err(no_way(choice, "effort", wanted, "{effort}"))
}

impl Shown {
    fn option(&self, category: &str) -> Option<&ConfigOption> {
        self.options.iter().find(|option| option.category == category)
    }
}

impl ConfigOption {
    /// The value meant by `wanted`: the same text, or else the only one that is the same but for case, or whose name
    /// for people is.
    fn value(&self, wanted: &str) -> Option<&str> {
        let same = self.values.iter().find(|(value, _)| value == wanted);
        if let Some((value, _)) = same {
            return Some(value);
        }
        let alike: Vec<&str> = self
            .values
            .iter()
            .filter(|(value, name)| value.eq_ignore_ascii_case(wanted) || name.eq_ignore_ascii_case(wanted))
            .map(|(value, _)| value.as_str())
            .collect();
        match alike.as_slice() {
            [value] => Some(value),
            [] | [_, ..] => None,
        }
    }
}

impl AgentCommand {
    /// Whether an argument or a variable of the agent holds `placeholder`.
    pub(crate) fn mentions(&self, placeholder: &str) -> bool {
        self.args
            .iter()
            .chain(self.env.values())
            .any(|text| text.contains(placeholder))
    }

    /// A folder of this machine as the agent has it: where it runs in a box, where that is in the box.
    ///
    /// # Errors
    /// [`RuntimeError::Permanent`] when the box does not have it, with what to do.
    pub fn inside(&self, folder: &Path) -> Result<PathBuf, RuntimeError> {
        match &self.sandbox {
            Some(sandbox) => sandbox.inside(&self.name, self.workspace.as_deref(), folder),
            None => Ok(folder.to_owned()),
        }
    }

    /// What is known of a tool call, its paths as this machine has them.
    pub(crate) fn outside(&self, facts: ToolFacts) -> ToolFacts {
        let Some(sandbox) = &self.sandbox else {
            return facts;
        };
        let workspace = self.workspace.as_deref();
        let all = |paths: Vec<PathBuf>| {
            let paths = paths.into_iter();
            paths.map(|path| sandbox.outside(workspace, path)).collect()
        };
        ToolFacts {
            locations: all(facts.locations),
            inputs: all(facts.inputs),
            folders: all(facts.folders),
            ..facts
        }
    }
}

fn not_among<'a>(
    choice: &Choice,
    what: &str,
    wanted: &str,
    values: impl IntoIterator<Item = &'a String>,
) -> RuntimeError {
    let values: Vec<&str> = values.into_iter().map(String::as_str).collect();
    let agent = &choice.agent.name;
    permanent(format!(
        "agent `{agent}` has no {what} `{wanted}`: it has {}",
        values.join(", ")
    ))
}

fn no_way(choice: &Choice, what: &str, wanted: &str, placeholder: &str) -> RuntimeError {
    let agent = &choice.agent.name;
    permanent(format!(
        "agent `{agent}` offers no way to choose its {what}, and `{wanted}` is asked for: put `{placeholder}` into its \
         arguments or environment, or ask for the {what} `{DEFAULT}`"
    ))
}

fn permanent(words: String) -> RuntimeError {
    RuntimeError::Permanent { words }
}

#[cfg(test)]
mod tests;

//! Reads the settings file: every fault at once, each with its place.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use super::{
    AgentLimits, AgentSettings, Language, Lifecycle, ModelSettings, Placement, Price, ProgramLimits,
    RelaisAddress, RuntimeKind, Settings, SettingsChannel, Theme, WaitSettings, budget, mcp, parse_size,
};
use crate::document::check::{Checker, Fields, Spot, brief, field_path};
use crate::document::{self, Format, Value};
use crate::fault::{Fault, FaultCode};

const FIELDS: &[&str] = &[
    "agents", "limits", "waits", "prices", "relais", "theme", "language", "channels",
];
const AGENT_FIELDS: &[&str] = &[
    "name",
    "title",
    "icon",
    "description",
    "command",
    "args",
    "env",
    "workspace",
    "account",
    "signIn",
    "models",
    "mcpServers",
    "runtime",
    "limits",
];

/// Reads settings. A text that holds nothing is settings without agents.
///
/// # Errors
/// Every fault at once, in the order of the text.
pub fn read(text: &str) -> Result<Settings, Vec<Fault>> {
    let root = document::read(text, Format::Either).map_err(|unreadable| vec![unreadable.into()])?;
    let mut checker = Checker::default();
    let settings = settings(Spot::root(&root), &mut checker);
    checker.finish(settings)
}

fn settings(root: Spot<'_>, checker: &mut Checker) -> Settings {
    let Some(fields) = checker.fields(root, "the settings", FIELDS) else {
        return Settings::default();
    };
    let mut taken = HashMap::new();
    let agents = items(&fields, "agents", checker, |spot, checker| {
        agent(spot, &mut taken, checker)
    });
    let channels = items(&fields, "channels", checker, |spot, checker| {
        channel(spot, &agents, checker)
    });
    Settings {
        limits: fields
            .optional("limits")
            .and_then(|spot| limits(spot, checker))
            .unwrap_or_default(),
        waits: fields
            .optional("waits")
            .and_then(|spot| waits(spot, checker))
            .unwrap_or_default(),
        prices: prices(&fields, checker),
        relais: items(&fields, "relais", checker, relais),
        theme: choice(
            &fields,
            "theme",
            checker,
            &[
                ("system", Theme::System),
                ("light", Theme::Light),
                ("dark", Theme::Dark),
            ],
        ),
        language: choice(
            &fields,
            "language",
            checker,
            &[("en", Language::En), ("fr", Language::Fr)],
        ),
        agents,
        channels,
    }
}

/// Names of agents that came before, in lower case, with how they were written.
type Taken = HashMap<String, String>;

fn agent(spot: Spot<'_>, taken: &mut Taken, checker: &mut Checker) -> Option<AgentSettings> {
    let fields = checker.fields(spot, "an agent", AGENT_FIELDS)?;
    let name = fields
        .required("name", checker)
        .and_then(|spot| agent_name(&spot, taken, checker));
    let command = required_text(&fields, "command", checker);
    let title = optional_text(&fields, "title", checker);
    let account = optional_text(&fields, "account", checker);
    let sign_in = optional_text(&fields, "signIn", checker);
    let icon = optional_text(&fields, "icon", checker);
    let description = optional_text(&fields, "description", checker);
    let args = fields
        .optional("args")
        .and_then(|spot| checker.texts(&spot))
        .unwrap_or_default();
    let env = env(&fields, checker);
    let workspace = optional_text(&fields, "workspace", checker).map(PathBuf::from);
    let models = models(&fields, checker);
    let mcp_servers = mcp::servers(&fields, checker);
    let runtime = fields
        .optional("runtime")
        .and_then(|spot| placement(spot, checker))
        .unwrap_or_default();
    let limits = fields
        .optional("limits")
        .and_then(|spot| agent_limits(spot, checker))
        .unwrap_or_default();
    let name = name?;
    Some(AgentSettings {
        title: title.unwrap_or_else(|| name.clone()),
        account: account.unwrap_or_else(|| name.clone()),
        name,
        icon,
        description,
        command: command?,
        args: args
            .into_iter()
            .map(|(_, argument)| argument.to_owned())
            .collect(),
        env,
        workspace,
        sign_in,
        models,
        mcp_servers,
        runtime,
        limits,
    })
}

/// An agent's name, which no other has whatever the case: a mention could not tell them apart.
fn agent_name(spot: &Spot<'_>, taken: &mut Taken, checker: &mut Checker) -> Option<String> {
    let name = name(spot, checker)?;
    if let Some(first) = taken.insert(name.to_lowercase(), name.clone()) {
        checker.fault_at(
            spot,
            FaultCode::DuplicateId,
            format!("an agent is called `{first}` already"),
        );
    }
    Some(name)
}

/// A name that mentions, `agent/model` and branch names can hold: `[A-Za-z0-9][A-Za-z0-9_.-]{0,63}`.
pub(super) fn name(spot: &Spot<'_>, checker: &mut Checker) -> Option<String> {
    let name = checker.text(spot)?;
    let fits = name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    if fits {
        return Some(name.to_owned());
    }
    let message = format!(
        "`{}` is no name: 1 to 64 letters, digits, `_`, `.` and `-`, the first a letter or digit",
        brief(name)
    );
    checker.fault_at(spot, FaultCode::BadId, message);
    None
}

fn env(fields: &Fields<'_>, checker: &mut Checker) -> BTreeMap<String, String> {
    entries(fields, "env", checker)
        .into_iter()
        .filter_map(|(name, spot)| checker.text(&spot).map(|value| (name, value.to_owned())))
        .collect()
}

fn models(fields: &Fields<'_>, checker: &mut Checker) -> Vec<ModelSettings> {
    entries(fields, "models", checker)
        .into_iter()
        .filter_map(|(name, spot)| model(name, spot, checker))
        .collect()
}

/// A model; one about which nothing is said may be left empty.
fn model(name: String, spot: Spot<'_>, checker: &mut Checker) -> Option<ModelSettings> {
    if matches!(spot.node.value, Value::Null) {
        return Some(ModelSettings {
            id: name.clone(),
            name,
            efforts: Vec::new(),
        });
    }
    let fields = checker.fields(spot, "a model", &["id", "efforts"])?;
    let id = optional_text(&fields, "id", checker);
    let efforts = fields
        .optional("efforts")
        .and_then(|spot| checker.texts(&spot))
        .unwrap_or_default();
    Some(ModelSettings {
        id: id.unwrap_or_else(|| name.clone()),
        efforts: efforts.into_iter().map(|(_, effort)| effort.to_owned()).collect(),
        name,
    })
}

fn placement(spot: Spot<'_>, checker: &mut Checker) -> Option<Placement> {
    let fields = checker.fields(spot, "a runtime", &["type", "name", "workspacePath", "lifecycle"])?;
    let kinds = [
        ("local", RuntimeKind::Local),
        ("container", RuntimeKind::Container),
        ("sbx", RuntimeKind::Sbx),
    ];
    let kind = choice(&fields, "type", checker, &kinds);
    let name = match kind {
        RuntimeKind::Local => optional_text(&fields, "name", checker),
        RuntimeKind::Container | RuntimeKind::Sbx => required_text(&fields, "name", checker),
    };
    let workspace_path = optional_text(&fields, "workspacePath", checker);
    if let Some(path) = &workspace_path
        && !path.starts_with('/')
        && let Some(spot) = fields.optional("workspacePath")
    {
        let message = format!("`workspacePath` must be a path from `/`, not `{}`", brief(path));
        checker.fault_at(&spot, FaultCode::BadValue, message);
    }
    let placement = Placement {
        kind,
        name,
        workspace_path: workspace_path.map(PathBuf::from),
        lifecycle: fields
            .optional("lifecycle")
            .and_then(|spot| lifecycle(spot, checker))
            .unwrap_or_default(),
    };
    Some(placement)
}

fn agent_limits(spot: Spot<'_>, checker: &mut Checker) -> Option<AgentLimits> {
    let fields = checker.fields(
        spot,
        "the limits of an agent",
        &["openFiles", "processes", "memory"],
    )?;
    Some(AgentLimits {
        open_files: fields.optional("openFiles").and_then(|spot| checker.limit(&spot)),
        processes: fields.optional("processes").and_then(|spot| checker.limit(&spot)),
        memory: fields.optional("memory").and_then(|spot| size(&spot, checker)),
    })
}

/// A size in bytes: a number, or a text with a unit.
fn size(spot: &Spot<'_>, checker: &mut Checker) -> Option<u64> {
    let written = if let Value::Number(written) = &spot.node.value {
        written
    } else {
        checker.text(spot)?
    };
    parse_size(written)
        .inspect_err(|error| {
            let message = format!("{}: {error}", spot.label());
            checker.fault_at(spot, FaultCode::BadLimit, message);
        })
        .ok()
}

fn lifecycle(spot: Spot<'_>, checker: &mut Checker) -> Option<Lifecycle> {
    let fields = checker.fields(spot, "a lifecycle", &["create", "stop", "remove"])?;
    Some(Lifecycle {
        create: optional_text(&fields, "create", checker),
        stop: optional_text(&fields, "stop", checker),
        remove: optional_text(&fields, "remove", checker),
    })
}

fn limits(spot: Spot<'_>, checker: &mut Checker) -> Option<ProgramLimits> {
    let fields = checker.fields(
        spot,
        "`limits`",
        &[
            "maxRunningAgents",
            "stopIdleAgentsAfter",
            "silentAfter",
            "parallel",
            "budget",
            "failFast",
        ],
    )?;
    Some(ProgramLimits {
        max_running_agents: fields
            .optional("maxRunningAgents")
            .and_then(|spot| checker.limit(&spot)),
        stop_idle_agents_after: fields
            .optional("stopIdleAgentsAfter")
            .and_then(|spot| checker.duration(&spot)),
        silent_after: fields
            .optional("silentAfter")
            .and_then(|spot| checker.duration(&spot)),
        parallel: fields.optional("parallel").and_then(|spot| checker.limit(&spot)),
        budget: fields
            .optional("budget")
            .and_then(|spot| budget::read(spot, checker)),
        fail_fast: fields.optional("failFast").and_then(|spot| checker.flag(&spot)),
    })
}

fn waits(spot: Spot<'_>, checker: &mut Checker) -> Option<WaitSettings> {
    let known = ["first", "longest", "attempts", "tryAccountEvery"];
    let fields = checker.fields(spot, "`waits`", &known)?;
    let mut span = |name| fields.optional(name).and_then(|spot| checker.duration(&spot));
    let (first, longest, try_account_every) = (span("first"), span("longest"), span("tryAccountEvery"));
    if let (Some(first), Some(longest), Some(spot)) = (first, longest, fields.optional("longest"))
        && longest < first
    {
        let message = format!("{} must not be shorter than `first`", spot.label());
        checker.fault_at(&spot, FaultCode::BadLimit, message);
    }
    Some(WaitSettings {
        first,
        longest,
        attempts: fields.optional("attempts").and_then(|spot| checker.limit(&spot)),
        try_account_every,
    })
}

fn prices(fields: &Fields<'_>, checker: &mut Checker) -> BTreeMap<String, Price> {
    entries(fields, "prices", checker)
        .into_iter()
        .filter_map(|(model, spot)| price(spot, checker).map(|price| (model, price)))
        .collect()
}

fn price(spot: Spot<'_>, checker: &mut Checker) -> Option<Price> {
    let known = ["input", "output", "cacheRead", "cacheWrite", "currency", "asOf"];
    let fields = checker.fields(spot, "a price", &known)?;
    let currency = fields
        .optional("currency")
        .and_then(|spot| currency(&spot, checker));
    Some(Price {
        input: amount(&fields, "input", checker),
        output: amount(&fields, "output", checker),
        cache_read: amount(&fields, "cacheRead", checker),
        cache_write: amount(&fields, "cacheWrite", checker),
        currency: currency.unwrap_or_else(|| "USD".to_owned()),
        as_of: optional_text(&fields, "asOf", checker),
    })
}

/// An amount of money: finite and not negative.
fn amount(fields: &Fields<'_>, name: &str, checker: &mut Checker) -> Option<f64> {
    let spot = fields.optional(name)?;
    let written = checker.number(&spot)?;
    let amount = written
        .parse()
        .ok()
        .filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    if amount.is_none() {
        let message = format!("`{name}` must be a price, zero or more, not {}", brief(written));
        checker.fault_at(&spot, FaultCode::BadLimit, message);
    }
    amount
}

/// Three capital letters (ISO 4217).
fn currency(spot: &Spot<'_>, checker: &mut Checker) -> Option<String> {
    let code = checker.text(spot)?;
    if code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase()) {
        return Some(code.to_owned());
    }
    let message = format!(
        "`currency` must be a code of three capital letters as `EUR`, not `{}`",
        brief(code)
    );
    checker.fault_at(spot, FaultCode::BadValue, message);
    None
}

fn relais(spot: Spot<'_>, checker: &mut Checker) -> Option<RelaisAddress> {
    let fields = checker.fields(spot, "a gateway", &["name", "url", "tokenFile", "capacity"])?;
    let name = fields
        .required("name", checker)
        .and_then(|spot| self::name(&spot, checker));
    let url = required_text(&fields, "url", checker);
    let token_file = optional_text(&fields, "tokenFile", checker).map(PathBuf::from);
    let capacity = fields.optional("capacity").and_then(|spot| checker.limit(&spot));
    Some(RelaisAddress {
        name: name?,
        url: url?,
        token_file,
        capacity,
    })
}

fn channel(spot: Spot<'_>, agents: &[AgentSettings], checker: &mut Checker) -> Option<SettingsChannel> {
    let fields = checker.fields(spot, "a channel", &["name", "description", "members"])?;
    let name = required_text(&fields, "name", checker);
    let description = optional_text(&fields, "description", checker);
    let members = fields
        .optional("members")
        .and_then(|spot| checker.texts(&spot))
        .unwrap_or_default();
    for (spot, member) in &members {
        if !agents.iter().any(|agent| agent.name == *member) {
            let near = checker.near(member, agents.iter().map(|agent| agent.name.as_str()));
            let message = format!("no agent of the settings is called `{}`", brief(member));
            checker.fault(
                FaultCode::UnknownAgent,
                message,
                spot.path.clone(),
                Some(spot.node.place),
                near,
            );
        }
    }
    let members = members.into_iter().map(|(_, member)| member.to_owned()).collect();
    Some(SettingsChannel {
        name: name?,
        description,
        members,
    })
}

pub(super) fn required_text(fields: &Fields<'_>, name: &str, checker: &mut Checker) -> Option<String> {
    let spot = fields.required(name, checker)?;
    checker.filled_text(&spot, FaultCode::BadValue).map(str::to_owned)
}

fn optional_text(fields: &Fields<'_>, name: &str, checker: &mut Checker) -> Option<String> {
    let spot = fields.optional(name)?;
    checker.filled_text(&spot, FaultCode::BadValue).map(str::to_owned)
}

pub(super) fn choice<T: Copy + Default>(
    fields: &Fields<'_>,
    name: &str,
    checker: &mut Checker,
    words: &[(&str, T)],
) -> T {
    fields
        .optional(name)
        .and_then(|spot| checker.choice(&spot, words))
        .unwrap_or_default()
}

/// The entries of a list that are right.
pub(super) fn items<'a, T>(
    fields: &Fields<'a>,
    name: &str,
    checker: &mut Checker,
    mut item: impl FnMut(Spot<'a>, &mut Checker) -> Option<T>,
) -> Vec<T> {
    let list = fields
        .optional(name)
        .and_then(|spot| checker.list(&spot))
        .unwrap_or_default();
    list.into_iter().filter_map(|spot| item(spot, checker)).collect()
}

/// The entries of a map whose keys a person chooses.
pub(super) fn entries<'a>(fields: &Fields<'a>, name: &str, checker: &mut Checker) -> Vec<(String, Spot<'a>)> {
    let Some(spot) = fields.optional(name) else {
        return Vec::new();
    };
    let entries = checker.entries(&spot).unwrap_or_default();
    entries
        .iter()
        .map(|(key, node)| {
            (
                key.name.clone(),
                Spot {
                    node,
                    path: field_path(&spot.path, &key.name),
                },
            )
        })
        .collect()
}

#[cfg(test)]
mod tests;

//! The form that a plan must take, as coordinators are told it (W19, W20).

use std::fmt::Write as _;

use super::rules::{pairs, word};
use crate::task::{AgentDefinition, DelegatedField, SubAgentRules};

const BEFORE_EXAMPLE: &str = "\
Do none of the work yet. Divide it: list the units of work of your mission, and give them to the smallest useful \
number of sub-agents. Each unit goes to exactly one sub-agent. Look into what you need to know for that, and change \
nothing. The sub-agents are launched when your plan is accepted; when they have ended you get their reports, in this \
conversation, and write the report of the whole.

A sub-agent gets the context and the way of working of this task, and its part of the plan. It does not get this \
conversation, and what you read or found is unknown to it: say in the plan whatever it has to know.

End your answer with your plan: one JSON object in exactly one fenced `json` block, with nothing after it. For example:

";

/// Every field that can be delegated, with its example and what is said of it.
const DELEGABLE: &[(DelegatedField, &str, &str)] = &[
    (
        DelegatedField::Mission,
        "\"What it has to do and must know\"",
        "required: what it has to do. Its units with their titles are added to it",
    ),
    (
        DelegatedField::Resources,
        "[\"path/to/file\"]",
        "a list of files, folders, addresses or texts that it starts from",
    ),
    (
        DelegatedField::Deliverable,
        "\"What it must hand over\"",
        "a text; or an object with a `text` and `files`, which must then exist in its folder and not be empty",
    ),
    (DelegatedField::Model, "", "the model that it works with"),
    (DelegatedField::Effort, "", "the effort that it works with"),
];

/// Writes the form that a plan of a dynamic agent must take, with a JSON example that it would accept.
pub fn write_form(text: &mut String, agent: &AgentDefinition) {
    let Some(rules) = &agent.sub_agents else {
        return;
    };
    text.push_str(BEFORE_EXAMPLE);
    example(text, rules);
    text.push_str("\n- `units` (required): each with an `id` and, if it helps, a `title`.\n");
    let max = rules.max.get();
    // Writing to a text does not fail, here and below.
    let _ = writeln!(
        text,
        "- `sub_agents` (required): at most {max}. Each has an `id` and at least one of the `units`, by their ids."
    );
    text.push_str(
        "- `after`: the ids of sub-agents that must report before this one starts; it gets their reports. Leave it out \
         where nothing has to wait: sub-agents that wait for nobody work at the same time.\n",
    );
    for (field, _, about) in DELEGABLE {
        if rules.delegate.contains(field) {
            let _ = writeln!(text, "- `{}`: {about}.", word(*field));
        }
    }
    left_out(text, rules);
    models(text, agent, rules);
    text.push_str(
        "- `why`: why you divide the work so.\n\
         - An id takes 1 to 64 of a-z, 0-9, `_` and `-`, the first a letter or digit. No two units have the same, and no \
         two sub-agents.\n\
         - No other field is allowed. Folders and permissions are those of this run for every sub-agent, and no plan \
         changes them.\n",
    );
}

/// An example with two units: for one sub-agent, or for two where two are allowed.
fn example(text: &mut String, rules: &SubAgentRules) {
    text.push_str(
        "```json\n{\n  \"units\": [\n    { \"id\": \"u1\", \"title\": \"The first thing to do\" },\n    \
         { \"id\": \"u2\", \"title\": \"The second thing to do\" }\n  ],\n  \"sub_agents\": [\n",
    );
    if rules.max.get() < 2 {
        entry(text, rules, "only", "[\"u1\", \"u2\"]", None);
    } else {
        entry(text, rules, "first", "[\"u1\"]", None);
        text.push_str(",\n");
        entry(text, rules, "second", "[\"u2\"]", Some("[\"first\"]"));
    }
    text.push_str("\n  ],\n  \"why\": \"Why the work is divided so\"\n}\n```\n");
}

fn entry(text: &mut String, rules: &SubAgentRules, id: &str, units: &str, after: Option<&str>) {
    let _ = write!(text, "    {{ \"id\": \"{id}\", \"units\": {units}");
    for (field, value, _) in DELEGABLE {
        if rules.delegate.contains(field) && !value.is_empty() {
            let _ = write!(text, ", \"{}\": {value}", word(*field));
        }
    }
    let pair = rules
        .allow
        .iter()
        .find_map(|pair| Some((&pair.model, pair.efforts.first()?)));
    let both = [DelegatedField::Model, DelegatedField::Effort]
        .iter()
        .all(|field| rules.delegate.contains(field));
    if let (Some((model, effort)), true) = (pair, both) {
        let _ = write!(
            text,
            ", \"model\": {}, \"effort\": {}",
            json_text(model),
            json_text(effort)
        );
    }
    if let Some(after) = after {
        let _ = write!(text, ", \"after\": {after}");
    }
    text.push_str(" }");
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Says what becomes of the fields that the plan does not settle.
fn left_out(text: &mut String, rules: &SubAgentRules) {
    let names = |delegated: bool| {
        let fields = DELEGABLE.iter().map(|(field, ..)| *field);
        let named: Vec<String> = fields
            .filter(|field| rules.delegate.contains(field) == delegated)
            .filter(|field| !(delegated && *field == DelegatedField::Mission))
            .map(|field| format!("`{}`", word(field)))
            .collect();
        named.join(", ")
    };
    let (may, may_not) = (names(true), names(false));
    if !may.is_empty() {
        let _ = writeln!(text, "- Of these you may leave out, and yours is taken: {may}.");
    }
    if !may_not.is_empty() {
        let _ = writeln!(
            text,
            "- These are not yours to write, a plan that has them is refused, and yours are taken: {may_not}."
        );
    }
}

fn models(text: &mut String, agent: &AgentDefinition, rules: &SubAgentRules) {
    let _ = writeln!(
        text,
        "- A sub-agent's model and effort must go together: {}. Yours are `{}` with `{}`.",
        pairs(rules),
        agent.model,
        agent.effort
    );
}

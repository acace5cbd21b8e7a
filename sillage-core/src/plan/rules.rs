//! What a dynamic agent lets its coordinator do (W7).

use crate::task::{AgentDefinition, DelegatedField, SubAgentRules};

/// Whether no plan for this agent can ever be accepted: none of the allowed pairs of model and effort can come about
/// from what is delegated and what is the agent's own. Never of an agent that is not dynamic.
#[must_use]
pub fn rules_out_every_plan(agent: &AgentDefinition) -> bool {
    let Some(rules) = &agent.sub_agents else {
        return false;
    };
    let free = |field: DelegatedField| rules.delegate.contains(&field);
    let (any_model, any_effort) = (free(DelegatedField::Model), free(DelegatedField::Effort));
    !rules.allow.iter().any(|pair| {
        let efforts = &pair.efforts;
        (any_model || pair.model == agent.model)
            && (if any_effort {
                !efforts.is_empty()
            } else {
                efforts.contains(&agent.effort)
            })
    })
}

/// Whether sub-agents may use these together.
pub(super) fn allowed(rules: &SubAgentRules, model: &str, effort: &str) -> bool {
    rules
        .allow
        .iter()
        .any(|pair| pair.model == model && pair.efforts.iter().any(|allowed| allowed == effort))
}

/// The allowed pairs in words.
pub(super) fn pairs(rules: &SubAgentRules) -> String {
    let pairs: Vec<String> = rules
        .allow
        .iter()
        .map(|pair| format!("`{}` with {}", pair.model, quoted(&pair.efforts)))
        .collect();
    pairs.join("; ")
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(" or ")
}

/// The field's name in a plan.
pub(super) const fn word(field: DelegatedField) -> &'static str {
    match field {
        DelegatedField::Mission => "mission",
        DelegatedField::Resources => "resources",
        DelegatedField::Deliverable => "deliverable",
        DelegatedField::Model => "model",
        DelegatedField::Effort => "effort",
    }
}

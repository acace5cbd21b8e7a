//! Models and efforts that a task names, against those on offer (A12).

use crate::document::Place;
use crate::document::check::{Checker, brief, field_path};
use crate::fault::{Fault, FaultCode};
use crate::near::nearest;
use crate::ports::runtime::ModelOffer;

use super::{AgentDefinition, Task};

/// Why a task's model stands for no offer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownModel {
    /// No agent offers it.
    #[error("no agent offers the model `{model}`")]
    NotOffered {
        /// The model as the task names it.
        model: String,
        /// What was most likely meant.
        near: Option<String>,
    },
    /// Several agents do.
    #[error("several agents offer the model `{model}`, write {}", .choices.join(" or "))]
    Ambiguous {
        /// The model as the task names it.
        model: String,
        /// The forms `agent/model` that tell them apart, in the order of the settings.
        choices: Vec<String>,
    },
}

/// The offer that a task's model stands for: `model`, or `agent/model` where several agents offer it.
///
/// # Errors
/// When no agent offers it, or several do and the task does not say which.
pub fn resolve_model<'o>(model: &str, offers: &'o [ModelOffer]) -> Result<&'o ModelOffer, UnknownModel> {
    if let Some(offer) = offers.iter().find(|offer| is_full_name(model, offer)) {
        return Ok(offer);
    }
    let same: Vec<&ModelOffer> = offers.iter().filter(|offer| offer.model == model).collect();
    match same.as_slice() {
        [offer] => Ok(offer),
        [] => Err(UnknownModel::NotOffered {
            model: brief(model),
            near: near_model(model, offers),
        }),
        [_, _, ..] => Err(UnknownModel::Ambiguous {
            model: brief(model),
            choices: same.iter().map(|offer| full_name(offer)).collect(),
        }),
    }
}

/// What is wrong with the models and efforts of a task that was read before, whose text is not at hand.
/// Faults have paths, and no lines.
#[must_use]
pub fn check_models(task: &Task, offers: &[ModelOffer]) -> Vec<Fault> {
    let mut checker = Checker::default();
    let agents = task.agents.iter().enumerate();
    let mut wishes: Vec<Wish> = agents
        .flat_map(|(index, agent)| wishes_of(index, agent))
        .collect();
    wishes.extend(task.limits.models.keys().map(|model| Wish::limit(model, None)));
    check_wishes(&mut checker, &wishes, offers);
    checker.finish(()).err().unwrap_or_default()
}

/// A model that a task names, with the efforts it names for it.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) model: Named,
    pub(super) efforts: Vec<Named>,
    /// Whether one agent has to be found for it; a limit may hold for the models of several.
    pub(super) for_one: bool,
}

/// A name and where it stands.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) place: Option<Place>,
}

impl Wish {
    pub(super) fn limit(model: &str, place: Option<Place>) -> Wish {
        let path = field_path("/limits/models", model);
        Wish {
            model: Named {
                name: model.to_owned(),
                path,
                place,
            },
            efforts: Vec::new(),
            for_one: false,
        }
    }
}

fn wishes_of(index: usize, agent: &AgentDefinition) -> Vec<Wish> {
    let named = |name: &str, path: String| Named {
        name: name.to_owned(),
        path,
        place: None,
    };
    let mut wishes = vec![Wish {
        model: named(&agent.model, format!("/agents/{index}/model")),
        efforts: vec![named(&agent.effort, format!("/agents/{index}/effort"))],
        for_one: true,
    }];
    for (at, pair) in agent.sub_agents.iter().flat_map(|rules| &rules.allow).enumerate() {
        let path = format!("/agents/{index}/sub_agents/allow/{at}");
        let efforts = pair.efforts.iter().enumerate();
        wishes.push(Wish {
            model: named(&pair.model, format!("{path}/model")),
            efforts: efforts
                .map(|(nth, effort)| named(effort, format!("{path}/efforts/{nth}")))
                .collect(),
            for_one: true,
        });
    }
    wishes
}

pub(super) fn check_wishes(checker: &mut Checker, wishes: &[Wish], offers: &[ModelOffer]) {
    for wish in wishes {
        match resolve_model(&wish.model.name, offers) {
            Ok(offer) => check_efforts(checker, &wish.efforts, offer),
            Err(UnknownModel::Ambiguous { .. }) if !wish.for_one => {}
            Err(error) => {
                let near = match &error {
                    UnknownModel::NotOffered { near, .. } => near.clone(),
                    UnknownModel::Ambiguous { .. } => None,
                };
                let Named { path, place, .. } = &wish.model;
                checker.fault(FaultCode::UnknownModel, error.to_string(), path, *place, near);
            }
        }
    }
}

fn check_efforts(checker: &mut Checker, efforts: &[Named], offer: &ModelOffer) {
    for Named { name, path, place } in efforts {
        if offer.efforts.is_empty() || offer.efforts.contains(name) {
            continue;
        }
        let near = checker.near(name, offer.efforts.iter().map(String::as_str));
        let message = format!(
            "the model `{}` has no effort `{}`, only {}",
            offer.model,
            brief(name),
            offer.efforts.join(", ")
        );
        checker.fault(FaultCode::UnknownEffort, message, path, *place, near);
    }
}

fn near_model(model: &str, offers: &[ModelOffer]) -> Option<String> {
    if model.contains('/') {
        let full: Vec<String> = offers.iter().map(full_name).collect();
        return nearest(model, full.iter().map(String::as_str)).map(str::to_owned);
    }
    nearest(model, offers.iter().map(|offer| offer.model.as_str())).map(str::to_owned)
}

fn full_name(offer: &ModelOffer) -> String {
    format!("{}/{}", offer.agent, offer.model)
}

fn is_full_name(model: &str, offer: &ModelOffer) -> bool {
    let rest = model
        .strip_prefix(offer.agent.as_str())
        .and_then(|rest| rest.strip_prefix('/'));
    rest == Some(offer.model.as_str())
}

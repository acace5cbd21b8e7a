//! Models and efforts that a task names, against those on offer (A12).

use crate::document::Place;
use crate::document::check::{Checker, brief, field_path};
use crate::fault::{Fault, FaultCode, nearest};
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
        return nearest(model, full.iter().map(String::as_str));
    }
    nearest(model, offers.iter().map(|offer| offer.model.as_str()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Format;
    use crate::task;

    fn offer(agent: &str, model: &str, efforts: &[&str]) -> ModelOffer {
        ModelOffer {
            agent: agent.to_owned(),
            model: model.to_owned(),
            efforts: efforts.iter().map(|effort| (*effort).to_owned()).collect(),
            account: agent.to_owned(),
        }
    }

    fn offers() -> Vec<ModelOffer> {
        vec![
            offer("claude", "opus", &["low", "high"]),
            offer("claude", "sonnet", &["low", "medium"]),
            offer("other", "opus", &[]),
            offer("other", "open/weights", &[]),
        ]
    }

    #[test]
    fn a12_a_model_is_found_by_its_name_or_with_its_agent() {
        let offers = offers();
        let agent = |model| resolve_model(model, &offers).map(|offer| offer.agent.as_str());
        assert_eq!(agent("sonnet"), Ok("claude"));
        assert_eq!(agent("other/opus"), Ok("other"));
        assert_eq!(agent("open/weights"), Ok("other"));
        assert_eq!(agent("other/open/weights"), Ok("other"));
    }

    #[test]
    fn a12_what_nobody_or_more_than_one_offers_is_told_with_what_to_write() {
        let offers = offers();
        let choices = vec!["claude/opus".to_owned(), "other/opus".to_owned()];
        assert_eq!(
            resolve_model("opus", &offers),
            Err(UnknownModel::Ambiguous {
                model: "opus".to_owned(),
                choices
            })
        );
        let near = |model| match resolve_model(model, &offers) {
            Err(UnknownModel::NotOffered { near, .. }) => near,
            found => panic!("{found:?}"),
        };
        assert_eq!(near("sonet").as_deref(), Some("sonnet"));
        assert_eq!(near("claude/sonet").as_deref(), Some("claude/sonnet"));
        assert_eq!(near("gpt"), None);
    }

    const TASK: &str = "task: t
limits: {models: {opus: 1, opsu: 1}}
agents:
  - {id: a, mission: m, model: sonet, effort: low}
  - {id: b, mission: m, model: sonnet, effort: hihg}
  - {id: c, mission: m, model: opus, effort: high}
  - id: d
    mission: m
    model: other/opus
    effort: any at all
    kind: dynamic
    sub_agents: {max: 1, delegate: [model], allow: [{model: claude/opus, efforts: [low, hihg]}, {model: x, efforts: [y]}]}
";

    #[test]
    fn w11_unknown_models_and_efforts_are_told_among_all_other_faults() {
        use FaultCode::{BadId, UnknownEffort, UnknownModel};
        let offers = offers();
        let tell = |text: &str| -> Vec<(FaultCode, u32, String, Option<String>)> {
            let faults = task::read(text, Format::Either, Some(&offers)).unwrap_err();
            faults
                .into_iter()
                .map(|f| (f.code, f.line.unwrap(), f.path, f.suggestion))
                .collect()
        };
        let expected = [
            (UnknownModel, 2, "/limits/models/opsu", Some("opus")),
            (UnknownModel, 4, "/agents/0/model", Some("sonnet")),
            (UnknownEffort, 5, "/agents/1/effort", None),
            (UnknownModel, 6, "/agents/2/model", None),
            (
                UnknownEffort,
                12,
                "/agents/3/sub_agents/allow/0/efforts/1",
                Some("high"),
            ),
            (UnknownModel, 12, "/agents/3/sub_agents/allow/1/model", None),
        ];
        let expected =
            expected.map(|(code, line, path, near)| (code, line, path.to_owned(), near.map(str::to_owned)));
        assert_eq!(tell(TASK), expected);
        assert_eq!(tell(&TASK.replace("id: a", "id: A"))[1].0, BadId);
    }

    #[test]
    fn a12_a_task_read_before_has_the_same_faults_without_lines() {
        let task = task::read(TASK, Format::Either, None).unwrap();
        let paths = |mut faults: Vec<Fault>| {
            faults.sort_by(|a, b| a.path.cmp(&b.path));
            faults
                .into_iter()
                .map(|f| (f.code, f.path, f.message, f.suggestion))
                .collect::<Vec<_>>()
        };
        let found = check_models(&task, &offers());
        assert!(found.iter().all(|fault| fault.line.is_none()));
        assert_eq!(
            paths(found),
            paths(task::read(TASK, Format::Either, Some(&offers())).unwrap_err())
        );
        assert!(check_models(&Task::default(), &[]).is_empty());
    }
}

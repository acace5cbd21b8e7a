//! Plans that the coordinators of a simulated world write.

use sillage_core::id::{ClientSessionId, StepIndex};
use sillage_core::run::MessagePurpose;
use sillage_core::task::DelegatedField;

use super::dice::{Dice, mixed};
use super::faults::Fault;
use super::sessions::Given;
use super::story::GROUP;
use super::tasks::MODELS;
use super::world::World;

/// A sub-agent: its name, its model, those that it waits for.
struct Wanted {
    id: String,
    model: Option<&'static str>,
    after: Vec<String>,
}

impl World {
    /// Whether the session was last asked for a plan.
    pub(super) fn owes_plan(&self, id: ClientSessionId) -> bool {
        let received = self
            .sessions
            .get(&id)
            .map_or(&[][..], |session| &session.received);
        let purposes = received
            .iter()
            .rev()
            .map(|received| self.judge.purpose(received.id));
        let asked = purposes
            .into_iter()
            .find(|purpose| *purpose != Some(MessagePurpose::Continuation));
        matches!(
            asked,
            Some(Some(MessagePurpose::Plan | MessagePurpose::PlanCorrection))
        )
    }

    /// A plan, right or against the rules. A step's right plan is the same whatever happened before, so that stories can
    /// be compared.
    pub(super) fn write_plan(&mut self, id: ClientSessionId, step: StepIndex) -> Given {
        let wrong = self.has_wrong_plan(id);
        let which = self.dice.below(Fault::Plans as usize, 8);
        let Some(agent) = self.judge.agent(step) else {
            return Given::default();
        };
        let Some(rules) = agent.sub_agents.clone() else {
            return Given::default();
        };
        let name = agent.id.clone();
        let times = self.judge.plans_of(step);
        let mut dice = Dice::new(self.story.seed ^ mixed(u64::from(step.0) * 64 + u64::from(times)));
        let count = dice.between(GROUP, 1, u64::from(rules.max.get()));
        let models = rules.delegate.contains(&DelegatedField::Model);
        let mut wanted: Vec<Wanted> = Vec::new();
        for number in 0..count {
            let earlier = wanted.iter().map(|wanted| wanted.id.clone());
            let after = earlier.filter(|_| dice.chance(GROUP, 300)).collect();
            let model = MODELS[usize::try_from(dice.below(GROUP, 3)).unwrap_or(0)];
            wanted.push(Wanted {
                id: format!("{name}-{times}-{number}"),
                model: models.then_some(model),
                after,
            });
        }
        if wrong && which == 7 {
            // As many as are allowed, and one more.
            for number in count..=u64::from(rules.max.get()) {
                let (id, model) = (format!("{name}-{times}-{number}"), None);
                wanted.push(Wanted {
                    id,
                    model,
                    after: Vec::new(),
                });
            }
        }
        let plan = wanted
            .iter()
            .map(|wanted| (wanted.id.clone(), wanted.after.clone()))
            .collect();
        let mut text = written(&wanted, None);
        if wrong {
            text = match which {
                0 => "I divided it.".to_owned(),
                1 => text.replacen("\"u0\", \"title\"", "\"u9\", \"title\"", 1),
                2 => text.replacen("\"units\": [\"u0\"]", "\"units\": []", 1),
                3 => text.replacen("\"mission\"", "\"folders\": [\"/\"], \"mission\"", 1),
                4 => text.replacen("\"after\": [", "\"after\": [\"nobody\"", 1),
                5 => written(&wanted, wanted.first().map(|first| first.id.as_str())),
                7 => text,
                _ => text.replace("}\n", ""),
            };
        }
        Given {
            text,
            plan: (!wrong).then_some(plan),
            ..Given::default()
        }
    }

    fn has_wrong_plan(&mut self, id: ClientSessionId) -> bool {
        let more = match self.strikes_at(Fault::Plans, 3 * self.story.per_mille) {
            true => self.dice.between(Fault::Plans as usize, 1, 3),
            false => 0,
        };
        let calm = self.now() >= self.story.calm;
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        if session.wrong_plans == 0 {
            session.wrong_plans = more;
        }
        let wrong = session.wrong_plans > 0 && !calm;
        session.wrong_plans = session.wrong_plans.saturating_sub(1);
        wrong
    }
}

/// The plan as an answer. The first sub-agent waits also for `first_after`.
fn written(wanted: &[Wanted], first_after: Option<&str>) -> String {
    let units: Vec<String> = (0..wanted.len())
        .map(|number| format!("{{\"id\": \"u{number}\", \"title\": \"Unit {number}\"}}"))
        .collect();
    let subs = wanted.iter().enumerate().map(|(number, wanted)| {
        let after = wanted.after.iter().map(String::as_str);
        let after: Vec<String> = after
            .chain(first_after.filter(|_| number == 0))
            .map(|id| format!("\"{id}\""))
            .collect();
        let model = match wanted.model {
            Some(model) => format!(", \"model\": \"{model}\", \"effort\": \"low\""),
            None => String::new(),
        };
        format!(
            "{{\"id\": \"{}\", \"units\": [\"u{number}\"], \"mission\": \"Do it.\"{model}, \"after\": [{}]}}",
            wanted.id,
            after.join(", ")
        )
    });
    let subs: Vec<String> = subs.collect();
    format!(
        "```json\n{{\"units\": [{}], \"sub_agents\": [{}]}}\n```\n",
        units.join(", "),
        subs.join(", ")
    )
}

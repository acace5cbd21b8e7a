//! What holds of every answer, whatever the text.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use sillage_core::document::{self, Format};
use sillage_core::fault::Fault;
use sillage_core::graph::Graph;
use sillage_core::limit_text;
use sillage_core::plan::{self, Plan};
use sillage_core::report::{self, Expected};
use sillage_core::task::{self, AgentDefinition, AgentKind, Task};
use sillage_core::time::{Timestamp, Zone};

use crate::corpus;
use crate::damage::damaged;

/// Faults are there, not too many, in the order of the text, and where they say.
fn check_faults(text: &str, faults: &[Fault]) -> Result<(), TestCaseError> {
    prop_assert!(!faults.is_empty(), "a refusal without a reason");
    prop_assert!(faults.len() <= 10_000);
    // What is missing at the end may be told on the line after it, and YAML has more line breaks than one.
    let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() + 1;
    let longest = text
        .split('\n')
        .map(|line| line.chars().count())
        .max()
        .unwrap_or_default();
    for fault in faults {
        prop_assert!(!fault.message.is_empty());
        prop_assert!(fault.path.is_empty() || fault.path.starts_with('/'), "{fault:?}");
        if let (Some(line), Some(column)) = (fault.line, fault.column) {
            prop_assert!((1..=lines).contains(&(line as usize)), "{fault:?}");
            prop_assert!((1..=longest + 1).contains(&(column as usize)), "{fault:?}");
        }
    }
    Ok(())
}

fn check_task(text: &str) -> Result<Option<Task>, TestCaseError> {
    let task = match task::read(text, Format::Either, None) {
        Err(faults) => {
            check_faults(text, &faults)?;
            return Ok(None);
        }
        Ok(task) => task,
    };
    prop_assert!(!task.agents.is_empty());
    prop_assert!(Graph::of(&task).is_ok(), "a cycle was let through");
    for agent in &task.agents {
        prop_assert!(!agent.mission.trim().is_empty());
        prop_assert_eq!(agent.sub_agents.is_some(), agent.kind == AgentKind::Dynamic);
    }
    let stored = serde_json::to_string(&task).unwrap();
    prop_assert_eq!(&serde_json::from_str::<Task>(&stored).unwrap(), &task);
    Ok(Some(task))
}

fn check_report(answer: &str, cut: bool) -> Result<(), TestCaseError> {
    let report = match report::read(answer, &Expected::default(), cut) {
        Err(faults) => {
            let returned = report::correction(&faults, 1, &Expected::default());
            prop_assert!(returned.len() < 64 * 1024, "{} bytes go back", returned.len());
            return check_faults(answer, &faults);
        }
        Ok(report) => report,
    };
    prop_assert!(report.summary.chars().count() <= report::MAX_SUMMARY);
    let written = serde_json::to_string(&report).unwrap();
    // Escapes may make it longer than it was, and only then too long.
    if written.chars().count() <= report::MAX_REPORT {
        prop_assert_eq!(report::read(&written, &Expected::default(), cut), Ok(report));
    }
    Ok(())
}

fn check_plan(answer: &str, agent: &AgentDefinition, cut: bool) -> Result<(), TestCaseError> {
    let plan = match plan::read(answer, agent, cut) {
        Err(faults) => {
            let returned = plan::correction(&faults, 1, agent);
            prop_assert!(returned.len() < 64 * 1024, "{} bytes go back", returned.len());
            return check_faults(answer, &faults);
        }
        Ok(plan) => plan,
    };
    let rules = agent.sub_agents.as_ref().unwrap();
    prop_assert!(plan.sub_agents.len() <= rules.max.get() as usize);
    let mut covered: BTreeMap<&str, usize> = plan.units.iter().map(|unit| (unit.id.as_str(), 0)).collect();
    prop_assert_eq!(covered.len(), plan.units.len(), "two units with one id");
    for sub_agent in &plan.sub_agents {
        prop_assert!(!sub_agent.units.is_empty() && !sub_agent.mission.trim().is_empty());
        for unit in &sub_agent.units {
            let times = covered.get_mut(unit.as_str());
            prop_assert!(times.is_some(), "an invented unit");
            *times.unwrap() += 1;
        }
        let allowed = rules
            .allow
            .iter()
            .any(|pair| pair.model == sub_agent.model && pair.efforts.contains(&sub_agent.effort));
        prop_assert!(allowed, "{} with {}", sub_agent.model, sub_agent.effort);
    }
    prop_assert!(covered.values().all(|times| *times == 1), "{covered:?}");
    let count = u32::try_from(plan.sub_agents.len()).unwrap();
    prop_assert!(
        Graph::new(count, &plan.after()).is_ok(),
        "a cycle was let through"
    );
    for sub_agent in plan.agents(agent) {
        prop_assert_eq!(sub_agent.kind, AgentKind::Deterministic);
        prop_assert!(sub_agent.sub_agents.is_none());
    }
    let stored = serde_json::to_string(&plan).unwrap();
    prop_assert_eq!(serde_json::from_str::<Plan>(&stored).unwrap(), plan);
    Ok(())
}

fn dynamic_agents() -> Vec<AgentDefinition> {
    let tasks = corpus::plan_tasks();
    let tasks = tasks
        .iter()
        .map(|task| task::read(task, Format::Json, None).unwrap());
    tasks
        .flat_map(|task| task.agents)
        .filter(|agent| agent.kind == AgentKind::Dynamic)
        .collect()
}

proptest! {
    #[test]
    fn w11_w12_any_task_file_has_an_answer(text in damaged(corpus::tasks())) {
        check_task(&text)?;
    }

    #[test]
    fn w12_json_is_read_the_same_whichever_format_is_promised(text in damaged(corpus::plan_tasks())) {
        let json = document::read(&text, Format::Json);
        if let Ok(root) = json {
            prop_assert_eq!(document::read(&text, Format::Either).map(|either| either.value), Ok(root.value));
        }
    }

    #[test]
    fn w16_w17_any_answer_has_a_report_or_faults(text in damaged(corpus::reports()), cut: bool) {
        check_report(&text, cut)?;
    }

    #[test]
    fn w20_w21_any_answer_has_a_plan_or_faults(
        text in damaged(corpus::plans()),
        agent in prop::sample::select(dynamic_agents()),
        cut: bool,
    ) {
        check_plan(&text, &agent, cut)?;
    }

    #[test]
    fn q2_no_limit_text_leads_to_the_past(
        text in damaged(corpus::limit_texts()),
        now in 0..4_000_000_000_000_i64,
        zone in prop::sample::select(vec!["UTC", "Europe/Paris", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia"]),
    ) {
        let (now, zone) = (Timestamp(now), Zone::named(zone).unwrap());
        let until = limit_text::until(&text, now, &zone);
        prop_assert!(until.is_none_or(|until| until >= now), "{:?} at {}", until, now);
        prop_assert_eq!(until, limit_text::until(&text, now, &zone), "the same words, time and zone");
    }

    #[test]
    fn w19_what_was_meant_for_another_reader_is_refused_in_good_order(
        text in damaged([corpus::tasks(), corpus::reports(), corpus::plans()].concat()),
        agent in prop::sample::select(dynamic_agents()),
    ) {
        check_task(&text)?;
        check_report(&text, false)?;
        check_plan(&text, &agent, false)?;
    }
}

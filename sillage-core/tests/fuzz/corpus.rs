//! The texts that damage begins with.

use serde_json::Value;

fn inputs(cases: &str) -> Vec<Value> {
    let cases: Vec<Value> = serde_json::from_str(cases).unwrap();
    cases.into_iter().map(|case| case["input"].clone()).collect()
}

fn texts(inputs: Vec<Value>) -> Vec<String> {
    let texts = inputs.into_iter().map(|input| input.as_str().unwrap().to_owned());
    // The very long ones try bounds, and would only make damage slow.
    texts.filter(|text| text.len() < 16_384).collect()
}

/// Task files.
pub(crate) fn tasks() -> Vec<String> {
    let mut tasks = texts(inputs(include_str!("../cases/tasks.json")));
    tasks.extend(texts(inputs(include_str!("../cases/more-tasks.json"))));
    tasks.extend(plan_tasks());
    tasks
}

/// Answers that end with a report.
pub(crate) fn reports() -> Vec<String> {
    texts(inputs(include_str!("../cases/reports.json")))
}

/// Answers that end with a plan.
pub(crate) fn plans() -> Vec<String> {
    let inputs = inputs(include_str!("../cases/plans.json"));
    texts(inputs.into_iter().map(|input| input["plan"].clone()).collect())
}

/// The tasks whose coordinators write plans.
pub(crate) fn plan_tasks() -> Vec<String> {
    let inputs = inputs(include_str!("../cases/plans.json"));
    let mut tasks: Vec<String> = inputs
        .into_iter()
        .map(|input| input["task"].to_string())
        .collect();
    tasks.dedup();
    tasks
}

/// What providers say of their limits.
pub(crate) fn limit_texts() -> Vec<String> {
    let mut cases = inputs(include_str!("../cases/limit-texts.json"));
    cases.extend(inputs(include_str!("../cases/more-limit-texts.json")));
    texts(cases.into_iter().map(|input| input["text"].clone()).collect())
}

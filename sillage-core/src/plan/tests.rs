mod schema;

use std::num::NonZeroU32;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::document::Format;
use crate::task::{self, AGENT_FIELDS, AllowedPair, DelegatedField, Deliverable, Resource, SubAgentRules};

const ALL: &[DelegatedField] = &[
    DelegatedField::Mission,
    DelegatedField::Resources,
    DelegatedField::Deliverable,
    DelegatedField::Model,
    DelegatedField::Effort,
];

/// A dynamic agent whose coordinator may write these fields.
fn agent(delegate: &[DelegatedField]) -> AgentDefinition {
    let pair = |model: &str, efforts: &[&str]| AllowedPair {
        model: model.to_owned(),
        efforts: efforts.iter().map(|effort| (*effort).to_owned()).collect(),
    };
    AgentDefinition {
        id: "build".to_owned(),
        mission: "Build all of it.".to_owned(),
        resources: vec![Resource("src".to_owned())],
        deliverable: Some(Deliverable {
            text: Some("A feature.".to_owned()),
            files: vec!["docs/feature.md".into()],
        }),
        model: "opus".to_owned(),
        effort: "high".to_owned(),
        kind: task::AgentKind::Dynamic,
        outputs: vec!["risks".to_owned()],
        sub_agents: Some(SubAgentRules {
            max: NonZeroU32::new(3).expect("not zero"),
            delegate: delegate.to_vec(),
            allow: vec![pair("sonnet", &["low", "medium"]), pair("opus", &["high"])],
        }),
        ..AgentDefinition::default()
    }
}

fn sub_agent(id: &str, units: &[&str]) -> Value {
    json!({ "id": id, "units": units, "mission": "Do it." })
}

fn plan(units: &[&str], sub_agents: Vec<Value>) -> Value {
    let units: Vec<Value> = units.iter().map(|id| json!({ "id": id, "title": id })).collect();
    json!({ "units": units, "sub_agents": sub_agents })
}

/// A right plan of one sub-agent with this field.
fn with(field: &str, value: Value) -> Value {
    let mut only = sub_agent("a", &["u1"]);
    only[field] = value;
    plan(&["u1"], vec![only])
}

fn code(fault: &Fault) -> String {
    let code = serde_json::to_value(fault.code).expect("a code");
    code.as_str().expect("a text").to_owned()
}

fn codes(faults: &[Fault]) -> Vec<String> {
    let mut codes: Vec<String> = faults.iter().map(code).collect();
    codes.sort();
    codes
}

fn faults_of(answer: &str, agent: &AgentDefinition) -> Vec<Fault> {
    read(answer, agent, false).err().unwrap_or_default()
}

#[track_caller]
fn expect(plan: &Value, expected: &[&str]) -> Vec<Fault> {
    let faults = faults_of(&plan.to_string(), &agent(ALL));
    assert_eq!(codes(&faults), expected, "{plan}: {faults:#?}");
    faults
}

#[test]
fn w19_w20_the_cases() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../../tests/cases/plans.json")).expect("JSON");
    assert!(cases.len() >= 18);
    for case in cases {
        let name = &case["name"];
        let task = task::read(&case["input"]["task"].to_string(), Format::Json, None).expect("a task");
        let id = case["input"]["agent"].as_str().expect("an id");
        let agent = task
            .agents
            .iter()
            .find(|agent| agent.id == id)
            .expect("it is there");
        let faults = faults_of(case["input"]["plan"].as_str().expect("an answer"), agent);
        let expected = case["expect"]["codes"].as_array().cloned().unwrap_or_default();
        assert_eq!(json!(codes(&faults)), json!(expected), "{name}: {faults:#?}");
        assert_eq!(case["expect"]["ok"], faults.is_empty(), "{name}");
    }
}

#[test]
fn w20_what_is_left_out_or_not_delegated_comes_from_the_dynamic_agent() {
    let plain = json!({ "units": [{ "id": "u1" }], "sub_agents": [{ "id": "a", "units": ["u1"] }] });
    let accepted = read(&plain.to_string(), &agent(&[]), false).expect("a plan");
    assert_eq!(accepted.units[0].title, "u1");
    let only = &accepted.sub_agents[0];
    assert_eq!(only.mission, "Build all of it.");
    assert_eq!(only.resources, [Resource("src".to_owned())]);
    assert_eq!((only.model.as_str(), only.effort.as_str()), ("opus", "high"));
    let words = Deliverable {
        text: Some("A feature.".to_owned()),
        files: vec![],
    };
    assert_eq!(
        only.deliverable,
        Some(words),
        "the files are asked of the group, once"
    );

    let mut nothing = plain.clone();
    nothing["sub_agents"][0] = json!({ "id": "a", "units": ["u1"], "mission": "Mine.", "resources": null,
        "deliverable": " ", "model": null, "effort": null, "after": null });
    let again = read(&nothing.to_string(), &agent(ALL), false).expect("a plan");
    assert_eq!(again.sub_agents[0].mission, "Mine.");
    assert_eq!(again.sub_agents[0].resources, only.resources);
    assert_eq!(again.sub_agents[0].deliverable, only.deliverable);
    assert_eq!(again.sub_agents[0].model, "opus");

    let mut own = plain;
    own["sub_agents"][0] = json!({ "id": "a", "units": ["u1"], "mission": "Mine.", "resources": [],
        "deliverable": { "files": ["x.md"] }, "model": "sonnet", "effort": "low" });
    let own = read(&own.to_string(), &agent(ALL), false).expect("a plan");
    assert!(own.sub_agents[0].resources.is_empty(), "an empty list is one");
    let deliverable = own.sub_agents[0].deliverable.as_ref().expect("given");
    assert_eq!(deliverable.files, [std::path::PathBuf::from("x.md")]);
    assert_eq!(own.sub_agents[0].model, "sonnet");
}

#[test]
fn w20_each_fault_has_its_code_and_nothing_more() {
    let two = |a: Value, b: Value| plan(&["u1", "u2"], vec![a, b]);
    let after = |id: &str, unit: &str, after: Value| {
        let mut sub_agent = sub_agent(id, &[unit]);
        sub_agent["after"] = after;
        sub_agent
    };
    let unit = |unit: Value| json!({ "units": [unit], "sub_agents": [sub_agent("a", &["u1"])] });
    let cases: Vec<(Value, &[&str])> = vec![
        // The whole.
        (json!({}), &["missing_field", "missing_field"]),
        (json!({ "units": [] }), &["missing_field", "no_units"]),
        (
            json!({ "units": null, "sub_agents": null }),
            &["bad_value", "bad_value"],
        ),
        (
            json!({ "units": {}, "sub_agents": "a" }),
            &["bad_value", "bad_value"],
        ),
        (
            json!({ "units": [], "sub_agents": [sub_agent("a", &["u1"])] }),
            &["no_units", "unknown_unit"],
        ),
        (plan(&["u1"], vec![]), &["unit_uncovered"]),
        (plan(&["u1", "u2"], vec![]), &["unit_uncovered", "unit_uncovered"]),
        (plan(&["u1"], vec![json!("a")]), &["bad_value"]),
        (plan(&["u1"], vec![json!(null)]), &["bad_value"]),
        (
            json!({ "units": [{ "id": "u1" }], "sub_agents": [sub_agent("a", &["u1"])], "why": 3 }),
            &["bad_value"],
        ),
        (
            json!({ "units": [{ "id": "u1" }], "sub_agents": [sub_agent("a", &["u1"])], "folders": {} }),
            &["unknown_field"],
        ),
        // Units.
        (unit(json!("u1")), &["bad_value"]),
        (unit(json!({ "title": "x" })), &["missing_field"]),
        (unit(json!({ "id": null })), &["bad_value"]),
        (unit(json!({ "id": 1 })), &["bad_value"]),
        (unit(json!({ "id": "u1", "title": 1 })), &["bad_value"]),
        (unit(json!({ "id": "u1", "mission": "x" })), &["unknown_field"]),
        (plan(&["U 1"], vec![sub_agent("a", &["U 1"])]), &["bad_id"]),
        (
            plan(&["u1", "u1"], vec![sub_agent("a", &["u1"])]),
            &["duplicate_id"],
        ),
        (plan(&["u1", "u1"], vec![]), &["duplicate_id", "unit_uncovered"]),
        (
            plan(&["u1"], vec![sub_agent("a", &["u1", "u1"])]),
            &["unit_covered_twice"],
        ),
        (
            plan(
                &["u1"],
                vec![sub_agent("a", &["u1", "u1"]), sub_agent("b", &["u1"])],
            ),
            &["unit_covered_twice"],
        ),
        (
            plan(&["u1"], vec![sub_agent("a", &["u1", "u8", "u9"])]),
            &["unknown_unit", "unknown_unit"],
        ),
        (
            plan(&["u1"], vec![sub_agent("a", &["u9"])]),
            &["unit_uncovered", "unknown_unit"],
        ),
        (
            plan(&["u1"], vec![sub_agent("a", &[])]),
            &["empty_sub_agent", "unit_uncovered"],
        ),
        (
            plan(&["u1"], vec![json!({ "id": "a", "mission": "x" })]),
            &["missing_field"],
        ),
        (
            plan(&["u1"], vec![json!({ "id": "a", "mission": "x", "units": "u1" })]),
            &["bad_value"],
        ),
        (
            plan(
                &["u1"],
                vec![json!({ "id": "a", "mission": "x", "units": [1, null] })],
            ),
            &["bad_value", "bad_value"],
        ),
        // Sub-agents.
        (
            plan(&["u1"], vec![json!({ "units": ["u1"], "mission": "x" })]),
            &["missing_field"],
        ),
        (with("id", json!(7)), &["bad_value"]),
        (with("id", json!("")), &["bad_id"]),
        (with("id", json!("a/b")), &["bad_id"]),
        (with("id", json!("a".repeat(65))), &["bad_id"]),
        (with("mission", json!(" \n")), &["bad_value"]),
        (with("mission", json!(null)), &["bad_value"]),
        (
            plan(&["u1"], vec![json!({ "id": "a", "units": ["u1"] })]),
            &["missing_field"],
        ),
        (with("resources", json!("src")), &["bad_value"]),
        (with("resources", json!(["src", 3])), &["bad_value"]),
        (with("deliverable", json!(["x"])), &["bad_value"]),
        (with("deliverable", json!({ "files": ["../x"] })), &["bad_value"]),
        (with("deliverable", json!({ "words": "x" })), &["unknown_field"]),
        (with("model", json!("sonnet")), &["pair_not_allowed"]),
        (with("model", json!("")), &["pair_not_allowed"]),
        (with("model", json!(5)), &["bad_value"]),
        (with("effort", json!("low")), &["pair_not_allowed"]),
        (with("effort", json!({})), &["bad_value"]),
        (
            with("folders", json!({ "write": ["/"] })),
            &["field_not_delegated"],
        ),
        (with("permissions", json!("all")), &["field_not_delegated"]),
        (with("limits", json!(null)), &["field_not_delegated"]),
        (with("sub_agents", json!([])), &["field_not_delegated"]),
        (with("kind", json!("dynamic")), &["field_not_delegated"]),
        (with("title", json!("A")), &["field_not_delegated"]),
        (with("max_duration", json!("1h")), &["field_not_delegated"]),
        (with("worktree", json!("never")), &["field_not_delegated"]),
        (with("colour", json!("red")), &["unknown_field"]),
        // After.
        (with("after", json!("b")), &["bad_value"]),
        (with("after", json!([1])), &["bad_value"]),
        (with("after", json!(["zz"])), &["unknown_after"]),
        (with("after", json!(["a"])), &["cycle"]),
        (
            two(after("a", "u1", json!(["b", "b"])), after("b", "u2", json!([]))),
            &[],
        ),
        (
            two(after("a", "u1", json!(["b"])), after("b", "u2", json!(["a"]))),
            &["cycle"],
        ),
        (
            two(
                after("a", "u1", json!(["a"])),
                after("b", "u2", json!(["b", "zz"])),
            ),
            &["cycle", "cycle", "unknown_after"],
        ),
        (
            two(after("a", "u1", json!(["x"])), after("a", "u2", json!(["a"]))),
            &["duplicate_id", "unknown_after"],
        ),
    ];
    for (plan, expected) in &cases {
        expect(plan, expected);
    }
}

#[test]
fn w20_every_field_of_an_agent_is_delegated_or_refused() {
    for name in AGENT_FIELDS.iter().chain(&["folders", "permissions", "limits"]) {
        if ["id", "mission"].contains(name) {
            continue;
        }
        let answer = with(name, json!(true)).to_string();
        let faults = faults_of(&answer, &agent(&[DelegatedField::Mission]));
        assert_eq!(codes(&faults), ["field_not_delegated"], "{name}");
        assert_eq!(faults[0].path, format!("/sub_agents/0/{name}"));
    }
    let faults = faults_of(&with("mission", json!("x")).to_string(), &agent(&[]));
    assert_eq!(codes(&faults), ["field_not_delegated"]);
}

#[test]
fn w20_a_pair_is_judged_with_what_the_dynamic_agent_adds() {
    let pair = |delegate: &[DelegatedField], model: Option<&str>, effort: Option<&str>| {
        let mut only = json!({ "id": "a", "units": ["u1"] });
        for (name, value) in [("model", model), ("effort", effort)] {
            if let Some(value) = value {
                only[name] = json!(value);
            }
        }
        codes(&faults_of(
            &plan(&["u1"], vec![only]).to_string(),
            &agent(delegate),
        ))
    };
    let (model, effort) = (DelegatedField::Model, DelegatedField::Effort);
    let none: [&str; 0] = [];
    assert_eq!(pair(&[model], Some("opus"), None), none);
    assert_eq!(pair(&[model], Some("sonnet"), None), ["pair_not_allowed"]);
    assert_eq!(pair(&[model, effort], Some("sonnet"), Some("low")), none);
    assert_eq!(pair(&[effort], None, Some("low")), ["pair_not_allowed"]);
    // A model that is not the plan's to choose changes nothing of the pair.
    assert_eq!(
        pair(&[effort], Some("sonnet"), Some("high")),
        ["field_not_delegated"]
    );
    let mut strict = agent(&[]);
    strict.effort = "low".to_owned();
    let faults = faults_of(
        &plan(&["u1"], vec![json!({ "id": "a", "units": ["u1"] })]).to_string(),
        &strict,
    );
    assert_eq!(codes(&faults), ["pair_not_allowed"]);
    assert_eq!(faults[0].path, "/sub_agents/0");
}

#[test]
fn w7_rules_that_no_plan_can_keep_are_seen() {
    let (model, effort) = (DelegatedField::Model, DelegatedField::Effort);
    let mut other = agent(&[]);
    other.effort = "low".to_owned();
    assert!(!rules_out_every_plan(&agent(&[])), "its own pair is allowed");
    for (delegate, none_is_left) in [
        (vec![], true),
        (vec![effort], false),
        (vec![model], false),
        (vec![model, effort], false),
    ] {
        other.sub_agents.as_mut().expect("dynamic").delegate = delegate.clone();
        assert_eq!(rules_out_every_plan(&other), none_is_left, "{delegate:?}");
    }
    other.sub_agents.as_mut().expect("dynamic").allow.clear();
    assert!(rules_out_every_plan(&other), "nothing is allowed");
    assert!(!rules_out_every_plan(&AgentDefinition::default()));
}

#[test]
fn w20_faults_say_where_and_what_was_meant() {
    let answer = "Here it is.\n\n~~~JSON\n{ \"units\": [{ \"id\": \"u1\" }],\n  \"sub_agents\": [\n    { \"id\": \"a\", \
                  \"units\": [\"u11\"], \"mision\": \"x\", \"model\": \"sonet\", \"effort\": \"low\" },\n    { \"id\": \"b\", \
                  \"units\": [\"u1\"], \"mission\": \"x\", \"after\": [\"A\"] } ] }\n~~~\nThat is all.";
    let faults = faults_of(answer, &agent(ALL));
    let told: Vec<(String, &str, Option<u32>, Option<&str>)> = faults
        .iter()
        .map(|fault| {
            (
                code(fault),
                fault.path.as_str(),
                fault.line,
                fault.suggestion.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("missing_field".to_owned(), "/sub_agents/0", Some(6), None),
            (
                "unknown_unit".to_owned(),
                "/sub_agents/0/units/0",
                Some(6),
                Some("u1")
            ),
            (
                "unknown_field".to_owned(),
                "/sub_agents/0/mision",
                Some(6),
                Some("mission")
            ),
            (
                "pair_not_allowed".to_owned(),
                "/sub_agents/0/model",
                Some(6),
                Some("sonnet")
            ),
            (
                "unknown_after".to_owned(),
                "/sub_agents/1/after/0",
                Some(7),
                Some("a")
            ),
        ]
    );
    assert_eq!(faults[0].column, Some(5));
}

#[test]
fn w19_a_plan_is_found_as_a_report_is() {
    let right = with("mission", json!("Do it.")).to_string();
    let wrong = plan(&["u1"], vec![]).to_string();
    let agent = agent(ALL);
    let found = |answer: String| codes(&faults_of(&answer, &agent));
    let none: [&str; 0] = [];
    assert_eq!(
        found(format!(
            "Well.\n```json\n{wrong}\n```\nNo:\n```JSON\n{right}\n```\n{wrong}"
        )),
        none
    );
    assert_eq!(found(format!("{wrong} or rather {right} as I [said]")), none);
    assert_eq!(
        found("I would rather do it alone {really}.".to_owned()),
        ["no_plan"]
    );
    assert_eq!(found(String::new()), ["no_plan"]);
    assert_eq!(found(right[..right.len() - 2].to_owned()), ["bad_json"]);
    assert_eq!(found("```json\n[]\n```".to_owned()), ["bad_value"]);
    assert_eq!(found("```json\nnothing\n```".to_owned()), ["bad_json"]);
    assert_eq!(
        found("{\"units\": [], \"units\": [], \"sub_agents\": []}".to_owned()),
        ["bad_json"]
    );
    let deep = format!("{{\"units\": {}{}}}", "[".repeat(70), "]".repeat(70));
    assert_eq!(found(deep), ["bad_json"]);
    let cut = read(&right[..right.len() - 2], &agent, true).expect_err("cut");
    assert_eq!(codes(&cut), ["cut_answer"]);
    assert!(cut[0].message.contains("before the plan"), "{cut:?}");
    assert!(read(&right, &agent, true).is_ok(), "what is whole is whole");
}

#[test]
fn w20_an_agent_that_is_not_dynamic_makes_no_plan() {
    let faults = faults_of(
        &with("mission", json!("x")).to_string(),
        &AgentDefinition::default(),
    );
    assert_eq!(codes(&faults), ["contradiction"]);
}

#[test]
fn w20_cycles_are_told_one_by_one_in_order() {
    let names = ["a", "b", "c", "d", "e"];
    let after = [vec!["c"], vec!["a"], vec!["b"], vec!["e"], vec!["d"]];
    let sub_agents: Vec<Value> = names
        .iter()
        .zip(after)
        .map(|(name, after)| json!({ "id": name, "units": [format!("u{name}")], "mission": "x", "after": after }))
        .collect();
    let units: Vec<String> = names.iter().map(|name| format!("u{name}")).collect();
    let units: Vec<&str> = units.iter().map(String::as_str).collect();
    let mut roomy = agent(ALL);
    roomy.sub_agents.as_mut().expect("dynamic").max = NonZeroU32::new(8).expect("not zero");
    let faults = faults_of(&plan(&units, sub_agents).to_string(), &roomy);
    assert_eq!(codes(&faults), ["cycle", "cycle"]);
    assert!(
        faults[0].message.ends_with("`a` -> `b` -> `c` -> `a`"),
        "{faults:?}"
    );
    assert!(faults[1].message.ends_with("`d` -> `e` -> `d`"), "{faults:?}");
}

#[test]
fn f5_a_plan_of_forty_with_a_cap_of_three_is_one_fault() {
    let ids: Vec<String> = (0..40).map(|number| format!("u{number}")).collect();
    let units: Vec<&str> = ids.iter().map(String::as_str).collect();
    let sub_agents: Vec<Value> = units
        .iter()
        .map(|unit| sub_agent(&format!("a-{unit}"), &[unit]))
        .collect();
    let faults = expect(&plan(&units, sub_agents), &["too_many_sub_agents"]);
    assert!(
        faults[0].message.contains("40 sub-agents: at most 3"),
        "{faults:?}"
    );
}

#[test]
fn w22_an_accepted_plan_becomes_agents_and_an_order() {
    let mut first = sub_agent("first", &["u1", "u2"]);
    first["model"] = json!("sonnet");
    first["effort"] = json!("low");
    let mut last = sub_agent("last", &["u3"]);
    last["after"] = json!(["first", "first"]);
    let mut written = plan(&["u1", "u2", "u3"], vec![last, first]);
    written["units"][2]["title"] = json!("Write\nit up");
    written["why"] = json!("Two files.");
    let mut of = agent(ALL);
    of.max_duration = Some(std::time::Duration::from_secs(60));
    of.browser = Some(false);
    of.worktree = task::WorktreeWish::Always;
    of.inputs = vec!["findings".to_owned()];
    let accepted = read(&written.to_string(), &of, false).expect("a plan");
    assert_eq!(accepted.why.as_deref(), Some("Two files."));
    assert_eq!(accepted.after(), [(1, 0)]);
    let agents = accepted.agents(&of);
    assert_eq!(agents.len(), 2);
    assert_eq!((agents[0].id.as_str(), agents[1].id.as_str()), ("last", "first"));
    assert_eq!(
        agents[1].mission,
        "Do it.\n\nYour units of work are these, and all of them. Others are done by other agents: leave them alone.\n\
         \n- u1\n- u2"
    );
    assert!(
        agents[0].mission.ends_with("\n- u3: Write it up"),
        "{}",
        agents[0].mission
    );
    assert_eq!(agents[0].title.as_deref(), Some("Write\nit up"));
    assert_eq!(agents[1].title, None);
    assert_eq!(
        (agents[1].model.as_str(), agents[1].effort.as_str()),
        ("sonnet", "low")
    );
    for agent in &agents {
        assert_eq!(agent.kind, task::AgentKind::Deterministic);
        assert_eq!(agent.sub_agents, None);
        assert!(agent.inputs.is_empty() && agent.outputs.is_empty());
        assert_eq!(agent.max_duration, of.max_duration);
        assert_eq!(agent.browser, of.browser);
        assert_eq!(agent.worktree, of.worktree);
    }
}

#[test]
fn w22_a_stored_plan_reads_as_it_was() {
    let mut written = with("deliverable", json!({ "text": "x", "files": ["a.md"] }));
    written["sub_agents"][0]["after"] = json!([]);
    let with_files = read(&written.to_string(), &agent(ALL), false).expect("a plan");
    let plain = read(&with("deliverable", json!("x")).to_string(), &agent(ALL), false).expect("a plan");
    let mut bare_agent = agent(ALL);
    bare_agent.deliverable = None;
    let bare = read(&with("mission", json!("x")).to_string(), &bare_agent, false).expect("a plan");
    assert_eq!(
        serde_json::to_value(&plain).expect("JSON")["sub_agents"][0]["deliverable"],
        "x"
    );
    for plan in [with_files, plain, bare] {
        let json = serde_json::to_string(&plan).expect("JSON");
        assert_eq!(serde_json::from_str::<Plan>(&json).expect("a plan"), plan);
        let bytes = rmp_serde::to_vec_named(&plan).expect("bytes");
        assert_eq!(rmp_serde::from_slice::<Plan>(&bytes).expect("a plan"), plan);
    }
}

#[test]
fn w19_the_form_tells_the_rules_and_its_example_would_be_accepted() {
    for delegate in [
        ALL,
        &ALL[..3],
        &[],
        &[DelegatedField::Model],
        &[DelegatedField::Effort],
    ] {
        for max in [1, 2, 5] {
            let mut agent = agent(delegate);
            agent.sub_agents.as_mut().expect("dynamic").max = NonZeroU32::new(max).expect("not zero");
            let mut form = String::new();
            write_form(&mut form, &agent);
            assert_eq!(faults_of(&form, &agent), [], "{form}");
            assert!(form.contains(&format!("at most {max}.")), "{form}");
            assert!(form.contains("smallest useful number"), "{form}");
            assert!(
                form.contains("`sonnet` with `low` or `medium`; `opus` with `high`"),
                "{form}"
            );
            for field in ALL {
                let field = rules::word(*field);
                assert!(form.contains(&format!("`{field}`")), "{field}: {form}");
            }
        }
    }
}

#[test]
fn w21_a_refused_plan_is_told_every_fault_and_the_form_again() {
    let answer = plan(&["u1"], vec![sub_agent("a", &["u9"])]).to_string();
    let agent = agent(ALL);
    let faults = faults_of(&answer, &agent);
    let first = correction(&faults, 1, &agent);
    for part in [
        "nothing was launched",
        "no sub-agent has the unit `u1`",
        "there is no unit `u9` in this plan (at `/sub_agents/0/units/0`); did you mean `u1`?",
        "line 1, column ",
        "return 1 of 2.",
        "at most 3",
    ] {
        assert!(first.contains(part), "{part} is missing in {first}");
    }
    assert!(correction(&faults, 2, &agent).contains("return 2 of 2, the last"));
    let many: Vec<Fault> = std::iter::repeat_n(faults[0].clone(), 1_000).collect();
    assert!(correction(&many, 1, &agent).contains("- and 970 more faults"));
    let cut = read("{\"units\": [", &agent, true).expect_err("cut");
    assert!(correction(&cut, 1, &agent).contains("Answer with the plan alone, and shorter"));
}

/// A right plan: so many sub-agents, each with some units and waiting for some before it.
fn right_plan() -> impl Strategy<Value = Value> {
    let sub_agents = prop::collection::vec(
        (
            1..4_usize,
            prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        ),
        1..6,
    );
    (sub_agents, any::<bool>()).prop_map(|(sub_agents, with_pair)| {
        let mut units = Vec::new();
        let mut written = Vec::new();
        for (position, (count, after)) in sub_agents.into_iter().enumerate() {
            let own: Vec<String> = (0..count).map(|number| format!("u{position}-{number}")).collect();
            units.extend(own.iter().map(|id| json!({ "id": id, "title": "Some work" })));
            let after = after.iter().filter(|_| position > 0);
            let after: Vec<String> = after.map(|first| format!("s{}", first.index(position))).collect();
            let mut sub_agent =
                json!({ "id": format!("s{position}"), "units": own, "mission": "Do it.", "after": after });
            if with_pair {
                sub_agent["model"] = json!("sonnet");
                sub_agent["effort"] = json!("low");
            }
            written.push(sub_agent);
        }
        json!({ "units": units, "sub_agents": written })
    })
}

/// A single damage to a right plan, to the sub-agent at this position, and the fault that it makes.
type Damage = (&'static str, fn(&mut Value, usize));

const DAMAGES: &[Damage] = &[
    ("unit_uncovered", |plan, _| {
        plan["units"]
            .as_array_mut()
            .expect("a list")
            .push(json!({ "id": "more" }));
    }),
    ("unit_covered_twice", |plan, at| {
        let unit = plan["sub_agents"][at]["units"][0].clone();
        let last = plan["sub_agents"]
            .as_array_mut()
            .expect("a list")
            .last_mut()
            .expect("one");
        last["units"].as_array_mut().expect("a list").push(unit);
    }),
    ("unknown_unit", |plan, at| {
        plan["sub_agents"][at]["units"]
            .as_array_mut()
            .expect("a list")
            .push(json!("zz"));
    }),
    ("duplicate_id", |plan, _| {
        let unit = plan["units"][0].clone();
        plan["units"].as_array_mut().expect("a list").push(unit);
    }),
    ("bad_id", |plan, at| {
        let id = plan["sub_agents"][at]["id"].as_str().expect("a text").to_owned();
        let text = plan.to_string().replace(&format!("\"{id}\""), "\"NO ID\"");
        *plan = serde_json::from_str(&text).expect("JSON");
    }),
    ("missing_field", |plan, at| {
        plan["sub_agents"][at]
            .as_object_mut()
            .expect("a map")
            .remove("mission");
    }),
    ("unknown_field", |plan, at| {
        plan["sub_agents"][at]["colour"] = json!("red")
    }),
    ("field_not_delegated", |plan, at| {
        plan["sub_agents"][at]["folders"] = json!({ "write": ["/"] })
    }),
    ("pair_not_allowed", |plan, at| {
        plan["sub_agents"][at]["model"] = json!("haiku");
        plan["sub_agents"][at]["effort"] = json!("low");
    }),
    ("unknown_after", |plan, at| {
        plan["sub_agents"][at]["after"]
            .as_array_mut()
            .expect("a list")
            .push(json!("zz"));
    }),
    ("cycle", |plan, at| {
        let own = plan["sub_agents"][at]["id"].clone();
        plan["sub_agents"][at]["after"]
            .as_array_mut()
            .expect("a list")
            .push(own);
    }),
    ("bad_value", |plan, at| {
        plan["sub_agents"][at]["mission"] = json!(["x"])
    }),
    ("empty_sub_agent", |plan, _| {
        let sub_agent = json!({ "id": "idle", "units": [], "mission": "x" });
        plan["sub_agents"].as_array_mut().expect("a list").push(sub_agent);
    }),
    ("no_plan", |plan, _| *plan = json!("I would rather not.")),
];

fn roomy() -> AgentDefinition {
    let mut agent = agent(ALL);
    agent.sub_agents.as_mut().expect("dynamic").max = NonZeroU32::new(8).expect("not zero");
    agent
}

proptest! {
    #[test]
    fn w20_a_right_plan_is_accepted_with_all_it_says(plan in right_plan()) {
        let accepted = read(&format!("Here:\n\n```json\n{plan:#}\n```\n"), &roomy(), false);
        prop_assert!(accepted.is_ok(), "{plan}: {accepted:?}");
        let accepted = accepted.expect("just asserted");
        let sub_agents = plan["sub_agents"].as_array().expect("a list");
        prop_assert_eq!(accepted.sub_agents.len(), sub_agents.len());
        for (found, written) in accepted.sub_agents.iter().zip(sub_agents) {
            prop_assert_eq!(json!(found.units), written["units"].clone());
            prop_assert_eq!(json!(found.after), written["after"].clone());
        }
        let count = u32::try_from(sub_agents.len()).expect("few");
        prop_assert!(crate::graph::Graph::new(count, &accepted.after()).is_ok());
        prop_assert_eq!(accepted.agents(&roomy()).len(), sub_agents.len());
    }

    #[test]
    fn w20_a_single_damage_is_a_single_fault(
        plan in right_plan(),
        damage in prop::sample::select(DAMAGES),
        at in any::<prop::sample::Index>(),
    ) {
        let mut damaged = plan.clone();
        let at = at.index(plan["sub_agents"].as_array().expect("a list").len());
        (damage.1)(&mut damaged, at);
        let answer = damaged.as_str().map_or_else(|| damaged.to_string(), str::to_owned);
        prop_assert_eq!(codes(&faults_of(&answer, &roomy())), [damage.0], "{}", damaged);
    }

    #[test]
    fn w20_any_text_has_an_answer(text in "(\\PC|[{}\"\\[\\]:,\n`]){0,200}", cut: bool) {
        let _ = read(&text, &roomy(), cut);
    }
}

/// A plan with so many sub-agents, each with a unit, and each after the one before it.
fn chain(count: usize) -> String {
    let units: Vec<Value> = (0..count)
        .map(|number| json!({ "id": format!("u{number}") }))
        .collect();
    let sub_agents: Vec<Value> = (0..count)
        .map(|number| {
            let after = number.checked_sub(1).map(|first| format!("s{first}"));
            json!({ "id": format!("s{number}"), "units": [format!("u{number}")], "mission": "x",
                "after": after.into_iter().collect::<Vec<String>>() })
        })
        .collect();
    json!({ "units": units, "sub_agents": sub_agents }).to_string()
}

#[test]
fn w20_very_large_plans_are_read() {
    let mut wide = roomy();
    wide.sub_agents.as_mut().expect("dynamic").max = NonZeroU32::MAX;
    let accepted = read(&chain(20_000), &wide, false).expect("a plan");
    assert_eq!(accepted.after().len(), 19_999);
    assert_eq!(accepted.agents(&wide).len(), 20_000);
    let loops = chain(20_000).replacen("\"after\":[]", "\"after\":[\"s19999\"]", 1);
    assert_eq!(codes(&faults_of(&loops, &wide)), ["cycle"]);
    assert_eq!(
        codes(&faults_of(&chain(20_000), &roomy())),
        ["too_many_sub_agents"]
    );

    let wrong = chain(12_000).replace("\"units\":[\"u", "\"units\":[\"v");
    let faults = faults_of(&wrong, &wide);
    assert_eq!(faults.len(), 10_000, "nobody reads more");

    let ids: Vec<String> = (0..10_000).map(|number| format!("u{number}")).collect();
    let units: Vec<&str> = ids.iter().map(String::as_str).collect();
    let one = plan(&units, vec![sub_agent("a", &units)]).to_string();
    assert!(read(&one, &roomy(), false).is_ok());
    let long = with("id", json!("a".repeat(1_000_000))).to_string();
    let faults = faults_of(&long, &roomy());
    assert_eq!(codes(&faults), ["bad_id"]);
    assert!(faults[0].message.len() < 300);
}

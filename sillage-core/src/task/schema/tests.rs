use std::collections::BTreeSet;

use jsonschema::{Draft, JSONSchema};
use serde_json::{Value, json};

use super::SCHEMA;
use crate::document::check::whole_number;
use crate::document::{self, Format, Node};
use crate::task::read::{
    AGENT_FIELDS, ALLOW_FIELDS, DELIVERABLE_FIELDS, FOLDER_FIELDS, LIMIT_FIELDS, LINK_FIELDS,
    SUB_AGENT_FIELDS, TASK_FIELDS,
};

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

/// Compiling checks that it is a schema.
fn compiled() -> JSONSchema {
    JSONSchema::options()
        .with_draft(Draft::Draft202012)
        .compile(&schema())
        .expect("a schema")
}

/// What an editor's YAML reader would hand to its validator.
fn as_json(node: &Node) -> Value {
    match &node.value {
        document::Value::Null => Value::Null,
        document::Value::Bool(flag) => json!(flag),
        document::Value::Number(written) => match whole_number(written) {
            Some(number) => json!(number),
            None => json!(written.parse::<f64>().unwrap_or(-1.0)),
        },
        document::Value::Text(text) => json!(text),
        document::Value::List(items) => items.iter().map(as_json).collect(),
        document::Value::Map(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, node)| (key.name.clone(), as_json(node)))
                .collect(),
        ),
    }
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    input: String,
    expect: Expected,
}

#[derive(serde::Deserialize)]
struct Expected {
    ok: bool,
    #[serde(default)]
    codes: BTreeSet<String>,
}

/// Cases whose fault is within one value, and yet more than a schema says.
const BEYOND_A_SCHEMA: &[&str] = &[
    "a deliverable out of the folder",
    "a duration of 0s",
    "a duration of 0h0m",
    "a duration of 99999999999999999999h",
    "a duration of 5124095576030432h",
    // To a schema these are the whole numbers that they equal.
    "parallel of 4.0",
    "opus of 4.0",
    "parallel of 1e3",
    "opus of 1e3",
];

#[test]
fn w11_the_schema_accepts_what_is_right_and_refuses_faults_of_form() {
    let form = [
        "bad_type",
        "missing_field",
        "unknown_field",
        "blank_mission",
        "bad_id",
        "no_agents",
        "bad_limit",
        "bad_duration",
        "contradiction",
    ];
    let validator = compiled();
    let golden: Vec<Case> = serde_json::from_str(include_str!("../../../tests/cases/tasks.json")).unwrap();
    let more: Vec<Case> = serde_json::from_str(include_str!("../../../tests/cases/more-tasks.json")).unwrap();
    for Case { name, input, expect } in golden.into_iter().chain(more) {
        let Ok(root) = document::read(&input, Format::Either) else {
            continue;
        };
        let instance = as_json(&root);
        let errors: Vec<String> = match validator.validate(&instance) {
            Ok(()) => Vec::new(),
            Err(errors) => errors.map(|error| error.to_string()).collect(),
        };
        if expect.ok || BEYOND_A_SCHEMA.contains(&name.as_str()) {
            assert!(errors.is_empty(), "{name}: {errors:?}");
        } else if expect.codes.iter().any(|code| form.contains(&code.as_str())) {
            assert!(!errors.is_empty(), "{name} should be refused: {instance}");
        }
    }
}

#[test]
fn w11_the_schema_knows_the_fields_that_the_reader_knows() {
    let schema = schema();
    let defined = &schema["$defs"];
    for (part, known) in [
        (&schema, TASK_FIELDS),
        (&schema["properties"]["folders"], FOLDER_FIELDS),
        (&schema["properties"]["limits"], LIMIT_FIELDS),
        (&defined["agent"], AGENT_FIELDS),
        (&defined["deliverable"], DELIVERABLE_FIELDS),
        (&defined["sub_agents"], SUB_AGENT_FIELDS),
        (&defined["allowed_pair"], ALLOW_FIELDS),
        (&defined["link_in_full"], LINK_FIELDS),
    ] {
        let known: BTreeSet<&str> = known.iter().copied().collect();
        let fields = part["properties"].as_object().unwrap().keys();
        assert_eq!(fields.map(String::as_str).collect::<BTreeSet<_>>(), known);
    }
}

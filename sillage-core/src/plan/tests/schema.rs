//! The schema says of a plan's form what the check says.

use std::collections::BTreeSet;

use jsonschema::{Draft, JSONSchema};

use super::*;
use crate::plan::check::{FIELDS, OWN_FIELDS, UNIT_FIELDS};
use crate::plan::rules::word;

/// Codes of faults that a schema can see: they are within one value.
const OF_FORM: &[&str] = &[
    "missing_field",
    "unknown_field",
    "bad_value",
    "bad_id",
    "no_units",
    "empty_sub_agent",
    "field_not_delegated",
];

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("JSON")
}

#[test]
fn w19_the_schema_knows_the_fields_that_the_check_knows() {
    let schema = schema();
    let names = |part: &Value| -> BTreeSet<String> {
        part["properties"]
            .as_object()
            .expect("a map")
            .keys()
            .cloned()
            .collect()
    };
    let owned =
        |fields: &[&str]| -> BTreeSet<String> { fields.iter().map(|field| (*field).to_owned()).collect() };
    assert_eq!(names(&schema), owned(FIELDS));
    assert_eq!(names(&schema["$defs"]["unit"]), owned(UNIT_FIELDS));
    let delegable = ALL.iter().map(|field| word(*field));
    let all: Vec<&str> = OWN_FIELDS.iter().copied().chain(delegable).collect();
    assert_eq!(names(&schema["$defs"]["sub_agent"]), owned(&all));
}

proptest! {
    #[test]
    fn w19_the_schema_judges_the_form_as_the_check_does(
        plan in right_plan(),
        damage in prop::option::of(prop::sample::select(DAMAGES)),
        at in any::<prop::sample::Index>(),
    ) {
        let validator = JSONSchema::options().with_draft(Draft::Draft202012).compile(&schema()).expect("a schema");
        let mut plan = plan;
        let at = at.index(plan["sub_agents"].as_array().expect("a list").len());
        if let Some((_, damage)) = damage {
            damage(&mut plan, at);
        }
        prop_assume!(plan.is_object());
        let found = codes(&faults_of(&plan.to_string(), &roomy()));
        let of_form = found.iter().any(|code| OF_FORM.contains(&code.as_str()));
        // Without its mission a sub-agent has a form: whether it needs one is said by the task. A duplicate's form is right.
        prop_assert!(validator.is_valid(&plan) != of_form || found == ["missing_field"], "{}: {:?}", plan, found);
    }
}

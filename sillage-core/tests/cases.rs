//! The golden cases of task files, through the public interface.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its cases is to fail")]

use sillage_core::document::Format;
use sillage_core::fault::Fault;
use sillage_core::task;

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    why: String,
    input: String,
    expect: Expected,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    ok: bool,
    #[serde(default)]
    codes: Vec<String>,
    line: Option<u32>,
    column: Option<u32>,
    path: Option<String>,
    suggestion: Option<String>,
    #[serde(default)]
    message_has: Vec<String>,
}

fn check(case: &Case) {
    let about = format!("{} ({})", case.name, case.why);
    let faults = match task::read(&case.input, Format::Either, None) {
        Ok(_) => Vec::new(),
        Err(faults) => faults,
    };
    let mut codes: Vec<String> = faults.iter().map(code).collect();
    codes.sort();
    assert_eq!(codes, case.expect.codes, "{about}: {faults:#?}");
    assert_eq!(faults.is_empty(), case.expect.ok, "{about}");
    let Some(first) = faults.first() else { return };
    for (expected, found) in [(case.expect.line, first.line), (case.expect.column, first.column)] {
        assert!(expected.is_none() || expected == found, "{about}: {faults:#?}");
    }
    if let Some(path) = &case.expect.path {
        assert_eq!(path, &first.path, "{about}");
    }
    if case.expect.suggestion.is_some() {
        assert_eq!(case.expect.suggestion, first.suggestion, "{about}");
    }
    for words in &case.expect.message_has {
        assert!(
            first.message.contains(words.as_str()),
            "{about}: {}",
            first.message
        );
    }
}

fn code(fault: &Fault) -> String {
    serde_json::to_value(fault.code)
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}

fn check_all(cases: &str) {
    let cases: Vec<Case> = serde_json::from_str(cases).unwrap();
    assert!(!cases.is_empty());
    cases.iter().for_each(check);
}

#[test]
fn w5_to_w12_golden_cases() {
    check_all(include_str!("cases/tasks.json"));
}

#[test]
fn w5_to_w12_cases_of_every_code() {
    check_all(include_str!("cases/more-tasks.json"));
}

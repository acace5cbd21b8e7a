use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn codes(result: Result<Report, Vec<Fault>>) -> Vec<String> {
    let mut codes: Vec<String> = match result {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(|fault| code(fault.code)).collect(),
    };
    codes.sort();
    codes
}

fn code(code: FaultCode) -> String {
    serde_json::to_value(code)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .expect("a code is a text")
}

fn read_plainly(answer: &str) -> Result<Report, Vec<Fault>> {
    read(answer, &Expected::default(), false)
}

fn with(field: &str, value: Value) -> String {
    let mut report = json!({ "outcome": "complete", "summary": "Done." });
    report[field] = value;
    report.to_string()
}

#[test]
fn w15_to_w18_the_cases() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../tests/cases/reports.json")).expect("JSON");
    assert!(cases.len() >= 18);
    for case in cases {
        let name = &case["name"];
        let result = read_plainly(case["input"].as_str().expect("an input"));
        let expect = &case["expect"];
        if expect["ok"] == true {
            let report = result.unwrap_or_else(|faults| panic!("{name}: {faults:?}"));
            let report = serde_json::to_value(report).expect("a report is JSON");
            for (field, value) in expect
                .as_object()
                .expect("a map")
                .iter()
                .filter(|(field, _)| *field != "ok")
            {
                assert_eq!(&report[field], value, "{name}");
            }
        } else {
            assert_eq!(json!(codes(result)), expect["codes"], "{name}");
        }
    }
}

#[test]
fn w15_refuses_wrong_types_and_words_at_their_place() {
    for (field, value, path, message) in [
        (
            "summary",
            json!(5),
            "/summary",
            "`summary` must be a text, not a number",
        ),
        (
            "summary",
            json!(null),
            "/summary",
            "`summary` must be a text, not null",
        ),
        (
            "outcome",
            json!(["complete"]),
            "/outcome",
            "`outcome` must be a text, not a list",
        ),
        (
            "decisions",
            json!("Keep sled"),
            "/decisions",
            "`decisions` must be a list, not a text",
        ),
        (
            "decisions",
            json!({ "title": "x" }),
            "/decisions",
            "`decisions` must be a list, not an object",
        ),
        (
            "decisions",
            json!([1]),
            "/decisions/0",
            "`decisions/0` must be a text, or an object with a `title`, not a number",
        ),
        (
            "decisions",
            json!(["a", " "]),
            "/decisions/1",
            "`decisions/1` is blank",
        ),
        (
            "decisions",
            json!([{ "title": "x", "why": 1 }]),
            "/decisions/0/why",
            "`decisions/0/why` must be a text, not a number",
        ),
        (
            "checks",
            json!(["build"]),
            "/checks/0",
            "`checks/0` must be an object, not a text",
        ),
        (
            "references",
            json!([{ "kind": "file", "value": "" }]),
            "/references/0/value",
            "`references/0/value` is blank",
        ),
        (
            "outputs",
            json!([]),
            "/outputs",
            "`outputs` must be an object of texts by name, not a list",
        ),
        (
            "outputs",
            json!({ "a/b~": 1 }),
            "/outputs/a~1b~0",
            "`outputs/a~1b~0` must be a text, not a number",
        ),
        (
            "next_action",
            json!(true),
            "/next_action",
            "`next_action` must be a text, not true or false",
        ),
    ] {
        let faults = read_plainly(&with(field, value)).expect_err(path);
        let told: Vec<_> = faults
            .iter()
            .map(|fault| (fault.code, &*fault.path, &*fault.message))
            .collect();
        assert_eq!(told, [(FaultCode::BadValue, path, message)]);
    }
}

#[test]
fn w15_suggests_the_word_that_was_meant() {
    for (answer, code, path, suggestion) in [
        (
            with("outcome", json!("Complete")),
            FaultCode::BadValue,
            "/outcome",
            Some("complete"),
        ),
        (
            with("outcome", json!("done")),
            FaultCode::BadValue,
            "/outcome",
            None,
        ),
        (
            with("checks", json!([{ "kind": "unit_tests", "status": "passed" }])),
            FaultCode::BadValue,
            "/checks/0/kind",
            Some("unit_test"),
        ),
        (
            with("references", json!([{ "kind": "uri", "value": "x" }])),
            FaultCode::BadValue,
            "/references/0/kind",
            Some("url"),
        ),
        (
            with("nextaction", json!("x")),
            FaultCode::UnknownField,
            "/nextaction",
            Some("next_action"),
        ),
        (
            with("decisions", json!([{ "title": "x", "because": "y" }])),
            FaultCode::UnknownField,
            "/decisions/0/because",
            None,
        ),
        (
            with(
                "checks",
                json!([{ "kind": "lint", "status": "passed", "details": "" }]),
            ),
            FaultCode::UnknownField,
            "/checks/0/details",
            Some("detail"),
        ),
    ] {
        let faults = read_plainly(&answer).expect_err(path);
        let told: Vec<_> = faults
            .iter()
            .map(|fault| (fault.code, &*fault.path, fault.suggestion.as_deref()))
            .collect();
        assert_eq!(told, [(code, path, suggestion)]);
    }
}

#[test]
fn w17_tells_every_fault_at_once_with_line_and_column_in_the_answer() {
    let answer = "Résumé :\n\n```json\n{\n  \"outcom\": \"complete\",\n  \"checks\": [{ \"kind\": \"é\", \"status\": 1 }]\n}\n```\n";
    let faults = read_plainly(answer).expect_err("faults");
    let told: Vec<_> = faults
        .iter()
        .map(|fault| (fault.code, &*fault.path, fault.line, fault.column))
        .collect();
    assert_eq!(
        told,
        [
            (FaultCode::UnknownField, "/outcom", Some(5), Some(3)),
            (FaultCode::MissingField, "/outcome", Some(4), Some(1)),
            (FaultCode::MissingField, "/summary", Some(4), Some(1)),
            (FaultCode::BadValue, "/checks/0/kind", Some(6), Some(24)),
            (FaultCode::BadValue, "/checks/0/status", Some(6), Some(39)),
        ]
    );
}

#[test]
fn w15_bounds_count_characters() {
    let summary = |length| with("summary", json!("é".repeat(length)));
    assert_eq!(codes(read_plainly(&summary(MAX_SUMMARY))), [""; 0]);
    assert_eq!(codes(read_plainly(&summary(MAX_SUMMARY + 1))), ["too_long"]);
    let whole = |length: usize| {
        let empty = with("next_action", json!("")).chars().count();
        format!(
            "```json\n\n{}\n```\n",
            with("next_action", json!("é".repeat(length - empty)))
        )
    };
    assert_eq!(codes(read_plainly(&whole(MAX_REPORT))), [""; 0]);
    assert_eq!(codes(read_plainly(&whole(MAX_REPORT + 1))), ["too_long"]);
    assert_eq!(
        codes(read_plainly(&summary(MAX_REPORT))),
        ["too_long", "too_long"]
    );
}

#[test]
fn w15_takes_null_and_blank_for_nothing_in_optional_fields() {
    let answer = r#"{"outcome": "blocked", "summary": "x", "decisions": null, "checks": [{"kind": "lint",
        "status": "not_run", "detail": null}], "blockers": [{"title": "b", "needs": ""}], "outputs": null,
        "next_action": " "}"#;
    let report = read_plainly(answer).expect("a report");
    assert_eq!(report.checks[0].detail, None);
    assert_eq!(
        report.blockers,
        [Blocker {
            title: "b".into(),
            needs: None
        }]
    );
    assert_eq!(report.next_action, None);
}

#[test]
fn w18_tells_contradictions() {
    let report = |outcome: &str, blockers: Value| {
        json!({ "outcome": outcome, "summary": "x", "blockers": blockers }).to_string()
    };
    for (outcome, blockers, expected) in [
        ("complete", json!([]), None),
        ("complete", json!(["b"]), Some("contradiction")),
        ("complete", json!([{ "title": "b" }]), Some("contradiction")),
        ("partial", json!([]), None),
        ("partial", json!(["b"]), None),
        ("blocked", json!(["b"]), None),
        ("blocked", json!([]), Some("contradiction")),
        ("blocked", json!(null), Some("contradiction")),
        ("blocked", json!("no access"), Some("bad_value")),
    ] {
        let result = read_plainly(&report(outcome, blockers.clone()));
        assert_eq!(
            codes(result).first().map(String::as_str),
            expected,
            "{outcome} {blockers}"
        );
    }
    assert_eq!(
        codes(read_plainly(r#"{"outcome": "blocked", "summary": "x"}"#)),
        ["contradiction"]
    );
}

#[test]
fn w6_requires_declared_outputs() {
    let declared = ["findings".to_owned(), "risks".to_owned()];
    let expected = Expected { outputs: &declared };
    let read = |outputs: Value| read(&with("outputs", outputs), &expected, false);
    assert!(read(json!({ "findings": "a", "risks": "" })).is_ok());
    assert_eq!(codes(read(json!(null))), ["missing_field", "missing_field"]);
    assert_eq!(codes(read(json!({ "findings": "a" }))), ["missing_field"]);
    assert_eq!(codes(read(json!({ "findings": "a", "risks": 2 }))), ["bad_value"]);
    let faults = read(json!({ "finding": "a", "risks": "b" })).expect_err("a typo");
    let told: Vec<_> = faults
        .iter()
        .map(|fault| (fault.code, &*fault.path, fault.suggestion.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            (FaultCode::MissingField, "/outputs/findings", None),
            (FaultCode::UnknownField, "/outputs/finding", Some("findings")),
        ]
    );
    let blocked = r#"{"outcome": "blocked", "summary": "x", "blockers": ["no access"]}"#;
    assert!(super::read(blocked, &expected, false).is_ok());
}

#[test]
fn w16_refuses_what_is_not_one_object() {
    for (answer, expected) in [
        ("```json\n```", "bad_json"),
        ("```json\n[]\n```", "bad_value"),
        ("```json\n\"done\"\n```", "bad_value"),
        ("```json\n{} {}\n```", "bad_json"),
        (
            "```json\n{\"outcome\": \"complete\", \"summary\": \"x\",}\n```\n{\"outcome\": \"complete\", \"summary\": \"x\"}",
            "bad_json",
        ),
        (
            "{\"outcome\": \"complete\", \"outcome\": \"partial\", \"summary\": \"x\"}",
            "bad_json",
        ),
        ("{\"outcome\": \"complete\", \"summary\": \"a\nb\"}", "bad_json"),
        ("{'outcome': 'complete', 'summary': 'x'}", "bad_json"),
        ("{\"outcome\": \"complete\", \"summary\": \"x\"", "bad_json"),
        ("All done {really}.", "no_report"),
    ] {
        assert_eq!(codes(read_plainly(answer)), [expected], "{answer}");
    }
    let deep = format!("{{\"outcome\": {}{}}}", "[".repeat(100), "]".repeat(100));
    assert_eq!(codes(read_plainly(&deep)), ["bad_json"]);
}

#[test]
fn f4_an_answer_cut_by_the_models_limit_is_told_as_cut() {
    let read_cut = |answer: &str| read(answer, &Expected::default(), true);
    for answer in [
        "",
        "I am about to",
        "```json\n{\"outcome\": \"comp",
        "{\"outcome\": \"complete\", ",
    ] {
        assert_eq!(codes(read_cut(answer)), ["cut_answer"], "{answer}");
    }
    let faults = read_cut("Text.\n{\"outcome\": \"comp").expect_err("cut");
    assert_eq!((faults[0].line, faults[0].column), (Some(2), Some(1)));
    let text = correction(&faults, 1, &Expected::default());
    assert!(
        text.contains("limit cut the answer") && !text.contains("not JSON"),
        "{text}"
    );
    assert!(read_cut(&format!("{} and then", with("next_action", json!("x")))).is_ok());
    assert_eq!(codes(read_cut("{\"outcome\": \"complete\"}")), ["missing_field"]);
}

#[test]
fn w17_a_correction_names_each_fault_and_repeats_the_form() {
    let declared = ["findings".to_owned()];
    let expected = Expected { outputs: &declared };
    let faults = read(
        "{\"outcome\": \"complete\",\n \"summry\": \"x\"}",
        &expected,
        false,
    )
    .expect_err("faults");
    let first = correction(&faults, 1, &expected);
    for part in [
        "- line 2, column 2: there is no field `summry` (at `/summry`); did you mean `summary`?\n",
        "- line 1, column 1: the field `summary` is missing (at `/summary`)\n",
        "\"outputs\": { \"findings\": \"…\" }",
        "exactly one fenced `json` block",
    ] {
        assert!(first.contains(part), "{part}\n---\n{first}");
    }
    assert!(!first.contains("last return"));
    assert!(correction(&faults, MAX_RETURNS, &expected).contains("last return"));
}

#[test]
fn w17_a_correction_stays_short_however_many_faults() {
    let report = json!({ "outcome": "complete", "summary": "x", "decisions": vec![0; 5_000] }).to_string();
    let faults = read_plainly(&report).expect_err("faults");
    assert_eq!(faults.len(), 5_001);
    let text = correction(&faults, 1, &Expected::default());
    assert!(
        text.contains("and 4971 more faults") && text.len() < 8_000,
        "{text}"
    );
}

#[test]
fn p8_a_missing_deliverable_is_named_in_the_correction() {
    let faults = [
        missing_deliverable("docs/notes.md".as_ref(), false),
        missing_deliverable("docs/empty.md".as_ref(), true),
    ];
    let text = correction(&faults, 1, &Expected::default());
    assert!(text.contains("`docs/notes.md` does not exist"), "{text}");
    assert!(text.contains("`docs/empty.md` is empty"), "{text}");
    assert!(text.contains("Make each file"), "{text}");
}

#[test]
fn w15_the_form_is_a_report_that_would_be_accepted() {
    for outputs in [vec![], vec!["findings".to_owned(), "risks".to_owned()]] {
        let expected = Expected { outputs: &outputs };
        let mut form = String::new();
        write_form(&mut form, &expected);
        let report = read(&form, &expected, false).unwrap_or_else(|faults| panic!("{faults:?}\n{form}"));
        assert_eq!(report.outcome, Outcome::Complete);
    }
}

fn text() -> impl Strategy<Value = String> {
    "[a-zé🙂{}\\[\\]`~\"'\\\\\n #:-]{0,40}".prop_map(|text| format!("t{text}"))
}

fn any_report() -> impl Strategy<Value = Report> {
    let decisions = prop::collection::vec((text(), prop::option::of(text())), 0..3).prop_map(|list| {
        list.into_iter()
            .map(|(title, why)| Decision { title, why })
            .collect()
    });
    let checks = prop::collection::vec(prop::option::of(text()), 0..3).prop_map(|list| {
        list.into_iter()
            .map(|detail| Check {
                kind: CheckKind::Lint,
                status: CheckStatus::NotRun,
                detail,
            })
            .collect()
    });
    let blockers = prop::collection::vec((text(), prop::option::of(text())), 0..3).prop_map(|list| {
        list.into_iter()
            .map(|(title, needs)| Blocker { title, needs })
            .collect()
    });
    let references = prop::collection::vec(text(), 0..3).prop_map(|list| {
        list.into_iter()
            .map(|value| Reference {
                kind: ReferenceKind::Url,
                value,
            })
            .collect()
    });
    let outputs = prop::collection::btree_map(text(), text(), 0..3);
    (
        text(),
        decisions,
        checks,
        blockers,
        references,
        outputs,
        prop::option::of(text()),
    )
        .prop_map(
            |(summary, decisions, checks, blockers, references, outputs, next_action)| Report {
                outcome: Outcome::Partial,
                summary,
                decisions,
                checks,
                blockers,
                references,
                outputs,
                next_action,
            },
        )
}

fn prose() -> impl Strategy<Value = String> {
    r#"([a-zé .,'"\[\]}]|\{[a-z]+\}|\{ [a-z]|\n){0,60}"#
}

proptest! {
    /// W16: whatever surrounds it.
    #[test]
    fn a_report_is_found_again(report in any_report(), before in prose(), after in prose(), pretty: bool, fence in 0..5) {
        let json = if pretty { serde_json::to_string_pretty(&report) } else { serde_json::to_string(&report) };
        let json = json.expect("it writes");
        let answer = match fence {
            0 => format!("{before}\n{json}\n{after}"),
            1 => format!("{before}\n```json\n{json}\n```\n{after}\n{{\"other\": 1}}"),
            2 => format!("{before}\n  ~~~~JSON x\n{json}\n  ~~~~\n{after}"),
            3 => format!("{before}\n```\n{json}\n```\n{after}"),
            _ => format!("{before}\n```json\n{json}"),
        };
        prop_assert_eq!(read_plainly(&answer), Ok(report), "{}", answer);
    }

    #[test]
    fn never_panics(answer: String, cut: bool) {
        let _result = read(&answer, &Expected::default(), cut);
    }

    #[test]
    fn never_panics_on_what_looks_like_a_report(
        answer in r#"(\{|\}|\[|\]|"|'|:|,|\\|`{3}|~{3}|json|\n|\r| |é|"outcome"|"complete"|"summary"|null|1){0,40}"#,
    ) {
        match read_plainly(&answer) {
            Ok(_) => {}
            Err(faults) => {
                prop_assert!(!faults.is_empty());
                prop_assert!(!correction(&faults, 1, &Expected::default()).is_empty());
            }
        }
    }
}

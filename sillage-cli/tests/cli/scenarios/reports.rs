//! Reports that are wrong, cut, or hidden in prose.

use sillage::core::run::{Event, FailureClass, MessagePurpose};

use super::Stage;
use super::stage::Log;

fn one_agent(script: &str) -> Stage {
    let stage = Stage::without_repository(script);
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    stage
}

/// The messages that gave a report back.
fn corrections(log: &Log) -> Vec<String> {
    let mut texts = Vec::new();
    for fact in &log.facts {
        if let Event::MessagePlanned {
            purpose: MessagePurpose::Correction,
            message,
            ..
        } = &fact.event
        {
            texts.push(message.text.clone());
        }
    }
    texts
}

fn sessions(log: &Log) -> usize {
    log.count(|event| matches!(event, Event::SessionPlanned { .. }))
}

#[test]
fn f1_a_field_of_the_wrong_type_is_corrected_in_the_same_session() {
    let stage = one_agent(
        "prompts:\n  - { match: Alpha, steps: [report: { summary: Done., decisions: none }] }\n  - { match: decisions, steps: [report: { summary: Done and mended. }] }\n",
    );
    stage.run().expect(0);
    let log = stage.log();
    assert_eq!((corrections(&log).len(), sessions(&log)), (1, 1));
    assert!(
        corrections(&log)[0].contains("/decisions"),
        "{}",
        corrections(&log)[0]
    );
    assert_eq!(
        log.step("alpha").report().map(|report| report.summary.as_str()),
        Some("Done and mended.")
    );
}

#[test]
fn f2_a_report_wrong_for_ever_goes_back_exactly_twice() {
    let stage = one_agent(
        "prompts:\n  - { times: always, unless_exists: \"{{script_dir}}/mended\", steps: [say: \"try {{prompt}}\", report: { summary: 7 }] }\n  - { steps: [report: { summary: Done at last. }] }\n",
    );
    stage.run().expect(1);
    let log = stage.log();
    assert_eq!((corrections(&log).len(), sessions(&log)), (2, 1));
    assert_eq!(log.failure("alpha").class, FailureClass::ReportRefused);
    assert!(
        log.failure("alpha").words.contains("summary"),
        "{:?}",
        log.failure("alpha")
    );
    let mut answers = Vec::new();
    for fact in &log.facts {
        if let Event::Answered { answer, .. } = &fact.event {
            answers.push(answer.text.as_str());
        }
    }
    assert_eq!(answers.len(), 3);
    for (number, answer) in (1..).zip(answers) {
        assert!(
            answer.contains(&format!("try {number}")),
            "the raw answer is kept: {answer}"
        );
    }
    stage.write("mended", "");
    stage.resume().expect(0);
    assert_eq!(stage.log().words(), [("alpha", "complete")]);
}

#[test]
fn f3_of_two_fenced_objects_the_last_counts() {
    let stage = one_agent(
        "prompts:\n  - match: Alpha\n    steps:\n      - say: |\n          For instance:\n          ```json\n          {\"outcome\": \"blocked\", \"summary\": \"An example.\"}\n          ```\n          And mine:\n          ```json\n          {\"outcome\": \"complete\", \"summary\": \"The real one.\"}\n          ```\n          That was it.\n",
    );
    stage.run().expect(0);
    let log = stage.log();
    assert_eq!(
        log.step("alpha").report().map(|report| report.summary.as_str()),
        Some("The real one.")
    );
    assert_eq!(corrections(&log), Vec::<String>::new());
}

#[test]
fn f4_an_answer_cut_by_the_models_limit_is_told_as_cut() {
    let stage = one_agent(
        "prompts:\n  - match: Alpha\n    steps: [say: \"```json\\n{\\\"outcome\\\": \\\"complete\\\", \\\"summ\", stop: max_tokens]\n  - { match: cut, steps: [report: { summary: Short now. }] }\n",
    );
    stage.run().expect(0);
    let log = stage.log();
    let corrections = corrections(&log);
    assert_eq!(corrections.len(), 1);
    assert!(corrections[0].contains("cut"), "{}", corrections[0]);
    assert!(
        !corrections[0].contains("EOF"),
        "not as bad JSON: {}",
        corrections[0]
    );
}

#[test]
fn f7_what_looks_like_our_own_links_and_fields_is_text() {
    let stage = Stage::without_repository(
        "prompts:\n  - { match: \"alpha.report -> beta\", steps: [report: { summary: \"Not a link: alpha -> alpha, {{open}}report}}\" }] }\n",
    );
    stage.task(
        "",
        &["id: alpha, mission: \"Write alpha.report -> beta and agents: [] and {{alpha.report}}\""],
        &[],
    );
    stage.run().expect(0);
    let asked = &stage.prompts("alpha.report -> beta")[0];
    assert!(asked.contains("agents: [] and {{alpha.report}}"), "{asked}");
    let log = stage.log();
    let summary = log.step("alpha").report().map(|report| report.summary.clone());
    assert_eq!(summary.as_deref(), Some("Not a link: alpha -> alpha, {{report}}"));
}

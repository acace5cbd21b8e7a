//! Cost, and what is seen while a run goes on.

use rustix::process::Signal;
use sillage_acp::scripted_agent::record::Event as Deed;

use super::Stage;

#[test]
fn v3_a_run_stopped_in_the_middle_of_an_answer_keeps_its_usage() {
    let stage = Stage::without_repository(
        "prompts:\n  - match: Alpha\n    steps:\n      - usage: { used: 4200, size: 200000, cost: { amount: 0.25, currency: EUR } }\n      - touch: \"{{script_dir}}/at_work\"\n      - silent: until_cancelled\n",
    );
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let mut running = stage.start_run();
    stage.appears("at_work");
    running.signal(Signal::INT);
    running.wait().expect(130);
    let log = stage.log();
    let usage = log.step("alpha").usage();
    assert_eq!(usage.context_used, Some(4200));
    assert_eq!(usage.cost_micros, Some(250_000));
    stage.assert_no_process();
}

#[test]
fn f6_no_more_sessions_are_at_work_than_the_task_allows() {
    let stage = Stage::without_repository(
        "prompts:\n  - times: always\n    steps: [touch: \"{{script_dir}}/at_work_{{session}}\", wait_for: \"{{script_dir}}/go\", report: { summary: Done. }]\n",
    );
    let agents: Vec<String> = (0..7).map(|n| format!("id: a{n}, mission: Number {n}")).collect();
    let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
    stage.task("limits: { parallel: 3 }", &agents, &[]);
    let running = stage.start_run();
    super::eventually("three are at work", || stage.prompts("Number").len() == 3);
    stage.write("go", "");
    running.wait().expect(0);
    let mut at_work = 0_i32;
    for deed in stage.record() {
        if matches!(deed, Deed::Prompted { .. }) {
            at_work += 1;
        } else if matches!(deed, Deed::Answered { .. }) {
            at_work -= 1;
        }
        assert!(at_work <= 3);
    }
    assert_eq!(stage.prompts("Number").len(), 7);
}

//! R24, R25: `sillage estimate`.

use crate::{Ended, Sandbox};

const TASK: &str = r#"
task: Six in a row
limits: { parallel: 2 }
agents:
  - { id: first, mission: Begin., model: m, effort: low }
  - { id: a, mission: Work., model: m, effort: low }
  - { id: b, mission: Work., model: m, effort: low }
  - { id: c, mission: Work., model: m, effort: high }
  - { id: "an-agent-with-a-name-that-is-longer-than-most-names-are", mission: Work., model: m, effort: high }
links: [ first -> a, first -> b, first -> c, "first -> an-agent-with-a-name-that-is-longer-than-most-names-are" ]
"#;

fn estimate(sandbox: &Sandbox, more: &[&str]) -> Ended {
    sandbox.write("task.yaml", TASK);
    sandbox.run(["estimate", "task.yaml", "--data-dir", "data"].iter().chain(more))
}

#[test]
fn r25_without_a_past_it_is_said_to_be_a_guess_and_nothing_is_written() {
    let sandbox = Sandbox::new();
    let ended = estimate(&sandbox, &[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.starts_with("Six in a row: "), "{}", ended.stdout);
    assert!(ended.stdout.contains("a guess: there is no past session"));
    assert!(ended.stdout.contains("with parallel 4: "), "{}", ended.stdout);
    assert!(!sandbox.path("data").exists());
}

#[test]
fn r24_a_program_gets_the_median_the_range_the_agents_the_path_and_what_limits_cost() {
    let sandbox = Sandbox::new();
    let ended = estimate(&sandbox, &["--json"]);
    let answer = ended.json();
    let ms = |name: &str| answer[name].as_u64().expect("milliseconds");
    assert!(ms("low_ms") < ms("typical_ms") && ms("typical_ms") < ms("high_ms"));
    assert_eq!((ms("parallel"), ms("sessions"), ms("replays")), (2, 0, 1000));
    let first = &answer["agents"][0];
    assert_eq!(
        (&first["agent"], &first["start_ms"], &first["basis"]["source"]),
        (&"first".into(), &0.into(), &"prior".into())
    );
    let path = answer["critical_path"].as_array().expect("a path");
    assert_eq!(
        (&path[0]["agent"], &path[0]["because"]),
        (&"first".into(), &"launch".into())
    );
    assert_eq!(answer["limits"][0]["lifted"]["parallel"], 4);
    // The same inputs, the same figures; under another limit, others.
    assert_eq!(estimate(&sandbox, &["--json"]).stdout, ended.stdout);
    let wide = estimate(&sandbox, &["--json", "--parallel", "4"]).json();
    assert!(wide["typical_ms"].as_u64() < Some(ms("typical_ms")));
    assert_eq!(wide["limits"], serde_json::json!([]));
}

#[test]
fn a_faulty_task_is_told_as_by_check() {
    let sandbox = Sandbox::new();
    sandbox.write("task.yaml", "task: Nothing\nagents: []\n");
    let ended = sandbox.run(["estimate", "task.yaml", "--json"]);
    assert_eq!(ended.code, 2);
    assert_eq!(ended.json()["ok"], false);
}

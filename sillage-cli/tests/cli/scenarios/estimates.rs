//! R24, R27: what `run` foretells, and what came of it.

use super::Stage;

/// Beta's first report is wrong.
const SCRIPT: &str = r#"
prompts:
  - { match: Beta, steps: [wait: 30, say: no report] }
  - { times: always, steps: [wait: 30, report: { summary: It is done. }] }
"#;

#[test]
fn r27_a_run_tells_an_estimate_and_its_recap_holds_it_against_what_happened() {
    let stage = Stage::without_repository(SCRIPT);
    let agents = ["id: alpha, mission: Alpha", "id: beta, mission: Beta"];
    stage.task("", &agents, &["alpha -> beta"]);
    let told = stage
        .start(&["run", "task.yaml", "--yes"])
        .wait()
        .expect(0)
        .stdout;
    assert!(told.contains("  estimate   "), "{told}");
    assert!(told.contains("a guess: there is no past session"), "{told}");
    let recap = || stage.start(&["recap", "--json"]).wait().json();
    let first = recap()["result"]["estimate"].clone();
    assert_eq!(
        (&first["sessions"], &first["verdict"]),
        (&0.into(), &"sooner".into())
    );
    assert!(first["took_ms"].as_u64() > Some(0) && first["took_ms"].as_u64() < first["low_ms"].as_u64());
    // The second rests on the first.
    let told = stage
        .start(&["run", "task.yaml", "--yes"])
        .wait()
        .expect(0)
        .stdout;
    assert!(told.contains("rests on 2 past sessions"), "{told}");
    let told = stage.start(&["recap"]).wait().stdout;
    assert!(told.contains("\nestimated "), "{told}");
    let recap = recap();
    let second = &recap["result"]["estimate"];
    assert!(second["typical_ms"].as_u64() < Some(60_000), "{second}");
    let estimate = stage.start(&["estimate", "task.yaml", "--json"]).wait().json();
    assert_eq!(estimate["pairs"][0]["basis"]["sessions"], 4);
}

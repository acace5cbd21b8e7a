//! An agent with a worktree of its own that writes into the person's checkout (G6).

use sillage::core::run::{Event, StraySign};

use super::stage::Log;
use super::{Stage, eventually};

/// What was told of an agent's writes.
fn told(log: &Log, agent: &str) -> Vec<(String, StraySign)> {
    let work = log.step(agent).work().expect("a worktree");
    let writes = work.stray.iter();
    writes
        .map(|write| (write.path.display().to_string(), write.sign))
        .collect()
}

#[test]
fn g6_a_write_into_the_persons_checkout_flags_the_step_and_names_the_file() {
    let stage = Stage::new(
        r#"
prompts:
  - match: Alpha
    steps:
      - write: { path: alpha.txt, content: a }
      - write: { path: "{{script_dir}}/work/README.md", content: "not here\n" }
      - run: { command: "echo x > {{script_dir}}/work/quiet.txt", quiet: true }
      - report: { summary: Alpha is done. }
"#,
    );
    stage.write("work/.gitignore", "ignored\n");
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    stage.write("work/loose.txt", "the person's own\n");
    let index = std::fs::read(stage.path("work/.git/index")).expect("git's own file");
    let outcome = stage.run().expect(0).outcome();
    assert_eq!(outcome["state"], "complete", "a flag is no failure");
    let now = std::fs::read(stage.path("work/.git/index")).expect("git's own file");
    assert_eq!(now, index, "looking writes nothing");
    let log = stage.log();
    let expected = [
        ("README.md".to_owned(), StraySign::Named),
        ("quiet.txt".to_owned(), StraySign::Alone),
    ];
    assert_eq!(told(&log, "alpha"), expected);
    for command in [
        &["status"][..],
        &["recap"],
        &["recap", "--markdown"],
        &["journal", "--errors"],
    ] {
        let said = stage.start(command).wait().expect(0).stdout;
        assert!(
            said.contains("README.md") && said.contains("quiet.txt"),
            "{command:?}: {said}"
        );
    }
    let json = stage.start(&["status", "--json"]).wait().expect(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        json["run"]["steps"][0]["stray_writes"][0]["path"], "README.md",
        "{json}"
    );
    stage.git(&["fsck", "--strict"]);
}

#[test]
fn g6_a_checkout_that_nobody_touched_flags_nobody() {
    let stage = Stage::new(
        "prompts:\n  - match: Alpha\n    steps: [write: { path: README.md, content: a }, report: { summary: Done. }]\n",
    );
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    stage.write("work/README.md", "# Changed by the person\n");
    stage.write("work/loose.txt", "the person's own\n");
    stage.run().expect(0);
    assert_eq!(
        stage
            .log()
            .count(|event| matches!(event, Event::StrayWrites { .. })),
        0
    );
}

#[test]
fn g6_a_write_before_the_engine_was_killed_is_still_told() {
    let stage = Stage::new(
        r#"
prompts:
  - match: Alpha
    steps:
      - write: { path: "{{script_dir}}/work/README.md", content: "not here\n" }
      - touch: "{{script_dir}}/at_work"
      - silent: until_cancelled
  - match: interrupted
    steps: [report: { summary: Alpha is done. }]
"#,
    );
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    let running = stage.start_run();
    stage.appears("at_work");
    running.kill();
    eventually("no process outlives the engine", || stage.processes().is_empty());
    stage.resume().expect(0);
    let expected = [("README.md".to_owned(), StraySign::Company)];
    assert_eq!(
        told(&stage.log(), "alpha"),
        expected,
        "who else was there is not known"
    );
}

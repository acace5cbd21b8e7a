//! Coordinators and their sub-agents: plans, what they launch, and what is left when it is cut.

use sillage::core::run::{Event, FailureClass, MessagePurpose};

use super::Stage;

/// Messages quote what came before them, so that what comes last is matched first.
const GROUP: &str = r#"
prompts:
  - match: How they ended
    times: always
    steps:
      - run: "cat api.txt docs.txt > both.txt"
      - report: { summary: Both parts are there. }
  - match: interrupted
    times: always
    steps: [write: { path: api.txt, content: "api\n" }, report: { summary: The api is there. }]
  - match: Part docs
    times: always
    steps: [run: "cat api.txt > docs.txt", report: { summary: Docs are there. }]
  - match: Part api
    times: always
    steps:
      - touch: "{{script_dir}}/at_work"
      - wait_for: "{{script_dir}}/go"
      - write: { path: api.txt, content: "api\n" }
      - report: { summary: The api is there. }
  - match: Build it
    times: always
    steps:
      - say: '{"units": [{"id": "u1", "title": "API"}, {"id": "u2", "title": "Docs"}], "sub_agents": [{"id": "api", "units": ["u1"], "mission": "Part api"}, {"id": "docs", "units": ["u2"], "mission": "Part docs", "after": ["api"]}]}'
"#;

const BUILD: &str = "id: build, mission: Build it, kind: dynamic, sub_agents: { max: 2, delegate: [mission], allow: [{ model: scripted, efforts: [low] }] }";

fn times(log: &super::stage::Log, step: u32, wanted: MessagePurpose) -> usize {
    log.count(|event| {
        matches!(event, Event::MessagePlanned { step: of, purpose, .. } if of.0 == step && *purpose == wanted)
    })
}

/// W22, R15, R18: sub-agents work on branches of their own, each from the work of those before it, and the coordinator
/// writes the report where all of their work is.
#[test]
fn a_group_works_on_branches_of_its_own_and_its_coordinator_sees_their_work() {
    let stage = Stage::new(GROUP);
    stage.task("", &[BUILD], &[]);
    stage.write("go", "");
    let before = stage.checkout();
    let outcome = stage.run().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    assert_eq!(stage.checkout(), before, "the person's checkout is as it was");
    let log = stage.log();
    let run = log.run.id().to_string();
    assert_eq!(
        log.words(),
        [
            ("build", "complete"),
            ("build/api", "complete"),
            ("build/docs", "complete")
        ]
    );
    let branches = [
        format!("sillage/{run}"),
        format!("sillage/steps/{run}/build"),
        format!("sillage/subs/{run}/build/api"),
        format!("sillage/subs/{run}/build/docs"),
    ];
    assert_eq!(stage.branches(), branches);
    for file in ["api.txt", "docs.txt"] {
        assert_eq!(stage.git(&["show", &format!("{}:{file}", branches[0])]), "api");
    }
    assert_eq!(
        stage.git(&["show", &format!("{}:both.txt", branches[0])]),
        "api\napi"
    );
    assert_eq!(stage.worktrees(), Vec::<std::path::PathBuf>::new());
    // The coordinator's session made the plan and wrote the report.
    assert_eq!(log.count(|event| matches!(event, Event::SessionOpened { .. })), 3);
    let recap = stage.start(&["recap"]).wait().expect(0).stdout;
    for told in ["build/api", "The api is there.", "build/docs"] {
        assert!(recap.contains(told), "{told}: {recap}");
    }
    let exchanges = stage
        .start(&["exchanges", "--agent", "build/api"])
        .wait()
        .expect(0)
        .stdout;
    assert!(
        exchanges.contains("Part api") && !exchanges.contains("Part docs"),
        "{exchanges}"
    );
    stage.assert_no_process();
}

/// R4, with sub-agents: their program was missing, and is installed.
#[test]
fn r4_sub_agents_whose_program_was_missing_are_launched_by_a_resume() {
    let stage = Stage::new(GROUP);
    stage.write("go", "");
    let mut settings: serde_json::Value =
        serde_json::from_str(&stage.sandbox.read("config.yaml")).expect("the settings are JSON");
    let missing = stage.path("bin/agent").display().to_string();
    let mut spare = settings["agents"][0].clone();
    spare["name"] = "spare".into();
    spare["command"] = missing.as_str().into();
    settings["agents"].as_array_mut().expect("a list").push(spare);
    stage.write("config.yaml", settings.to_string());
    let dynamic = BUILD.replace("{ model: scripted,", "{ model: spare/scripted,");
    let dynamic = dynamic.replace("delegate: [mission]", "delegate: [mission, model]");
    stage.write(
        "work/task.yaml",
        format!("task: T\nfolders: {{ write: [.] }}\nagents:\n  - {{ {dynamic}, model: scripted/scripted, effort: low }}\n"),
    );
    stage.commit("Add the task");
    stage.script(&GROUP.replace(
        "\"mission\": \"Part",
        "\"model\": \"spare/scripted\", \"mission\": \"Part",
    ));
    stage.run().expect(1);
    let log = stage.log();
    assert_eq!(
        log.words(),
        [
            ("build", "failed"),
            ("build/api", "failed"),
            ("build/docs", "not_run")
        ]
    );
    let failure = log.failure("build");
    assert_eq!(failure.class, FailureClass::SubAgentsLost);
    assert!(failure.words.contains(&missing), "{failure:?}");
    std::fs::create_dir_all(stage.path("bin")).expect("our own folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sillage"), &missing).expect("our own folder");
    stage.resume().expect(0);
    let log = stage.log();
    assert_eq!(
        log.words(),
        [
            ("build", "complete"),
            ("build/api", "complete"),
            ("build/docs", "complete")
        ]
    );
    assert_eq!(times(&log, 0, MessagePurpose::Plan), 1, "the plan stands");
    assert_eq!(
        stage.git(&["show", &format!("sillage/{}:both.txt", log.run.id())]),
        "api\napi"
    );
    stage.assert_no_process();
}

/// R5, R12: an engine killed while the coordinator gathers is taken up; who had answered is not asked again.
#[test]
fn r5_an_engine_killed_while_a_coordinator_gathers_is_taken_up() {
    let stage = Stage::new(GROUP);
    stage.task("", &[BUILD], &[]);
    let running = stage.start_run();
    stage.appears("at_work");
    let gathering = stage.status();
    let steps = &gathering["run"]["steps"];
    assert_eq!(
        (&steps[0]["state"], &steps[0]["waiting_for"]["what"]),
        (&"waiting".into(), &"sub_agents".into()),
        "{gathering}"
    );
    assert_eq!(steps[1]["of"], "build", "{gathering}");
    running.kill();
    stage.write("go", "");
    stage.resume().expect(0);
    let log = stage.log();
    assert_eq!(
        log.words(),
        [
            ("build", "complete"),
            ("build/api", "complete"),
            ("build/docs", "complete")
        ]
    );
    // By the agents' own record: the mission that is to be divided, and each part, went out once; the part that was cut
    // is gone on with.
    let asked = |part: &str| stage.prompts(part).len();
    assert_eq!((asked("Your mission"), asked("How they ended")), (3, 1));
    assert_eq!(times(&log, 0, MessagePurpose::Plan), 1);
    stage.assert_no_process();
}

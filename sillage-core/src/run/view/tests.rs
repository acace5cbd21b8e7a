use std::sync::Arc;

use super::*;
use crate::ports::runtime::{RuntimeError, Usage};
use crate::run::PlaceLimit;
use crate::run::tests::world::{Reply, World, report, task};
use crate::run::{Command, Input};

fn busy() -> Reply {
    let words = "usage limit\nreached".to_owned();
    Reply::Error(RuntimeError::Quota {
        words,
        resets_at: Some(Timestamp(1_700_000_000_000)),
    })
}

#[test]
fn r2_the_view_says_what_each_step_waits_for() {
    let mut definition = task(
        &["a", "b", "c", "d", "e", "f"],
        &[("a", "d"), ("e", "d"), ("d", "f")],
    );
    definition.parallel = 2.try_into().unwrap();
    let task = Arc::get_mut(&mut definition.task).unwrap();
    task.agents[1].model = "big".to_owned();
    task.agents[2].model = "big".to_owned();
    task.limits.models.insert("big".to_owned(), 1.try_into().unwrap());
    let mut world = World::new(definition);
    // a waits for a date and holds no place; e and b are at work, c is ready.
    world.script("a", [busy()]);
    world.script("b", [Reply::Silence]);
    world.script("e", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    let now = world.now.plus(Duration::from_secs(75));
    let view = RunView::of(&run, now);
    let states: Vec<&str> = view.steps.iter().map(|step| step.state).collect();
    assert_eq!(
        states,
        ["waiting", "running", "ready", "pending", "running", "pending"]
    );
    assert_eq!(
        view.steps[2].waiting_for,
        Some(WaitingFor::Place {
            model: Some("big".to_owned())
        })
    );
    assert_eq!(run.place_limit(StepIndex(2)), Some(PlaceLimit::Model("big")));
    assert_eq!(
        (run.place_limit(StepIndex(0)), run.place_limit(StepIndex(99))),
        (None, None)
    );
    let waits = "quota of account m, tried again at 1970-01-02T00:16:40Z";
    assert_eq!(view.steps[0].waiting_for.as_ref().unwrap().to_string(), waits);
    assert_eq!(
        (view.steps[0].waited, view.steps[0].worked),
        (Duration::from_secs(75), Duration::ZERO)
    );
    assert_eq!(
        view.graph_lines(),
        [
            "1  … a  waiting    0ms  waited 1m15s  waits for quota of account m, tried again at 1970-01-02T00:16:40Z",
            "   ● b  running    1m15s",
            "   ○ c  ready      waits for a place for model big",
            "   ● e  running    1m15s",
            "2  · d  pending    waits for a, e",
            "3  · f  pending    waits for d",
        ]
    );
}

#[test]
fn r2_without_a_limit_of_its_model_a_ready_step_waits_for_a_place() {
    let mut definition = task(&["a", "b"], &[]);
    definition.parallel = 1.try_into().unwrap();
    let mut world = World::new(definition);
    world.script("a", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    let step = &RunView::of(&run, world.now).steps[1];
    assert_eq!(step.waiting_for.as_ref().unwrap().to_string(), "a place");
    // A run that stops gives no places any more.
    world.input(&mut run, Input::Command(Command::Stop));
    assert_eq!(RunView::of(&run, world.now).steps[1].waiting_for, None);
    let run = world.go_on(run);
    assert_eq!(RunView::of(&run, world.now).steps[1].waiting_for, None);
}

#[test]
fn r2_every_end_has_its_state_and_its_glyph() {
    let mut world = World::new(task(&["a", "b", "c", "d", "e"], &[("a", "b"), ("c", "d")]));
    world.script("a", [Reply::text(&report("blocked"))]);
    world.script("c", [Reply::text(&report("partial"))]);
    world.script(
        "e",
        [Reply::Error(RuntimeError::Permanent {
            words: "no".to_owned(),
        })],
    );
    let run = world.run_to_end();
    let view = RunView::of(&run, world.now.plus(Duration::from_secs(3600)));
    assert_eq!((view.state, view.over), ("failed", true));
    assert_eq!(
        view.graph_lines(),
        [
            "1  ■ a  blocked    0ms",
            "   ◐ c  partial    0ms",
            "   ✗ e  failed     0ms",
            "2  - b  not_run    blocked by a",
            "   ✓ d  complete   0ms  after part of c",
        ]
    );
}

#[test]
fn w17_a_correction_says_which() {
    let mut world = World::new(task(&["a"], &[]));
    world.script("a", [Reply::text("oops"), Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    assert_eq!(
        RunView::of(&run, world.now).graph_lines(),
        ["1  ↻ a  correcting 0ms  attempt 1 of 2"]
    );
}

#[test]
fn r10_a_wait_that_a_stop_ends_is_counted_as_waited() {
    let mut world = World::new(task(&["a"], &[]));
    world.script("a", [busy()]);
    let mut run = world.start();
    world.settle(&mut run);
    world.now = world.now.plus(Duration::from_secs(40));
    world.input(&mut run, Input::Command(Command::Stop));
    let run = world.go_on(run);
    let step = &RunView::of(&run, world.now.plus(Duration::from_secs(999))).steps[0];
    assert_eq!((step.state, step.waited), ("cancelled", Duration::from_secs(40)));
}

#[test]
fn v4_the_view_in_json_names_sessions_and_leaves_the_unknown_unknown() {
    let mut world = World::new(task(&["a", "b"], &[("a", "b")]));
    world.script("a", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    let session = run.steps()[0].session().unwrap().id();
    let usage = Usage {
        input_tokens: Some(12),
        ..Usage::default()
    };
    world.input(&mut run, Input::UsageCounted { session, usage });
    let json = serde_json::to_value(RunView::of(&run, world.now.plus(Duration::from_millis(250)))).unwrap();
    let expected = serde_json::json!({
        "agent": "a", "of": null, "sub_agents": [],
            "succeeded": false, "title": null, "model": "m", "effort": "low", "state": "running", "glyph": "●",
        "waiting_for": null, "not_run": null, "partial_upstream": [], "started": 1_000_000, "ended": null, "worked_ms": 250, "waited_ms": 0,
        "corrections": 0, "corrections_allowed": 2, "conflict": null, "stray_writes": [], "session": session.to_string(), "pid": 1,
        "usage": {
            "input_tokens": 12, "output_tokens": null, "cache_read_tokens": null, "cache_write_tokens": null,
            "costs": [], "price_unknown": true
        },
        "parents": [], "layer": 0
    });
    assert_eq!(json["steps"][0], expected);
    assert_eq!(
        json["steps"][1]["waiting_for"],
        serde_json::json!({"what": "upstream", "agents": ["a"]})
    );
    assert_eq!(json["steps"][1]["parents"], serde_json::json!(["a"]));
    assert_eq!(
        (&json["run"], &json["state"], &json["over"]),
        (&"r1".into(), &"running".into(), &false.into())
    );
}

#[test]
fn layers_are_the_longest_way_down() {
    let mut world = World::new(task(
        &["d", "c", "b", "a"],
        &[("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")],
    ));
    let run = world.start();
    let layers: Vec<u32> = RunView::of(&run, world.now)
        .steps
        .iter()
        .map(|step| step.layer)
        .collect();
    assert_eq!(layers, [3, 2, 1, 0]);
}

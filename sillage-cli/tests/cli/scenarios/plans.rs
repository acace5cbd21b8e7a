//! Coordinators: a plan is checked before anything starts, and what came of the sub-agents is told (W19–W23).

use serde_json::{Value, json};
use sillage::core::run::{Event, FailureClass, MessagePurpose};
use sillage_acp::scripted_agent::record::Event as Deed;

use super::Stage;
use super::stage::Log;

/// A dynamic agent whose coordinator writes missions, with this cap.
fn dynamic(max: u32) -> String {
    format!(
        "id: build, kind: dynamic, mission: Build all of it, sub_agents: {{ max: {max}, delegate: [mission], allow: \
         [{{ model: scripted, efforts: [low] }}] }}"
    )
}

/// A plan with these sub-agents, each with so many units of its own.
fn plan(sub_agents: &[(&str, usize)]) -> String {
    let unit = |id: &str, number: usize| format!("{id}-{number}");
    let units: Vec<Value> = sub_agents
        .iter()
        .flat_map(|(id, count)| (0..*count).map(move |number| json!({ "id": unit(id, number) })))
        .collect();
    let sub_agents: Vec<Value> = sub_agents
        .iter()
        .map(|(id, count)| {
            let units: Vec<String> = (0..*count).map(|number| unit(id, number)).collect();
            json!({ "id": id, "units": units, "mission": format!("Part {id} of the work") })
        })
        .collect();
    format!(
        "```json\n{}\n```\n",
        json!({ "units": units, "sub_agents": sub_agents })
    )
}

/// The plan of forty that many a model has written.
fn plan_of_forty() -> String {
    let ids: Vec<String> = (0..40).map(|number| format!("s{number}")).collect();
    let sub_agents: Vec<(&str, usize)> = ids.iter().map(|id| (id.as_str(), 1)).collect();
    plan(&sub_agents)
}

/// A script in JSON, which is YAML too.
fn script(rules: &[Value]) -> String {
    format!("prompts: {}\n", json!(rules))
}

fn says(part: &str, text: &str) -> Value {
    json!({ "match": part, "steps": [{ "say": text }] })
}

/// Messages of a purpose, as they were stored.
fn messages(log: &Log, wanted: MessagePurpose) -> Vec<String> {
    let mut texts = Vec::new();
    for fact in &log.facts {
        if let Event::MessagePlanned { purpose, message, .. } = &fact.event
            && *purpose == wanted
        {
            texts.push(message.text.clone());
        }
    }
    texts
}

fn refusals(log: &Log) -> usize {
    log.count(|event| matches!(event, Event::PlanRefused { .. }))
}

fn sessions(log: &Log) -> usize {
    log.count(|event| matches!(event, Event::SessionPlanned { .. }))
}

#[test]
fn f5_a_plan_of_forty_is_refused_three_times_and_nothing_is_launched() {
    let always = json!({ "times": "always", "unless_exists": "{{script_dir}}/mended", "steps": [{ "say": plan_of_forty() }] });
    let stage = Stage::without_repository(&script(&[
        always,
        json!({ "match": "How they ended", "steps": [{ "report": { "summary": "All built." } }] }),
        says("## Your plan", &plan(&[("api", 1)])),
        json!({ "match": "Part api", "steps": [{ "report": { "summary": "Built." } }] }),
    ]));
    stage.task("", &[&dynamic(8)], &[]);
    stage.run().expect(1);
    let log = stage.log();
    assert_eq!((refusals(&log), sessions(&log)), (3, 1));
    assert_eq!(log.run.steps().len(), 1, "no sub-agent ever was");
    assert_eq!(
        stage
            .record()
            .iter()
            .filter(|deed| matches!(deed, Deed::Prompted { .. }))
            .count(),
        3
    );
    let failure = log.failure("build");
    assert_eq!(failure.class, FailureClass::PlanRefused);
    assert!(
        failure.words.contains("40 sub-agents: at most 8 are allowed"),
        "{failure:?}"
    );
    let corrections = messages(&log, MessagePurpose::PlanCorrection);
    assert_eq!(corrections.len(), 2);
    assert!(
        corrections[1].contains("nothing was launched") && corrections[1].contains("the last"),
        "{corrections:?}"
    );

    // What failed can be gone on with (R1, R4).
    stage.write("mended", "");
    stage.resume().expect(0);
    assert_eq!(stage.prompts("Part api").len(), 1);
}

#[test]
fn f5_a_refused_plan_comes_back_corrected_in_the_same_session() {
    let stage = Stage::without_repository(&script(&[
        says("Build all of it", &plan_of_forty()),
        says("at most 8 are allowed", &plan(&[("api", 2), ("docs", 1)])),
        json!({ "match": "Part api", "steps": [{ "report": { "summary": "The interface is built." } }] }),
        json!({ "match": "Part docs", "steps": [{ "report": { "summary": "The page is written." } }] }),
        json!({ "match": "How they ended", "steps": [{ "report": { "summary": "All built." } }] }),
    ]));
    stage.task("", &[&dynamic(8)], &[]);
    stage.run().expect(0);
    let log = stage.log();
    assert_eq!(
        (refusals(&log), sessions(&log)),
        (1, 3),
        "the coordinator and two sub-agents"
    );
    assert_eq!(
        log.step("build").report().map(|report| report.summary.as_str()),
        Some("All built.")
    );
    let synthesis = messages(&log, MessagePurpose::Synthesis);
    assert_eq!(synthesis.len(), 1);
    for summary in ["The interface is built.", "The page is written."] {
        assert!(synthesis[0].contains(summary), "{}", synthesis[0]);
    }
    // The units of each were added to its mission, and no others.
    let api = stage.prompts("Part api");
    assert!(
        api[0].contains("- api-0") && api[0].contains("- api-1") && !api[0].contains("docs-0"),
        "{}",
        api[0]
    );
}

#[test]
fn f6_ten_sub_agents_beside_two_agents_keep_within_the_limit() {
    let ids: Vec<String> = (0..10).map(|number| format!("s{number}")).collect();
    let ten: Vec<(&str, usize)> = ids.iter().map(|id| (id.as_str(), 1)).collect();
    let gated = |part: &str| {
        json!({ "match": part, "times": "always", "steps": [
            { "wait_for": "{{script_dir}}/go" }, { "report": { "summary": "Done." } }] })
    };
    let stage = Stage::without_repository(&script(&[
        says("## Your plan", &plan(&ten)),
        json!({ "match": "How they ended", "steps": [{ "report": { "summary": "All built." } }] }),
        gated("Part s"),
        gated("Beside it"),
    ]));
    stage.task(
        "limits: { parallel: 3 }",
        &[
            &dynamic(10),
            "id: x, mission: Beside it",
            "id: y, mission: Beside it",
        ],
        &[],
    );
    let running = stage.start_run();
    super::eventually("two agents and a sub-agent are at work", || {
        stage.prompts("Beside it").len() + stage.prompts("Part s").len() == 3
    });
    stage.write("go", "");
    running.wait().expect(0);
    let (mut at_work, mut most) = (0_i32, 0_i32);
    for deed in stage.record() {
        if matches!(deed, Deed::Prompted { .. }) {
            at_work += 1;
        } else if matches!(deed, Deed::Answered { .. }) {
            at_work -= 1;
        }
        most = most.max(at_work);
    }
    assert_eq!(most, 3, "as many as may be, and never more");
    let told: Vec<usize> = ids
        .iter()
        .map(|id| stage.prompts(&format!("Part {id} of")).len())
        .collect();
    assert_eq!(told, [1; 10], "each sub-agent was asked once");
}

/// Ten units, three sub-agents, one of them lost: the group's report is `outcome`.
fn group_with_a_loss(outcome: &str) -> Stage {
    let done = |part: &str, file: &str| {
        json!({ "match": part, "steps": [
            { "write": { "path": file, "content": "done\n" } },
            { "report": { "summary": format!("{file} is written.") } }] })
    };
    let synthesis = |part: &str, outcome: &str| {
        json!({ "match": part, "times": "always", "steps": [
            { "report": { "outcome": outcome, "summary": "Two of three parts are done." } }] })
    };
    let stage = Stage::new(&script(&[
        says("## Your plan", &plan(&[("one", 4), ("two", 3), ("three", 3)])),
        synthesis("How they ended", outcome),
        done("Part one of", "one.md"),
        done("Part two of", "two.md"),
        // Wrong for ever: refused three times.
        json!({ "match": "Part three of", "steps": [{ "report": { "summary": 7 } }] }),
        synthesis("cannot be `complete`", outcome),
        synthesis("is missing", outcome),
        json!({ "match": "summary", "times": "always", "steps": [{ "report": { "summary": 7 } }] }),
    ]));
    stage.task(
        "",
        &[&dynamic(4), "id: after, mission: What follows"],
        &["build -> after"],
    );
    let mut rules = stage.sandbox.read("script.yaml");
    rules = rules.replace(
        "prompts: [",
        "prompts: [{\"match\": \"What follows\", \"steps\": [{\"report\": {\"summary\": \"Followed.\"}}]},",
    );
    stage.write("script.yaml", rules);
    stage
}

#[track_caller]
fn assert_partial_with_two_merged(stage: &Stage) {
    let ended = stage.run().expect(3);
    assert_eq!(ended.outcome()["state"], "partial", "{}", ended.stdout);
    let log = stage.log();
    assert_eq!(log.run.steps().len(), 5);
    let integration = format!("sillage/{}", log.run.id());
    let files = stage.git(&["ls-tree", "--name-only", &integration]);
    let files: Vec<&str> = files.lines().collect();
    for file in ["one.md", "two.md"] {
        assert!(files.contains(&file), "{file} is not on {integration}: {files:?}");
    }
    let recap = stage.start(&["recap"]).wait().expect(0).stdout;
    for part in [
        "build/one",
        "build/two",
        "build/three",
        "one.md is written.",
        "two.md is written.",
    ] {
        assert!(recap.contains(part), "{part} is missing in {recap}");
    }
    let synthesis = messages(&log, MessagePurpose::Synthesis);
    assert!(
        synthesis[0].contains("`three` (three-0, three-1, three-2) is lost"),
        "{}",
        synthesis[0]
    );
    assert!(synthesis[0].contains("is merged into"), "{}", synthesis[0]);
    // What follows the group runs on its partial report.
    assert_eq!(stage.prompts("What follows").len(), 1);
    assert!(stage.prompts("What follows")[0].contains("Two of three parts are done."));
}

#[test]
fn w23_a_group_that_lost_one_of_three_is_partial_with_the_work_of_the_others() {
    assert_partial_with_two_merged(&group_with_a_loss("partial"));
}

#[test]
fn w23_a_coordinator_that_calls_it_complete_all_the_same_is_not_believed() {
    assert_partial_with_two_merged(&group_with_a_loss("complete"));
}

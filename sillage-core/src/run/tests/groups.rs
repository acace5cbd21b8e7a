//! Coordinators and their sub-agents (W19–W23).

use super::world::task;
use crate::id::StepIndex;
use crate::run::{Phase, Run, RunView, WaitingFor};
use crate::task::AgentDefinition;
use crate::time::Timestamp;

fn sub_agent(id: &str, model: &str) -> AgentDefinition {
    AgentDefinition {
        id: id.to_owned(),
        mission: "Part of it.".to_owned(),
        model: model.to_owned(),
        effort: "low".to_owned(),
        ..AgentDefinition::default()
    }
}

#[test]
fn w22_steps_of_sub_agents_come_after_the_tasks_and_are_named_after_their_coordinator() {
    let definition = task(&["a", "build", "c"], &[("a", "build"), ("build", "c")]).with_repository();
    let mut run = Run::start(Run::launch(Timestamp(0), definition)).unwrap();
    let build = StepIndex(1);
    run.add_sub_agents(
        build,
        vec![sub_agent("api", "other"), sub_agent("c", "m")],
        &[(0, 1)],
    )
    .unwrap();
    let names: Vec<&str> = run.step_names().collect();
    assert_eq!(names, ["a", "build", "c", "build/api", "build/c"]);
    assert_eq!(run.step_named("build/c"), Some(StepIndex(4)));
    assert_eq!(run.coordinator_of(StepIndex(4)), Some(build));
    assert_eq!(run.coordinator_of(StepIndex(2)), None);
    assert_eq!(
        run.sub_agents_of(build).collect::<Vec<_>>(),
        [StepIndex(3), StepIndex(4)]
    );
    assert_eq!(run.agent(StepIndex(3)).model, "other");
    assert_eq!(run.graph().parents(4), [3]);
    assert!(run.has_worktree(StepIndex(3)), "R15: as its coordinator has one");
    assert_eq!(
        run.definition().step_branch("build/api"),
        "sillage/subs/r1/build/api"
    );
    let phases: Vec<&Phase> = run.steps()[3..].iter().map(|step| step.phase()).collect();
    assert_eq!(phases, [&Phase::Ready, &Phase::Pending]);
}

#[test]
fn r3_a_sub_agent_goes_before_what_waits_for_less() {
    let definition = task(&["build", "x", "after", "later"], &[("build", "after")]);
    let mut run = Run::start(Run::launch(Timestamp(0), definition)).unwrap();
    let agents = vec![sub_agent("last", "m"), sub_agent("first", "m")];
    run.add_sub_agents(StepIndex(0), agents, &[(1, 0)]).unwrap();
    // `first` has `last`, the group's report and `after` to come; the coordinator itself waits here like any other.
    assert_eq!(run.places.startable(), [5, 0, 1, 3]);
}

#[test]
fn w22_the_picture_shows_sub_agents_under_their_coordinator() {
    let definition = task(&["build", "beside", "after"], &[("build", "after")]);
    let mut run = Run::start(Run::launch(Timestamp(0), definition)).unwrap();
    run.add_sub_agents(StepIndex(0), vec![sub_agent("api", "m")], &[])
        .unwrap();
    run.pass_to(StepIndex(0), Phase::Gathering, Timestamp(1));
    let view = RunView::of(&run, Timestamp(2));
    let order: Vec<&str> = view.in_order().iter().map(|step| step.agent.as_str()).collect();
    assert_eq!(order, ["build", "build/api", "beside", "after"]);
    assert_eq!(view.steps[0].sub_agents, ["build/api"]);
    assert_eq!(view.steps[0].state, "waiting");
    assert_eq!(
        view.steps[0].waiting_for,
        Some(WaitingFor::SubAgents { left: 1, of: 1 })
    );
    assert_eq!(view.steps[3].of.as_deref(), Some("build"));
    assert_eq!(
        view.graph_lines()[0],
        "1  ◇ build      waiting    waits for 1 of its 1 sub-agents"
    );
}

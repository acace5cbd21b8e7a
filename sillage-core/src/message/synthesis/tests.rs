use super::*;
use crate::folders::Folders;
use crate::message::{Form, MessageParts, REPORTS_BUDGET, compose};
use crate::plan::Unit;
use crate::report::{Outcome, Report};

fn sub_agent(id: &str, units: &[&str]) -> SubAgent {
    SubAgent {
        id: id.to_owned(),
        units: units.iter().map(|unit| (*unit).to_owned()).collect(),
        mission: format!("Do the part of {id}."),
        resources: Vec::new(),
        deliverable: None,
        model: "sonnet".to_owned(),
        effort: "low".to_owned(),
        after: Vec::new(),
    }
}

fn plan() -> Plan {
    let units = ["u1", "u2", "u3", "u4"].map(|id| Unit {
        id: id.to_owned(),
        title: format!("Part {id}"),
    });
    Plan {
        units: units.to_vec(),
        sub_agents: vec![
            sub_agent("api", &["u1", "u2"]),
            sub_agent("docs", &["u3"]),
            sub_agent("cli", &["u4"]),
        ],
        why: None,
    }
}

fn report(summary: &str) -> Report {
    Report {
        outcome: Outcome::Complete,
        summary: summary.to_owned(),
        decisions: Vec::new(),
        checks: Vec::new(),
        blockers: Vec::new(),
        references: Vec::new(),
        outputs: [("details".to_owned(), summary.repeat(20))].into(),
        next_action: None,
    }
}

fn upstream<'a>(agent: &'a str, report: &'a Report) -> Upstream<'a> {
    Upstream {
        agent,
        title: None,
        report,
        full: Path::new("/data/steps/build/api/report.json"),
        ports: &[],
        apart: None,
    }
}

const LOST: SubAgentEnd<'_> = SubAgentEnd::Lost {
    why: "failed: the agent exited\nwith 1",
    branch: Some("sillage/r1/build-cli"),
};

/// A group with this end of its last sub-agent, the others having reported.
fn with<R>(last: Option<SubAgentEnd<'_>>, test: impl FnOnce(SynthesisParts<'_>) -> R) -> R {
    let (plan, done) = (plan(), report("It is done."));
    let agent = AgentDefinition {
        id: "build".to_owned(),
        mission: "Build all of it.".to_owned(),
        outputs: vec!["risks".to_owned()],
        deliverable: Some(Deliverable {
            text: None,
            files: vec!["docs/all.md".into()],
        }),
        ..AgentDefinition::default()
    };
    let reported = |id, merged| SubAgentEnd::Reported {
        report: upstream(id, &done),
        merged,
    };
    let last = last.unwrap_or(reported("cli", None));
    let ends = [reported("api", Some("abc123")), reported("docs", None), last];
    test(SynthesisParts {
        agent: &agent,
        plan: &plan,
        ends: &ends,
        integration: Some("sillage/r1/work"),
        reports_budget: REPORTS_BUDGET,
        time_left: Some(Duration::from_secs(90)),
    })
}

#[test]
fn w22_the_coordinator_is_told_how_each_ended_and_what_to_write() {
    let text = with(None, |parts| synthesis(&parts));
    for part in [
        "- `api` (u1, u2) reported `complete`. Its work, `abc123`, is merged into `sillage/r1/work`.\n",
        "- `docs` (u3) reported `complete`. It committed nothing.\n",
        "## Reports of your sub-agents\n",
        "### Report of `api`",
        "`/data/steps/build/api/report.json`",
        "You have 1m30s left",
        "- `docs/all.md`\n",
        "\"risks\": \"…\"",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(!text.contains("cannot be `complete`"), "{text}");
    assert!(
        text.trim_end().ends_with("Leave out what does not apply."),
        "{text}"
    );
    assert_eq!(text, with(None, |parts| synthesis(&parts)));
}

#[test]
fn w23_a_lost_sub_agent_is_told_and_the_group_cannot_be_complete() {
    let text = with(Some(LOST), |parts| synthesis(&parts));
    let line = "- `cli` (u4) is lost: failed: the agent exited with 1. What it committed is on the branch \
                `sillage/r1/build-cli` only, and not merged.\n";
    assert!(text.contains(line), "{text}");
    assert!(
        text.contains("Because a sub-agent is lost, `outcome` cannot be `complete`"),
        "{text}"
    );
    assert!(!text.contains("### Report of `cli`"), "{text}");
}

#[test]
fn w23_work_that_could_not_be_merged_is_told_with_its_branch() {
    let (done, files) = (report("It is done."), ["src/lib.rs".to_owned()]);
    let apart = Some(Apart {
        branch: "sillage/r1/build-cli",
        commit: "def456",
        files: &files,
    });
    let report = Upstream {
        apart,
        ..upstream("cli", &done)
    };
    let text = with(Some(SubAgentEnd::Reported { report, merged: None }), |parts| {
        synthesis(&parts)
    });
    assert!(
        text.contains(
            "conflicts with that of others: it is on the branch `sillage/r1/build-cli` only, at `def456`."
        ),
        "{text}"
    );
    assert!(
        text.contains("work of a sub-agent could not be merged, `outcome` cannot be"),
        "{text}"
    );
}

#[test]
fn w22_a_new_session_is_told_the_mission_the_plan_and_the_reports_again() {
    let folders = Folders {
        read: vec![],
        write: vec!["/repo".into()],
    };
    let before = report("I explored.");
    let upstream = [upstream("explore", &before)];
    let text = with(Some(LOST), |parts| {
        compose(&MessageParts {
            task: "Rate limiting",
            context: Some("The context."),
            method: None,
            agent: parts.agent,
            folder: Path::new("/repo"),
            folders: &folders,
            worktree_branch: None,
            upstream: &upstream,
            reports_budget: REPORTS_BUDGET,
            time_left: None,
            form: Form::Synthesis(&parts),
        })
    });
    let order = [
        "The context.",
        "Build all of it.",
        "## Reports of the agents before you",
        "I explored.",
        "## Your plan",
        "\"id\": \"api\"",
        "Do the part of cli.",
        "## How they ended",
        "is lost: failed",
        "## Reports of your sub-agents",
        "It is done.",
        "## Your report",
        "cannot be `complete`",
    ];
    let mut rest = text.as_str();
    for part in order {
        let at = rest.find(part);
        assert!(at.is_some(), "{part} is missing, or too early, in {text}");
        rest = &rest[at.unwrap_or_default()..];
    }
}

#[test]
fn w14_the_reports_of_many_sub_agents_keep_within_the_budget() {
    let done = report(&"Very much was done. ".repeat(90));
    let names: Vec<String> = (0..200).map(|number| format!("s{number}")).collect();
    let ends: Vec<SubAgentEnd<'_>> = names
        .iter()
        .map(|name| SubAgentEnd::Reported {
            report: upstream(name, &done),
            merged: None,
        })
        .collect();
    let mut plan = plan();
    plan.sub_agents = names.iter().map(|name| sub_agent(name, &["u1"])).collect();
    let text = with(None, |parts| {
        synthesis(&SynthesisParts {
            plan: &plan,
            ends: &ends,
            ..parts
        })
    });
    let (_, reports) = text
        .split_once("## Reports of your sub-agents")
        .expect("the section");
    let (reports, _) = reports.split_once("## Limits").expect("what follows it");
    assert!(reports.chars().count() <= REPORTS_BUDGET, "{}", reports.len());
    assert!(
        names
            .iter()
            .all(|name| text.contains(&format!("- `{name}` (u1) reported")))
    );
}

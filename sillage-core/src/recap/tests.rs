use std::sync::Arc;

use proptest::prelude::*;
use pulldown_cmark::{Event as Markdown, HeadingLevel, Options, Parser, Tag};

use super::*;
use crate::ports::runtime::{RuntimeError, Usage};
use crate::ports::workspace::Hold;
use crate::report::{Blocker, Check, CheckKind, CheckStatus, Decision, Outcome, Reference, ReferenceKind};
use crate::run::tests::world::{Reply, World, report, task};
use crate::run::{Command, Event, FailureClass, Input, Recorded, RunDefinition};

fn definition() -> RunDefinition {
    task(&["a", "b", "c", "d"], &[("a", "b"), ("b", "c")]).with_repository()
}

fn full_report() -> String {
    r##"{
        "outcome": "partial",
        "summary": "Did # one\nand *two*.",
        "decisions": [{"title": "use sled", "why": "it is there"}, {"title": "no cache"}],
        "checks": [{"kind": "unit_test", "status": "passed", "detail": "12 tests"}, {"kind": "lint", "status": "not_run"}],
        "references": [{"kind": "file", "value": "src/a.rs"}, {"kind": "url", "value": "https://a.b/c"}],
        "next_action": "ask @someone about #3"
    }"##
    .to_owned()
}

/// A partial, b failed for good after a wait, c not run, d in conflict.
fn failed() -> (World, Run) {
    let mut definition = definition();
    Arc::get_mut(&mut definition.task).unwrap().agents[0].title = Some("First".to_owned());
    let mut world = World::new(definition);
    let busy = RuntimeError::Temporary {
        words: "529 overloaded".to_owned(),
        retry_after: None,
    };
    let refused = RuntimeError::Permanent {
        words: "the model is <gone>".to_owned(),
    };
    world.script("a", [Reply::text("oops"), Reply::text(&full_report())]);
    world.script("b", [Reply::Error(busy), Reply::Error(refused)]);
    // Each resolution conflicts again.
    world.clashes.insert("d".to_owned(), 3);
    let run = world.run_to_end();
    (world, run)
}

#[test]
fn r28_text_leads_with_the_result_and_ends_with_what_is_left() {
    let (world, run) = failed();
    let recap = Recap::of(&run, world.now).with_diff(DiffStat {
        files: 2,
        insertions: 10,
        deletions: 1,
    });
    let expected = "\
t
failed: 30.0s in all, 0ms worked, 30.0s waited
branch sillage/r1 at merge-of-a: 2 files, 10 lines added, 1 removed
from main at base
worktree of a: /wt/a
worktree of b: /wt/b
worktree of d: /wt/d
run r1
usage unknown

a (First): partial
  Did # one
  and *two*.
  decided: use sled: it is there
  decided: no cache
  check: unit test passed: 12 tests
  check: lint not run
  next: ask @someone about #3
  see file src/a.rs
  see url https://a.b/c
  0ms worked with m at effort low, report corrected once
  usage unknown
  branch sillage/steps/r1/a at commit-of-a: 0 files, 0 lines added, 0 removed
  merged
  worktree /wt/a: it is kept for a resume

b: failed
  permanent error: the model is <gone>
  0ms worked with m at effort low, 30.0s waited
  it had part of the work of a only
  usage unknown
  branch sillage/steps/r1/b at commit-of-b: 0 files, 0 lines added, 0 removed
  not merged: the work of a failed agent stays on its branch
  worktree /wt/b: it is kept for a resume

c: not_run
  not run: b failed

d: partial
  ok
  0ms worked with m at effort low
  usage unknown
  branch sillage/steps/r1/d at commit-of-d-2: 0 files, 0 lines added, 0 removed
  not merged: conflict in f, which went back to it 2 times
  worktree /wt/d: it is kept for a resume

Left to do
  a is partial
  b is failed: permanent error: the model is <gone>
  c is not run: b failed
  d is partial: its work conflicts in f
  a says: ask @someone about #3
  the work of b is on branch sillage/steps/r1/b only, at commit-of-b
  the work of d is on branch sillage/steps/r1/d only, at commit-of-d-2, it conflicts in f
  the worktree of a is still there, /wt/a: it is kept for a resume
  the worktree of b is still there, /wt/b: it is kept for a resume
  the worktree of d is still there, /wt/d: it is kept for a resume
  resume with: sillage resume r1
";
    assert_eq!(recap.text(120), expected);
}

#[test]
fn r28_markdown_is_fit_for_a_pull_request() {
    let mut definition = task(&["a", "b"], &[("a", "b")]).with_repository();
    Arc::get_mut(&mut definition.task).unwrap().title = "Add <b> | # things".to_owned();
    let mut world = World::new(definition);
    world.script("a", [Reply::text(&full_report())]);
    world.script(
        "b",
        [Reply::Error(RuntimeError::Permanent {
            words: "<gone>".to_owned(),
        })],
    );
    let run = world.run_to_end();
    let recap = Recap::of(&run, world.now).with_diff(DiffStat {
        files: 1,
        insertions: 1,
        deletions: 0,
    });
    let expected = r"## Add &lt;b&gt; \| \# things

**failed**: 0ms in all, 0ms worked, 0ms waited

- Branch `sillage/r1` at `merge-of-a`: 1 file, 1 line added, 0 removed
- From `main` at `base`
- Worktree of `a`: `/wt/a`
- Worktree of `b`: `/wt/b`
- Run `r1`
- Usage unknown

| Agent | State | Worked | Waited | Tokens | Cost |
| --- | --- | --- | --- | --- | --- |
| a | partial | 0ms | 0ms | unknown | unknown |
| b | failed | 0ms | 0ms | unknown | unknown |

### `a`: partial

Did \# one
and \*two\*.

- Decided: use sled: it is there
- Decided: no cache
- Check: unit test passed: 12 tests
- Check: lint not run
- Next: ask @&#8203;someone about #&#8203;3
- See file `src/a.rs`
- See url <https://a.b/c>
- 0ms worked with m at effort low
- Usage unknown
- Branch sillage/steps/r1/a at commit-of-a: 0 files, 0 lines added, 0 removed
- Merged
- Worktree /wt/a: it is kept for a resume

### `b`: failed

- Permanent error: &lt;gone&gt;
- 0ms worked with m at effort low
- It had part of the work of a only
- Usage unknown
- Branch sillage/steps/r1/b at commit-of-b: 0 files, 0 lines added, 0 removed
- Not merged: the work of a failed agent stays on its branch
- Worktree /wt/b: it is kept for a resume

### Left to do

- a is partial
- b is failed: permanent error: &lt;gone&gt;
- a says: ask @&#8203;someone about #&#8203;3
- the work of b is on branch sillage/steps/r1/b only, at commit-of-b
- the worktree of a is still there, /wt/a: it is kept for a resume
- the worktree of b is still there, /wt/b: it is kept for a resume
- Resume with `sillage resume r1`
";
    assert_eq!(recap.markdown(), expected);
}

#[test]
fn r28_a_complete_run_leaves_nothing_and_names_branch_and_commit() {
    let mut world = World::new(definition());
    let run = world.run_to_end();
    let recap = Recap::of(&run, world.now);
    assert!(recap.left.is_nothing(), "{:?}", recap.left);
    assert_eq!(recap.result.branch.as_deref(), Some("sillage/r1"));
    assert_eq!(recap.result.commit.as_deref(), run.tip());
    assert!(
        recap
            .steps
            .iter()
            .all(|s| s.merge == Some(Merge::Merged) && s.worktree.is_none())
    );
    assert!(!recap.text(80).contains("Left to do"));
    assert!(!recap.markdown().contains("Left to do"));
}

#[test]
fn r28_without_a_repository_there_is_no_branch_to_name() {
    let mut world = World::new(task(&["a"], &[]));
    world.script("a", [Reply::text(&report("blocked"))]);
    let run = world.run_to_end();
    let recap = Recap::of(&run, world.now);
    assert_eq!((&recap.result.branch, &recap.result.commit), (&None, &None));
    assert_eq!(recap.steps[0].merge, None);
    assert!(recap.text(80).contains("\nin /repo\n"));
    assert_eq!(
        recap.left.steps,
        [LeftStep {
            agent: "a".into(),
            state: "blocked",
            why: Some("x".into())
        }]
    );
    assert_eq!(recap.left.resume.as_deref(), Some("sillage resume r1"));
}

#[test]
fn r16_nothing_merged_names_no_branch() {
    let mut world = World::new(task(&["a"], &[]).with_repository());
    world.script("a", [Reply::text(&report("blocked"))]);
    let run = world.run_to_end();
    let recap = Recap::of(&run, world.now);
    assert_eq!(recap.result.branch, None);
    assert_eq!(recap.steps[0].merge, Some(Merge::Withheld));
    assert!(recap.text(80).contains("no branch: nothing was merged"));
    assert_eq!(recap.left.unmerged[0].branch, "sillage/steps/r1/a");
}

#[test]
fn r10_a_run_under_way_tells_what_it_waits_for_and_cannot_be_resumed() {
    let mut world = World::new(definition());
    world.script(
        "a",
        [Reply::Error(RuntimeError::SignIn {
            words: "expired".to_owned(),
        })],
    );
    world.script("d", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    let recap = Recap::of(&run, world.now.plus(Duration::from_secs(100)));
    assert!(!recap.result.over && recap.left.resume.is_none());
    assert_eq!(
        (recap.totals.duration, recap.totals.waited),
        (Duration::from_secs(100), Duration::from_secs(100))
    );
    assert_eq!(recap.totals.worked, Duration::from_secs(100), "d's");
    let text = recap.text(120);
    assert!(
        text.contains("waits for sign-in of account m, tried again at 1970-01-01T00:31:40Z"),
        "{text}"
    );
    let account = "account m: sign-in, tried again at 1970-01-01T00:31:40Z, 1 agent waits: expired";
    assert_eq!(text.matches(account).count(), 1, "{text}");
    assert!(
        text.contains("worktree /wt/d: its agent is at work in it"),
        "{text}"
    );
    assert!(recap.left.worktrees.is_empty());
}

#[test]
fn v3_v4_usage_of_a_stopped_run_is_kept_and_the_unknown_is_told() {
    let mut world = World::new(task(&["a", "b", "c"], &[]));
    for agent in ["a", "b", "c"] {
        world.script(agent, [Reply::Silence]);
    }
    let mut run = world.start();
    world.settle(&mut run);
    let session = |step: usize, run: &Run| run.steps()[step].session().unwrap().id();
    let (a, b) = (session(0, &run), session(1, &run));
    let priced = Usage {
        output_tokens: Some(1000),
        cost_micros: Some(250_000),
        currency: Some(*b"USD"),
        ..Usage::default()
    };
    world.input(
        &mut run,
        Input::UsageCounted {
            session: a,
            usage: priced,
        },
    );
    let tokens = Usage {
        output_tokens: Some(500),
        ..Usage::default()
    };
    world.input(
        &mut run,
        Input::UsageCounted {
            session: b,
            usage: tokens,
        },
    );
    world.input(&mut run, Input::Command(Command::Stop));
    let run = world.go_on(run);
    let recap = Recap::of(&run, world.now);
    assert_eq!(recap.result.state, "stopped");
    let text = recap.text(120);
    let total = "\ntokens: 1,500 out; 0.25 USD + price unknown; usage of 1 agent unknown\n";
    assert!(text.contains(total), "{text}");
    let markdown = recap.markdown();
    assert!(
        markdown.contains("| a | cancelled | 15.0s | 0ms | 1,000 out | 0.25 USD |"),
        "{markdown}"
    );
    assert!(
        markdown.contains("| b | cancelled | 15.0s | 0ms | 500 out | price unknown |"),
        "{markdown}"
    );
    assert!(
        markdown.contains("| c | cancelled | 15.0s | 0ms | unknown | unknown |"),
        "{markdown}"
    );
    let json = serde_json::to_value(&recap).unwrap();
    assert_eq!(json["totals"]["usage"]["input_tokens"], serde_json::Value::Null);
    assert_eq!(json["totals"]["usage_unknown"], 1);
}

#[test]
fn r19_a_held_worktree_says_by_what_and_r12_a_rescue_is_named() {
    let mut world = World::new(task(&["a"], &[]).with_repository());
    let run = world.run_to_end();
    // The same log, but for a worktree that was held, and put back once.
    let mut log = world.log.clone();
    for fact in &mut log {
        if let Event::WorktreeReady { step, worktree } = &fact.event {
            let (step, worktree) = (*step, worktree.clone());
            fact.event = Event::WorktreeRestarted {
                step,
                worktree,
                rescued: Some("refs/sillage/rescue/1".into()),
            };
        }
        if let Event::WorktreeRemoved { step } = fact.event {
            let holds = vec![
                Hold::Files(vec!["x".into(), "y".into()]),
                Hold::Lock(String::new()),
            ];
            fact.event = Event::WorktreeHeld { step, holds };
        }
    }
    assert_ne!(log, world.log);
    let held = Run::replay(log).unwrap();
    assert_eq!(held.end(), run.end());
    let recap = Recap::of(&held, world.now);
    let worktree = recap.left.worktrees[0].worktree.clone();
    assert_eq!(worktree.held_by, ["2 uncommitted files: x, y", "it is locked"]);
    let text = recap.text(120);
    assert!(
        text.contains("  earlier work is kept as refs/sillage/rescue/1\n"),
        "{text}"
    );
    assert!(
        text.contains("still there, /wt/a: 2 uncommitted files: x, y; it is locked"),
        "{text}"
    );
}

#[test]
fn w17_a_report_that_was_refused_in_the_end_is_not_told_as_one() {
    let mut definition = task(&["a"], &[]);
    let deliverable = crate::task::Deliverable {
        text: None,
        files: vec!["out.md".into()],
    };
    Arc::get_mut(&mut definition.task).unwrap().agents[0].deliverable = Some(deliverable);
    let mut world = World::new(definition);
    world.missing = vec![vec!["out.md".into()]; 3];
    let run = world.run_to_end();
    let recap = Recap::of(&run, world.now);
    assert_eq!(recap.steps[0].report, None);
    assert_eq!(
        recap.steps[0].failure.as_ref().unwrap().class,
        FailureClass::ReportRefused
    );
    assert!(recap.left.steps[0].why.as_ref().unwrap().contains("out.md"));
}

#[test]
fn r12_what_a_resumed_step_adds_is_not_merged_because_earlier_work_was() {
    let mut world = World::new(task(&["a"], &[]).with_repository());
    let run = world.run_to_end();
    let mut log: Vec<Recorded> = world.log.clone();
    // Something stands in the way though the work is merged; the step is resumed and fails.
    for fact in &mut log {
        if let Event::ReportAccepted { report, .. } = &mut fact.event {
            let report = Arc::make_mut(report);
            report.outcome = Outcome::Partial;
            report.blockers.push(Blocker {
                title: "x".into(),
                needs: None,
            });
        }
    }
    let removed = log
        .iter()
        .position(|fact| matches!(fact.event, Event::WorktreeRemoved { .. }));
    log.truncate(removed.unwrap_or(log.len() - 1));
    let mut run = {
        drop(run);
        Run::replay(log).unwrap()
    };
    assert_eq!(Recap::of(&run, world.now).steps[0].merge, Some(Merge::Merged));
    let apply = |run: &mut Run, event: Event| {
        let fact = Recorded {
            seq: run.last().next(),
            at: world.now,
            event,
        };
        run.apply(&fact).unwrap();
    };
    let step = StepIndex(0);
    apply(
        &mut run,
        Event::RunEnded {
            end: crate::run::RunEnd::Blocked,
        },
    );
    apply(&mut run, Event::ResumeAsked);
    let failure = Failure {
        class: FailureClass::TimedOut,
        words: "late".into(),
    };
    apply(
        &mut run,
        Event::StepFailing {
            step,
            failure: failure.clone(),
        },
    );
    let work = crate::ports::workspace::Committed {
        tip: "more".into(),
        commits: 2,
        diff: DiffStat::default(),
    };
    apply(&mut run, Event::WorkCommitted { step, work });
    apply(
        &mut run,
        Event::StepEnded {
            step,
            end: crate::run::StepEnd::Failed(Box::new(failure)),
        },
    );
    assert_eq!(Recap::of(&run, world.now).steps[0].merge, Some(Merge::Withheld));
}

#[test]
fn a_report_stands_flat_in_the_json_of_its_step() {
    let (world, run) = failed();
    let json = serde_json::to_value(Recap::of(&run, world.now)).unwrap();
    assert_eq!(json["result"]["state"], "failed");
    assert_eq!(json["steps"][0]["outcome"], "partial");
    assert_eq!(json["steps"][0]["decisions"][0]["title"], "use sled");
    assert_eq!(json["steps"][1]["failure"]["class"], "permanent");
    assert_eq!(json["steps"][1]["outcome"], serde_json::Value::Null);
    assert_eq!(
        json["steps"][2]["not_run"],
        serde_json::json!({"because": "failed", "by": "b", "missing": ["b"], "ceilings": []})
    );
    assert_eq!(
        json["steps"][3]["merge"],
        serde_json::json!({"state": "conflict", "files": ["f"]})
    );
    assert_eq!(json["left"]["resume"], "sillage resume r1");
    assert_eq!(json["left"]["worktrees"][0]["path"], "/wt/a");
}

#[test]
fn text_is_wrapped_and_never_breaks_a_name() {
    let (world, run) = failed();
    let recap = Recap::of(&run, world.now);
    for width in [0, 20, 40, 80] {
        let text = recap.text(width);
        let long = text.lines().filter(|line| line.chars().count() > width.max(20));
        assert!(
            long.clone().all(|line| line.split_whitespace().count() <= 1),
            "{:?}",
            long.collect::<Vec<_>>()
        );
        assert!(text.split_whitespace().any(|word| word == "sillage/steps/r1/b"));
    }
}

/// Words of an agent, in every field that it can write.
fn report_of(words: &str) -> Report {
    let words = || words.to_owned();
    Report {
        outcome: Outcome::Partial,
        summary: words(),
        decisions: vec![Decision {
            title: words(),
            why: Some(words()),
        }],
        checks: vec![Check {
            kind: CheckKind::Other,
            status: CheckStatus::Failed,
            detail: Some(words()),
        }],
        blockers: vec![Blocker {
            title: words(),
            needs: Some(words()),
        }],
        references: [ReferenceKind::File, ReferenceKind::Url]
            .map(|kind| Reference { kind, value: words() })
            .into(),
        outputs: [(words(), words())].into(),
        next_action: Some(words()),
    }
}

/// The document without its words: what begins and ends, in order.
fn structure(markdown: &str) -> Vec<String> {
    let mut headings = 0;
    let options = Options::all() - Options::ENABLE_SMART_PUNCTUATION;
    let mut seen = vec![];
    for event in Parser::new_ext(markdown, options) {
        // Words may hold lines and paragraphs of their own.
        let words = matches!(
            event,
            Markdown::Start(Tag::Paragraph) | Markdown::Text(_) | Markdown::SoftBreak | Markdown::Code(_)
        );
        if let Markdown::Start(Tag::Heading { level, .. }) = event {
            headings += 1;
            seen.push(level.to_string());
        } else if !words && !matches!(event, Markdown::End(_)) {
            seen.push(format!("{event:?}"));
        }
    }
    assert!(headings >= 3 && seen[0] == HeadingLevel::H2.to_string());
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// R28: whatever agents, providers and files are called and say, the document keeps its structure.
    #[test]
    fn r28_no_words_change_the_structure(
        words in "([#>|`~*_+=<&@:.)\\[\\]!\\\\ \n\r\t$-]|[0-9a-z]|<b>|```|---|\\| - \\||\\[a\\]: b|\\PC){1,20}",
    ) {
        let with = |words: &str| {
            let (world, run) = failed();
            let mut recap = Recap::of(&run, world.now);
            recap.result.title = words.to_owned();
            for step in &mut recap.steps {
                step.title = Some(words.to_owned());
                step.report = Some(report_of(words));
                step.troubles = vec![words.to_owned()];
            }
            recap.steps[1].failure = Some(Failure { class: FailureClass::Permanent, words: words.to_owned() });
            recap.steps[3].merge = Some(Merge::Conflict { files: vec![words.to_owned()] });
            recap.left.next_actions = vec![NextAction { agent: "a".into(), action: words.to_owned() }];
            recap.markdown()
        };
        let hostile = with(&words);
        prop_assert_eq!(structure(&hostile), structure(&with("words")), "{}", hostile);
    }
}

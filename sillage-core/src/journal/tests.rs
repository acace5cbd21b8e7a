use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::fault::{Fault, FaultCode};
use crate::id::{ClientMessageId, StepIndex};
use crate::plan::{Plan, SubAgent, Unit};
use crate::ports::runtime::{
    Answer, MessageRequest, OpenedSession, PermissionRequest, RuntimeError, SessionRequest, StopReason, Usage,
};
use crate::ports::workspace::{Committed, DiffStat, Hold, Worktree};
use crate::report::{Blocker, Check, CheckKind, Outcome};
use crate::run::tests::world::{Reply, World, report, task};
use crate::run::{
    Budget, BudgetKind, CheckResult, Failure, FailureClass, LeftBehind, MessagePurpose, OpenedBy, StraySign,
    StrayWrite, WaitCause, Wall,
};

const A: StepIndex = StepIndex(0);
const UNTIL: Timestamp = Timestamp(1_700_000_000_000);

fn session() -> ClientSessionId {
    ClientSessionId(uuid::Uuid::from_u128(7))
}

fn request() -> Arc<SessionRequest> {
    let World { definition, .. } = World::new(task(&["a"], &[]));
    Arc::new(SessionRequest {
        client_session_id: session(),
        model: "opus".to_owned(),
        effort: "high".to_owned(),
        workspace: PathBuf::from("/repo"),
        filesystem_scope: definition.folders,
        protected: Default::default(),
        permissions: definition.policy.permissions,
        autocompact_tokens: None,
    })
}

fn planned(sub_agents: &[&str]) -> Plan {
    let sub_agent = |id: &&str| SubAgent {
        id: (*id).to_owned(),
        units: vec!["u".to_owned()],
        mission: "Part of it.".to_owned(),
        resources: vec![],
        deliverable: None,
        model: "m".to_owned(),
        effort: "low".to_owned(),
        after: vec![],
    };
    Plan {
        units: vec![Unit {
            id: "u".to_owned(),
            title: "All".to_owned(),
        }],
        sub_agents: sub_agents.iter().map(sub_agent).collect(),
        why: Some(" two halves\n".to_owned()),
    }
}

fn opened(pid: Option<u32>) -> OpenedSession {
    OpenedSession {
        native: None,
        agent: "claude".to_owned(),
        pid,
    }
}

#[test]
fn r10_the_journal_tells_what_was_asked_by_whom_it_was_answered_and_with_what() {
    let run = Run::start(Run::launch(UNTIL, task(&["a"], &[]))).unwrap();
    let request = PermissionRequest {
        id: "p1".to_owned(),
        title: "Write\u{1b}[2J the page".to_owned(),
        kind: Some("edit".to_owned()),
        paths: vec![PathBuf::from("/repo/page")],
        options: vec![],
    };
    let (step, session, asked) = (A, session(), Seq(7));
    let settled = |option: Option<&str>, by| Event::PermissionSettled {
        step,
        session,
        asked,
        option: option.map(str::to_owned),
        by,
    };
    let cases = [
        (
            Event::PermissionAsked {
                step,
                session,
                request: Arc::new(request.clone()),
            },
            Severity::Notice,
            "asks a person for permission: Write\u{fffd}[2J the page (/repo/page)",
        ),
        (
            Event::PermissionRefused {
                step,
                session,
                request: Arc::new(request),
                rule: "the run's policy is `deny`".to_owned(),
            },
            Severity::Notice,
            "was refused permission: Write\u{fffd}[2J the page (/repo/page): the run's policy is `deny`",
        ),
        (
            Event::PermissionAnswered {
                step,
                session,
                asked,
                option: "allow".to_owned(),
            },
            Severity::Notice,
            "a person answered permission request 7 with `allow`",
        ),
        (
            settled(Some("allow"), AnsweredBy::Person),
            Severity::Info,
            "was told the answer to permission request 7: `allow`",
        ),
        (
            settled(None, AnsweredBy::Cancel),
            Severity::Notice,
            "permission request 7 was cancelled",
        ),
    ];
    for (event, severity, text) in cases {
        let fact = Recorded {
            seq: Seq(8),
            at: UNTIL,
            event,
        };
        let entry = entry(&run, &fact);
        assert_eq!((entry.severity, entry.text.as_str()), (severity, text));
        assert_eq!((entry.session, entry.step.as_deref()), (Some(session), Some("a")));
    }
}

fn worktree() -> Worktree {
    Worktree {
        repository: "/repo".into(),
        path: "/wt/a".into(),
        branch: "sillage/steps/r1/a".into(),
        base: "b0".into(),
    }
}

fn reported(outcome: Outcome) -> Report {
    Report {
        outcome,
        summary: "ok".to_owned(),
        decisions: vec![],
        checks: vec![],
        blockers: vec![],
        references: vec![],
        outputs: BTreeMap::new(),
        next_action: None,
    }
}

fn fault() -> Fault {
    let message = "the summary must be a text".to_owned();
    Fault {
        code: FaultCode::BadType,
        message,
        path: "/summary".into(),
        line: None,
        column: None,
        suggestion: None,
    }
}

fn failure(class: FailureClass) -> Failure {
    Failure {
        class,
        words: "no\nmore".to_owned(),
    }
}

fn committed(commits: u32) -> Committed {
    Committed {
        tip: "c1".into(),
        commits,
        diff: DiffStat {
            files: 1,
            insertions: 2,
            deletions: 3,
        },
    }
}

fn answer(stop: StopReason) -> Event {
    let answer = Answer {
        text: "x".into(),
        stop,
        usage: Usage::default(),
    };
    Event::Answered {
        step: A,
        message: ClientMessageId(uuid::Uuid::nil()),
        answer,
    }
}

fn message(purpose: MessagePurpose) -> Event {
    let message = MessageRequest {
        client_message_id: ClientMessageId(uuid::Uuid::nil()),
        text: "x".into(),
    };
    Event::MessagePlanned {
        step: A,
        session: session(),
        purpose,
        message: Arc::new(message),
    }
}

/// A run of a → b → c, with the line for an event that it may never have had.
fn line(event: Event) -> Entry {
    let world = World::new(task(&["a", "b", "c"], &[("a", "b"), ("b", "c")]).with_repository());
    let run = Run::start(Run::launch(world.now, world.definition.clone())).unwrap();
    entry(
        &run,
        &Recorded {
            seq: Seq(9),
            at: Timestamp(5),
            event,
        },
    )
}

#[test]
fn r31_each_kind_of_fact_is_a_sentence_with_its_severity() {
    use Severity::{Error, Info, Notice, Warning};
    let definition = task(&["a", "b"], &[]);
    let blocked = Report {
        blockers: vec![Blocker {
            title: "no key".into(),
            needs: None,
        }],
        ..reported(Outcome::Blocked)
    };
    let failed_check = Check {
        kind: CheckKind::Lint,
        status: CheckStatus::Failed,
        detail: None,
    };
    let badly_checked = Report {
        checks: vec![failed_check],
        ..reported(Outcome::Complete)
    };
    let usage = Usage {
        input_tokens: Some(1200),
        ..Usage::default()
    };
    let wait = |cause, resend| Event::WaitStarted {
        step: A,
        cause,
        until: UNTIL,
        words: "529 busy".into(),
        resend,
    };
    let wall = |cause, resets_at, single| Wall {
        cause,
        words: "limit".into(),
        resets_at,
        until: UNTIL,
        single,
        at_opening: false,
    };
    let ended = |end| Event::StepEnded { step: A, end };
    let reached = |kind, mode| Event::BudgetReached {
        kind,
        limit: 2_000_000,
        used: 2_100_000,
        currency: (kind == BudgetKind::Cost).then(|| crate::run::Currency::new(*b"EUR").unwrap()),
        mode,
    };
    let left = |pids: &[u32], trouble: Option<&str>| LeftBehind {
        session: session(),
        pids: pids.to_vec(),
        trouble: trouble.map(str::to_owned),
    };
    let table = [
        (
            Event::RunCreated(Box::new(definition)),
            Info,
            "run r1 of `t` (version 1) was launched: 2 agents, at most 16 at work at once",
        ),
        (
            Event::EngineStarted { pid: 4, left: vec![] },
            Notice,
            "an engine took the run up again (process 4): the sessions at work are looked for",
        ),
        (
            Event::EngineStarted {
                pid: 4,
                left: vec![left(&[], None), left(&[12, 13], None)],
            },
            Notice,
            "an engine took the run up again (process 4): the sessions at work are looked for; the process of session 00000000-0000-0000-0000-000000000007 had ended; what still ran of session 00000000-0000-0000-0000-000000000007 was ended (process 12, 13)",
        ),
        (
            Event::EngineStarted {
                pid: 4,
                left: vec![left(&[12], Some("process 12 could not be stopped"))],
            },
            Error,
            "an engine took the run up again (process 4): the sessions at work are looked for; of session 00000000-0000-0000-0000-000000000007, process 12 could not be stopped",
        ),
        (
            Event::StopAsked { forced: false },
            Notice,
            "a stop was asked for: the agents are asked to stop",
        ),
        (
            Event::StopAsked { forced: true },
            Notice,
            "the stop is forced: sessions are closed without waiting",
        ),
        (
            Event::ResumeAsked,
            Notice,
            "a resume was asked for: what did not succeed is done again",
        ),
        (
            Event::BudgetChanged {
                budget: Some(Budget {
                    mode: BudgetMode::Audit,
                    tokens: std::num::NonZeroU64::new(2_000_000),
                    cost: crate::run::parse_cost("5USD").ok(),
                    time: Some(std::time::Duration::from_secs(7200)),
                }),
            },
            Notice,
            "its ceilings were changed: at most 2,000,000 tokens, 5.00 USD and 2h00m, told only",
        ),
        (
            Event::BudgetChanged { budget: None },
            Notice,
            "its ceilings were lifted",
        ),
        (
            reached(BudgetKind::Tokens, BudgetMode::Enforce),
            Warning,
            "the ceiling of 2,000,000 tokens is reached, 2,100,000 used: no new session is opened, and work in open ones goes on to its end",
        ),
        (
            reached(BudgetKind::Cost, BudgetMode::Audit),
            Notice,
            "the ceiling of 2.00 EUR is reached, 2.10 EUR used: it is only told, and the run goes on",
        ),
        (
            reached(BudgetKind::Time, BudgetMode::Enforce),
            Warning,
            "the ceiling of 33m20s of time is reached, 35m00s used: no new session is opened, and work in open ones goes on to its end",
        ),
        (
            Event::RunEnded {
                end: RunEnd::Complete,
            },
            Info,
            "the run ended: complete",
        ),
        (
            Event::RunEnded { end: RunEnd::Failed },
            Error,
            "the run ended: failed",
        ),
        (Event::StepStarted { step: A }, Info, "got a place and goes on"),
        (
            Event::WorktreePlanned {
                step: A,
                branch: "x".into(),
                base: "b0".into(),
            },
            Info,
            "its worktree is to be made on branch x from b0",
        ),
        (
            Event::WorktreeReady {
                step: A,
                worktree: worktree(),
            },
            Info,
            "its worktree is /wt/a, on branch sillage/steps/r1/a",
        ),
        (
            Event::WorktreeRestarted {
                step: A,
                worktree: worktree(),
                rescued: Some("refs/r/1".into()),
            },
            Notice,
            "its worktree was put back to b0; what it held is kept as refs/r/1",
        ),
        (
            Event::WorktreeRestarted {
                step: A,
                worktree: worktree(),
                rescued: None,
            },
            Notice,
            "its worktree was put back to b0; it held nothing",
        ),
        (
            Event::SessionPlanned {
                step: A,
                request: request(),
            },
            Info,
            "a session is to be opened with opus at effort high",
        ),
        (
            Event::SessionOpened {
                step: A,
                session: session(),
                opened: opened(Some(3)),
            },
            Info,
            "its session is open, held by claude (process 3)",
        ),
        (
            Event::SessionFound {
                step: A,
                session: session(),
                opened: opened(None),
            },
            Notice,
            "its session was found again, held by claude",
        ),
        (
            Event::SessionLost {
                step: A,
                session: session(),
                words: "exit 1".into(),
            },
            Warning,
            "its session is lost: exit 1; what its worktree holds is kept, and the step starts again from its base \
             in a new session",
        ),
        (
            Event::SessionClosed {
                step: A,
                session: session(),
                trouble: None,
            },
            Info,
            "its session is closed",
        ),
        (
            Event::SessionClosed {
                step: A,
                session: session(),
                trouble: Some("process 3 lives".into()),
            },
            Error,
            "its session could not be closed: process 3 lives",
        ),
        (
            Event::UsageCounted {
                step: A,
                session: session(),
                usage,
            },
            Info,
            "its session so far: tokens: 1,200 in; price unknown",
        ),
        (message(MessagePurpose::Mission), Info, "is told its mission"),
        (
            message(MessagePurpose::Correction),
            Info,
            "is told what is wrong with its report",
        ),
        (
            message(MessagePurpose::Continuation),
            Info,
            "is asked to go on in the same session",
        ),
        (answer(StopReason::EndTurn), Info, "answered"),
        (
            answer(StopReason::MaxTokens),
            Info,
            "answered, cut by the model's limit",
        ),
        (
            answer(StopReason::MaxTurnRequests),
            Info,
            "answered, cut after too many calls of the model",
        ),
        (answer(StopReason::Refusal), Info, "the model refused"),
        (
            answer(StopReason::Cancelled),
            Info,
            "was cancelled while it was answering",
        ),
        (
            answer(StopReason::Other("replayed".into())),
            Info,
            "answered (replayed)",
        ),
        (
            Event::PlanRefused {
                step: A,
                faults: vec![fault()],
            },
            Warning,
            "its plan was refused, and nothing was launched: /summary: the summary must be a text",
        ),
        (
            Event::PlanAccepted {
                step: A,
                plan: Arc::new(planned(&["api", "do\u{1b}cs"])),
            },
            Info,
            "its plan is accepted: 1 unit of work for 2 sub-agents, api (u), do\u{fffd}cs (u); why: two halves",
        ),
        (
            Event::ReportFound {
                step: A,
                report: Arc::new(reported(Outcome::Complete)),
            },
            Info,
            "its report is well formed; its deliverable's files are looked at",
        ),
        (
            Event::ReportRefused {
                step: A,
                faults: vec![fault(), fault()],
            },
            Warning,
            "its report was refused: /summary: the summary must be a text; /summary: the summary must be a text",
        ),
        (
            Event::ReportAccepted {
                step: A,
                report: Arc::new(reported(Outcome::Partial)),
            },
            Info,
            "its report is accepted: partial",
        ),
        (
            Event::ReportAccepted {
                step: A,
                report: Arc::new(badly_checked),
            },
            Warning,
            "its report is accepted: complete, and a check failed",
        ),
        (
            Event::ReportAccepted {
                step: A,
                report: Arc::new(blocked),
            },
            Info,
            "its report is accepted: blocked; in the way: no key",
        ),
        (
            wait(WaitCause::Backoff, true),
            Warning,
            "waits for a temporary error to pass: 529 busy; it is tried again at 2023-11-14T22:13:20Z",
        ),
        (
            wait(WaitCause::Quota, false),
            Warning,
            "waits for its quota to be given back: 529 busy; it is asked to go on at 2023-11-14T22:13:20Z",
        ),
        (
            wait(WaitCause::SignIn, false),
            Warning,
            "waits for someone to sign in: 529 busy; it is asked to go on at 2023-11-14T22:13:20Z",
        ),
        (
            Event::WaitEnded { step: A },
            Info,
            "its wait is over: it is ready to go on",
        ),
        (
            wait(WaitCause::Capacity, true),
            Warning,
            "waits for room in its runtime, which is full: 529 busy; it is tried again at 2023-11-14T22:13:20Z",
        ),
        (
            Event::GateClosed {
                account: "acme".into(),
                step: A,
                wall: wall(WaitCause::Quota, Some(UNTIL), false),
            },
            Warning,
            "account acme: the quota is used up, as a was told: limit; all its agents wait, and they go on at \
             2023-11-14T22:13:20Z",
        ),
        (
            Event::GateClosed {
                account: "acme".into(),
                step: A,
                wall: wall(WaitCause::SignIn, None, true),
            },
            Error,
            "account acme: someone must sign in, as a was told: limit; all its agents wait, and one of them tries at \
             2023-11-14T22:13:20Z",
        ),
        (
            Event::GateDated {
                account: "acme".into(),
                step: A,
                wall: wall(WaitCause::Quota, Some(UNTIL), true),
            },
            Warning,
            "account acme cannot be used yet, as a was told: limit; one of them tries at 2023-11-14T22:13:20Z: the \
             provider says 2023-11-14T22:13:20Z, which is doubtful",
        ),
        (
            Event::GateProbed {
                account: "acme".into(),
                step: A,
            },
            Notice,
            "tries account acme, alone: the others wait for what comes of it",
        ),
        (
            Event::GateOpened {
                account: "acme".into(),
                by: OpenedBy::Probe,
                held: 2,
            },
            Notice,
            "account acme is used again: the agent that tried it is served; 2 agents go on",
        ),
        (
            Event::GateOpened {
                account: "acme".into(),
                by: OpenedBy::Date,
                held: 1,
            },
            Notice,
            "account acme is used again: its date has come; 1 agent goes on",
        ),
        (
            Event::MachineSlept {
                slept: std::time::Duration::from_secs(3600),
            },
            Notice,
            "the machine slept for 1h00m: that is not counted as work",
        ),
        (
            Event::ClockJumped { by_ms: -3_600_000 },
            Notice,
            "the machine's clock was set back by 1h00m: spans count on, dates of providers stay as they are",
        ),
        (
            Event::StepFailing {
                step: A,
                failure: failure(FailureClass::TimedOut),
            },
            Notice,
            "fails, timed out: no more; its session is closed and its work committed first",
        ),
        (
            Event::WorkCommitted {
                step: A,
                work: committed(0),
            },
            Info,
            "there is no work of it to commit",
        ),
        (
            Event::WorkCommitted {
                step: A,
                work: committed(2),
            },
            Info,
            "its work is committed: c1 (2 commits, 1 file, 2 lines added, 3 removed)",
        ),
        (
            Event::MergePlanned {
                step: A,
                onto: "b0".into(),
            },
            Info,
            "its work is to be merged onto b0",
        ),
        (
            Event::Merged {
                step: A,
                tip: "m1".into(),
            },
            Info,
            "its work is merged: sillage/r1 is at m1",
        ),
        (
            Event::MergeConflicted {
                step: A,
                files: vec!["f".into(), "g".into()],
            },
            Warning,
            "its work conflicts with sillage/r1 in f, g: nothing was merged, and its branch is kept",
        ),
        (
            Event::ConflictReturned { step: A },
            Notice,
            "its conflict goes back to it",
        ),
        (
            Event::MergeBegun {
                step: A,
                onto: "m1".into(),
                files: vec!["f".into()],
            },
            Info,
            "m1 is being merged into its worktree, with conflicts in f",
        ),
        (
            Event::MergeBegun {
                step: A,
                onto: "m1".into(),
                files: vec![],
            },
            Info,
            "nothing conflicts with m1 any more: its work waits for its turn to be merged",
        ),
        (
            message(MessagePurpose::Conflict),
            Info,
            "is told of the conflict, to resolve it",
        ),
        (Event::ConflictResolved { step: A }, Info, "resolved its conflict"),
        (
            Event::ConflictLeft {
                step: A,
                files: vec!["f".into()],
            },
            Warning,
            "left a conflict in f: it goes back to it",
        ),
        (
            Event::ConflictGivenUp {
                step: A,
                files: vec!["f".into()],
                end: StepEnd::Partial,
            },
            Error,
            "left a conflict in f, and the merge is given up: its branch is kept, to be merged by hand",
        ),
        (
            Event::MergeAbandoned {
                step: A,
                rescued: Some("refs/x/1".into()),
            },
            Notice,
            "its worktree was put back to its work before the merge; what it held is kept as refs/x/1",
        ),
        (
            Event::StrayWrites {
                step: A,
                writes: vec![StrayWrite {
                    path: "src/x".into(),
                    sign: StraySign::Named,
                }],
            },
            Warning,
            "changed in your checkout: src/x (its own tool calls name it)",
        ),
        (
            Event::SessionGone {
                step: A,
                session: session(),
                words: "exit 0".into(),
            },
            Notice,
            "its session is not heard any more, and is looked for when it is needed: exit 0",
        ),
        (Event::CheckCleared, Info, "the check's worktree was removed"),
        (
            Event::CheckStarted { commit: None },
            Info,
            "the check is run where the agents worked:",
        ),
        (
            Event::CheckEnded {
                result: CheckResult {
                    output: "one\n\ntwo\n".into(),
                    code: Some(2),
                    why: None,
                    file: Some("/r/check.log".into()),
                    ..CheckResult::not_made("")
                },
            },
            Error,
            "the check failed with exit code 2; it said at last: one / two; all that it wrote is in /r/check.log",
        ),
        (
            Event::CheckEnded {
                result: CheckResult::not_made("there is no shell"),
            },
            Error,
            "the check failed: there is no shell",
        ),
        (ended(StepEnd::Complete), Info, "complete"),
        (ended(StepEnd::Partial), Notice, "partial: what follows it runs"),
        (ended(StepEnd::Blocked), Error, "blocked; b, c do not run"),
        (
            ended(StepEnd::Failed(Box::new(failure(FailureClass::Permanent)))),
            Error,
            "failed, permanent error: no more; b, c do not run",
        ),
        (ended(StepEnd::Cancelled), Notice, "cancelled; it can be resumed"),
        (
            ended(StepEnd::NotRun(StepIndex(2))),
            Notice,
            "not run, because of c",
        ),
        (
            ended(StepEnd::OverBudget),
            Notice,
            "not run, because a ceiling of the run is reached",
        ),
        (
            ended(StepEnd::FailedFast(StepIndex(2))),
            Notice,
            "not run, because c failed and the run begins nothing more",
        ),
        (
            Event::WorktreeRemoved { step: A },
            Info,
            "its worktree was removed; its branch stays",
        ),
        (
            Event::WorktreeHeld {
                step: A,
                holds: vec![Hold::Commits(2), Hold::Process(9)],
            },
            Notice,
            "its worktree stays: 2 commits that are not merged; process 9 works there",
        ),
        (
            Event::WorktreeHeld {
                step: A,
                holds: vec![],
            },
            Notice,
            "its worktree stays: what it holds could not be looked at",
        ),
    ];
    let mut kinds = std::collections::BTreeSet::new();
    for (event, severity, text) in table {
        let concerns = event.step().map(|_| "a".to_owned());
        let json = serde_json::to_value(&event).unwrap();
        let entry = line(event);
        assert_eq!(
            (entry.text.as_str(), entry.severity, entry.step),
            (text, severity, concerns)
        );
        // The kind is the log's own name of the fact.
        assert!(
            json == entry.kind || json.get(entry.kind).is_some(),
            "{json} is a {}",
            entry.kind
        );
        kinds.insert(entry.kind);
    }
    assert_eq!(kinds.len(), 51, "every kind of event: {kinds:?}");
}

#[test]
fn r31_the_error_journal_tells_each_failure_once_with_session_words_and_what_was_done() {
    let mut world = World::new(task(&["a", "b"], &[("a", "b")]).with_repository());
    let busy = RuntimeError::Temporary {
        words: "529 overloaded".to_owned(),
        retry_after: None,
    };
    let refused = RuntimeError::Permanent {
        words: "model\nrefused".to_owned(),
    };
    world.script(
        "a",
        [Reply::Error(busy), Reply::text("oops"), Reply::Error(refused)],
    );
    let run = world.run_to_end();
    let entries = entries(&run, &world.log);
    assert_eq!(entries.len(), world.log.len());
    let errors: Vec<&Entry> = errors(&entries).collect();
    let told: Vec<(Option<&str>, &str)> = errors
        .iter()
        .map(|e| (e.step.as_deref(), e.text.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (
                Some("a"),
                "waits for a temporary error to pass: 529 overloaded; it is asked to go on at 1970-01-01T00:17:10Z"
            ),
            (
                Some("a"),
                "its report was refused: there is no report in the answer: end it with one JSON object in a fenced \
                 `json` block; it goes back to its agent"
            ),
            (
                Some("a"),
                "failed, permanent error: model refused; b does not run"
            ),
            (None, "the run ended: failed"),
        ]
    );
    let sessions: Vec<bool> = errors.iter().map(|e| e.session.is_some()).collect();
    assert_eq!(sessions, [true, true, true, false]);
    assert!(
        errors.windows(2).all(|pair| pair[0].seq < pair[1].seq),
        "in order"
    );
}

#[test]
fn w17_the_last_refusal_says_that_the_step_fails() {
    let mut world = World::new(task(&["a"], &[]));
    world.script("a", vec![Reply::text("oops"); 3]);
    let run = world.run_to_end();
    let refusals: Vec<String> = entries(&run, &world.log)
        .into_iter()
        .filter(|entry| entry.kind == "report_refused")
        .map(|entry| entry.text.rsplit_once("; ").unwrap().1.to_owned())
        .collect();
    let back = "it goes back to its agent";
    assert_eq!(
        refusals,
        [back, back, "it went back often enough, and the step fails"]
    );
}

#[test]
fn q3_every_try_of_a_series_is_in_the_journal() {
    let mut world = World::new(task(&["a"], &[]));
    let busy = || {
        Reply::Error(RuntimeError::Temporary {
            words: "529".to_owned(),
            retry_after: None,
        })
    };
    world.script("a", [busy(), busy(), busy(), Reply::text(&report("complete"))]);
    let start = world.now;
    let run = world.run_to_end();
    let entries = entries(&run, &world.log);
    let at: Vec<Duration> = errors(&entries).map(|entry| entry.at.since(start)).collect();
    assert_eq!(at, [0, 30, 90].map(Duration::from_secs));
}

#[test]
fn entries_serialise_with_plain_names() {
    let entry = line(Event::SessionLost {
        step: A,
        session: session(),
        words: "gone".into(),
    });
    let json = serde_json::to_value(&entry).unwrap();
    assert_eq!(json["severity"], "warning");
    assert_eq!(
        (&json["seq"], &json["at"], &json["step"]),
        (&9.into(), &5.into(), &"a".into())
    );
    assert_eq!(json["session"], session().to_string());
}

//! Events as released versions wrote them: a log that was written once is read for ever.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::fault::{Fault, FaultCode};
use crate::id::{ClientMessageId, ClientSessionId, Seq, StepIndex};
use crate::plan::{Plan, SubAgent, Unit};
use crate::ports::runtime::{
    Answer, MessageRequest, OpenedSession, PermissionOption, PermissionRequest, SessionRequest, StopReason,
    Usage,
};
use crate::ports::workspace::{Committed, DiffStat, Hold, MergedPart, Worktree};
use crate::report::{
    Blocker, Check, CheckKind, CheckStatus, Decision, Outcome, Reference, ReferenceKind, Report,
};
use crate::run::tests::world;
use crate::run::{
    AnsweredBy, Budget, BudgetKind, BudgetMode, CheckResult, Event, Failure, FailureClass, LeftBehind,
    MessagePurpose, OpenedBy, RunEnd, StepEnd, StraySign, StrayWrite, TakenWork, WaitCause, Wall,
};
use crate::task::{Deliverable, Resource};
use crate::time::Timestamp;

/// `number kind hexadecimal-bytes`, one event a line. Lines are added, never changed: each was in somebody's store.
const GOLDEN: &str = include_str!("../../../tests/golden/events-format-1.txt");

#[test]
fn golden_events_are_read_as_they_were_meant_and_written_the_same() {
    let written: Vec<String> = samples().iter().map(line).collect();
    let golden: Vec<&str> = GOLDEN.lines().collect();
    for (line, sample) in golden.iter().zip(samples()) {
        let bytes = bytes(line.rsplit(' ').next().unwrap());
        assert_eq!(decode(&bytes).unwrap(), sample);
    }
    assert_eq!(
        golden, written,
        "an event's bytes changed, or a sample has no golden line: add lines, never change one"
    );
}

#[test]
fn every_kind_of_event_has_a_golden_sample() {
    let kinds: BTreeSet<String> = samples().iter().map(kind).collect();
    // One more with each kind that is added: the compiler tells of it through `Event::step`.
    assert_eq!(kinds.len(), 59, "{kinds:?}");
}

#[test]
fn an_event_of_tomorrow_is_refused_by_name_and_never_skipped() {
    let mut bytes = encode(&samples()[0]).unwrap();
    bytes[0] = 2;
    assert!(matches!(decode(&bytes), Err(CodecError::Newer(2))));
    let unknown =
        rmp_serde::to_vec_named(&serde_json::json!({ "seq": 1, "at": 0, "event": "step_danced" })).unwrap();
    let error = decode(&[&[1], unknown.as_slice()].concat()).unwrap_err();
    assert!(
        matches!(&error, CodecError::Unknown(word) if word == "step_danced"),
        "{error:?}"
    );
    let words = error.to_string();
    assert!(
        words.contains("step_danced") && words.contains("newer"),
        "{words}"
    );
    let damaged = decode(&[1, 0xc1]).unwrap_err();
    assert!(matches!(damaged, CodecError::Unreadable(_)), "{damaged:?}");
    assert!(matches!(decode(&[]), Err(CodecError::Empty)));
}

proptest::proptest! {
    #[test]
    fn bytes_that_are_not_an_event_are_an_error_and_no_panic(mut bytes in proptest::collection::vec(0u8.., 0..400)) {
        let _ = decode(&bytes);
        bytes.insert(0, 1);
        let _ = decode(&bytes);
    }
}

fn kind(fact: &Recorded) -> String {
    let value = serde_json::to_value(&fact.event).unwrap();
    match value.as_str() {
        Some(kind) => kind.to_owned(),
        None => value
            .as_object()
            .and_then(|fields| fields.keys().next())
            .unwrap()
            .clone(),
    }
}

fn line(fact: &Recorded) -> String {
    let mut text = format!("{} {} ", fact.seq, kind(fact));
    for byte in encode(fact).unwrap() {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    hexadecimal
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn samples() -> Vec<Recorded> {
    let step = StepIndex(1);
    let session = ClientSessionId(uuid::Uuid::from_u128(7));
    let message = ClientMessageId(uuid::Uuid::from_u128(8));
    let opened = OpenedSession {
        native: Some("n-1".into()),
        agent: "claude".into(),
        pid: Some(42),
    };
    let worktree = Worktree {
        repository: PathBuf::from("/repo"),
        path: PathBuf::from("/data/wt"),
        branch: "sillage/steps/r1/b".into(),
        base: "b".repeat(40),
    };
    let usage = Usage {
        input_tokens: Some(10),
        cost_micros: Some(5),
        currency: Some(*b"USD"),
        ..Usage::default()
    };
    let fault = Fault {
        code: FaultCode::BadValue,
        message: "`passing` is not a status".into(),
        path: "/checks/0/status".into(),
        line: Some(3),
        column: Some(9),
        suggestion: Some("passed".into()),
    };
    let events = vec![
        Event::RunCreated(Box::new(
            world::task(&["a", "b"], &[("a", "b")]).with_repository(),
        )),
        Event::EngineStarted { pid: 9, left: vec![] },
        Event::StopAsked { forced: true },
        Event::ResumeAsked,
        Event::RunEnded { end: RunEnd::Partial },
        Event::StepStarted { step },
        Event::WorktreePlanned {
            step,
            branch: worktree.branch.clone(),
            base: worktree.base.clone(),
        },
        Event::WorktreeReady {
            step,
            worktree: worktree.clone(),
        },
        Event::WorktreeRestarted {
            step,
            worktree: worktree.clone(),
            rescued: Some("refs/sillage/rescue/r1/b/1".into()),
        },
        Event::SessionPlanned {
            step,
            request: Arc::new(request(session)),
        },
        Event::SessionOpened {
            step,
            session,
            opened: opened.clone(),
        },
        Event::SessionFound {
            step,
            session,
            opened,
        },
        Event::SessionLost {
            step,
            session,
            words: "unknown session".into(),
        },
        Event::SessionClosed {
            step,
            session,
            trouble: Some("process 42 could not be stopped".into()),
        },
        Event::UsageCounted { step, session, usage },
        Event::MessagePlanned {
            step,
            session,
            purpose: MessagePurpose::Mission,
            message: Arc::new(MessageRequest {
                client_message_id: message,
                text: "Été\n".into(),
            }),
        },
        Event::Answered {
            step,
            message,
            answer: Answer {
                text: "{}".into(),
                stop: StopReason::Other("x".into()),
                usage,
            },
        },
        Event::ReportFound {
            step,
            report: Arc::new(report()),
        },
        Event::ReportRefused {
            step,
            faults: vec![fault.clone()],
        },
        Event::ReportAccepted {
            step,
            report: Arc::new(report()),
        },
        Event::WaitStarted {
            step,
            cause: WaitCause::Quota,
            until: Timestamp(9),
            words: "later".into(),
            resend: true,
        },
        Event::WaitEnded { step },
        Event::StepFailing {
            step,
            failure: Failure {
                class: FailureClass::TimedOut,
                words: "2h".into(),
            },
        },
        Event::WorkCommitted {
            step,
            work: committed(),
        },
        Event::MergePlanned {
            step,
            onto: "c".repeat(40),
        },
        Event::Merged {
            step,
            tip: "d".repeat(40),
        },
        Event::MergeConflicted {
            step,
            files: vec!["src/lib.rs".into()],
        },
        Event::StepEnded {
            step,
            end: StepEnd::NotRun(StepIndex(0)),
        },
        Event::StepEnded {
            step,
            end: StepEnd::Complete,
        },
        Event::StepEnded {
            step,
            end: StepEnd::Failed(Box::new(Failure {
                class: FailureClass::AgentLost,
                words: "exit 1".into(),
            })),
        },
        Event::WorktreeRemoved { step },
        Event::WorktreeHeld {
            step,
            holds: vec![Hold::Files(vec!["a".into()]), Hold::Commits(2), Hold::Process(3)],
        },
        Event::PermissionAsked {
            step,
            session,
            request: Arc::new(PermissionRequest {
                id: "p1".into(),
                title: "Write a".into(),
                kind: Some("edit".into()),
                paths: vec!["/repo/a".into()],
                options: vec![PermissionOption {
                    id: "allow".into(),
                    name: "Allow".into(),
                    kind: "allow_once".into(),
                }],
            }),
        },
        Event::PermissionAnswered {
            step,
            session,
            asked: Seq(33),
            option: "allow".into(),
        },
        Event::PermissionSettled {
            step,
            session,
            asked: Seq(33),
            option: Some("allow".into()),
            by: AnsweredBy::Person,
        },
        Event::PermissionSettled {
            step,
            session,
            asked: Seq(33),
            option: None,
            by: AnsweredBy::Cancel,
        },
        Event::SessionPlanned {
            step,
            request: Arc::new(SessionRequest {
                protected: crate::policy::Protected {
                    closed: vec!["/data".into()],
                    kept: vec!["/repo".into()],
                },
                ..request(session)
            }),
        },
        Event::SessionGone {
            step,
            session,
            words: "exit 0".into(),
        },
        Event::ConflictReturned { step },
        Event::MergeBegun {
            step,
            onto: "d".repeat(40),
            files: vec!["src/lib.rs".into()],
        },
        Event::MessagePlanned {
            step,
            session,
            purpose: MessagePurpose::Conflict,
            message: Arc::new(MessageRequest {
                client_message_id: message,
                text: "Resolve it.".into(),
            }),
        },
        Event::ConflictLeft {
            step,
            files: vec!["src/lib.rs".into()],
        },
        Event::ConflictResolved { step },
        Event::ConflictGivenUp {
            step,
            files: vec!["src/lib.rs".into()],
            end: StepEnd::Partial,
        },
        Event::MergeAbandoned {
            step,
            rescued: Some("refs/sillage/rescue/r/a/1".into()),
        },
        Event::StrayWrites {
            step,
            writes: vec![
                StrayWrite {
                    path: "README.md".into(),
                    sign: StraySign::Named,
                },
                StrayWrite {
                    path: "b".into(),
                    sign: StraySign::Company,
                },
            ],
        },
        Event::CheckStarted {
            commit: Some("d".repeat(40)),
        },
        Event::CheckEnded {
            result: CheckResult {
                passed: false,
                code: Some(2),
                why: None,
                output: "no rule\n".into(),
                written: 8,
                file: Some("/data/runs/r/check.log".into()),
            },
        },
        Event::CheckEnded {
            result: CheckResult::not_made("no shell"),
        },
        Event::CheckCleared,
        Event::WorktreeHeld {
            step,
            holds: vec![Hold::Changed("is gone".into())],
        },
        Event::EngineStarted {
            pid: 9,
            left: vec![
                LeftBehind {
                    session,
                    pids: vec![42],
                    trouble: Some("process 42 could not be stopped".into()),
                },
                LeftBehind {
                    session,
                    pids: vec![],
                    trouble: None,
                },
            ],
        },
        Event::BudgetChanged {
            budget: Some(Budget {
                mode: BudgetMode::Audit,
                tokens: std::num::NonZeroU64::new(2_000_000),
                cost: crate::run::parse_cost("5USD").ok(),
                time: Some(std::time::Duration::from_secs(7200)),
            }),
        },
        Event::BudgetChanged { budget: None },
        Event::BudgetReached {
            kind: BudgetKind::Cost,
            limit: 5_000_000,
            used: 5_200_000,
            currency: crate::run::Currency::new(*b"USD").ok(),
            mode: BudgetMode::Enforce,
        },
        Event::BudgetReached {
            kind: BudgetKind::Time,
            limit: 7_200_000,
            used: 7_200_000,
            currency: None,
            mode: BudgetMode::Audit,
        },
        Event::StepEnded {
            step,
            end: StepEnd::OverBudget,
        },
        Event::StepEnded {
            step,
            end: StepEnd::FailedFast(StepIndex(0)),
        },
        Event::PlanRefused {
            step,
            faults: vec![fault],
        },
        Event::PlanAccepted {
            step,
            plan: Arc::new(plan()),
        },
        Event::MessagePlanned {
            step,
            session,
            purpose: MessagePurpose::PlanCorrection,
            message: Arc::new(MessageRequest {
                client_message_id: message,
                text: "Again.".into(),
            }),
        },
        Event::StepEnded {
            step,
            end: StepEnd::Failed(Box::new(Failure {
                class: FailureClass::SubAgentsLost,
                words: "all 2".into(),
            })),
        },
        Event::RetryAsked { step },
        Event::StepSkipped { step },
        Event::StepOutdated {
            step,
            by: StepIndex(0),
        },
        Event::StepTaken {
            step,
            from: crate::id::RunId::new("r0").unwrap(),
            end: StepEnd::Partial,
            report: Arc::new(report()),
            work: Some(TakenWork {
                branch: "sillage/steps/r0/b".into(),
                committed: committed(),
                conflicts: vec![],
                parts: vec![],
            }),
        },
        Event::StepEnded {
            step,
            end: StepEnd::Skipped,
        },
        Event::GateClosed {
            account: "acme".into(),
            step,
            wall: Wall {
                cause: WaitCause::Quota,
                words: "limit reached".into(),
                resets_at: Some(Timestamp(9)),
                until: Timestamp(9),
                single: false,
                at_opening: false,
            },
        },
        Event::GateDated {
            account: "acme".into(),
            step,
            wall: Wall {
                cause: WaitCause::SignIn,
                words: "expired".into(),
                resets_at: None,
                until: Timestamp(10),
                single: true,
                at_opening: true,
            },
        },
        Event::GateProbed {
            account: "acme".into(),
            step,
        },
        Event::GateOpened {
            account: "acme".into(),
            by: OpenedBy::Probe,
            held: 3,
        },
        Event::MachineSlept {
            slept: std::time::Duration::from_secs(3600),
        },
        Event::ClockJumped { by_ms: -5000 },
        Event::WaitStarted {
            step,
            cause: WaitCause::Capacity,
            until: Timestamp(9),
            words: "full".into(),
            resend: true,
        },
        Event::StepTaken {
            step,
            from: crate::id::RunId::new("r0").unwrap(),
            end: StepEnd::Complete,
            report: Arc::new(report()),
            work: Some(TakenWork {
                branch: "sillage/steps/r0/b".into(),
                committed: committed(),
                conflicts: vec![],
                parts: vec![MergedPart {
                    onto: "b".repeat(40),
                    tip: "c".repeat(40),
                }],
            }),
        },
        Event::PermissionRefused {
            step,
            session,
            request: Arc::new(PermissionRequest {
                id: "p2".into(),
                title: "write a".into(),
                kind: Some("edit".into()),
                paths: vec!["/repo/a".into()],
                options: vec![],
            }),
            rule: "the run's policy is `deny`".into(),
        },
    ];
    events
        .into_iter()
        .zip(1..)
        .map(|(event, seq)| Recorded {
            seq: Seq(seq),
            at: Timestamp(1_700_000_000_000),
            event,
        })
        .collect()
}

fn request(session: ClientSessionId) -> SessionRequest {
    SessionRequest {
        client_session_id: session,
        model: "opus".into(),
        effort: "high".into(),
        workspace: PathBuf::from("/data/wt"),
        filesystem_scope: crate::folders::Folders {
            read: vec!["/docs".into()],
            write: vec!["/data/wt".into()],
        },
        protected: Default::default(),
        permissions: crate::ports::runtime::PermissionPolicy::AllowInFolders,
        autocompact_tokens: Some(300_000),
    }
}

fn plan() -> Plan {
    let sub_agent = |id: &str, unit: &str, after: &[&str]| SubAgent {
        id: id.into(),
        units: vec![unit.into()],
        mission: "Part of it.".into(),
        resources: vec![Resource("src".into())],
        deliverable: Some(Deliverable {
            text: Some("Code".into()),
            files: vec!["a.md".into()],
        }),
        model: "opus".into(),
        effort: "high".into(),
        after: after.iter().map(|id| (*id).to_owned()).collect(),
    };
    let unit = |id: &str| Unit {
        id: id.into(),
        title: format!("Unit {id}"),
    };
    Plan {
        units: vec![unit("u1"), unit("u2")],
        sub_agents: vec![sub_agent("api", "u1", &[]), sub_agent("docs", "u2", &["api"])],
        why: Some("two parts".into()),
    }
}

fn committed() -> Committed {
    Committed {
        tip: "e".repeat(40),
        commits: 2,
        diff: DiffStat {
            files: 1,
            insertions: 3,
            deletions: 4,
        },
    }
}

fn report() -> Report {
    Report {
        outcome: Outcome::Partial,
        summary: "Half.".into(),
        decisions: vec![Decision {
            title: "Keep".into(),
            why: Some("less".into()),
        }],
        checks: vec![Check {
            kind: CheckKind::UnitTest,
            status: CheckStatus::NotRun,
            detail: None,
        }],
        blockers: vec![Blocker {
            title: "Access".into(),
            needs: Some("a key".into()),
        }],
        references: vec![Reference {
            kind: ReferenceKind::File,
            value: "a.md".into(),
        }],
        outputs: [("findings".to_owned(), "none".to_owned())].into(),
        next_action: Some("Ask".into()),
    }
}

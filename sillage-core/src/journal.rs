//! The journal of a run: each fact as one sentence, and those of them that tell of something that failed (R31).

mod sentence;
mod waits;

use std::collections::HashMap;

use serde::Serialize;

use crate::id::{ClientSessionId, Seq, StepIndex};
use crate::report::{CheckStatus, Report};
use crate::run::{AnsweredBy, BudgetMode, Event, Recorded, Run, RunEnd, StepEnd, WaitCause};
use crate::time::Timestamp;

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The fact's position in the run's log.
    pub seq: Seq,
    /// When it was decided: milliseconds since 1970 in UTC.
    pub at: Timestamp,
    /// The agent whose step it concerns, where it concerns one.
    pub step: Option<String>,
    /// The session that it concerns, where it concerns one.
    pub session: Option<ClientSessionId>,
    /// The fact's kind, as the log names it.
    pub kind: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What happened, in one sentence on one line, without the agent's name.
    pub text: String,
}

/// How much a fact matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// All goes its way.
    Info,
    /// Worth knowing.
    Notice,
    /// Something failed, and the run deals with it by itself.
    Warning,
    /// Something failed, and a person has to deal with it.
    Error,
}

/// The line for one fact of the run's log. `run` may be further on than the fact.
///
/// The session is the one that the fact itself names; [`entries`] also knows it where the facts before tell.
#[must_use]
pub fn entry(run: &Run, fact: &Recorded) -> Entry {
    Entry {
        seq: fact.seq,
        at: fact.at,
        step: fact.event.step().map(|step| sentence::agent(run, step)),
        session: session(&fact.event),
        kind: kind(&fact.event),
        severity: severity(&fact.event),
        text: sentence::of(run, &fact.event),
    }
}

/// The lines for a run's log from its start, each with the session that its step had then, and each refused report
/// with what was done about it.
#[must_use]
pub fn entries(run: &Run, log: &[Recorded]) -> Vec<Entry> {
    let mut last: HashMap<StepIndex, ClientSessionId> = HashMap::new();
    let mut entries = Vec::with_capacity(log.len());
    for (at, fact) in log.iter().enumerate() {
        let mut entry = entry(run, fact);
        if let Some(step) = fact.event.step() {
            match entry.session {
                Some(session) => {
                    last.insert(step, session);
                }
                None => entry.session = last.get(&step).copied(),
            }
        }
        if let Event::ReportRefused { step, .. } | Event::PlanRefused { step, .. } = &fact.event {
            let next = log[at + 1..]
                .iter()
                .map(|fact| &fact.event)
                .find(|event| event.step() == Some(*step));
            entry
                .text
                .push_str(next.map_or("", sentence::done_about_a_refusal));
        }
        entries.push(entry);
    }
    entries
}

/// The error journal: the lines that tell of something that failed, in order (R31).
pub fn errors<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> impl Iterator<Item = &'e Entry> {
    entries
        .into_iter()
        .filter(|entry| entry.severity >= Severity::Warning)
}

/// The session that a fact names.
fn session(event: &Event) -> Option<ClientSessionId> {
    match event {
        Event::SessionPlanned { request, .. } => Some(request.client_session_id),
        Event::SessionOpened { session, .. }
        | Event::SessionFound { session, .. }
        | Event::SessionLost { session, .. }
        | Event::SessionGone { session, .. }
        | Event::SessionClosed { session, .. }
        | Event::UsageCounted { session, .. }
        | Event::MessagePlanned { session, .. }
        | Event::PermissionAsked { session, .. }
        | Event::PermissionRefused { session, .. }
        | Event::PermissionAnswered { session, .. }
        | Event::PermissionSettled { session, .. } => Some(*session),
        Event::RunCreated(_)
        | Event::EngineStarted { .. }
        | Event::StopAsked { .. }
        | Event::ResumeAsked
        | Event::BudgetChanged { .. }
        | Event::BudgetReached { .. }
        | Event::RunEnded { .. }
        | Event::RetryAsked { .. }
        | Event::StepSkipped { .. }
        | Event::StepOutdated { .. }
        | Event::StepTaken { .. }
        | Event::StepStarted { .. }
        | Event::WorktreePlanned { .. }
        | Event::WorktreeReady { .. }
        | Event::WorktreeRestarted { .. }
        | Event::Answered { .. }
        | Event::PlanRefused { .. }
        | Event::PlanAccepted { .. }
        | Event::ReportFound { .. }
        | Event::ReportRefused { .. }
        | Event::ReportAccepted { .. }
        | Event::WaitStarted { .. }
        | Event::WaitEnded { .. }
        | Event::GateClosed { .. }
        | Event::GateDated { .. }
        | Event::GateProbed { .. }
        | Event::GateOpened { .. }
        | Event::MachineSlept { .. }
        | Event::ClockJumped { .. }
        | Event::StepFailing { .. }
        | Event::WorkCommitted { .. }
        | Event::MergePlanned { .. }
        | Event::Merged { .. }
        | Event::MergeConflicted { .. }
        | Event::ConflictReturned { .. }
        | Event::MergeBegun { .. }
        | Event::ConflictResolved { .. }
        | Event::ConflictLeft { .. }
        | Event::ConflictGivenUp { .. }
        | Event::MergeAbandoned { .. }
        | Event::StrayWrites { .. }
        | Event::StepEnded { .. }
        | Event::WorktreeRemoved { .. }
        | Event::WorktreeHeld { .. }
        | Event::CheckStarted { .. }
        | Event::CheckEnded { .. }
        | Event::CheckCleared => None,
    }
}

/// The fact's kind, as the log names it.
fn kind(event: &Event) -> &'static str {
    match event {
        Event::RunCreated(_) => "run_created",
        Event::EngineStarted { .. } => "engine_started",
        Event::StopAsked { .. } => "stop_asked",
        Event::ResumeAsked => "resume_asked",
        Event::BudgetChanged { .. } => "budget_changed",
        Event::BudgetReached { .. } => "budget_reached",
        Event::RunEnded { .. } => "run_ended",
        Event::RetryAsked { .. } => "retry_asked",
        Event::StepSkipped { .. } => "step_skipped",
        Event::StepOutdated { .. } => "step_outdated",
        Event::StepTaken { .. } => "step_taken",
        Event::StepStarted { .. } => "step_started",
        Event::WorktreePlanned { .. } => "worktree_planned",
        Event::WorktreeReady { .. } => "worktree_ready",
        Event::WorktreeRestarted { .. } => "worktree_restarted",
        Event::SessionPlanned { .. } => "session_planned",
        Event::SessionOpened { .. } => "session_opened",
        Event::SessionFound { .. } => "session_found",
        Event::SessionLost { .. } => "session_lost",
        Event::SessionGone { .. } => "session_gone",
        Event::SessionClosed { .. } => "session_closed",
        Event::UsageCounted { .. } => "usage_counted",
        Event::MessagePlanned { .. } => "message_planned",
        Event::PermissionAsked { .. } => "permission_asked",
        Event::PermissionRefused { .. } => "permission_refused",
        Event::PermissionAnswered { .. } => "permission_answered",
        Event::PermissionSettled { .. } => "permission_settled",
        Event::Answered { .. } => "answered",
        Event::PlanRefused { .. } => "plan_refused",
        Event::PlanAccepted { .. } => "plan_accepted",
        Event::ReportFound { .. } => "report_found",
        Event::ReportRefused { .. } => "report_refused",
        Event::ReportAccepted { .. } => "report_accepted",
        Event::WaitStarted { .. } => "wait_started",
        Event::WaitEnded { .. } => "wait_ended",
        Event::GateClosed { .. } => "gate_closed",
        Event::GateDated { .. } => "gate_dated",
        Event::GateProbed { .. } => "gate_probed",
        Event::GateOpened { .. } => "gate_opened",
        Event::MachineSlept { .. } => "machine_slept",
        Event::ClockJumped { .. } => "clock_jumped",
        Event::StepFailing { .. } => "step_failing",
        Event::WorkCommitted { .. } => "work_committed",
        Event::MergePlanned { .. } => "merge_planned",
        Event::Merged { .. } => "merged",
        Event::MergeConflicted { .. } => "merge_conflicted",
        Event::ConflictReturned { .. } => "conflict_returned",
        Event::MergeBegun { .. } => "merge_begun",
        Event::ConflictResolved { .. } => "conflict_resolved",
        Event::ConflictLeft { .. } => "conflict_left",
        Event::ConflictGivenUp { .. } => "conflict_given_up",
        Event::MergeAbandoned { .. } => "merge_abandoned",
        Event::StrayWrites { .. } => "stray_writes",
        Event::StepEnded { .. } => "step_ended",
        Event::WorktreeRemoved { .. } => "worktree_removed",
        Event::WorktreeHeld { .. } => "worktree_held",
        Event::CheckStarted { .. } => "check_started",
        Event::CheckEnded { .. } => "check_ended",
        Event::CheckCleared => "check_cleared",
    }
}

/// How much a fact matters. Of a failure that takes two facts, only the second counts as one.
fn severity(event: &Event) -> Severity {
    match event {
        Event::RunCreated(_)
        | Event::StepTaken { .. }
        | Event::StepStarted { .. }
        | Event::WorktreePlanned { .. }
        | Event::WorktreeReady { .. }
        | Event::SessionPlanned { .. }
        | Event::SessionOpened { .. }
        | Event::SessionClosed { trouble: None, .. }
        | Event::UsageCounted { .. }
        | Event::MessagePlanned { .. }
        | Event::PermissionSettled {
            by: AnsweredBy::Person | AnsweredBy::Policy,
            ..
        }
        | Event::Answered { .. }
        | Event::PlanAccepted { .. }
        | Event::ReportFound { .. }
        | Event::WaitEnded { .. }
        | Event::WorkCommitted { .. }
        | Event::MergePlanned { .. }
        | Event::Merged { .. }
        | Event::MergeBegun { .. }
        | Event::ConflictResolved { .. }
        | Event::CheckStarted { .. }
        | Event::CheckCleared
        | Event::WorktreeRemoved { .. } => Severity::Info,
        Event::EngineStarted { left, .. } if left.iter().any(|one| one.trouble.is_some()) => Severity::Error,
        Event::EngineStarted { .. }
        | Event::StopAsked { .. }
        | Event::ResumeAsked
        | Event::RetryAsked { .. }
        | Event::StepSkipped { .. }
        | Event::StepOutdated { .. }
        | Event::BudgetChanged { .. }
        | Event::BudgetReached {
            mode: BudgetMode::Audit,
            ..
        }
        | Event::WorktreeRestarted { .. }
        | Event::SessionFound { .. }
        | Event::PermissionAsked { .. }
        | Event::PermissionRefused { .. }
        | Event::PermissionAnswered { .. }
        | Event::PermissionSettled {
            by: AnsweredBy::Cancel,
            ..
        }
        | Event::StepFailing { .. }
        | Event::GateProbed { .. }
        | Event::GateOpened { .. }
        | Event::MachineSlept { .. }
        | Event::ClockJumped { .. }
        | Event::SessionGone { .. }
        | Event::ConflictReturned { .. }
        | Event::MergeAbandoned { .. }
        | Event::WorktreeHeld { .. } => Severity::Notice,
        Event::BudgetReached {
            mode: BudgetMode::Enforce,
            ..
        }
        | Event::SessionLost { .. }
        | Event::PlanRefused { .. }
        | Event::ReportRefused { .. }
        | Event::WaitStarted { .. }
        | Event::GateDated { .. }
        | Event::MergeConflicted { .. }
        | Event::ConflictLeft { .. }
        | Event::StrayWrites { .. } => Severity::Warning,
        // Someone has to sign in; a quota comes back by itself.
        Event::GateClosed { wall, .. } => match wall.cause {
            WaitCause::SignIn => Severity::Error,
            WaitCause::Quota | WaitCause::Backoff | WaitCause::Capacity => Severity::Warning,
        },
        // A person has to merge it.
        Event::ConflictGivenUp { .. } => Severity::Error,
        Event::CheckEnded { result } if result.passed => Severity::Info,
        Event::CheckEnded { .. } => Severity::Error,
        Event::SessionClosed { trouble: Some(_), .. } => Severity::Error,
        Event::ReportAccepted { report, .. } if failed_checks(report) > 0 => Severity::Warning,
        Event::ReportAccepted { .. } => Severity::Info,
        Event::StepEnded { end, .. } => match end {
            StepEnd::Complete => Severity::Info,
            StepEnd::Partial
            | StepEnd::Cancelled
            | StepEnd::NotRun(_)
            | StepEnd::Skipped
            | StepEnd::OverBudget
            | StepEnd::FailedFast(_) => Severity::Notice,
            StepEnd::Blocked | StepEnd::Failed(_) => Severity::Error,
        },
        Event::RunEnded { end } => match end {
            RunEnd::Complete => Severity::Info,
            RunEnd::Partial | RunEnd::Stopped => Severity::Notice,
            RunEnd::Blocked | RunEnd::Failed => Severity::Error,
        },
    }
}

fn failed_checks(report: &Report) -> usize {
    report
        .checks
        .iter()
        .filter(|check| check.status == CheckStatus::Failed)
        .count()
}

#[cfg(test)]
mod tests;

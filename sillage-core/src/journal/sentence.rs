//! What a fact says to a person.

use super::{failed_checks, waits};
use crate::fault;
use crate::id::{RunId, Seq, StepIndex};
use crate::plain;
use crate::plan::Plan;
use crate::ports::runtime::{Answer, OpenedSession, PermissionRequest, StopReason};
use crate::ports::workspace::Committed;
use crate::report::Report;
use crate::run::{
    AnsweredBy, Budget, BudgetMode, Ceiling, CheckResult, Event, Failure, LeftBehind, MessagePurpose, Run,
    RunDefinition, Spent, Step, StepEnd, StrayWrite, TakenWork,
};

/// The fact in one sentence, on one line.
pub(super) fn of(run: &Run, event: &Event) -> String {
    let said = match event {
        Event::RunCreated(definition) => launched(definition),
        Event::EngineStarted { pid, left } => {
            let mut said = format!(
                "an engine took the run up again (process {pid}): the sessions at work are looked for"
            );
            for one in left {
                said.push_str(&left_behind(run, one));
            }
            said
        }
        Event::StopAsked { forced: false } => "a stop was asked for: the agents are asked to stop".to_owned(),
        Event::StopAsked { forced: true } => {
            "the stop is forced: sessions are closed without waiting".to_owned()
        }
        Event::ResumeAsked => "a resume was asked for: what did not succeed is done again".to_owned(),
        Event::RetryAsked { .. } => {
            "a person asked for it to be tried again at once; what follows it and ran without that is done again"
                .to_owned()
        }
        Event::StepSkipped { .. } => "a person skipped it: what follows runs without its report".to_owned(),
        Event::StepOutdated { by, .. } if run.step(*by).is_some_and(Step::is_skipped) => {
            format!("is taken up again from its start, for {} was skipped", agent(run, *by))
        }
        Event::StepOutdated { by, .. } => {
            format!("is taken up again from its start, for {} is", agent(run, *by))
        }
        Event::StepTaken { from, report, work, .. } => taken(from, report, work.as_ref()),
        Event::BudgetChanged { budget: Some(budget) } => {
            format!("its ceilings were changed: {}", ceilings(budget))
        }
        Event::BudgetChanged { budget: None } => "its ceilings were lifted".to_owned(),
        Event::BudgetReached {
            kind,
            limit,
            used,
            currency,
            mode,
        } => {
            let ceiling = Ceiling {
                kind: *kind,
                limit: *limit,
                currency: *currency,
            };
            reached(&ceiling, *used, *mode)
        }
        Event::RunEnded { end } => format!("the run ended: {}", end.word()),
        Event::StepStarted { .. } => "got a place and goes on".to_owned(),
        Event::WorktreePlanned { branch, base, .. } => {
            format!("its worktree is to be made on branch {branch} from {base}")
        }
        Event::WorktreeReady { worktree, .. } => {
            format!(
                "its worktree is {}, on branch {}",
                worktree.path.display(),
                worktree.branch
            )
        }
        Event::WorktreeRestarted {
            worktree, rescued, ..
        } => match rescued {
            Some(kept) => format!(
                "its worktree was put back to {}; what it held is kept as {kept}",
                worktree.base
            ),
            None => format!("its worktree was put back to {}; it held nothing", worktree.base),
        },
        Event::SessionPlanned { request, .. } => {
            format!(
                "a session is to be opened with {} at effort {}",
                request.model, request.effort
            )
        }
        Event::SessionOpened { opened, .. } => format!("its session is open, {}", held(opened)),
        Event::SessionFound { opened, .. } => format!("its session was found again, {}", held(opened)),
        Event::SessionLost { step, words, .. } => session_lost(run, *step, words),
        Event::SessionGone { words, .. } => {
            format!("its session is not heard any more, and is looked for when it is needed: {words}")
        }
        Event::SessionClosed { trouble: None, .. } => "its session is closed".to_owned(),
        Event::SessionClosed {
            trouble: Some(words), ..
        } => format!("its session could not be closed: {words}"),
        Event::UsageCounted { usage, .. } => format!("its session so far: {}", Spent::from(*usage)),
        Event::MessagePlanned { purpose, .. } => match purpose {
            MessagePurpose::Mission => "is told its mission".to_owned(),
            MessagePurpose::Correction => "is told what is wrong with its report".to_owned(),
            MessagePurpose::Continuation => "is asked to go on in the same session".to_owned(),
            MessagePurpose::Conflict => "is told of the conflict, to resolve it".to_owned(),
            MessagePurpose::Plan => "is told its mission, and asked for a plan".to_owned(),
            MessagePurpose::PlanCorrection => "is told what is wrong with its plan".to_owned(),
            MessagePurpose::Synthesis => {
                "is told what came of its sub-agents, and asked for the group's report".to_owned()
            }
        },
        Event::PermissionAsked { request, .. } => {
            format!("asks a person for permission: {}", asked_for(request))
        }
        Event::PermissionRefused { request, rule, .. } => {
            format!("was refused permission: {}: {rule}", asked_for(request))
        }
        Event::PermissionAnswered { asked, option, .. } => {
            format!("a person answered permission request {asked} with `{option}`")
        }
        Event::PermissionSettled {
            asked, option, by, ..
        } => settled(*asked, option.as_deref(), *by),
        Event::Answered { answer, .. } => answered(answer),
        Event::PlanRefused { faults, .. } => {
            format!(
                "its plan was refused, and nothing was launched: {}",
                fault::told(faults)
            )
        }
        Event::PlanAccepted { plan, .. } => planned(plan),
        Event::ReportFound { .. } => {
            "its report is well formed; its deliverable's files are looked at".to_owned()
        }
        Event::ReportRefused { faults, .. } => {
            format!("its report was refused: {}", fault::told(faults))
        }
        Event::ReportAccepted { report, .. } => accepted(report),
        Event::WaitStarted {
            cause,
            until,
            words,
            resend,
            ..
        } => waits::started(*cause, *until, words, *resend),
        Event::WaitEnded { .. } => "its wait is over: it is ready to go on".to_owned(),
        Event::GateClosed { account, step, wall } => waits::gate_closed(account, &agent(run, *step), wall),
        Event::GateDated { account, step, wall } => waits::gate_dated(account, &agent(run, *step), wall),
        Event::GateProbed { account, .. } => {
            format!("tries account {account}, alone: the others wait for what comes of it")
        }
        Event::GateOpened { account, by, held } => waits::gate_opened(account, *by, *held),
        Event::MachineSlept { slept } => waits::machine_slept(*slept),
        Event::ClockJumped { by_ms } => waits::clock_jumped(*by_ms),
        Event::StepFailing { failure, .. } => {
            format!(
                "fails, {}; its session is closed and its work committed first",
                reason(failure)
            )
        }
        Event::WorkCommitted { work, .. } => committed(work),
        Event::MergePlanned { onto, .. } => format!("its work is to be merged onto {onto}"),
        Event::Merged { tip, .. } => {
            format!(
                "its work is merged: {} is at {tip}",
                run.definition().integration_branch()
            )
        }
        Event::MergeConflicted { files, .. } => format!(
            "its work conflicts with {} in {}: nothing was merged, and its branch is kept",
            run.definition().integration_branch(),
            plain::list(files)
        ),
        Event::ConflictReturned { .. } => "its conflict goes back to it".to_owned(),
        Event::MergeBegun { onto, files, .. } if files.is_empty() => {
            format!("nothing conflicts with {onto} any more: its work waits for its turn to be merged")
        }
        Event::MergeBegun { onto, files, .. } => format!(
            "{onto} is being merged into its worktree, with conflicts in {}",
            plain::list(files)
        ),
        Event::ConflictResolved { .. } => "resolved its conflict".to_owned(),
        Event::ConflictLeft { files, .. } => {
            format!("left a conflict in {}: it goes back to it", plain::list(files))
        }
        Event::ConflictGivenUp { files, .. } => format!(
            "left a conflict in {}, and the merge is given up: its branch is kept, to be merged by hand",
            plain::list(files)
        ),
        Event::MergeAbandoned { rescued, .. } => match rescued {
            Some(kept) => {
                format!(
                    "its worktree was put back to its work before the merge; what it held is kept as {kept}"
                )
            }
            None => "its worktree was put back to its work before the merge".to_owned(),
        },
        Event::StrayWrites { writes, .. } => StrayWrite::told(writes),
        Event::CheckStarted { commit: Some(commit) } => {
            format!(
                "the check is run on {commit}, in a fresh worktree: {}",
                check(run)
            )
        }
        Event::CheckStarted { commit: None } => {
            format!("the check is run where the agents worked: {}", check(run))
        }
        Event::CheckEnded { result } => checked(result),
        Event::CheckCleared => "the check's worktree was removed".to_owned(),
        Event::StepEnded { step, end } => ended(run, *step, end),
        Event::WorktreeRemoved { .. } => "its worktree was removed; its branch stays".to_owned(),
        Event::WorktreeHeld { holds, .. } if holds.is_empty() => {
            "its worktree stays: what it holds could not be looked at".to_owned()
        }
        Event::WorktreeHeld { holds, .. } => {
            let holds: Vec<String> = holds.iter().map(ToString::to_string).collect();
            format!("its worktree stays: {}", holds.join("; "))
        }
    };
    plain::line(&said)
}

/// What follows the sentence on a refused report, given the step's next fact.
pub(super) fn done_about_a_refusal(next: &Event) -> &'static str {
    if matches!(
        next,
        Event::MessagePlanned {
            purpose: MessagePurpose::Correction | MessagePurpose::PlanCorrection,
            ..
        }
    ) {
        "; it goes back to its agent"
    } else if matches!(
        next,
        Event::StepFailing { .. }
            | Event::StepEnded {
                end: StepEnd::Failed(_),
                ..
            }
    ) {
        "; it went back often enough, and the step fails"
    } else if matches!(next, Event::StepEnded { .. }) {
        "; the step is stopped"
    } else {
        ""
    }
}

fn check(run: &Run) -> &str {
    run.definition().task.check.as_deref().unwrap_or_default()
}

/// Lines of a failed check that its sentence repeats.
const CHECK_LINES: usize = 5;

fn checked(result: &CheckResult) -> String {
    let mut said = format!("the check {}", result.words());
    let lines: Vec<&str> = result
        .output
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    if !result.passed && !lines.is_empty() {
        let last = &lines[lines.len().saturating_sub(CHECK_LINES)..];
        said.push_str(&format!("; it said at last: {}", last.join(" / ")));
    }
    if let Some(file) = &result.file {
        said.push_str(&format!("; all that it wrote is in {}", file.display()));
    }
    said
}

/// The agent of a step.
pub(super) fn agent(run: &Run, step: StepIndex) -> String {
    run.step(step)
        .map_or_else(|| format!("step {}", step.0), |_| run.step_name(step).to_owned())
}

/// What an engine that was killed left of a session, as the end of a sentence.
fn left_behind(run: &Run, left: &LeftBehind) -> String {
    let step = run.step_of(left.session);
    let whose = step.map_or_else(|| format!("session {}", left.session), |step| agent(run, step));
    let pids: Vec<String> = left.pids.iter().map(u32::to_string).collect();
    match &left.trouble {
        Some(words) => format!("; of {whose}, {words}"),
        None if pids.is_empty() => format!("; the process of {whose} had ended"),
        None => format!(
            "; what still ran of {whose} was ended (process {})",
            pids.join(", ")
        ),
    }
}

fn launched(definition: &RunDefinition) -> String {
    let agents = definition.task.agents.len();
    let plural = if agents == 1 { "" } else { "s" };
    let mut said = format!(
        "run {} of `{}` (version {}) was launched: {agents} agent{plural}, at most {} at work at once",
        definition.run, definition.task.title, definition.task_version, definition.parallel
    );
    if let Some(budget) = &definition.policy.budget {
        said.push_str(&format!("; {}", ceilings(budget)));
    }
    if definition.policy.fail_fast {
        said.push_str("; the first failure, of other than a sub-agent, keeps the rest from being begun");
    }
    said
}

fn ceilings(budget: &Budget) -> String {
    match budget.mode {
        BudgetMode::Audit => format!("{budget}, told only"),
        BudgetMode::Enforce => format!("{budget}, enforced"),
    }
}

fn reached(ceiling: &Ceiling, used: u64, mode: BudgetMode) -> String {
    let then = match mode {
        BudgetMode::Audit => "it is only told, and the run goes on",
        BudgetMode::Enforce => "no new session is opened, and work in open ones goes on to its end",
    };
    format!(
        "the ceiling of {} is reached, {} used: {then}",
        ceiling.words(),
        ceiling.used_words(used)
    )
}

fn held(opened: &OpenedSession) -> String {
    match opened.pid {
        Some(pid) => format!("held by {} (process {pid})", opened.agent),
        None => format!("held by {}", opened.agent),
    }
}

fn session_lost(run: &Run, step: StepIndex, words: &str) -> String {
    let next = match run.has_worktree(step) {
        true => "what its worktree holds is kept, and the step starts again from its base in a new session",
        false => "the step starts again in a new session",
    };
    format!("its session is lost: {words}; {next}")
}

/// What is asked, with the paths that its title does not name.
fn asked_for(request: &PermissionRequest) -> String {
    let paths = request
        .paths
        .iter()
        .map(|path| path.to_string_lossy().into_owned());
    let paths: Vec<String> = paths
        .filter(|path| !request.title.contains(path.as_str()))
        .collect();
    match paths.is_empty() {
        true => request.title.clone(),
        false => format!("{} ({})", request.title, plain::list(&paths)),
    }
}

fn settled(asked: Seq, option: Option<&str>, by: AnsweredBy) -> String {
    match (option, by) {
        (Some(option), AnsweredBy::Person) => {
            format!("was told the answer to permission request {asked}: `{option}`")
        }
        (Some(option), AnsweredBy::Policy | AnsweredBy::Cancel) => {
            format!("permission request {asked} was answered with `{option}` by the policy")
        }
        (None, _) => format!("permission request {asked} was cancelled"),
    }
}

fn answered(answer: &Answer) -> String {
    match &answer.stop {
        StopReason::EndTurn => "answered".to_owned(),
        StopReason::MaxTokens => "answered, cut by the model's limit".to_owned(),
        StopReason::MaxTurnRequests => "answered, cut after too many calls of the model".to_owned(),
        StopReason::Refusal => "the model refused".to_owned(),
        StopReason::Cancelled => "was cancelled while it was answering".to_owned(),
        StopReason::Other(word) if word.is_empty() => "answered".to_owned(),
        StopReason::Other(word) => format!("answered ({word})"),
    }
}

/// Characters of a plan's reason that its sentence repeats.
const WHY: usize = 300;

fn planned(plan: &Plan) -> String {
    let names: Vec<String> = plan
        .sub_agents
        .iter()
        .map(|sub| format!("{} ({})", sub.id, plain::list(&sub.units)))
        .collect();
    let units = match plan.units.len() {
        1 => "1 unit of work".to_owned(),
        units => format!("{units} units of work"),
    };
    let agents = match names.len() {
        1 => "1 sub-agent".to_owned(),
        agents => format!("{agents} sub-agents"),
    };
    let mut said = format!(
        "its plan is accepted: {units} for {agents}, {}",
        plain::list(&names)
    );
    if let Some(why) = plan.why.as_deref().map(str::trim).filter(|why| !why.is_empty()) {
        let told: String = why.chars().take(WHY).collect();
        let cut = if told.len() < why.len() { "…" } else { "" };
        said.push_str(&format!("; why: {told}{cut}"));
    }
    said
}

fn accepted(report: &Report) -> String {
    let mut said = format!("its report is accepted: {}", report.outcome.word());
    match failed_checks(report) {
        0 => {}
        1 => said.push_str(", and a check failed"),
        failed => said.push_str(&format!(", and {failed} checks failed")),
    }
    if !report.blockers.is_empty() {
        let titles: Vec<&str> = report
            .blockers
            .iter()
            .map(|blocker| blocker.title.as_str())
            .collect();
        said.push_str(&format!("; in the way: {}", titles.join("; ")));
    }
    said
}

fn taken(from: &RunId, report: &Report, work: Option<&TakenWork>) -> String {
    let work = work.map_or_else(String::new, |work| {
        format!(", with commit {} of branch {}", work.committed.tip, work.branch)
    });
    format!(
        "its report is taken from run {from}: {}{work}",
        report.outcome.word()
    )
}

fn committed(work: &Committed) -> String {
    match work.commits {
        0 => "there is no work of it to commit".to_owned(),
        1 => format!("its work is committed: {} (1 commit, {})", work.tip, work.diff),
        commits => format!(
            "its work is committed: {} ({commits} commits, {})",
            work.tip, work.diff
        ),
    }
}

fn reason(failure: &Failure) -> String {
    failure.to_string()
}

fn ended(run: &Run, step: StepIndex, end: &StepEnd) -> String {
    match end {
        StepEnd::Complete => "complete".to_owned(),
        StepEnd::Partial => "partial: what follows it runs".to_owned(),
        StepEnd::Blocked => format!("blocked{}", held_up(run, step)),
        StepEnd::Failed(failure) => format!("failed, {}{}", reason(failure), held_up(run, step)),
        StepEnd::Cancelled => "cancelled; it can be resumed".to_owned(),
        StepEnd::Skipped => "not run, for it was skipped".to_owned(),
        StepEnd::NotRun(because) => format!("not run, because of {}", agent(run, *because)),
        StepEnd::OverBudget => "not run, because a ceiling of the run is reached".to_owned(),
        StepEnd::FailedFast(first) => {
            format!(
                "not run, because {} failed and the run begins nothing more",
                agent(run, *first)
            )
        }
    }
}

fn held_up(run: &Run, step: StepIndex) -> String {
    let below = run.graph().descendants(step.0);
    let names: Vec<String> = below
        .into_iter()
        .map(|node| agent(run, StepIndex(node)))
        .collect();
    match names.len() {
        0 => String::new(),
        1 => format!("; {} does not run", plain::list(&names)),
        _ => format!("; {} do not run", plain::list(&names)),
    }
}

//! Reads a recap off a run.

use super::{
    EstimateRecap, HeldWorktree, Left, LeftStep, LeftWorktree, Merge, NextAction, Recap, RunResult,
    StepRecap, Totals, Unmerged,
};
use crate::id::StepIndex;
use crate::plain;
use crate::report::Report;
use crate::run::{
    AccountView, BudgetView, CheckView, FailureClass, NotRun, Phase, Run, RunEnd, Spent, Step, StepEnd, Work,
};
use crate::time::Timestamp;

pub(super) fn recap(run: &Run, now: Timestamp) -> Recap {
    let of_the_task = 0..u32::try_from(run.definition().task.agents.len()).unwrap_or(u32::MAX);
    let order = of_the_task.map(StepIndex).flat_map(|step| {
        let subs = run.sub_agents_of(step).chain(run.superseded_of(step));
        std::iter::once(step).chain(subs)
    });
    let steps: Vec<StepRecap> = order
        .filter_map(|index| Some(step_recap(run, index, run.step(index)?, now)))
        .collect();
    Recap {
        result: result(run, now),
        totals: totals(run, &steps, now),
        left: left(run, &steps),
        steps,
    }
}

fn result(run: &Run, now: Timestamp) -> RunResult {
    let definition = run.definition();
    let repository = definition.repository.as_ref();
    RunResult {
        run: run.id().clone(),
        title: definition.task.title.clone(),
        state: run.word(),
        over: run.end().is_some(),
        branch: run.tip().map(|_| definition.integration_branch()),
        commit: run.tip().map(str::to_owned),
        diff: None,
        repository: repository.map(|r| r.root.clone()),
        base_branch: repository.and_then(|r| r.branch.clone()),
        base_commit: repository.map(|r| r.base.clone()),
        folder: definition.step_folder.clone(),
        check: CheckView::of(run),
        relaunch_of: definition.relaunch_of.clone(),
        budget: BudgetView::of(run, now),
        estimate: EstimateRecap::of(run),
    }
}

impl EstimateRecap {
    /// What was foretold of the run, and how that turned out once it came to its end.
    #[must_use]
    pub fn of(run: &Run) -> Option<EstimateRecap> {
        let foretold = run.definition().foretold?;
        let took = run.took();
        Some(EstimateRecap {
            foretold,
            took,
            verdict: took.map(|took| foretold.verdict(took)),
        })
    }
}

fn step_recap(run: &Run, index: StepIndex, step: &Step, now: Timestamp) -> StepRecap {
    let agent = run.agent(index);
    let work = step.work();
    let committed = work.and_then(|w| w.committed.as_ref());
    let ledger = step.ledger();
    let failure = match step.end() {
        Some(StepEnd::Failed(failure)) => Some(failure.as_ref().clone()),
        Some(
            StepEnd::Complete
            | StepEnd::Partial
            | StepEnd::Blocked
            | StepEnd::Cancelled
            | StepEnd::NotRun(_)
            | StepEnd::Skipped
            | StepEnd::OverBudget
            | StepEnd::FailedFast(_),
        )
        | None => None,
    };
    StepRecap {
        step: index,
        agent: run.step_name(index).to_owned(),
        of: run.coordinator_of(index).map(|of| run.step_name(of).to_owned()),
        superseded: run.is_of_an_earlier_plan(index),
        title: agent.title.clone(),
        model: agent.model.clone(),
        effort: agent.effort.clone(),
        state: step.word(),
        report: accepted(step).cloned(),
        failure,
        not_run: NotRun::of(run, index),
        partial_upstream: match step.started() {
            Some(_) => run.partial_upstream(index),
            None => Vec::new(),
        },
        taken_from: step.hand().and_then(|hand| hand.taken.clone()),
        waiting_for: run.waiting_for(index),
        corrections: step.corrections(),
        plan_returns: step.plan_returns(),
        started: step.started(),
        ended: step.ended(),
        worked: step.worked(now),
        waited: step.waited(now),
        waits: ledger.map_or(0, |l| l.waits),
        usage: step.usage().into(),
        branch: work.and_then(branch).map(str::to_owned),
        commit: committed.map(|c| c.tip.clone()),
        diff: committed.map(|c| c.diff),
        merge: work.and_then(|work| merge(step, work)),
        conflict_returns: work.map_or(0, |w| w.conflict_returns),
        stray_writes: work.map_or_else(Vec::new, |w| w.stray.clone()),
        rescued: work.map_or_else(Vec::new, |w| w.rescued.clone()),
        worktree: work.and_then(|work| worktree(run, step, work)),
        troubles: ledger.map_or_else(Vec::new, |l| l.troubles.clone()),
    }
}

/// The step's report, unless it is still being checked or was refused in the end.
fn accepted(step: &Step) -> Option<&Report> {
    match step.phase() {
        Phase::Verifying => None,
        Phase::Closing(StepEnd::Failed(failure))
        | Phase::Committing(StepEnd::Failed(failure))
        | Phase::Ended(StepEnd::Failed(failure))
            if failure.class == FailureClass::ReportRefused =>
        {
            None
        }
        Phase::Pending
        | Phase::Ready
        | Phase::Leasing
        | Phase::Restarting
        | Phase::Opening
        | Phase::Finding
        | Phase::Prompted
        | Phase::Waiting(_)
        | Phase::Held(_)
        | Phase::Asking(_)
        | Phase::Gathering
        | Phase::Closing(_)
        | Phase::Committing(_)
        | Phase::BeginningMerge(_)
        | Phase::Inspecting(_)
        | Phase::Abandoning(_)
        | Phase::MergeQueued(_)
        | Phase::Merging(_)
        | Phase::Ended(_) => step.report(),
    }
}

fn branch(work: &Work) -> Option<&str> {
    let made = work.worktree.as_ref().map(|w| w.branch.as_str());
    made.or(work.planned.as_ref().map(|(branch, _)| branch.as_str()))
}

fn merge(step: &Step, work: &Work) -> Option<Merge> {
    step.end()?;
    let committed = work.committed.as_ref()?;
    Some(if work.merged {
        Merge::Merged
    } else if !work.conflicts.is_empty() {
        Merge::Conflict {
            files: work.conflicts.clone(),
        }
    } else if committed.commits == 0 {
        // Of what never ran nobody expects work.
        let ran = step.report().is_some() || !step.worked(step.ended()?).is_zero();
        return ran.then_some(Merge::Nothing);
    } else {
        Merge::Withheld
    })
}

fn worktree(run: &Run, step: &Step, work: &Work) -> Option<HeldWorktree> {
    let path = work.worktree.as_ref().filter(|_| !work.removed)?.path.clone();
    let held_by = match (step.end(), run.end()) {
        (None, _) => vec!["its agent is at work in it".to_owned()],
        _ if !work.holds.is_empty() => work.holds.iter().map(ToString::to_string).collect(),
        (Some(_), None) => vec!["the run is not over".to_owned()],
        // Asked to go, and nothing told what holds it.
        (Some(_), Some(RunEnd::Complete | RunEnd::Partial)) => vec!["it could not be looked at".to_owned()],
        (Some(_), Some(RunEnd::Blocked | RunEnd::Failed | RunEnd::Stopped)) => {
            vec!["it is kept for a resume".to_owned()]
        }
    };
    Some(HeldWorktree { path, held_by })
}

fn totals(run: &Run, steps: &[StepRecap], now: Timestamp) -> Totals {
    let until = if run.end().is_some() { run.updated() } else { now };
    let mut usage = Spent::default();
    steps.iter().for_each(|step| usage.add(&step.usage));
    let unknown = steps
        .iter()
        .filter(|step| step.started.is_some() && step.usage.is_unknown())
        .count();
    Totals {
        duration: until.since(run.launched()),
        worked: steps.iter().map(|step| step.worked).sum(),
        waited: steps.iter().map(|step| step.waited).sum(),
        usage,
        usage_unknown: u32::try_from(unknown).unwrap_or(u32::MAX),
    }
}

fn left(run: &Run, steps: &[StepRecap]) -> Left {
    let mut left = Left {
        resume: run.can_resume().then(|| format!("sillage resume {}", run.id())),
        check: failed_check(run),
        accounts: AccountView::all(run),
        ..Left::default()
    };
    for step in steps {
        let agent = || step.agent.clone();
        let held_up = step
            .report
            .as_ref()
            .is_some_and(|report| !report.blockers.is_empty());
        if !step.superseded && (step.state != "complete" || held_up) {
            left.steps.push(LeftStep {
                agent: agent(),
                state: step.state,
                why: why(step),
            });
        }
        let report = step.report.as_ref().filter(|_| !step.superseded);
        if let Some(action) = report.and_then(|r| r.next_action.clone()) {
            left.next_actions.push(NextAction {
                agent: agent(),
                action,
            });
        }
        if let (Some(branch), Some(commit)) = (&step.branch, &step.commit) {
            let conflicts = match &step.merge {
                Some(Merge::Conflict { files }) => Some(files.clone()),
                Some(Merge::Withheld) => Some(Vec::new()),
                Some(Merge::Merged | Merge::Nothing) | None => None,
            };
            if let Some(conflicts) = conflicts {
                let (branch, commit) = (branch.clone(), commit.clone());
                left.unmerged.push(Unmerged {
                    agent: agent(),
                    branch,
                    commit,
                    conflicts,
                });
            }
        }
        if let Some(worktree) = step.worktree.clone().filter(|_| run.end().is_some()) {
            left.worktrees.push(LeftWorktree {
                agent: agent(),
                worktree,
            });
        }
    }
    left
}

/// What a check that did not pass came to, and where to read on.
fn failed_check(run: &Run) -> Option<String> {
    let result = run.check().filter(|result| !result.passed)?;
    let command = run.definition().task.check.as_deref().unwrap_or_default();
    let file = result.file.as_ref().map_or_else(String::new, |file| {
        format!("; all that it wrote is in {}", file.display())
    });
    Some(format!("the check `{command}` {}{file}", result.words()))
}

/// Why a step is not complete.
fn why(step: &StepRecap) -> Option<String> {
    if let Some(failure) = &step.failure {
        return Some(failure.to_string());
    }
    if let Some(reason) = &step.not_run {
        return Some(reason.to_string());
    }
    if let Some(reason) = &step.waiting_for {
        return Some(format!("waits for {reason}"));
    }
    if let Some(Merge::Conflict { files }) = &step.merge {
        return Some(format!("its work conflicts in {}", plain::list(files)));
    }
    let blockers = step.report.iter().flat_map(|report| &report.blockers);
    let needs: Vec<String> = blockers
        .map(|blocker| match &blocker.needs {
            Some(needs) => format!("{} (needs {needs})", blocker.title),
            None => blocker.title.clone(),
        })
        .collect();
    (!needs.is_empty()).then(|| needs.join("; "))
}

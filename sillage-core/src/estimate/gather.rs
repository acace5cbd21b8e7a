//! Reads samples off a run's log: a fold beside the run's own.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::past::{ClosureSample, GroupSample, Part, RunSample, SessionSample};
use crate::id::StepIndex;
use crate::run::{CorruptLog, Event, Phase, Recorded, Run, StepEnd};
use crate::time::Timestamp;

/// Takes a run's facts in their order and keeps what they tell of how long sessions take.
///
/// Only what succeeded tells something: work that failed, or was stopped, or was done by an earlier run, is no sample.
///
/// ```no_run
/// # fn facts() -> Vec<sillage_core::run::Recorded> { Vec::new() }
/// use sillage_core::estimate::{Gather, Past};
///
/// let mut past = Past::default();
/// let mut facts = facts().into_iter();
/// let mut gather = Gather::start(facts.next().expect("a log starts with its launch"))?;
/// for fact in facts {
///     gather.take(&fact)?;
/// }
/// past.add(gather.finish());
/// # Ok::<(), sillage_core::run::CorruptLog>(())
/// ```
#[derive(Debug)]
pub struct Gather {
    run: Run,
    tracks: BTreeMap<StepIndex, Track>,
    closed: BTreeMap<String, Timestamp>,
    found: RunSample,
}

/// What was seen of a step since it last began.
#[derive(Debug, Default)]
struct Track {
    /// Time worked at the last thing that came of it.
    counted: Duration,
    /// Time worked until the first thing came.
    first: Option<Duration>,
    corrections: Vec<Duration>,
    pauses: Vec<Duration>,
    paused: Option<Timestamp>,
    opening: Option<Duration>,
    accepted: Option<Timestamp>,
    /// Its parts that are done.
    parts: Vec<SessionSample>,
    over: bool,
    /// Whether it had begun before: when it began this time is not told.
    again: bool,
}

impl Gather {
    /// Begins with a run's first fact.
    ///
    /// # Errors
    /// [`CorruptLog`] when that is no launch.
    pub fn start(first: Recorded) -> Result<Gather, CorruptLog> {
        Ok(Gather {
            run: Run::start(first)?,
            tracks: BTreeMap::new(),
            closed: BTreeMap::new(),
            found: RunSample::default(),
        })
    }

    /// Takes the next fact.
    ///
    /// # Errors
    /// [`CorruptLog`] when it cannot follow.
    pub fn take(&mut self, fact: &Recorded) -> Result<(), CorruptLog> {
        self.run.apply(fact)?;
        if let Some(step) = fact.event.step() {
            self.look_at(step, fact);
        }
        self.look_at_accounts(fact);
        Ok(())
    }

    /// What the run tells, as far as it was taken.
    #[must_use]
    pub fn finish(self) -> RunSample {
        self.found
    }

    fn look_at_accounts(&mut self, fact: &Recorded) {
        if let Event::GateClosed { account, .. } = &fact.event {
            self.closed.insert(account.clone(), fact.at);
        }
        if let Event::GateOpened { account, .. } = &fact.event
            && let Some(since) = self.closed.remove(account)
        {
            self.found.closures.push(ClosureSample {
                account: account.clone(),
                closed: fact.at.since(since),
            });
        }
    }

    fn look_at(&mut self, index: StepIndex, fact: &Recorded) {
        let Some(step) = self.run.step(index) else {
            return;
        };
        let track = self.tracks.entry(index).or_default();
        let worked = step.worked(fact.at);
        let over = step.end().is_some();
        if track.over && !over {
            // It is done again: what it worked before belongs to another try.
            *track = Track {
                counted: worked,
                again: true,
                ..Track::default()
            };
        }
        let pauses = matches!(step.phase(), Phase::Asking(_))
            || matches!(step.phase(), Phase::Waiting(wait) if wait.cause.is_ours());
        match (track.paused, pauses) {
            (None, true) => track.paused = Some(fact.at),
            (Some(since), false) => {
                track.pauses.push(fact.at.since(since));
                track.paused = None;
            }
            (None, false) | (Some(_), true) => {}
        }
        if track.opening.is_none()
            && *step.phase() == Phase::Prompted
            && let Some(started) = step.started()
        {
            track.opening = Some(fact.at.since(started));
        }
        let agent = self.run.agent(index);
        let sample = |track: &mut Track, part: Part| {
            let worked = track.first.take()?;
            Some(SessionSample {
                model: agent.model.clone(),
                effort: agent.effort.clone(),
                account: self.run.definition().account(&agent.model).to_owned(),
                part,
                worked,
                corrections: std::mem::take(&mut track.corrections),
                pauses: std::mem::take(&mut track.pauses),
                around: None,
            })
        };
        if is_return(&fact.event) {
            track.count(worked);
        }
        if let Event::PlanAccepted { plan, .. } = &fact.event {
            track.count(worked);
            let done = sample(track, Part::Planning);
            track.parts.extend(done);
            self.found.groups.push(GroupSample {
                task: task_name(
                    self.run.definition().task_file.as_deref(),
                    &self.run.definition().task.title,
                ),
                agent: agent.id.clone(),
                sub_agents: plan
                    .sub_agents
                    .iter()
                    .map(|sub| (sub.model.clone(), sub.effort.clone()))
                    .collect(),
                after: plan.after(),
            });
        }
        if matches!(fact.event, Event::ReportAccepted { .. }) {
            if track.accepted.is_none() {
                track.count(worked);
            }
            track.accepted = Some(fact.at);
        }
        if over && !track.over {
            track.over = true;
            let quiet = !track.again && track.pauses.is_empty() && track.corrections.is_empty();
            // A conflict that went back to it came after its report was accepted.
            if worked > track.counted {
                track.count(worked);
            }
            let part = match track.parts.is_empty() {
                true => Part::Mission,
                false => Part::Synthesis,
            };
            if let Some(mut done) = sample(track, part) {
                if let (true, Some(opening), Some(accepted)) = (quiet, track.opening, track.accepted) {
                    done.around = Some(opening + fact.at.since(accepted));
                }
                track.parts.push(done);
            }
            let succeeded = matches!(step.end(), Some(StepEnd::Complete | StepEnd::Partial));
            let parts = std::mem::take(&mut track.parts);
            // A plan that was accepted is a sample whatever came after it.
            let told = parts
                .into_iter()
                .filter(|part| succeeded || part.part == Part::Planning);
            self.found.sessions.extend(told);
        }
    }
}

impl Track {
    /// Something that is owed came, after so much work.
    fn count(&mut self, worked: Duration) {
        let span = worked.saturating_sub(self.counted);
        self.counted = worked;
        match self.first {
            None => self.first = Some(span),
            Some(_) => self.corrections.push(span),
        }
    }
}

/// Whether what came goes back, or is about to.
fn is_return(event: &Event) -> bool {
    matches!(event, Event::PlanRefused { .. } | Event::ReportRefused { .. })
}

/// The name under which a task's coordinators are known again.
pub(super) fn task_name(file: Option<&Path>, title: &str) -> String {
    match file {
        Some(file) => file.to_string_lossy().into_owned(),
        None => title.to_owned(),
    }
}

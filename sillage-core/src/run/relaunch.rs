//! Relaunching from an agent (R13): what a new run takes from an earlier one, or why it cannot.
//!
//! Taken is everything upstream of the agent, which must be as it was; and, of the agents that are neither upstream of
//! it nor after it, those that are as they were, with all that is upstream of them, and succeeded. The rest runs again.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use super::by_hand::Taken;
use super::ends::StepEnd;
use super::event::TakenWork;
use super::step::Step;
use super::work::MergeDone;
use super::{Run, RunRepository};
use crate::changes::{self, Changes};
use crate::fault::nearest;
use crate::graph::Graph;
use crate::id::{RunId, StepIndex};
use crate::plain;
use crate::ports::workspace::{Committed, DiffStat};
use crate::task::{AgentDefinition, Task};

/// What a relaunch takes from an earlier run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relaunch {
    /// The steps, upstream first, by their place in the new run.
    pub taken: Vec<Taken>,
    /// What the task has otherwise than the earlier run had it.
    pub changes: Changes,
}

/// Why a run cannot be relaunched from an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotRelaunched {
    /// The earlier run is under way.
    #[error("run {0} is not over: stop it, or wait for its end")]
    NotOver(RunId),
    /// The task has no such agent.
    #[error("the task has no agent `{agent}`{}", .near.as_ref().map_or_else(String::new, |near| format!(": did you mean `{near}`?")))]
    NoAgent {
        /// What was named.
        agent: String,
        /// The agent with the nearest name.
        near: Option<String>,
    },
    /// What was named is a sub-agent: it comes to be by its coordinator's plan, which is made anew.
    #[error(
        "{agent} is a sub-agent, and runs again with its agent only: relaunch from {coordinator}, or have it done again in run {run} with `retry`"
    )]
    SubAgent {
        /// What was named.
        agent: String,
        /// Its coordinator.
        coordinator: String,
        /// The earlier run.
        run: RunId,
    },
    /// The new run works in another repository.
    #[error("run {0} worked in another repository: its commits cannot be taken")]
    OtherRepository(RunId),
    /// Something upstream is missing or differs.
    #[error("what is upstream of `{from}` cannot be taken from run {run}: {}", all(.reasons))]
    Upstream {
        /// The agent.
        from: String,
        /// The earlier run.
        run: RunId,
        /// All that is in the way.
        reasons: Vec<InTheWay>,
    },
}

/// Why an agent upstream cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InTheWay {
    /// Only one of the two tasks has this agent upstream.
    Graph {
        /// The agent.
        agent: String,
        /// Whether it is the earlier run's task that has it.
        earlier: bool,
    },
    /// Its links are others.
    Links {
        /// The agent.
        agent: String,
    },
    /// Its definition differs in this field.
    Field {
        /// The agent.
        agent: String,
        /// How the field changed, in words.
        change: String,
    },
    /// It has no report that what follows may work from.
    NoReport {
        /// The agent.
        agent: String,
        /// Where its step stood.
        state: &'static str,
    },
}

impl fmt::Display for InTheWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InTheWay::Graph { agent, earlier: true } => write!(f, "{agent} was upstream and is not any more"),
            InTheWay::Graph {
                agent,
                earlier: false,
            } => write!(f, "{agent} is upstream and was not"),
            InTheWay::Links { agent } => write!(f, "the links to {agent} are others"),
            InTheWay::Field { agent, change } => write!(f, "{agent} differs: {change}"),
            InTheWay::NoReport { agent, state } => {
                write!(f, "{agent} was {state} and handed over no report to go on with")
            }
        }
    }
}

fn all(reasons: &[InTheWay]) -> String {
    let told: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    told.join("; ")
}

/// One of the two tasks, with what is asked about it.
struct Side<'a> {
    task: &'a Task,
    graph: Graph,
    by_id: BTreeMap<&'a str, u32>,
}

impl<'a> Side<'a> {
    fn of(task: &'a Task) -> Option<Side<'a>> {
        let ids = task.agents.iter().map(|agent| agent.id.as_str());
        Some(Side {
            task,
            graph: Graph::of(task).ok()?,
            by_id: ids.zip(0..).collect(),
        })
    }

    fn agent(&self, node: u32) -> &'a AgentDefinition {
        &self.task.agents[node as usize]
    }

    /// The links to an agent, as a file writes them.
    fn links_to(&self, node: u32) -> BTreeSet<String> {
        let links = self.task.links.iter().filter(|link| link.to.agent == node);
        links.map(|link| changes::link(self.task, link)).collect()
    }

    fn upstream_of(&self, node: u32) -> BTreeSet<&'a str> {
        let above = self.graph.ancestors(node).into_iter();
        above.map(|node| self.agent(node).id.as_str()).collect()
    }
}

/// What a new run of `task`, in `repository`, takes from an earlier one when it is relaunched from the agent `from`.
///
/// # Errors
/// [`NotRelaunched`], with all that is in the way.
pub fn relaunch_from(
    earlier: &Run,
    task: &Task,
    repository: Option<&RunRepository>,
    from: &str,
) -> Result<Relaunch, NotRelaunched> {
    let run = earlier.id().clone();
    if earlier.end().is_none() {
        return Err(NotRelaunched::NotOver(run));
    }
    let no_agent = |ids: &mut dyn Iterator<Item = &str>| NotRelaunched::NoAgent {
        agent: plain::line(from),
        near: nearest(from, ids),
    };
    let old_task = &earlier.definition().task;
    let (Some(old), Some(new)) = (Side::of(old_task), Side::of(task)) else {
        return Err(no_agent(&mut std::iter::empty()));
    };
    if let Some(of) = earlier
        .step_named(from)
        .and_then(|step| earlier.coordinator_of(step))
    {
        return Err(NotRelaunched::SubAgent {
            agent: plain::line(from),
            coordinator: earlier.step_name(of).to_owned(),
            run,
        });
    }
    let Some(&node) = new.by_id.get(from) else {
        return Err(no_agent(&mut new.by_id.keys().copied()));
    };
    let reasons = in_the_way(earlier, &old, &new, node);
    if !reasons.is_empty() {
        return Err(NotRelaunched::Upstream {
            from: from.to_owned(),
            run,
            reasons,
        });
    }
    let taken = choose(earlier, &old, &new, node);
    let root = |repository: Option<&RunRepository>| repository.map(|one| one.root.clone());
    let works = taken.iter().any(|taken| taken.work.is_some());
    if works && root(repository) != root(earlier.definition().repository.as_ref()) {
        return Err(NotRelaunched::OtherRepository(run));
    }
    Ok(Relaunch {
        taken,
        changes: changes::compare(old_task, task),
    })
}

/// All that keeps what is upstream from being taken.
fn in_the_way(earlier: &Run, old: &Side<'_>, new: &Side<'_>, from: u32) -> Vec<InTheWay> {
    let mut reasons = Vec::new();
    let upstream = new.upstream_of(from);
    let before = old
        .by_id
        .get(new.agent(from).id.as_str())
        .map_or_else(BTreeSet::new, |node| old.upstream_of(*node));
    for (agents, earlier) in [(&before - &upstream, true), (&upstream - &before, false)] {
        reasons.extend(agents.into_iter().map(|agent| InTheWay::Graph {
            agent: agent.to_owned(),
            earlier,
        }));
    }
    for id in upstream.intersection(&before) {
        let agent = || (*id).to_owned();
        let (was, is) = (old.by_id[id], new.by_id[id]);
        if old.links_to(was) != new.links_to(is) {
            reasons.push(InTheWay::Links { agent: agent() });
        }
        let fields = changes::compare_agents(old.agent(was), new.agent(is));
        reasons.extend(fields.iter().filter(|field| field.field != "title").map(|field| {
            let change = field.to_string();
            InTheWay::Field {
                agent: agent(),
                change,
            }
        }));
        let step = &earlier.steps()[was as usize];
        if !step.succeeded() || step.report().is_none() {
            reasons.push(InTheWay::NoReport {
                agent: agent(),
                state: step.word(),
            });
        }
    }
    reasons
}

/// The steps that are taken, upstream first.
fn choose(earlier: &Run, old: &Side<'_>, new: &Side<'_>, from: u32) -> Vec<Taken> {
    let after: HashSet<u32> = new.graph.descendants(from).into_iter().chain([from]).collect();
    let above: HashSet<u32> = new.graph.ancestors(from).into_iter().collect();
    let mut taken: Vec<StepIndex> = Vec::new();
    let mut is_taken: HashSet<u32> = HashSet::new();
    for &node in new.graph.order() {
        let Some(&was) = old.by_id.get(new.agent(node).id.as_str()) else {
            continue;
        };
        let unchanged = || {
            let fields = changes::compare_agents(old.agent(was), new.agent(node));
            old.links_to(was) == new.links_to(node)
                && fields.iter().all(|field| field.field == "title")
                && new
                    .graph
                    .parents(node)
                    .iter()
                    .all(|parent| is_taken.contains(parent))
        };
        if after.contains(&node) || !(above.contains(&node) || unchanged()) {
            continue;
        }
        let step = &earlier.steps()[was as usize];
        if step.succeeded() && step.report.is_some() {
            is_taken.insert(node);
            taken.push(StepIndex(was));
        }
    }
    let in_parts = stand_on_others(earlier, &taken);
    if in_parts {
        // As they were merged: what was done again stands on what was there before.
        taken.sort_by_key(|step| merges_of(earlier, *step).map(|(at, _)| at).max());
    }
    let taken = taken.into_iter().filter_map(|was| {
        let step = &earlier.steps()[was.position()];
        let node = new.by_id.get(old.agent(was.0).id.as_str())?;
        Some(Taken {
            step: StepIndex(*node),
            end: end_of(step.end()?, step),
            report: Arc::clone(step.report.as_ref()?),
            work: work_of(step).map(|work| all_of_its_work(earlier, was, work, in_parts)),
        })
    });
    taken.collect()
}

/// The merges of a step's work and of its sub-agents', those of earlier tries and plans included, each with its place
/// among the run's.
fn merges_of(earlier: &Run, step: StepIndex) -> impl Iterator<Item = (usize, &MergeDone)> {
    let its = move |of: StepIndex| of == step || earlier.coordinator_of(of) == Some(step);
    earlier
        .merges
        .iter()
        .enumerate()
        .filter(move |(_, one)| its(one.step))
}

/// Whether work that is taken may stand on that of a step that is not: one that was merged before it. What was done
/// again stands on all that was there, also on what followed it the first time. Then no commit can be taken with all
/// that is beneath it, and what each merge changed is taken instead.
fn stand_on_others(earlier: &Run, taken: &[StepIndex]) -> bool {
    let is_taken = |step: StepIndex| taken.contains(&earlier.coordinator_of(step).unwrap_or(step));
    let last = earlier.merges.iter().rposition(|one| is_taken(one.step));
    let before = &earlier.merges[..last.unwrap_or(0)];
    before.iter().any(|one| !is_taken(one.step))
}

/// A step whose work could not be merged stays partial.
fn end_of(end: &StepEnd, step: &Step) -> StepEnd {
    match work_of(step) {
        Some(work) if !work.conflicts.is_empty() => StepEnd::Partial,
        Some(_) | None => end.clone(),
    }
}

fn work_of(step: &Step) -> Option<TakenWork> {
    let work = step.work()?;
    let made = work.worktree.as_ref().map(|worktree| worktree.branch.as_str());
    let branch = made.or(work.planned.as_ref().map(|(branch, _)| branch.as_str()))?;
    Some(TakenWork {
        branch: branch.to_owned(),
        committed: work.committed.clone()?,
        conflicts: match work.merged {
            true => Vec::new(),
            false => work.conflicts.clone(),
        },
        parts: Vec::new(),
    })
}

/// All that was merged for a step: a coordinator's work is its group's too (W22), and a try that had nothing to add to
/// the one before rests on that. What its sub-agents and earlier tries did is beneath its own commits; where it made
/// none, or they were not merged, the last merge is taken.
fn all_of_its_work(earlier: &Run, step: StepIndex, own: TakenWork, in_parts: bool) -> TakenWork {
    let merges: Vec<&MergeDone> = merges_of(earlier, step).map(|(_, one)| one).collect();
    let parts = match in_parts {
        true => merges.iter().map(|one| one.part.clone()).collect(),
        false => Vec::new(),
    };
    if own.is_to_be_merged() {
        return TakenWork { parts, ..own };
    }
    let Some(last) = merges.last() else {
        return own;
    };
    let mut all = Committed {
        tip: last.part.tip.clone(),
        commits: 0,
        diff: DiffStat::default(),
    };
    for MergeDone { work, .. } in &merges {
        all.commits = all.commits.saturating_add(work.commits);
        all.diff.files = all.diff.files.saturating_add(work.diff.files);
        all.diff.insertions = all.diff.insertions.saturating_add(work.diff.insertions);
        all.diff.deletions = all.diff.deletions.saturating_add(work.diff.deletions);
    }
    TakenWork {
        committed: all,
        conflicts: Vec::new(),
        parts,
        ..own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::runtime::RuntimeError;
    use crate::run::tests::world::{Reply, World, plan, report, task};
    use crate::run::{Command, Input, RunDefinition, RunEnd};

    fn chain() -> RunDefinition {
        task(
            &["a", "b", "c", "d", "e"],
            &[("a", "b"), ("b", "c"), ("c", "d"), ("a", "e")],
        )
        .with_repository()
    }

    /// A chain whose fourth agent failed, and an agent apart from it that did not.
    fn failed() -> (World, Run) {
        let mut world = World::new(chain());
        let words = "refused".to_owned();
        world.script("d", [Reply::Error(RuntimeError::Permanent { words })]);
        let run = world.run_to_end();
        assert_eq!(run.end(), Some(RunEnd::Failed));
        (world, run)
    }

    fn changed(definition: &RunDefinition, change: impl FnOnce(&mut Task)) -> Task {
        let mut task = Task::clone(&definition.task);
        change(&mut task);
        task
    }

    fn relaunched(run: &Run, task: &Task, from: &str) -> Result<Relaunch, NotRelaunched> {
        relaunch_from(run, task, run.definition().repository.as_ref(), from)
    }

    #[test]
    fn r9_what_is_upstream_and_what_is_apart_are_taken_and_the_change_is_told() {
        let (_, run) = failed();
        let task = changed(run.definition(), |task| {
            task.agents[3].mission = "Another.".to_owned()
        });
        let relaunch = relaunched(&run, &task, "d").unwrap();
        let taken: Vec<u32> = relaunch.taken.iter().map(|taken| taken.step.0).collect();
        assert_eq!(
            taken.iter().copied().collect::<BTreeSet<u32>>(),
            [0, 1, 2, 4].into()
        );
        assert_eq!(relaunch.changes.lines(), ["d: mission changed"]);
        let work = relaunch.taken[0].work.as_ref().unwrap();
        assert_eq!(work.committed.tip, "commit-of-a");
        // The whole way: the new run asks d only, and has the others' commits merged.
        let mut world = World::new(run.definition().clone());
        let facts = Run::relaunch(world.now, world.definition.clone(), run.id(), relaunch.taken);
        world.log.extend(facts.clone());
        let mut new = Run::replay(facts).unwrap();
        world.turn(&mut new, vec![]);
        let new = world.go_on(new);
        assert_eq!(new.end(), Some(RunEnd::Complete));
        assert_eq!(world.prompted_order(), ["d"]);
        assert_eq!(world.merged_once(), ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn r13_what_is_apart_runs_again_when_it_changed() {
        let (_, run) = failed();
        let task = changed(run.definition(), |task| task.agents[4].effort = "high".to_owned());
        let relaunch = relaunched(&run, &task, "d").unwrap();
        assert!(relaunch.taken.iter().all(|taken| taken.step != StepIndex(4)));
    }

    #[test]
    fn r13_it_is_refused_with_every_reason_when_what_is_upstream_is_missing_or_differs() {
        let (_, run) = failed();
        let told = |task: &Task, from: &str| relaunched(&run, task, from).unwrap_err().to_string();
        let same = changed(run.definition(), |_| {});
        let mut last = changed(run.definition(), |task| {
            let link = crate::task::Link {
                from: task.links[0].from.clone(),
                to: task.links[0].to.clone(),
            };
            let mut agent = task.agents[0].clone();
            agent.id = "z".to_owned();
            task.agents.push(agent);
            let mut after_d = link;
            after_d.from.agent = 3;
            after_d.to.agent = 5;
            task.links.push(after_d);
        });
        assert!(
            told(&last, "z").contains("d is upstream and was not"),
            "{}",
            told(&last, "z")
        );
        last.agents[1].mission.push('!');
        assert!(told(&last, "d").contains("b differs: mission changed"));
        let unlinked = changed(run.definition(), |task| {
            task.links.remove(0);
        });
        let words = told(&unlinked, "d");
        assert!(
            words.contains("a was upstream and is not any more")
                && words.contains("the links to b are others"),
            "{words}"
        );
        assert_eq!(
            told(&same, "dd"),
            "the task has no agent `dd`: did you mean `d`?".replace(": did you mean `d`?", &near("dd"))
        );
        let mut world = World::new(chain());
        let words = "refused".to_owned();
        world.script("b", [Reply::Error(RuntimeError::Permanent { words })]);
        let run = world.run_to_end();
        let told = relaunched(&run, &same, "d").unwrap_err().to_string();
        assert!(
            told.contains("b was failed") && told.contains("c was not_run"),
            "{told}"
        );
    }

    fn near(name: &str) -> String {
        nearest(name, ["a", "b", "c", "d", "e"])
            .map_or_else(String::new, |near| format!(": did you mean `{near}`?"))
    }

    #[test]
    fn r13_a_run_that_is_under_way_or_was_elsewhere_is_refused() {
        let mut world = World::new(chain());
        let mut run = world.start();
        let same = Task::clone(&run.definition().task);
        assert!(matches!(
            relaunched(&run, &same, "d"),
            Err(NotRelaunched::NotOver(_))
        ));
        world.input(&mut run, Input::Command(Command::Stop));
        let (_, run) = failed();
        let other = RunRepository {
            root: "/elsewhere".into(),
            ..run.definition().repository.clone().unwrap()
        };
        let refused = relaunch_from(&run, &same, Some(&other), "d").unwrap_err();
        assert!(matches!(refused, NotRelaunched::OtherRepository(_)));
    }

    #[test]
    fn r13_a_sub_agent_is_named_as_one_with_its_coordinator() {
        let definition = task(&["build", "c"], &[("build", "c")]).with_dynamic("build");
        let run = World::new(definition).run_to_end();
        let same = Task::clone(&run.definition().task);
        let told = relaunched(&run, &same, "build/x").unwrap_err().to_string();
        assert!(
            told.contains("build/x is a sub-agent") && told.contains("relaunch from build"),
            "{told}"
        );
    }

    #[test]
    fn what_is_taken_is_not_told_to_have_hidden_what_it_cost() {
        use crate::run::{Budget, BudgetView, parse_cost};
        let mut definition = chain();
        definition.policy.budget = Some(Budget {
            cost: parse_cost("5USD").ok(),
            ..Budget::default()
        });
        let mut world = World::new(definition);
        let words = "refused".to_owned();
        world.script("d", [Reply::Error(RuntimeError::Permanent { words })]);
        let run = world.run_to_end();
        let same = Task::clone(&run.definition().task);
        let taken = relaunched(&run, &same, "d").unwrap().taken;
        let facts = Run::relaunch(world.now, run.definition().clone(), run.id(), taken);
        let new = Run::replay(facts).unwrap();
        assert_eq!(
            BudgetView::of(&new, world.now).unwrap().to_string(),
            "cost 0.00 of 5.00 USD used"
        );
    }

    #[test]
    fn r13_what_a_relaunch_took_can_be_taken_again() {
        let (_, run) = failed();
        let same = Task::clone(&run.definition().task);
        let first = relaunched(&run, &same, "d").unwrap();
        let mut world = World::new(run.definition().clone());
        let facts = Run::relaunch(world.now, world.definition.clone(), run.id(), first.taken);
        world.log.extend(facts.clone());
        let mut new = Run::replay(facts).unwrap();
        world.turn(&mut new, vec![]);
        let new = world.go_on(new);
        let again = relaunched(&new, &same, "d").unwrap();
        let work = again
            .taken
            .iter()
            .find(|taken| taken.step == StepIndex(0))
            .unwrap();
        assert_eq!(work.work.as_ref().unwrap().committed.tip, "commit-of-a");
    }

    #[test]
    fn r13_after_a_retry_the_newest_work_is_taken_and_none_of_what_runs_again() {
        for writes in [true, false] {
            let mut world = World::new(chain());
            let run = world.run_to_end();
            assert_eq!(run.end(), Some(RunEnd::Complete));
            if !writes {
                // The second time it finds its work there.
                world.writes_nothing.push("a");
            }
            let mut run = run;
            world.input(&mut run, Input::Command(Command::Redo { step: StepIndex(0) }));
            let run = world.go_on(run);
            assert_eq!(run.end(), Some(RunEnd::Complete));
            let same = Task::clone(&run.definition().task);
            let relaunch = relaunched(&run, &same, "b").unwrap();
            // What a did the second time stands on what b did the first time.
            let [a, e] = &relaunch.taken[..] else {
                panic!("{:?}", relaunch.taken);
            };
            assert_eq!((a.step, e.step), (StepIndex(0), StepIndex(4)));
            let work = a.work.as_ref().unwrap();
            assert!(work.is_to_be_merged());
            let tries = if writes { 2 } else { 1 };
            assert_eq!(work.parts.len(), tries);
            assert_eq!(work.parts[0].onto, "base");
            assert!(work.parts.iter().all(|part| part.tip == "merge-of-a"));
            assert_eq!(e.work.as_ref().unwrap().parts.len(), 2);
            // The new run asks for those parts.
            let mut world = World::new(run.definition().clone());
            let facts = Run::relaunch(world.now, world.definition.clone(), run.id(), relaunch.taken);
            world.log.extend(facts.clone());
            let mut new = Run::replay(facts).unwrap();
            world.turn(&mut new, vec![]);
            let key = crate::run::EffectKey::Merge(StepIndex(0));
            let Some(crate::run::Effect::Merge(wish)) = new.effect(key) else {
                panic!("its merge is wanted");
            };
            assert_eq!(wish.parts.len(), tries);
            let new = world.go_on(new);
            assert_eq!(world.prompted_order(), ["b", "c", "d"]);
            assert_eq!(new.end(), Some(RunEnd::Complete));
        }
    }

    #[test]
    fn r13_a_coordinator_that_wrote_nothing_itself_hands_over_its_groups_work() {
        // Its own commits, none, or one that conflicts; with a lost sub-agent or not.
        for (own, clashes, lost) in [
            (1, false, false),
            (0, false, false),
            (0, false, true),
            (1, true, false),
        ] {
            let definition = task(&["build", "c"], &[("build", "c")])
                .with_dynamic("build")
                .with_repository();
            let mut world = World::new(definition);
            world.plans("build", [Reply::text(&plan(&[("x", &[]), ("y", &[])]))]);
            let words = "refused".to_owned();
            let refused = || Reply::Error(RuntimeError::Permanent { words: words.clone() });
            if lost {
                world.script("build/y", [refused()]);
                world.script("build", [Reply::text(&report("partial"))]);
            }
            if own == 0 {
                world.writes_nothing.push("build");
            }
            if clashes {
                world.clashes.insert("build".to_owned(), u8::MAX);
            }
            world.script("c", [refused()]);
            let run = world.run_to_end();
            let build = &run.steps()[0];
            assert!(build.succeeded(), "{}", build.word());
            let same = Task::clone(&run.definition().task);
            let relaunch = relaunched(&run, &same, "c").unwrap();
            let work = relaunch.taken[0].work.as_ref().unwrap();
            let base = build.worktree().unwrap().base.clone();
            assert!(base.starts_with("merge-of-build/"), "{base}");
            let (tip, commits) = match (own, clashes, lost) {
                (1, false, _) => ("commit-of-build", 1),
                (_, _, false) => (base.as_str(), 2),
                (_, _, true) => (base.as_str(), 1),
            };
            assert_eq!(
                (work.committed.tip.as_str(), work.committed.commits),
                (tip, commits)
            );
            assert!(work.is_to_be_merged());
            // The new run merges it, and it can be taken from there again.
            let mut world = World::new(run.definition().clone());
            let facts = Run::relaunch(world.now, world.definition.clone(), run.id(), relaunch.taken);
            world.log.extend(facts.clone());
            let mut new = Run::replay(facts).unwrap();
            world.turn(&mut new, vec![]);
            let new = world.go_on(new);
            assert_eq!(world.merged_once(), ["build", "c"]);
            let again = relaunched(&new, &same, "c").unwrap();
            assert_eq!(again.taken[0].work.as_ref().unwrap().committed.tip, tip);
        }
    }
}

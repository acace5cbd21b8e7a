//! Which agents get a worktree (R15).

use crate::graph::Graph;
use crate::task::{AgentDefinition, AgentKind, Task, WorktreeWish};

/// Which agents of a task that writes in a repository get a worktree, by their place in the task: those that ask for
/// one; those whose mission speaks of commits or branches; those beside which another may write, a dynamic one's several
/// sub-agents among them; and, once one has one, all that come later in the graph's order. An agent that refuses one
/// never gets it. Sub-agents go by their coordinator.
///
/// `parallel` is how many may be at work at once: with one, nobody writes beside anybody.
#[must_use]
pub fn worktrees(task: &Task, graph: &Graph, parallel: u32) -> Vec<bool> {
    let company = graph.have_company();
    let mut wanted = vec![false; task.agents.len()];
    let mut earlier_has_one = false;
    for &node in graph.order() {
        let agent = &task.agents[node as usize];
        let wants = match agent.worktree {
            WorktreeWish::Always => true,
            WorktreeWish::Never => false,
            WorktreeWish::Auto => {
                let company = company[node as usize] || has_company_of_its_own(agent);
                earlier_has_one || (parallel > 1 && company) || speaks_of_commits(agent)
            }
        };
        wanted[node as usize] = wants;
        earlier_has_one |= wants;
    }
    wanted
}

/// Whether its sub-agents may write beside one another.
fn has_company_of_its_own(agent: &AgentDefinition) -> bool {
    let rules = agent.sub_agents.as_ref();
    agent.kind == AgentKind::Dynamic && rules.is_some_and(|rules| rules.max.get() > 1)
}

/// Whether the mission asks for commits or branches, in English or French.
fn speaks_of_commits(agent: &AgentDefinition) -> bool {
    const WORDS: [&str; 12] = [
        "commit",
        "commits",
        "committed",
        "branch",
        "branches",
        "rebase",
        "cherry-pick",
        "worktree",
        "commite",
        "committer",
        "branche",
        "merge",
    ];
    let words = agent.mission.split(|c: char| !(c.is_alphanumeric() || c == '-'));
    words
        .into_iter()
        .any(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::world;
    use crate::task::SubAgentRules;
    use std::sync::Arc;

    fn decided(links: &[(&str, &str)], change: impl FnOnce(&mut Task), parallel: u32) -> Vec<bool> {
        let mut definition = world::task(&["a", "b", "c"], links);
        let task = Arc::get_mut(&mut definition.task).unwrap();
        change(task);
        worktrees(task, &Graph::of(task).unwrap(), parallel)
    }

    #[test]
    fn r15_auto_gives_one_to_whoever_may_write_beside_another_and_to_all_that_come_later() {
        let chain = [("a", "b"), ("b", "c")];
        assert_eq!(decided(&chain, |_| {}, 4), [false, false, false]);
        assert_eq!(decided(&[("a", "b"), ("a", "c")], |_| {}, 4), [false, true, true]);
        assert_eq!(decided(&[("a", "c"), ("b", "c")], |_| {}, 4), [true, true, true]);
        assert_eq!(
            decided(&[("a", "c"), ("b", "c")], |_| {}, 1),
            [false, false, false]
        );
    }

    #[test]
    fn r15_sub_agents_that_may_write_beside_one_another_make_their_agent_and_all_later_ones_have_one() {
        let chain = [("a", "b"), ("b", "c")];
        let dynamic = |max: u32| {
            move |task: &mut Task| {
                task.agents[1].kind = AgentKind::Dynamic;
                task.agents[1].sub_agents = Some(SubAgentRules {
                    max: max.try_into().unwrap(),
                    delegate: vec![],
                    allow: vec![],
                });
            }
        };
        assert_eq!(decided(&chain, dynamic(2), 4), [false, true, true]);
        assert_eq!(decided(&chain, dynamic(1), 4), [false, false, false]);
        assert_eq!(decided(&chain, dynamic(2), 1), [false, false, false]);
    }

    #[test]
    fn r15_a_mission_that_speaks_of_commits_gets_one_and_a_refusal_holds() {
        let chain = [("a", "b"), ("b", "c")];
        let commits = |task: &mut Task| task.agents[1].mission = "Make one commit for each file.".to_owned();
        assert_eq!(decided(&chain, commits, 4), [false, true, true]);
        let refuses = |task: &mut Task| {
            task.agents[0].worktree = WorktreeWish::Always;
            task.agents[2].worktree = WorktreeWish::Never;
        };
        assert_eq!(decided(&chain, refuses, 4), [true, true, false]);
        let committee = |task: &mut Task| task.agents[0].mission = "Ask the committee.".to_owned();
        assert_eq!(decided(&chain, committee, 4), [false, false, false]);
    }
}

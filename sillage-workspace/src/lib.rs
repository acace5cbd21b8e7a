//! Git worktrees, commits and merges for agents, without running anything that a repository plants.

//! What people who run coding agents have been bitten by, tried on the whole program: real processes, a real
//! repository, a real store, and an agent that plays a script. Names begin with the scenario's
//! number; those that belong to none are named for what they show, with the requirement in a comment.

mod agents;
mod boxes;
mod budgets;
mod by_hand;
mod checks;
mod conflicts;
mod estimates;
mod git;
mod groups;
mod limits;
mod live;
mod newer;
mod pauses;
mod permissions;
mod plans;
mod processes;
mod refusals;
mod relais;
mod relaunch;
mod reports;
mod repositories;
mod resume;
mod scarce;
mod signals;
mod stage;
mod strays;
mod worktrees;

use stage::{Stage, eventually};

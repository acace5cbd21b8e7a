//! What people who run coding agents have been bitten by, tried on the whole program: real processes, a real
//! repository, a real store, and an agent that plays a script. The names begin with the scenario's number.

mod git;
mod live;
mod processes;
mod refusals;
mod reports;
mod resume;
mod stage;

use stage::{Stage, eventually};

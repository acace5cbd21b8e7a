//! Real git in temporary folders.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first surprise"
)]

mod commits;
mod conflicts;
mod faults;
mod formats;
mod hands;
mod insistence;
mod kills;
mod leases;
mod liars;
mod matrix;
mod measures;
mod merges;
mod planted;
mod removals;
mod sandbox;
mod surveys;
mod vectors;

use sandbox::Sandbox;

sillage_testkit::workspace_suite!(conforms_with_the_newest_git, Sandbox::newest());
sillage_testkit::workspace_suite!(conforms_with_the_oldest_git, Sandbox::oldest());

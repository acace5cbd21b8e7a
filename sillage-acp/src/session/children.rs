//! How much an agent's children have computed, from `/proc` (proc(5), `stat`); elsewhere that is not known.

use std::time::Duration;

#[cfg(target_os = "linux")]
use crate::process::table::{self, Entry};

/// Clock ticks in a second as the kernel tells them (`USER_HZ`): 100 on every machine that Rust's Linux targets name.
#[cfg(target_os = "linux")]
const TICKS: u64 = 100;

/// Computing time of the processes below `leader` and in its group, those that ended and were waited for included,
/// and without the leader's own. None where it cannot be told.
#[cfg(target_os = "linux")]
pub(super) fn computed(leader: u32) -> Option<Duration> {
    let all = table::processes();
    // Where even we are not to be seen, nobody is.
    all.iter().find(|one| one.pid == std::process::id())?;
    let ticks = sum(&all, leader);
    Some(Duration::from_millis(ticks.saturating_mul(1000) / TICKS))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn computed(_: u32) -> Option<Duration> {
    None
}

#[cfg(target_os = "linux")]
fn sum(all: &[Entry], leader: u32) -> u64 {
    let group = all.iter().filter(|one| one.group == leader).map(|one| one.pid);
    let roots = group.chain([leader]).collect();
    let time = |one: &Entry| one.waited_ticks + if one.pid == leader { 0 } else { one.own_ticks };
    table::descendants(all, &roots).into_iter().map(time).sum()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn r11_children_count_wherever_they_went_and_the_leader_does_not() {
        let entry = |pid, parent, group, own_ticks, waited_ticks| Entry {
            pid,
            parent,
            group,
            session: group,
            start: 0,
            dead: false,
            own_ticks,
            waited_ticks,
        };
        let all = [
            entry(8, 12, 12, 1, 0), // below a child, with a lower number
            entry(10, 5, 10, 1000, 20),
            entry(12, 10, 12, 300, 4000), // left the group
            entry(13, 1, 10, 50_000, 0),  // its parent is gone
            entry(20, 5, 20, 900_000, 900_000),
        ];
        assert_eq!(sum(&all, 10), 54_321);
        assert!(computed(std::process::id()).is_some());
    }
}

//! How much an agent's children have computed, from `/proc` (proc(5), `stat`); elsewhere that is not known.

use std::time::Duration;

/// Clock ticks in a second as the kernel tells them (`USER_HZ`): 100 on every machine that Rust's Linux targets name.
#[cfg(target_os = "linux")]
const TICKS: u64 = 100;

/// Computing time of the processes below `leader` and in its group, those that ended and were waited for included,
/// and without the leader's own. None where it cannot be told.
#[cfg(target_os = "linux")]
pub(super) fn computed(leader: u32) -> Option<Duration> {
    let all: Vec<Entry> = std::fs::read_dir("/proc")
        .ok()?
        .filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            // It may end while it is looked at.
            Entry::read(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
        })
        .collect();
    let ticks = sum(&all, leader);
    Some(Duration::from_millis(ticks.saturating_mul(1000) / TICKS))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn computed(_: u32) -> Option<Duration> {
    None
}

/// A process, its times in clock ticks.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    pid: u32,
    parent: u32,
    group: u32,
    own: u64,
    /// Of children that it waited for.
    waited: u64,
}

#[cfg(target_os = "linux")]
impl Entry {
    fn read(stat: &str) -> Option<Self> {
        // The name may hold blanks and brackets.
        let (pid, rest) = (stat.split_once(' ')?.0, stat.rsplit_once(") ")?.1);
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The first of them is field 3, `state`.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let small = |number| u32::try_from(field(number)?).ok();
        Some(Self {
            pid: pid.parse().ok()?,
            parent: small(4)?,
            group: small(5)?,
            own: field(14)? + field(15)?,
            waited: field(16)? + field(17)?,
        })
    }
}

#[cfg(target_os = "linux")]
fn sum(all: &[Entry], leader: u32) -> u64 {
    let mut family = std::collections::HashSet::from([leader]);
    loop {
        let before = family.len();
        let kin = all
            .iter()
            .filter(|one| one.group == leader || family.contains(&one.parent));
        let kin: Vec<u32> = kin.map(|one| one.pid).collect();
        family.extend(kin);
        if family.len() == before {
            break;
        }
    }
    let time = |one: &Entry| one.waited + if one.pid == leader { 0 } else { one.own };
    all.iter().filter(|one| family.contains(&one.pid)).map(time).sum()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn r11_times_are_read_whatever_the_name_of_the_program() {
        let stat = "42 (a) b (c) S 7 40 40 0 -1 4194304 1 2 3 4 11 22 33 44 20 0 1 0 5 6 7";
        let expected = Entry {
            pid: 42,
            parent: 7,
            group: 40,
            own: 33,
            waited: 77,
        };
        assert_eq!(Entry::read(stat), Some(expected));
        assert_eq!(Entry::read("42 (a) Z"), None);
        assert!(computed(std::process::id()).is_some());
    }

    #[test]
    fn r11_children_count_wherever_they_went_and_the_leader_does_not() {
        let entry = |pid, parent, group, own, waited| Entry {
            pid,
            parent,
            group,
            own,
            waited,
        };
        let all = [
            entry(8, 12, 12, 1, 0), // below a child, with a lower number
            entry(10, 5, 10, 1000, 20),
            entry(12, 10, 12, 300, 4000), // left the group
            entry(13, 1, 10, 50_000, 0),  // its parent is gone
            entry(20, 5, 20, 900_000, 900_000),
        ];
        assert_eq!(sum(&all, 10), 54_321);
    }
}

//! The process table of Linux: who is there, whose child it is, and signals that cannot hit another process.
//!
//! A number is not a process: it is given again. So a process is known by its number and the tick at which it started
//! ([`Identity`]), and is signalled through a handle that was taken before the two were compared.

use std::collections::HashSet;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use super::MARK;

/// A process, told apart from a later one of the same number (proc(5), `starttime`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) pid: u32,
    /// Ticks from the machine's start to the process's.
    pub(crate) start: u64,
}

impl Identity {
    /// Who has this number now, unless it has ended.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        read_process(pid)
            .filter(|one| !one.dead)
            .map(|one| one.identity())
    }

    /// Whether it is still there and has not ended.
    pub(crate) fn lives(self) -> bool {
        Identity::of(self.pid) == Some(self)
    }

    /// Signals it and no other; says whether it was there.
    pub(crate) fn signal(self, signal: Signal) -> std::io::Result<bool> {
        let handle = match pidfd_open(signed(self.pid)?, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(Errno::SRCH) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        // Compared once the handle is held: what it stands for cannot become another process any more.
        if read_process(self.pid).is_none_or(|one| one.start != self.start) {
            return Ok(false);
        }
        match pidfd_send_signal(handle, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// A process number as the system's calls take it.
pub(crate) fn signed(pid: u32) -> std::io::Result<Pid> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| std::io::Error::other("a process number out of range"))
}

/// A line of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    pub(crate) start: u64,
    /// Ended, and not reaped by its parent yet.
    pub(crate) dead: bool,
    /// Clock ticks that it computed itself.
    pub(crate) own_ticks: u64,
    /// Clock ticks of those of its children that ended and that it waited for.
    pub(crate) waited_ticks: u64,
}

impl Entry {
    pub(crate) fn identity(&self) -> Identity {
        Identity {
            pid: self.pid,
            start: self.start,
        }
    }
}

/// All processes that can be seen.
pub(crate) fn processes() -> Vec<Entry> {
    let Ok(folder) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    folder
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(read_process)
        .collect()
}

/// One line of the table.
pub(crate) fn read_process(pid: u32) -> Option<Entry> {
    parse_stat(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads `/proc/<pid>/stat` (proc(5)). The command's name may hold spaces and parentheses: fields follow the last one.
fn parse_stat(pid: u32, stat: &str) -> Option<Entry> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    // The first of them is the manual's field 3, `state`.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let small = |number| u32::try_from(field(number)?).ok();
    Some(Entry {
        pid,
        dead: matches!(*fields.first()?, "Z" | "X"),
        parent: small(4)?,
        group: small(5)?,
        session: small(6)?,
        start: field(22)?,
        own_ticks: field(14)? + field(15)?,
        waited_ticks: field(16)? + field(17)?,
    })
}

/// The processes of `roots` and all that descend from them, in the order of the table.
pub(crate) fn descendants<'a>(all: &'a [Entry], roots: &HashSet<u32>) -> Vec<&'a Entry> {
    let mut members = roots.clone();
    // Children may have lower numbers than their parents: look until nothing is added.
    loop {
        let before = members.len();
        for one in all {
            if members.contains(&one.parent) {
                members.insert(one.pid);
            }
        }
        if members.len() == before {
            return all.iter().filter(|one| members.contains(&one.pid)).collect();
        }
    }
}

/// The mark that a process carries, if any. Of another user's process it cannot be read.
pub(crate) fn mark_of(pid: u32) -> Option<String> {
    mark_in(&std::fs::read(format!("/proc/{pid}/environ")).ok()?)
}

fn mark_in(environment: &[u8]) -> Option<String> {
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|one| one.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(value.to_vec()).ok()
}

/// When and where process numbers of now mean something: this start of the machine, and this space of numbers, for a
/// data folder may be shared with a container.
pub(crate) fn epoch() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), Path::new(&space).display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_table_is_read_whatever_a_command_is_called() {
        let stat = "7 (a) b (c) Z 3 5 6 0 -1 4194304 1 2 3 4 11 22 33 44 20 0 1 0 4242 0 0";
        let entry = Entry {
            pid: 7,
            parent: 3,
            group: 5,
            session: 6,
            start: 4242,
            dead: true,
            own_ticks: 33,
            waited_ticks: 77,
        };
        assert_eq!(parse_stat(7, stat), Some(entry));
        assert_eq!(parse_stat(7, "7 (a"), None);
        let own = read_process(std::process::id()).unwrap();
        assert!(!own.dead && own.start > 0);
        // Its times go on.
        assert!(processes().iter().any(|one| one.identity() == own.identity()));
    }

    #[test]
    fn c9_a_number_that_was_given_again_is_not_signalled() {
        let mut child = std::process::Command::new("sleep").arg("300").spawn().unwrap();
        let now = Identity::of(child.id()).unwrap();
        let earlier = Identity {
            start: now.start - 1,
            ..now
        };
        assert!(!earlier.lives());
        assert!(!earlier.signal(Signal::KILL).unwrap());
        assert!(now.lives());
        assert!(now.signal(Signal::KILL).unwrap());
        child.wait().unwrap();
        assert!(!now.lives());
        assert!(!now.signal(Signal::KILL).unwrap());
    }

    #[test]
    fn a_mark_is_a_whole_variable() {
        assert_eq!(
            mark_in(b"A=1\0SILLAGE_SESSION=x-1\0B=2\0").as_deref(),
            Some("x-1")
        );
        assert_eq!(mark_in(b"MY_SILLAGE_SESSION=x\0SILLAGE_SESSIONS=y\0"), None);
        assert_eq!(mark_in(b""), None);
    }

    #[test]
    fn descendants_are_found_whatever_their_numbers() {
        let entry = |pid, parent| Entry {
            pid,
            parent,
            group: pid,
            session: pid,
            start: 1,
            dead: false,
            own_ticks: 0,
            waited_ticks: 0,
        };
        let all = [entry(2, 9), entry(9, 5), entry(5, 1), entry(7, 1)];
        let found: Vec<u32> = descendants(&all, &HashSet::from([5]))
            .iter()
            .map(|one| one.pid)
            .collect();
        assert_eq!(found, [2, 9, 5]);
    }
}

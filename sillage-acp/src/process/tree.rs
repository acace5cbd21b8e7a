//! A process group and what left it, on Linux: `/proc`, pidfds and signals.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, pidfd_send_signal, waitid,
};
use tokio::process::Child;
use tokio::sync::watch;

/// Tells when a process ends without reaping it.
pub(super) struct ExitWatch {
    ended: watch::Receiver<bool>,
}

impl ExitWatch {
    /// Watches a child that has not been reaped, from a thread that ends with it.
    pub(super) fn new(pid: u32) -> std::io::Result<Self> {
        let child = signed(pid)?;
        let (tell, ended) = watch::channel(false);
        let wait = move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(Errno::INTR) = waitid(WaitId::Pid(child), options) {}
            tell.send_replace(true);
        };
        std::thread::Builder::new()
            .name(format!("agent {pid}"))
            .stack_size(64 << 10)
            .spawn(wait)?;
        Ok(Self { ended })
    }

    /// Waits for the end. May be dropped and called again.
    pub(super) async fn wait(&mut self, _child: &mut Child) {
        // The sender is dropped only after it has told.
        let _ = self.ended.wait_for(|ended| *ended).await;
    }
}

/// The leader of an agent's process group, and what is known to have left the group.
#[derive(Debug)]
pub(crate) struct Leader {
    pid: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Set once the leader was reaped: its number may belong to another process.
    gone: bool,
    strays: HashSet<Stray>,
}

/// A process told apart from a later one of the same number by when it started (proc(5), `starttime`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stray {
    pid: u32,
    start: u64,
}

impl Leader {
    pub(super) fn new(pid: u32) -> Self {
        Self {
            pid,
            state: Mutex::default(),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Remembers the descendants that are in another group than the leader. Says whether there were new ones.
    pub(super) fn note_strays(&self) -> bool {
        let mut state = self.state();
        if state.gone {
            return false;
        }
        let before = state.strays.len();
        let all = processes();
        let family = family(&all, self.pid, &state.strays);
        let outside = family.into_iter().filter(|one| one.group != self.pid);
        state.strays.extend(outside.map(Entry::stray));
        state.strays.len() > before
    }

    /// Asks the group and its strays to end.
    pub(super) fn terminate(&self) {
        // What cannot be asked is killed next.
        let _ = self.signal(Signal::TERM);
    }

    /// Kills the group and its strays; nothing when the leader was reaped.
    pub(crate) fn kill(&self) -> std::io::Result<()> {
        self.signal(Signal::KILL)
    }

    /// [`Leader::kill`] for those who have no time: looks again for what was started between a look and a kill.
    pub(crate) fn kill_all(&self) {
        self.note_strays();
        for _ in 0..4 {
            let _ = self.kill();
            if !self.note_strays() {
                return;
            }
        }
    }

    /// The leader is about to be reaped.
    pub(super) fn forget(&self) {
        self.state().gone = true;
    }

    /// Kills until none of the group and its strays is left, but for the leader; gives one that is left after `bound`.
    pub(super) async fn survivor_after(&self, bound: Duration) -> Option<u32> {
        let deadline = tokio::time::Instant::now() + bound;
        let mut pause = Duration::from_millis(1);
        loop {
            let survivor = self.survivor();
            if survivor.is_none() || tokio::time::Instant::now() >= deadline {
                return survivor;
            }
            let _ = self.kill();
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn survivor(&self) -> Option<u32> {
        self.note_strays();
        let all = processes();
        let family = family(&all, self.pid, &self.state().strays);
        family
            .into_iter()
            .find(|one| !one.dead && one.pid != self.pid)
            .map(|one| one.pid)
    }

    fn signal(&self, signal: Signal) -> std::io::Result<()> {
        let state = self.state();
        if state.gone {
            return Ok(());
        }
        let group = match kill_process_group(signed(self.pid)?, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        };
        for stray in &state.strays {
            signal_stray(*stray, signal);
        }
        group
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Signals a process by a handle taken before its identity is checked, so that no other one can be hit.
fn signal_stray(stray: Stray, signal: Signal) {
    let Ok(pid) = signed(stray.pid) else { return };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if read_process(stray.pid).is_some_and(|one| one.start == stray.start) {
        // It may have ended by itself.
        let _ = pidfd_send_signal(handle, signal);
    }
}

fn signed(pid: u32) -> std::io::Result<Pid> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| std::io::Error::other("a process number out of range"))
}

/// The processes that belong to a leader: its group, its descendants, those seen to be earlier, and whatever is in a
/// group or session that one of these leads or led.
fn family<'a>(all: &'a [Entry], leader: u32, strays: &HashSet<Stray>) -> Vec<&'a Entry> {
    // A number that another process has now says nothing of the groups that it once led.
    let reused = |stray: &Stray| {
        all.iter()
            .any(|one| one.pid == stray.pid && one.start != stray.start)
    };
    let led: HashMap<u32, u64> = strays
        .iter()
        .filter(|stray| !reused(stray))
        .map(|stray| (stray.pid, stray.start))
        .collect();
    let led_once = |number: u32, one: &Entry| led.get(&number).is_some_and(|start| one.start >= *start);
    let mut members = HashSet::from([leader]);
    // Children may have lower numbers than their parents: look until nothing is added.
    loop {
        let before = members.len();
        for one in all {
            let belongs = members.contains(&one.parent)
                || [one.group, one.session]
                    .iter()
                    .any(|number| members.contains(number) || led_once(*number, one))
                || strays.contains(&one.stray());
            if belongs {
                members.insert(one.pid);
            }
        }
        if members.len() == before {
            return all.iter().filter(|one| members.contains(&one.pid)).collect();
        }
    }
}

/// A line of the process table.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    pid: u32,
    parent: u32,
    group: u32,
    session: u32,
    start: u64,
    /// Ended, and not reaped by its parent yet.
    dead: bool,
}

impl Entry {
    fn stray(&self) -> Stray {
        Stray {
            pid: self.pid,
            start: self.start,
        }
    }
}

fn processes() -> Vec<Entry> {
    let Ok(folder) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    folder
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(read_process)
        .collect()
}

fn read_process(pid: u32) -> Option<Entry> {
    parse_stat(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads `/proc/<pid>/stat` (proc(5)). The command's name may hold spaces and parentheses: fields follow the last one.
fn parse_stat(pid: u32, stat: &str) -> Option<Entry> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    Some(Entry {
        pid,
        dead: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_table_is_read_whatever_a_command_is_called() {
        let stat = "7 (a) b (c) Z 3 5 6 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let entry = Entry {
            pid: 7,
            parent: 3,
            group: 5,
            session: 6,
            start: 4242,
            dead: true,
        };
        assert_eq!(parse_stat(7, stat), Some(entry));
        assert_eq!(parse_stat(7, "7 (a"), None);
        let own = read_process(std::process::id()).unwrap();
        assert!(!own.dead && own.start > 0);
        assert!(processes().contains(&own));
    }
    fn entry(pid: u32, parent: u32, group: u32, session: u32) -> Entry {
        Entry {
            pid,
            parent,
            group,
            session,
            start: u64::from(pid),
            dead: false,
        }
    }

    fn members(all: &[Entry], strays: &[(u32, u64)]) -> Vec<u32> {
        let strays = strays
            .iter()
            .map(|(pid, start)| Stray {
                pid: *pid,
                start: *start,
            })
            .collect();
        family(all, 10, &strays).into_iter().map(|one| one.pid).collect()
    }

    #[test]
    fn c7_a_family_is_found_by_parents_groups_and_sessions() {
        let engine = entry(5, 1, 5, 5);
        let all = [
            engine,
            entry(8, 12, 10, 5),   // a lower number than its parent
            entry(10, 5, 10, 5),   // the leader
            entry(11, 1, 10, 5),   // in the group, its parent gone
            entry(12, 11, 12, 12), // left the group and the session
            entry(13, 1, 12, 12),  // in that session, its parent gone
            entry(20, 5, 20, 5),   // another agent
            entry(21, 1, 21, 21),
        ];
        assert_eq!(members(&all, &[]), [8, 10, 11, 12, 13]);
    }

    #[test]
    fn c7_c9_what_a_gone_stray_led_is_its_own_unless_the_number_was_given_again() {
        let orphan = entry(32, 1, 30, 30);
        assert_eq!(members(&[orphan], &[(30, 30)]), [32]);
        let older = Entry {
            start: 3,
            ..entry(32, 1, 30, 30)
        };
        assert_eq!(
            members(&[older], &[(30, 30)]),
            [0; 0],
            "it was there before the stray"
        );
        let reused = [
            Entry {
                start: 99,
                ..entry(30, 1, 30, 30)
            },
            Entry {
                start: 100,
                ..entry(32, 30, 30, 30)
            },
        ];
        assert_eq!(members(&reused, &[(30, 30)]), [0; 0]);
        assert_eq!(members(&[entry(30, 1, 30, 30)], &[(30, 30)]), [30]);
    }
}

//! A process group and what left it, on Linux: `/proc`, pidfds and signals.

use std::collections::HashSet;
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

    /// Remembers the descendants that are in another group than the leader.
    pub(super) fn note_strays(&self) {
        let mut state = self.state();
        if !state.gone {
            self.note_strays_in(&mut state);
        }
    }

    fn note_strays_in(&self, state: &mut State) {
        let all = processes();
        let mut family: HashSet<u32> = state
            .strays
            .iter()
            .filter(|stray| {
                all.iter()
                    .any(|one| one.pid == stray.pid && one.start == stray.start)
            })
            .map(|stray| stray.pid)
            .collect();
        family.insert(self.pid);
        // Children may have lower numbers than their parents: look until nothing is added.
        loop {
            let before = family.len();
            let children = all
                .iter()
                .filter(|one| family.contains(&one.parent))
                .map(|one| one.pid);
            family.extend(children.collect::<Vec<_>>());
            // Members of the group whose parent has ended still belong to it, and so do their children.
            family.extend(all.iter().filter(|one| one.group == self.pid).map(|one| one.pid));
            if family.len() == before {
                break;
            }
        }
        let outside = all
            .iter()
            .filter(|one| family.contains(&one.pid) && one.group != self.pid);
        state.strays.extend(outside.map(|one| Stray {
            pid: one.pid,
            start: one.start,
        }));
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

    /// [`Leader::kill`] for those who have no time to look around first.
    pub(crate) fn kill_all(&self) {
        self.note_strays();
        let _ = self.kill();
    }

    /// The leader is about to be reaped.
    pub(super) fn forget(&self) {
        self.state().gone = true;
    }

    /// Waits until none of the group and its strays is left; gives one that is left after `bound`.
    pub(super) async fn survivor_after(&self, bound: Duration) -> Option<u32> {
        let deadline = tokio::time::Instant::now() + bound;
        let mut pause = Duration::from_millis(1);
        loop {
            let survivor = self.survivor();
            if survivor.is_none() || tokio::time::Instant::now() >= deadline {
                return survivor;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn survivor(&self) -> Option<u32> {
        let state = self.state();
        let all = processes();
        let alive = all.iter().filter(|one| !one.dead && one.pid != self.pid);
        alive
            .filter(|one| {
                one.group == self.pid
                    || state.strays.contains(&Stray {
                        pid: one.pid,
                        start: one.start,
                    })
            })
            .map(|one| one.pid)
            .next()
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

/// A line of the process table.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    pid: u32,
    parent: u32,
    group: u32,
    start: u64,
    /// Ended, and not reaped by its parent yet.
    dead: bool,
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
        start: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_table_is_read_whatever_a_command_is_called() {
        let stat = "7 (a) b (c) Z 3 5 5 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let entry = Entry {
            pid: 7,
            parent: 3,
            group: 5,
            start: 4242,
            dead: true,
        };
        assert_eq!(parse_stat(7, stat), Some(entry));
        assert_eq!(parse_stat(7, "7 (a"), None);
        let own = read_process(std::process::id()).unwrap();
        assert!(!own.dead && own.start > 0);
        assert!(processes().contains(&own));
    }
}

//! An agent's leader and all that it started, on Linux: its group, its descendants, and what carries its mark.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::process::Child;
use tokio::sync::watch;

use super::table::{Entry, Identity, mark_of, processes, signed};

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

/// The process that was started for a session (the agent, or its guardian), and what is known to have left its group.
#[derive(Debug)]
pub(crate) struct Leader {
    pid: u32,
    /// It is a guardian, which ends the agent and all that it started when it is told to.
    guards: bool,
    /// What all of them carry in their environment ([`super::MARK`]).
    mark: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Set once the leader was reaped: its number may belong to another process.
    gone: bool,
    strays: HashSet<Identity>,
    /// Who could not be signalled, and why.
    refused: HashMap<u32, String>,
}

impl Leader {
    pub(super) fn new(pid: u32, guards: bool, mark: String) -> Self {
        Self {
            pid,
            guards,
            mark,
            state: Mutex::default(),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// The agent's own process, once a guardian has started it.
    pub(super) fn agent(&self) -> Option<u32> {
        if !self.guards {
            return Some(self.pid);
        }
        let child = |one: &Entry| one.parent == self.pid;
        processes().into_iter().find(child).map(|one| one.pid)
    }

    /// Remembers the descendants that are in another group than the leader. Says whether there were new ones.
    pub(super) fn note_strays(&self) -> bool {
        self.note(&processes(), false)
    }

    /// The same, and whatever carries the mark: those too whose parents have all gone.
    fn note_all(&self) -> bool {
        self.note(&processes(), true)
    }

    fn note(&self, all: &[Entry], marked: bool) -> bool {
        let mut state = self.state();
        if state.gone {
            return false;
        }
        let before = state.strays.len();
        if marked {
            let own = std::process::id();
            let carries =
                |one: &&Entry| one.pid != own && mark_of(one.pid).is_some_and(|mark| mark == self.mark);
            let found = all
                .iter()
                .filter(|one| !one.dead && one.group != self.pid)
                .filter(carries);
            state.strays.extend(found.map(Entry::identity));
        }
        let family = family(all, self.pid, &state.strays);
        let outside = family.into_iter().filter(|one| one.group != self.pid);
        state.strays.extend(outside.map(Entry::identity));
        state.strays.len() > before
    }

    /// Asks all of them to end. A guardian does it by itself, and is told alone: some agents take a second request for
    /// a more urgent one.
    pub(super) fn terminate(&self) {
        if !self.guards {
            // What cannot be asked is killed next.
            let _ = self.signal(Signal::TERM);
            return;
        }
        let mut state = self.state();
        if !state.gone
            && let Ok(pid) = signed(self.pid)
            && let Err(error) = kill_process(pid, Signal::TERM)
        {
            state.refused.insert(self.pid, error.to_string());
        }
    }

    /// Kills the group and its strays; nothing when the leader was reaped.
    pub(crate) fn kill(&self) -> std::io::Result<()> {
        self.signal(Signal::KILL)
    }

    /// [`Leader::kill`] for those who have no time: looks again for what was started between a look and a kill.
    pub(crate) fn kill_all(&self) {
        self.note_all();
        for _ in 0..4 {
            let _ = self.kill();
            if !self.note_all() {
                return;
            }
        }
    }

    /// The leader is about to be reaped.
    pub(super) fn forget(&self) {
        self.state().gone = true;
    }

    /// Kills until none of the group and its strays is left, but for the leader; gives one that is left after `bound`,
    /// with the words for it.
    pub(super) async fn survivor_after(&self, bound: Duration) -> Option<(u32, String)> {
        let deadline = tokio::time::Instant::now() + bound;
        let mut pause = Duration::from_millis(1);
        loop {
            let survivor = self.survivors().first().copied();
            if survivor.is_none() || tokio::time::Instant::now() >= deadline {
                return survivor.map(|one| (one.pid, self.why(one.pid)));
            }
            let _ = self.kill();
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// All that live but the leader.
    pub(super) fn survivors(&self) -> Vec<Identity> {
        self.note_all();
        let all = processes();
        let state = self.state();
        let own = std::process::id();
        let mut living = Vec::new();
        for one in family(&all, self.pid, &state.strays) {
            if one.pid == self.pid {
                continue;
            }
            if !one.dead {
                living.push(one.identity());
            } else if one.parent == own && state.strays.contains(&one.identity()) {
                // It came to us when its parent went (`adopt_orphans`), and nobody else waits for it.
                let _ = signed(one.pid)
                    .map(|pid| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG));
            }
        }
        living
    }

    /// Why a process is still there.
    pub(super) fn why(&self, pid: u32) -> String {
        match self.state().refused.get(&pid) {
            Some(words) => format!("a signal to it cannot be delivered: {words}"),
            None => "it outlived SIGKILL".to_owned(),
        }
    }

    fn signal(&self, signal: Signal) -> std::io::Result<()> {
        let mut state = self.state();
        if state.gone {
            return Ok(());
        }
        // Strays first: while their guardian lives, what they leave behind comes to it.
        let strays: Vec<Identity> = state.strays.iter().copied().collect();
        for stray in strays {
            if let Err(error) = stray.signal(signal) {
                state.refused.insert(stray.pid, error.to_string());
            }
        }
        match kill_process_group(signed(self.pid)?, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => {
                state.refused.insert(self.pid, error.to_string());
                Err(error.into())
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The processes that belong to a leader: its group, its descendants, those seen to be earlier, and whatever is in a
/// group or session that one of these leads or led.
fn family<'a>(all: &'a [Entry], leader: u32, strays: &HashSet<Identity>) -> Vec<&'a Entry> {
    // A number that another process has now says nothing of the groups that it once led.
    let reused = |stray: &Identity| {
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
                || strays.contains(&one.identity());
            if belongs {
                members.insert(one.pid);
            }
        }
        if members.len() == before {
            return all.iter().filter(|one| members.contains(&one.pid)).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pid: u32, parent: u32, group: u32, session: u32) -> Entry {
        Entry {
            pid,
            parent,
            group,
            session,
            start: u64::from(pid),
            dead: false,
            own_ticks: 0,
            waited_ticks: 0,
        }
    }

    fn members(all: &[Entry], strays: &[(u32, u64)]) -> Vec<u32> {
        let strays = strays
            .iter()
            .map(|(pid, start)| Identity {
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

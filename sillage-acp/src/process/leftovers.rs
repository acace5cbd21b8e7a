//! Finding and ending what an engine left, by its records.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sillage_core::id::ClientSessionId;

use super::record::{self, Record};
use super::table::{Entry, Identity, descendants, epoch, mark_of, processes};
use crate::leftovers::{Leftover, LeftoverState};

/// From `SIGTERM` to `SIGKILL`. A guardian that still lives has begun when its engine went.
const AFTER_TERM: Duration = Duration::from_secs(2);

/// From `SIGKILL` to giving up.
const AFTER_KILL: Duration = Duration::from_secs(5);

/// A session that has a record.
struct Recorded {
    session: ClientSessionId,
    path: PathBuf,
    record: Record,
}

pub(crate) fn find(records: &Path) -> io::Result<Vec<Leftover>> {
    let mut recorded = read_all(records)?;
    recorded.retain(|one| {
        !one.record
            .engine
            .is_some_and(|engine| one.is_of_now() && engine.lives())
    });
    let living = living(&recorded);
    let left = recorded.into_iter().filter_map(|one| {
        let pids = living.get(&one.session)?;
        Some(one.into_leftover(pids, LeftoverState::Running))
    });
    Ok(left.collect())
}

pub(crate) fn end(records: &Path) -> io::Result<Vec<Leftover>> {
    let recorded = read_all(records)?;
    if recorded.is_empty() {
        return Ok(Vec::new());
    }
    let mut found: BTreeMap<ClientSessionId, HashSet<Identity>> = BTreeMap::new();
    let mut refused = HashMap::new();
    let look = |found: &mut BTreeMap<ClientSessionId, HashSet<Identity>>| {
        let living = living(&recorded);
        for (session, processes) in &living {
            found.entry(*session).or_default().extend(processes);
        }
        living
    };
    let mut left = look(&mut found);
    signal(&left, &[Signal::TERM, Signal::CONT], &mut refused);
    let asked = Instant::now();
    let mut pause = Duration::from_millis(2);
    while !left.is_empty() && asked.elapsed() < AFTER_TERM + AFTER_KILL {
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
        left = look(&mut found);
        if asked.elapsed() >= AFTER_TERM {
            signal(&left, &[Signal::KILL], &mut refused);
        }
    }
    let mut told = Vec::new();
    for mut one in recorded {
        let nobody = HashSet::new();
        let were = found.get(&one.session).unwrap_or(&nobody);
        let state = match left.get(&one.session).and_then(|left| left.iter().min()) {
            None if were.is_empty() => LeftoverState::Gone,
            None => LeftoverState::Ended,
            Some(process) => LeftoverState::Unstoppable {
                pid: process.pid,
                words: why(*process, &refused),
            },
        };
        match left.get(&one.session) {
            None => std::fs::remove_file(&one.path)?,
            Some(left) => {
                one.record.epoch = epoch();
                one.record.processes = left.iter().copied().collect();
                record::write(&one.path, &one.record)?;
            }
        }
        told.push(one.into_leftover(were, state));
    }
    Ok(told)
}

fn why(process: Identity, refused: &HashMap<Identity, String>) -> String {
    match refused.get(&process) {
        Some(words) => format!("a signal to it cannot be delivered: {words}"),
        None => "it outlived SIGKILL".to_owned(),
    }
}

impl Recorded {
    fn is_of_now(&self) -> bool {
        self.record.epoch == epoch()
    }

    fn into_leftover(self, processes: &HashSet<Identity>, state: LeftoverState) -> Leftover {
        let mut pids: Vec<u32> = processes.iter().map(|one| one.pid).collect();
        pids.sort_unstable();
        Leftover {
            session: self.session,
            agent: self.record.agent,
            folder: self.record.folder,
            since: self.record.since,
            pids,
            state,
        }
    }
}

/// The records, in the order of the sessions' start. Of a damaged one the name still says whose it is.
fn read_all(records: &Path) -> io::Result<Vec<Recorded>> {
    let folder = match std::fs::read_dir(records) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        folder => folder?,
    };
    let mut recorded = Vec::new();
    for entry in folder {
        let path = entry?.path();
        let named = path.extension().is_some_and(|extension| extension == "json");
        let session = path.file_stem().and_then(|name| name.to_str()?.parse().ok());
        if let (true, Some(session)) = (named, session) {
            recorded.push(Recorded {
                session: ClientSessionId(session),
                record: record::read(&path).unwrap_or_default(),
                path,
            });
        }
    }
    recorded.sort_by_key(|one| (one.record.since, one.session));
    Ok(recorded)
}

/// The processes of each session that live: those that its record names, those that carry its mark, and all that
/// descend from one of these.
fn living(recorded: &[Recorded]) -> BTreeMap<ClientSessionId, HashSet<Identity>> {
    let all: Vec<Entry> = processes();
    let now = epoch();
    let own = std::process::id();
    let mut roots: HashMap<ClientSessionId, HashSet<u32>> = HashMap::new();
    let sessions: HashMap<String, ClientSessionId> = recorded
        .iter()
        .map(|one| (one.session.to_string(), one.session))
        .collect();
    for one in all.iter().filter(|one| !one.dead && one.pid != own) {
        let mark = mark_of(one.pid).unwrap_or_default();
        let marked = mark.split('/').next().and_then(|session| sessions.get(session));
        if let Some(session) = marked {
            roots.entry(*session).or_default().insert(one.pid);
        }
    }
    for one in recorded.iter().filter(|one| one.record.epoch == now) {
        for process in one.record.processes.iter().filter(|process| process.lives()) {
            roots.entry(one.session).or_default().insert(process.pid);
        }
    }
    let mut living = BTreeMap::new();
    for (session, roots) in roots {
        let members = descendants(&all, &roots);
        let members = members.into_iter().filter(|one| !one.dead && one.pid != own);
        let members: HashSet<Identity> = members.map(Entry::identity).collect();
        if !members.is_empty() {
            living.insert(session, members);
        }
    }
    living
}

fn signal(
    left: &BTreeMap<ClientSessionId, HashSet<Identity>>,
    signals: &[Signal],
    refused: &mut HashMap<Identity, String>,
) {
    for process in left.values().flatten() {
        for signal in signals {
            if let Err(error) = process.signal(*signal) {
                refused.insert(*process, error.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::process::MARK;
    use crate::process::record::RecordFile;

    fn session(number: u128) -> ClientSessionId {
        ClientSessionId(uuid::Uuid::from_u128(number))
    }

    fn sleep(mark: Option<&str>) -> Child {
        let mut sleep = Command::new("sleep");
        sleep.arg("300").env_remove(MARK);
        sleep.envs(mark.map(|mark| (MARK, mark)));
        sleep.spawn().unwrap()
    }

    /// A record of an engine that is gone.
    fn record(folder: &Path, number: u128, epoch: String, processes: Vec<Identity>) {
        let record = Record {
            agent: "a".to_owned(),
            epoch,
            processes,
            ..Record::default()
        };
        record::write(&folder.join(format!("{}.json", session(number))), &record).unwrap();
    }

    fn names(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn c9_what_another_start_of_the_machine_recorded_is_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let mut stranger = sleep(None);
        let identity = Identity::of(stranger.id()).unwrap();
        let later = Identity {
            start: identity.start + 1,
            ..identity
        };
        record(folder.path(), 1, "another start".to_owned(), vec![identity]);
        record(folder.path(), 2, epoch(), vec![later]);
        let told = end(folder.path()).unwrap();
        assert!(
            told.iter().all(|one| one.state == LeftoverState::Gone),
            "{told:?}"
        );
        assert!(identity.lives());
        assert_eq!(names(folder.path()), 0);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn p6_only_what_is_recorded_is_ended_by_its_number_or_its_mark() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorded = sleep(None);
        let mut marked = sleep(Some(&format!("{}/1.0", session(2))));
        let mut foreign = sleep(Some(&format!("{}/1.0", session(9))));
        record(
            folder.path(),
            1,
            epoch(),
            vec![Identity::of(recorded.id()).unwrap()],
        );
        // A record that was never finished still has its name.
        std::fs::write(folder.path().join(format!("{}.json", session(2))), "{").unwrap();
        std::fs::write(folder.path().join("notes.json"), "not a session").unwrap();
        assert_eq!(find(folder.path()).unwrap().len(), 2);
        // Ours to reap: nobody is gone before that.
        let reaped = std::thread::spawn(move || (recorded.wait().unwrap(), marked.wait().unwrap()));
        let told = end(folder.path()).unwrap();
        let mut states: Vec<_> = told
            .iter()
            .map(|one| (one.session, one.pids.len(), &one.state))
            .collect();
        states.sort_by_key(|one| one.0);
        assert_eq!(
            states,
            [
                (session(1), 1, &LeftoverState::Ended),
                (session(2), 1, &LeftoverState::Ended)
            ]
        );
        reaped.join().unwrap();
        assert!(foreign.try_wait().unwrap().is_none());
        foreign.kill().unwrap();
        foreign.wait().unwrap();
        assert_eq!(names(folder.path()), 1);
    }

    #[test]
    fn nothing_recorded_is_nothing_left() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(end(&folder.path().join("none")).unwrap(), []);
        assert_eq!(find(folder.path()).unwrap(), []);
    }

    #[test]
    fn p7_what_outlived_an_earlier_process_stays_recorded_when_a_later_one_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let begin = || RecordFile::begin(folder.path(), session(1), "a", Path::new("/")).unwrap();
        let mut survivor = sleep(None);
        let mut first = begin();
        first.left(vec![Identity::of(survivor.id()).unwrap()]).unwrap();
        let mut second = begin();
        second.started(std::process::id()).unwrap();
        second.ended().unwrap();
        let path = folder.path().join(format!("{}.json", session(1)));
        let pids = |record: Record| record.processes.iter().map(|one| one.pid).collect::<Vec<_>>();
        assert_eq!(record::read(&path).map(pids), Some(vec![survivor.id()]));
        survivor.kill().unwrap();
        survivor.wait().unwrap();
        begin().ended().unwrap();
        assert_eq!(names(folder.path()), 0);
    }
}

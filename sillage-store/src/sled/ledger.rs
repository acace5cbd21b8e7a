//! The ledger: what changed since the store was opened, so that a loss is noticed.
//!
//! Where sled finds a damaged piece of its log it takes it for the log's torn end, or passes over the rest of a
//! segment, and goes on without a word. Each commit therefore adds to a block what it changed and the number of
//! commits so far; a block that has grown is followed by the next. At the next opening all blocks must be there, all
//! that they name too, and as many commits as the [`Mark`](super::folder::Mark) says. What sled replays when it
//! opens is what was written since it was last opened, which is what the ledger covers: it then starts anew.

use std::collections::BTreeMap;

use sillage_core::id::RunId;
use sillage_core::ports::store::StoreError;
use sled::Batch;

use super::keys;
use super::record::TooLong;
use super::view::{View, pieces};

/// How many bytes of names a block takes before the next begins. A block is written with every commit, and should be
/// one piece; the fewer blocks there are, the sooner a store is open.
const BLOCK: usize = 3 << 10;

/// Commits counted, and what they changed.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    commits: u64,
    base: u64,
    block: u64,
    /// The prefix of a log or document, and its last number.
    touched: BTreeMap<Vec<u8>, u64>,
    bytes: usize,
    /// Keys of blocks from before the store was opened.
    stale: Vec<Vec<u8>>,
}

/// One block as it was found.
struct Block {
    number: u64,
    base: u64,
    commits: u64,
    touched: Vec<(Vec<u8>, u64)>,
}

impl Ledger {
    /// Reads the ledger and checks that everything in it is there. `mark` is how many commits there must be at
    /// least; without one nothing is checked, which is how a person goes on with what is left.
    pub(super) fn open(view: &View<'_>, mark: Option<u64>) -> Result<Ledger, StoreError> {
        let mut blocks = Vec::new();
        let mut stale = Vec::new();
        for item in view.numbered(keys::LEDGER, 0..=u64::MAX) {
            let (key, first) = item?;
            stale.push(key.to_vec());
            match (read_block(view, key, first), mark) {
                (Ok(block), _) => blocks.push(block),
                (Err(_), None) => {}
                (Err(why), Some(_)) => return Err(why),
            }
        }
        let more = [keys::LEDGER[0].to_ascii_lowercase()];
        for key in view.keys(&more, more.to_vec()) {
            stale.push(key?.to_vec());
        }
        let commits = blocks.last().map_or(0, |block| block.commits);
        if let Some(mark) = mark {
            check_whole(view, &blocks, commits, mark)?;
            check_touched(view, &blocks)?;
        }
        let next = blocks.last().map_or(1, |block| block.number + 1);
        Ok(Ledger {
            commits,
            base: next,
            block: next,
            touched: BTreeMap::new(),
            bytes: 0,
            stale,
        })
    }

    /// How many commits there were.
    pub(super) fn commits(&self) -> u64 {
        self.commits
    }

    /// Notes that the log or document behind `prefix` goes up to `last`.
    pub(super) fn touch(&mut self, prefix: Vec<u8>, last: u64) {
        let len = prefix.len();
        if self.touched.insert(prefix, last).is_none() {
            self.bytes += len + 8;
        }
    }

    /// Counts a commit, and adds the present block to it.
    pub(super) fn enter(&mut self, batch: &mut Batch) -> Result<(), TooLong> {
        self.commits += 1;
        let count = [self.commits.to_be_bytes(), self.base.to_be_bytes()].concat();
        let touched = self
            .touched
            .iter()
            .map(|(prefix, last)| keys::numbered(prefix, *last));
        let parts: Vec<Vec<u8>> = std::iter::once(count).chain(touched).collect();
        for key in self.stale.drain(..) {
            batch.remove(key);
        }
        for (key, bytes) in pieces(&keys::block(self.block), &parts)? {
            batch.insert(key, bytes);
        }
        if self.bytes > BLOCK {
            self.block += 1;
            self.touched.clear();
            self.bytes = 0;
        }
        Ok(())
    }
}

fn read_block(view: &View<'_>, key: sled::IVec, first: sled::IVec) -> Result<Block, StoreError> {
    let name = || "a block of its ledger".to_owned();
    let number = keys::number(&key).unwrap_or(0);
    let found = view.assemble(&key, first, &name)?;
    let mut block = Block {
        number,
        base: 0,
        commits: 0,
        touched: Vec::new(),
    };
    for (index, frame) in found.frames(0).enumerate() {
        let frame = frame.map_err(|flaw| view.flawed(&name(), &flaw))?;
        let Some((prefix, last)) = frame.split_last_chunk::<8>() else {
            continue;
        };
        let last = u64::from_be_bytes(*last);
        if index == 0 {
            block.commits = keys::number(prefix).unwrap_or(0);
            block.base = last;
        } else {
            block.touched.push((prefix.to_vec(), last));
        }
    }
    Ok(block)
}

fn lost(view: &View<'_>, what: &str) -> StoreError {
    view.folder.damaged(format!(
        "{what} that had been written; restore the folder from a copy, or delete its file `mark` to go on with what \
         is left"
    ))
}

fn check_whole(view: &View<'_>, blocks: &[Block], commits: u64, mark: u64) -> Result<(), StoreError> {
    if commits < mark {
        return Err(lost(
            view,
            &format!("it lacks {} of the {mark} changes", mark - commits),
        ));
    }
    let base = blocks.last().map_or(0, |block| block.base);
    let dense = blocks
        .iter()
        .zip(base..)
        .all(|(block, number)| block.number == number);
    if dense {
        Ok(())
    } else {
        Err(lost(view, "it lacks some of the changes"))
    }
}

fn check_touched(view: &View<'_>, blocks: &[Block]) -> Result<(), StoreError> {
    let mut last: BTreeMap<&[u8], u64> = BTreeMap::new();
    for (prefix, number) in blocks.iter().flat_map(|block| &block.touched) {
        last.insert(prefix, *number);
    }
    for (prefix, number) in last {
        let found = view.last(prefix, u64::MAX)?;
        let reaches = found
            .as_ref()
            .and_then(|(key, _)| keys::number(key))
            .is_some_and(|found| found >= number);
        if !reaches {
            return Err(lost(view, &format!("it lacks the end of {}", name(prefix))));
        }
        if let Some(run) = run(prefix) {
            check_run(view, &run)?;
        }
    }
    Ok(())
}

/// A run's summary and its places in the lists must be those of its last event. Where one of them is itself damaged,
/// reading the run tells, and the others can be used.
fn check_run(view: &View<'_>, run: &RunId) -> Result<(), StoreError> {
    let (Ok(summary), Ok(next)) = (view.summary(run), view.next_of_log(run)) else {
        return Ok(());
    };
    let whole = match summary {
        Some(summary) => {
            summary.last.next() == next
                && view.holds(&keys::listed(keys::ALL, summary.launched, run))?
                && view.holds(&keys::listed(keys::UNFINISHED, summary.launched, run))? != summary.finished
        }
        None => false,
    };
    if whole {
        Ok(())
    } else {
        Err(lost(view, &format!("it lacks changes to the state of run {run}")))
    }
}

fn run(prefix: &[u8]) -> Option<RunId> {
    let name = prefix.strip_prefix(&[keys::LOG])?.strip_suffix(&[0])?;
    RunId::new(std::str::from_utf8(name).ok()?).ok()
}

fn name(prefix: &[u8]) -> String {
    match run(prefix) {
        Some(run) => format!("run {run}"),
        None => "a document".to_owned(),
    }
}

//! Random operations on a store, beside a model of plain maps.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sillage_core::id::{RunId, Seq};
use sillage_core::ports::Store;
use sillage_core::ports::store::{RunSummary, StoreError, Which};

use super::{run, session, summary};

/// Something done to a store. Small numbers stand for runs, documents and sessions, so that they meet.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Append events of these sizes, `off` positions from where the log ends.
    Append {
        /// The run.
        run: u8,
        /// 0 for the right position.
        off: i8,
        /// Bytes of each event.
        sizes: Vec<u16>,
        /// When the summary says that it was launched.
        launched: i8,
        /// Whether the summary says that it is finished.
        finished: bool,
    },
    /// Read a page.
    Read {
        /// The run.
        run: u8,
        /// From where.
        from: u8,
        /// How many bytes.
        page: u16,
    },
    /// List runs.
    Runs {
        /// Only the unfinished.
        unfinished: bool,
        /// How many.
        limit: u8,
    },
    /// Write a document's next version.
    Put {
        /// The document.
        name: u8,
        /// 0 for the right version.
        off: i8,
        /// Bytes of the body.
        size: u16,
    },
    /// Look at a document.
    Get {
        /// The document.
        name: u8,
        /// Its version.
        version: u8,
    },
    /// Add a chunk to a transcript.
    Chunk {
        /// The run.
        run: u8,
        /// The session.
        session: u8,
        /// Bytes of the chunk.
        size: u16,
    },
    /// Close the store and open it again, where it can be.
    Reopen,
}

/// Operations, some of them wrong.
pub fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let off = prop_oneof![8 => Just(0_i8), 1 => -2..3_i8];
    let size = prop_oneof![6 => 0..200_u16, 1 => 3000..20_000_u16];
    let append = (
        0..4_u8,
        off.clone(),
        prop::collection::vec(size.clone(), 0..5),
        any::<i8>(),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(run, off, sizes, launched, finished)| Operation::Append {
            run,
            off,
            sizes,
            launched,
            finished,
        });
    let one = prop_oneof![
        6 => append,
        3 => (0..4_u8, 0..20_u8, any::<u16>()).prop_map(|(run, from, page)| Operation::Read { run, from, page }),
        2 => (any::<bool>(), 0..6_u8).prop_map(|(unfinished, limit)| Operation::Runs { unfinished, limit }),
        3 => (0..3_u8, off, size.clone()).prop_map(|(name, off, size)| Operation::Put { name, off, size }),
        2 => (0..3_u8, 0..6_u8).prop_map(|(name, version)| Operation::Get { name, version }),
        2 => (0..2_u8, 0..2_u8, size).prop_map(|(run, session, size)| Operation::Chunk { run, session, size }),
        1 => Just(Operation::Reopen),
    ];
    prop::collection::vec(one, 1..40)
}

/// What a store ought to hold.
#[derive(Debug, Default)]
pub struct Model {
    runs: BTreeMap<RunId, (Vec<Vec<u8>>, RunSummary)>,
    documents: BTreeMap<String, Vec<Vec<u8>>>,
    transcripts: BTreeMap<(RunId, u8), Vec<Vec<u8>>>,
    written: u64,
}

fn shifted(number: u64, off: i8) -> u64 {
    number.saturating_add_signed(off.into())
}

fn run_numbered(number: u8) -> RunId {
    run(&format!("run-{number}"))
}

impl Model {
    /// Bytes that were never given before.
    fn bytes(&mut self, size: u16) -> Vec<u8> {
        self.written += 1;
        self.written
            .to_be_bytes()
            .iter()
            .copied()
            .cycle()
            .take(size.into())
            .collect()
    }

    /// Does the operation on both and compares what they say.
    ///
    /// # Panics
    /// When they differ.
    pub async fn apply(&mut self, store: &impl Store, operation: &Operation) {
        match operation {
            Operation::Append {
                run,
                off,
                sizes,
                launched,
                finished,
            } => {
                let run = run_numbered(*run);
                let events = sizes.iter().map(|size| self.bytes(*size)).collect();
                let summary = RunSummary {
                    finished: *finished,
                    ..summary(&run, (*launched).into())
                };
                self.append(store, &run, *off, events, summary).await;
            }
            Operation::Read { run, from, page } => self.read(store, *run, *from, *page).await,
            Operation::Runs { unfinished, limit } => self.list(store, *unfinished, *limit).await,
            Operation::Put { name, off, size } => {
                let body = self.bytes(*size);
                self.put(store, format!("document {name}"), *off, body).await;
            }
            Operation::Get { name, version } => self.get(store, &format!("document {name}"), *version).await,
            Operation::Chunk {
                run,
                session: number,
                size,
            } => {
                let (run, chunk) = (run_numbered(*run), self.bytes(*size));
                store
                    .add_transcript(&run, session((*number).into()), chunk.clone())
                    .await
                    .expect("transcript");
                self.transcripts.entry((run, *number)).or_default().push(chunk);
            }
            // Whoever owns the store does it.
            Operation::Reopen => {}
        }
    }

    async fn append(
        &mut self,
        store: &impl Store,
        run: &RunId,
        off: i8,
        events: Vec<Vec<u8>>,
        given: RunSummary,
    ) {
        let found = Seq(self.runs.get(run).map_or(0, |(log, _)| log.len()) as u64 + 1);
        let expected = Seq(shifted(found.0, off));
        let said = store.append(run, expected, events.clone(), &given).await;
        if expected != found {
            assert_eq!(
                said,
                Err(StoreError::Sequence {
                    run: run.clone(),
                    expected,
                    found
                })
            );
            return;
        }
        assert_eq!(said, Ok(()));
        let (log, summary) = self
            .runs
            .entry(run.clone())
            .or_insert_with(|| (Vec::new(), given.clone()));
        log.extend(events);
        *summary = RunSummary {
            last: Seq(log.len() as u64),
            ..given
        };
    }

    async fn read(&self, store: &impl Store, run: u8, from: u8, page: u16) {
        let run = run_numbered(run);
        let log = self.runs.get(&run).map_or(&[][..], |(log, _)| log);
        let from = usize::from(from.max(1));
        let mut bytes = 0;
        let mut expected = Vec::new();
        for (index, event) in log.iter().enumerate().skip(from - 1) {
            bytes += event.len();
            if bytes > usize::from(page) && !expected.is_empty() {
                break;
            }
            expected.push((Seq(index as u64 + 1), event.clone()));
        }
        assert_eq!(
            store.read(&run, Seq(from as u64), page.into()).await,
            Ok(expected)
        );
    }

    async fn list(&self, store: &impl Store, unfinished: bool, limit: u8) {
        let mut expected: Vec<RunSummary> = self.runs.values().map(|(_, summary)| summary.clone()).collect();
        expected.retain(|summary| !(unfinished && summary.finished));
        expected.sort_by_key(|summary| (-summary.launched.0, summary.run.clone()));
        expected.truncate(limit.into());
        let which = if unfinished { Which::Unfinished } else { Which::All };
        assert_eq!(store.runs(which, limit.into()).await, Ok(expected));
    }

    async fn put(&mut self, store: &impl Store, name: String, off: i8, body: Vec<u8>) {
        let found = self.documents.get(&name).map_or(0, Vec::len) as u64;
        let expected = shifted(found, off);
        let said = store.put("kind", &name, expected, body.clone()).await;
        if expected != found {
            assert_eq!(
                said,
                Err(StoreError::Version {
                    kind: "kind".to_owned(),
                    name,
                    expected,
                    found
                })
            );
            return;
        }
        assert_eq!(said, Ok(found + 1));
        self.documents.entry(name).or_default().push(body);
    }

    async fn get(&self, store: &impl Store, name: &str, version: u8) {
        let versions = self.documents.get(name).map_or(&[][..], Vec::as_slice);
        let newest = versions.last().map(|body| (versions.len() as u64, body.clone()));
        assert_eq!(store.get("kind", name).await, Ok(newest));
        let then = usize::from(version)
            .checked_sub(1)
            .and_then(|index| versions.get(index))
            .cloned();
        assert_eq!(store.get_version("kind", name, version.into()).await, Ok(then));
    }

    /// Compares all that the store holds.
    ///
    /// # Panics
    /// When it is not what the model holds.
    pub async fn compare(&self, store: &impl Store) {
        for (run, (log, summary)) in &self.runs {
            assert_eq!(super::whole_log(store, run, 10_000).await.as_ref(), Ok(log));
            assert_eq!(store.run(run).await, Ok(Some(summary.clone())));
        }
        self.list(store, false, u8::MAX).await;
        self.list(store, true, u8::MAX).await;
        assert_eq!(
            store.names("kind").await,
            Ok(self.documents.keys().cloned().collect())
        );
        for name in self.documents.keys() {
            for version in 0..=5 {
                self.get(store, name, version).await;
            }
        }
        for ((run, number), chunks) in &self.transcripts {
            assert_eq!(
                store.transcript(run, session((*number).into())).await.as_ref(),
                Ok(chunks)
            );
        }
    }
}

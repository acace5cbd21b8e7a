//! What every [`Store`] must do. Run [`check`] over each implementation, [`model`] with random operations, and
//! [`reopening`] over those that outlive their process.

#![expect(
    clippy::expect_used,
    reason = "a promise that is not kept is a panic of the test that asked"
)]

pub mod model;
pub mod reopening;

use std::future::Future;

use sillage_core::id::{ClientSessionId, RunId, Seq};
use sillage_core::ports::Store;
use sillage_core::ports::store::{RunSummary, StoreError, Which};
use sillage_core::time::Timestamp;
use uuid::Uuid;

/// Runs every case, each on a store of its own that `fresh` makes, empty.
///
/// # Panics
/// With the case's words, where the store does not keep its promise.
pub async fn check<S, F>(mut fresh: impl FnMut() -> F)
where
    S: Store,
    F: Future<Output = S>,
{
    an_empty_store_has_nothing(&fresh().await).await;
    a_log_is_read_back(&fresh().await).await;
    pages_hold_whole_events(&fresh().await).await;
    a_wrong_position_is_refused(&fresh().await).await;
    logs_do_not_mix(&fresh().await).await;
    long_and_empty_events_are_kept(&fresh().await).await;
    a_summary_follows_its_log(&fresh().await).await;
    runs_are_listed_newest_first(&fresh().await).await;
    finished_runs_leave_the_unfinished(&fresh().await).await;
    documents_keep_every_version(&fresh().await).await;
    a_wrong_version_is_refused(&fresh().await).await;
    names_come_in_order(&fresh().await).await;
    names_that_are_too_long_are_refused(&fresh().await).await;
    transcripts_keep_their_chunks(&fresh().await).await;
}

/// A run's name.
///
/// # Panics
/// When it is none.
#[must_use]
pub fn run(name: &str) -> RunId {
    RunId::new(name).expect("a run's name")
}

/// A summary of a run launched at `launched`.
#[must_use]
pub fn summary(run: &RunId, launched: i64) -> RunSummary {
    RunSummary {
        run: run.clone(),
        title: format!("task of {run}"),
        task_file: Some("/tasks/a task.yaml".into()),
        launched: Timestamp(launched),
        updated: Timestamp(launched + 5),
        state: "running".to_owned(),
        finished: false,
        steps: 3,
        ended: 1,
        succeeded: 1,
        asking: 1,
        resumable: false,
        last: Seq(0),
    }
}

/// The events `from..=to` of a run, each telling where it belongs.
#[must_use]
pub fn events(run: &RunId, from: u64, to: u64) -> Vec<Vec<u8>> {
    (from..=to)
        .map(|at| format!("{run} event {at}").into_bytes())
        .collect()
}

/// The whole log, read in pages of about `page` bytes.
///
/// # Errors
/// What the store says.
///
/// # Panics
/// When a page does not go on where the last one ended.
pub async fn whole_log(store: &impl Store, run: &RunId, page: usize) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut log = Vec::new();
    loop {
        let next = Seq(log.len() as u64 + 1);
        let events = store.read(run, next, page).await?;
        if events.is_empty() {
            return Ok(log);
        }
        for (at, event) in events {
            assert_eq!(at, Seq(log.len() as u64 + 1), "the log of {run} is dense");
            log.push(event);
        }
    }
}

fn session(number: u128) -> ClientSessionId {
    ClientSessionId(Uuid::from_u128(number))
}

async fn an_empty_store_has_nothing(store: &impl Store) {
    let run = run("none");
    assert_eq!(store.read(&run, Seq::FIRST, 1000).await, Ok(vec![]));
    assert_eq!(store.run(&run).await, Ok(None));
    assert_eq!(store.runs(Which::All, 10).await, Ok(vec![]));
    assert_eq!(store.get("task", "none").await, Ok(None));
    assert_eq!(store.version("task", "none", 1).await, Ok(None));
    assert_eq!(store.names("task").await, Ok(vec![]));
    assert_eq!(store.transcript(&run, session(1)).await, Ok(vec![]));
}

async fn a_log_is_read_back(store: &impl Store) {
    let run = run("a");
    store
        .append(&run, Seq::FIRST, events(&run, 1, 1), &summary(&run, 1))
        .await
        .expect("one event");
    store
        .append(&run, Seq(2), events(&run, 2, 20), &summary(&run, 1))
        .await
        .expect("several events");
    store
        .append(&run, Seq(21), events(&run, 21, 21), &summary(&run, 1))
        .await
        .expect("one more");
    for from in 0..=23 {
        let expected: Vec<(Seq, Vec<u8>)> = (from.max(1)..=21)
            .map(Seq)
            .zip(events(&run, from.max(1), 21))
            .collect();
        assert_eq!(
            store.read(&run, Seq(from), usize::MAX).await,
            Ok(expected),
            "from {from}"
        );
    }
    assert_eq!(store.read(&run, Seq(u64::MAX), 100).await, Ok(vec![]));
}

async fn pages_hold_whole_events(store: &impl Store) {
    let run = run("pages");
    let log: Vec<Vec<u8>> = (0..30_u8).map(|n| vec![n; usize::from(n) * 10]).collect();
    for (at, chunk) in (0..).zip(log.chunks(7)) {
        store
            .append(&run, Seq(at * 7 + 1), chunk.to_vec(), &summary(&run, 1))
            .await
            .expect("append");
    }
    for page in [0, 1, 100, 1000, usize::MAX] {
        assert_eq!(
            whole_log(store, &run, page).await.as_ref(),
            Ok(&log),
            "pages of {page}"
        );
    }
    let page = store.read(&run, Seq(11), 250).await.expect("read");
    assert_eq!(
        page.iter().map(|(at, _)| at.0).collect::<Vec<_>>(),
        [11, 12],
        "100 and 110 bytes fit, 120 do not"
    );
    let page = store.read(&run, Seq(30), 1).await.expect("read");
    assert_eq!(page.len(), 1, "at least one event, however long");
}

async fn a_wrong_position_is_refused(store: &impl Store) {
    let run = run("positions");
    let refused = |expected: u64, found: u64| {
        Err(StoreError::Sequence {
            run: run.clone(),
            expected: Seq(expected),
            found: Seq(found),
        })
    };
    let launch = summary(&run, 1);
    assert_eq!(
        store.append(&run, Seq(2), events(&run, 2, 2), &launch).await,
        refused(2, 1)
    );
    assert_eq!(
        store.append(&run, Seq(0), events(&run, 2, 2), &launch).await,
        refused(0, 1)
    );
    assert_eq!(store.run(&run).await, Ok(None), "a refused append leaves nothing");
    store
        .append(&run, Seq::FIRST, events(&run, 1, 5), &launch)
        .await
        .expect("append");
    for wrong in [1, 5, 7] {
        assert_eq!(
            store.append(&run, Seq(wrong), events(&run, 1, 1), &launch).await,
            refused(wrong, 6)
        );
    }
    assert_eq!(whole_log(store, &run, 10).await, Ok(events(&run, 1, 5)));
}

async fn logs_do_not_mix(store: &impl Store) {
    // One name is the beginning of another, and they sort around it.
    let runs = [run("r"), run("r-1"), run("r1"), run("r0"), run("ra")];
    for (launched, run) in (0..).zip(&runs) {
        store
            .append(run, Seq::FIRST, events(run, 1, 3), &summary(run, launched))
            .await
            .expect("append");
    }
    for (launched, run) in (0..).zip(&runs) {
        store
            .append(run, Seq(4), events(run, 4, 5), &summary(run, launched))
            .await
            .expect("append");
    }
    for run in &runs {
        assert_eq!(whole_log(store, run, 20).await, Ok(events(run, 1, 5)));
    }
}

async fn long_and_empty_events_are_kept(store: &impl Store) {
    let run = run("long");
    let sizes = [0, 1, 4079, 4080, 4081, 4096, 8192, 30_000, 1_000_000, 0];
    let log: Vec<Vec<u8>> = (0..).zip(sizes).map(|(n, size)| vec![n; size]).collect();
    for (at, event) in (1..).zip(&log) {
        store
            .append(&run, Seq(at), vec![event.clone()], &summary(&run, 1))
            .await
            .expect("append");
    }
    store
        .append(&run, Seq(11), log.clone(), &summary(&run, 1))
        .await
        .expect("append all at once");
    let twice = [log.clone(), log].concat();
    assert_eq!(whole_log(store, &run, 5000).await.as_ref(), Ok(&twice));
    assert_eq!(
        store.read(&run, Seq(19), usize::MAX).await.expect("read").len(),
        2,
        "within a long record"
    );
}

async fn a_summary_follows_its_log(store: &impl Store) {
    let run = run("summary");
    let mut given = summary(&run, 7);
    given.last = Seq(99);
    store
        .append(&run, Seq::FIRST, events(&run, 1, 4), &given)
        .await
        .expect("append");
    let kept = store.run(&run).await.expect("run").expect("a summary");
    assert_eq!(
        kept,
        RunSummary {
            last: Seq(4),
            ..given.clone()
        },
        "`last` is the log's, whatever was given"
    );

    let state = RunSummary {
        state: "waiting".to_owned(),
        ended: 2,
        ..given
    };
    store
        .append(&run, Seq(5), vec![], &state)
        .await
        .expect("no events, only a summary");
    assert_eq!(
        store.run(&run).await,
        Ok(Some(RunSummary {
            last: Seq(4),
            ..state
        }))
    );
    assert_eq!(whole_log(store, &run, 100).await, Ok(events(&run, 1, 4)));
}

async fn runs_are_listed_newest_first(store: &impl Store) {
    for (name, launched) in [("b", 20), ("a", 30), ("d", -5), ("c", 10)] {
        let run = run(name);
        store
            .append(&run, Seq::FIRST, events(&run, 1, 1), &summary(&run, launched))
            .await
            .expect("append");
    }
    let names = |runs: Vec<RunSummary>| runs.iter().map(|s| s.run.to_string()).collect::<Vec<_>>();
    assert_eq!(
        names(store.runs(Which::All, 10).await.expect("runs")),
        ["a", "b", "c", "d"]
    );
    assert_eq!(names(store.runs(Which::All, 2).await.expect("runs")), ["a", "b"]);
    assert_eq!(names(store.runs(Which::All, 0).await.expect("runs")), [""; 0]);

    let moved = run("d");
    store
        .append(&moved, Seq(2), events(&moved, 2, 2), &summary(&moved, 25))
        .await
        .expect("append");
    assert_eq!(
        names(store.runs(Which::All, 10).await.expect("runs")),
        ["a", "d", "b", "c"]
    );
}

async fn finished_runs_leave_the_unfinished(store: &impl Store) {
    let runs = [run("one"), run("two"), run("three")];
    for (launched, run) in (1..).zip(&runs) {
        store
            .append(run, Seq::FIRST, events(run, 1, 1), &summary(run, launched))
            .await
            .expect("append");
    }
    let done = RunSummary {
        finished: true,
        state: "complete".to_owned(),
        ..summary(&runs[1], 2)
    };
    store
        .append(&runs[1], Seq(2), events(&runs[1], 2, 2), &done)
        .await
        .expect("append");
    let unfinished = store.runs(Which::Unfinished, 10).await.expect("runs");
    assert_eq!(
        unfinished.iter().map(|s| s.run.as_str()).collect::<Vec<_>>(),
        ["three", "one"]
    );
    assert_eq!(store.runs(Which::All, 10).await.expect("runs").len(), 3);

    store
        .append(&runs[1], Seq(3), events(&runs[1], 3, 3), &summary(&runs[1], 2))
        .await
        .expect("append");
    assert_eq!(
        store.runs(Which::Unfinished, 10).await.expect("runs").len(),
        3,
        "a run may be taken up again"
    );
}

async fn documents_keep_every_version(store: &impl Store) {
    let bodies = [b"one".to_vec(), Vec::new(), vec![3; 20_000], vec![4; 600_000]];
    for (before, body) in (0..).zip(&bodies) {
        assert_eq!(store.put("task", "t", before, body.clone()).await, Ok(before + 1));
        assert_eq!(store.get("task", "t").await, Ok(Some((before + 1, body.clone()))));
    }
    for (version, body) in (1..).zip(&bodies) {
        assert_eq!(store.version("task", "t", version).await, Ok(Some(body.clone())));
    }
    for none in [0, 5, u64::MAX] {
        assert_eq!(store.version("task", "t", none).await, Ok(None));
    }
    assert_eq!(store.get("draft", "t").await, Ok(None), "kinds do not mix");
}

async fn a_wrong_version_is_refused(store: &impl Store) {
    let refused = |expected: u64, found: u64| {
        Err(StoreError::Version {
            kind: "k".to_owned(),
            name: "n".to_owned(),
            expected,
            found,
        })
    };
    assert_eq!(store.put("k", "n", 1, vec![1]).await, refused(1, 0));
    assert_eq!(store.put("k", "n", 0, vec![1]).await, Ok(1));
    assert_eq!(store.put("k", "n", 0, vec![2]).await, refused(0, 1));
    assert_eq!(store.put("k", "n", 2, vec![2]).await, refused(2, 1));
    assert_eq!(store.get("k", "n").await, Ok(Some((1, vec![1]))));
}

async fn names_come_in_order(store: &impl Store) {
    let mut names = [
        "b",
        "a",
        "a\0",
        "a\0b",
        "a\u{1}",
        "",
        "é",
        "a/b",
        "ab",
        "\u{10ffff}",
    ];
    for name in names {
        for before in 0..3 {
            assert_eq!(
                store.put("kind", name, before, name.into()).await,
                Ok(before + 1),
                "{name:?}"
            );
        }
    }
    assert_eq!(store.put("kind2", "other", 0, vec![]).await, Ok(1));
    assert_eq!(store.put("kin", "dc", 0, vec![]).await, Ok(1));
    names.sort_unstable();
    assert_eq!(store.names("kind").await.expect("names"), names);
    for name in names {
        assert_eq!(store.get("kind", name).await, Ok(Some((3, name.into()))));
    }
}

async fn names_that_are_too_long_are_refused(store: &impl Store) {
    let longest = "n".repeat(512 - "kind".len());
    assert_eq!(store.put("kind", &longest, 0, vec![1]).await, Ok(1));
    let refused = store.put("kind", &(longest + "n"), 0, vec![1]).await;
    assert!(matches!(refused, Err(StoreError::Io { .. })), "{refused:?}");
}

async fn transcripts_keep_their_chunks(store: &impl Store) {
    let runs = [run("t"), run("t2")];
    for run in &runs {
        for (number, size) in (0..).zip([3, 0, 10_000]) {
            let chunk = vec![number; size];
            store
                .add_transcript(run, session(1), chunk.clone())
                .await
                .expect("transcript");
            store
                .add_transcript(run, session(u128::MAX), chunk)
                .await
                .expect("transcript");
        }
    }
    let chunks = Ok(vec![vec![0; 3], vec![], vec![2; 10_000]]);
    for run in &runs {
        assert_eq!(store.transcript(run, session(1)).await, chunks);
        assert_eq!(store.transcript(run, session(u128::MAX)).await, chunks);
    }
    assert_eq!(store.transcript(&runs[0], session(2)).await, Ok(vec![]));
    assert_eq!(store.run(&runs[0]).await, Ok(None), "a transcript makes no run");
}

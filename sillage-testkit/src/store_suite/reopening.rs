//! What must be there after a store was closed and opened again.

use sillage_core::id::Seq;
use sillage_core::ports::Store;
use sillage_core::ports::store::{RunSummary, Which};

use super::{events, run, session, summary, whole_log};

/// Puts something of every sort into a store, to be looked for with [`check`].
///
/// # Panics
/// When the store refuses something.
pub async fn fill(store: &impl Store) {
    let run = run("kept");
    store
        .append(&run, Seq::FIRST, events(&run, 1, 3), &summary(&run, 1))
        .await
        .expect("append");
    store
        .add_transcript(&run, session(1), b"chunk".to_vec())
        .await
        .expect("transcript");
    store
        .append(&run, Seq(4), vec![vec![7; 100_000]], &summary(&run, 1))
        .await
        .expect("append");
    assert_eq!(store.put("task", "a", 0, b"one".to_vec()).await, Ok(1));
    assert_eq!(store.put("task", "a", 1, vec![9; 50_000]).await, Ok(2));
}

/// Looks for what [`fill`] put into a store that was closed and opened again since, and goes on writing.
///
/// # Panics
/// When something is missing.
pub async fn check(store: &impl Store) {
    let run = run("kept");
    let mut log = events(&run, 1, 3);
    log.push(vec![7; 100_000]);
    assert_eq!(
        whole_log(store, &run, 1000).await,
        Ok(log.clone()),
        "the log is whole"
    );
    assert_eq!(
        store.run(&run).await,
        Ok(Some(RunSummary {
            last: Seq(4),
            ..summary(&run, 1)
        }))
    );
    assert_eq!(store.runs(Which::Unfinished, 10).await.expect("runs").len(), 1);
    assert_eq!(
        store.transcript(&run, session(1)).await,
        Ok(vec![b"chunk".to_vec()])
    );
    assert_eq!(store.get("task", "a").await, Ok(Some((2, vec![9; 50_000]))));
    assert_eq!(store.version("task", "a", 1).await, Ok(Some(b"one".to_vec())));

    store
        .append(&run, Seq(5), events(&run, 5, 5), &summary(&run, 1))
        .await
        .expect("append");
    log.extend(events(&run, 5, 5));
    assert_eq!(whole_log(store, &run, 1000).await, Ok(log), "it goes on");
    store
        .add_transcript(&run, session(1), b"more".to_vec())
        .await
        .expect("transcript");
    assert_eq!(
        store.transcript(&run, session(1)).await,
        Ok(vec![b"chunk".to_vec(), b"more".to_vec()])
    );
    assert_eq!(store.put("task", "a", 2, Vec::new()).await, Ok(3));
}

//! Waiting for a condition that nothing tells of, such as the end of another process: it is looked at again and again
//! within a bound. What can be told of is awaited instead, and no test waits for a time to pass.

use std::time::{Duration, Instant};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until `condition` holds.
///
/// # Panics
/// When it does not within `bound`; `what` says in the panic's words what never came.
pub async fn eventually(what: &str, bound: Duration, condition: impl AsyncFn() -> bool) {
    let wait = async {
        while !condition().await {
            tokio::time::sleep(PAUSE).await;
        }
    };
    assert!(tokio::time::timeout(bound, wait).await.is_ok(), "never: {what}");
}

/// Waits until `condition` holds, and keeps the thread meanwhile: for tests without an executor.
///
/// # Panics
/// As [`eventually`].
#[track_caller]
pub fn eventually_blocking(what: &str, bound: Duration, mut condition: impl FnMut() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < bound, "never: {what}");
        std::thread::sleep(PAUSE);
    }
}

//! sled panics where it meets what it did not expect. Those panics end at the store's edge, as errors.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; a panic in it becomes its words.
///
/// Unwinding out of sled leaves nothing half-changed that is looked at again: whoever gets an error from here
/// closes sled and opens it anew, or gives up.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let outer = CAUGHT.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    CAUGHT.set(outer);
    result.map_err(words)
}

fn words(payload: Box<dyn Any + Send>) -> String {
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload
            .downcast_ref::<&str>()
            .map_or("no words", |text| text)
            .to_owned(),
    }
}

/// Keeps the text of panics that the store catches off standard error: for a program to call once, at its start.
///
/// Rust's panic hook is the whole process's, and it writes before anyone can catch. The store therefore leaves it
/// alone unless asked. This puts a hook before the present one that is silent for panics inside the store's calls
/// of sled and on sled's own threads, and passes on every other. A program that sets a hook of its own does so
/// before calling this. Without it a damaged store is the same error, with sled's words on standard error besides.
pub fn hush_caught_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let of_sled = std::thread::current()
                .name()
                .is_some_and(|name| name.starts_with("sled-io-"));
            if !of_sled && !CAUGHT.get() {
                before(info);
            }
        }));
    });
}

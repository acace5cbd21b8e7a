//! The scripted agent: what its steps do, that its frames are the protocol's, and how it ends.

mod agent;
mod faults;
mod process;
mod steps;

use std::path::Path;

use sillage_acp::scripted_agent::record::{Entry, Event};

/// A script of the package.
fn script(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name);
    std::fs::read_to_string(path).expect("a script of the package")
}

/// The texts of the prompts of a record, in order.
fn prompts(record: &[Entry]) -> Vec<String> {
    record
        .iter()
        .filter_map(|entry| {
            if let Event::Prompted { text, .. } = &entry.event {
                Some(text.clone())
            } else {
                None
            }
        })
        .collect()
}

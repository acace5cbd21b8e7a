//! The engine as programs use it, on a store on disk; only its agents are scripted.

use std::path::Path;
use std::sync::Arc;

use sillage::Engine;
use sillage::core::run::{RunDefinition, RunEnd};
use sillage::store::{Options, SledStore};
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use sillage_testkit::workspace::NoWorkspace;

use crate::definition::REPORT;

/// An engine with its store.
pub(crate) struct Durable {
    pub(crate) store: Arc<SledStore>,
    pub(crate) engine: Engine,
}

impl Durable {
    /// Opens the store in `folder`. Every message is answered at once.
    pub(crate) fn open(folder: &Path) -> Self {
        let store = Arc::new(SledStore::open(folder, Options::default()).unwrap());
        let runtime = ScriptedRuntime::new(|_| Reply::text(REPORT));
        let engine = Engine::builder(store.clone(), Arc::new(runtime), Arc::new(NoWorkspace)).build();
        Self { store, engine }
    }

    /// Runs to the end.
    pub(crate) async fn run(&self, definition: RunDefinition) {
        let end = self
            .engine
            .launch(definition)
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
        assert_eq!(end, RunEnd::Complete);
    }
}

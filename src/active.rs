//! The runs that this process drives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sillage_core::id::RunId;

use crate::engine::RunHandle;

/// The runs that this process drives, for those who ask about them. Clones share one list; a run leaves it by itself
/// once it is over.
#[derive(Debug, Clone, Default)]
pub struct ActiveRuns {
    handles: Arc<Mutex<HashMap<RunId, RunHandle>>>,
}

impl ActiveRuns {
    /// No run yet.
    #[must_use]
    pub fn new() -> ActiveRuns {
        ActiveRuns::default()
    }

    /// Adds a run that was launched or resumed.
    pub fn add(&self, handle: RunHandle) {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.retain(|_, handle| !handle.is_over());
        handles.insert(handle.id().clone(), handle);
    }

    /// The handle of a run that is being driven.
    #[must_use]
    pub fn find(&self, run: &RunId) -> Option<RunHandle> {
        let handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.get(run).filter(|handle| !handle.is_over()).cloned()
    }

    /// The runs that are being driven, in the order of their names, which is the order of their launch.
    #[must_use]
    pub fn names(&self) -> Vec<RunId> {
        let handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        let driven = handles.values().filter(|handle| !handle.is_over());
        let mut names: Vec<RunId> = driven.map(|handle| handle.id().clone()).collect();
        names.sort_unstable();
        names
    }
}

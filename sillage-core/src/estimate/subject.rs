//! What an estimate is of.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

use super::gather::task_name;
use crate::run::RunDefinition;
use crate::task::Task;

/// A task, and the limits under which it would run.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// The task.
    pub task: &'a Task,
    /// The task's file, by which its coordinators are known again.
    pub task_file: Option<&'a Path>,
    /// Sessions at work at once: the least of what the task, the program and a gateway allow.
    pub parallel: NonZeroU32,
    /// The provider account of each model used; a model that is missing is its own account.
    pub accounts: &'a BTreeMap<String, String>,
}

impl<'a> Subject<'a> {
    /// A run that is about to be launched.
    #[must_use]
    pub fn of(definition: &'a RunDefinition) -> Subject<'a> {
        Subject {
            task: &definition.task,
            task_file: definition.task_file.as_deref(),
            parallel: definition.parallel,
            accounts: &definition.accounts,
        }
    }

    pub(super) fn account<'m>(&'m self, model: &'m str) -> &'m str {
        self.accounts.get(model).map_or(model, String::as_str)
    }

    pub(super) fn task_name(&self) -> String {
        task_name(self.task_file, &self.task.title)
    }
}

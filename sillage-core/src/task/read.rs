//! From the text of a task file to a task, or to every fault in it (W11).

mod agent;
mod links;
pub(crate) mod work;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use crate::document::check::{Checker, Fields, Spot, whole_number};
use crate::document::{self, Format, Value};
use crate::fault::{Fault, FaultCode};
use crate::ports::runtime::ModelOffer;

use self::work::optional_text;
use super::models::{Wish, check_wishes};
use super::{Autocompact, FolderLists, Limits, Task};

/// The fields of a task file.
pub(super) const TASK_FIELDS: &[&str] = &[
    "task",
    "context",
    "method",
    "folders",
    "limits",
    "check",
    "autocompact_tokens",
    "agents",
    "links",
];
pub(super) const FOLDER_FIELDS: &[&str] = &["read", "write"];
pub(super) const LIMIT_FIELDS: &[&str] = &["parallel", "models"];
pub(crate) use agent::AGENT_FIELDS;
#[cfg(test)]
pub(super) use {
    agent::{ALLOW_FIELDS, SUB_AGENT_FIELDS},
    links::LINK_FIELDS,
    work::DELIVERABLE_FIELDS,
};

/// Reads a task definition and checks all of it (W6–W12). Models and efforts are checked where `offers` are given;
/// without, they are free text.
///
/// # Errors
/// Every fault, in the order of the text, each with its place; a text that is no document at all has that one
/// fault. No more than ten thousand are told, and the first ones get suggestions.
pub fn read(text: &str, format: Format, offers: Option<&[ModelOffer]>) -> Result<Task, Vec<Fault>> {
    let root = document::read(text, format).map_err(|unreadable| vec![unreadable.into()])?;
    let mut reading = Reading {
        checker: Checker::default(),
        wishes: Vec::new(),
        text,
    };
    let task = reading.task(Spot::root(&root));
    let Reading {
        mut checker, wishes, ..
    } = reading;
    if let Some(offers) = offers {
        check_wishes(&mut checker, &wishes, offers);
    }
    checker.finish(task)
}

/// The folders that a task names, as far as they can be read in a text that may be faulty elsewhere; none when it is no
/// document. What is wrong with them as texts is for [`read`] to tell.
#[must_use]
pub fn read_its_folders(text: &str, format: Format) -> Option<FolderLists> {
    let root = document::read(text, format).ok()?;
    let mut untold = Checker::default();
    let fields = untold.fields(Spot::root(&root), "a task", TASK_FIELDS)?;
    let folders = fields.optional("folders");
    Some(folders.map_or_else(FolderLists::default, |spot| read_folders(&mut untold, spot)))
}

/// Reads folder lists as a task and a project write them.
pub(crate) fn read_folders(checker: &mut Checker, spot: Spot<'_>) -> FolderLists {
    let Some(fields) = checker.fields(spot, "`folders`", FOLDER_FIELDS) else {
        return FolderLists::default();
    };
    let mut folders = |name| {
        let entries = fields
            .optional(name)
            .and_then(|spot| checker.texts(&spot))
            .unwrap_or_default();
        let mut paths = Vec::with_capacity(entries.len());
        for (spot, text) in entries {
            if text.is_empty() {
                checker.fault_at(
                    &spot,
                    FaultCode::BadType,
                    "a folder must not be empty, write `.` for this one",
                );
            }
            paths.push(PathBuf::from(text));
        }
        paths
    };
    FolderLists {
        read: folders("read"),
        write: folders("write"),
    }
}

/// What one reading gathers on its way.
struct Reading<'t> {
    checker: Checker,
    /// The models and efforts that the task names.
    wishes: Vec<Wish>,
    /// The text, to point into the short form of a link.
    text: &'t str,
}

impl Reading<'_> {
    fn task(&mut self, root: Spot<'_>) -> Task {
        let fields = self.checker.fields(root, "a task", TASK_FIELDS);
        let Some(fields) = fields else {
            return Task::default();
        };
        let title = self.filled(&fields, "task", FaultCode::MissingField);
        let folders = fields
            .optional("folders")
            .map(|spot| read_folders(&mut self.checker, spot));
        let check = fields.optional("check").and_then(|spot| {
            // A person who writes one relies on it: a blank one would pass without a word.
            self.checker.filled_text(&spot, FaultCode::BadValue)
        });
        let check = check.map(str::to_owned);
        let limits = fields.optional("limits").map(|spot| self.limits(spot));
        let autocompact = fields
            .optional("autocompact_tokens")
            .and_then(|spot| self.autocompact(&spot));
        let (agents, known) = self.agents(&fields);
        let links = match fields.optional("links") {
            Some(spot) => self.links(&spot, known.as_ref()),
            None => Vec::new(),
        };
        Task {
            title,
            context: optional_text(&mut self.checker, &fields, "context"),
            method: optional_text(&mut self.checker, &fields, "method"),
            folders: folders.unwrap_or_default(),
            limits: limits.unwrap_or_default(),
            check,
            autocompact: autocompact.unwrap_or_default(),
            agents,
            links,
        }
    }

    /// A required text that must not be blank.
    fn filled(&mut self, fields: &Fields<'_>, name: &str, blank: FaultCode) -> String {
        let spot = fields.required(name, &mut self.checker);
        spot.and_then(|spot| self.checker.filled_text(&spot, blank))
            .unwrap_or_default()
            .to_owned()
    }

    fn limits(&mut self, spot: Spot<'_>) -> Limits {
        let Some(fields) = self.checker.fields(spot, "`limits`", LIMIT_FIELDS) else {
            return Limits::default();
        };
        Limits {
            parallel: fields
                .optional("parallel")
                .and_then(|spot| self.checker.limit(&spot)),
            models: fields
                .optional("models")
                .map(|spot| self.model_limits(&spot))
                .unwrap_or_default(),
        }
    }

    fn model_limits(&mut self, spot: &Spot<'_>) -> BTreeMap<String, NonZeroU32> {
        let mut limits = BTreeMap::new();
        for (key, node) in self.checker.entries(spot).unwrap_or_default() {
            self.wishes.push(Wish::limit(&key.name, Some(key.place)));
            if let Some(limit) = self.checker.limit(&spot.field(&key.name, node)) {
                limits.insert(key.name.clone(), limit);
            }
        }
        limits
    }

    /// A number of tokens, or `off` (R23).
    fn autocompact(&mut self, spot: &Spot<'_>) -> Option<Autocompact> {
        if matches!(&spot.node.value, Value::Text(text) if text == "off") {
            return Some(Autocompact::Off);
        }
        let written = self.checker.number(spot)?;
        let tokens = whole_number(written).and_then(NonZeroU64::new);
        if tokens.is_none() {
            let message = "`autocompact_tokens` must be a whole number of tokens, at least 1, or `off`";
            self.checker.fault_at(spot, FaultCode::BadLimit, message);
        }
        tokens.map(Autocompact::Tokens)
    }
}

#[cfg(test)]
mod tests;

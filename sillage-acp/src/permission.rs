//! What the session's policy answers to an agent's permission request (A5, R21).
//!
//! The decision is made from what the agent said of the tool call: its kind, its locations, the paths in its raw
//! input and in its diffs. What is not known is refused. None of this isolates the machine (R22): an agent that asks
//! nothing is not held by it.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use sillage_core::folders::Folders;
use sillage_core::ports::runtime::{PermissionOption, PermissionPolicy};

/// Members of a raw input that name files and folders.
const PATH_KEYS: [&str; 18] = [
    "path",
    "paths",
    "file",
    "files",
    "filepath",
    "filename",
    "abspath",
    "absolutepath",
    "directory",
    "dir",
    "folder",
    "source",
    "destination",
    "oldpath",
    "newpath",
    "notebookpath",
    "targetfile",
    "relativeworkspacepath",
];

/// Members of a raw input that name the folder of a command.
const FOLDER_KEYS: [&str; 4] = ["cwd", "workdir", "workingdirectory", "workingdir"];

/// What is known of a tool call, gathered from its announcement, its updates and the permission request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToolFacts {
    pub(crate) title: String,
    /// ACP's word (`read`, `edit`, `execute`, …); none when the agent never said.
    pub(crate) kind: Option<String>,
    /// The paths of its locations and diffs.
    pub(crate) locations: Vec<PathBuf>,
    /// Paths of files and folders in its input.
    pub(crate) inputs: Vec<PathBuf>,
    /// Folders in its input to run a command in.
    pub(crate) folders: Vec<PathBuf>,
}

impl ToolFacts {
    /// Takes the paths out of an input, which may be as large as the file that it writes and is not kept.
    pub(crate) fn read_input(&mut self, input: &Value) {
        collect_paths(input, &PATH_KEYS, &mut self.inputs);
        collect_paths(input, &FOLDER_KEYS, &mut self.folders);
    }

    /// Adds what `news` knows.
    pub(crate) fn update(&mut self, news: ToolFacts) {
        let ToolFacts {
            title,
            kind,
            locations,
            inputs,
            folders,
        } = news;
        if !title.is_empty() {
            self.title = title;
        }
        self.kind = kind.or(self.kind.take());
        for (paths, more) in [
            (&mut self.locations, locations),
            (&mut self.inputs, inputs),
            (&mut self.folders, folders),
        ] {
            paths.extend(more);
            paths.sort_unstable();
            paths.dedup();
        }
    }
}

/// What the policy decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Let it be done, this once.
    Allow,
    /// Refuse it.
    Refuse,
    /// A person decides.
    Ask,
}

/// What a session may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds<'a> {
    pub(crate) policy: PermissionPolicy,
    pub(crate) folders: &'a Folders,
    /// What relative paths start from.
    pub(crate) workspace: &'a Path,
}

/// Decides on a tool call.
pub(crate) fn decide(bounds: Bounds<'_>, tool: &ToolFacts) -> Decision {
    let kind = tool.kind.as_deref().unwrap_or("");
    let writes = matches!(kind, "edit" | "delete" | "move");
    let read_only = bounds.folders.write.is_empty();
    if read_only && (writes || kind == "execute") {
        return Decision::Refuse; // strictly read-only, whoever is asked (R21)
    }
    let (locations, inputs, folders) = (&tool.locations[..], &tool.inputs[..], &tool.folders[..]);
    let within = match kind {
        "read" => bounds.all_within(&[locations, inputs, folders].concat(), false),
        "search" => {
            let mut places = [locations, inputs, folders].concat();
            if places.is_empty() {
                places.push(bounds.workspace.to_owned()); // a search without a place is one of the session's folder
            }
            bounds.all_within(&places, false)
        }
        "edit" | "delete" | "move" => bounds.all_within(&[locations, inputs].concat(), true),
        "execute" => {
            let mut places = [locations, folders].concat();
            places.push(bounds.workspace.to_owned());
            bounds.all_within(&places, false)
        }
        "think" => true,
        _ => false,
    };
    match bounds.policy {
        PermissionPolicy::Ask => Decision::Ask,
        PermissionPolicy::AllowInFolders if within => Decision::Allow,
        PermissionPolicy::Deny if within && matches!(kind, "read" | "search" | "think") => Decision::Allow,
        PermissionPolicy::AllowInFolders | PermissionPolicy::Deny => Decision::Refuse,
    }
}

/// The option by which a decision is told. Never one that lasts (`allow_always`): what comes later is to be judged
/// again. None: no such option is offered, and the request is answered `cancelled`.
pub(crate) fn option_for(allow: bool, options: &[PermissionOption]) -> Option<&PermissionOption> {
    let kinds: &[&str] = if allow {
        &["allow_once"]
    } else {
        &["reject_once", "reject_always"]
    };
    kinds
        .iter()
        .find_map(|kind| options.iter().find(|option| option.kind == *kind))
}

impl Bounds<'_> {
    /// Whether there are paths and all lie in the folders, those to write when `write`.
    fn all_within(&self, paths: &[PathBuf], write: bool) -> bool {
        !paths.is_empty() && paths.iter().all(|path| self.within(path, write))
    }

    fn within(&self, path: &Path, write: bool) -> bool {
        let Some(path) = resolve(self.workspace, path) else {
            return false;
        };
        let readable = if write { &[][..] } else { &self.folders.read[..] };
        self.folders.write.iter().chain(readable).any(|folder| {
            let folder = std::fs::canonicalize(folder);
            folder.is_ok_and(|folder| path.starts_with(folder))
        })
    }
}

/// The real place of a path: what exists of it made canonical, links followed, and the rest appended. None for what
/// cannot be told: `..` beyond what exists, `~`, a dangling link, a place that cannot be looked at.
fn resolve(workspace: &Path, path: &Path) -> Option<PathBuf> {
    let text = path.to_str()?;
    let path = Path::new(text.strip_prefix("file://").unwrap_or(text));
    if path.as_os_str().is_empty() || path.starts_with("~") {
        return None;
    }
    let mut existing = workspace.join(path);
    let mut rest = Vec::new();
    loop {
        match std::fs::canonicalize(&existing) {
            Ok(real) => return Some(rest.iter().rev().fold(real, |real, name| real.join(name))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if existing.is_symlink() {
                    return None;
                }
                let Some(Component::Normal(name)) = existing.components().next_back() else {
                    return None;
                };
                rest.push(name.to_owned());
                existing.pop();
            }
            Err(_) => return None,
        }
    }
}

/// Gathers the texts under `keys`, however deep; the names of `changes` (a patch by file) are paths too.
fn collect_paths(value: &Value, keys: &[&str], paths: &mut Vec<PathBuf>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let plain: String = name
                    .chars()
                    .filter(|c| c.is_alphanumeric())
                    .flat_map(char::to_lowercase)
                    .collect();
                if keys.contains(&plain.as_str()) {
                    collect_texts(member, paths);
                }
                if plain == "changes"
                    && let Value::Object(changes) = member
                {
                    paths.extend(changes.keys().map(PathBuf::from));
                }
                collect_paths(member, keys, paths);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_paths(item, keys, paths)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn collect_texts(value: &Value, paths: &mut Vec<PathBuf>) {
    match value {
        Value::String(text) => paths.push(PathBuf::from(text)),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, paths)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}

#[cfg(test)]
mod tests;

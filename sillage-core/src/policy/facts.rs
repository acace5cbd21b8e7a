//! What is known of a tool call.

use std::path::PathBuf;

use serde_json::Value;

/// Members of a raw input that name files and folders, in lower case without anything but letters and digits.
const PATH_KEYS: [&str; 26] = [
    "path",
    "paths",
    "file",
    "files",
    "filepath",
    "filepaths",
    "filename",
    "abspath",
    "absolutepath",
    "relativepath",
    "directory",
    "dir",
    "folder",
    "root",
    "source",
    "destination",
    "src",
    "dst",
    "dest",
    "oldpath",
    "newpath",
    "notebookpath",
    "targetfile",
    "relativeworkspacepath",
    "uri",
    "fileuri",
];

/// Members of a raw input that name the folder of a command.
const FOLDER_KEYS: [&str; 4] = ["cwd", "workdir", "workingdirectory", "workingdir"];

/// What is known of a tool call, gathered from its announcement, its updates and the permission request. Paths are as
/// the agent wrote them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFacts {
    /// What it is, for people.
    pub title: String,
    /// ACP's word (`read`, `edit`, `execute`, …); none when the agent never said.
    pub kind: Option<String>,
    /// The paths of its locations and diffs.
    pub locations: Vec<PathBuf>,
    /// Paths of files and folders in its input.
    pub inputs: Vec<PathBuf>,
    /// Folders in its input to run a command in.
    pub folders: Vec<PathBuf>,
}

impl ToolFacts {
    /// Takes the paths out of an input, which may be as large as the file that it writes and is not kept.
    pub fn read_input(&mut self, input: &Value) {
        collect_paths(input, &PATH_KEYS, &mut self.inputs);
        collect_paths(input, &FOLDER_KEYS, &mut self.folders);
    }

    /// Adds what `news` knows.
    pub fn update(&mut self, news: ToolFacts) {
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

    /// Every path that it names, each once.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for path in self.locations.iter().chain(&self.inputs).chain(&self.folders) {
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        paths
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

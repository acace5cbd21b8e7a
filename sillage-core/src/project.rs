//! The project file: a name, and folders that all tasks of the project receive (W1).

use serde::{Deserialize, Serialize};

use crate::document::check::{Checker, Spot};
use crate::document::{self, Format};
use crate::fault::{Fault, FaultCode};
use crate::task::{FolderLists, read_folders};

/// Where the project file is, below the project's root folder.
pub const PROJECT_FILE: &str = ".sillage/project.yaml";

/// The JSON Schema of the project file, for editors.
pub const SCHEMA: &str = include_str!("project/schema.json");

/// What a project file says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFile {
    /// What the project is called; the name of its root folder where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Folders that its tasks receive, relative to the root folder, as written.
    #[serde(default)]
    pub folders: FolderLists,
}

/// Reads a project file.
///
/// # Errors
/// Every fault at once, in the order of the text.
pub fn read(text: &str) -> Result<ProjectFile, Vec<Fault>> {
    let root = document::read(text, Format::Either).map_err(|unreadable| vec![unreadable.into()])?;
    let mut checker = Checker::default();
    let project = project(Spot::root(&root), &mut checker).unwrap_or_default();
    checker.finish(project)
}

fn project(root: Spot<'_>, checker: &mut Checker) -> Option<ProjectFile> {
    let fields = checker.fields(root, "the project", &["name", "folders"])?;
    let name = fields
        .optional("name")
        .and_then(|spot| checker.filled_text(&spot, FaultCode::BadValue));
    let name = name.map(str::to_owned);
    let folders = fields.optional("folders").map(|spot| read_folders(checker, spot));
    Some(ProjectFile {
        name,
        folders: folders.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn w1_name_and_folders_are_read_and_all_is_optional() {
        let project = read("name: P\nfolders: { read: [docs], write: [., src] }").unwrap();
        assert_eq!(project.name.as_deref(), Some("P"));
        assert_eq!(project.folders.write, [PathBuf::from("."), PathBuf::from("src")]);
        assert_eq!(read("").unwrap(), ProjectFile::default());
    }

    #[test]
    fn w1_faults_are_told_with_their_place() {
        let faults = read("nam: P\nfolders: { read: docs }").unwrap_err();
        let told: Vec<_> = faults
            .iter()
            .map(|fault| (fault.code, fault.line, fault.path.as_str()))
            .collect();
        let expected = [
            (FaultCode::UnknownField, Some(1), "/nam"),
            (FaultCode::BadType, Some(2), "/folders/read"),
        ];
        assert_eq!(told, expected);
        assert_eq!(faults[0].suggestion.as_deref(), Some("name"));
    }
}

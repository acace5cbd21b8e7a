//! The project of a task file, and the folders that its runs receive (W1–W3).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sillage_core::document::{self, MAX_BYTES};
use sillage_core::fault::Fault;
use sillage_core::folders::Folders;
use sillage_core::policy;
use sillage_core::project::{self, PROJECT_FILE};
use sillage_core::task::FolderLists;

/// A project as it is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// What it is called; the root folder's name where its file gives none.
    pub name: String,
    /// Its root folder; canonical.
    pub root: PathBuf,
    /// Its file; none: the task file's folder stands in for a project, and gives no folders.
    pub file: Option<PathBuf>,
    /// The folders that its tasks receive, relative to the root, as written.
    pub folders: FolderLists,
}

/// Why a project could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// The file, or a folder on the way to it, cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The project file is faulty.
    #[error("the project file {} is faulty", path.display())]
    Faulty {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        faults: Vec<Fault>,
    },
}

impl Project {
    /// The project of the nearest project file in `folder` or above it; without one, the folder itself (W1).
    ///
    /// # Errors
    /// When the folder does not exist, or the project file cannot be read or is faulty.
    pub fn of(folder: &Path) -> Result<Project, ProjectError> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |source| ProjectError::Unreadable { path, source }
        };
        let folder = fs::canonicalize(folder).map_err(unreadable(folder))?;
        for root in folder.ancestors() {
            let file = root.join(PROJECT_FILE);
            match fs::File::open(&file) {
                Ok(opened) => {
                    let mut bytes = Vec::new();
                    io::Read::read_to_end(&mut io::Read::take(opened, MAX_BYTES as u64 + 1), &mut bytes)
                        .map_err(unreadable(&file))?;
                    return Project::read(root, file, &bytes);
                }
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(unreadable(&file)(error)),
            }
        }
        Ok(Project {
            name: name_of(&folder),
            root: folder,
            file: None,
            folders: FolderLists::default(),
        })
    }

    fn read(root: &Path, file: PathBuf, bytes: &[u8]) -> Result<Project, ProjectError> {
        let read = document::decode(bytes)
            .map_err(|unreadable| vec![Fault::from(unreadable)])
            .and_then(project::read);
        match read {
            Ok(read) => Ok(Project {
                name: read.name.unwrap_or_else(|| name_of(root)),
                root: root.to_owned(),
                file: Some(file),
                folders: read.folders,
            }),
            Err(faults) => Err(ProjectError::Faulty { path: file, faults }),
        }
    }

    /// The folders of a run of a task whose file lies in `task_folder`: the project's and the task's, as they are on
    /// disk now (W2, W3). Those that cannot be entrusted are told, and left out.
    #[must_use]
    pub fn entrust(&self, task_folder: &Path, task: &FolderLists) -> (Folders, Vec<BadFolder>) {
        let mut bad = Vec::new();
        let mut resolve = |of: FolderOf, access: Access, base: &Path, written: &[PathBuf]| {
            let mut resolved = Vec::with_capacity(written.len());
            for (index, path) in written.iter().enumerate() {
                let granted = readable_folder(&base.join(path)).and_then(|folder| writable(access, folder));
                match granted {
                    Ok(path) => resolved.push(path),
                    Err(source) => bad.push(BadFolder {
                        of,
                        access,
                        index,
                        path: base.join(path),
                        source,
                    }),
                }
            }
            resolved
        };
        let mut read = resolve(FolderOf::Project, Access::Read, &self.root, &self.folders.read);
        let mut write = resolve(FolderOf::Project, Access::Write, &self.root, &self.folders.write);
        read.extend(resolve(FolderOf::Task, Access::Read, task_folder, &task.read));
        write.extend(resolve(FolderOf::Task, Access::Write, task_folder, &task.write));
        (Folders::effective(&read, &write), bad)
    }
}

/// A folder that cannot be entrusted to agents: it is missing, unreadable or no folder.
#[derive(Debug, thiserror::Error)]
#[error("the folder {} cannot be used", path.display())]
pub struct BadFolder {
    /// Whose list it stands in.
    pub of: FolderOf,
    /// Which list.
    pub access: Access,
    /// Its position in that list.
    pub index: usize,
    /// The folder, not resolved.
    pub path: PathBuf,
    source: io::Error,
}

impl BadFolder {
    /// JSON pointer (RFC 6901) to the folder in the file that names it.
    #[must_use]
    pub fn pointer(&self) -> String {
        let list = match self.access {
            Access::Read => "read",
            Access::Write => "write",
        };
        format!("/folders/{list}/{}", self.index)
    }
}

/// Which file names a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderOf {
    /// The project file.
    Project,
    /// The task file.
    Task,
}

/// What a list of folders grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// The folder with symbolic links resolved, when it can be listed.
fn readable_folder(path: &Path) -> io::Result<PathBuf> {
    let path = fs::canonicalize(path)?;
    fs::read_dir(&path)?;
    Ok(path)
}

/// The folder, unless it is to be written and lies in one that agents never write (F6).
fn writable(access: Access, folder: PathBuf) -> io::Result<PathBuf> {
    let mut names = folder.components().map(|component| component.as_os_str());
    match names.find(|name| access == Access::Write && policy::reserved(name)) {
        Some(name) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("agents never write in `{}`", name.to_string_lossy()),
        )),
        None => Ok(folder),
    }
}

/// Whether an error says that there is no such file, rather than that it cannot be read.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn name_of(folder: &Path) -> String {
    folder.file_name().map_or_else(
        || "project".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a project file in it, and what stands below.
    fn project(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".sillage")).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join(PROJECT_FILE), text).unwrap();
        (folder, root)
    }

    fn lists(read: &[&str], write: &[&str]) -> FolderLists {
        let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect();
        FolderLists {
            read: paths(read),
            write: paths(write),
        }
    }

    #[test]
    fn w1_the_nearest_project_file_above_counts() {
        let (_guard, root) = project("name: P\n");
        let found = Project::of(&root.join("a/b")).unwrap();
        assert_eq!((found.name.as_str(), found.root.as_path()), ("P", root.as_path()));
        fs::create_dir_all(root.join("a/.sillage")).unwrap();
        fs::write(root.join("a").join(PROJECT_FILE), "").unwrap();
        let nearer = Project::of(&root.join("a/b")).unwrap();
        assert_eq!((nearer.name.as_str(), nearer.root), ("a", root.join("a")));
    }

    #[test]
    fn w1_without_a_project_file_the_folder_stands_in_and_gives_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let found = Project::of(folder.path()).unwrap();
        assert_eq!((found.file, found.folders), (None, FolderLists::default()));
        assert_eq!(found.root, folder.path().canonicalize().unwrap());
        assert!(matches!(
            Project::of(&folder.path().join("no")),
            Err(ProjectError::Unreadable { .. })
        ));
    }

    #[test]
    fn w1_a_faulty_project_file_is_not_passed_over() {
        let (_guard, root) = project("nam: P\n");
        assert!(matches!(Project::of(&root), Err(ProjectError::Faulty { faults, .. }) if faults.len() == 1));
    }

    #[test]
    fn w2_w3_folders_are_joined_resolved_and_missing_ones_named() {
        let (_guard, root) = project("folders: { read: [a] }\n");
        let found = Project::of(&root).unwrap();
        let (folders, bad) = found.entrust(
            &root.join("a"),
            &lists(&["no", "../a/b"], &["b", "../.sillage/project.yaml"]),
        );
        assert_eq!(
            folders,
            Folders {
                read: vec![root.join("a")],
                write: vec![root.join("a/b")]
            }
        );
        let told: Vec<_> = bad.iter().map(|bad| (bad.of, bad.pointer())).collect();
        let expected = [
            (FolderOf::Task, "/folders/read/0".into()),
            (FolderOf::Task, "/folders/write/1".into()),
        ];
        assert_eq!(told, expected);
        assert!(bad[0].to_string().contains("a/no"), "{}", bad[0]);
    }

    #[test]
    fn f6_a_folder_of_git_or_of_the_project_is_not_entrusted_to_be_written() {
        let (_guard, root) = project("folders: { write: [.sillage] }\n");
        fs::create_dir_all(root.join("a/.GIT/hooks")).unwrap();
        let (folders, bad) = Project::of(&root)
            .unwrap()
            .entrust(&root, &lists(&["a/.GIT"], &["a/.GIT/hooks", "a"]));
        assert_eq!(folders.write, [root.join("a")]);
        assert_eq!(bad.len(), 2, "{bad:?}");
    }

    #[test]
    #[cfg(unix)]
    fn w3_symbolic_links_are_resolved() {
        let (_guard, root) = project("");
        std::os::unix::fs::symlink(root.join("a/b"), root.join("link")).unwrap();
        let (folders, bad) = Project::of(&root)
            .unwrap()
            .entrust(&root, &lists(&[], &["link", "a/b"]));
        assert!(bad.is_empty());
        assert_eq!(folders.write, [root.join("a/b")]);
    }
}

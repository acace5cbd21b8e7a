//! Agents that are known to speak ACP version 1, and how each is started (A2).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// How a known agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name that the settings give it by default.
    pub name: &'static str,
    /// What it is called, for people.
    pub title: &'static str,
    /// The program, looked for on the `PATH`.
    pub command: &'static str,
    /// Its arguments.
    pub args: &'static [&'static str],
    /// Whose quota and sign-in its sessions share, where the agent does not leave that to its user.
    pub account: Option<&'static str>,
}

/// The known agents, by name.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "claude",
        title: "Claude Code",
        command: "claude-agent-acp",
        args: &[],
        account: Some("anthropic"),
    },
    Preset {
        name: "codex",
        title: "Codex",
        command: "codex-acp",
        args: &[],
        account: Some("openai"),
    },
    Preset {
        name: "gemini",
        title: "Gemini CLI",
        command: "gemini",
        args: &["--acp"],
        account: Some("google"),
    },
    Preset {
        name: "goose",
        title: "Goose",
        command: "goose",
        args: &["acp"],
        account: None,
    },
    Preset {
        name: "opencode",
        title: "opencode",
        command: "opencode",
        args: &["acp"],
        account: None,
    },
    Preset {
        name: "pi",
        title: "pi",
        command: "pi-acp",
        args: &[],
        account: None,
    },
];

/// The first executable file of that name in the folders of a `PATH`. An empty entry, which shells read as the
/// current folder, is left out: what a repository holds is not what is installed.
#[must_use]
pub fn installed(name: &str, search: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(search)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    ["exe", "cmd", "bat"]
        .iter()
        .any(|extension| path.with_extension(extension).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a2_presets_are_in_order_and_each_once() {
        assert!(PRESETS.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    #[cfg(unix)]
    fn a2_a_program_is_an_executable_file_of_an_absolute_folder() {
        use std::fs;
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        fs::create_dir_all(first.join("agent")).unwrap();
        fs::create_dir_all(&second).unwrap();
        fs::write(second.join("agent"), "").unwrap();
        let search = std::env::join_paths([Path::new("."), &first, &second]).unwrap();
        assert_eq!(installed("agent", &search), None);
        fs::set_permissions(second.join("agent"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(installed("agent", &search), Some(second.join("agent")));
    }
}

//! What is taken over from a repository's settings: an allow-list, read afresh for every operation.

use std::path::Path;

use sillage_core::ports::workspace::WorkspaceError;

use crate::git::{Call, SELF};

/// Settings that say how files are written and compared, and start nothing.
const TAKEN_OVER: &[&str] = &[
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.symlinks",
    "core.precomposeunicode",
    "core.sharedrepository",
];

/// The part of a repository's settings that counts for us.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    name: Option<String>,
    email: Option<String>,
    taken_over: Vec<(String, String)>,
    /// The file of patterns to ignore, as it is written in the settings.
    pub(crate) excludes: Option<String>,
    /// Names of hooks that settings define.
    hooks: Vec<String>,
}

impl Settings {
    /// Reads them with `config`, a call of `git config` on the repository.
    pub(crate) async fn read(config: Call) -> Result<Self, WorkspaceError> {
        Ok(Self::parse(&config.args(["--null", "--list"]).bytes().await?))
    }

    /// Reads what `config --null --list` prints: `key\nvalue\0`, the last of a key counts.
    fn parse(bytes: &[u8]) -> Self {
        let mut settings = Self::default();
        for entry in bytes.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let text = String::from_utf8_lossy(entry);
            let (key, value) = text.split_once('\n').unwrap_or((&text, "true"));
            let hook = key.strip_prefix("hook.").and_then(|rest| rest.rsplit_once('.'));
            match (key, hook) {
                ("user.name", _) => settings.name = Some(value.to_owned()),
                ("user.email", _) => settings.email = Some(value.to_owned()),
                ("core.excludesfile", _) => settings.excludes = Some(value.to_owned()),
                (_, Some((name, _))) if !settings.hooks.iter().any(|known| known == name) => {
                    settings.hooks.push(name.to_owned());
                }
                _ if TAKEN_OVER.contains(&key) => {
                    settings.taken_over.push((key.to_owned(), value.to_owned()))
                }
                _ => {}
            }
        }
        settings
    }

    /// Has patterns to ignore read from this file.
    pub(crate) fn exclude_by(&mut self, file: &Path) {
        let file = file.to_string_lossy().into_owned();
        self.taken_over.push(("core.excludesfile".to_owned(), file));
    }

    /// Switches off each hook that a setting defines; git runs them since 2.54.
    pub(crate) fn without_hooks(&self, call: Call) -> Call {
        self.hooks.iter().fold(call, |call, name| {
            call.set(format!("hook.{name}.enabled"), "false")
        })
    }

    /// The settings taken over, and no hooks: the person's global settings may define some too.
    pub(crate) fn applied_to(&self, call: Call) -> Call {
        self.taken_over
            .iter()
            .fold(self.without_hooks(call), |call, (key, value)| {
                call.set(key, value)
            })
    }

    /// The repository's configured user as author and committer; what is not configured is Sillage's own.
    pub(crate) fn signed(&self, call: Call) -> Call {
        let filled = |value: &Option<String>| value.clone().filter(|value| !value.trim().is_empty());
        let name = filled(&self.name).unwrap_or_else(|| SELF.0.to_owned());
        let email = filled(&self.email).unwrap_or_else(|| SELF.1.to_owned());
        ["AUTHOR", "COMMITTER"].into_iter().fold(call, |call, role| {
            call.env(&format!("GIT_{role}_NAME"), &name)
                .env(&format!("GIT_{role}_EMAIL"), &email)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_over_what_starts_nothing_and_names_every_hook() {
        let read = Settings::parse(
            b"user.name\nA\0user.name\nB\0core.autocrlf\ntrue\0core.excludesfile\n~/x\0core.fsmonitor\n/x\0hook.a.b.command\n/x\0hook.a.b.event\npre-commit\0core.filemode\0",
        );
        let expected = Settings {
            name: Some("B".into()),
            email: None,
            excludes: Some("~/x".into()),
            taken_over: vec![
                ("core.autocrlf".into(), "true".into()),
                ("core.filemode".into(), "true".into()),
            ],
            hooks: vec!["a.b".into()],
        };
        assert_eq!(read, expected);
    }
}

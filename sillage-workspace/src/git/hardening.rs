//! What keeps a repository's hooks, filters, helpers and settings from running in our hands.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::version::Version;

/// Our own name and address.
pub(crate) const SELF: (&str, &str) = ("Sillage", "sillage@localhost");

/// Settings that outrank the repository's in every call.
const SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.editor", ":"),
    ("core.askPass", "/bin/false"),
    ("core.sshCommand", "/bin/false"),
    ("core.alternateRefsCommand", "/bin/false"),
    ("credential.helper", ""),
    ("commit.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
    ("safe.bareRepository", "explicit"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    // What an agent can write and would then be believed about history.
    ("core.commitGraph", "false"),
    // An index of ours is copied over a worktree's: it must stand by itself.
    ("core.splitIndex", "false"),
    ("core.untrackedCache", "false"),
    ("core.safecrlf", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    // Relative paths would need an extension, and so a change of the repository's settings.
    ("worktree.useRelativePaths", "false"),
];

/// Every event of githooks(5); since git 2.55 each can be switched off by name.
const EVENTS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// The settings of every call for this version.
pub(super) fn settings(version: Version) -> impl Iterator<Item = (String, String)> {
    let events = if version >= Version::WITH_HOOKS_IN_SETTINGS {
        EVENTS
    } else {
        &[]
    };
    let off = events
        .iter()
        .map(|event| (format!("hook.{event}.enabled"), "false".to_owned()));
    SETTINGS
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .chain(off)
}

/// The environment of every call. The person's own global settings stay in force; nothing else of the environment
/// reaches git, least of all `GIT_*`.
pub(super) fn environment() -> Vec<(&'static str, OsString)> {
    const KEPT: &[&str] = &[
        "HOME",
        "XDG_CONFIG_HOME",
        "TZ",
        "TMPDIR",
        "SystemRoot",
        "USERPROFILE",
    ];
    let path =
        std::env::join_paths(absolute_folders(std::env::var_os("PATH").as_deref())).unwrap_or_default();
    let mut all: Vec<(&'static str, OsString)> = vec![("PATH", path)];
    all.extend(KEPT.iter().filter_map(|key| Some((*key, std::env::var_os(key)?))));
    all.extend(
        [
            ("LANG", "C.UTF-8"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", "/bin/false"),
            ("SSH_ASKPASS", "/bin/false"),
            ("GIT_EDITOR", ":"),
            ("GIT_PAGER", "cat"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            // Pointers stay pointers: a download would need the network and the person's credentials.
            ("GIT_LFS_SKIP_SMUDGE", "1"),
            // `protocol.allow` is only what holds where a repository does not allow a protocol by its name.
            ("GIT_ALLOW_PROTOCOL", "none"),
            // A missing object is missing, whatever the settings say about where to get it.
            ("GIT_NO_LAZY_FETCH", "1"),
            // What is written to a log of references must not be the repository's to choose: a log can be a link.
            ("GIT_COMMITTER_NAME", SELF.0),
            ("GIT_COMMITTER_EMAIL", SELF.1),
        ]
        .map(|(key, value)| (key, OsString::from(value))),
    );
    all
}

/// The folders of `PATH` that do not depend on where a program is started: a relative one would let a repository
/// bring its own `git`.
pub(super) fn absolute_folders(path: Option<&OsStr>) -> Vec<PathBuf> {
    path.map(|path| {
        std::env::split_paths(path)
            .filter(|folder| folder.is_absolute())
            .collect()
    })
    .unwrap_or_default()
}

/// Whether a setting of this name can make git start a program. `key` is as git lists it: section and last part in
/// lower case.
pub(crate) fn programs_named_by(key: &str) -> bool {
    const WHOLE: &[&str] = &[
        "core.hookspath",
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.askpass",
        "core.sshcommand",
        "core.gitproxy",
        "core.alternaterefscommand",
        "sequence.editor",
        "diff.external",
        "gpg.program",
        "interactive.difffilter",
        "uploadpack.packobjectshook",
        "sendemail.smtpserver",
        "credential.helper",
    ];
    const PARTS: &[(&str, &[&str])] = &[
        ("alias", &[]),
        ("hook", &["command"]),
        ("filter", &["clean", "smudge", "process"]),
        ("merge", &["driver"]),
        ("diff", &["command", "textconv"]),
        ("difftool", &["cmd", "path"]),
        ("mergetool", &["cmd", "path"]),
        ("gpg", &["program", "defaultkeycommand"]),
        ("credential", &["helper"]),
        ("remote", &["uploadpack", "receivepack", "vcs"]),
        ("submodule", &["update"]),
        ("browser", &["cmd", "path"]),
        ("man", &["cmd", "path"]),
        ("pager", &[]),
        ("trailer", &["command", "cmd"]),
        ("guitool", &["cmd"]),
        ("tar", &["command"]),
    ];
    if WHOLE.contains(&key) {
        return true;
    }
    let (Some((section, _)), Some((_, last))) = (key.split_once('.'), key.rsplit_once('.')) else {
        return false;
    };
    let named = key.matches('.').count() >= 2;
    PARTS.iter().any(|(known, lasts)| {
        *known == section
            && if lasts.is_empty() {
                true
            } else {
                named && lasts.contains(&last)
            }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_absolute_folders_of_path_only() {
        let path = OsStr::new("/usr/bin:.:relative::/bin");
        assert_eq!(
            absolute_folders(Some(path)),
            [PathBuf::from("/usr/bin"), PathBuf::from("/bin")]
        );
        assert!(absolute_folders(None).is_empty());
    }

    #[test]
    fn tells_settings_that_name_programs() {
        for key in [
            "core.hookspath",
            "filter.a.b=c.clean",
            "merge.x.driver",
            "hook.mine.command",
            "alias.st",
            "gpg.ssh.program",
        ] {
            assert!(programs_named_by(key), "{key}");
        }
        for key in [
            "core.autocrlf",
            "filter.lfs.required",
            "diff.renames",
            "merge.conflictstyle",
            "user.name",
            "x",
        ] {
            assert!(!programs_named_by(key), "{key}");
        }
    }

    #[test]
    fn switches_events_off_where_settings_can_name_hooks() {
        let old: Vec<_> = settings(Version::OLDEST).collect();
        let new: Vec<_> = settings(Version::WITH_HOOKS_IN_SETTINGS).collect();
        let off = (
            "hook.reference-transaction.enabled".to_owned(),
            "false".to_owned(),
        );
        assert!(!old.contains(&off) && new.contains(&off));
    }
}

//! Ways in which a repository can make git run a program. Each leaves a mark of its own name when it does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::sandbox::Sandbox;

/// Every hook of githooks(5) that a repository can hold.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-pre-submit",
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

/// Settings that name a program, and what `{}` stands for in them: the program.
const PROGRAMS: &[(&str, &str)] = &[
    ("alias.evil", "!{}"),
    ("alias.status", "!{}"),
    ("browser.evil.cmd", "{}"),
    ("core.alternateRefsCommand", "{}"),
    ("core.askPass", "{}"),
    ("core.editor", "{}"),
    ("core.gitProxy", "{}"),
    ("core.pager", "{}"),
    ("core.sshCommand", "{}"),
    ("credential.helper", "!{}"),
    ("credential.https://example.org.helper", "!{}"),
    ("diff.evil.command", "{}"),
    ("diff.evil.textconv", "{}"),
    ("diff.external", "{}"),
    ("difftool.evil.cmd", "{}"),
    ("filter.a=b.clean", "{}"),
    ("filter.evil.clean", "{}"),
    ("filter.evil.smudge", "{}"),
    ("filter.long.process", "{}"),
    ("gc.recentObjectsHook", "{}"),
    ("gpg.program", "{}"),
    ("gpg.ssh.defaultKeyCommand", "{}"),
    ("gpg.ssh.program", "{}"),
    ("guitool.evil.cmd", "{}"),
    ("hook.evil.command", "{}"),
    ("hook.other.command", "{}"),
    ("interactive.diffFilter", "{}"),
    ("man.evil.cmd", "{}"),
    ("merge.evil.driver", "{}"),
    ("mergetool.evil.cmd", "{}"),
    ("pager.log", "{}"),
    ("remote.evil.receivepack", "{}"),
    ("remote.evil.uploadpack", "{}"),
    ("remote.ext.url", "ext::{}"),
    ("sendemail.smtpServer", "{}"),
    ("sequence.editor", "{}"),
    ("submodule.module.update", "!{}"),
    ("tar.tgz.command", "{}"),
    ("trailer.evil.cmd", "{}"),
    ("trailer.old.command", "{}"),
    ("uploadpack.packObjectsHook", "{}"),
    // Last: from here on git runs it for nearly everything.
    ("core.fsmonitor", "{}"),
];

/// Settings without which some of the programs would not be asked for.
const HELPING: &[(&str, &str)] = &[
    ("commit.gpgSign", "true"),
    ("core.bigFileThreshold", "1"),
    ("core.splitIndex", "true"),
    ("core.untrackedCache", "true"),
    ("diff.tool", "evil"),
    ("filter.evil.required", "true"),
    ("hook.evil.event", "reference-transaction"),
    ("hook.other.event", "post-index-change"),
    ("log.showSignature", "true"),
    ("merge.default", "evil"),
    ("merge.tool", "evil"),
    ("protocol.ext.allow", "always"),
    ("protocol.file.allow", "always"),
    ("remote.ssh.url", "ssh://nobody@127.0.0.1/x"),
    ("remote.proxy.url", "git://127.0.0.1:9/x"),
    ("submodule.recurse", "true"),
    ("tag.gpgSign", "true"),
    ("trailer.evil.key", "Evil"),
    ("trailer.old.key", "Old"),
];

/// Gives every file every driver.
pub(crate) const ATTRIBUTES: &str =
    "* filter=evil diff=evil merge=evil\n*.x filter=a=b\n*.long filter=long\n*.inc filter=included\n";

/// Where settings are planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope<'a> {
    /// The settings that all worktrees share.
    Common,
    /// Those of one worktree, whose part of the git folder this is.
    Worktree(&'a Path),
    /// Those of a git folder that the agent made.
    Own(&'a Path),
}

impl Sandbox {
    /// A program that leaves a mark, and passes its input on where it is a filter.
    pub(crate) fn plant_program(&self, name: &str) -> PathBuf {
        fs::create_dir_all(self.at("marks")).unwrap();
        let name = name.replace(['/', ':'], "-");
        let mark = self.at("marks").join(&name);
        let filter = name.contains("filter") || name.contains("include");
        let then = if filter { "cat" } else { "exit 0" };
        let script = format!("#!/bin/sh\necho \"$@\" >> '{}'\n{then}\n", mark.display());
        let file = self.put(Path::new("planted").join(&name), &script);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    /// A program for each hook.
    pub(crate) fn plant_hooks(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        for hook in HOOKS {
            fs::copy(self.plant_program(&format!("hooks/{hook}")), folder.join(hook)).unwrap();
        }
    }

    /// Writes one setting with a git that runs nothing.
    pub(crate) fn set(&self, file: &Path, key: &str, value: &str) {
        let file = file.to_str().unwrap();
        self.git(".", &["config", "--file", file, key, value]);
    }

    /// Everything that settings can plant.
    pub(crate) fn plant_settings(&self, scope: Scope<'_>) {
        let common = self.at("repo/.git");
        let file = match scope {
            Scope::Common => common.join("config"),
            Scope::Worktree(admin) => {
                self.set(&common.join("config"), "extensions.worktreeConfig", "true");
                admin.join("config.worktree")
            }
            Scope::Own(folder) => folder.join("config"),
        };
        let attributes = self.put("planted/attributes", ATTRIBUTES);
        self.set(&file, "core.attributesFile", attributes.to_str().unwrap());
        let included = self.put("planted/included", "");
        let program = self.plant_program("includeIf");
        self.set(&included, "filter.included.clean", program.to_str().unwrap());
        self.set(&included, "filter.included.smudge", program.to_str().unwrap());
        self.set(&file, "includeIf.gitdir:**.path", included.to_str().unwrap());
        self.set(&file, "remote.evil.url", common.to_str().unwrap());
        for (key, value) in HELPING {
            self.set(&file, key, value);
        }
        for (key, value) in PROGRAMS {
            let program = self.plant_program(key);
            self.set(&file, key, &value.replace("{}", program.to_str().unwrap()));
        }
    }

    /// The vectors whose program ran, and what it was called with.
    pub(crate) fn marks(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.at("marks")) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn forget_marks(&self) {
        for mark in self.marks() {
            fs::remove_file(self.at("marks").join(mark)).unwrap();
        }
    }
}

/// How many ways to run a program are planted.
pub(crate) fn number() -> usize {
    HOOKS.len() + PROGRAMS.len()
}

/// What a person or an agent might do next: git runs much of what is planted.
pub(crate) fn use_plain_git(sandbox: &Sandbox) {
    let git = |arguments: &[&str]| drop(sandbox.try_git("repo", arguments));
    sandbox.put("repo/README", "person\n");
    for name in ["a.x", "b.long", "c.inc"] {
        sandbox.put(Path::new("repo").join(name), "text\n");
    }
    git(&["status"]);
    git(&["diff"]);
    git(&["diff", "--no-ext-diff", "--textconv"]);
    git(&["add", "-A"]);
    git(&["commit", "-m", "Signed"]);
    git(&["-c", "commit.gpgSign=false", "commit", "--no-verify", "-m", "One"]);
    git(&["-c", "commit.gpgSign=false", "commit", "--allow-empty"]);
    fs::remove_file(sandbox.at("repo/README")).unwrap();
    git(&["checkout", "--", "README"]);
    git(&["switch", "-qc", "side", "HEAD~1"]);
    sandbox.put("repo/README", "side\n");
    git(&["-c", "commit.gpgSign=false", "commit", "-am", "Side"]);
    git(&["-c", "commit.gpgSign=false", "merge", "main", "-m", "Merge"]);
    git(&["rebase", "-i", "HEAD~1"]);
    git(&["update-ref", "refs/heads/x", "HEAD"]);
    git(&["evil"]);
    git(&["ls-remote", "evil"]);
    git(&["ls-remote", "ssh"]);
    git(&["ls-remote", "proxy"]);
    git(&["ls-remote", "ext"]);
    git(&["push", "evil", "HEAD:refs/heads/pushed"]);
    git(&["archive", "--format=tgz", "-o", "/dev/null", "HEAD"]);
    git(&["difftool", "-y", "HEAD~1"]);
    git(&[
        "interpret-trailers",
        "--trailer",
        "Evil: x",
        "--trailer",
        "Old: y",
        "README",
    ]);
    sandbox.put("credential", "protocol=https\nhost=example.org\n\n");
    git(&["credential", "fill"]);
    git(&["gc", "--prune=now"]);
}

//! A home, a repository and a data folder of their own for each test, and the hands of a person and an agent.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{MergeWanted, Worktree, WorktreeWanted};
use sillage_core::time::Timestamp;
use sillage_testkit::workspace_suite::Scene;
use sillage_workspace::GitWorkspace;
use tempfile::TempDir;

pub(crate) struct Sandbox {
    folder: TempDir,
    pub(crate) program: PathBuf,
    pub(crate) workspace: GitWorkspace,
}

/// The gits on `PATH` that are new enough, by version: they may differ in what they run.
pub(crate) fn gits() -> BTreeMap<(u32, u32), PathBuf> {
    let path = std::env::var_os("PATH").unwrap();
    let programs = std::env::split_paths(&path)
        .map(|folder| folder.join("git"))
        .filter(|file| file.is_file());
    let versioned = programs.filter_map(|program| {
        let output = Command::new(&program).arg("version").env_clear().output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let mut numbers = text
            .strip_prefix("git version ")?
            .split('.')
            .map(|number| number.trim().parse().ok());
        Some(((numbers.next()??, numbers.next()??), program))
    });
    let found: BTreeMap<_, _> = versioned.filter(|(version, _)| *version >= (2, 38)).collect();
    assert!(!found.is_empty(), "the tests need git 2.38 or newer");
    found
}

impl Sandbox {
    pub(crate) fn newest() -> Self {
        Self::with(gits().into_values().next_back().unwrap(), &[])
    }

    pub(crate) fn oldest() -> Self {
        Self::with(gits().into_values().next().unwrap(), &[])
    }

    /// A repository with one commit by this git, made with these options of `git init`.
    pub(crate) fn with(program: PathBuf, init: &[&str]) -> Self {
        let sandbox = Self::empty(program, init);
        sandbox.put("repo/README", "read me\n");
        sandbox.put("repo/src/lib.rs", "one\ntwo\nthree\n");
        sandbox.put("repo/.gitignore", "/ignored\n");
        sandbox.git("repo", &["add", "-A"]);
        sandbox.git("repo", &["commit", "-qm", "Start"]);
        sandbox
    }

    /// A repository without a commit.
    pub(crate) fn empty(program: PathBuf, init: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("home");
        fs::create_dir_all(&home).unwrap();
        fs::write(
            home.join(".gitconfig"),
            "[user]\n\tname = A Person\n\temail = person@example.org\n",
        )
        .unwrap();
        fs::create_dir(folder.path().join("repo")).unwrap();
        let data = folder.path().join("data");
        let workspace = GitWorkspace::with_git(&program, &data).unwrap().with_home(&home);
        let sandbox = Self {
            folder,
            program,
            workspace,
        };
        let mut arguments = vec!["init", "-q", "-b", "main"];
        arguments.extend(init);
        sandbox.git("repo", &arguments);
        sandbox
    }

    pub(crate) fn with_clock(mut self, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let workspace = GitWorkspace::with_git(&self.program, &self.at("data")).unwrap();
        self.workspace = workspace.with_home(&self.at("home")).with_clock(now);
        self
    }

    /// A path in the sandbox.
    pub(crate) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(path)
    }

    /// Writes a file.
    pub(crate) fn put(&self, path: impl AsRef<Path>, content: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// What git does for a person or an agent.
    pub(crate) fn try_git(&self, folder: impl AsRef<Path>, arguments: &[&str]) -> Output {
        Command::new(&self.program)
            .args(arguments)
            .current_dir(self.at(folder))
            .env_clear()
            .env("HOME", self.at("home"))
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap()
    }

    /// The same, which must succeed.
    pub(crate) fn git(&self, folder: impl AsRef<Path>, arguments: &[&str]) -> String {
        let output = self.try_git(folder, arguments);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {words}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub(crate) fn head(&self) -> String {
        self.git("repo", &["rev-parse", "HEAD"])
    }

    pub(crate) fn wish(&self, step: &str) -> WorktreeWanted {
        WorktreeWanted {
            repository: self.at("repo"),
            run: "r1".to_owned(),
            step: step.to_owned(),
            branch: format!("sillage/steps/r1/{step}"),
            base: self.head(),
        }
    }

    pub(crate) async fn lease(&self, step: &str) -> Worktree {
        self.workspace.lease(&self.wish(step)).await.unwrap()
    }

    pub(crate) fn merge_of(&self, commit: &str) -> MergeWanted {
        MergeWanted {
            repository: self.at("repo"),
            into: "sillage/r1".to_owned(),
            base: self.head(),
            commit: commit.to_owned(),
            parts: Vec::new(),
            message: "Merge an agent's work".to_owned(),
        }
    }

    /// The commit's id at the tip of a branch.
    pub(crate) fn branch_tip(&self, branch: &str) -> String {
        self.git(
            "repo",
            &["rev-parse", "--verify", &format!("refs/heads/{branch}")],
        )
    }

    pub(crate) fn fsck(&self) {
        let output = self.try_git("repo", &["fsck", "--no-dangling", "--strict"]);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && !words.contains("error"),
            "fsck: {words}"
        );
    }
}

impl Scene for Sandbox {
    fn workspace(&self) -> &dyn Workspace {
        &self.workspace
    }
    fn repository(&self) -> PathBuf {
        self.at("repo")
    }
    fn write(&self, folder: &Path, file: &str, content: &str) {
        fs::write(folder.join(file), content).unwrap();
    }
    fn lose(&self, folder: &Path) {
        fs::remove_dir_all(folder).unwrap();
    }
    fn point(&self, reference: &str, commit: &str) {
        self.git("repo", &["update-ref", reference, commit]);
    }
    fn tip(&self, reference: &str) -> Option<String> {
        let output = self.try_git("repo", &["show-ref", "--verify", "--hash", reference]);
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
    fn content(&self, commit: &str, file: &str) -> Option<String> {
        let output = self.try_git("repo", &["show", &format!("{commit}:{file}")]);
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
    /// Every byte of the checkout, and of the git folder what is neither objects nor ours.
    fn persons(&self) -> String {
        let root = self.at("repo");
        let mut told = self.git("repo", &["for-each-ref", "refs/heads/main"]);
        let mut left = vec![root.clone()];
        let mut files = Vec::new();
        while let Some(folder) = left.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let inner = path.strip_prefix(&root).unwrap().to_owned();
                let ours = [
                    "objects",
                    "worktrees",
                    "refs",
                    "logs/refs",
                    "packed-refs",
                    "reftable",
                ];
                if ours.iter().any(|name| inner == Path::new(".git").join(name)) {
                    continue;
                }
                if path.is_dir() {
                    left.push(path)
                } else {
                    files.push(path)
                }
            }
        }
        files.sort();
        for file in files {
            told.push_str(&format!("\n{}: {:?}", file.display(), fs::read(&file).unwrap()));
        }
        told
    }
}

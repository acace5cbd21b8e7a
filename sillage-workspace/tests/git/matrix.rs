//! R20, E1–E5 and E9: every way to run a program that a repository has, planted at every moment and place, against
//! every call of the workspace, with every git that is found.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{Hold, MergeOutcome, MergeWanted, Removal, WorkspaceError, Worktree};
use sillage_testkit::workspace_suite::Scene;

use crate::sandbox::{Sandbox, gits};
use crate::vectors::{ATTRIBUTES, Scope, number, use_plain_git};

/// The port, as its crate has it.
const PORT: &str = include_str!("../../../sillage-core/src/ports/workspace.rs");

/// When and where everything is planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// In the repository, before it is looked at.
    Before,
    /// In the repository's git folder, once worktrees are made.
    After,
    /// In the worktree's own part of the git folder and in the worktree.
    Worktree,
    /// As [`Moment::Before`], with a hooks folder that settings name.
    HooksPath,
}

/// The methods of the port, read from its source, so that one that is added cannot be forgotten here.
fn port_methods() -> BTreeSet<String> {
    let within = PORT.split("pub trait Workspace").nth(1).unwrap();
    let within = within.split("\n}\n").next().unwrap();
    let starts = within.match_indices("async fn ");
    starts
        .map(|(at, start)| within[at + start.len()..].split('(').next().unwrap().to_owned())
        .collect()
}

/// One repository, everything planted in it, and the calls made so far.
struct Story {
    sandbox: Sandbox,
    label: String,
    called: BTreeSet<String>,
}

impl Story {
    /// Notes a call, and that nothing ran meanwhile.
    fn called(&mut self, method: &str) {
        assert_eq!(
            self.sandbox.marks(),
            [] as [String; 0],
            "{}: ran by {method}",
            self.label
        );
        self.called.insert(method.to_owned());
    }

    fn admin(&self, worktree: &Worktree) -> PathBuf {
        let link = fs::read_to_string(worktree.path.join(".git")).unwrap();
        PathBuf::from(link.trim_start_matches("gitdir: ").trim_end())
    }

    fn plant_in_common(&self) {
        self.sandbox.put("repo/.git/info/attributes", ATTRIBUTES);
        self.sandbox.plant_hooks(&self.sandbox.at("repo/.git/hooks"));
        self.sandbox.plant_settings(Scope::Common);
    }

    /// What an agent can plant where it works: attributes, settings of the worktree, repositories within.
    fn plant_in_worktree(&self, worktree: &Worktree, settings: bool) {
        let path = &worktree.path;
        fs::write(path.join(".gitattributes"), ATTRIBUTES).unwrap();
        fs::write(path.join(".lfsconfig"), "[lfs]\n\turl = http://127.0.0.1:9/\n").unwrap();
        if settings {
            let admin = self.admin(worktree);
            fs::create_dir_all(admin.join("info")).unwrap();
            fs::write(admin.join("info/attributes"), ATTRIBUTES).unwrap();
            self.sandbox.plant_hooks(&admin.join("hooks"));
            self.sandbox.plant_hooks(&path.join("hooks"));
            self.sandbox
                .set(&admin.join("config.worktree"), "core.hooksPath", "hooks");
            self.sandbox.plant_settings(Scope::Worktree(&admin));
        }
        // A repository within, one that looks like a submodule, and a bare one: all hostile (E4, E5).
        for (name, own) in [
            ("nested", "nested/.git"),
            ("module", "module/.git"),
            ("bare", "bare"),
        ] {
            let own = path.join(own);
            for folder in ["objects", "refs/heads"] {
                fs::create_dir_all(own.join(folder)).unwrap();
            }
            fs::write(own.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(own.join("config"), "[core]\n\trepositoryformatversion = 0\n").unwrap();
            self.sandbox.set(
                &own.join("config"),
                "core.bare",
                if name == "bare" { "true" } else { "false" },
            );
            self.sandbox.plant_hooks(&own.join("hooks"));
            self.sandbox.plant_settings(Scope::Own(&own));
            fs::write(path.join(name).join("inner"), "inner\n").unwrap();
        }
        fs::write(
            path.join(".gitmodules"),
            "[submodule \"module\"]\n\tpath = module\n\turl = ./x\n",
        )
        .unwrap();
    }
}

fn write(worktree: &Worktree, file: &str, content: &str) {
    fs::write(worktree.path.join(file), content).unwrap();
}

/// Calls everything that the workspace can do; each answer is the one that a clean repository gives.
async fn tell(program: &Path, moment: Moment) {
    let sandbox = Sandbox::with(program.to_owned(), &[]);
    sandbox.put("repo/.gitattributes", ATTRIBUTES);
    sandbox.git("repo", &["add", "-A"]);
    sandbox.git("repo", &["commit", "-qm", "Attributes"]);
    let mut story = Story {
        label: format!("{} {moment:?}", program.display()),
        sandbox,
        called: BTreeSet::new(),
    };
    match moment {
        Moment::Before => story.plant_in_common(),
        Moment::HooksPath => {
            story.plant_in_common();
            let (config, hooks) = (story.sandbox.at("repo/.git/config"), story.sandbox.at("hooks"));
            story.sandbox.plant_hooks(&hooks);
            story
                .sandbox
                .set(&config, "core.hooksPath", hooks.to_str().unwrap());
        }
        Moment::After | Moment::Worktree => {}
    }
    story.sandbox.forget_marks();
    let repository = story.sandbox.at("repo");

    let found = story
        .sandbox
        .workspace
        .inspect(&repository)
        .await
        .unwrap()
        .unwrap();
    story.called("inspect");
    let told = found
        .warnings
        .iter()
        .any(|warning| warning.contains("filter.evil.clean"));
    assert_eq!(
        told,
        matches!(moment, Moment::Before | Moment::HooksPath),
        "{:?}",
        found.warnings
    );

    let (a, b) = (story.sandbox.lease("a").await, story.sandbox.lease("b").await);
    story.called("lease");
    match moment {
        Moment::After => {
            story.plant_in_common();
            story.plant_in_worktree(&a, false);
        }
        Moment::Worktree => {
            story.plant_in_worktree(&a, true);
            story.plant_in_worktree(&b, true);
        }
        Moment::Before | Moment::HooksPath => story.plant_in_worktree(&a, false),
    }
    let persons = story.sandbox.persons();
    let wish = story.sandbox.wish("c");
    let c = story.sandbox.workspace.lease(&wish).await.unwrap();
    story.called("lease");
    assert_eq!(fs::read_to_string(c.path.join("README")).unwrap(), "read me\n");
    assert_eq!(
        story
            .sandbox
            .workspace
            .lease(&story.sandbox.wish("a"))
            .await
            .unwrap(),
        a
    );
    story.called("lease");

    for (worktree, name) in [(&a, "a"), (&b, "b")] {
        write(worktree, "README", &format!("changed by {name}\n"));
        for end in ["x", "long", "inc"] {
            write(worktree, &format!("{name}.{end}"), "new\n");
        }
    }
    let one = story.sandbox.workspace.commit(&a, "Work of a").await.unwrap();
    story.called("commit");
    let two = story.sandbox.workspace.commit(&b, "Work of b").await.unwrap();
    story.called("commit");
    assert_eq!((one.commits, two.commits), (1, 1));
    for (committed, worktree) in [(&one, &a), (&two, &b)] {
        assert_eq!(
            story.sandbox.branch_tip(&worktree.branch),
            committed.tip,
            "{}",
            story.label
        );
        assert_eq!(story.sandbox.content(&committed.tip, "nested/inner"), None);
    }
    assert_eq!(story.sandbox.content(&one.tip, "a.x").as_deref(), Some("new\n"));

    let into = |tip: &str| story.sandbox.merge_of(tip);
    let (first, second) = (into(&one.tip), into(&two.tip));
    let merged = story.sandbox.workspace.merge(&first).await.unwrap();
    story.called("merge");
    assert!(
        matches!(&merged, MergeOutcome::Merged(_)),
        "{}: {merged:?}",
        story.label
    );
    let MergeOutcome::Conflict(files) = story.sandbox.workspace.merge(&second).await.unwrap() else {
        panic!("{}: merged", story.label)
    };
    story.called("merge");
    assert!(files.contains(&"README".to_owned()), "{}: {files:?}", story.label);

    story.return_the_conflict(&b, &second, &two.tip).await;
    story.look_and_check(&repository, &b, &one.tip).await;

    let diff = story
        .sandbox
        .workspace
        .diff(&repository, &one.tip, &two.tip)
        .await
        .unwrap();
    story.called("diff");
    assert!(diff.files >= 7 && diff.insertions >= 4, "{diff:?}");

    let files: Vec<PathBuf> = [
        "README",
        "a.x",
        "nothing",
        "nested/.git/HEAD",
        "../../../planted/core.pager",
    ]
    .map(PathBuf::from)
    .to_vec();
    let missing = story.sandbox.workspace.missing(&a.path, &files).await.unwrap();
    story.called("missing");
    assert_eq!(missing, [files[2].clone(), files[4].clone()]);

    let listed = story
        .sandbox
        .workspace
        .list(&repository, "sillage/r1")
        .await
        .unwrap();
    story.called("list");
    assert_eq!(listed.len(), 3, "{listed:?}");

    let held = story.sandbox.workspace.remove(&a, "sillage/r1").await.unwrap();
    story.called("remove");
    let Removal::Held(holds) = held else {
        panic!("{}: removed", story.label)
    };
    assert!(
        holds.contains(&Hold::NestedRepository("nested".into())),
        "{holds:?}"
    );
    for name in ["nested", "module"] {
        fs::remove_dir_all(a.path.join(name)).unwrap();
    }
    let removed = story.sandbox.workspace.remove(&a, "sillage/r1").await.unwrap();
    story.called("remove");
    assert_eq!(removed, Removal::Removed, "{}", story.label);

    write(&b, "left.x", "left\n");
    let restarted = story.sandbox.workspace.restart(&b, "r1", "b").await.unwrap();
    story.called("restart");
    let rescued = restarted.rescued.unwrap();
    assert_eq!(
        story.sandbox.content(&rescued, "left.x").as_deref(),
        Some("left\n")
    );
    assert_eq!(fs::read_to_string(b.path.join("README")).unwrap(), "read me\n");
    fs::remove_dir_all(&c.path).unwrap();
    let again = story.sandbox.workspace.restart(&c, "r1", "c").await.unwrap();
    story.called("restart");
    assert_eq!(
        fs::read_to_string(again.worktree.path.join("README")).unwrap(),
        "read me\n"
    );

    assert_eq!(
        story.sandbox.persons(),
        persons,
        "{}: the person's files",
        story.label
    );
    assert_eq!(
        story.called,
        port_methods(),
        "each method of the port is called here"
    );
    if matches!(moment, Moment::Before | Moment::After) {
        control(&story.sandbox);
    }
}

impl Story {
    /// A conflict begun in its worktree, looked at, and given up.
    async fn return_the_conflict(&mut self, worktree: &Worktree, wish: &MergeWanted, tip: &str) {
        let begun = self.sandbox.workspace.begin_merge(worktree, wish).await.unwrap();
        self.called("begin_merge");
        assert!(
            begun.files.contains(&"README".to_owned()),
            "{}: {begun:?}",
            self.label
        );
        let left = self
            .sandbox
            .workspace
            .unresolved(worktree, &begun.files)
            .await
            .unwrap();
        self.called("unresolved");
        assert!(left.contains(&"README".to_owned()), "{}: {left:?}", self.label);
        self.sandbox
            .workspace
            .abandon_merge(worktree, tip, "r1", "b")
            .await
            .unwrap();
        self.called("abandon_merge");
        let text = fs::read_to_string(worktree.path.join("README")).unwrap();
        assert_eq!(text, "changed by b\n", "{}", self.label);
    }

    /// The person's checkout looked at, a worktree asked after, and a check's folder made and removed.
    async fn look_and_check(&mut self, repository: &Path, worktree: &Worktree, commit: &str) {
        self.sandbox.workspace.checkout(repository, &[]).await.unwrap();
        self.called("checkout");
        assert_eq!(
            self.sandbox.workspace.lost(worktree).await.unwrap(),
            None,
            "{}",
            self.label
        );
        self.called("lost");
        let folder = self
            .sandbox
            .workspace
            .check_folder(repository, "r1", commit)
            .await
            .unwrap();
        self.called("check_folder");
        assert_eq!(
            fs::read_to_string(folder.join("a.x")).unwrap(),
            "new\n",
            "{}",
            self.label
        );
        self.sandbox
            .workspace
            .clear_check(repository, "r1")
            .await
            .unwrap();
        self.called("clear_check");
        assert!(!folder.exists(), "{}", self.label);
    }
}

/// The plants do work: a plain git runs them.
fn control(sandbox: &Sandbox) {
    use_plain_git(sandbox);
    let ran = sandbox.marks();
    assert!(ran.len() >= 25, "{} of {} ran: {ran:?}", ran.len(), number());
    for one in [
        "core.fsmonitor",
        "filter.evil.clean",
        "merge.evil.driver",
        "hooks-reference-transaction",
        "gpg.program",
    ] {
        assert!(ran.iter().any(|mark| mark == one), "{one} did not run: {ran:?}");
    }
}

#[tokio::test]
async fn e1_e2_e5_nothing_planted_runs_by_any_call_r20() {
    assert!(number() >= 60, "{} ways", number());
    assert!(port_methods().len() >= 9, "{:?}", port_methods());
    for program in gits().into_values() {
        for moment in [Moment::Before, Moment::After, Moment::Worktree, Moment::HooksPath] {
            tell(&program, moment).await;
        }
    }
}

/// E9: this test starts itself in an environment that leads git elsewhere.
#[test]
fn e9_what_the_environment_says_of_git_is_not_passed_on_r20() {
    const INSIDE: &str = "SILLAGE_TEST_IN_HOSTILE_ENVIRONMENT";
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        for program in gits().into_values() {
            runtime.block_on(tell(&program, Moment::After));
        }
        return;
    }
    let elsewhere = Sandbox::newest();
    let evil = |name: &str| elsewhere.plant_program(&format!("environment/{name}"));
    let config = elsewhere.put("evil.config", "");
    for key in [
        "core.fsmonitor",
        "core.pager",
        "filter.evil.clean",
        "filter.evil.smudge",
        "diff.external",
    ] {
        elsewhere.set(&config, key, evil(key).to_str().unwrap());
    }
    elsewhere.plant_hooks(&elsewhere.at("template/hooks"));
    elsewhere.plant_hooks(&elsewhere.at("hooks"));
    elsewhere.set(&config, "core.hooksPath", elsewhere.at("hooks").to_str().unwrap());
    let before = (elsewhere.persons(), elsewhere.git("repo", &["for-each-ref"]));
    let repo = elsewhere.at("repo");
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "matrix::e9_what_the_environment_says_of_git_is_not_passed_on_r20",
            "--nocapture",
        ])
        .env(INSIDE, "1")
        .env("GIT_DIR", repo.join(".git"))
        .env("GIT_COMMON_DIR", repo.join(".git"))
        .env("GIT_WORK_TREE", &repo)
        .env("GIT_INDEX_FILE", repo.join(".git/index"))
        .env("GIT_OBJECT_DIRECTORY", repo.join(".git/objects"))
        .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", repo.join(".git/objects"))
        .env("GIT_NAMESPACE", "evil")
        .env("GIT_CEILING_DIRECTORIES", "/")
        .env("GIT_CONFIG_GLOBAL", &config)
        .env("GIT_CONFIG_SYSTEM", &config)
        .env("GIT_CONFIG", &config)
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "core.fsmonitor")
        .env("GIT_CONFIG_VALUE_0", evil("count"))
        .env(
            "GIT_CONFIG_PARAMETERS",
            format!("'core.fsmonitor={}'", evil("parameters").display()),
        )
        .env("GIT_EXTERNAL_DIFF", evil("diff"))
        .env("GIT_SSH", evil("ssh"))
        .env("GIT_SSH_COMMAND", evil("ssh-command"))
        .env("GIT_PROXY_COMMAND", evil("proxy"))
        .env("GIT_ASKPASS", evil("askpass"))
        .env("SSH_ASKPASS", evil("ssh-askpass"))
        .env("GIT_EDITOR", evil("editor"))
        .env("GIT_SEQUENCE_EDITOR", evil("sequence"))
        .env("EDITOR", evil("plain-editor"))
        .env("VISUAL", evil("visual"))
        .env("GIT_PAGER", evil("pager"))
        .env("PAGER", evil("plain-pager"))
        .env("GIT_TEMPLATE_DIR", elsewhere.at("template"))
        .env("GIT_EXEC_PATH", elsewhere.at("planted"))
        .env("GIT_ATTR_SOURCE", "HEAD")
        .env("GIT_LITERAL_PATHSPECS", "0")
        .env("GIT_ICASE_PATHSPECS", "1")
        .env("GIT_GLOB_PATHSPECS", "1")
        .env("GIT_AUTHOR_NAME", "Somebody else")
        .env("GIT_AUTHOR_DATE", "yesterday")
        .env("GIT_TRACE", elsewhere.at("trace"))
        .env("GIT_TRACE2", elsewhere.at("trace"))
        .env("GIT_QUARANTINE_PATH", "/")
        .env("GIT_REPLACE_REF_BASE", "refs/heads")
        .env("GIT_DEFAULT_HASH", "sha256")
        .env("GIT_ALLOW_PROTOCOL", "ext:file")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("1 passed"), "{told}");
    assert_eq!(elsewhere.marks(), [] as [String; 0]);
    assert!(!elsewhere.at("trace").exists(), "git was traced");
    assert_eq!(
        (elsewhere.persons(), elsewhere.git("repo", &["for-each-ref"])),
        before
    );
}

/// E3: the settings say that the files lie elsewhere, or that there are none, at each moment.
#[tokio::test]
async fn e3_settings_about_the_working_tree_are_not_believed() {
    for program in gits().into_values() {
        for (key, value) in [
            ("core.worktree", "/nonexistent"),
            ("core.worktree", "../../elsewhere"),
            ("core.worktree", "relative"),
            ("core.bare", "true"),
        ] {
            let sandbox = Sandbox::with(program.clone(), &[]);
            sandbox.put("elsewhere/README", "elsewhere\n");
            let a = sandbox.lease("a").await;
            let (other, mut wish) = (sandbox.wish("b"), sandbox.merge_of(&a.base));
            sandbox.set(&sandbox.at("repo/.git/config"), key, value);
            write(&a, "README", "changed\n");
            wish.commit = sandbox.workspace.commit(&a, "Work").await.unwrap().tip;
            let merged = sandbox.workspace.merge(&wish).await.unwrap();
            assert!(matches!(merged, MergeOutcome::Merged(_)), "{key}: {merged:?}");
            let b = sandbox.workspace.lease(&other).await.unwrap();
            assert_eq!(fs::read_to_string(b.path.join("README")).unwrap(), "read me\n");
            // The person's branch is seen to be checked out all the same.
            wish.into = "main".to_owned();
            let refused = sandbox.workspace.merge(&wish).await.unwrap_err();
            assert!(
                matches!(refused, WorkspaceError::Unsupported { .. }),
                "{key}: {refused}"
            );
            let removed = sandbox.workspace.remove(&a, "sillage/r1").await.unwrap();
            assert_eq!(removed, Removal::Removed, "{key} {value}");
            assert_eq!(
                fs::read_to_string(sandbox.at("elsewhere/README")).unwrap(),
                "elsewhere\n"
            );
        }
    }
}

/// E3: `commondir` leads to a hostile git folder.
#[tokio::test]
async fn e3_a_planted_common_folder_lends_nothing() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let a = sandbox.lease("a").await;
        sandbox.put("other/x", "x\n");
        sandbox.git("other", &["init", "-q"]);
        let other = sandbox.at("other/.git");
        sandbox.plant_hooks(&other.join("hooks"));
        sandbox.plant_settings(Scope::Own(&other));
        fs::write(other.join("info/attributes"), ATTRIBUTES).unwrap();
        let link = fs::read_to_string(a.path.join(".git")).unwrap();
        let admin = PathBuf::from(link.trim_start_matches("gitdir: ").trim_end());
        fs::write(admin.join("commondir"), format!("{}\n", other.display())).unwrap();
        write(&a, ".gitattributes", ATTRIBUTES);
        sandbox.forget_marks();
        let committed = sandbox.workspace.commit(&a, "Work").await.unwrap();
        assert_eq!(sandbox.branch_tip(&a.branch), committed.tip);
        sandbox
            .workspace
            .list(&sandbox.at("repo"), "sillage/r1")
            .await
            .unwrap();
        sandbox.workspace.restart(&a, "r1", "a").await.unwrap();
        assert_eq!(sandbox.marks(), [] as [String; 0]);
        assert!(!other.join("refs/heads/sillage").exists());
    }
}

/// E4: a folder that looks like a bare repository is not taken for one, nor is it entered.
#[tokio::test]
async fn e4_a_planted_bare_repository_is_refused_by_name() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let bare = sandbox.at("repo/docs");
        for folder in ["objects", "refs"] {
            fs::create_dir_all(bare.join(folder)).unwrap();
        }
        fs::write(bare.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(bare.join("config"), "[core]\n\tbare = true\n").unwrap();
        sandbox.plant_hooks(&bare.join("hooks"));
        sandbox.plant_settings(Scope::Own(&bare));
        for folder in [bare.clone(), bare.join("refs")] {
            let refused = sandbox.workspace.inspect(&folder).await.unwrap_err();
            assert!(refused.to_string().contains("it is bare"), "{refused}");
        }
        assert_eq!(sandbox.marks(), [] as [String; 0]);
    }
}

/// A missing object of a partial clone is fetched by whatever its settings name, were it allowed.
#[tokio::test]
async fn e1_a_missing_object_is_not_fetched_by_a_planted_helper() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let a = sandbox.lease("a").await;
        let config = sandbox.at("repo/.git/config");
        let url = format!("ext::{}", sandbox.plant_program("lazy").display());
        for (key, value) in [
            ("core.repositoryFormatVersion", "1"),
            ("extensions.partialClone", "evil"),
            ("remote.evil.promisor", "true"),
            ("remote.evil.url", &url),
            ("protocol.ext.allow", "always"),
        ] {
            sandbox.set(&config, key, value);
        }
        let base = a.base.clone();
        fs::remove_file(sandbox.at(format!("repo/.git/objects/{}/{}", &base[..2], &base[2..]))).unwrap();
        let repository = sandbox.at("repo");
        write(&a, "README", "changed\n");
        assert!(sandbox.workspace.inspect(&repository).await.is_err());
        assert!(sandbox.workspace.commit(&a, "Work").await.is_err());
        let mut wish = sandbox.wish("b");
        wish.base.clone_from(&base);
        assert!(sandbox.workspace.lease(&wish).await.is_err());
        assert!(sandbox.workspace.merge(&sandbox.merge_of(&base)).await.is_err());
        assert!(sandbox.workspace.diff(&repository, &base, &base).await.is_err());
        let _ = sandbox.workspace.list(&repository, "sillage/r1").await;
        let _ = sandbox.workspace.remove(&a, "sillage/r1").await;
        let _ = sandbox.workspace.restart(&a, "r1", "a").await;
        assert_eq!(sandbox.marks(), [] as [String; 0]);
        // A plain git does fetch it.
        sandbox.try_git("repo", &["cat-file", "-p", &base]);
        assert_eq!(sandbox.marks(), ["lazy"]);
    }
}

/// A branch of ours is made a name for the person's: moving ours must not move theirs.
#[tokio::test]
async fn a_branch_that_names_another_does_not_move_that_one_r16() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let a = sandbox.lease("a").await;
        let before = (sandbox.head(), sandbox.persons());
        for ours in [a.branch.as_str(), "sillage/r1"] {
            sandbox.git(
                "repo",
                &["symbolic-ref", &format!("refs/heads/{ours}"), "refs/heads/main"],
            );
        }
        write(&a, "README", "changed\n");
        let committed = sandbox.workspace.commit(&a, "Work").await.unwrap();
        sandbox
            .workspace
            .merge(&sandbox.merge_of(&committed.tip))
            .await
            .unwrap();
        assert_eq!((sandbox.head(), sandbox.persons()), before);
        assert_eq!(sandbox.branch_tip(&a.branch), committed.tip);
        sandbox.git(
            "repo",
            &[
                "symbolic-ref",
                &format!("refs/heads/{}", a.branch),
                "refs/heads/main",
            ],
        );
        sandbox.workspace.restart(&a, "r1", "a").await.unwrap();
        assert_eq!((sandbox.head(), sandbox.persons()), before);
    }
}

/// Git appends to a log of references where it leads, and makes a reference in a folder that is a link.
#[tokio::test]
async fn links_in_the_git_folder_are_not_written_through() {
    for program in gits().into_values() {
        for link in [
            "logs/refs/heads/sillage/steps/r1/a",
            "logs/refs/heads/sillage",
            "refs/heads/sillage/steps/r1",
            "worktrees/a/logs/HEAD",
        ] {
            let sandbox = Sandbox::with(program.clone(), &[]);
            let a = sandbox.lease("a").await;
            // So that the head has to be put back as well.
            sandbox.git(&a.path, &["switch", "-q", "--detach"]);
            let planted = sandbox.at("repo/.git").join(link);
            let away = sandbox.at("away");
            if planted.is_dir() {
                fs::rename(&planted, &away).unwrap();
            } else {
                fs::remove_file(&planted).unwrap();
                fs::write(&away, "precious\n").unwrap();
            }
            std::os::unix::fs::symlink(&away, &planted).unwrap();
            let told = |folder: &Path| {
                let output = Command::new("find")
                    .arg(folder)
                    .args(["-type", "f", "-exec", "cat", "{}", "+"])
                    .output();
                String::from_utf8(output.unwrap().stdout).unwrap()
            };
            let before = told(&away);
            write(&a, "README", "changed\n");
            let refused = sandbox.workspace.commit(&a, "Work").await.unwrap_err();
            assert!(
                refused.to_string().contains("this is a link"),
                "{link}: {refused}"
            );
            assert_eq!(told(&away), before, "{link}");
            fs::remove_file(&planted).unwrap();
            if away.is_dir() {
                fs::rename(&away, &planted).unwrap();
            }
            sandbox.workspace.commit(&a, "Work").await.unwrap();
        }
    }
}

/// Since 2.54 git runs hooks that settings name, which a folder of hooks does not stop. Here a git that says so tells
/// what it is given: each call that changes something has them off, by event and by name.
#[tokio::test]
async fn e1_hooks_that_settings_name_are_off_by_event_and_by_name() {
    let sandbox = Sandbox::newest();
    let log = sandbox.at("told");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = version ] && {{ echo git version 2.55.0; exit; }}\n\
         {{ echo \"call $*\"; env | grep ^GIT_CONFIG_; }} >> '{}'\nexec '{}' \"$@\"\n",
        log.display(),
        sandbox.program.display()
    );
    let program = sandbox.put("watched/git", &script);
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let home = sandbox.at("home");
    let workspace = sillage_workspace::GitWorkspace::with_git(program, &sandbox.at("data"))
        .unwrap()
        .with_home(&home);
    let config = sandbox.at("repo/.git/config");
    sandbox.set(&config, "hook.shared.command", "/bin/false");
    sandbox.set(&config, "extensions.worktreeConfig", "true");
    let a = workspace.lease(&sandbox.wish("a")).await.unwrap();
    let link = fs::read_to_string(a.path.join(".git")).unwrap();
    let admin = PathBuf::from(link.trim_start_matches("gitdir: ").trim_end());
    sandbox.set(&admin.join("config.worktree"), "hook.own.command", "/bin/false");
    write(&a, "README", "changed\n");
    sandbox.git(&a.path, &["switch", "-q", "--detach"]);
    let committed = workspace.commit(&a, "Work").await.unwrap();
    workspace.merge(&sandbox.merge_of(&committed.tip)).await.unwrap();
    workspace.restart(&a, "r1", "a").await.unwrap();
    workspace.remove(&a, "sillage/r1").await.unwrap();
    let told = fs::read_to_string(&log).unwrap();
    let mut seen = BTreeSet::new();
    for call in told.split("call ").skip(1) {
        let Some(kind) = ["update-ref", "worktree add", "worktree remove", "symbolic-ref -m"]
            .into_iter()
            .find(|kind| call.starts_with(kind))
        else {
            continue;
        };
        seen.insert(kind);
        let off = |key: &str| {
            let line = call
                .lines()
                .find(|line| line.starts_with("GIT_CONFIG_KEY_") && line.ends_with(&format!("={key}")));
            let number = line
                .and_then(|line| line.strip_prefix("GIT_CONFIG_KEY_")?.split_once('='))
                .map(|(number, _)| number);
            number.is_some_and(|number| {
                call.lines()
                    .any(|line| line == format!("GIT_CONFIG_VALUE_{number}=false"))
            })
        };
        for key in [
            "hook.reference-transaction.enabled",
            "hook.post-checkout.enabled",
            "hook.shared.enabled",
        ] {
            assert!(off(key), "{key} in {call}");
        }
        assert!(kind != "symbolic-ref -m" || off("hook.own.enabled"), "{call}");
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

/// A pipe that the settings name as the file of patterns is not waited for; a file is read, wherever it lies.
#[tokio::test]
async fn e2_a_file_of_patterns_is_read_and_a_pipe_is_not_waited_for() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let a = sandbox.lease("a").await;
        let config = sandbox.at("repo/.git/config");
        let pipe = sandbox.at("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        sandbox.set(&config, "core.excludesFile", pipe.to_str().unwrap());
        write(&a, "one.log", "1\n");
        let first = sandbox.workspace.commit(&a, "One").await.unwrap();
        assert!(sandbox.content(&first.tip, "one.log").is_some());
        sandbox.put("home/patterns", "*.log\n");
        for named in ["~/patterns", sandbox.at("home/patterns").to_str().unwrap()] {
            sandbox.set(&config, "core.excludesFile", named);
            write(&a, "two.log", "2\n");
            write(&a, "README", named);
            let second = sandbox.workspace.commit(&a, "Two").await.unwrap();
            assert!(sandbox.content(&second.tip, "two.log").is_none(), "{named}");
        }
    }
}

//! Repositories of every kind (R20, E18): the whole story works, or a launch is refused by name with what to do.
//! `docs/repositories.md` says which; a test holds the two together.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Stage;

/// Alpha commits one file by itself, and leaves another to the engine.
const ALPHA: &str = r#"
prompts:
  - match: Alpha
    steps:
      - write: { path: alpha.txt, content: "a\n" }
      - run: git add alpha.txt && git commit --quiet --message "Alpha's own commit"
      - write: { path: new.bin, content: "left\n" }
      - report: { summary: Alpha is done. }
"#;

const AGENT: &str = "id: alpha, mission: Alpha, worktree: always";

/// What becomes of a launch.
enum Answer {
    Works,
    /// Refused with these words.
    Refused(&'static str),
}

use Answer::{Refused, Works};

/// The version of the git that the tests find.
fn version() -> (u32, u32) {
    let told = Command::new("git").arg("version").output().expect("git runs");
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let mut numbers = text
        .trim_start_matches("git version ")
        .split('.')
        .map(|number| number.trim().parse().expect("a number"));
    (numbers.next().expect("major"), numbers.next().expect("minor"))
}

/// Makes the kind's repository, plays the story, and holds the answer against it.
macro_rules! kinds {
    ($($test:ident: $kind:literal, $answer:expr, $make:expr;)+) => {
        /// Every kind with a test.
        const KINDS: &[(&str, fn() -> Answer)] = &[$(($kind, || $answer)),+];
        $(
            #[test]
            fn $test() {
                let stage = Stage::without_repository(ALPHA);
                let make: fn(&Stage) = $make;
                make(&stage);
                match $answer {
                    Works => works(&stage),
                    Refused(words) => refused(&stage, "task.yaml", words),
                }
            }
        )+
    };
}

kinds! {
    e18_ordinary: "ordinary", Works, |stage| init(stage, &[]);
    e18_submodules: "with submodules", Works, |stage| {
        let library = other(stage, "library");
        init(stage, &[]);
        let library = library.to_string_lossy().into_owned();
        stage.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &library, "module"]);
        stage.commit("Add a submodule");
    };
    e18_repositories_within: "with repositories within", Works, |stage| {
        init(stage, &[]);
        let inner = stage.path("work/inner");
        fs::create_dir(&inner).expect("a folder");
        begin(stage, &inner, &[]);
        stage.write("work/.gitignore", "/inner\n");
    };
    e18_lfs: "with LFS, installed for the user", Works, |stage| {
        let program = lfs(stage);
        for (key, word) in [("clean", "clean"), ("smudge", "smudge")] {
            stage.git_in(&stage.path("home"), &["config", "--global", &format!("filter.lfs.{key}"), &format!("{program} {word}")]);
        }
        stage.git_in(&stage.path("home"), &["config", "--global", "filter.lfs.required", "true"]);
        init(stage, &[]);
        stage.write("work/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
        stage.write("work/old.bin", "large\n");
    };
    e18_lfs_missing: "with LFS, not installed", Works, |stage| {
        init(stage, &[]);
        stage.write("work/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
        stage.write("work/old.bin", POINTER);
    };
    e18_sparse: "sparse checkout", Works, |stage| {
        init(stage, &[]);
        stage.git(&["sparse-checkout", "set", "src", ".sillage"]);
        assert!(!stage.path("work/docs").exists(), "left out of the person's checkout");
    };
    e18_partial: "partial clone", Works, |stage| clone(stage, &["--filter=blob:none"]);
    e18_partial_lacking: "partial clone that lacks files of the last commit", Refused("partial clone"), |stage| {
        clone(stage, &["--filter=blob:none", "--sparse"]);
        stage.git(&["sparse-checkout", "add", ".sillage"]);
    };
    e18_sha256: "SHA-256", Works, |stage| init(stage, &["--object-format=sha256"]);
    e18_reftable: "reftable", if version() >= (2, 45) { Works } else { Refused("refstorage") }, |stage| {
        if version() >= (2, 45) {
            init(stage, &["--ref-format=reftable"]);
        } else {
            init(stage, &[]);
            stage.git(&["config", "core.repositoryFormatVersion", "1"]);
            stage.git(&["config", "extensions.refStorage", "reftable"]);
        }
    };
    e18_relative: "relative worktree paths", if version() >= (2, 48) { Works } else { Refused("relativeworktrees") }, |stage| {
        init(stage, &[]);
        task(stage);
        stage.git(&["config", "core.repositoryFormatVersion", "1"]);
        stage.git(&["config", "extensions.relativeWorktrees", "true"]);
    };
    e18_shallow: "shallow", Works, |stage| clone(stage, &["--depth=1"]);
    e18_line_ends: "line ends converted", Works, |stage| {
        init(stage, &[]);
        stage.git(&["config", "core.autocrlf", "true"]);
    };
    e18_ignored_case: "names without case", Works, |stage| {
        init(stage, &[]);
        stage.git(&["config", "core.ignoreCase", "true"]);
    };
    e18_linked: "linked worktree", Works, |stage| {
        let main = other(stage, "main");
        stage.git_in(&main, &["worktree", "add", "--quiet", "-b", "feature", "../linked"]);
        settle(stage, "linked");
        stage.git(&["worktree", "repair"]);
    };
    e18_inside_a_submodule: "inside a submodule", Works, |stage| {
        init(stage, &[]);
        let above = stage.path(".");
        stage.git_in(&above, &["init", "--quiet", "--initial-branch=main"]);
        stage.git_in(&above, &["submodule", "--quiet", "add", "./work", "work"]);
        stage.git_in(&above, &["submodule", "--quiet", "absorbgitdirs"]);
        assert!(stage.path("work/.git").is_file(), "its git folder lies above");
    };
    r20_detached: "detached head", Works, |stage| {
        init(stage, &[]);
        task(stage);
        stage.git(&["switch", "--quiet", "--detach"]);
    };
    r20_branch_in_the_way: "with a branch named `sillage`", Refused("`sillage` leaves no room"), |stage| {
        init(stage, &[]);
        stage.git(&["branch", "sillage"]);
        stage.git(&["pack-refs", "--all"]);
    };
    r20_no_commit: "without a commit", Refused("no commit yet: make a first one"), |stage| {
        stage.write("work/task.yaml", text());
        stage.git(&["init", "--quiet"]);
    };
    r20_bare: "bare", Refused("it is bare: clone it"), |stage| {
        stage.write("work/task.yaml", text());
        stage.git(&["init", "--quiet", "--bare"]);
    };
    r20_none: "none", Refused("in no git repository: run `git init`"), |stage| {
        stage.write("work/task.yaml", text());
    };
}

/// The one kind that nothing can be committed in.
#[test]
fn r20_broken() {
    let stage = Stage::without_repository(ALPHA);
    init(&stage, &[]);
    task(&stage);
    stage.commit("Begin");
    stage.write("work/.git/HEAD", "garbage\n");
    refused(
        &stage,
        "task.yaml",
        "git does not take its `.git` for a repository",
    );
}

/// The one kind whose task lies elsewhere: agents would write in a git folder, which no rule lets them.
#[test]
fn r20_inside_a_git_folder() {
    let stage = Stage::without_repository(ALPHA);
    init(&stage, &[]);
    stage.write("work/.git/task.yaml", text());
    let run = stage.start(&["run", ".git/task.yaml", "--json", "--yes"]).wait();
    let told = run.expect(2).outcome();
    let message = told["error"]["message"].as_str().expect("a message");
    assert!(message.contains("agents never write in `.git`"), "{message}");
    let check = stage.start(&["check", ".git/task.yaml", "--json"]).wait();
    let checked = check.expect(2).json();
    let faults = checked["faults"].to_string();
    assert!(faults.contains("agents never write in `.git`"), "{faults}");
    assert_eq!(
        (stage.record().len(), stage.logs().len()),
        (0, 0),
        "something was started"
    );
}

/// The page and the tests say the same of the same kinds.
#[test]
fn the_page_on_repositories_and_the_tests_agree() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/repositories.md");
    let page = fs::read_to_string(page).expect("the page");
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ").map(str::trim);
        Some((cells.next()?.to_owned(), cells.next()?.to_owned()))
    });
    let told: BTreeMap<String, String> = rows
        .filter(|(kind, _)| kind != "kind" && !kind.starts_with("---"))
        .collect();
    let mut tried: BTreeMap<String, String> = KINDS
        .iter()
        .map(|(kind, answer)| {
            // What this very git is too old for, a newer one does.
            let by_git = ["reftable", "relative worktree paths"].contains(kind);
            let word = match answer() {
                Works => "works",
                Refused(_) if by_git => "works",
                Refused(_) => "refused",
            };
            ((*kind).to_owned(), word.to_owned())
        })
        .collect();
    tried.insert("inside a git folder".to_owned(), "refused".to_owned());
    tried.insert("whose head is broken".to_owned(), "refused".to_owned());
    assert_eq!(told, tried);
}

/// An agent that makes its own checkout sparse removes nothing by that.
#[test]
fn e18_an_agents_own_sparse_checkout_removes_nothing() {
    let stage = Stage::without_repository(
        "prompts:\n  - match: Alpha\n    steps: [run: git sparse-checkout set src, write: { path: src/alpha.txt, content: a }, report: { summary: Done. }]\n",
    );
    init(&stage, &[]);
    stage.task("", &[AGENT], &[]);
    let outcome = stage.run().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    let branch = outcome["branch"].as_str().expect("a branch");
    let changed = stage.git(&["diff", "--name-status", "main", branch]);
    assert_eq!(changed, "A\tsrc/alpha.txt");
    assert_eq!(
        stage.worktrees(),
        Vec::<PathBuf>::new(),
        "nothing holds its worktree"
    );
}

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 6\n";

fn text() -> String {
    format!("task: T\nfolders: {{ write: [.] }}\nagents: [{{ {AGENT}, model: scripted, effort: low }}]\n")
}

fn task(stage: &Stage) {
    stage.write("work/task.yaml", text());
    stage.commit("Add the task");
}

/// A repository in `folder` with two commits.
fn begin(stage: &Stage, folder: &Path, arguments: &[&str]) {
    let init = [&["init", "--quiet", "--initial-branch=main"], arguments].concat();
    stage.git_in(folder, &init);
    stage.git_in(folder, &["config", "user.name", "A Person"]);
    stage.git_in(folder, &["config", "user.email", "person@localhost"]);
    for (file, content) in [
        ("src/a.txt", "one\n"),
        ("docs/d.txt", "d\n"),
        ("src/a.txt", "two\n"),
    ] {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, content).expect("a file");
    }
    stage.git_in(folder, &["add", "--all"]);
    stage.git_in(folder, &["commit", "--quiet", "--message", "Begin"]);
    fs::write(folder.join("README.md"), "# Hello\n").expect("a file");
    stage.git_in(folder, &["add", "--all"]);
    stage.git_in(folder, &["commit", "--quiet", "--message", "Go on"]);
}

fn init(stage: &Stage, arguments: &[&str]) {
    begin(stage, &stage.path("work"), arguments);
}

/// Another repository beside the project's folder.
fn other(stage: &Stage, name: &str) -> PathBuf {
    let folder = stage.path(name);
    fs::create_dir(&folder).expect("a folder");
    begin(stage, &folder, &[]);
    folder
}

/// Makes the project's folder a clone.
fn clone(stage: &Stage, arguments: &[&str]) {
    let origin = other(stage, "origin");
    stage.git_in(&origin, &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", origin.display());
    let clone = [&["clone", "--quiet", "--no-local"], arguments, &[&url, "clone"]].concat();
    stage.git_in(&stage.path("."), &clone);
    settle(stage, "clone");
    stage.git(&["config", "user.name", "A Person"]);
    stage.git(&["config", "user.email", "person@localhost"]);
}

/// Moves everything of a folder into the project's.
fn settle(stage: &Stage, folder: &str) {
    for entry in fs::read_dir(stage.path(folder)).expect("a folder").flatten() {
        fs::rename(entry.path(), stage.path("work").join(entry.file_name())).expect("moved");
    }
}

/// A program that does what `git-lfs` does for one file; its path.
fn lfs(stage: &Stage) -> String {
    let script = "#!/bin/sh\nstore=\"$0.store\"\nmkdir -p \"$store\"\ncase \"$1\" in\nclean)\n  file=$(mktemp \"$store/new.XXXXXX\")\n  cat > \"$file\"\n  if head -c 8 \"$file\" | grep -q '^version '; then cat \"$file\"; rm \"$file\"; exit; fi\n  id=$(sha256sum < \"$file\" | cut -d' ' -f1)\n  size=$(wc -c < \"$file\")\n  mv \"$file\" \"$store/$id\"\n  printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' \"$id\" \"$size\"\n  ;;\nsmudge)\n  if [ -n \"$GIT_LFS_SKIP_SMUDGE\" ]; then cat; else cat \"$store/$(sed -n 's/^oid sha256://p')\"; fi\n  ;;\nesac\n";
    let program = stage.write("bin/fake-lfs", script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
    stage.path("bin/fake-lfs").display().to_string()
}

/// Where the person stands, and every file of theirs.
fn persons(stage: &Stage) -> (String, String, BTreeMap<PathBuf, Vec<u8>>) {
    let mut files = BTreeMap::new();
    let mut left = vec![stage.path("work")];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.file_name() == Some(".git".as_ref()) {
                continue;
            }
            if path.is_dir() {
                left.push(path);
            } else {
                let bytes = fs::read(&path).expect("a file");
                files.insert(path, bytes);
            }
        }
    }
    let head = stage.git(&["rev-parse", "HEAD", "--abbrev-ref", "HEAD"]);
    (head, stage.git(&["status", "--porcelain"]), files)
}

/// Check finds nothing against it, the run completes, its work is on its branch, and the person's own is as it was.
#[track_caller]
fn works(stage: &Stage) {
    if !stage.path("work/task.yaml").exists() {
        task(stage);
    }
    let before = persons(stage);
    let checked = stage
        .start(&["check", "task.yaml", "--json"])
        .wait()
        .expect(0)
        .json();
    let warnings = checked["warnings"].as_array().expect("warnings");
    assert!(
        warnings.iter().all(|warning| warning["code"] == "repository"),
        "{warnings:?}"
    );
    let outcome = stage.run().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    let branch = outcome["branch"].as_str().expect("a branch");
    let show = |file: &str| stage.git(&["show", &format!("{branch}:{file}")]);
    assert_eq!(show("alpha.txt"), "a");
    assert_eq!(show("docs/d.txt"), "d");
    let cleaned = stage.git_in(
        &stage.path("."),
        &["config", "--global", "--get", "--default", "", "filter.lfs.clean"],
    );
    if cleaned.is_empty() {
        assert_eq!(show("new.bin"), "left");
    } else {
        assert!(
            show("new.bin").starts_with("version https://git-lfs"),
            "{}",
            show("new.bin")
        );
    }
    assert_eq!(
        stage.git(&["diff", "--name-only", "HEAD", branch]),
        "alpha.txt\nnew.bin"
    );
    let ours: Vec<PathBuf> = stage.worktrees();
    let ours = ours.iter().filter(|path| path.starts_with(stage.path("data")));
    assert_eq!(ours.count(), 0, "merged worktrees are removed");
    assert_eq!(persons(stage), before);
    stage.git(&["fsck", "--strict"]);
    stage.assert_no_process();
}

/// Neither an agent nor a branch nor a run comes of it, and check says the same.
#[track_caller]
fn refused(stage: &Stage, file: &str, words: &str) {
    if !stage.path("work/task.yaml").exists() && file == "task.yaml" {
        task(stage);
    }
    let ended = stage.start(&["run", file, "--json", "--yes"]).wait().expect(2);
    let told = ended.outcome();
    let message = told["error"]["message"].as_str().expect("a message");
    assert!(message.contains(words), "{message}");
    assert_eq!(told["error"]["kind"], "refused");
    let checked = stage.start(&["check", file, "--json"]).wait().expect(0).json();
    let warnings = checked["warnings"].as_array().expect("warnings");
    let same = warnings.iter().any(|warning| {
        let message = warning["message"].as_str().unwrap_or_default();
        warning["code"] == "unusable_repository"
            && message.contains(words)
            && message.contains("would be refused")
    });
    assert!(same, "{warnings:?}");
    assert_eq!(stage.record().len(), 0, "an agent was started");
    assert_eq!(stage.logs().len(), 0, "a run was kept");
}

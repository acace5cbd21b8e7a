//! Tables of the decision: every kind of tool call under every policy at every sort of place, and paths in all the ways
//! in which agents, people and file systems write them.

use std::path::Component;

use serde_json::{Value, json};

use super::*;
use crate::ports::runtime::PermissionOption;

/// Where paths lead in the tests: a file system of links, in which everything else may or may not exist.
fn real(path: &Path) -> Option<PathBuf> {
    let links = [
        ("/w/work/out", Some("/etc")),
        ("/w/work/chain", Some("/w/work/out")),
        ("/w/work/dangling", None),
        ("/w/work/loop", None),
        ("/w/work/to-git", Some("/w/work/.git")),
        ("/w/work/to-data", Some("/data")),
        ("/w/work/inside", Some("/w/work/src")),
        ("/w/work/src/.git", Some("/w/work/src/plain")),
        // A granted folder that was removed and came back as a link.
        ("/w/swapped", Some("/etc")),
    ];
    let mut real = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                real.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::Normal(_) => {
                real.push(component);
            }
        }
        while let Some((_, to)) = links.iter().find(|(from, _)| Path::new(from) == real) {
            real = PathBuf::from((*to)?);
        }
    }
    Some(real)
}

fn paths(texts: &[&str]) -> Vec<PathBuf> {
    texts.iter().map(PathBuf::from).collect()
}

fn folders(read: &[&str], write: &[&str]) -> Folders {
    Folders {
        read: paths(read),
        write: paths(write),
    }
}

fn protected() -> Protected {
    Protected {
        closed: paths(&["/data", "/home/me/.config/sillage", "/w/config.yaml"]),
        kept: paths(&["/repo"]),
    }
}

fn tool(kind: &str, named: &[&str]) -> ToolFacts {
    ToolFacts {
        kind: (!kind.is_empty()).then(|| kind.to_owned()),
        locations: paths(named),
        ..ToolFacts::default()
    }
}

fn decided(policy: PermissionPolicy, folders: &Folders, tool: &ToolFacts) -> Decision {
    let bounds = Bounds {
        policy,
        folders,
        protected: &protected(),
        workspace: Path::new("/w/work"),
    };
    decide(bounds, tool, &real)
}

fn sign(decision: &Decision) -> char {
    match decision {
        Decision::Allow => 'a',
        Decision::Refuse(_) => 'r',
        Decision::Ask => '?',
    }
}

/// A place of each sort: what grants it, or what keeps it.
const PLACES: [(&str, &[&str]); 10] = [
    ("to write", &["/w/work/src/a"]),
    ("to read", &["/w/docs/a"]),
    ("to read, in one to write", &["/w/work/sealed/a"]),
    ("outside", &["/etc/passwd"]),
    ("kept by name", &["/w/work/.git/config"]),
    ("closed", &["/w/config.yaml"]),
    ("kept", &["/repo/a"]),
    ("unclear", &["~/a"]),
    ("none", &[]),
    ("to write, and outside", &["/w/work/src/a", "/etc/passwd"]),
];

const KINDS: [&str; 11] = [
    "read",
    "search",
    "think",
    "fetch",
    "edit",
    "delete",
    "move",
    "execute",
    "other",
    "switch_mode",
    "",
];

/// For each policy and session, a row a kind and a sign a place: `a` allowed, `r` refused, `?` asked.
const TABLE: [(PermissionPolicy, bool, [&str; 11]); 6] = [
    (
        PermissionPolicy::Ask,
        true,
        [
            "?????r????", // read
            "?????r????", // search
            "??????????", // think
            "????rrr???", // fetch
            "????rrr???", // edit
            "????rrr???", // delete
            "????rrr???", // move
            "????rrr???", // execute
            "????rrr???", // other
            "????rrr???", // switch_mode
            "????rrr???", // not told
        ],
    ),
    (
        PermissionPolicy::Ask,
        false,
        [
            "???r?rrrrr",
            "???r?rrr?r",
            "??????????",
            "????rrr???",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
        ],
    ),
    (
        PermissionPolicy::AllowInFolders,
        true,
        [
            "aaararrrrr",
            "aaararrrar",
            "aaaaaaaaaa",
            "rrrrrrrrrr",
            "ararrrrrrr",
            "ararrrrrrr",
            "ararrrrrrr",
            "aaarrrrrar",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
        ],
    ),
    (
        PermissionPolicy::AllowInFolders,
        false,
        [
            "aaararrrrr",
            "aaararrrar",
            "aaaaaaaaaa",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
        ],
    ),
    (
        PermissionPolicy::Deny,
        true,
        [
            "aaararrrrr",
            "aaararrrar",
            "aaaaaaaaaa",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
        ],
    ),
    (
        PermissionPolicy::Deny,
        false,
        [
            "aaararrrrr",
            "aaararrrar",
            "aaaaaaaaaa",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
            "rrrrrrrrrr",
        ],
    ),
];

#[test]
fn r21_every_kind_under_every_policy_at_every_sort_of_place() {
    let writes = folders(&["/w/docs", "/w/work/sealed"], &["/w/work"]);
    let reads = folders(&["/w/docs", "/w/work"], &[]);
    let mut wrong = Vec::new();
    for (policy, may_write, rows) in TABLE {
        let folders = if may_write { &writes } else { &reads };
        for (kind, row) in KINDS.iter().zip(rows) {
            assert_eq!(row.len(), PLACES.len());
            for ((sort, named), expected) in PLACES.iter().zip(row.chars()) {
                let decision = decided(policy, folders, &tool(kind, named));
                if sign(&decision) != expected {
                    wrong.push(format!(
                        "{policy:?}, may write {may_write}, `{kind}`, {sort}: {decision:?}, not {expected}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Paths that an agent names, in a session that reads `/w/docs` and writes `/w/work`: what becomes of reading and of
/// writing there.
const PATHS: &[(&str, &str)] = &[
    // As they come.
    ("/w/work/a", "aa"),
    ("/w/work", "aa"),
    ("/w/work/", "aa"),
    ("/w/work/new/deep/a", "aa"),
    ("a", "aa"),
    (".", "aa"),
    ("./a", "aa"),
    ("src//a", "aa"),
    ("/w/docs/a", "ar"),
    ("/w/docs", "ar"),
    ("../docs/a", "ar"),
    ("/etc/passwd", "rr"),
    ("/", "rr"),
    ("/w", "rr"),
    // Prefixes of text are no prefixes of paths.
    ("/w/work-not/a", "rr"),
    ("/w/workshop", "rr"),
    ("/w/wor", "rr"),
    ("/w/docs2/a", "rr"),
    ("/W/work/a", "rr"),
    // Climbing.
    ("..", "rr"),
    ("../a", "rr"),
    ("../work/a", "aa"),
    ("src/../../a", "rr"),
    ("src/../a", "aa"),
    ("a/../../work/a", "aa"),
    ("/w/work/../../etc/passwd", "rr"),
    ("/w/docs/../work/a", "aa"),
    ("missing/../../../etc/passwd", "rr"),
    // A part of a name here, a way out elsewhere.
    ("..\\..\\etc\\passwd", "rr"),
    ("src\\..\\..\\a", "rr"),
    ("src\\a", "aa"),
    ("%2e%2e/a", "aa"),
    // What only a shell or another process would understand.
    ("~", "rr"),
    ("~/a", "rr"),
    ("~root/a", "rr"),
    ("$HOME/a", "rr"),
    ("${HOME}/a", "rr"),
    ("src/$id.tsx", "aa"),
    ("", "rr"),
    (" ", "rr"),
    (" /etc/passwd", "rr"),
    ("a ", "rr"),
    ("a\n", "rr"),
    ("a\0b", "rr"),
    ("/proc/self/cwd/a", "rr"),
    ("/proc/1/root/w/work/a", "rr"),
    ("/dev/fd/3", "rr"),
    ("/dev/stdin", "rr"),
    // Addresses.
    ("file:///w/work/a", "aa"),
    ("file://localhost/w/work/a", "aa"),
    ("FILE:/w/work/a", "aa"),
    ("file:///w/work/%2e%2e/%2E%2E/etc/passwd", "rr"),
    ("file:///w/work/a%20b", "aa"),
    ("file:///w/work/%2egit/config", "ar"),
    ("file:///w/work/%zz", "rr"),
    ("file:///w/work/%ff", "rr"),
    ("file:///w/work/a?x", "rr"),
    ("file://elsewhere/w/work/a", "rr"),
    ("file:a", "rr"),
    ("https://example.org/a", "rr"),
    ("notes:a", "aa"),
    // Links (F2, F7).
    ("out/passwd", "rr"),
    ("chain/passwd", "rr"),
    ("dangling", "rr"),
    ("loop/a", "rr"),
    ("inside/a", "aa"),
    ("inside/../a", "aa"),
    ("to-git/hooks/pre-commit", "ar"),
    ("src/.git/a", "ar"),
    // Names that are never written (F6), by every way to write them.
    (".git", "ar"),
    (".git/hooks/pre-commit", "ar"),
    (".GIT/hooks/pre-commit", "ar"),
    (".Git/config", "ar"),
    (".git./config", "ar"),
    (".git. ./config", "ar"),
    (".git /config", "ar"),
    (".git::$INDEX_ALLOCATION/config", "ar"),
    (".git:x", "ar"),
    ("GIT~1/config", "ar"),
    ("git~12/config", "ar"),
    (".g\u{200c}it/config", "ar"),
    (".git\\config", "ar"),
    ("src\\.GIT\\config", "ar"),
    ("vendor/deep/.git/config", "ar"),
    ("vendor/deep/.git", "ar"),
    (".git/../a", "ar"),
    (".sillage/project.yaml", "ar"),
    (".Sillage/new", "ar"),
    ("SILLAG~1/project.yaml", "ar"),
    // And names that only look like those.
    (".gitignore", "aa"),
    (".gitattributes", "aa"),
    (".github/workflows/a.yaml", "aa"),
    ("git/a", "aa"),
    (".git-a", "aa"),
    ("a.git/config", "aa"),
    ("git~/a", "aa"),
    ("git~x/a", "aa"),
    ("...git", "aa"),
    ("sillage.yaml", "aa"),
    // The program's own places.
    ("to-data/store", "rr"),
    ("/data", "rr"),
    ("/data/store/db", "rr"),
    ("/data/worktrees/k/r/other/a", "rr"),
    ("/DATA/store", "rr"),
    ("/w/config.yaml", "rr"),
    ("../config.yaml", "rr"),
    ("/home/me/.config/sillage/config.yaml", "rr"),
];

#[test]
fn f1_f2_f6_f7_paths_are_judged_by_where_they_lead_and_what_they_are_called() {
    assert!(PATHS.len() >= 60);
    let folders = folders(&["/w/docs"], &["/w/work"]);
    let mut wrong = Vec::new();
    for (path, expected) in PATHS {
        let told: String = ["read", "edit"]
            .iter()
            .map(|kind| {
                sign(&decided(
                    PermissionPolicy::AllowInFolders,
                    &folders,
                    &tool(kind, &[path]),
                ))
            })
            .collect();
        if told != *expected {
            wrong.push(format!("{path:?}: {told}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What other folders grant: folders to read, to write, a path, reading and writing there.
type Grant = (
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
    &'static str,
);

const GRANTS: &[Grant] = &[
    (&[], &[], "/w/work/a", "rr"),
    (&["/"], &[], "/etc/passwd", "ar"),
    (&["/"], &[], "/data/store/db", "rr"),
    (&["/"], &[], "/w/config.yaml", "rr"),
    (&["/"], &["/w/work"], "/etc/passwd", "ar"),
    (&[], &["/"], "/etc/passwd", "aa"),
    (&[], &["/"], "/proc/self/mem", "rr"),
    (&[], &["/"], "/data/store/db", "rr"),
    (&[], &["/"], "/data", "rr"),
    (&[], &["/"], "/a/.git/config", "ar"),
    (&[], &["/"], "/repo/a", "ar"),
    (&[], &["/"], "/Repo/a", "ar"),
    // Reading within writing, and the other way round.
    (&["/w/work/sealed"], &["/w/work"], "/w/work/sealed/a", "aa"),
    (&["/w"], &["/w/work/src"], "/w/work/a", "ar"),
    (&["/w"], &["/w/work/src"], "/w/work/src/a", "aa"),
    (&["/w"], &["/w/work/src"], "/w/work/src2/a", "ar"),
    // A folder that is granted within a protected one is granted; those beside it are not.
    (&[], &["/data/worktrees/k/r/a"], "/data/worktrees/k/r/a/f", "aa"),
    (&[], &["/data/worktrees/k/r/a"], "/data/worktrees/k/r/ab/f", "rr"),
    (&[], &["/data/worktrees/k/r/a"], "/data/worktrees/k/r/b/f", "rr"),
    (
        &[],
        &["/data/worktrees/k/r/a"],
        "/data/worktrees/k/r/a/.git",
        "ar",
    ),
    (
        &["/data/runs/r/up"],
        &["/w/work"],
        "/data/runs/r/up/report.json",
        "ar",
    ),
    (&["/data/runs/r/up"], &["/"], "/data/runs/r/up/report.json", "ar"),
    (&["/repo/.git/objects"], &["/repo"], "/repo/.git/objects/x", "ar"),
    (&["/"], &["/data/worktrees/k/r/a"], "/data/store/db", "rr"),
    // The protected place itself, granted, is not.
    (&["/data"], &["/data"], "/data/store/db", "rr"),
    (&[], &["/repo"], "/repo/a", "ar"),
    // A folder that was replaced by a link grants nothing where the link leads.
    (&[], &["/w/swapped"], "/w/swapped/passwd", "rr"),
    (&["/w/swapped"], &["/w/work"], "/w/swapped/passwd", "rr"),
];

#[test]
fn w3_f7_folders_grant_by_components_and_never_their_protected_parts() {
    let mut wrong = Vec::new();
    for (read, write, path, expected) in GRANTS {
        let folders = folders(read, write);
        let told: String = ["read", "edit"]
            .iter()
            .map(|kind| {
                sign(&decided(
                    PermissionPolicy::AllowInFolders,
                    &folders,
                    &tool(kind, &[path]),
                ))
            })
            .collect();
        if told != *expected {
            wrong.push(format!("{read:?} {write:?} {path:?}: {told}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn f6_what_holds_a_protected_place_or_is_a_whole_folder_is_neither_removed_nor_moved() {
    let writes = folders(&[], &["/", "/w/work"]);
    for kind in ["delete", "move"] {
        for path in ["/w/work", "/w", "/", "/home/me", "/data", "/repo"] {
            let decision = decided(PermissionPolicy::AllowInFolders, &writes, &tool(kind, &[path]));
            assert!(
                matches!(decision, Decision::Refuse(Reason::Protected(_))),
                "{kind} {path}: {decision:?}"
            );
        }
        let decision = decided(
            PermissionPolicy::AllowInFolders,
            &writes,
            &tool(kind, &["/w/work/src"]),
        );
        assert_eq!(decision, Decision::Allow, "{kind}");
    }
}

#[test]
fn r21_a_refusal_says_why() {
    let writes = folders(&["/w/docs"], &["/w/work"]);
    let reads = folders(&["/w/work"], &[]);
    let cases = [
        (&reads, tool("edit", &["a"]), Reason::ReadOnly),
        (
            &writes,
            tool("edit", &[".git/config"]),
            Reason::Protected("/w/work/.git/config".into()),
        ),
        (
            &writes,
            tool("edit", &["out/x", ".git/config"]),
            Reason::Protected("/w/work/.git/config".into()),
        ),
        (
            &writes,
            tool("edit", &["out/x"]),
            Reason::Outside("/etc/x".into()),
        ),
        (&writes, tool("edit", &["~/x"]), Reason::Unclear("~/x".into())),
        (&writes, tool("edit", &[]), Reason::Nothing),
        (&writes, tool("other", &["a"]), Reason::Unknown),
    ];
    for (folders, tool, reason) in cases {
        let decision = decided(PermissionPolicy::AllowInFolders, folders, &tool);
        assert_eq!(decision, Decision::Refuse(reason.clone()));
        assert!(!reason.to_string().contains('\n') && !reason.to_string().is_empty());
    }
    let denied = decided(PermissionPolicy::Deny, &writes, &tool("edit", &["a"]));
    assert_eq!(denied, Decision::Refuse(Reason::Denied));
    assert_eq!(
        Reason::Outside("/a\u{1b}[2J".into()).to_string().find('\u{1b}'),
        None,
        "a path moves no cursor"
    );
}

#[test]
fn every_path_that_is_named_counts_wherever_it_stands() {
    let writes = folders(&[], &["/w/work"]);
    let told = |kind: &str, input: Value, locations: &[&str]| {
        let mut facts = tool(kind, locations);
        facts.read_input(&input);
        sign(&decided(PermissionPolicy::AllowInFolders, &writes, &facts))
    };
    let cases = [
        ("edit", json!({"filePath": "a"}), &[][..], 'a'),
        ("edit", json!({"file_path": "/etc/x"}), &["a"], 'r'),
        (
            "edit",
            json!({"file_path": "a", "x": [{"paths": ["/etc/x"]}]}),
            &[],
            'r',
        ),
        ("edit", json!({"changes": {"/etc/x": {"add": 1}}}), &["a"], 'r'),
        ("edit", json!({"changes": {"b": {"add": 1}}}), &["a"], 'a'),
        ("edit", json!({"path": "a"}), &["/etc/x"], 'r'),
        ("edit", json!({"uri": "file:///etc/x"}), &["a"], 'r'),
        ("edit", json!({"content": "/etc/x"}), &["a"], 'a'),
        ("move", json!({"source": "a", "destination": "/etc/x"}), &[], 'r'),
        ("move", json!({"src": "a", "dst": "b"}), &[], 'a'),
        (
            "move",
            json!({"oldPath": "a", "newPath": ".git/hooks/pre-commit"}),
            &[],
            'r',
        ),
        ("execute", json!({"command": "ls"}), &[], 'a'),
        ("execute", json!({"command": "ls", "cwd": "/etc"}), &[], 'r'),
        ("execute", json!({"command": "ls", "workdir": ".git"}), &[], 'r'),
        ("execute", json!("ls /etc"), &[], 'a'),
        ("read", json!([{"dir": "/etc"}]), &["a"], 'r'),
        ("read", Value::Null, &[], 'r'),
    ];
    for (kind, input, locations, expected) in cases {
        assert_eq!(
            told(kind, input.clone(), locations),
            expected,
            "{kind} {input} {locations:?}"
        );
    }
}

#[test]
fn a_lasting_permission_is_never_given_by_policy() {
    let option = |kind: &str| PermissionOption {
        id: kind.to_owned(),
        name: kind.to_owned(),
        kind: kind.to_owned(),
    };
    let options = [
        option("allow_always"),
        option("reject_always"),
        option("allow_once"),
        option("reject_once"),
    ];
    assert_eq!(option_for(true, &options).unwrap().kind, "allow_once");
    assert_eq!(option_for(false, &options).unwrap().kind, "reject_once");
    assert_eq!(option_for(true, &options[..2]), None);
    assert_eq!(option_for(false, &options[..2]).unwrap().kind, "reject_always");
    assert_eq!(option_for(false, &[]), None);
}

#[test]
fn a_tool_call_is_known_by_all_that_was_said_of_it() {
    let mut facts = ToolFacts {
        title: "Edit".to_owned(),
        kind: Some("edit".to_owned()),
        ..ToolFacts::default()
    };
    facts.update(ToolFacts {
        locations: paths(&["b"]),
        ..ToolFacts::default()
    });
    facts.update(ToolFacts {
        locations: paths(&["a", "b"]),
        folders: paths(&["b", "c"]),
        ..ToolFacts::default()
    });
    assert_eq!(
        (facts.kind.as_deref(), facts.title.as_str()),
        (Some("edit"), "Edit")
    );
    assert_eq!(facts.locations, paths(&["a", "b"]));
    assert_eq!(facts.paths(), paths(&["a", "b", "c"]));
}

proptest::proptest! {
    /// W2, F6: whatever is granted and named, what is allowed lies in a folder that grants it, and what is written
    /// there is not called `.git`.
    #[test]
    fn what_is_allowed_is_granted(
        read in proptest::collection::vec("(/[ab]{1,2}){0,3}", 0..3),
        write in proptest::collection::vec("(/[ab]{1,2}){0,3}", 0..3),
        named in "/?([ab]{1,2}|\\.\\.|\\.git|\\.GIT|~)(/([ab]{1,2}|\\.\\.|\\.git)){0,4}",
        kind in 0..KINDS.len(),
    ) {
        let of = |texts: &[String]| texts.iter().map(|text| PathBuf::from(format!("{text}/"))).collect();
        let folders = Folders { read: of(&read), write: of(&write) };
        let decision = decided(PermissionPolicy::AllowInFolders, &folders, &tool(KINDS[kind], &[&named]));
        if decision == Decision::Allow && KINDS[kind] != "think" {
            let place = real(&Path::new("/w/work").join(&named)).unwrap();
            proptest::prop_assert!(folders.may_read(&place));
            if ["edit", "delete", "move"].contains(&KINDS[kind]) {
                proptest::prop_assert!(folders.may_write(&place));
                proptest::prop_assert!(!place.components().any(|name| reserved(name.as_os_str())));
            }
        }
    }
}

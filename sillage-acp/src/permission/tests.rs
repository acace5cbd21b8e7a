use serde_json::json;

use super::*;

struct Place {
    folder: tempfile::TempDir,
    folders: Folders,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["work", "read", "work-not"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        let folders = Folders {
            read: vec![root.join("read")],
            write: vec![root.join("work")],
        };
        Self { folder, folders }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn decide(&self, policy: PermissionPolicy, kind: &str, path: &str) -> Decision {
        let tool = ToolFacts {
            kind: Some(kind.to_owned()),
            locations: if path.is_empty() {
                Vec::new()
            } else {
                vec![path.into()]
            },
            ..ToolFacts::default()
        };
        self.decide_tool(policy, &tool)
    }

    fn decide_tool(&self, policy: PermissionPolicy, tool: &ToolFacts) -> Decision {
        let workspace = self.path("work");
        decide(
            Bounds {
                policy,
                folders: &self.folders,
                workspace: &workspace,
            },
            tool,
        )
    }
}

#[test]
fn r21_paths_are_compared_by_components_links_and_parents_followed() {
    let place = Place::new();
    std::os::unix::fs::symlink("/etc", place.path("work/out")).unwrap();
    std::os::unix::fs::symlink("/nowhere-at-all", place.path("work/dangling")).unwrap();
    let inside = place.path("work/new/deep.txt");
    let beside = place.path("work-not/a.txt");
    let readable = place.path("read/a.txt");
    let allow = PermissionPolicy::AllowInFolders;
    let cases = [
        ("edit", inside.to_str().unwrap(), Decision::Allow),
        ("edit", "a.txt", Decision::Allow),
        ("edit", "../work/a.txt", Decision::Allow),
        ("edit", "../a.txt", Decision::Refuse),
        ("edit", "missing/../../a.txt", Decision::Refuse),
        ("edit", beside.to_str().unwrap(), Decision::Refuse),
        ("edit", "out/passwd", Decision::Refuse),
        ("edit", "dangling", Decision::Refuse),
        ("edit", "~/a.txt", Decision::Refuse),
        ("edit", "", Decision::Refuse),
        ("edit", readable.to_str().unwrap(), Decision::Refuse),
        ("delete", "a.txt", Decision::Allow),
        ("read", readable.to_str().unwrap(), Decision::Allow),
        ("read", "/etc/passwd", Decision::Refuse),
        ("read", "", Decision::Refuse),
        ("search", "", Decision::Allow),
        ("execute", "", Decision::Allow),
        ("fetch", "", Decision::Refuse),
        ("other", "a.txt", Decision::Refuse),
        ("", "a.txt", Decision::Refuse),
    ];
    for (kind, path, expected) in cases {
        assert_eq!(place.decide(allow, kind, path), expected, "{kind} {path}");
    }
}

#[test]
fn r21_without_a_write_folder_edits_and_commands_are_refused_whoever_is_asked() {
    let mut place = Place::new();
    place.folders.read.append(&mut place.folders.write);
    for policy in [
        PermissionPolicy::Ask,
        PermissionPolicy::AllowInFolders,
        PermissionPolicy::Deny,
    ] {
        assert_eq!(place.decide(policy, "edit", "a.txt"), Decision::Refuse);
        assert_eq!(place.decide(policy, "execute", ""), Decision::Refuse);
    }
    assert_eq!(
        place.decide(PermissionPolicy::AllowInFolders, "read", "a.txt"),
        Decision::Allow
    );
    assert_eq!(
        place.decide(PermissionPolicy::Ask, "read", "a.txt"),
        Decision::Ask
    );
}

#[test]
fn deny_lets_only_reading_in_the_folders_through() {
    let place = Place::new();
    assert_eq!(
        place.decide(PermissionPolicy::Deny, "read", "a.txt"),
        Decision::Allow
    );
    assert_eq!(
        place.decide(PermissionPolicy::Deny, "read", "/etc/passwd"),
        Decision::Refuse
    );
    assert_eq!(
        place.decide(PermissionPolicy::Deny, "edit", "a.txt"),
        Decision::Refuse
    );
    assert_eq!(
        place.decide(PermissionPolicy::Deny, "execute", ""),
        Decision::Refuse
    );
}

#[test]
fn every_path_that_is_named_counts_wherever_it_stands() {
    let place = Place::new();
    let facts = |kind: &str, input: Value| {
        let mut facts = ToolFacts {
            kind: Some(kind.to_owned()),
            ..ToolFacts::default()
        };
        facts.read_input(&input);
        facts
    };
    let edit = |input: Value, locations: Vec<PathBuf>| {
        let tool = ToolFacts {
            locations,
            ..facts("edit", input)
        };
        place.decide_tool(PermissionPolicy::AllowInFolders, &tool)
    };
    assert_eq!(edit(json!({"filePath": "a.txt"}), Vec::new()), Decision::Allow);
    assert_eq!(
        edit(
            json!({"file_path": "a.txt", "x": [{"paths": ["/etc/x"]}]}),
            Vec::new()
        ),
        Decision::Refuse
    );
    assert_eq!(
        edit(json!({"changes": {"/etc/x": {"add": 1}}}), vec!["a.txt".into()]),
        Decision::Refuse
    );
    assert_eq!(
        edit(json!({"path": "a.txt"}), vec!["/etc/x".into()]),
        Decision::Refuse
    );
    let command = facts("execute", json!({"command": "ls", "cwd": "/etc"}));
    assert_eq!(
        place.decide_tool(PermissionPolicy::AllowInFolders, &command),
        Decision::Refuse
    );
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
        locations: vec!["b".into()],
        ..ToolFacts::default()
    });
    facts.update(ToolFacts {
        locations: vec!["a".into(), "b".into()],
        ..ToolFacts::default()
    });
    assert_eq!(
        (facts.kind.as_deref(), facts.title.as_str()),
        (Some("edit"), "Edit")
    );
    assert_eq!(facts.locations, [PathBuf::from("a"), PathBuf::from("b")]);
}

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;

use sillage_core::folders::Folders;
use sillage_core::policy::{Bounds, Decision, Protected, ToolFacts, decide};
use sillage_core::ports::runtime::PermissionPolicy;

use super::*;

struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["work", "read", "work-not", "elsewhere"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        Self {
            _folder: folder,
            root,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn allows(&self, kind: &str, named: impl Into<PathBuf>) -> bool {
        let folders = Folders {
            read: vec![self.path("read")],
            write: vec![self.path("work")],
        };
        let bounds = Bounds {
            policy: PermissionPolicy::AllowInFolders,
            folders: &folders,
            protected: &Protected::default(),
            workspace: &self.path("work"),
        };
        let tool = ToolFacts {
            kind: Some(kind.to_owned()),
            locations: vec![named.into()],
            ..ToolFacts::default()
        };
        decide(bounds, &tool, &real) == Decision::Allow
    }
}

#[test]
fn f2_links_are_followed_as_far_as_they_exist() {
    let place = Place::new();
    let links = [
        ("work/out", "/etc"),
        ("work/file", "/etc/passwd"),
        ("work/chain", "out"),
        ("work/up", ".."),
        ("work/dangling", "/nowhere-at-all"),
        ("work/loop", "loop"),
        ("work/magic", "/proc/self/root"),
        ("work/inside", "src"),
        ("read/back", "../work"),
    ];
    fs::create_dir(place.path("work/src")).unwrap();
    for (link, to) in links {
        symlink(to, place.path(link)).unwrap();
    }
    let cases = [
        ("a.txt", true),
        ("new/deep/a.txt", true),
        ("inside/a.txt", true),
        ("inside/../a.txt", true),
        ("up/work/a.txt", true),
        ("out/passwd", false),
        ("file", false),
        ("chain/passwd", false),
        ("up/a.txt", false),
        ("up/work-not/a.txt", false),
        ("dangling", false),
        ("dangling/a.txt", false),
        ("loop", false),
        ("loop/a.txt", false),
        ("magic/etc/passwd", false),
        ("missing/../../a.txt", false),
        ("a.txt/../a.txt", false),
    ];
    fs::write(place.path("work/a.txt"), "").unwrap();
    for (path, allowed) in cases {
        assert_eq!(place.allows("edit", path), allowed, "{path}");
    }
    assert!(
        place.allows("edit", place.path("read/back/a.txt")),
        "by where it leads"
    );
    assert!(place.allows(
        "edit",
        format!("{}/{}", place.path("work").display(), "x".repeat(255))
    ));
    assert!(
        !place.allows("edit", "x".repeat(256)),
        "no file can be called that"
    );
}

#[test]
fn f7_a_folder_that_came_back_as_a_link_grants_nothing() {
    let place = Place::new();
    fs::write(place.path("elsewhere/secret"), "").unwrap();
    assert!(place.allows("edit", place.path("work/secret")));
    for (folder, kind) in [("work", "edit"), ("read", "read")] {
        fs::remove_dir_all(place.path(folder)).unwrap();
        symlink(place.path("elsewhere"), place.path(folder)).unwrap();
        for named in [
            place.path(folder).join("secret"),
            place.path(folder).join("new"),
            place.path("elsewhere/secret"),
        ] {
            assert!(!place.allows(kind, &named), "{}", named.display());
        }
    }
}

#[test]
fn f6_git_is_kept_whether_it_exists_or_not_and_by_whatever_link() {
    let place = Place::new();
    assert!(
        !place.allows("edit", ".git/hooks/pre-commit"),
        "it does not exist yet"
    );
    fs::create_dir(place.path("work/.git")).unwrap();
    symlink(".git", place.path("work/nice-name")).unwrap();
    symlink("src", place.path("work/sub")).unwrap();
    assert!(!place.allows("edit", ".git/hooks/pre-commit"));
    assert!(!place.allows("edit", "nice-name/hooks/pre-commit"));
    assert!(place.allows("read", "nice-name/config"));
}

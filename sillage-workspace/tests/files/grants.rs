//! F7: a grant is of one folder, held from that moment on.

use std::fs;
use std::path::Path;

use sillage_workspace::confined::{FileError, Folder, Version};

use crate::{Ground, LIMIT};

/// `/a/b` is not `/a/bc`, and what lies beside is named by no path.
#[test]
fn f7_a_longer_name_is_another_folder() {
    let ground = Ground::new();
    for folder in ground.ways() {
        let beside = ground.outside("granted-too/full");
        assert!(matches!(
            folder.read(&beside, LIMIT),
            Err(FileError::Outside { .. })
        ));
        assert!(matches!(
            folder.read("../granted-too/full".as_ref(), LIMIT),
            Err(FileError::Outside { .. })
        ));
        assert!(folder.read("-too/full".as_ref(), LIMIT).is_err());
    }
}

/// Even `/` can be granted, and then everything is below it.
#[test]
fn f7_the_root_can_be_granted() {
    for root in [
        Folder::open("/".as_ref()).unwrap(),
        Folder::open("/".as_ref()).unwrap().walking(),
    ] {
        assert!(root.length("etc/passwd".as_ref()).unwrap() > 0);
        assert!(matches!(
            root.read("..".as_ref(), LIMIT),
            Err(FileError::Outside { .. })
        ));
        assert!(matches!(
            root.read("/etc/passwd".as_ref(), LIMIT),
            Err(FileError::Outside { .. })
        ));
    }
}

/// A folder within another is a grant of its own, which does not reach the other.
#[test]
fn f7_a_folder_within_reaches_only_itself() {
    let ground = Ground::new();
    for folder in ground.ways() {
        let inner = folder.folder("sub".as_ref()).unwrap();
        assert_eq!(inner.read("deep/leaf".as_ref(), LIMIT).unwrap().bytes, b"leaf\n");
        assert!(matches!(
            inner.read("../full".as_ref(), LIMIT),
            Err(FileError::Outside { .. })
        ));
        assert_eq!(inner.path(), ground.at("sub"));
        assert!(matches!(
            folder.folder("full".as_ref()),
            Err(FileError::Kind { .. })
        ));
        assert!(matches!(
            folder.folder("../granted-too".as_ref()),
            Err(FileError::Outside { .. })
        ));
    }
}

/// The folder is removed and a link put in its place: the grant is not moved with its name.
#[test]
fn f7_a_link_in_the_place_of_the_folder_is_not_the_folder() {
    for way in 0..2 {
        let ground = Ground::new();
        let folder = &ground.ways()[way];
        fs::rename(ground.folder(), ground.outside("moved")).unwrap();
        std::os::unix::fs::symlink(ground.outside("granted-too"), ground.folder()).unwrap();
        assert_eq!(folder.read("full".as_ref(), LIMIT).unwrap().bytes, b"inside\n");
        folder
            .save("full".as_ref(), b"saved\n", Version::of(b"inside\n"))
            .unwrap();
        assert_eq!(
            fs::read_to_string(ground.outside("moved/full")).unwrap(),
            "saved\n"
        );
        fs::remove_dir_all(ground.outside("moved")).unwrap();
        assert!(matches!(
            folder.read("full".as_ref(), LIMIT),
            Err(FileError::Missing(_))
        ));
        assert!(folder.create("new".as_ref(), b"").is_err());
        assert!(!ground.outside("granted-too/new").exists());
        fs::remove_file(ground.folder()).unwrap();
    }
}

#[test]
fn f7_what_is_no_folder_cannot_be_granted() {
    let ground = Ground::new();
    assert!(matches!(
        Folder::open(&ground.at("full")),
        Err(FileError::Kind { .. })
    ));
    assert!(matches!(
        Folder::open(&ground.at("nothing")),
        Err(FileError::Missing(_))
    ));
    assert!(matches!(Folder::open(Path::new("")), Err(FileError::Missing(_))));
}

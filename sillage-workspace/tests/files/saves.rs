//! F8, F10 and F12: two saves at once, what a save keeps, and names that others prepared.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;

use sillage_workspace::confined::{FileError, Folder, NoVersion, Version};

use crate::{Ground, LIMIT, leftovers};

/// The other one is told what is there now.
#[test]
fn f8_of_two_saves_at_once_exactly_one_wins() {
    let ground = Ground::new();
    let mut old = Version::of(b"inside\n");
    for round in 0..50 {
        let barrier = Barrier::new(4);
        let saves: Vec<_> = std::thread::scope(|scope| {
            let one = |number: usize| {
                let (barrier, ground) = (&barrier, &ground);
                scope.spawn(move || {
                    let folder = &ground.ways()[number % 2];
                    let text = format!("{round} by {number}\n");
                    barrier.wait();
                    (text.clone(), folder.save("full".as_ref(), text.as_bytes(), old))
                })
            };
            let all: Vec<_> = (0..4).map(one).collect();
            all.into_iter().map(|save| save.join().unwrap()).collect()
        });
        let won: Vec<_> = saves.iter().filter(|(_, saved)| saved.is_ok()).collect();
        assert_eq!(won.len(), 1, "{saves:?}");
        let (text, version) = won[0];
        assert_eq!(&fs::read_to_string(ground.at("full")).unwrap(), text);
        old = *version.as_ref().unwrap();
        for (_, saved) in &saves {
            let told = match saved {
                Ok(version) => *version,
                Err(FileError::Conflict { current, .. }) => current.unwrap(),
                Err(other) => panic!("{other}"),
            };
            assert_eq!(told, old);
        }
    }
    ground.untouched();
}

/// The same from processes: this test starts itself.
#[test]
fn f8_of_two_processes_exactly_one_wins() {
    const FOLDER: &str = "SILLAGE_TEST_SAVE_IN";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = Folder::open(Path::new(&folder)).unwrap();
        let text = format!("by {}\n", std::process::id());
        let saved = folder.save("full".as_ref(), text.as_bytes(), Version::of(b"inside\n"));
        assert!(
            matches!(saved, Ok(_) | Err(FileError::Conflict { .. })),
            "{saved:?}"
        );
        println!("{}", if saved.is_ok() { "won" } else { "lost" });
        return;
    }
    let ground = Ground::new();
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "saves::f8_of_two_processes_exactly_one_wins",
                "--nocapture",
            ])
            .env(FOLDER, ground.folder())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let all: Vec<_> = (0..6).map(|_| start()).collect();
    let told: Vec<String> = all
        .into_iter()
        .map(|child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap())
        .collect();
    let count = |word: &str| told.iter().filter(|text| text.contains(word)).count();
    assert_eq!((count("won"), count("lost")), (1, 5), "{told:?}");
    ground.untouched();
}

#[test]
fn f8_a_stale_version_is_told_the_current_one() {
    for way in 0..2 {
        let ground = Ground::new();
        let folder = &ground.ways()[way];
        let path = Path::new("full");
        let read = folder.read(path, LIMIT).unwrap();
        assert_eq!(read.version, Version::of(b"inside\n"));
        fs::write(ground.at("full"), "by someone else\n").unwrap();
        let current = |error: FileError| match error {
            FileError::Conflict { current, .. } => current,
            other => panic!("{other}"),
        };
        let theirs = Some(Version::of(b"by someone else\n"));
        assert_eq!(
            current(folder.save(path, b"mine\n", read.version).unwrap_err()),
            theirs
        );
        assert_eq!(current(folder.remove(path, read.version).unwrap_err()), theirs);
        assert_eq!(
            fs::read_to_string(ground.at("full")).unwrap(),
            "by someone else\n"
        );
        fs::remove_file(ground.at("full")).unwrap();
        assert_eq!(
            current(folder.save(path, b"mine\n", read.version).unwrap_err()),
            None
        );
        assert_eq!(current(folder.remove(path, read.version).unwrap_err()), None);
        assert!(!ground.at("full").exists());
        ground.untouched();
    }
}

#[test]
fn a_version_is_read_as_it_is_printed() {
    let version = Version::of(b"");
    let text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!((version.to_string().as_str(), text.parse()), (text, Ok(version)));
    for text in [
        "",
        "e3",
        &"zz".repeat(32),
        &"é".repeat(32),
        &"+1".repeat(32),
        &"00".repeat(33),
    ] {
        assert!(text.parse::<Version>().is_err(), "{text}");
    }
    let none: Result<Version, NoVersion> = "e3".parse();
    assert_eq!(
        none.unwrap_err().to_string(),
        "`e3` is not a version of a file: 64 hexadecimal digits"
    );
}

#[test]
fn f10_a_save_keeps_mode_and_owner() {
    for (mode, kept) in [
        (0o644, 0o644),
        (0o600, 0o600),
        (0o755, 0o755),
        (0o666, 0o666),
        (0o400, 0o400),
        (0o4755, 0o755),
    ] {
        let ground = Ground::new();
        fs::set_permissions(ground.at("full"), fs::Permissions::from_mode(mode)).unwrap();
        // Only the system's own user can give a file away, and so has to give it back.
        let given = std::os::unix::fs::chown(ground.at("full"), Some(1234), Some(1234)).is_ok();
        fs::set_permissions(ground.at("full"), fs::Permissions::from_mode(mode)).unwrap();
        let [folder, _] = ground.ways();
        folder
            .save("full".as_ref(), b"new\n", Version::of(b"inside\n"))
            .unwrap();
        let found = fs::metadata(ground.at("full")).unwrap();
        assert_eq!(found.mode() & 0o7777, kept, "{mode:o}");
        assert!(!given || (found.uid(), found.gid()) == (1234, 1234));
    }
}

#[test]
fn f10_a_save_writes_what_a_link_leads_to() {
    for way in 0..2 {
        let ground = Ground::new();
        ground.link("sub/second", "first");
        ground.link("deep/../deep/leaf", "sub/second");
        let folder = &ground.ways()[way];
        let version = folder.read("first".as_ref(), LIMIT).unwrap().version;
        let version = folder.save("first".as_ref(), b"saved\n", version).unwrap();
        assert_eq!(fs::read_to_string(ground.at("sub/deep/leaf")).unwrap(), "saved\n");
        for link in ["first", "sub/second"] {
            assert!(ground.at(link).is_symlink(), "{link}");
        }
        // Of a link it is the link that goes.
        folder.remove("first".as_ref(), version).unwrap();
        assert!(!ground.at("first").is_symlink() && ground.at("sub/deep/leaf").is_file());
        ground.untouched();
    }
}

/// A link that leads nowhere is no free name: a new file would come to be where it leads.
#[test]
fn f10_a_new_file_is_not_made_through_a_link() {
    let ground = Ground::new();
    ground.link("../made", "out");
    ground.link("made", "in");
    for folder in ground.ways() {
        for name in ["out", "in", "full", "sub"] {
            let made = folder.create(name.as_ref(), b"new\n");
            assert!(matches!(made, Err(FileError::Exists(_))), "{name}: {made:?}");
        }
        assert!(!ground.at("made").exists());
        let version = folder.create("sub/new".as_ref(), b"new\n").unwrap();
        assert_eq!(fs::read_to_string(ground.at("sub/new")).unwrap(), "new\n");
        assert_eq!(fs::metadata(ground.at("sub/new")).unwrap().mode() & 0o7111, 0);
        folder.remove("sub/new".as_ref(), version).unwrap();
        assert!(matches!(
            folder.create("nothing/new".as_ref(), b""),
            Err(FileError::Missing(_))
        ));
        folder.create_folder("sub/made".as_ref()).unwrap();
        assert!(matches!(
            folder.create_folder("sub/made".as_ref()),
            Err(FileError::Exists(_))
        ));
        assert!(matches!(
            folder.create_folder("../made".as_ref()),
            Err(FileError::Outside { .. })
        ));
        fs::remove_dir(ground.at("sub/made")).unwrap();
    }
    ground.untouched();
}

/// Names like ours that lead elsewhere are neither written through nor followed when they are swept.
#[test]
fn f12_a_prepared_name_is_not_written_through() {
    let ground = Ground::new();
    for number in 0..64 {
        ground.link("../secret", &format!(".sillage-save-{number:016x}.tmp"));
    }
    fs::create_dir(ground.at(".sillage-save-folder.tmp")).unwrap();
    fs::write(ground.at(".sillage-save-cut.tmp"), "half").unwrap();
    let [folder, _] = ground.ways();
    folder
        .save("full".as_ref(), b"new\n", Version::of(b"inside\n"))
        .unwrap();
    assert_eq!(
        fs::read_to_string(ground.outside("secret")).unwrap(),
        crate::SECRET
    );
    // What a save of ours could have left is gone; what it cannot have made stays.
    assert!(!ground.at(".sillage-save-cut.tmp").exists());
    assert!(ground.at(".sillage-save-folder.tmp").is_dir());
    assert_eq!(leftovers(&ground.folder()).len(), 64);
}

/// While a file is being written nobody else can read it, however open the old one is.
#[test]
fn f12_a_sweep_removes_what_a_cut_save_left() {
    let ground = Ground::new();
    for file in ["sub/.sillage-save-1.tmp", ".sillage-save-2.tmp"] {
        fs::write(ground.at(file), "half").unwrap();
    }
    for folder in ground.ways() {
        folder.sweep("sub".as_ref()).unwrap();
        folder.sweep(".".as_ref()).unwrap();
        assert!(matches!(
            folder.sweep("..".as_ref()),
            Err(FileError::Outside { .. })
        ));
    }
    ground.untouched();
}

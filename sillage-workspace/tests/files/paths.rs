//! F1 and F2: a table of paths, and a search for others.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use proptest::prelude::*;
use sillage_workspace::confined::{FileError, Folder, Version};

use crate::{Ground, LIMIT, SECRET};

/// What a path must come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comes {
    /// The file of the granted folder that holds this.
    Read(&'static str),
    /// Nothing has this name, which is a name like any other.
    Missing,
    /// It would lead out of the folder.
    Outside,
    /// It cannot name a file in a folder.
    Name,
    /// What it names is no file.
    Kind,
    /// The system refuses: a chain of links without end.
    Loop,
}
use Comes::{Kind, Loop, Missing, Name, Outside, Read};

const FULL: Comes = Read("inside\n");
const LEAF: Comes = Read("leaf\n");

/// Paths that are texts.
const TEXTS: &[(&str, Comes)] = &[
    // Plain ones, and ways to write them.
    ("full", FULL),
    ("./full", FULL),
    (".//full", FULL),
    ("././full", FULL),
    ("sub/deep/leaf", LEAF),
    ("sub//deep///leaf", LEAF),
    ("sub/./deep/./leaf", LEAF),
    ("./sub/deep/leaf", LEAF),
    // Up and down again, within.
    ("sub/../full", FULL),
    ("sub/deep/../../full", FULL),
    ("sub/deep/../deep/leaf", LEAF),
    ("sub/../sub/deep/leaf", LEAF),
    ("./sub/.././full", FULL),
    // Out.
    ("..", Outside),
    ("../", Outside),
    ("../.", Outside),
    ("../..", Outside),
    ("../secret", Outside),
    ("./../secret", Outside),
    (".//../secret", Outside),
    ("../granted/full", Outside),
    ("../granted-too/full", Outside),
    ("../../etc/passwd", Outside),
    ("../../../../../../../../../../etc/passwd", Outside),
    ("sub/../..", Outside),
    ("sub/../../secret", Outside),
    ("sub/../../granted/full", Outside),
    ("sub/deep/../../../secret", Outside),
    ("sub/deep/../../../granted/full", Outside),
    ("sub/../sub/../../secret", Outside),
    ("sub/deep/.././../../secret", Outside),
    ("sub//..//..//secret", Outside),
    // What is not there cannot be gone up from, whatever the text says.
    ("nothing/../full", Missing),
    ("a/../../b", Missing),
    ("a/b/../../../secret", Missing),
    ("full/../full", Missing),
    ("full/..", Missing),
    ("full/../../secret", Missing),
    // Absolute ones.
    ("/", Outside),
    ("//", Outside),
    ("/.", Outside),
    ("/..", Outside),
    ("/etc/passwd", Outside),
    ("//etc/passwd", Outside),
    ("/./etc/passwd", Outside),
    ("/../etc/passwd", Outside),
    ("/proc/self/root/etc/passwd", Outside),
    ("/proc/self/environ", Outside),
    ("/dev/zero", Outside),
    ("/dev/stdin", Outside),
    ("/full", Outside),
    ("/secret", Outside),
    // No file's name.
    ("", Name),
    ("\0", Name),
    ("full\0", Name),
    ("full\0.txt", Name),
    ("\0full", Name),
    ("sub/\0/leaf", Name),
    ("sub/deep/leaf\0/../../../secret", Name),
    (".", Kind),
    ("./", Kind),
    ("./.", Kind),
    ("sub", Kind),
    ("sub/", Kind),
    ("sub/.", Kind),
    ("sub/deep", Kind),
    ("sub/deep/..", Kind),
    ("sub/..", Kind),
    ("full/", Missing),
    ("full/.", Missing),
    ("full//", Missing),
    ("full/leaf", Missing),
    ("sub/deep/leaf/", Missing),
    ("sub/deep/leaf/x", Missing),
    // Names that something else would decode or expand: here they are names.
    ("%2e%2e/secret", Missing),
    ("%2e%2e%2fsecret", Missing),
    ("..%2fsecret", Missing),
    ("..%5csecret", Missing),
    ("%2e%2e\\secret", Missing),
    ("..%00/secret", Missing),
    ("..%c0%afsecret", Missing),
    ("..%u2215secret", Missing),
    ("..%252fsecret", Missing),
    ("%2fetc%2fpasswd", Missing),
    ("full%00", Missing),
    ("full%20", Missing),
    ("%66ull", Missing),
    ("..\\secret", Missing),
    ("..\\..\\secret", Missing),
    ("sub\\deep\\leaf", Missing),
    ("\\etc\\passwd", Missing),
    ("\\\\server\\share", Missing),
    ("\\\\?\\C:\\secret", Missing),
    ("C:\\secret", Missing),
    ("C:/secret", Missing),
    ("C:secret", Missing),
    ("c:", Missing),
    ("full:stream", Missing),
    ("full::$DATA", Missing),
    ("~", Missing),
    ("~/secret", Missing),
    ("~root/secret", Missing),
    ("~+/full", Missing),
    ("$HOME/secret", Missing),
    ("${HOME}", Missing),
    ("$(echo full)", Missing),
    ("`echo full`", Missing),
    ("file://etc/passwd", Missing),
    ("file:///etc/passwd", Missing),
    ("file:full", Missing),
    ("http://127.0.0.1/full", Missing),
    ("data:,full", Missing),
    ("*", Missing),
    ("f*", Missing),
    ("f?ll", Missing),
    ("[f]ull", Missing),
    ("{full,secret}", Missing),
    ("full;", Missing),
    ("full|cat", Missing),
    ("full&", Missing),
    ("full>x", Missing),
    ("'full'", Missing),
    ("\"full\"", Missing),
    ("-", Missing),
    ("--", Missing),
    ("-rf", Missing),
    ("--help", Missing),
    ("@", Missing),
    ("#full", Missing),
    ("!full", Missing),
    ("=full", Missing),
    (":", Missing),
    (":full", Missing),
    ("full\n", Missing),
    ("full\r", Missing),
    ("full\t", Missing),
    ("\nfull", Missing),
    ("full ", Missing),
    (" full", Missing),
    (" ", Missing),
    ("full\u{1b}[2J", Missing),
    ("full\u{7f}", Missing),
    ("full.", Missing),
    ("full..", Missing),
    ("full. . .", Missing),
    // More dots than two are a name.
    ("...", Missing),
    (".../secret", Missing),
    ("....", Missing),
    ("..../secret", Missing),
    ("....//secret", Missing),
    ("..../..../secret", Missing),
    (".. /secret", Missing),
    (" ../secret", Missing),
    ("..\t/secret", Missing),
    (". ./secret", Missing),
    ("..;/secret", Missing),
    ("..\u{200b}/secret", Missing),
    (".\u{200d}./secret", Missing),
    ("\u{2024}\u{2024}/secret", Missing),
    ("\u{ff0e}\u{ff0e}/secret", Missing),
    ("\u{2025}/secret", Missing),
    ("..\u{2215}secret", Missing),
    ("..\u{2044}secret", Missing),
    ("..\u{ff0f}secret", Missing),
    ("\u{202e}llaf", Missing),
    ("full\u{202e}", Missing),
    ("\u{feff}full", Missing),
    // Case and composition are part of a name.
    ("FULL", Missing),
    ("Full", Missing),
    ("SUB/deep/leaf", Missing),
    ("sub/DEEP/leaf", Missing),
    ("\u{fb01}le", Missing),
    ("caf\u{e9}", Read("composed\n")),
    ("cafe\u{301}", Read("decomposed\n")),
    ("CON", Missing),
    ("NUL", Missing),
    ("aux.txt", Missing),
    ("com1", Missing),
    (".git", Missing),
    (".GIT/config", Missing),
    (".git\u{200c}/config", Missing),
    ("git~1/config", Missing),
    // Prefixes of texts are not prefixes of paths.
    ("ful", Missing),
    ("fullx", Missing),
    ("su", Missing),
    ("subx/deep/leaf", Missing),
    ("sub/deepx/leaf", Missing),
    ("granted/full", Missing),
    ("secret", Missing),
    // F2: links.
    ("in-file", FULL),
    ("in-folder/leaf", LEAF),
    ("in-folder/../../full", FULL),
    ("sub/up/full", FULL),
    ("in-chain-1", FULL),
    ("in-dot", Kind),
    ("in-dot/full", FULL),
    ("in-dot/in-dot/in-dot/full", FULL),
    ("out-file", Outside),
    ("out-absolute", Outside),
    ("out-absolute-within", Outside),
    ("out-folder", Outside),
    ("out-folder/", Outside),
    ("out-folder/secret", Outside),
    ("out-folder/granted/full", Outside),
    ("out-root/etc/passwd", Outside),
    ("out-too/full", Outside),
    ("out-chain-1", Outside),
    ("out-chain-3", Outside),
    ("sub/out", Outside),
    ("sub/out/secret", Outside),
    ("in-folder/../../../secret", Outside),
    ("magic-root/etc/passwd", Outside),
    ("magic-cwd/Cargo.toml", Outside),
    ("magic-fd", Outside),
    ("loop", Loop),
    ("loop/full", Loop),
    ("loop-a", Loop),
    ("loop-b/x", Loop),
    ("loop-in/loop-in/loop-in/full", Loop),
    ("dangling", Missing),
    ("dangling-out", Outside),
    ("to-device", Outside),
];

/// Paths that no text in this file can hold.
fn others() -> Vec<(PathBuf, Comes)> {
    let bytes = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
    let text = |text: String| PathBuf::from(text);
    vec![
        (bytes(b"\xff"), Read("not UTF-8\n")),
        (bytes(b"\xff\xfe"), Missing),
        (bytes(b"..\xc0\xafsecret"), Missing),
        (bytes(b"\xc0\xae\xc0\xae/secret"), Missing),
        (bytes(b"full\xff"), Missing),
        (bytes(b"sub/\xff/../../../secret"), Missing),
        (bytes(b"\x80"), Missing),
        (text("a".repeat(255)), Missing),
        (text("a".repeat(256)), Name),
        (text(format!("sub/{}", "a".repeat(256))), Name),
        (text(format!("{}/full", "a".repeat(300))), Name),
        (text("a/".repeat(2000)), Missing),
        (text("./".repeat(2000) + "full"), FULL),
        (text("./".repeat(2046) + "full"), Name),
        (text("sub/../".repeat(500) + "full"), FULL),
        (text("sub/../".repeat(500) + "../secret"), Outside),
        (text("../".repeat(1300) + "secret"), Outside),
        (text("a".repeat(4096)), Name),
        (text("a".repeat(4097)), Name),
        (text("a/".repeat(5000)), Name),
        (text("/".repeat(100) + "etc/passwd"), Outside),
        (text("é".repeat(127)), Missing),
        (text("é".repeat(128)), Name),
    ]
}

fn ground() -> Ground {
    let ground = Ground::new();
    fs::write(ground.at("caf\u{e9}"), "composed\n").unwrap();
    fs::write(ground.at("cafe\u{301}"), "decomposed\n").unwrap();
    fs::write(ground.at(OsString::from_vec(vec![0xff])), "not UTF-8\n").unwrap();
    for (target, name) in [
        ("full", "in-file"),
        ("sub/deep", "in-folder"),
        ("../sub/..", "sub/up"),
        ("in-chain-2", "in-chain-1"),
        ("sub/../in-chain-3", "in-chain-2"),
        ("./full", "in-chain-3"),
        (".", "in-dot"),
        ("../secret", "out-file"),
        ("..", "out-folder"),
        ("/", "out-root"),
        ("../granted-too", "out-too"),
        ("out-chain-2", "out-chain-1"),
        ("sub/../../secret", "out-chain-2"),
        ("in-dot/in-dot/../secret", "out-chain-3"),
        ("../..", "sub/out"),
        ("/proc/self/root", "magic-root"),
        ("/proc/self/cwd", "magic-cwd"),
        ("/proc/self/fd/0", "magic-fd"),
        ("loop", "loop"),
        ("loop-b", "loop-a"),
        ("loop-a", "loop-b"),
        ("loop-in/loop-in", "loop-in"),
        ("nowhere", "dangling"),
        ("../nowhere", "dangling-out"),
        ("/dev/zero", "to-device"),
    ] {
        ground.link(target, name);
    }
    ground.link(ground.outside("secret"), "out-absolute");
    ground.link(ground.at("full"), "out-absolute-within");
    ground
}

fn came(folder: &Folder, path: &PathBuf) -> Result<Vec<u8>, Comes> {
    match folder.read(path, LIMIT) {
        Ok(content) => Ok(content.bytes),
        Err(FileError::Missing(_)) => Err(Missing),
        Err(FileError::Outside { .. }) => Err(Outside),
        Err(FileError::Name { .. }) => Err(Name),
        Err(FileError::Kind { .. }) => Err(Kind),
        Err(FileError::Io { source, .. }) if source.raw_os_error() == Some(40) => Err(Loop),
        Err(other) => panic!("{path:?}: {other}"),
    }
}

fn table() -> Vec<(PathBuf, Comes)> {
    let texts = TEXTS.iter().map(|(text, comes)| (PathBuf::from(text), *comes));
    texts.chain(others()).collect()
}

#[test]
fn f1_f2_each_path_reads_what_it_names_or_nothing() {
    let table = table();
    assert!(table.len() >= 200, "{} rows", table.len());
    let ground = ground();
    for (way, folder) in ground.ways().into_iter().enumerate() {
        for (path, comes) in &table {
            let (bytes, answer) = match came(&folder, path) {
                Ok(bytes) => (Some(bytes), *comes),
                Err(answer) => (None, answer),
            };
            let wanted = match comes {
                Read(text) => Some(text.as_bytes().to_vec()),
                Missing | Outside | Name | Kind | Loop => None,
            };
            assert_eq!((bytes, answer), (wanted, *comes), "way {way}: {path:?}");
            let length = folder.length(path).ok();
            let there = matches!(comes, Read(_));
            assert_eq!(length.is_some(), there, "way {way}: the length of {path:?}");
        }
    }
    ground.untouched();
}

/// Writing: nothing outside changes, and what was inside only when it was named.
#[test]
fn f1_f2_no_path_writes_or_removes_outside() {
    for way in 0..2 {
        for (path, comes) in table() {
            let ground = ground();
            let folder = &ground.ways()[way];
            let stale = Version::of(b"never there");
            assert!(folder.save(&path, b"new\n", stale).is_err(), "{path:?}");
            assert!(folder.remove(&path, stale).is_err(), "{path:?}");
            let (old, wanted) = match comes {
                Read(text) => (Version::of(text.as_bytes()), true),
                Missing | Outside | Name | Kind | Loop => (Version::of(SECRET.as_bytes()), false),
            };
            let saved = folder.save(&path, b"new\n", old);
            assert_eq!(saved.is_ok(), wanted, "way {way}: {path:?}: {saved:?}");
            if wanted {
                assert_eq!(came(folder, &path), Ok(b"new\n".to_vec()), "{path:?}");
            }
            // A name that nothing has becomes a file in this folder, never elsewhere.
            if let Ok(version) = folder.create(&path, b"made\n") {
                assert_eq!(comes, Missing, "{path:?}");
                assert_eq!(came(folder, &path), Ok(b"made\n".to_vec()), "{path:?}");
                folder.remove(&path, version).unwrap();
            }
            ground.untouched();
        }
    }
}

/// Messages can be read by a person and name the path.
#[test]
fn f1_a_refusal_names_the_path_and_what_to_do() {
    let ground = ground();
    let [folder, _] = ground.ways();
    let told = |path: &str| folder.read(path.as_ref(), LIMIT).unwrap_err().to_string();
    assert_eq!(
        told("../secret"),
        format!(
            "../secret leads out of {}: name something within",
            ground.folder().display()
        )
    );
    assert_eq!(
        told("a\0").replace('\0', "0"),
        "`a0` cannot name a file in a folder: it holds a NUL: leave it out"
    );
    assert_eq!(told("sub"), "sub is a folder, not a file");
    assert_eq!(told("nothing"), "nothing is not there");
    let long = folder.read("full".as_ref(), 3).unwrap_err().to_string();
    assert_eq!(long, "full holds more than 3 bytes");
}

/// Where a path leads by the plainest way to tell: each name looked up by itself.
fn part() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "..",
        ".",
        "",
        "sub",
        "deep",
        "leaf",
        "full",
        "in-folder",
        "in-dot",
        "out-folder",
        "out-root",
        "sub/up",
        "sub/out",
        "loop-in",
        "out-file",
        "in-file",
        "granted",
        "secret",
        "etc",
        "passwd",
        "\0",
        "~",
        "%2e%2e",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Both ways agree on every path, and what they read lies within.
    #[test]
    fn f1_f2_no_path_leads_out(parts in prop::collection::vec(part(), 1..9), slash in any::<bool>()) {
        thread_local!(static GROUND: Ground = ground());
        GROUND.with(|ground| {
            let path = PathBuf::from(parts.join("/") + if slash { "/" } else { "" });
            let [kernel, walk] = ground.ways();
            let one = came(&kernel, &path);
            prop_assert_eq!(&one, &came(&walk, &path), "{:?}", path);
            if let Ok(bytes) = one {
                prop_assert!(bytes != SECRET.as_bytes(), "{:?}", path);
                let found = ground.at(&path).canonicalize().unwrap();
                prop_assert!(found.starts_with(ground.folder().canonicalize().unwrap()), "{:?}", path);
            }
            Ok(())
        })?;
    }

    /// Any bytes: read or refused, never a panic, never what is outside.
    #[test]
    fn f1_any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        thread_local!(static GROUND: Ground = ground());
        GROUND.with(|ground| {
            let path = PathBuf::from(std::ffi::OsStr::from_bytes(&bytes));
            for folder in ground.ways() {
                let read = folder.read(&path, LIMIT);
                prop_assert!(read.is_err() || !path.is_absolute());
            }
            Ok(())
        })?;
    }
}

//! E7 and E8: what is made of names, and what git makes of them.

use proptest::prelude::*;

use super::*;

/// A name, whether it can be a branch here, whether git's own rules let it be one, and its folder as a step's name.
type Row = (&'static str, bool, bool, Option<&'static str>);

const YES: bool = true;
const NO: bool = false;

const NAMES: &[Row] = &[
    // Ours.
    ("a", YES, YES, Some("a")),
    ("a1", YES, YES, Some("a1")),
    ("a_b-c", YES, YES, Some("a_b-c")),
    ("a.b", YES, YES, Some("a.b")),
    ("main", YES, YES, Some("main")),
    ("sillage/r1", YES, YES, Some("sillage+r1")),
    ("sillage/steps/r-1/a", YES, YES, Some("sillage+steps+r-1+a")),
    // One below the other: two folders side by side.
    ("aa", YES, YES, Some("aa")),
    ("aa/b", YES, YES, Some("aa+b")),
    ("aa/b/c", YES, YES, Some("aa+b+c")),
    ("aa+b", YES, YES, None),
    // Options.
    ("-", NO, YES, None),
    ("--", NO, YES, None),
    ("-f", NO, YES, None),
    ("-b", NO, YES, None),
    ("-D", NO, YES, None),
    ("--all", NO, YES, None),
    ("--force", NO, YES, None),
    ("--upload-pack=x", NO, YES, None),
    ("--output=x", NO, YES, None),
    ("--exec=x", NO, YES, None),
    ("--git-dir=x", NO, YES, None),
    ("--end-of-options", NO, YES, None),
    ("-c", NO, YES, None),
    ("-ccore.pager=x", NO, YES, None),
    ("-/a", NO, YES, None),
    // Within a name a hyphen starts no option: the full reference starts with `refs/`.
    ("a/-f", YES, YES, None),
    ("a/--upload-pack=x", YES, YES, None),
    ("a-", YES, YES, Some("a-")),
    // What git reads as something else.
    ("HEAD", NO, YES, Some("HEAD")),
    ("@", NO, YES, None),
    ("@{-1}", NO, NO, None),
    ("@{u}", NO, NO, None),
    ("a@{1}", NO, NO, None),
    ("a@{upstream}", NO, NO, None),
    ("@a", YES, YES, None),
    ("a@", YES, YES, None),
    ("a@b", YES, YES, None),
    ("refs/heads/x", NO, YES, Some("refs+heads+x")),
    ("refs/x", NO, YES, Some("refs+x")),
    ("heads/x", YES, YES, Some("heads+x")),
    ("FETCH_HEAD", YES, YES, Some("FETCH_HEAD")),
    ("a..b", NO, NO, None),
    ("a...b", NO, NO, None),
    ("..", NO, NO, None),
    (".", NO, NO, None),
    ("a~1", NO, NO, None),
    ("a^", NO, NO, None),
    ("a^{commit}", NO, NO, None),
    ("^a", NO, NO, None),
    ("a:b", NO, NO, None),
    (":a", NO, NO, None),
    (":/a", NO, NO, None),
    ("a?", NO, NO, None),
    ("a*", NO, NO, None),
    ("a[b]", NO, NO, None),
    ("a]", YES, YES, None),
    ("a{b}", YES, YES, None),
    ("a\\b", NO, NO, None),
    ("..\\b", NO, NO, None),
    // Slashes and dots.
    ("", NO, NO, None),
    ("/", NO, NO, None),
    ("/a", NO, NO, None),
    ("a/", NO, NO, None),
    ("a//b", NO, NO, None),
    ("a/./b", NO, NO, None),
    ("a/../b", NO, NO, None),
    ("../a", NO, NO, None),
    ("../../etc/passwd", NO, NO, None),
    (".a", NO, NO, None),
    ("a/.b", NO, NO, None),
    (".git", NO, NO, None),
    ("a/.git", NO, NO, None),
    ("a.", NO, NO, None),
    ("a./b", YES, YES, None),
    ("a.lock", NO, NO, None),
    ("a.lock/b", NO, NO, None),
    ("a/b.lock", NO, NO, None),
    ("a.LOCK", YES, YES, Some("a.LOCK")),
    ("a.lockx", YES, YES, Some("a.lockx")),
    (".lock", NO, NO, None),
    // Blanks and controls.
    (" ", NO, NO, None),
    ("a b", NO, NO, None),
    (" a", NO, NO, None),
    ("a ", NO, NO, None),
    ("a\tb", NO, NO, None),
    ("a\nb", NO, NO, None),
    ("a\r", NO, NO, None),
    ("a\u{1b}[2J", NO, NO, None),
    ("a\u{7}", NO, NO, None),
    ("a\u{7f}", NO, NO, None),
    ("a\u{85}", NO, YES, None),
    ("\u{a0}", YES, YES, None),
    // What cannot be seen.
    ("a\u{202e}b", NO, YES, None),
    ("a\u{2066}b\u{2069}", NO, YES, None),
    ("a\u{200b}", NO, YES, None),
    ("a\u{200d}b", NO, YES, None),
    ("\u{feff}a", NO, YES, None),
    ("a\u{ad}b", NO, YES, None),
    ("a\u{2028}b", NO, YES, None),
    ("a\u{e0061}", NO, YES, None),
    // Twins: each is a name of its own, and none is a step's, so that no folder can be another's on any system.
    ("caf\u{e9}", YES, YES, None),
    ("cafe\u{301}", YES, YES, None),
    ("\u{fb01}x", YES, YES, None),
    ("\u{65e5}\u{672c}", YES, YES, None),
    ("\u{1f980}", YES, YES, None),
    ("Main", YES, YES, Some("Main")),
    ("MAIN", YES, YES, Some("MAIN")),
    // Shells and systems.
    ("$(x)", YES, YES, None),
    ("`x`", YES, YES, None),
    ("a;b", YES, YES, None),
    ("a|b", YES, YES, None),
    ("a&b", YES, YES, None),
    ("a\"b", YES, YES, None),
    ("a'b", YES, YES, None),
    ("%2e%2e", YES, YES, None),
    ("a=b", YES, YES, None),
    ("a,b", YES, YES, None),
    ("a#b", YES, YES, None),
    ("!a", YES, YES, None),
    ("+a", YES, YES, None),
    ("~a", NO, NO, None),
    ("CON", YES, YES, Some("CON")),
];

/// Names that are long.
fn long() -> Vec<(String, bool, bool, Option<String>)> {
    let a = |length: usize| "a".repeat(length);
    vec![
        (a(100), YES, YES, Some(a(100))),
        (a(101), YES, YES, None),
        (a(200), YES, YES, None),
        (a(201), NO, YES, None),
        (a(300), NO, YES, None),
        (a(5000), NO, YES, None),
        ("a/".repeat(99) + "a", YES, YES, Some("a+".repeat(99) + "a")),
        ("a/".repeat(200) + "a", NO, YES, Some("a+".repeat(200) + "a")),
        ("\u{e9}".repeat(101), NO, YES, None),
    ]
}

/// Every row; `\0` is no argument of a program, and so not git's to judge.
fn rows() -> Vec<(String, bool, bool, Option<String>)> {
    let short = NAMES
        .iter()
        .map(|(name, here, git, folder)| ((*name).to_owned(), *here, *git, folder.map(str::to_owned)));
    short.chain(long()).collect()
}

#[test]
fn e7_e8_each_name_is_refused_or_is_what_it_says() {
    assert!(rows().len() >= 80, "{} rows", rows().len());
    for (name, here, git, folder) in rows() {
        let reference = branch_reference(&name);
        assert_eq!(reference.is_ok(), here, "{name:?} as a branch");
        if let Ok(reference) = reference {
            assert_eq!(reference, format!("refs/heads/{name}"));
        }
        assert!(git || !here, "{name:?}: laxer than git");
        assert_eq!(folder_name(&name).ok(), folder, "{name:?} as a step");
    }
    for name in ["\0", "a\0", "a\0b"] {
        assert!(
            branch_reference(name).is_err() && folder_name(name).is_err(),
            "{name:?}"
        );
    }
    let refused = branch_reference("a\u{202e}b").unwrap_err().to_string();
    assert!(refused.contains("cannot be a branch's name"), "{refused}");
}

/// The column of git's own rules is git's.
#[cfg(unix)]
#[test]
fn e7_e8_git_judges_as_the_table_says() {
    let path = std::env::var_os("PATH").unwrap();
    let programs = std::env::split_paths(&path).map(|folder| folder.join("git"));
    for program in programs.filter(|file| file.is_file()) {
        let lets_pass = |name: &str| {
            let reference = format!("refs/heads/{name}");
            let mut command = std::process::Command::new(&program);
            command
                .args(["check-ref-format", &reference])
                .status()
                .unwrap()
                .success()
        };
        for (name, _, git, _) in rows() {
            assert_eq!(lets_pass(&name), git, "{}: {name:?}", program.display());
        }
        // Bytes that are no text never reach us: names are texts.
        let mut command = std::process::Command::new(&program);
        let bytes = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"refs/heads/\xff");
        assert!(
            command
                .arg("check-ref-format")
                .arg(bytes)
                .status()
                .unwrap()
                .success()
        );
    }
}

#[test]
fn takes_full_hashes_only() {
    assert!(full_hash(&"0a".repeat(20)).is_ok() && full_hash(&"0a".repeat(32)).is_ok());
    for hash in [
        "HEAD",
        "abc",
        "--all",
        &"0A".repeat(20),
        &"zz".repeat(20),
        &"-a".repeat(20),
        "",
    ] {
        assert!(full_hash(hash).is_err(), "{hash}");
    }
}

#[test]
fn only_our_references_are_ours() {
    for reference in ["refs/heads/sillage/r1", "refs/sillage/rescue/r1/a/1"] {
        assert!(is_ours(reference), "{reference}");
    }
    for reference in [
        "refs/heads/main",
        "refs/heads/sillagex/a",
        "refs/heads/sillage",
        "refs/tags/sillage/a",
        "HEAD",
    ] {
        assert!(!is_ours(reference), "{reference}");
    }
}

/// Texts that come close to options, references and paths.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,20}",
        "-{0,3}[a-zA-Z@.=/]{0,12}",
        "[-a-b@{}./~^:?*\\[\\\\ \u{202e}\u{1}\0]{0,12}",
        "(--upload-pack=|--output=|-o|refs/heads/|a/)?[-.a-z]{0,6}(\\.lock)?(/[-a]{1,3})?",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    /// What reaches git's command line is a full reference, and what becomes a folder one plain name: neither can
    /// be read as an option or lead elsewhere.
    #[test]
    fn e7_no_name_can_be_read_as_an_option(name in name()) {
        if let Ok(reference) = branch_reference(&name) {
            prop_assert!(reference.starts_with("refs/heads/") && !name.starts_with('-'));
            prop_assert!(!reference.contains("..") && !reference.contains('\0'));
        }
        if let Ok(folder) = folder_name(&name) {
            prop_assert!(!folder.starts_with(['-', '.']));
            let path = std::path::Path::new(&folder);
            prop_assert_eq!(path.components().count(), 1);
            prop_assert!(matches!(path.components().next(), Some(std::path::Component::Normal(_))));
        }
        if let Ok(hash) = full_hash(&name) {
            prop_assert!(hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }
}

use super::*;

fn fault(script: &str) -> (u64, String) {
    match Script::parse(script).expect_err(script) {
        ScriptError::Faulty { line, words, .. } => (line, words),
        error @ ScriptError::UnknownPlaceholder { line, .. } => (line, error.to_string()),
        error @ ScriptError::Unreadable { .. } => panic!("{error}"),
    }
}

#[test]
fn an_empty_script_is_a_script() {
    for text in ["", "{}", "# nothing\n"] {
        let script = Script::parse(text).expect("a script");
        assert!(script.prompts.is_empty() && script.default.is_none(), "{text}");
    }
}

#[test]
fn faults_are_told_with_their_line() {
    for (text, line, part) in [
        ("prompt: []", 1, "unknown field `prompt`"),
        ("agent:\n  nmae: x", 2, "unknown field `nmae`"),
        (
            "default:\n  - say: hello\n  - sing: la",
            3,
            "unknown variant `sing`",
        ),
        (
            "default:\n  - write: { path: a, contents: b }",
            2,
            "unknown field `contents`",
        ),
        ("default:\n  - say: { txt: b }", 2, "unknown field `txt`"),
        ("default:\n  - exit: 300", 2, "u8"),
        ("prompts:\n  - match: /(/", 2, "unclosed group"),
        ("prompts:\n  - times: often", 2, "`always`"),
        ("prompts:\n  - times: -1", 2, "out of range"),
        ("ids: letters", 1, "letters"),
        ("a: 1\na: 2", 1, ""),
        ("agent: {}\nagent: {}", 2, "duplicate"),
        ("default:\n  - say: '{{cmd}}'", 2, "unknown placeholder {{cmd}}"),
        ("default: [", 1, ""),
    ] {
        let (at, words) = fault(text);
        assert_eq!(at, line, "{text}: {words}");
        assert!(words.contains(part), "{text}: {words}");
    }
}

#[test]
fn a_text_stands_for_a_map() {
    let short = Script::parse("sessions: kept\ndefault: [{ say: a }, { run: ls }, { delete: x }, crash]")
        .expect("a script");
    let long = "sessions: { folder: kept }\ndefault: [{ say: { text: a } }, { run: { command: ls } }, { delete: { path: x } }, crash]";
    let long = Script::parse(long).expect("a script");
    assert_eq!(format!("{short:?}"), format!("{long:?}"));
}

#[test]
fn null_is_a_result() {
    let script = Script::parse("methods: { a: { result: null }, b: {} }").expect("a script");
    assert_eq!(script.methods["a"].result, Some(Value::Null));
    assert_eq!(script.methods["b"].result, None);
}

#[test]
fn patterns() {
    for (pattern, text, expected) in [
        ("fix", "please fix it", Some(vec!["fix"])),
        ("fix", "please Fix it", None),
        ("/(?i)fix (\\d+)?/", "Fix 12", Some(vec!["Fix 12", "12"])),
        ("/fix (\\d+)?/", "fix it", Some(vec!["fix ", ""])),
        ("a/b", "a/b", Some(vec!["a/b"])),
    ] {
        let script = Script::parse(&format!("prompts: [{{ match: '{pattern}' }}]")).expect("a script");
        let captures = script.prompts[0].matches.as_ref().and_then(|p| p.captures(text));
        assert_eq!(
            captures,
            expected.map(|e| e.into_iter().map(str::to_owned).collect::<Vec<_>>()),
            "{pattern}"
        );
    }
}

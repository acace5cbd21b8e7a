use proptest::prelude::*;

use super::*;

fn value(text: &str) -> Value {
    read(text, Place::START)
        .unwrap_or_else(|error| panic!("{text}: {error:?}"))
        .value
}

fn error(text: &str) -> (FaultCode, String, u32, u32) {
    let Unreadable { code, message, place } = read(text, Place::START).expect_err(text);
    let place = place.expect("an error of the reader has a place");
    (code, message, place.line, place.column)
}

#[test]
fn reads_every_kind_of_value() {
    assert_eq!(value(" null "), Value::Null);
    assert_eq!(value("true"), Value::Bool(true));
    assert_eq!(value("false"), Value::Bool(false));
    for number in [
        "0",
        "-0",
        "12",
        "-1.50",
        "1e9",
        "1E+9",
        "0.1e-2",
        "123456789012345678901234567890",
    ] {
        assert_eq!(value(number), Value::Number(number.to_owned()));
    }
    assert_eq!(value("[]"), Value::List(vec![]));
    assert_eq!(value("{ }"), Value::Map(vec![]));
    assert_eq!(value("\u{feff}{}"), Value::Map(vec![]));
}

#[test]
fn reads_escapes_and_surrogate_pairs() {
    assert_eq!(
        value(r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude42""#),
        Value::Text("\"\\/\u{8}\u{c}\n\r\té🙂".into())
    );
    for broken in [
        r#""\ud83d""#,
        r#""\ud83d\u0041""#,
        r#""\ude42""#,
        r#""\u12"#,
        r#""\u+123""#,
        r#""\uéé""#,
        r#""\x""#,
        "\"\\",
    ] {
        assert_eq!(error(broken).0, FaultCode::Syntax, "{broken}");
        assert_eq!((error(broken).2, error(broken).3), (1, 2), "{broken}");
    }
}

#[test]
fn keeps_places_in_characters_from_the_starting_place() {
    let node = read("{\"é\": [1,\r\n  🙂]}", Place { line: 7, column: 3 }).expect_err("not JSON");
    assert_eq!(node.place, Some(Place { line: 8, column: 3 }));
    let node = read("{\"é🙂\": true}", Place { line: 7, column: 3 }).expect("JSON");
    let Value::Map(entries) = node.value else {
        panic!("a map")
    };
    assert_eq!(node.place, Place { line: 7, column: 3 });
    assert_eq!(entries[0].0.place, Place { line: 7, column: 4 });
    assert_eq!(entries[0].1.place, Place { line: 7, column: 10 });
}

#[test]
fn refuses_what_is_not_json_at_its_place() {
    for (text, line, column) in [
        ("", 1, 1),
        ("{", 1, 2),
        ("[1,\n]", 2, 1),
        ("{\"a\":1,}", 1, 8),
        ("{a: 1}", 1, 2),
        ("{'a': 1}", 1, 2),
        ("{\"a\" 1}", 1, 6),
        ("{\"a\":1 \"b\":2}", 1, 8),
        ("[1 2]", 1, 4),
        ("01", 1, 2),
        ("1.", 1, 3),
        ("-", 1, 2),
        ("+1", 1, 1),
        ("1e", 1, 3),
        ("nul", 1, 1),
        ("True", 1, 1),
        ("\"a\nb\"", 1, 3),
        ("\"a\tb\"", 1, 3),
        ("[\"abc", 1, 2),
        ("{} {}", 1, 4),
        ("1 // one", 1, 3),
    ] {
        let (code, _, at_line, at_column) = error(text);
        assert_eq!(
            (code, at_line, at_column),
            (FaultCode::Syntax, line, column),
            "{text:?}"
        );
    }
}

#[test]
fn w16_refuses_a_key_given_twice_and_names_the_second() {
    let (code, message, line, column) = error("{\"a\": 1,\n \"b\": {\"c\": 1, \"\\u0063\": 2}}");
    assert_eq!((code, line, column), (FaultCode::Syntax, 2, 16));
    assert_eq!(message, "the key `c` is given twice");
    assert!(read(r#"{"a": {"a": 1}, "b": {"a": 1}}"#, Place::START).is_ok());
}

#[test]
fn w12_refuses_more_than_64_levels() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(read(&nested(MAX_DEPTH), Place::START).is_ok());
    let (code, _, line, column) = error(&nested(MAX_DEPTH + 1));
    assert_eq!((code, line, column), (FaultCode::TooDeep, 1, 65));
    assert_eq!(error(&"[".repeat(1_000_000)).0, FaultCode::TooDeep);
    assert_eq!(error(&"{\"a\":".repeat(1_000_000)).0, FaultCode::TooDeep);
}

/// What this reader took for JSON, as the JSON library's own value.
fn plain(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(written) => serde_json::from_str(written).expect("a number"),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(plain).collect(),
        Value::Map(entries) => entries
            .iter()
            .map(|(key, node)| (key.name.clone(), plain(node)))
            .collect(),
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(serde_json::Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|map| map.into_iter().collect::<serde_json::Value>()),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_the_json_library_on_what_it_writes(json in any_json(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&json) } else { serde_json::to_string(&json) };
        let node = read(&text.expect("it writes"), Place::START);
        prop_assert_eq!(node.map(|node| plain(&node)), Ok(json));
    }

    #[test]
    fn agrees_with_the_json_library_on_what_is_json(text in r#"[\[\]{}:,"\\ua0-9eE.+\-\n truefalsn]{0,24}"#) {
        let ours = read(&text, Place::START);
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        match ours {
            Ok(node) => prop_assert_eq!(Some(plain(&node)), theirs.ok()),
            // Ours alone refuses repeated keys; theirs alone refuses numbers that no float holds.
            Err(error) => prop_assert!(theirs.is_err() || error.message.contains("given twice"), "{error:?}"),
        }
    }

    #[test]
    fn never_panics(text: String) {
        let _node = read(&text, Place::START);
    }
}

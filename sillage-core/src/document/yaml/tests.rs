use proptest::prelude::*;

use super::*;
use crate::document::MAX_BYTES;

fn map(node: Node) -> Vec<(Key, Node)> {
    let Value::Map(entries) = node.value else {
        panic!("not a map: {node:?}");
    };
    entries
}

fn first(text: &str) -> Value {
    map(read(text).unwrap()).remove(0).1.value
}

fn refused(text: &str) -> (FaultCode, Option<(u32, u32)>) {
    let unreadable = read(text).expect_err("should be refused");
    (
        unreadable.code,
        unreadable.place.map(|place| (place.line, place.column)),
    )
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    for text in ["~", "null", "Null", "NULL", ""] {
        assert_eq!(first(&format!("a: {text}\n")), Value::Null, "{text:?}");
    }
    for (text, is) in [("true", true), ("True", true), ("FALSE", false), ("false", false)] {
        assert_eq!(first(&format!("a: {text}")), Value::Bool(is));
    }
    for text in [
        "0", "-1", "+12", "007", "0o17", "0xFf", "1.5", ".5", "5.", "1e3", "-1.5E-7", ".inf", "-.INF", ".nan",
    ] {
        assert_eq!(first(&format!("a: {text}")), Value::Number(text.to_owned()));
    }
    for text in [
        "yes", "no", "off", "1_000", "0b1", "1h30m", "1.2.3", "e3", ".", "+", "0x", "1e", "nan", "tRUE",
    ] {
        assert_eq!(
            first(&format!("a: {text}")),
            Value::Text(text.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn quoted_and_block_scalars_are_texts() {
    assert_eq!(first("a: '1'"), Value::Text("1".to_owned()));
    assert_eq!(first("a: \"true\""), Value::Text("true".to_owned()));
    assert_eq!(
        first("a: |\n  one\n  two\n"),
        Value::Text("one\ntwo\n".to_owned())
    );
    assert_eq!(first("a: >-\n  one\n  two\n"), Value::Text("one two".to_owned()));
}

#[test]
fn core_tags_are_heeded_and_others_refused() {
    assert_eq!(first("a: !!str 1"), Value::Text("1".to_owned()));
    assert_eq!(first("a: ! 1"), Value::Text("1".to_owned()));
    assert_eq!(first("a: !!int '3'"), Value::Number("3".to_owned()));
    assert_eq!(first("a: !!seq []"), Value::List(Vec::new()));
    for text in [
        "a: !!int x",
        "a: !mine x",
        "a: !!seq {}",
        "a: !!binary aGk=",
        "!!set {a: }",
        "a: !mine [1]",
    ] {
        assert_eq!(refused(text).0, FaultCode::Syntax, "{text}");
    }
}

#[test]
fn every_value_and_key_knows_its_place() {
    let entries = map(read("é: x\nb:\n  - {c: 1}\n").unwrap());
    let at = |line, column| Place { line, column };
    assert_eq!((entries[0].0.place, entries[0].1.place), (at(1, 1), at(1, 4)));
    assert_eq!((entries[1].0.place, entries[1].1.place), (at(2, 1), at(3, 3)));
    let Value::List(items) = &entries[1].1.value else {
        panic!("not a list")
    };
    assert_eq!(items[0].place, at(3, 5));
    let Value::Map(inner) = &items[0].value else {
        panic!("not a map")
    };
    assert_eq!((inner[0].0.place, inner[0].1.place), (at(3, 6), at(3, 9)));
}

#[test]
fn nothing_is_an_empty_map() {
    for text in [
        "",
        "\n\n",
        "# only a comment\n",
        "---\n",
        "--- \n...\n",
        "\u{feff}",
    ] {
        assert_eq!(read(text).unwrap().value, Value::Map(Vec::new()), "{text:?}");
    }
}

#[test]
fn what_is_not_one_document_of_plain_maps_is_a_syntax_fault_with_its_place() {
    for (text, place) in [
        ("a: 1\nb: 2\na: 3\n", (3, 1)),
        ("a: {b: 1, b: 2}", (1, 11)),
        ("a: 1\n---\nb: 2\n", (2, 1)),
        ("? [a]\n: 1\n", (1, 3)),
        ("{a: 1}: 2\n", (1, 1)),
        ("{: 1}", (1, 2)),
    ] {
        assert_eq!(refused(text), (FaultCode::Syntax, Some(place)), "{text}");
    }
    for text in [
        "a: [1",
        "a: 'x",
        "a: \"\\q\"",
        "a: b: c",
        "a: *none",
        "]",
        "a: @x",
        "%FOO",
    ] {
        assert_eq!(refused(text).0, FaultCode::Syntax, "{text}");
    }
}

#[test]
fn modest_aliases_are_copied_where_they_stand() {
    let entries = map(read("a: &x [1, 2]\nb: *x\nc: &k name\n*k : 4\n").unwrap());
    assert_eq!(entries[0].1.value, entries[1].1.value);
    assert_eq!(entries[3].0.name, "name");
    let shared = format!(
        "x: &x [{}]\nall:\n{}",
        "'aaaaaaaa', ".repeat(10),
        "  - {id: someone, resources: *x}\n".repeat(5000)
    );
    assert!(read(&shared).is_ok());
}

#[test]
fn w12_alias_bombs_are_refused_before_they_grow() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![below; 10].join(", "));
    }
    assert_eq!(refused(&bomb).0, FaultCode::AliasBomb);
    let long = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(1 << 20),
        vec!["*a"; 100_000].join(", ")
    );
    assert_eq!(refused(&long).0, FaultCode::AliasBomb);
    assert_eq!(refused("a: &a [*a]\n").0, FaultCode::AliasBomb);
    assert_eq!(refused("a: &a {b: *a}\n").0, FaultCode::AliasBomb);
    let nested = (0..60).map(|level| format!("&n{level} [")).collect::<String>();
    assert_eq!(
        refused(&format!("{nested}{}{}", "x".repeat(1 << 20), "]".repeat(60))).0,
        FaultCode::AliasBomb
    );
}

#[test]
fn w12_nesting_over_the_bound_is_refused_however_it_is_made() {
    let lists = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(read(&lists(MAX_DEPTH)).is_ok());
    for depth in [MAX_DEPTH + 1, 200, 256, 300, 100_000] {
        assert_eq!(refused(&lists(depth)).0, FaultCode::TooDeep, "{depth}");
        assert_eq!(refused(&"[".repeat(depth)).0, FaultCode::TooDeep, "{depth}");
        assert_eq!(refused(&"{a: ".repeat(depth)).0, FaultCode::TooDeep, "{depth}");
        assert_eq!(refused(&"- ".repeat(depth)).0, FaultCode::TooDeep, "{depth}");
        assert_eq!(refused(&"a: {".repeat(depth)).0, FaultCode::TooDeep, "{depth}");
    }
    let blocks: String = (0..70)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    assert_eq!(refused(&blocks).0, FaultCode::TooDeep);
    let mut aliases = "- &a0 [x]\n".to_owned();
    for level in 1..70 {
        aliases += &format!("- &a{level} [*a{}]\n", level - 1);
    }
    assert_eq!(refused(&aliases).0, FaultCode::TooDeep);
}

#[test]
fn w12_a_text_over_its_bound_is_not_parsed() {
    let mut text = "#".repeat(MAX_BYTES);
    assert!(read(&text).is_ok());
    text.push('#');
    assert_eq!(refused(&text), (FaultCode::TooLarge, None));
}

/// Each would take minutes if any work were done again for every character.
#[test]
fn w12_hostile_texts_are_read_in_one_pass() {
    const BYTES: usize = MAX_BYTES / 16;
    let units = [
        "-",
        "- ",
        "-\n",
        "'",
        "\"",
        "''",
        "&a ",
        "&",
        "*a ",
        "? ",
        ": ",
        "a: ",
        "!",
        "!!str ",
        "!a!b ",
        "%",
        "|\n",
        ">",
        "[",
        "{",
        "]",
        "[],",
        "#",
        "\n",
        "\r",
        "\t",
        " ",
        "\u{feff}",
        "a,",
        "a: b\n",
        "a\n",
        "é",
        "\0",
        "---\n",
        "...\n",
        "%TAG !a! b\n",
        "a: &a b\n",
        "a: 'b\n",
        "\\",
        "<<: ",
        "? a\n",
        "- &a a\n",
        "- *a\n",
    ];
    for unit in units {
        let count = BYTES / unit.len();
        let _ = read(&unit.repeat(count));
        let _ = read(&format!("[{}", unit.repeat(count - 1)));
        let _ = read(&format!("\"{}", unit.repeat(count - 1)));
    }
    let wide = format!("{}{}", "[".repeat(255), "a,".repeat(BYTES / 2));
    assert_eq!(refused(&wide).0, FaultCode::TooDeep);
}

proptest! {
    #[test]
    fn w12_no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn w12_no_mix_of_indicators_makes_the_reader_panic(
        text in "([-?:,\\[\\]{}#&*!|>'\"%@` \n\t\\\\ab0~]|- |: |\n  |<<|--- |\\.\\.\\.|\\r|\u{feff}|\\x00){0,60}"
    ) {
        let _ = read(&text);
    }

    #[test]
    fn json_reads_the_same_as_yaml(texts in prop::collection::vec("[ -~é\n]{0,12}", 0..6), numbers in prop::collection::vec(-9i32..9, 0..4)) {
        let text = serde_json::to_string(&serde_json::json!({ "texts": texts, "numbers": numbers, "none": null })).unwrap();
        let json = crate::document::json::read(&text, Place::START).unwrap();
        prop_assert_eq!(read(&text).unwrap(), json);
    }
}

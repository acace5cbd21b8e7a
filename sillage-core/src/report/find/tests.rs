use super::*;

const REPORT: &str = r#"{"outcome": "complete", "summary": "x"}"#;

fn json(answer: &str) -> &str {
    match find(answer) {
        Found::Json { text, .. } => text,
        other @ (Found::Nothing | Found::Unclosed(_)) => panic!("{answer:?}: {other:?}"),
    }
}

#[test]
fn w16_takes_the_last_fenced_json_block() {
    for answer in [
        "```json\nR\n```",
        "```JSON\nR\n```",
        "``` json \nR\n```",
        "```json title=report\nR\n```",
        "~~~json\nR\n~~~",
        "~~~ Json `x`\nR\n~~~~~",
        "````json\nR\n````",
        "````json\nR\n`````  \n{\"a\": 1}",
        "   ```json\n   R\n   ```",
        "1. Report:\n\n   ```json\n   R\n   ```",
        "\u{feff}```json\nR\n```",
        "```json\r\nR\r\n```\r\nBye.",
        "```json\nR",
        "```json\n\n\n  R  \n\n```",
        "```json\n{\"draft\": 1}\n```\n```json\nR\n```",
        "```json\nR\n```\n{\"outcome\": \"partial\", \"summary\": \"bare\"}",
        "```json\nR\n```\n```rust\nfn main() { }\n```\n[1, {\"a\": 2}]",
        "```json\nR\n```\n{ never closed \"",
        "{\"never\": \"closed\n```json\nR\n```",
        "~~~json\nR\n~~~\n```\n{\"plain\": 1}\n```",
        "````markdown\n```json\n{\"quoted\": 1}\n```\n````\n```json\nR\n```",
        "```json\nR\n```\n````markdown\n```json\n{\"quoted\": 1}\n```\n````\n",
    ] {
        assert_eq!(json(&answer.replace('R', REPORT)), REPORT, "{answer}");
    }
}

#[test]
fn w16_takes_what_the_block_holds_whatever_it_is() {
    assert_eq!(json("```json\n```"), "");
    assert_eq!(json("```json"), "");
    assert_eq!(json("```json\n[1, 2]\n```\n{\"a\": 1}"), "[1, 2]");
    assert_eq!(json("```json\n\"text\"\n```"), "\"text\"");
    assert_eq!(json("```json\n{} {}\n```"), "{} {}");
    assert_eq!(json("```json\n{broken\n```\n{\"a\": 1}"), "{broken");
    assert_eq!(
        json("```json\n{}\n~~~\n``\n`` `\n    ```\n```\n"),
        "{}\n~~~\n``\n`` `\n    ```"
    );
}

#[test]
fn w16_knows_what_is_not_a_json_block() {
    for answer in [
        "See ```json\n{\"a\": 1}\n then R",
        "```json {\"a\": 1} ```\nR",
        "    ```json\n    {\"a\": 1}\n    ```\nR",
        "\t```json\n{\"a\": 1}\nR",
        "``json\n{\"a\": 1}\n``\nR",
        "> ```json\n> {\"a\": 1}\n> ```\nR",
        "```jsonc\n{\"a\": 1}\n```\nR",
        "```rust\nfn main() { }\n```\nR",
        "R\n```rust\nfn main() { }\n```",
        "R\n```http\nPOST /\n\n{\"a\": 1}\n```",
        "````markdown\n```json\n{\"a\": 1}\n```\n````\nR",
        "~~~sh\n```json\n{\"a\": 1}\n```\n~~~\nR",
    ] {
        assert_eq!(json(&answer.replace('R', REPORT)), REPORT, "{answer}");
    }
}

#[test]
fn w16_takes_the_last_object_that_lies_in_no_other() {
    for answer in [
        "R",
        "  R\n\nThat is all.",
        "{\"a\": 1}\nR",
        "{\"a\": 1}R",
        "I used {placeholders} in a template.\nR",
        "R\nI used {placeholders}, {0}, {:?}, { …, {'it', 'is'}, {\"set\", \"of\"} and {x:?}.",
        "Use { to open and } to close.\nR",
        "}}} R }}}",
        "It's the agent's \"own words\n R",
        "Escape `{\"` as you like.\n\nR",
        "[1] see [R] and {name",
        "[R",
        "```\nR\n```",
        "```\n{\"a\": 1}\n```\nR",
        "{\"a\": 1}\n~~~\nR\n~~~",
        "- item ```R```",
        "{ { R",
        "{ outcome: { R",
        "```text\nR\n```",
        "```rust\nlet x = Foo { a: 1 };\n```\n```js\n\n  R\n\n```",
    ] {
        assert_eq!(json(&answer.replace('R', REPORT)), REPORT, "{answer}");
    }
    let nested =
        r#"{"summary": "a } and { and \" } {", "decisions": [{"title": "{}"}], "outputs": {"x": "y"}}"#;
    assert_eq!(json(&format!("Text. {nested} More.")), nested);
    assert_eq!(json(&format!("{REPORT} and then {{}}")), "{}");
}

#[test]
fn w16_takes_something_like_an_object_where_there_is_none() {
    for answer in [
        "{outcome: \"complete\", summary: \"x\"}",
        "{'outcome': 'complete', 'summary': 'x'}",
        "{ // done\n \"outcome\": \"complete\" }",
        "{\"outcome\" \"complete\"}",
    ] {
        assert_eq!(json(&format!("Text. {answer} More.")), answer);
    }
}

#[test]
fn w16_tells_an_object_that_is_never_closed() {
    let at = |line, column| Found::Unclosed(Place { line, column });
    assert_eq!(
        find("Done.\n é {\"outcome\": \"complete\", \"summary\": \"cut he"),
        at(2, 4)
    );
    assert_eq!(find("{\"decisions\": [{\"title\": \"a\"}], \"blo"), at(1, 1));
    assert_eq!(find(&format!("{REPORT}\n{{\"outcome\": \"complete\",")), at(2, 1));
    assert_eq!(find("{\"outc"), at(1, 1));
    assert_eq!(find("{\"outcome\""), at(1, 1));
    assert_eq!(find("Here: {"), at(1, 7));
    assert_eq!(find("{outcome: \"complete\", "), at(1, 1));
    assert_eq!(find("```js\n{\"outcome\": 1"), at(2, 1));
}

#[test]
fn w17_finds_nothing_in_prose() {
    for answer in [
        "",
        " \n",
        "I could not find anything to change.",
        "I used {placeholders} and [brackets].",
        "[1, 2, 3]",
        "```rust\nfn main() { }\n```",
        "```python\nd = {\"a\": 1}\nprint(d)\n```",
        "The `}` is gone.",
    ] {
        assert_eq!(find(answer), Found::Nothing, "{answer}");
    }
}

#[test]
fn w16_tells_where_the_object_starts() {
    let place = |answer| match find(answer) {
        Found::Json { place, .. } => (place.line, place.column),
        other @ (Found::Nothing | Found::Unclosed(_)) => panic!("{other:?}"),
    };
    assert_eq!(place("```json\r\n\r\n  {}\r\n```"), (3, 3));
    assert_eq!(place("\u{feff}{}"), (1, 1));
    assert_eq!(place("é🙂 {}"), (1, 4));
    assert_eq!(place("```js\n {\"a\": 1}\n```"), (2, 2));
}

/// Quadratic work on these would take minutes.
#[test]
fn w16_looks_at_each_character_a_bounded_number_of_times() {
    for piece in [
        "{",
        "{ ",
        "{\"",
        "{\"a\":",
        "{a:",
        "{a:{'",
        "{'",
        "{a",
        "}",
        "```",
        "```\n",
        "```json\n",
        "~~~json\n{",
        "{//",
        "{\n",
        "{\"\n",
    ] {
        let _found = find(&piece.repeat(100_000));
    }
}

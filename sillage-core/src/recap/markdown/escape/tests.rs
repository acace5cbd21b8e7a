use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::*;

fn options() -> Options {
    Options::all() - Options::ENABLE_SMART_PUNCTUATION
}

/// What a reader of the Markdown sees, without what has no width; none when it is more than one paragraph of text.
fn shown(markdown: &str) -> Option<String> {
    let mut shown = String::new();
    for event in Parser::new_ext(markdown, options()) {
        if let Event::Text(text) = event {
            shown.push_str(&text);
        } else if !(matches!(event, Event::Start(Tag::Paragraph)) && shown.is_empty()
            || matches!(event, Event::End(_)))
        {
            return None;
        }
    }
    Some(shown.replace('\u{200b}', ""))
}

/// Text full of what means something in Markdown.
fn adversarial() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        4 => any::<char>().prop_map(String::from),
        6 => prop::sample::select(vec![
            "#", "##", "-", "+", "*", "_", "__", "`", "```", "~~~", "~", ">", "<", "<b>", "</details>", "<!--", "-->",
            "&", "&lt;", "&#35;", "|", "| --- |", ":-", ":-:", "---", "===", "1.", "12)", "[", "]", "(", ")", "![",
            "[a]: b", "[^1]", "[^1]: x", "[x]", "- [ ]", "\\", "$", "$$", "@", "@name", "#12", "GH-1", "{", "}",
            "{#id}", "{.c}", ":", ": d", "https://a.b/c_d", "www.a.b", "a@b.c", "[!NOTE]", "^", "a^b^", "+++",
            "\n", "\n\n", "\r\n", "\r", "\t", "    ", " ", "a", "b1", "\u{2028}", "\u{85}", "\u{0}", "\u{1b}",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

#[test]
fn r28_each_thing_that_means_something_is_shown_as_it_is_written() {
    for (text, markdown) in [
        ("# title", r"\# title"),
        ("- a", r"\- a"),
        ("+ a", r"\+ a"),
        ("12. a", r"12\. a"),
        ("1) a", r"1\) a"),
        ("1.", r"1\."),
        ("1.5 a", "1.5 a"),
        ("===", r"\==="),
        (":-", r"\:-"),
        ("a - b", "a - b"),
        ("<script>&amp;", "&lt;script&gt;&amp;amp;"),
        ("a | b", r"a \| b"),
        ("`x` *y* _z_ ~~w~~", r"\`x\` \*y\* \_z\_ \~\~w\~\~"),
        ("snake_case a#b", "snake_case a#b"),
        ("[a](b) ![c](d)", r"\[a\](b) !\[c\](d)"),
        (
            "thanks @name, fixes #12 and GH-3",
            "thanks @&#8203;name, fixes #&#8203;12 and GH-&#8203;3",
        ),
        ("a\r\nb\u{1b}[0m", "a b\u{fffd}\\[0m"),
        (r"a\b $x$", r"a\\b \$x\$"),
    ] {
        assert_eq!(escaped(text), markdown);
    }
}

#[test]
fn code_holds_any_backticks() {
    for (text, markdown) in [
        ("a", "`a`"),
        ("a`b``c", "```a`b``c```"),
        ("`a", "`` `a ``"),
        ("a\nb", "`a b`"),
        ("", "`  `"),
    ] {
        assert_eq!(code(text), markdown);
    }
}

#[test]
fn only_addresses_that_can_be_followed_are_links() {
    assert_eq!(link("https://a.b/c_d?e=f&g#h"), "<https://a.b/c_d?e=f&g#h>");
    assert_eq!(link("javascript:alert(1)"), "`javascript:alert(1)`");
    assert_eq!(link("https://a b"), "`https://a b`");
    assert_eq!(link("https://a><b>"), "`https://a><b>`");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// R28: whatever was written, a reader sees it, and sees nothing else.
    #[test]
    fn r28_any_text_is_one_paragraph_that_reads_as_written(text in adversarial()) {
        let plain = plain::line(&text).replace('\u{200b}', "");
        let markdown = escaped(&text);
        prop_assert_eq!(shown(&markdown), Some(plain), "{}", markdown);
    }

    #[test]
    fn r28_any_lines_are_paragraphs_of_text(text in adversarial()) {
        let markdown = escaped_lines(&text);
        for event in Parser::new_ext(&markdown, options()) {
            let text = matches!(
                event,
                Event::Text(_) | Event::SoftBreak | Event::Start(Tag::Paragraph) | Event::End(_)
            );
            prop_assert!(text, "{:?} in {}", event, markdown);
        }
        prop_assert!(markdown.lines().all(|line| !line.starts_with(['#', '-', '+', '=', '>', '<', '`', '~', '|', ' '])
            || line.starts_with("#&")), "{}", markdown);
    }

    #[test]
    fn r28_nobody_is_notified_and_no_issue_is_named(text in adversarial()) {
        let markdown = escaped_lines(&text);
        let named = |mark: char, fits: fn(char) -> bool| {
            markdown.match_indices(mark).any(|(at, _)| {
                let next = markdown[at + 1..].chars().next();
                // The number sign within `&#8203;` is not one.
                next.is_some_and(fits) && !markdown[at..].starts_with("#8203;")
            })
        };
        prop_assert!(!named('@', char::is_alphanumeric), "{}", markdown);
        prop_assert!(!named('#', |c| c.is_ascii_digit()), "{}", markdown);
    }

    #[test]
    fn r28_code_is_code_whatever_it_holds(text in adversarial()) {
        let markdown = format!("x {} y", code(&text));
        let events: Vec<Event<'_>> = Parser::new_ext(&markdown, options()).collect();
        prop_assert_eq!(events.len(), 5, "{}", markdown);
        prop_assert!(matches!(&events[2], Event::Code(_)), "{}", markdown);
    }
}

//! What others wrote, made safe to print: control characters and changes of writing direction are shown as `U+FFFD`.

/// The text with its lines, each ended by `\n` alone whatever ended it; tabs become spaces.
#[must_use]
pub fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").chars().map(printed).collect()
}

/// The text on one line, each run of white space as one space.
#[must_use]
pub fn line(text: &str) -> String {
    lines(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Names of a longer list that [`list`] tells.
const LISTED: usize = 10;

/// Names joined by commas: the first ten, and how many more there are.
#[must_use]
pub fn list<S: AsRef<str>>(names: &[S]) -> String {
    let shown: Vec<&str> = names.iter().take(LISTED).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn printed(character: char) -> char {
    match character {
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => '\n',
        '\t' => ' ',
        // What makes a terminal or a page show text in another order than it stands in (Unicode UAX #9).
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        other if other.is_control() => '\u{fffd}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terminals_are_told_nothing_by_what_others_wrote() {
        assert_eq!(lines("a\r\nb\rc\td\u{1b}[31m"), "a\nb\nc d\u{fffd}[31m");
        assert_eq!(line("  a \n\n b\u{202e}c "), "a b\u{fffd}c");
        assert_eq!(lines("é 漢 👩‍🚀"), "é 漢 👩‍🚀");
    }

    #[test]
    fn long_lists_are_cut_and_say_so() {
        assert_eq!(list(&["a", "b"]), "a, b");
        assert_eq!(list(&["n"; 10]), "n, n, n, n, n, n, n, n, n, n");
        assert_eq!(list(&["n"; 12]), "n, n, n, n, n, n, n, n, n, n and 2 more");
    }

    proptest! {
        #[test]
        fn nothing_that_is_printed_controls(text in any::<String>()) {
            prop_assert!(lines(&text).chars().all(|c| c == '\n' || !c.is_control()));
            prop_assert!(!line(&text).contains('\n'));
        }
    }
}

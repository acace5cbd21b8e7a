//! What the terminal can show: colours, width, and which characters of a text it may be given.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::IsTerminal as _;

use clap::ValueEnum;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// Where standard output is a terminal that has them, and `NO_COLOR` is not set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What is known of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// Whether a person looks at it.
    pub(crate) interactive: bool,
    /// Whether to use colours.
    pub(crate) color: bool,
    /// Whether the cursor can be moved on it.
    pub(crate) cursor: bool,
}

/// How much a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// Columns.
    pub(crate) width: usize,
    /// Lines.
    pub(crate) height: usize,
}

/// What is assumed where no terminal tells.
const DEFAULT_SIZE: Size = Size {
    width: 100,
    height: 40,
};

impl Terminal {
    /// Looks at standard output and at the environment.
    pub(crate) fn detect(choice: ColorChoice) -> Self {
        let interactive = std::io::stdout().is_terminal();
        let dumb = std::env::var("TERM").is_ok_and(|name| name == "dumb");
        Terminal {
            interactive,
            color: wants_color(choice, interactive, |name| std::env::var(name).ok()),
            cursor: interactive && !dumb,
        }
    }
}

impl Size {
    /// The terminal's size now: a person may change it at any time.
    pub(crate) fn now() -> Size {
        terminal_size::terminal_size().map_or(DEFAULT_SIZE, |(width, height)| Size {
            width: usize::from(width.0),
            height: usize::from(height.0),
        })
    }
}

/// The usual conventions: `NO_COLOR` and `CLICOLOR_FORCE` count where they are set and not empty.
fn wants_color(choice: ColorChoice, interactive: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name| variable(name).is_some_and(|value| !value.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR") => false,
        ColorChoice::Auto if set("CLICOLOR_FORCE") && variable("CLICOLOR_FORCE").as_deref() != Some("0") => {
            true
        }
        ColorChoice::Auto => interactive && variable("TERM").as_deref() != Some("dumb"),
    }
}

/// A text of unknown origin as a terminal may be given it: control characters and those that change the direction of
/// writing are shown as escapes, so that no agent's text moves the cursor, changes the title or rewrites a line.
/// Line feeds and tabs stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_hostile(character) {
            // Writing to a String cannot fail.
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// As much of a text as fits on one line of `width` columns, on one line.
pub(crate) fn fitting(text: &str, width: usize) -> String {
    let line = text.replace(['\n', '\t'], " ");
    let line = visible(&line);
    // The last column stays free: some terminals wrap when it is written.
    let room = width.saturating_sub(1);
    if line.width() <= room {
        return line.into_owned();
    }
    let mut used = 0;
    let kept = line.chars().take_while(|character| {
        used += character.width().unwrap_or(0);
        used < room
    });
    kept.collect::<String>() + "…"
}

fn is_hostile(character: char) -> bool {
    (character.is_control() && character != '\n' && character != '\t')
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_the_choice_then_the_environment_then_the_terminal() {
        let none = |_: &str| None;
        let with = |name: &'static str, value: &'static str| {
            move |asked: &str| (asked == name).then(|| value.to_owned())
        };
        assert!(wants_color(ColorChoice::Auto, true, none));
        assert!(!wants_color(ColorChoice::Auto, false, none));
        assert!(wants_color(ColorChoice::Always, false, with("NO_COLOR", "1")));
        assert!(!wants_color(
            ColorChoice::Never,
            true,
            with("CLICOLOR_FORCE", "1")
        ));
        assert!(!wants_color(ColorChoice::Auto, true, with("NO_COLOR", "1")));
        assert!(wants_color(ColorChoice::Auto, true, with("NO_COLOR", "")));
        assert!(wants_color(ColorChoice::Auto, false, with("CLICOLOR_FORCE", "1")));
        assert!(!wants_color(
            ColorChoice::Auto,
            false,
            with("CLICOLOR_FORCE", "0")
        ));
        assert!(!wants_color(ColorChoice::Auto, true, with("TERM", "dumb")));
    }

    #[test]
    fn control_and_direction_characters_are_shown_not_sent() {
        assert_eq!(visible("é 你好\n\tx"), "é 你好\n\tx");
        assert_eq!(visible("\u{1b}[2Jgone\r\u{7}"), "\\u{1b}[2Jgone\\u{d}\\u{7}");
        assert_eq!(visible("a\u{202e}b\u{9b}1m"), "a\\u{202e}b\\u{9b}1m");
    }
}

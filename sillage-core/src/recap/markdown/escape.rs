//! Text that others wrote, within Markdown: every character stands for itself.

use crate::plain;

/// A text on one line.
pub(super) fn escaped(text: &str) -> String {
    let text = plain::line(text);
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let marker = list_marker(&text);
    let mut before = None;
    let mut rest = text.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        let after = rest.peek().map(|(_, next)| *next);
        if Some(at) == marker {
            out.push('\\');
            out.push(character);
        } else {
            push(&mut out, before, character, after);
        }
        before = Some(character);
    }
    out
}

/// A text of several lines, as paragraphs.
pub(super) fn escaped_lines(text: &str) -> String {
    let lines = plain::lines(text.trim());
    lines.lines().map(escaped).collect::<Vec<_>>().join("\n")
}

/// Where the character stands whose escape keeps the line from being a list item, the underline of a heading or the
/// second row of a table (CommonMark 0.31, 4.3 and 5.2; GFM 4.10); what else begins a block is escaped everywhere.
fn list_marker(line: &str) -> Option<usize> {
    if line.starts_with(['-', '+', '=', ':']) {
        return Some(0);
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let after = line[digits..].strip_prefix(['.', ')'])?;
    (digits > 0 && (after.is_empty() || after.starts_with(' '))).then_some(digits)
}

/// No space at all, put where a name would otherwise be notified, or an issue linked or closed.
const NO_SPACE: &str = "&#8203;";

fn push(out: &mut String, before: Option<char>, character: char, after: Option<char>) {
    let within_word = before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric);
    match character {
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '&' => out.push_str("&amp;"),
        '@' => {
            out.push('@');
            if after.is_some_and(char::is_alphanumeric) {
                out.push_str(NO_SPACE);
            }
        }
        '#' if after.is_some_and(|next| next.is_ascii_digit()) => {
            out.push('#');
            out.push_str(NO_SPACE);
        }
        // Within a word they mean nothing, and addresses stay whole.
        '_' | '#' if within_word => out.push(character),
        '\\' | '`' | '*' | '_' | '#' | '[' | ']' | '|' | '~' | '$' | '^' => {
            out.push('\\');
            out.push(character);
        }
        // `GH-12` is an issue too.
        '-' if out.ends_with("GH") || out.ends_with("gh") => {
            out.push('-');
            out.push_str(NO_SPACE);
        }
        other => out.push(other),
    }
}

/// A text as code, where it holds nothing but characters that print.
pub(super) fn code(text: &str) -> String {
    let text = plain::line(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // A backtick at an end would be taken for the fence's.
    let space = if text.is_empty() || text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

/// An address as a link where it is one that can be followed, as code otherwise.
pub(super) fn link(address: &str) -> String {
    let address = plain::line(address);
    let followed = address.starts_with("https://") || address.starts_with("http://");
    let whole = |c: char| c.is_ascii_graphic() && !matches!(c, '<' | '>' | '\\' | '`' | '|' | '"');
    if followed && address.chars().all(whole) {
        format!("<{address}>")
    } else {
        code(&address)
    }
}

#[cfg(test)]
mod tests;

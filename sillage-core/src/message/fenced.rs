//! Other people's text in Markdown, so that it cannot pass for ours.

/// Adds a text in a fenced block whose fence is longer than any run of backticks in the text
/// (CommonMark 0.31, section 4.5).
pub(super) fn push_fenced(text: &mut String, content: &str) {
    let length = (longest_run(content) + 1).max(3);
    push_ticks(text, length);
    text.push_str("text\n");
    text.push_str(content);
    if !content.ends_with('\n') {
        text.push('\n');
    }
    push_ticks(text, length);
    text.push('\n');
}

/// Adds a text as a code span on one line (CommonMark 0.31, section 6.1).
pub(super) fn push_code(text: &mut String, content: &str) {
    let length = if content.contains('`') {
        longest_run(content) + 1
    } else {
        1
    };
    push_ticks(text, length);
    // A span that starts or ends with a backtick needs a space there.
    let padding = if length > 1 { " " } else { "" };
    text.push_str(padding);
    push_line(text, content);
    text.push_str(padding);
    push_ticks(text, length);
}

/// Adds a text on one line: control characters become spaces.
pub(super) fn push_line(text: &mut String, content: &str) {
    if content.contains(char::is_control) {
        text.extend(
            content
                .chars()
                .map(|character| if character.is_control() { ' ' } else { character }),
        );
    } else {
        text.push_str(content);
    }
}

fn push_ticks(text: &mut String, count: usize) {
    text.extend(std::iter::repeat_n('`', count));
}

fn longest_run(content: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for byte in content.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

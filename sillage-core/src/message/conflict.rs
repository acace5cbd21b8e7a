//! The message to an agent whose work conflicts with that of others (R17).

use std::fmt::Write as _;
use std::path::Path;

use super::fenced::push_code;
use crate::report::{Expected, write_form};

/// Files that are named in one message; the rest is counted, and the agent's own git names it.
const MOST_NAMED: usize = 200;

/// What the message is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictParts<'a> {
    /// The agent's worktree, in which the merge was begun.
    pub folder: &'a Path,
    /// The commit of the integration branch that is being merged.
    pub onto: &'a str,
    /// The integration branch.
    pub integration: String,
    /// The files that are in conflict.
    pub files: &'a [String],
    /// Which time this is, from 1.
    pub attempt: u8,
    /// Times that a conflict goes to its agent.
    pub attempts: u8,
}

/// Composes the message, which ends with the form of a report that may have these outputs. The same parts always give
/// the same text, byte for byte.
#[must_use]
pub fn conflict(parts: &ConflictParts<'_>, outputs: &[String]) -> String {
    let mut text = String::with_capacity(4_096);
    text.push_str(match parts.attempt {
        0 | 1 => "Your report was accepted, but your work cannot be merged as it is.\n\n",
        _ => "Your work still cannot be merged.\n\n",
    });
    push_conflict(&mut text, parts);
    text.push_str(
        "Then report again. This report takes the place of the one before: let it tell of your whole mission, and of \
         how you resolved the conflict. If you cannot resolve it, report `partial`, or `blocked` with what a person \
         has to decide.\n\n",
    );
    write_form(&mut text, &Expected { outputs });
    text
}

/// Adds what conflicts, where, and what to do about it.
pub fn push_conflict(text: &mut String, parts: &ConflictParts<'_>) {
    text.push_str("Meanwhile the work of other agents came onto the branch ");
    push_code(text, &parts.integration);
    text.push_str(". It is being merged into yours, in your worktree ");
    push_code(text, &parts.folder.to_string_lossy());
    text.push_str(" (`MERGE_HEAD` is ");
    push_code(text, parts.onto);
    text.push_str("), and these files are in conflict:\n\n");
    for file in parts.files.iter().take(MOST_NAMED) {
        text.push_str("- ");
        push_code(text, file);
        text.push('\n');
    }
    if parts.files.len() > MOST_NAMED {
        // Writing to a text does not fail, here and below.
        let _ = writeln!(
            text,
            "- and {} more, which `git status` names",
            parts.files.len() - MOST_NAMED
        );
    }
    text.push_str(
        "\nResolve each so that your work and theirs both hold: of what stands between the marks, the part above \
         `=======` is yours and the part below it is theirs; `git log HEAD..MERGE_HEAD` tells what they did. Take out \
         every mark, then `git add` the file, or `git rm` it where it is to go. Check the result as you checked your \
         own work. You may end the merge with `git commit --no-edit`; else that is done for you. Do not abort it, and \
         do not move your branch elsewhere.\n\n",
    );
    let _ = match parts.attempt < parts.attempts {
        true => writeln!(
            text,
            "This is try {} of {}: if a file is still in conflict after the last one, your work stays apart on your \
             own branch, and your step ends as `partial`.\n",
            parts.attempt.max(1),
            parts.attempts
        ),
        false => writeln!(
            text,
            "This is the last try: if a file is still in conflict after it, your work stays apart on your own branch, \
             and your step ends as `partial`.\n"
        ),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(files: &[String], attempt: u8) -> ConflictParts<'_> {
        ConflictParts {
            folder: Path::new("/wt/a"),
            onto: "1234",
            integration: "sillage/r1".to_owned(),
            files,
            attempt,
            attempts: 2,
        }
    }

    #[test]
    fn r17_names_the_files_the_place_and_what_to_do_and_ends_with_the_form() {
        let files = ["src/lib.rs".to_owned(), "a `b`\nc".to_owned()];
        let text = conflict(&parts(&files, 1), &["api".to_owned()]);
        for part in [
            "`/wt/a`",
            "`sillage/r1`",
            "`1234`",
            "- `src/lib.rs`\n",
            "- `` a `b` c ``\n",
            "try 1 of 2",
            "`git add`",
            "\"api\"",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(
            text.trim_end().ends_with("Leave out what does not apply."),
            "{text}"
        );
        assert_eq!(text, conflict(&parts(&files, 1), &["api".to_owned()]));
        let last = conflict(&parts(&files, 2), &[]);
        assert!(
            last.contains("the last try") && last.starts_with("Your work still"),
            "{last}"
        );
    }

    #[test]
    fn r17_very_many_files_are_counted() {
        let files: Vec<String> = (0..1_000).map(|number| format!("file{number}")).collect();
        let text = conflict(&parts(&files, 1), &[]);
        assert!(text.contains("and 800 more"), "{text}");
        assert!(text.len() < 16_000, "{} bytes", text.len());
    }
}

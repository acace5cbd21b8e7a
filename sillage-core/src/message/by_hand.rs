//! The sections on what people asked: agents that were skipped, a mission that is done again (W18).

use super::ByHand;
use super::fenced::push_code;

pub(super) fn push(text: &mut String, by_hand: &ByHand<'_>) {
    if let Some(earlier) = &by_hand.earlier {
        text.push_str("## Done before\n\nYour mission was begun before in this run, and is done again");
        match earlier.because {
            Some(agent) => {
                text.push_str(" because what ");
                push_code(text, agent);
                text.push_str(" hands over is another now.");
            }
            None => text.push_str(" because a person asked for it."),
        }
        if let Some(commit) = earlier.merged {
            text.push_str(
                " The work of that time was merged, and is in your working folder already: commit ",
            );
            push_code(text, commit);
            text.push_str(". Change what has to change; do not do the rest twice.");
        }
        text.push_str("\n\n");
    }
    if !by_hand.skipped.is_empty() {
        text.push_str(
            "## Agents before you that were skipped\n\nA person skipped these: they hand over nothing.\n",
        );
        for agent in by_hand.skipped {
            text.push_str("- ");
            push_code(text, agent);
            text.push('\n');
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Earlier;

    #[test]
    fn w18_who_was_skipped_and_what_was_done_before_are_told_apart() {
        let mut text = String::new();
        push(&mut text, &ByHand::default());
        assert_eq!(text, "");
        push(
            &mut text,
            &ByHand {
                skipped: &["a", "b"],
                earlier: Some(Earlier {
                    because: Some("a"),
                    merged: Some("c0ffee"),
                }),
            },
        );
        for part in [
            "what `a` hands over is another now",
            "commit `c0ffee`",
            "- `a`\n- `b`\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}

//! What changed in a text, word by word.

use serde::Serialize;
use similar::{Algorithm, ChangeTag, DiffOp, TextDiff};

/// Words of both texts together up to which they are compared word by word; beyond that, line by line.
const MOST_WORDS: usize = 4_000;

/// Lines of both texts together up to which they are compared line by line; beyond that, one stands for the other.
const MOST_LINES: usize = 4_000;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// Where it stands.
    pub side: Side,
    /// The piece itself, blanks and all.
    pub text: String,
}

/// In which of two texts a piece stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// In both.
    Same,
    /// In the earlier one only.
    Removed,
    /// In the later one only.
    Added,
}

/// The pieces of two texts, in order: those that are removed or the same make up the earlier one, those that are added
/// or the same the later one. Costs no more than a bounded number of comparisons, however long the texts are.
#[must_use]
pub fn pieces(old: &str, new: &str) -> Vec<Piece> {
    let words = |text: &str| text.split_whitespace().take(MOST_WORDS + 1).count();
    let lines = |text: &str| text.lines().take(MOST_LINES + 1).count();
    let mut configuration = TextDiff::configure();
    configuration.algorithm(Algorithm::Myers);
    let compared = if words(old) + words(new) <= MOST_WORDS {
        Some(configuration.diff_words(old, new))
    } else if lines(old) + lines(new) <= MOST_LINES {
        Some(configuration.diff_lines(old, new))
    } else {
        None
    };
    let mut pieces = Vec::new();
    match compared {
        Some(compared) => {
            for change in compared
                .ops()
                .iter()
                .flat_map(|op: &DiffOp| compared.iter_changes(op))
            {
                let side = match change.tag() {
                    ChangeTag::Equal => Side::Same,
                    ChangeTag::Delete => Side::Removed,
                    ChangeTag::Insert => Side::Added,
                };
                push(&mut pieces, side, change.value());
            }
        }
        None if old == new => push(&mut pieces, Side::Same, old),
        None => {
            push(&mut pieces, Side::Removed, old);
            push(&mut pieces, Side::Added, new);
        }
    }
    pieces
}

/// Adds a piece, to the one before where that is of the same side.
fn push(pieces: &mut Vec<Piece>, side: Side, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.side == side => last.text.push_str(text),
        _ => pieces.push(Piece {
            side,
            text: text.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(old: &str, new: &str) -> String {
        let pieces = pieces(old, new);
        let told = pieces.iter().map(|piece| match piece.side {
            Side::Same => piece.text.clone(),
            Side::Removed => format!("[-{}-]", piece.text),
            Side::Added => format!("{{+{}+}}", piece.text),
        });
        told.collect()
    }

    #[test]
    fn r14_words_that_changed_stand_among_those_that_did_not() {
        assert_eq!(
            told("find the doors", "find the windows"),
            "find the [-doors-]{+windows+}"
        );
        assert_eq!(told("a b", "a b"), "a b");
        assert_eq!(told("", "new"), "{+new+}");
        assert_eq!(told("a\nb\n", "a\nc b\n"), "a\n{+c +}b\n");
    }

    #[test]
    fn r14_long_texts_cost_a_bounded_time_and_are_compared_more_coarsely() {
        let numbers = |from: u32, between: &str| {
            let words: Vec<String> = (from..from + 200_000).map(|word| word.to_string()).collect();
            words.join(between)
        };
        let pieces = pieces(&numbers(0, " "), &numbers(500_000, "\n"));
        assert_eq!(pieces.len(), 2);
    }

    proptest! {
        #[test]
        fn r14_the_pieces_make_up_both_texts(old in "[ab \n]{0,40}", new in "[ab \n]{0,40}") {
            let pieces = pieces(&old, &new);
            let side = |without: Side| -> String {
                pieces.iter().filter(|piece| piece.side != without).map(|piece| piece.text.as_str()).collect()
            };
            prop_assert_eq!(side(Side::Added), old);
            prop_assert_eq!(side(Side::Removed), new);
            prop_assert!(pieces.windows(2).all(|two| two[0].side != two[1].side));
        }
    }
}

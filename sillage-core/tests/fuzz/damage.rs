//! Ways to damage a text.

use proptest::prelude::*;
use proptest::sample::Index;

/// Texts get no longer than this by damage.
const LONGEST: usize = 64 * 1024;

/// Pieces that mean something to one reader or another.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    ":",
    ",",
    "\\",
    "\\u",
    "\\ud800",
    "null",
    "true",
    "-",
    "- ",
    "0",
    "1e999",
    "-0",
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "```",
    "```json\n",
    "~~~\n",
    "\u{feff}",
    "\u{0}",
    "\u{7f}",
    "\u{2028}",
    "\u{202e}",
    "é",
    "\u{10ffff}",
    "&a ",
    "*a",
    "<<: *a",
    "!!binary ",
    "? ",
    "| ",
    ">-\n",
    "# ",
    "%YAML 1.2\n",
    "---\n",
    "...\n",
    "{\"units\":",
    "\"after\": [",
    "\"sub_agents\": [",
    "sub_agents: ",
    "agents:\n",
    "links:\n",
    " -> ",
    "mission: ",
    "\"outcome\": \"complete\"",
    "99999999999999999999",
    "3:20pm",
    "(UTC)",
    "resets ",
    "try again in ",
    "2026-11-30T14:00:00Z",
    "1789000000",
    "~100 min",
    "Feb 30",
    "24:60",
    "+99:99",
];

/// One damage. Positions are shares of the length that the text has by then.
#[derive(Debug, Clone)]
enum Damage {
    /// A byte becomes another.
    Flip(Index, u8),
    /// A part is left out.
    Cut(Index, Index),
    /// A part stands so many times more.
    Repeat(Index, Index, usize),
    /// A part of another text, or a piece, is put in.
    Insert(Index, String),
    /// The rest from here is wrapped in so many brackets.
    Nest(Index, &'static str, &'static str, usize),
    /// The text ends here.
    End(Index),
}

impl Damage {
    fn to(&self, bytes: &mut Vec<u8>) {
        let at = |index: &Index, bytes: &[u8]| index.index(bytes.len() + 1);
        match self {
            Damage::Flip(index, bits) if !bytes.is_empty() => {
                let at = index.index(bytes.len());
                bytes[at] ^= bits;
            }
            Damage::Flip(..) => {}
            Damage::Cut(one, other) => {
                let (one, other) = (at(one, bytes), at(other, bytes));
                bytes.drain(one.min(other)..one.max(other));
            }
            Damage::Repeat(one, other, times) => {
                let (one, other) = (at(one, bytes), at(other, bytes));
                let (start, end) = (one.min(other), one.max(other));
                let part = bytes[start..end].repeat(*times);
                bytes.splice(end..end, part);
            }
            Damage::Insert(index, part) => {
                let at = at(index, bytes);
                bytes.splice(at..at, part.bytes());
            }
            Damage::Nest(index, open, close, times) => {
                let at = at(index, bytes);
                bytes.splice(at..at, open.repeat(*times).into_bytes());
                bytes.extend(close.repeat(*times).into_bytes());
            }
            Damage::End(index) => bytes.truncate(at(index, bytes)),
        }
        bytes.truncate(LONGEST);
    }
}

/// A text of the corpus, damaged several times or not at all.
pub(crate) fn damaged(corpus: Vec<String>) -> impl Strategy<Value = String> {
    let text = prop::sample::select(corpus);
    let part = (text.clone(), any::<Index>(), any::<Index>()).prop_map(|(text, one, other)| {
        let count = text.chars().count() + 1;
        let (one, other) = (one.index(count), other.index(count));
        text.chars()
            .skip(one.min(other))
            .take(one.abs_diff(other))
            .collect()
    });
    let piece = prop::sample::select(PIECES).prop_map(str::to_owned);
    let brackets = prop::sample::select(vec![
        ("[", "]"),
        ("{\"a\":", "}"),
        ("- ", ""),
        ("{", "}"),
        ("(", ")"),
        ("```\n", "\n```"),
    ]);
    let damage = prop_oneof![
        2 => (any::<Index>(), 1_u8..).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        2 => (any::<Index>(), any::<Index>()).prop_map(|(one, other)| Damage::Cut(one, other)),
        2 => (any::<Index>(), any::<Index>(), 1..40_usize).prop_map(|(one, other, times)| Damage::Repeat(one, other, times)),
        5 => (any::<Index>(), piece).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        2 => (any::<Index>(), part).prop_map(|(at, part)| Damage::Insert(at, part)),
        1 => (any::<Index>(), brackets, 1..200_usize)
            .prop_map(|(at, (open, close), times)| Damage::Nest(at, open, close, times)),
        1 => any::<Index>().prop_map(Damage::End),
    ];
    (text, prop::collection::vec(damage, 0..6)).prop_map(|(text, damages)| {
        let mut bytes = text.into_bytes();
        damages.iter().for_each(|damage| damage.to(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

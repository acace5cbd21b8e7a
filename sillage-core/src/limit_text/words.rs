//! A provider's words as they are read: one way of writing for each sign, cut into numbers, words and marks.

/// Bytes of a text that are read; providers write a line or two, and what a megabyte holds besides is not theirs.
const READ: usize = 1 << 20;

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Letters; a new piece begins at each capital within a word, so that `resetsAt` is two.
    Word,
    /// Digits, with a fraction or an exponent where there is one.
    Number {
        value: f64,
        /// Digits before the fraction.
        digits: usize,
        /// It is these digits and no more.
        whole: bool,
    },
    /// Digits that are no number: a version, an address.
    Dotted,
    /// A sign.
    Mark(char),
    /// A sentence ends here.
    Break,
}

/// A word, number or sign of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub(super) kind: Kind,
    /// In lower case.
    pub(super) text: String,
    /// Where it stands in the text as it was read.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Nothing is between it and the piece before it.
    pub(super) glued: bool,
}

/// A text in pieces.
#[derive(Debug)]
pub(super) struct Words {
    /// As it was read: plain signs for the many that look alike.
    pub(super) plain: String,
    pub(super) pieces: Vec<Piece>,
}

/// Words after which a full stop ends nothing.
const SHORTENED: [&str; 42] = [
    "approx", "ca", "min", "mins", "hr", "hrs", "sec", "secs", "h", "m", "s", "d", "a", "p", "jan", "feb",
    "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "mon", "tue", "tues", "wed",
    "thu", "thur", "thurs", "fri", "sat", "sun", "no", "est", "e", "g", "ms", "vs",
];

impl Words {
    /// Reads a text, as far as one is read.
    pub(super) fn of(text: &str) -> Self {
        let plain = plain(bounded(text));
        let pieces = pieces(&plain);
        Self { plain, pieces }
    }

    /// The word at a place.
    pub(super) fn word(&self, at: usize) -> Option<&str> {
        let piece = self.pieces.get(at)?;
        (piece.kind == Kind::Word).then_some(piece.text.as_str())
    }

    /// The sign at a place.
    pub(super) fn mark(&self, at: usize) -> Option<char> {
        match self.pieces.get(at)?.kind {
            Kind::Mark(mark) => Some(mark),
            Kind::Word | Kind::Number { .. } | Kind::Dotted | Kind::Break => None,
        }
    }

    /// The number at a place, whatever its form.
    pub(super) fn number(&self, at: usize) -> Option<f64> {
        match self.pieces.get(at)?.kind {
            Kind::Number { value, .. } => Some(value),
            Kind::Word | Kind::Dotted | Kind::Mark(_) | Kind::Break => None,
        }
    }

    /// The whole number at a place, when it has one of these counts of digits.
    pub(super) fn digits(&self, at: usize, counts: impl std::ops::RangeBounds<usize>) -> Option<i64> {
        let piece = self.pieces.get(at)?;
        match piece.kind {
            Kind::Number {
                digits, whole: true, ..
            } if counts.contains(&digits) => piece.text.parse().ok(),
            Kind::Number { .. } | Kind::Word | Kind::Dotted | Kind::Mark(_) | Kind::Break => None,
        }
    }

    pub(super) fn is_number(&self, at: usize) -> bool {
        self.number(at).is_some()
    }

    pub(super) fn is_glued(&self, at: usize) -> bool {
        self.pieces.get(at).is_some_and(|piece| piece.glued)
    }

    pub(super) fn is_break(&self, at: usize) -> bool {
        self.pieces.get(at).is_none_or(|piece| piece.kind == Kind::Break)
    }

    /// The first piece that begins at this place of the text or after it.
    pub(super) fn piece_at(&self, place: usize) -> usize {
        self.pieces.partition_point(|piece| piece.start < place)
    }
}

fn bounded(text: &str) -> &str {
    let mut end = text.len().min(READ);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// One way of writing: plain spaces, dashes, quotes and digits; no colours and no invisible signs; what JSON escapes
/// is read as it was meant.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => match signs.peek().copied() {
                Some('n' | 'r' | 't') => {
                    signs.next();
                    plain.push('\n');
                }
                Some('"' | '/' | '\\') => {}
                Some('u') => {
                    signs.next();
                    let code: String = signs.clone().take(4).collect();
                    match u32::from_str_radix(&code, 16).ok().and_then(char::from_u32) {
                        Some(meant) => {
                            signs.nth(3);
                            push(&mut plain, meant);
                        }
                        None => plain.push_str("\\u"),
                    }
                }
                Some(_) | None => plain.push('\\'),
            },
            // A terminal's colours: `ESC [ … letter`.
            '\u{1b}' => {
                if signs.next_if_eq(&'[').is_some() {
                    while signs.next_if(|sign| !('@'..='~').contains(sign)).is_some() {}
                    signs.next();
                }
            }
            sign => push(&mut plain, sign),
        }
    }
    plain
}

fn push(plain: &mut String, sign: char) {
    match sign {
        '\n' => plain.push('\n'),
        sign if sign.is_whitespace() => plain.push(' '),
        '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{feff}'
        | '\u{ad}' => {}
        sign if sign.is_control() => plain.push(' '),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => plain.push('-'),
        '\u{2018}' | '\u{2019}' | '\u{2032}' => plain.push('\''),
        '\u{201c}' | '\u{201d}' => plain.push('"'),
        '\u{2236}' => plain.push(':'),
        '\u{2248}' | '\u{223c}' => plain.push('~'),
        '½' => plain.push_str(if plain.ends_with(|last: char| last.is_ascii_digit()) {
            ".5"
        } else {
            "0.5"
        }),
        '\u{ff01}'..='\u{ff5e}' => plain.push(char::from_u32(u32::from(sign) - 0xfee0).unwrap_or(sign)),
        sign => plain.push(sign),
    }
}

fn pieces(plain: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0;
    let mut glued = false;
    while let Some(sign) = plain[at..].chars().next() {
        let rest = &plain[at..];
        if sign == ' ' || sign == '_' {
            glued = sign == '_';
            at += 1;
            continue;
        }
        let (kind, length) = if sign.is_ascii_digit() {
            number(rest)
        } else if sign.is_alphabetic() {
            (Kind::Word, word(rest))
        } else if ends_sentence(sign, rest, &pieces) {
            (Kind::Break, sign.len_utf8())
        } else {
            (Kind::Mark(sign), sign.len_utf8())
        };
        pieces.push(Piece {
            kind,
            text: rest[..length].to_lowercase(),
            start: at,
            end: at + length,
            glued,
        });
        glued = sign != '\n';
        at += length;
    }
    pieces
}

/// Bytes of the word that the text begins with.
fn word(rest: &str) -> usize {
    let mut small = false;
    rest.char_indices()
        .find(|(_, sign)| {
            let begins = small && sign.is_uppercase();
            small = sign.is_lowercase();
            !sign.is_alphabetic() || begins
        })
        .map_or(rest.len(), |(at, _)| at)
}

/// The number that the text begins with, and its bytes.
fn number(rest: &str) -> (Kind, usize) {
    let bytes = rest.as_bytes();
    let run = |from: usize| {
        bytes[from.min(bytes.len())..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut end = run(0);
    let mut written = rest[..end].to_owned();
    // Thousands: `1,200`, but not `0,200`.
    while run(0) <= 3 && bytes.first() != Some(&b'0') && bytes.get(end) == Some(&b',') && run(end + 1) == 3 {
        written.push_str(&rest[end + 1..end + 4]);
        end += 4;
    }
    let digits = written.len();
    let mut whole = written.len() == end;
    if bytes.get(end) == Some(&b'.') && run(end + 1) > 0 {
        let fraction = run(end + 1);
        written.push_str(&rest[end..end + 1 + fraction]);
        end += 1 + fraction;
        whole = false;
        if bytes.get(end) == Some(&b'.') && run(end + 1) > 0 {
            while bytes.get(end) == Some(&b'.') && run(end + 1) > 0 {
                end += 1 + run(end + 1);
            }
            return (Kind::Dotted, end);
        }
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let power = run(end + 1 + sign);
        if power > 0 {
            written.push_str(&rest[end..end + 1 + sign + power]);
            end += 1 + sign + power;
            whole = false;
        }
    }
    let value = written.parse().unwrap_or(f64::INFINITY);
    (Kind::Number { value, digits, whole }, end)
}

fn ends_sentence(sign: char, rest: &str, before: &[Piece]) -> bool {
    let next = rest[sign.len_utf8()..].chars().next();
    match sign {
        '!' | '?' | ';' | '。' => true,
        '\n' => next == Some('\n'),
        '.' => {
            let ends = next.is_none_or(|next| next.is_whitespace() || next == '"' || next == ')');
            let shortened = before
                .last()
                .is_some_and(|last| last.kind == Kind::Word && SHORTENED.contains(&last.text.as_str()));
            ends && !shortened
        }
        _ => false,
    }
}

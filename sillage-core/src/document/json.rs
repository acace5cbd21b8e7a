//! A strict reader of JSON (RFC 8259) that keeps the place of every value.
//!
//! Stricter than what is common: a key given twice is an error, since it is nearly always a slip whose other half
//! would be lost in silence.

use std::collections::BTreeSet;

use super::{Key, MAX_DEPTH, Node, Place, Unreadable, Value};
use crate::fault::FaultCode;

/// Reads one JSON value that fills the whole text, white space and a leading byte order mark apart.
/// Places are told as if the text began at `start`.
///
/// # Errors
/// The first thing that is not JSON, a key given twice or anything after the value, as [`FaultCode::Syntax`];
/// more than [`MAX_DEPTH`] lists and maps in each other, as [`FaultCode::TooDeep`].
pub fn read(text: &str, start: Place) -> Result<Node, Unreadable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        text,
        at: 0,
        marked: 0,
        mark: start,
    };
    reader.skip_space();
    let node = reader.value(0)?;
    reader.skip_space();
    match reader.rest().chars().next() {
        None => Ok(node),
        Some(found) => Err(reader.wrong(format!("`{}` after the end of the value", found.escape_debug()))),
    }
}

struct Reader<'a> {
    text: &'a str,
    /// The next byte to read; always between two characters.
    at: usize,
    /// How far `mark` has been counted; never past `at`, so that counting places costs one pass in all.
    marked: usize,
    /// The place of the byte at `marked`.
    mark: Place,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Node, Unreadable> {
        let place = self.place();
        let value = match self.peek() {
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'a'..=b'z') => self.word()?,
            Some(_) | None => return Err(self.unexpected("a value")),
        };
        Ok(Node { place, value })
    }

    fn map(&mut self, depth: usize) -> Result<Value, Unreadable> {
        self.enter(depth)?;
        let mut entries = Vec::new();
        if self.take(b'}') {
            return Ok(Value::Map(entries));
        }
        loop {
            let place = self.place();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a key in double quotes"));
            }
            let key = Key {
                place,
                name: self.string()?,
            };
            self.skip_space();
            if !self.take(b':') {
                return Err(self.unexpected("`:` after the key"));
            }
            self.skip_space();
            entries.push((key, self.value(depth + 1)?));
            if !self.goes_on(b'}', "`,` or `}`")? {
                break;
            }
        }
        match repeated(&entries) {
            None => Ok(Value::Map(entries)),
            Some(key) => Err(syntax(
                format!("the key `{}` is given twice", key.name),
                key.place,
            )),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, Unreadable> {
        self.enter(depth)?;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if !self.goes_on(b']', "`,` or `]`")? {
                return Ok(Value::List(items));
            }
        }
    }

    /// Steps over the opening bracket, unless that is one level too many.
    fn enter(&mut self, depth: usize) -> Result<(), Unreadable> {
        if depth == MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} levels of lists and maps in each other");
            return Err(Unreadable {
                code: FaultCode::TooDeep,
                message,
                place: Some(self.place()),
            });
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    /// After an entry: steps over a comma (true) or over `close` (false).
    fn goes_on(&mut self, close: u8, expected: &str) -> Result<bool, Unreadable> {
        self.skip_space();
        if self.take(close) {
            return Ok(false);
        }
        if !self.take(b',') {
            return Err(self.unexpected(expected));
        }
        self.skip_space();
        if self.peek() == Some(close) {
            return Err(self.wrong(format!("`{}` after a comma", char::from(close))));
        }
        Ok(true)
    }

    fn string(&mut self) -> Result<String, Unreadable> {
        let opening = self.place();
        self.at += 1;
        let mut string = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.bytes().position(|b| b == b'"' || b == b'\\' || b < 0x20);
            let Some(plain) = plain else {
                return Err(syntax("this text in quotes is never closed".into(), opening));
            };
            string.push_str(&rest[..plain]);
            self.at += plain;
            match rest.as_bytes()[plain] {
                b'"' => {
                    self.at += 1;
                    return Ok(string);
                }
                b'\\' => string.push(self.escape()?),
                b'\n' | b'\r' => return Err(self.wrong(r"line break within quotes: write it as `\n`".into())),
                other => {
                    return Err(self.wrong(format!(
                        r"control character within quotes: write it as `\u{other:04x}`"
                    )));
                }
            }
        }
    }

    /// One escape sequence, a surrogate pair counting as one.
    fn escape(&mut self) -> Result<char, Unreadable> {
        let code = *self.text.as_bytes().get(self.at + 1).unwrap_or(&b' ');
        let character = match code {
            b'"' | b'\\' | b'/' => char::from(code),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(self.wrong(r"unknown escape after `\`: write a backslash as `\\`".into())),
        };
        self.at += 2;
        Ok(character)
    }

    fn unicode_escape(&mut self) -> Result<char, Unreadable> {
        let first = self.code_unit(self.at);
        let second = first
            .filter(|unit| (0xd800..0xdc00).contains(unit))
            .and_then(|_| self.code_unit(self.at + 6));
        let units = first.into_iter().chain(second);
        let Some(Ok(character)) = char::decode_utf16(units).next() else {
            return Err(
                self.wrong(r"`\u` needs four hexadecimal digits, and surrogates come in pairs".into())
            );
        };
        self.at += 6 * character.len_utf16();
        Ok(character)
    }

    /// The UTF-16 code unit that `\uXXXX` at the byte `at` stands for.
    fn code_unit(&self, at: usize) -> Option<u16> {
        let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
        let all_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| all_hex)
    }

    fn number(&mut self) -> Result<Value, Unreadable> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(Value::Number(self.text[start..self.at].to_owned()))
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), Unreadable> {
        let count = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return Err(self.unexpected("a digit"));
        }
        self.at += count;
        Ok(())
    }

    fn word(&mut self) -> Result<Value, Unreadable> {
        let rest = self.rest();
        let end = rest
            .bytes()
            .position(|b| !b.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        let value = match &rest[..end] {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => return Err(self.unexpected("a value")),
        };
        self.at += end;
        Ok(value)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    fn skip_space(&mut self) {
        self.at += self
            .rest()
            .bytes()
            .take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'))
            .count();
    }

    fn place(&mut self) -> Place {
        self.mark = self.mark.after(&self.text[self.marked..self.at]);
        self.marked = self.at;
        self.mark
    }

    fn unexpected(&mut self, expected: &str) -> Unreadable {
        let found = match self.rest().chars().next() {
            None => "the text ends".to_owned(),
            Some(found) => format!("there is `{}`", found.escape_debug()),
        };
        self.wrong(format!("expected {expected}, but {found}"))
    }

    fn wrong(&mut self, message: String) -> Unreadable {
        let place = self.place();
        syntax(message, place)
    }
}

fn syntax(message: String, place: Place) -> Unreadable {
    Unreadable {
        code: FaultCode::Syntax,
        message,
        place: Some(place),
    }
}

/// The first key that was there before.
fn repeated(entries: &[(Key, Node)]) -> Option<&Key> {
    let mut seen = BTreeSet::new();
    entries
        .iter()
        .map(|(key, _)| key)
        .find(|key| !seen.insert(key.name.as_str()))
}

#[cfg(test)]
mod tests;

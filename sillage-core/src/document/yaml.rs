//! YAML 1.2 with the core schema (<https://yaml.org/spec/1.2.2/#103-core-schema>), from parser events.
//!
//! Events are folded on a stack of our own: no recursion, so that no text can exhaust the call stack, and every
//! bound is kept while reading rather than after it. Aliases are copied where they stand, within a budget.

use std::collections::{BTreeMap, HashMap};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::{Key, MAX_DEPTH, Node, Place, Unreadable, Value, check_size};
use crate::fault::FaultCode;

/// What aliases may add to any document, in units of [`Built::weight`]...
const ALIAS_ALLOWANCE: u64 = 100_000;
/// ...and for each byte of the text, so that large files may share as freely as small ones.
const ALIAS_ALLOWANCE_A_BYTE: u64 = 8;

/// Reads one YAML document. A text without any is an empty map.
///
/// Quoted and block scalars are texts; plain ones follow the core schema. A plain key is the text that was
/// written, whatever it looks like.
///
/// # Errors
/// [`FaultCode::TooLarge`] over [`super::MAX_BYTES`], [`FaultCode::TooDeep`] over [`MAX_DEPTH`] levels,
/// [`FaultCode::AliasBomb`] when aliases would multiply the text, [`FaultCode::Syntax`] for all else: a text that
/// does not parse, a key given twice, a list or map as a key, a second document, a tag outside the core schema.
pub fn read(text: &str) -> Result<Node, Unreadable> {
    check_size(text.len())?;
    let mut tree = Tree {
        open: Vec::new(),
        root: None,
        documents: 0,
        anchors: HashMap::new(),
        alias_budget: ALIAS_ALLOWANCE + ALIAS_ALLOWANCE_A_BYTE * text.len() as u64,
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| from_scan_error(&error))?;
        tree.take(event, place_of(span))?;
    }
    Ok(tree.root.unwrap_or(Node {
        place: Place::START,
        value: Value::Map(Vec::new()),
    }))
}

/// The tree as far as it has been read.
struct Tree {
    /// Lists and maps that have begun and not ended, outermost first.
    open: Vec<Open>,
    root: Option<Node>,
    documents: u32,
    /// Anchored values by the parser's number for them. One that is not there yet has not ended.
    anchors: HashMap<usize, Built>,
    /// How much weight copies of anchored values may still add.
    alias_budget: u64,
}

/// A list or map that has begun.
struct Open {
    place: Place,
    /// The parser's number for its anchor; 0 for none.
    anchor: usize,
    /// Levels of lists and maps inside it, so far.
    height: usize,
    weight: u64,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map {
        entries: Vec<(Key, Node)>,
        /// The line of each key, to tell of a second one in constant work.
        lines: BTreeMap<String, u32>,
        /// A key that waits for its value.
        key: Option<Key>,
    },
}

/// A whole value and what copying it costs.
#[derive(Clone)]
struct Built {
    node: Node,
    /// Levels of lists and maps, itself included.
    height: usize,
    /// Its values, plus its bytes of text.
    weight: u64,
}

impl Tree {
    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), Unreadable> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => self.begin_document(place),
            Event::Alias(anchor) => self.repeat(anchor, place),
            Event::Scalar(text, style, anchor, tag) => {
                if self.awaits_key() {
                    return self.begin_entry(text.into_owned(), style, place);
                }
                let value = scalar(&text, style, tag.as_deref(), place)?;
                let weight = 1 + text.len() as u64;
                self.put(
                    Built {
                        node: Node { place, value },
                        height: 0,
                        weight,
                    },
                    anchor,
                    place,
                )
            }
            Event::SequenceStart(anchor, tag) => {
                check_tag(tag.as_deref(), "seq", place)?;
                self.begin(Content::List(Vec::new()), anchor, place)
            }
            Event::MappingStart(anchor, tag) => {
                check_tag(tag.as_deref(), "map", place)?;
                let content = Content::Map {
                    entries: Vec::new(),
                    lines: BTreeMap::new(),
                    key: None,
                };
                self.begin(content, anchor, place)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(place),
        }
    }

    fn begin_document(&mut self, place: Place) -> Result<(), Unreadable> {
        self.documents += 1;
        if self.documents > 1 {
            return Err(syntax(
                "a second document starts here, and one is expected",
                place,
            ));
        }
        Ok(())
    }

    fn awaits_key(&self) -> bool {
        matches!(
            self.open.last(),
            Some(Open {
                content: Content::Map { key: None, .. },
                ..
            })
        )
    }

    fn begin(&mut self, content: Content, anchor: usize, place: Place) -> Result<(), Unreadable> {
        if self.awaits_key() {
            return Err(syntax("a list or map cannot be a key, write a text", place));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(too_deep(place));
        }
        self.open.push(Open {
            place,
            anchor,
            height: 0,
            weight: 1,
            content,
        });
        Ok(())
    }

    fn begin_entry(&mut self, name: String, style: ScalarStyle, place: Place) -> Result<(), Unreadable> {
        if name.is_empty() && style == ScalarStyle::Plain {
            return Err(syntax("a key is missing before `:`", place));
        }
        let Some(Open {
            content: Content::Map { lines, key, .. },
            weight,
            ..
        }) = self.open.last_mut()
        else {
            return Ok(());
        };
        if let Some(first) = lines.insert(name.clone(), place.line) {
            let message = format!("the key `{name}` is given twice, first on line {first}");
            return Err(syntax(&message, place));
        }
        *weight += name.len() as u64;
        *key = Some(Key { place, name });
        Ok(())
    }

    fn end(&mut self, place: Place) -> Result<(), Unreadable> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = match open.content {
            Content::List(items) => Value::List(items),
            Content::Map { entries, .. } => Value::Map(entries),
        };
        let node = Node {
            place: open.place,
            value,
        };
        self.put(
            Built {
                node,
                height: open.height + 1,
                weight: open.weight,
            },
            open.anchor,
            place,
        )
    }

    /// Puts a whole value where the innermost open list or map awaits one; keeps a copy when it has an anchor.
    fn put(&mut self, built: Built, anchor: usize, place: Place) -> Result<(), Unreadable> {
        if anchor > 0 {
            self.spend(built.weight, place)?;
            self.anchors.insert(anchor, built.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(or_empty_map(built.node)),
            Some(open) => {
                open.height = open.height.max(built.height);
                open.weight = open.weight.saturating_add(built.weight);
                match &mut open.content {
                    Content::List(items) => items.push(built.node),
                    Content::Map { entries, key, .. } => {
                        if let Some(key) = key.take() {
                            entries.push((key, built.node));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn repeat(&mut self, anchor: usize, place: Place) -> Result<(), Unreadable> {
        let Some(original) = self.anchors.get(&anchor) else {
            let message = "this alias stands inside the value that it repeats, which has no end".to_owned();
            return Err(Unreadable {
                code: FaultCode::AliasBomb,
                message,
                place: Some(place),
            });
        };
        if self.open.len() + original.height > MAX_DEPTH {
            return Err(too_deep(place));
        }
        let weight = original.weight;
        self.spend(weight, place)?;
        let Some(copy) = self.anchors.get(&anchor).cloned() else {
            return Ok(());
        };
        if !self.awaits_key() {
            return self.put(copy, 0, place);
        }
        match copy.node.value {
            Value::Text(name) => self.begin_entry(name, ScalarStyle::DoubleQuoted, place),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => Err(syntax(
                "this alias stands for a key and does not repeat a text",
                place,
            )),
        }
    }

    fn spend(&mut self, weight: u64, place: Place) -> Result<(), Unreadable> {
        match self.alias_budget.checked_sub(weight) {
            Some(left) => {
                self.alias_budget = left;
                Ok(())
            }
            None => Err(Unreadable {
                code: FaultCode::AliasBomb,
                message: "aliases repeat too much of this file, write the values out".to_owned(),
                place: Some(place),
            }),
        }
    }
}

/// A document that holds nothing (`---` alone) is an empty map, like a file that holds nothing.
fn or_empty_map(root: Node) -> Node {
    match root.value {
        Value::Null => Node {
            place: root.place,
            value: Value::Map(Vec::new()),
        },
        Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => root,
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, place: Place) -> Result<Value, Unreadable> {
    let Some(tag) = tag else {
        return Ok(match style {
            ScalarStyle::Plain => plain(text),
            ScalarStyle::SingleQuoted
            | ScalarStyle::DoubleQuoted
            | ScalarStyle::Literal
            | ScalarStyle::Folded => Value::Text(text.to_owned()),
        });
    };
    // `!` alone is the tag of a scalar that is not to be resolved: a text (YAML 1.2.2, 6.9.1).
    if tag.handle.is_empty() && tag.suffix == "!" {
        return Ok(Value::Text(text.to_owned()));
    }
    let value = plain(text);
    let fits = tag.is_yaml_core_schema()
        && match tag.suffix.as_str() {
            "str" => return Ok(Value::Text(text.to_owned())),
            "int" | "float" => matches!(value, Value::Number(_)),
            "bool" => matches!(value, Value::Bool(_)),
            "null" => matches!(value, Value::Null),
            _ => false,
        };
    if fits {
        Ok(value)
    } else {
        Err(unsupported_tag(tag, place))
    }
}

/// A plain scalar under the core schema (YAML 1.2.2, 10.3.2).
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if is_number(text) => Value::Number(text.to_owned()),
        _ => Value::Text(text.to_owned()),
    }
}

fn is_number(text: &str) -> bool {
    if let Some(octal) = text.strip_prefix("0o") {
        return !octal.is_empty() && octal.bytes().all(|b| matches!(b, b'0'..=b'7'));
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit());
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || is_decimal(unsigned)
}

/// `( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_decimal(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (
            mantissa,
            Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)),
        ),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

fn check_tag(tag: Option<&Tag>, expected: &str, place: Place) -> Result<(), Unreadable> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == expected) => {
            Err(unsupported_tag(tag, place))
        }
        Some(_) | None => Ok(()),
    }
}

fn unsupported_tag(tag: &Tag, place: Place) -> Unreadable {
    let name: String = tag.suffix.chars().take(40).collect();
    syntax(
        &format!("the tag `{name}` does not fit this value, leave it out"),
        place,
    )
}

fn from_scan_error(error: &ScanError) -> Unreadable {
    let place = Place {
        line: number(error.marker().line()),
        column: number(error.marker().col() + 1),
    };
    // The scanner gives up on flow collections at a depth of its own, which is past ours.
    if error.info().contains("recursion limit") {
        return too_deep(place);
    }
    syntax(&format!("this is not YAML: {}", error.info()), place)
}

fn too_deep(place: Place) -> Unreadable {
    Unreadable {
        code: FaultCode::TooDeep,
        message: format!("lists and maps nest over {MAX_DEPTH} levels here, flatten them"),
        place: Some(place),
    }
}

fn syntax(message: &str, place: Place) -> Unreadable {
    Unreadable {
        code: FaultCode::Syntax,
        message: message.to_owned(),
        place: Some(place),
    }
}

fn place_of(span: Span) -> Place {
    Place {
        line: number(span.start.line()),
        column: number(span.start.col() + 1),
    }
}

/// A text is far shorter than `u32::MAX` lines and columns; see [`super::MAX_BYTES`].
fn number(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;

//! Fenced code blocks, by the rules of CommonMark 0.31 (section 4.5), at the top level of a text.

use std::ops::Range;

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) kind: SectionKind,
    /// Its bytes in the answer; without the fences for a block.
    pub(super) content: Range<usize>,
}

/// What a part of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionKind {
    /// Text between blocks, or a block that names no language.
    Prose,
    /// A block whose language is JSON.
    Json,
    /// A block of another language.
    Foreign,
}

/// An opening fence.
struct Fence {
    mark: u8,
    length: usize,
    kind: SectionKind,
}

/// Divides an answer into prose and fenced blocks, in order. A block that is never closed runs to the end.
pub(super) fn sections(answer: &str) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut start = 0;
    let mut open: Option<Fence> = None;
    let mut line_start = 0;
    for line in answer.split_inclusive('\n') {
        let line_end = line_start + line.len();
        let kind = open.as_ref().map_or(SectionKind::Prose, |fence| fence.kind);
        let next = match &open {
            None => opening(line).map(Some),
            Some(fence) => closes(line, fence).then_some(None),
        };
        if let Some(next) = next {
            sections.push(Section {
                kind,
                content: start..line_start,
            });
            open = next;
            start = line_end;
        }
        line_start = line_end;
    }
    let kind = open.map_or(SectionKind::Prose, |fence| fence.kind);
    sections.push(Section {
        kind,
        content: start..answer.len(),
    });
    sections
}

fn opening(line: &str) -> Option<Fence> {
    let (mark, length, info) = fence_run(line)?;
    if mark == b'`' && info.contains('`') {
        return None;
    }
    let kind = match info.split_whitespace().next() {
        None => SectionKind::Prose,
        Some(language) if language.eq_ignore_ascii_case("json") => SectionKind::Json,
        Some(_) => SectionKind::Foreign,
    };
    Some(Fence { mark, length, kind })
}

fn closes(line: &str, fence: &Fence) -> bool {
    fence_run(line).is_some_and(|(mark, length, rest)| {
        mark == fence.mark && length >= fence.length && rest.trim().is_empty()
    })
}

/// A run of three or more marks after at most three spaces, and what follows it in the line.
fn fence_run(line: &str) -> Option<(u8, usize, &str)> {
    let unindented = line.trim_start_matches(' ');
    let mark = *unindented.as_bytes().first()?;
    let length = unindented.bytes().take_while(|byte| *byte == mark).count();
    let is_fence = line.len() - unindented.len() <= 3 && matches!(mark, b'`' | b'~') && length >= 3;
    is_fence.then(|| (mark, length, &unindented[length..]))
}

//! Paths as agents write them.

use std::path::{Component, Path, PathBuf};

/// Longest path, in bytes, that Linux takes.
const LONGEST: usize = 4096;

/// Folders in which a path means something else to each process that looks at it.
const OWN_VIEWS: [&str; 4] = ["/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// The absolute path that an agent means by what it wrote, `..` and links not resolved. None for what cannot be told
/// from here: nothing, `~` and variables that only a shell would expand, blanks around it, control characters,
/// addresses other than files of this machine, and places that differ from one process to the next.
#[must_use]
pub fn absolute(workspace: &Path, named: &Path) -> Option<PathBuf> {
    let text = named.to_str()?;
    let text = match address(text) {
        Address::None => text.to_owned(),
        Address::File(path) => path,
        Address::Other => return None,
    };
    let odd = text.is_empty()
        || text.len() > LONGEST
        || text.trim() != text
        || text.starts_with(['~', '$'])
        || text.chars().any(char::is_control)
        || climbs_by_backslash(&text);
    if odd {
        return None;
    }
    let path = workspace.join(&text);
    (path.is_absolute() && !is_own_view(&path)).then_some(path)
}

enum Address {
    None,
    /// A file of this machine.
    File(String),
    Other,
}

fn address(text: &str) -> Address {
    let Some((scheme, rest)) = text.split_once(':') else {
        return Address::None;
    };
    if scheme.eq_ignore_ascii_case("file") {
        return file(rest).map_or(Address::Other, Address::File);
    }
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    if is_scheme && rest.starts_with("//") {
        Address::Other
    } else {
        Address::None
    }
}

/// The path of a file URI (RFC 8089), from what follows `file:`.
fn file(rest: &str) -> Option<String> {
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, _) = rest.split_once('/')?;
            (host.is_empty() || host.eq_ignore_ascii_case("localhost")).then_some(&rest[host.len()..])?
        }
        None => rest,
    };
    (path.starts_with('/') && !path.contains(['?', '#'])).then(|| decoded(path))?
}

/// `%20` and the like undone; none where that makes no text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut left = text.bytes();
    while let Some(byte) = left.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let code = digit(left.next())? * 16 + digit(left.next())?;
        bytes.push(u8::try_from(code).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// `..\` is a part of a name here, and a way out for a tool that takes it for a separator.
fn climbs_by_backslash(text: &str) -> bool {
    text.split('/')
        .any(|name| name.contains('\\') && name.split('\\').any(|part| part == ".."))
}

fn is_own_view(path: &Path) -> bool {
    let mut names = path
        .components()
        .filter(|component| !matches!(component, Component::RootDir | Component::CurDir));
    let process = names.next() == Some(Component::Normal("proc".as_ref()))
        && names.next().is_some_and(|name| {
            let name = name.as_os_str().to_string_lossy();
            matches!(&*name, "self" | "thread-self" | "..") || name.bytes().all(|b| b.is_ascii_digit())
        });
    process || OWN_VIEWS.iter().any(|view| path.starts_with(view))
}

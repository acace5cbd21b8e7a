//! Names that reach git's command line or our folders, checked before they do.

use sillage_core::ports::workspace::WorkspaceError;

use super::failed;

/// A branch's full reference.
///
/// # Errors
/// When git-check-ref-format(1) would refuse the name as a branch, it is longer than 200 bytes, git elsewhere takes it
/// for something else (`HEAD`, `@`, `refs/…`), or it holds characters that cannot be seen and change what is read.
pub(crate) fn branch_reference(branch: &str) -> Result<String, WorkspaceError> {
    let reference = format!("refs/heads/{branch}");
    let else_read = branch.starts_with('-') || branch.starts_with("refs/") || matches!(branch, "HEAD" | "@");
    if else_read || branch.len() > 200 || branch.chars().any(is_unseen) || !is_reference(&reference) {
        return Err(failed(
            "check-ref-format",
            format!("`{branch}` cannot be a branch's name"),
        ));
    }
    Ok(reference)
}

/// Whether a character has no shape and changes how those around it are shown: marks of direction, joiners, breaks.
fn is_unseen(c: char) -> bool {
    matches!(u32::from(c),
        0x80..=0x9f | 0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff
        | 0xfff9..=0xfffb | 0xe0000..=0xe007f)
}

/// Whether a full reference is one that only we and the agent of its worktree write.
pub(crate) fn is_ours(reference: &str) -> bool {
    reference.starts_with("refs/heads/sillage/") || reference.starts_with("refs/sillage/")
}

/// The rules of git-check-ref-format(1), in its order; a name of one level is refused too.
fn is_reference(name: &str) -> bool {
    let parts_fit = name
        .split('/')
        .all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"));
    let bytes_fit = name
        .bytes()
        .all(|byte| byte > b' ' && byte != 0x7f && !b"~^:?*[\\".contains(&byte));
    parts_fit
        && name.contains('/')
        && bytes_fit
        && !name.contains("..")
        && !name.ends_with('.')
        && !name.contains("@{")
}

/// A commit's full hash: 40 hexadecimal digits (SHA-1) or 64 (SHA-256).
///
/// # Errors
/// When it is anything else: names and short hashes can be read in more than one way.
pub(crate) fn full_hash(hash: &str) -> Result<&str, WorkspaceError> {
    let fits = matches!(hash.len(), 40 | 64)
        && hash
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if fits {
        Ok(hash)
    } else {
        Err(failed(
            "rev-parse",
            format!("`{hash}` is not a commit's full hash"),
        ))
    }
}

/// A run's or a step's name as one folder name: `agent/sub-agent` becomes `agent+sub-agent`, so that the folder of
/// a sub-agent never lies within its coordinator's.
///
/// # Errors
/// When a part is empty, longer than 100 bytes, starts with a dot or a hyphen, ends with a dot or `.lock`, or holds
/// anything but letters, digits, `.`, `_` and `-`.
pub(crate) fn folder_name(name: &str) -> Result<String, WorkspaceError> {
    let fits = |part: &str| {
        !part.is_empty()
            && part.len() <= 100
            && !part.starts_with(['.', '-'])
            && !part.ends_with('.')
            && !part.contains("..")
            && !part.ends_with(".lock")
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    if name.split('/').all(fits) {
        Ok(name.replace('/', "+"))
    } else {
        Err(failed(
            "worktree add",
            format!("`{name}` cannot be a run's or a step's name"),
        ))
    }
}

#[cfg(test)]
mod tests;

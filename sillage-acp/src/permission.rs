//! Where the paths of a permission request really lead: what the policy (`sillage_core::policy`) asks of the world.

use std::path::{Component, Path, PathBuf};

/// Characters of a request's title that are kept.
pub(crate) const LONGEST_TITLE: usize = 500;

/// Paths of a request that are shown; all of them are judged.
pub(crate) const MOST_PATHS: usize = 20;

/// The real place of an absolute path: what exists of it made canonical, links followed, and the rest appended. None
/// for what cannot be told: `..` beyond what exists, a dangling link, a loop, a place that cannot be looked at.
pub(crate) fn real(path: &Path) -> Option<PathBuf> {
    let mut existing = path.to_owned();
    let mut rest = Vec::new();
    loop {
        match std::fs::canonicalize(&existing) {
            Ok(real) => return Some(rest.iter().rev().fold(real, |real, name| real.join(name))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if existing.is_symlink() {
                    return None;
                }
                let Some(Component::Normal(name)) = existing.components().next_back() else {
                    return None;
                };
                rest.push(name.to_owned());
                existing.pop();
            }
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests;

//! Names that reach git's command line or our folders, checked before they do.

use sillage_core::ports::workspace::WorkspaceError;

use super::failed;

/// A branch's full reference.
///
/// # Errors
/// When git-check-ref-format(1) would refuse the name as a branch, or it is longer than 200 bytes.
pub(crate) fn branch_reference(branch: &str) -> Result<String, WorkspaceError> {
    let reference = format!("refs/heads/{branch}");
    if branch.starts_with('-') || branch == "HEAD" || branch.len() > 200 || !is_reference(&reference) {
        return Err(failed(
            "check-ref-format",
            format!("`{branch}` cannot be a branch's name"),
        ));
    }
    Ok(reference)
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn refuses_names_that_git_refuses_or_reads_as_options() {
        for name in [
            "",
            "-f",
            "--upload-pack=x",
            "HEAD",
            "a..b",
            "a b",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a.",
            "a@{1}",
            "a\u{7f}",
            "a\nb",
        ] {
            assert!(branch_reference(name).is_err(), "{name:?}");
        }
        for name in [
            "main",
            "sillage/steps/r-1/a",
            "feature/ünï#1",
            "a@b",
            "refs/heads/x",
            "aa/b-2",
        ] {
            assert_eq!(branch_reference(name).unwrap(), format!("refs/heads/{name}"));
        }
    }

    #[test]
    fn takes_full_hashes_only() {
        assert!(full_hash(&"0a".repeat(20)).is_ok() && full_hash(&"0a".repeat(32)).is_ok());
        for hash in ["HEAD", "abc", "--all", &"0A".repeat(20), &"zz".repeat(20)] {
            assert!(full_hash(hash).is_err(), "{hash}");
        }
    }

    #[test]
    fn keeps_a_sub_agents_folder_out_of_its_coordinators() {
        assert_eq!(folder_name("a/b").unwrap(), "a+b");
        for name in [
            "", "..", "a/..", "/a", "a//b", "-a", "a b", "a+b", "a/.git", "a\0",
        ] {
            assert!(folder_name(name).is_err(), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn a_folder_name_is_one_plain_component(name in "\\PC{0,20}") {
            if let Ok(folder) = folder_name(&name) {
                let path = std::path::Path::new(&folder);
                prop_assert_eq!(path.components().count(), 1);
                prop_assert!(matches!(path.components().next(), Some(std::path::Component::Normal(_))));
            }
        }
    }
}

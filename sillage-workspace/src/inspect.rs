//! Looking at a repository before launch.

use std::collections::HashSet;
use std::path::Path;

use sillage_core::ports::workspace::{Repository, WorkspaceError};

use crate::folders::io;
use crate::git::{Git, programs_named_by};
use crate::repository::{Found, Repo, discover, unsupported};

/// What is known of the repository that holds `folder`.
pub(crate) async fn inspect(git: &Git, folder: &Path) -> Result<Option<Repository>, WorkspaceError> {
    let Some(found) = discover(git, folder).await? else {
        return Ok(None);
    };
    let head = git
        .call("rev-parse --verify --quiet", &found.root)
        .await?
        .arg("HEAD^{commit}")
        .output()
        .await?;
    if head.code != Some(0) {
        return Err(unsupported(
            &found.root,
            "it has no commit yet: make a first one, then launch",
        ));
    }
    let branch = git
        .call("symbolic-ref --quiet HEAD", &found.root)
        .await?
        .output()
        .await?;
    let branch = String::from_utf8_lossy(&branch.stdout)
        .trim_end()
        .strip_prefix("refs/heads/")
        .map(str::to_owned);
    let warnings = warnings(git, &found).await?;
    Ok(Some(Repository {
        head: String::from_utf8_lossy(&head.stdout).trim_end().to_owned(),
        root: found.root,
        common_dir: found.common,
        branch,
        warnings,
        uncommitted: 0,
    }))
}

impl Repo<'_> {
    /// How many files of the person's checkout are changed, staged or new, and in no commit. Files that git ignores do
    /// not count. Their index is not written; 0 when it cannot be read.
    pub(crate) async fn uncommitted_by_person(&self) -> u32 {
        match self.try_uncommitted_by_person().await {
            Ok(files) => files,
            Err(error) => {
                tracing::warn!(repository = %self.root.display(), %error, "uncommitted files could not be counted");
                0
            }
        }
    }

    async fn try_uncommitted_by_person(&self) -> Result<u32, WorkspaceError> {
        let aside = tempfile::tempdir_in(&self.folders.own).map_err(|error| io(&self.folders.own, &error))?;
        let index = aside.path().join("index");
        let own = self.admin_of(&self.root).unwrap_or_else(|| self.common.clone());
        // Its dates spare git from reading every file.
        if !self.copy_index(&own.join("index"), &index)? {
            return Ok(0);
        }
        let Some(head) = self.pseudo(&own, "HEAD").await? else {
            return Ok(0);
        };
        let call = |words| self.files(&self.root, &index, words);
        // 1: some file differs, which the next calls name.
        call("update-index -q --ignore-submodules --refresh")
            .await?
            .holds()
            .await?;
        let staged = call("diff-index --cached --name-only -z --ignore-submodules=all").await?;
        let changed = call("diff-files --name-only -z --ignore-submodules=all").await?;
        let new = call("ls-files --others --exclude-standard -z").await?;
        let mut names = staged.arg(head).bytes().await?;
        names.extend(changed.bytes().await?);
        names.extend(new.bytes().await?);
        let files: HashSet<&[u8]> = names
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .collect();
        Ok(u32::try_from(files.len()).unwrap_or(u32::MAX))
    }
}

async fn warnings(git: &Git, found: &Found) -> Result<Vec<String>, WorkspaceError> {
    let mut warnings = Vec::new();
    let listed = git
        .call("config --null --show-scope --list", &found.root)
        .await?
        .bytes()
        .await?;
    let settings = parse_scoped(&listed);
    let local = |(scope, _): &&(String, String)| scope == "local" || scope == "worktree";
    let mut programs: Vec<&str> = settings
        .iter()
        .filter(local)
        .map(|(_, key)| key.as_str())
        .filter(|key| programs_named_by(key))
        .collect();
    programs.dedup();
    if !programs.is_empty() {
        warnings.push(format!(
            "settings of this repository name programs, which are not run here: {}",
            programs.join(", ")
        ));
    }
    if settings
        .iter()
        .filter(local)
        .any(|(_, key)| key == "extensions.partialclone")
    {
        warnings.push("this is a partial clone: what was not fetched yet cannot be read here".to_owned());
    }
    if found.root.join(".gitmodules").is_file() {
        warnings
            .push("submodules are left empty in worktrees, and their commits are not recorded".to_owned());
    }
    let attributes = std::fs::read_to_string(found.root.join(".gitattributes")).unwrap_or_default();
    if attributes.contains("filter=lfs") {
        warnings.push("files of Git LFS are pointers in worktrees: their content is not fetched".to_owned());
    }
    if found.common.join("refs/heads/sillage").is_file() {
        warnings
            .push("the branch `sillage` leaves no room for branches below that name: rename it".to_owned());
    }
    Ok(warnings)
}

/// Reads `config --null --show-scope --list`: `scope\0key\nvalue\0`; pairs of scope and key.
fn parse_scoped(bytes: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(bytes);
    let parts: Vec<&str> = text.split('\0').collect();
    let pair = |pair: &[&str]| match pair {
        [scope, entry] => Some(((*scope).to_owned(), entry.lines().next()?.to_owned())),
        _ => None,
    };
    parts.chunks(2).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_scopes_and_keys() {
        let read = parse_scoped(b"global\0user.name\nA\nB\0local\0alias.st\n!x\0");
        let pair = |scope: &str, key: &str| (scope.to_owned(), key.to_owned());
        assert_eq!(read, [pair("global", "user.name"), pair("local", "alias.st")]);
    }
}

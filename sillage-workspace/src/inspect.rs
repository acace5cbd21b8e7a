//! Looking at a repository before launch.

use std::collections::HashSet;
use std::path::Path;

use sillage_core::ports::workspace::{Repository, WorkspaceError};

use crate::confined::bounded;
use crate::folders::io;
use crate::git::{Git, programs_named_by};
use crate::repository::{Found, Repo, discover, unsupported};

/// The most that is read of a file of attributes, in bytes; git reads no more itself.
const MOST_ATTRIBUTES: u64 = 100 * 1024 * 1024;

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
    let settings = git
        .call("config --null --show-scope --list", &found.root)
        .await?
        .bytes()
        .await?;
    let settings = parse_scoped(&settings);
    refuse_no_room(git, &found).await?;
    if settings.iter().any(|(_, key)| makes_partial(key)) {
        refuse_missing_files(git, &found).await?;
    }
    let warnings = warnings(&found, &settings);
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

/// A branch under one of these names leaves no room for ours below it.
async fn refuse_no_room(git: &Git, found: &Found) -> Result<(), WorkspaceError> {
    const FOLDERS: [&str; 3] = [
        "refs/heads/sillage",
        "refs/heads/sillage/steps",
        "refs/heads/sillage/subs",
    ];
    let call = git.call("for-each-ref --format=%(refname)", &found.root).await?;
    let told = call.args(FOLDERS).text().await?;
    match told.lines().find(|name| FOLDERS.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let branch = name.trim_start_matches("refs/heads/");
            let why = format!("its branch `{branch}` leaves no room for branches below that name: rename it");
            Err(unsupported(&found.root, why))
        }
    }
}

/// Whether a setting of this name says that objects may be missing here.
fn makes_partial(key: &str) -> bool {
    key == "extensions.partialclone" || (key.starts_with("remote.") && key.ends_with(".promisor"))
}

/// A partial clone fetches files when they are needed, which we do not: those of the last commit must be here.
async fn refuse_missing_files(git: &Git, found: &Found) -> Result<(), WorkspaceError> {
    let call = git
        .call(
            "rev-list --quiet --objects --no-walk --missing=print",
            &found.root,
        )
        .await?;
    let told = call.long().arg("HEAD").text().await?;
    let missing = told.lines().filter(|line| line.starts_with('?')).count();
    if missing == 0 {
        return Ok(());
    }
    let s = if missing == 1 { "" } else { "s" };
    let why = format!(
        "it is a partial clone, and {missing} file{s} of its last commit are not here: fetch them, e.g. by `git \
         archive HEAD >/dev/null`, or clone it whole"
    );
    Err(unsupported(&found.root, why))
}

fn warnings(found: &Found, settings: &[(String, String)]) -> Vec<String> {
    let mut warnings = Vec::new();
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
    if settings.iter().any(|(_, key)| makes_partial(key)) {
        warnings.push("this is a partial clone: what was not fetched yet cannot be read here".to_owned());
    }
    if settings.iter().any(|(_, key)| key == "core.sparsecheckout") {
        warnings.push("worktrees hold all files, whatever this sparse checkout leaves out".to_owned());
    }
    if found.root.join(".gitmodules").is_file() {
        warnings
            .push("submodules are left empty in worktrees, and their commits are not recorded".to_owned());
    }
    let attributes = bounded(&found.root, ".gitattributes", MOST_ATTRIBUTES).unwrap_or_default();
    let attributes = String::from_utf8_lossy(&attributes);
    if attributes.contains("filter=lfs") {
        warnings.push("files of Git LFS are pointers in worktrees: their content is not fetched".to_owned());
    }
    warnings
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

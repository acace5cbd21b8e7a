//! [`Repo`]: one repository, opened for one operation: where it is, what it is set to, and its references.

use std::path::{Path, PathBuf};

use sillage_core::ports::workspace::WorkspaceError;

use crate::folders::{Folders, io};
use crate::git::{Call, Git, failed, names};
use crate::locks;
use crate::settings::Settings;

/// The most that a file of ignored patterns may hold, in bytes.
const MOST_MIRRORED: u64 = 16 * 1024 * 1024;

/// Files of a git folder that git reads in most calls.
const READ_BY_GIT: &[&str] = &[
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "info/grafts",
    "objects/info/alternates",
    "packed-refs",
    "shallow",
];
/// Files of a worktree's part that git reads when it lists them all.
const READ_OF_A_WORKTREE: &[&str] = &["HEAD", "commondir", "config.worktree", "gitdir", "locked"];

/// What discovery tells of a folder.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) root: PathBuf,
    pub(crate) common: PathBuf,
    /// `sha1` or `sha256`.
    pub(crate) format: String,
}

/// Looks for the repository that holds `folder`, as git does for the person: with git's own check of who owns it.
///
/// # Errors
/// [`WorkspaceError::Unsupported`] for a bare one or a folder within a git folder, [`WorkspaceError::Git`] for what
/// git refuses, e.g. another owner or an unknown extension.
pub(crate) async fn discover(git: &Git, folder: &Path) -> Result<Option<Found>, WorkspaceError> {
    read_discovery(discovery(git, folder).await?, folder).await
}

/// The same for a folder that is known to be the top of a working tree: nothing above it is looked at, and its
/// settings cannot say that its files lie elsewhere or that it has none.
async fn discover_at(git: &Git, root: &Path) -> Result<Option<Found>, WorkspaceError> {
    let call = discovery(git, root).await?.env("GIT_WORK_TREE", root);
    let above = root.parent().unwrap_or(root);
    read_discovery(call.env("GIT_CEILING_DIRECTORIES", above), root).await
}

async fn discovery(git: &Git, folder: &Path) -> Result<Call, WorkspaceError> {
    let call = git
        .call("rev-parse", folder)
        .await?
        .args([
            "--path-format=absolute",
            "--is-bare-repository",
            "--show-object-format",
        ])
        .args(["--git-common-dir", "--show-toplevel"])
        // So that a bare one is told by name: rev-parse starts nothing that its settings name.
        .set("safe.bareRepository", "all");
    Ok(call)
}

async fn read_discovery(call: Call, folder: &Path) -> Result<Option<Found>, WorkspaceError> {
    let output = call.output().await?;
    let words = output.words();
    let text = String::from_utf8(output.stdout.clone())
        .map_err(|_| unsupported(folder, "its path is not UTF-8: move it"))?;
    let lines: Vec<&str> = text.lines().collect();
    match (output.code, lines.as_slice()) {
        (Some(0), ["false", format, common, root]) => Ok(Some(Found {
            root: canonical(Path::new(root))?,
            common: canonical(Path::new(common))?,
            format: (*format).to_owned(),
        })),
        (Some(0), _) => Err(unsupported(folder, "its path holds a line break: move it")),
        (_, ["true", ..]) => Err(unsupported(folder, "it is bare: clone it with a working tree")),
        (_, ["false", ..]) => Err(unsupported(
            folder,
            "this is within its git folder: name its working tree",
        )),
        (_, _) if words.contains("not a git repository (or any") => match with_git_folder(folder) {
            Some(above) => Err(unsupported(
                above,
                "git does not take its `.git` for a repository: mend that (`git status` there tells more), or move \
                 it away",
            )),
            None => Ok(None),
        },
        (_, _) => Err(output.failure("rev-parse")),
    }
}

/// The folder, or the nearest above it, that has a `.git`, whatever that is.
fn with_git_folder(folder: &Path) -> Option<&Path> {
    let has = |above: &&Path| above.join(".git").symlink_metadata().is_ok();
    folder.ancestors().find(has)
}

/// An error that names the repository.
pub(crate) fn unsupported(path: &Path, why: impl Into<String>) -> WorkspaceError {
    WorkspaceError::Unsupported {
        path: path.to_owned(),
        why: why.into(),
    }
}

fn canonical(path: &Path) -> Result<PathBuf, WorkspaceError> {
    path.canonicalize().map_err(|error| io(path, &error))
}

/// A worktree as git lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Listed {
    pub(crate) path: PathBuf,
    /// The full reference of its branch; none: detached.
    pub(crate) branch: Option<String>,
    /// The reason of its lock, which may be empty.
    pub(crate) lock: Option<String>,
}

/// A repository, opened for one operation.
#[derive(Debug)]
pub(crate) struct Repo<'a> {
    git: &'a Git,
    pub(crate) root: PathBuf,
    pub(crate) common: PathBuf,
    pub(crate) folders: Folders,
    pub(crate) settings: Settings,
    shadow: PathBuf,
}

impl<'a> Repo<'a> {
    /// Opens the repository whose working tree is exactly `root`: never one above it.
    ///
    /// # Errors
    /// [`WorkspaceError::Unsupported`] when there is none or it is elsewhere; the others by cause.
    pub(crate) async fn open(git: &'a Git, data: &Path, root: &Path) -> Result<Self, WorkspaceError> {
        let there = root.canonicalize().ok().filter(|there| there.is_dir());
        let found = match &there {
            Some(there) => {
                refuse_pipes(&there.join(".git"), READ_BY_GIT)?;
                discover_at(git, there).await?
            }
            None => None,
        };
        let found =
            found.ok_or_else(|| unsupported(root, "it is not the top of a git working tree any more"))?;
        refuse_pipes(&found.common, READ_BY_GIT)?;
        let folders = Folders::of(data, &found.common)?;
        let shadow = folders.shadow(&found.format);
        let mut repo = Self {
            git,
            root: found.root,
            common: found.common,
            folders,
            settings: Settings::default(),
            shadow,
        };
        repo.settings = Settings::read(repo.refs("config").await?).await?;
        repo.mirror_excludes()?;
        repo.prepare_shadow(&found.format).await?;
        Ok(repo)
    }

    /// The git folder of ours that lends its settings, hooks and attributes (none) to every call that reads or writes
    /// files and commits; only the objects are the repository's.
    async fn prepare_shadow(&self, format: &str) -> Result<(), WorkspaceError> {
        if !self.shadow.join("HEAD").is_file() {
            // Made aside and renamed: whoever comes second finds it whole.
            let aside =
                tempfile::tempdir_in(&self.folders.own).map_err(|error| io(&self.folders.own, &error))?;
            let made = aside.path().join("shadow");
            let call = self.git.call("init", &self.folders.own).await?;
            let call = call
                .args(["--quiet", "--bare", "--template="])
                .arg(format!("--object-format={format}"));
            call.arg("--").arg(&made).bytes().await?;
            let renamed = std::fs::rename(&made, &self.shadow);
            renamed.or_else(|error| {
                if self.shadow.join("HEAD").is_file() {
                    Ok(())
                } else {
                    Err(io(&self.shadow, &error))
                }
            })?;
        }
        // Patterns of files to ignore and the ends of a shallow history are data; nothing else is taken over.
        mirror(
            &self.common.join("info/exclude"),
            &self.shadow.join("info/exclude"),
        )?;
        mirror(&self.common.join("shallow"), &self.shadow.join("shallow"))
    }

    /// Copies the file of patterns that the settings name: git would wait for a pipe in its place.
    fn mirror_excludes(&mut self) -> Result<(), WorkspaceError> {
        let Some(named) = &self.settings.excludes else {
            return Ok(());
        };
        let file = match (named.strip_prefix("~/"), self.git.home()) {
            (Some(within), Some(home)) => home.join(within),
            (_, _) => self.root.join(named),
        };
        let copy = self.folders.own.join("excludes");
        mirror(&file, &copy)?;
        self.settings.exclude_by(&copy);
        Ok(())
    }

    /// A call on the repository's own git folder, for references and the list of worktrees. Nothing that reads or
    /// writes files may be called so.
    pub(crate) async fn refs(&self, words: &'static str) -> Result<Call, WorkspaceError> {
        let call = self
            .git
            .call(words, &self.folders.own)
            .await?
            .env("GIT_DIR", &self.common)
            // Else the settings could name one, or contradict themselves about it.
            .env("GIT_WORK_TREE", &self.root)
            // A list of worktrees tells no branch of what calls itself bare: who has one checked out would be missed.
            .set("core.bare", "false");
        Ok(self.settings.without_hooks(call))
    }

    /// A call on a worktree's own part of the git folder, for its head.
    pub(crate) async fn head(&self, admin: &Path, words: &'static str) -> Result<Call, WorkspaceError> {
        refuse_pipes(admin, READ_OF_A_WORKTREE)?;
        let at = |call: Call| call.env("GIT_DIR", admin).env("GIT_COMMON_DIR", &self.common);
        let call = at(self.refs(words).await?);
        if !crate::folders::exists(&admin.join("config.worktree")) {
            return Ok(call);
        }
        // It may name hooks of its own.
        let own = Settings::read(at(self.refs("config").await?)).await?;
        Ok(own.without_hooks(call))
    }

    /// A call on the shadow, for commits and trees.
    pub(crate) async fn objects(&self, words: &'static str) -> Result<Call, WorkspaceError> {
        let call = self
            .git
            .call(words, &self.folders.own)
            .await?
            .env("GIT_DIR", &self.shadow);
        Ok(self
            .settings
            .applied_to(call)
            .env("GIT_OBJECT_DIRECTORY", self.common.join("objects")))
    }

    /// A call on the shadow with an index of ours and a worktree's files.
    pub(crate) async fn files(
        &self,
        worktree: &Path,
        index: &Path,
        words: &'static str,
    ) -> Result<Call, WorkspaceError> {
        let call = self.git.call(words, worktree).await?.env("GIT_DIR", &self.shadow);
        let call = self
            .settings
            .applied_to(call)
            .env("GIT_OBJECT_DIRECTORY", self.common.join("objects"));
        Ok(call
            .env("GIT_WORK_TREE", worktree)
            .env("GIT_INDEX_FILE", index)
            .long())
    }

    /// What a full reference points to, if it exists.
    pub(crate) async fn tip(&self, reference: &str) -> Result<Option<String>, WorkspaceError> {
        Ok(self
            .references(reference)
            .await?
            .into_iter()
            .find(|(name, _)| name == reference)
            .map(|(_, tip)| tip))
    }

    /// The references named `prefix` or below it.
    pub(crate) async fn references(&self, prefix: &str) -> Result<Vec<(String, String)>, WorkspaceError> {
        let call = self
            .refs("for-each-ref")
            .await?
            .arg("--format=%(refname) %(objectname)")
            .arg("--")
            .arg(prefix);
        let text = call.text().await?;
        let pair = |line: &str| {
            line.rsplit_once(' ')
                .map(|(name, tip)| (name.to_owned(), tip.to_owned()))
        };
        Ok(text.lines().filter_map(pair).collect())
    }

    /// Points a reference to `new` if it points to `old` (none: if it does not exist); whether it did.
    ///
    /// # Errors
    /// When git refuses for another reason than another value.
    pub(crate) async fn move_ref(
        &self,
        reference: &str,
        new: &str,
        old: Option<&str>,
    ) -> Result<bool, WorkspaceError> {
        self.refuse_links(&[reference.to_owned(), format!("logs/{reference}")])?;
        let zeros = "0".repeat(new.len());
        let call = self
            .refs("update-ref")
            .await?
            // A reference of ours that was made a name for another one, e.g. for the person's branch, must not move
            // that one.
            .args(["--no-deref", "-m", "sillage", "--create-reflog", "--"])
            .args([reference, new, old.unwrap_or(&zeros)]);
        let lock = self.common.join(format!("{reference}.lock"));
        let output = if names::is_ours(reference) {
            locks::past(call, &lock).await?
        } else {
            call.output().await?
        };
        if output.code == Some(0) {
            return Ok(true);
        }
        if self.tip(reference).await?.as_deref() == old {
            return Err(output.failure("update-ref"));
        }
        Ok(false)
    }

    /// Fails when one of these paths in the git folder, or a folder on its way, is a link: git would write where it
    /// leads. A link that is put there between this look and git's is followed; what git then writes are hashes and
    /// our own name, nothing that the repository chooses.
    pub(crate) fn refuse_links<P: AsRef<Path>>(&self, within: &[P]) -> Result<(), WorkspaceError> {
        for path in within {
            let mut now = self.common.clone();
            for part in path.as_ref() {
                now.push(part);
                if std::fs::symlink_metadata(&now).is_ok_and(|found| found.is_symlink()) {
                    let why = "this is a link, and git would write where it leads: remove it, then resume";
                    return Err(unsupported(&now, why));
                }
            }
        }
        Ok(())
    }

    /// The worktrees that git lists, the main one included.
    pub(crate) async fn worktrees(&self) -> Result<Vec<Listed>, WorkspaceError> {
        for part in std::fs::read_dir(self.common.join("worktrees"))
            .into_iter()
            .flatten()
            .flatten()
        {
            refuse_pipes(&part.path(), READ_OF_A_WORKTREE)?;
        }
        let bytes = self
            .refs("worktree list")
            .await?
            .args(["--porcelain", "-z"])
            .bytes()
            .await?;
        Ok(parse_worktrees(&bytes))
    }

    /// Whether `tip` is `commit` or descends from it.
    pub(crate) async fn contains(&self, tip: &str, commit: &str) -> Result<bool, WorkspaceError> {
        self.objects("merge-base --is-ancestor")
            .await?
            .args([commit, tip])
            .holds()
            .await
    }

    /// The tree of a commit.
    pub(crate) async fn tree(&self, commit: &str) -> Result<String, WorkspaceError> {
        self.objects("rev-parse --verify")
            .await?
            .arg(format!("{commit}^{{tree}}"))
            .text()
            .await
    }

    /// Fails unless the commit exists.
    pub(crate) async fn require(&self, commit: &str) -> Result<(), WorkspaceError> {
        let there = self
            .objects("cat-file -e")
            .await?
            .arg(format!("{commit}^{{commit}}"))
            .output()
            .await?;
        if there.code == Some(0) {
            return Ok(());
        }
        Err(failed(
            "cat-file",
            format!("there is no commit {commit} in {}", self.root.display()),
        ))
    }

    /// How many commits the first have that the others have not.
    pub(crate) async fn count(&self, of: &[&str], without: &[&str]) -> Result<u32, WorkspaceError> {
        let call = self.objects("rev-list --count").await?.args(of);
        let text = call
            .args(without.iter().map(|commit| format!("^{commit}")))
            .text()
            .await?;
        text.parse()
            .map_err(|_| failed("rev-list", format!("printed `{text}` for a number")))
    }

    /// Makes a commit in the person's name. It is on no branch yet.
    pub(crate) async fn make_commit(
        &self,
        tree: &str,
        parents: &[&str],
        message: &str,
    ) -> Result<String, WorkspaceError> {
        let mut call = self.objects("commit-tree").await?;
        for parent in parents {
            call = call.args(["-p", *parent]);
        }
        let call = self.settings.signed(call.arg(tree));
        // git refuses a NUL in a message.
        call.stdin(message.replace('\0', "")).text().await
    }
}

/// Fails when one of these files is a pipe, a socket or a device, be it through a link: git would wait for it until
/// its deadline, and everybody else for git.
fn refuse_pipes(folder: &Path, files: &[&str]) -> Result<(), WorkspaceError> {
    for file in files {
        let file = folder.join(file);
        if std::fs::metadata(&file).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            let why =
                "this is a pipe, a socket or a device, and git would wait for it: remove it, then resume";
            return Err(unsupported(&file, why));
        }
    }
    Ok(())
}

/// Makes `copy` the same as `file`, if need be; a missing file removes the copy. A person may keep such a file
/// elsewhere and link to it.
fn mirror(file: &Path, copy: &Path) -> Result<(), WorkspaceError> {
    let wanted = crate::folders::read_bounded(file, MOST_MIRRORED)?.unwrap_or_default();
    let had = std::fs::read(copy).unwrap_or_default();
    if wanted == had {
        return Ok(());
    }
    if wanted.is_empty() {
        return crate::folders::remove_file(copy);
    }
    crate::folders::replace(copy, &wanted)
}

/// Reads `worktree list --porcelain -z`: lines end with NUL, entries with an empty line.
fn parse_worktrees(bytes: &[u8]) -> Vec<Listed> {
    let mut all = Vec::new();
    for line in bytes.split(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(line);
        let (key, value) = text.split_once(' ').unwrap_or((&text, ""));
        if key == "worktree" {
            all.push(Listed {
                path: PathBuf::from(value),
                ..Listed::default()
            });
        } else if let Some(last) = all.last_mut() {
            match key {
                "branch" => last.branch = Some(value.to_owned()),
                "locked" => last.lock = Some(value.to_owned()),
                _ => {}
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_gits_list_of_worktrees() {
        let listed = parse_worktrees(
            b"worktree /r\0HEAD 1\0branch refs/heads/main\0\0worktree /w a\0HEAD 2\0detached\0locked gone away\0\0",
        );
        let main = Listed {
            path: "/r".into(),
            branch: Some("refs/heads/main".into()),
            lock: None,
        };
        let other = Listed {
            path: "/w a".into(),
            branch: None,
            lock: Some("gone away".into()),
        };
        assert_eq!(listed, [main, other]);
    }
}

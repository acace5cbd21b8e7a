//! `sillage worktrees remove`: moves worktrees to the trash that nothing holds, or that a person insists on.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use sillage::SystemClock;
use sillage::core::ports::Clock as _;
use sillage::core::ports::workspace::Hold;
use sillage::workspace::{Gone, Insistence, Surveyed, TakenAway};

use super::found::{Found, Runs, State, Where, at_work, integration};
use super::told::{Left, Removed};
use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::output::{Output, Tone};
use crate::terminal::visible;

/// Arguments of `worktrees remove`.
#[derive(Debug, Args)]
pub(super) struct Remove {
    /// Worktrees: the path of one, a run, or a run and a step as `RUN/STEP`.
    #[arg(required = true, value_name = "PATH|RUN[/STEP]")]
    which: Vec<String>,
    /// Files that git ignores do not hold a worktree: they stay in the trash for seven days.
    #[arg(long)]
    ignored: bool,
    /// Remove what files, commits or a git operation hold, too: all that a commit can hold is kept under
    /// `refs/sillage/rescue` first. A process that works there or a lock always holds.
    #[arg(long)]
    force: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    /// Whether all of them are removed.
    ok: bool,
    removed: Vec<Removed<'a>>,
    held: Vec<Left<'a>>,
}

/// What became of one.
pub(crate) enum Fate {
    Gone(Gone),
    /// It stays, for what its survey tells now, or for this.
    Stays(Option<String>),
}

/// Removes those that were named; the exit code is 1 when some stay.
pub(super) fn run(arguments: &Remove, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let data = global.data_folder()?;
    let insistence = match (arguments.force, arguments.ignored) {
        (true, _) => Insistence::Everything,
        (false, true) => Insistence::IgnoredFiles,
        (false, false) => Insistence::None,
    };
    drive::block_on(async {
        let mut found = Found::look(&data, Where::Everywhere).await?;
        let mut chosen = choose(&arguments.which, std::mem::take(&mut found.left))?;
        let held = chosen.iter().filter(|left| !left.held_by.is_empty()).count();
        if arguments.force && held > 0 && !global.yes {
            let question = format!("Remove {held} that something holds, and keep what can be kept?");
            if !output.confirm(&question)? {
                return Ok(Exit::Interrupted);
            }
        }
        let runs = Runs::read(&data, chosen.iter().map(|left| left.run.as_str())).await?;
        let mut fates = Vec::new();
        for left in &mut chosen {
            let fate = match runs.state(&left.run) {
                State::AtWork => Fate::Stays(Some(at_work(&left.run))),
                State::Over | State::Cut => take_away(&found, left, insistence).await,
            };
            fates.push(fate);
        }
        tell(&chosen, &fates, output)
    })
}

/// Removes one. What holds it now is put into its survey.
pub(crate) async fn take_away(found: &Found, left: &mut Surveyed, insistence: Insistence) -> Fate {
    let Some(worktree) = &left.worktree else {
        let why = "no record tells which branch was made for it";
        return Fate::Stays(Some(why.to_owned()));
    };
    let taken = found
        .workspace
        .take_away(worktree, &integration(&left.run), insistence)
        .await;
    match taken {
        Ok(TakenAway::Gone(gone)) => return Fate::Gone(gone),
        Ok(TakenAway::Held(holds)) => left.held_by = holds,
        Err(error) => left.held_by = vec![Hold::Changed(error.to_string())],
    }
    Fate::Stays(None)
}

fn tell(chosen: &[Surveyed], fates: &[Fate], output: &mut Output) -> Result<Exit, Failure> {
    let now = SystemClock.now();
    let (mut removed, mut held) = (Vec::new(), Vec::new());
    for (left, fate) in chosen.iter().zip(fates) {
        match fate {
            Fate::Gone(gone) => removed.push(Removed::of(left, branch_of(left), gone)),
            Fate::Stays(why) => held.push(Left::of(left, now).staying(why.as_deref())),
        }
    }
    for removed in &removed {
        removed.tell(output)?;
    }
    for left in &held {
        left.tell(output)?;
    }
    let ok = held.is_empty();
    if !ok {
        let word = output.paint(Tone::Warning, "not removed");
        let many = if held.len() == 1 {
            "1 worktree stays"
        } else {
            "some worktrees stay"
        };
        output.line(format_args!(
            "{word}: {many}; commit what is worth it, or see `sillage worktrees remove --help`"
        ))?;
    }
    output.json(&Answer { ok, removed, held })?;
    Ok(if ok { Exit::Complete } else { Exit::Failed })
}

/// The branch that was made for a worktree; one that is removed has one.
pub(crate) fn branch_of(left: &Surveyed) -> &str {
    left.worktree
        .as_ref()
        .map(|worktree| worktree.branch.as_str())
        .unwrap_or_default()
}

/// Those that are meant, each once. Every name must mean one at least.
fn choose(which: &[String], left: Vec<Surveyed>) -> Result<Vec<Surveyed>, Failure> {
    for name in which {
        if !left.iter().any(|left| is_meant(name, left)) {
            let words = format!("no worktree of ours is meant by `{}`", visible(name));
            return Err(Failure::new(Kind::Usage, words).hint("`sillage worktrees --all` lists them"));
        }
    }
    let meant = |left: &Surveyed| which.iter().any(|name| is_meant(name, left));
    Ok(left.into_iter().filter(meant).collect())
}

/// Whether a name on the command line means this worktree.
fn is_meant(name: &str, left: &Surveyed) -> bool {
    let by_step = name
        .strip_prefix(left.run.as_str())
        .is_some_and(|rest| rest.is_empty() || rest.strip_prefix('/') == Some(left.step.as_str()));
    by_step || real(Path::new(name)) == left.path
}

/// The path without links, also of a folder that is gone.
fn real(path: &Path) -> PathBuf {
    if let Ok(path) = path.canonicalize() {
        return path;
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => parent
            .canonicalize()
            .map_or_else(|_| absolute.clone(), |parent| parent.join(name)),
        _ => absolute,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surveyed(run: &str, step: &str) -> Surveyed {
        Surveyed {
            run: run.to_owned(),
            step: step.to_owned(),
            worktree: None,
            repository: "/repo".into(),
            path: format!("/data/worktrees/key/{run}/{step}").into(),
            present: true,
            branch: None,
            held_by: vec![],
            processes: vec![],
            content: None,
            disk_bytes: 0,
            made: None,
        }
    }

    #[test]
    fn a_run_means_its_own_and_a_step_means_one() {
        let all = || {
            vec![
                surveyed("r-1", "a"),
                surveyed("r-1", "a/b"),
                surveyed("r-10", "a"),
            ]
        };
        let chosen = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            choose(&names, all()).map(|chosen| chosen.into_iter().map(|left| left.path).collect::<Vec<_>>())
        };
        let path = |rest: &str| PathBuf::from(format!("/data/worktrees/key/{rest}"));
        assert_eq!(chosen(&["r-1"]), Ok(vec![path("r-1/a"), path("r-1/a/b")]));
        assert_eq!(chosen(&["r-1/a"]), Ok(vec![path("r-1/a")]));
        assert_eq!(
            chosen(&["r-1/a/b", "r-10"]),
            Ok(vec![path("r-1/a/b"), path("r-10/a")])
        );
        assert_eq!(
            chosen(&["/data/worktrees/key/r-1/a", "r-1/a"]),
            Ok(vec![path("r-1/a")])
        );
        for name in ["r", "r-1/", "r-2", "/data", "", "r-1/c"] {
            assert!(chosen(&["r-1", name]).is_err(), "{name}");
        }
    }
}

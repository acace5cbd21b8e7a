//! The decision.

use std::fmt;
use std::path::{Path, PathBuf};

use super::protect::Access;
use super::written::absolute;
use super::{Bounds, ToolFacts};
use crate::plain;
use crate::ports::runtime::{PermissionOption, PermissionPolicy};

/// What is answered to a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Let it be done, this once.
    Allow,
    /// Refuse it.
    Refuse(Reason),
    /// A person decides.
    Ask,
}

/// Why a permission is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The session may write nothing, so that it gets no terminal and no edit either (R21).
    ReadOnly,
    /// The place is kept from agents.
    Protected(PathBuf),
    /// No folder of the session grants it there.
    Outside(PathBuf),
    /// Where the path leads cannot be told.
    Unclear(PathBuf),
    /// It names no file and no folder.
    Nothing,
    /// What it would do is not known.
    Unknown,
    /// The policy refuses whatever is not reading.
    Denied,
}

/// What follows `refused:`.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |path: &Path| plain::line(&path.to_string_lossy());
        match self {
            Reason::ReadOnly => f.write_str("the session has no folder to write, so it only reads"),
            Reason::Protected(path) => write!(f, "{} is kept from agents", shown(path)),
            Reason::Outside(path) => write!(
                f,
                "the session's folders do not grant that in {}: add it to the task's `folders` if it should",
                shown(path)
            ),
            Reason::Unclear(path) => write!(f, "where {} leads cannot be told", shown(path)),
            Reason::Nothing => f.write_str("it names no file and no folder"),
            Reason::Unknown => f.write_str("what it would do is not known"),
            Reason::Denied => f.write_str("the run's policy is `deny`"),
        }
    }
}

/// Kinds of tool calls, as ACP names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Search,
    Think,
    Fetch,
    Edit,
    /// `delete` and `move`: what is in a folder goes with it.
    Remove,
    Execute,
    /// `other`, `switch_mode`, a word that is not ACP's, or none.
    Unknown,
}

impl Kind {
    fn of(word: Option<&str>) -> Kind {
        match word {
            Some("read") => Kind::Read,
            Some("search") => Kind::Search,
            Some("think") => Kind::Think,
            Some("fetch") => Kind::Fetch,
            Some("edit") => Kind::Edit,
            Some("delete" | "move") => Kind::Remove,
            Some("execute") => Kind::Execute,
            Some(_) | None => Kind::Unknown,
        }
    }

    /// Whether it can change nothing on this machine.
    fn only_reads(self) -> bool {
        match self {
            Kind::Read | Kind::Search | Kind::Think | Kind::Fetch => true,
            Kind::Edit | Kind::Remove | Kind::Execute | Kind::Unknown => false,
        }
    }
}

/// Decides on a tool call. `real` tells where an absolute path leads: what exists of it with links followed, the rest
/// appended; none when that cannot be told.
///
/// Under `ask` a person decides whatever is not refused by rule: protected places are, and in a session that only reads
/// so is all that is not reading in its folders.
#[must_use]
pub fn decide(bounds: Bounds<'_>, tool: &ToolFacts, real: &dyn Fn(&Path) -> Option<PathBuf>) -> Decision {
    let kind = Kind::of(tool.kind.as_deref());
    let read_only = bounds.folders.write.is_empty();
    if read_only && !kind.only_reads() {
        return Decision::Refuse(Reason::ReadOnly);
    }
    let verdict = judge(bounds, kind, tool, real);
    match (bounds.policy, verdict) {
        (PermissionPolicy::Ask, Err(reason)) if by_rule(&reason, read_only && kind != Kind::Fetch) => {
            Decision::Refuse(reason)
        }
        (PermissionPolicy::Ask, Ok(()) | Err(_)) => Decision::Ask,
        (PermissionPolicy::AllowInFolders, Ok(())) => Decision::Allow,
        (PermissionPolicy::Deny, Ok(())) if kind.only_reads() => Decision::Allow,
        (PermissionPolicy::Deny, Ok(())) => Decision::Refuse(Reason::Denied),
        (PermissionPolicy::AllowInFolders | PermissionPolicy::Deny, Err(reason)) => Decision::Refuse(reason),
    }
}

/// Whether it is refused whoever is asked.
fn by_rule(reason: &Reason, read_only: bool) -> bool {
    match reason {
        Reason::ReadOnly | Reason::Protected(_) => true,
        Reason::Outside(_) | Reason::Unclear(_) | Reason::Nothing => read_only,
        Reason::Unknown | Reason::Denied => false,
    }
}

/// Whether the folders grant what the tool call is about.
fn judge(
    bounds: Bounds<'_>,
    kind: Kind,
    tool: &ToolFacts,
    real: &dyn Fn(&Path) -> Option<PathBuf>,
) -> Result<(), Reason> {
    let workspace = bounds.workspace.to_owned();
    let mut places = tool.paths();
    let access = match kind {
        Kind::Think => return Ok(()),
        Kind::Fetch | Kind::Unknown => return unknown(bounds, &places, real),
        Kind::Read => Access::Read,
        Kind::Search => {
            if places.is_empty() {
                places.push(workspace); // a search without a place is one of the session's folder
            }
            Access::Read
        }
        Kind::Edit => Access::Write,
        Kind::Remove => Access::Remove,
        Kind::Execute => {
            places.push(workspace);
            Access::Command
        }
    };
    if places.is_empty() {
        return Err(Reason::Nothing);
    }
    // Protected places first: they decide even where a person is asked.
    let mut verdict = Ok(());
    for named in &places {
        match look(bounds, named, access, real) {
            Ok(()) => {}
            Err(reason @ Reason::Protected(_)) => return Err(reason),
            Err(reason) => verdict = verdict.and(Err(reason)),
        }
    }
    verdict
}

/// What is not known may write: it is kept from protected places, and judged no further.
fn unknown(
    bounds: Bounds<'_>,
    places: &[PathBuf],
    real: &dyn Fn(&Path) -> Option<PathBuf>,
) -> Result<(), Reason> {
    let looked = places
        .iter()
        .map(|named| look(bounds, named, Access::Write, real));
    for outcome in looked {
        if let Err(reason @ Reason::Protected(_)) = outcome {
            return Err(reason);
        }
    }
    Err(Reason::Unknown)
}

fn look(
    bounds: Bounds<'_>,
    named: &Path,
    access: Access,
    real: &dyn Fn(&Path) -> Option<PathBuf>,
) -> Result<(), Reason> {
    let unclear = || Reason::Unclear(named.to_owned());
    let written = absolute(bounds.workspace, named).ok_or_else(unclear)?;
    // As it is written too: a link may be called `.git`.
    if bounds.protects(&written, access) {
        return Err(Reason::Protected(written));
    }
    let place = real(&written).ok_or_else(unclear)?;
    if bounds.protects(&place, access) {
        return Err(Reason::Protected(place));
    }
    if !bounds.grants(&place, access) {
        return Err(Reason::Outside(place));
    }
    Ok(())
}

/// The option by which a decision is told. Never one that lasts (`allow_always`): what comes later is to be judged
/// again. None: no such option is offered, and the request is answered `cancelled`.
#[must_use]
pub fn option_for(allow: bool, options: &[PermissionOption]) -> Option<&PermissionOption> {
    let kinds: &[&str] = if allow {
        &["allow_once"]
    } else {
        &["reject_once", "reject_always"]
    };
    kinds
        .iter()
        .find_map(|kind| options.iter().find(|option| option.kind == *kind))
}

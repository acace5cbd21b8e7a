//! Worktrees and trash as they are told, to a person and to a program.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use sillage::core::ports::workspace::Hold;
use sillage::core::time::{Timestamp, human};
use sillage::workspace::{Gone, Sign, Surveyed, Trashed};

use super::found::Unknown;
use crate::failure::Failure;
use crate::output::{Output, Tone};
use crate::terminal::visible;

/// A worktree that is left. Dates are milliseconds since 1970 in UTC.
#[derive(Debug, Serialize)]
pub(crate) struct Left<'a> {
    run: &'a str,
    step: &'a str,
    repository: &'a Path,
    path: &'a Path,
    /// Whether its folder is there.
    present: bool,
    /// The branch that its head is on; null: detached.
    branch: Option<&'a str>,
    /// The branch that was made for it; null where no record tells.
    own_branch: Option<&'a str>,
    held_by: Vec<Held<'a>>,
    /// Why it was not removed whatever holds it, e.g. that its run is at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    stays: Option<&'a str>,
    /// `yes`, `by_content` or `not_proved`.
    merged: &'static str,
    /// The branch that has the content; null unless `by_content`.
    merged_into: Option<&'a str>,
    /// `commits`, `each_change`, `same_files` or `one_change`; null unless `by_content`.
    merged_sign: Option<&'static str>,
    disk_bytes: u64,
    made: Option<Timestamp>,
    age_ms: Option<u128>,
}

/// What holds a worktree.
#[derive(Debug, Serialize)]
pub(crate) struct Held<'a> {
    /// `files`, `commits`, `operation`, `process`, `lock`, `nested_repository`, `other_branch` or `changed`.
    kind: &'static str,
    /// The same for a person.
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<&'a Path>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commits: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// The process's program.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<&'a str>,
}

impl<'a> Held<'a> {
    fn of(hold: &'a Hold, left: &'a Surveyed) -> Held<'a> {
        let mut held = Held {
            kind: "changed",
            text: hold.to_string(),
            files: None,
            commits: None,
            operation: None,
            pid: None,
            name: None,
            reason: None,
            path: None,
            head: None,
        };
        match hold {
            Hold::Files(files) => {
                held.kind = "files";
                held.files = Some(files.iter().map(|file| file.as_path()).collect());
            }
            Hold::Commits(commits) => {
                held.kind = "commits";
                held.commits = Some(*commits);
            }
            Hold::Operation(name) => {
                held.kind = "operation";
                held.operation = Some(name);
            }
            Hold::Process(pid) => {
                held.kind = "process";
                held.pid = Some(*pid);
                let known = left.processes.iter().find(|process| process.pid == *pid);
                held.name = known
                    .map(|process| process.name.as_str())
                    .filter(|name| !name.is_empty());
                if let Some(name) = held.name {
                    held.text = format!("process {pid} ({name}) works there");
                }
            }
            Hold::Lock(reason) => {
                held.kind = "lock";
                held.reason = Some(reason);
            }
            Hold::NestedRepository(path) => {
                held.kind = "nested_repository";
                held.path = Some(path);
            }
            Hold::OtherBranch(head) => {
                held.kind = "other_branch";
                held.head = Some(head);
            }
            Hold::Changed(how) => held.reason = Some(how),
            // One that a newer core knows: its words tell it.
            _ => {}
        }
        held
    }
}

impl<'a> Left<'a> {
    /// A worktree as it stands at `now`.
    pub(crate) fn of(left: &'a Surveyed, now: Timestamp) -> Left<'a> {
        // Of what is not as it was made nothing is known.
        let unmerged = |hold: &Hold| matches!(hold, Hold::Commits(_) | Hold::Changed(_));
        let unmerged = left.held_by.iter().any(unmerged);
        let merged = match (unmerged, &left.content) {
            (false, _) => "yes",
            (true, Some(_)) => "by_content",
            (true, None) => "not_proved",
        };
        Left {
            run: &left.run,
            step: &left.step,
            repository: &left.repository,
            path: &left.path,
            present: left.present,
            branch: left.branch.as_deref(),
            own_branch: left.worktree.as_ref().map(|worktree| worktree.branch.as_str()),
            held_by: left.held_by.iter().map(|hold| Held::of(hold, left)).collect(),
            stays: None,
            merged,
            merged_into: left.content.as_ref().map(|content| content.into.as_str()),
            merged_sign: left.content.as_ref().map(|content| word(content.sign)),
            disk_bytes: left.disk_bytes,
            made: left.made,
            age_ms: left.made.map(|made| now.since(made).as_millis()),
        }
    }

    /// The same, with why it was not removed whatever holds it.
    pub(crate) fn staying(self, why: Option<&'a str>) -> Left<'a> {
        Left { stays: why, ..self }
    }

    /// Tells it to a person.
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub(crate) fn tell(&self, output: &mut Output) -> Result<(), Failure> {
        let path = output.paint(Tone::Strong, self.path.display());
        output.line(path)?;
        let branch = self.branch.unwrap_or("a detached head");
        output.line(format_args!(
            "  run {}, step {}, on {}",
            visible(self.run),
            visible(self.step),
            visible(branch)
        ))?;
        let age = self.age_ms.map(|age| {
            let age = Duration::from_millis(u64::try_from(age).unwrap_or(u64::MAX));
            format!(", made {} ago", span(age))
        });
        let there = match self.present {
            true => size(self.disk_bytes),
            false => "its folder is gone".to_owned(),
        };
        output.line(format_args!("  {there}{}", age.unwrap_or_default()))?;
        if let Some(why) = self.stays {
            output.line(format_args!("  stays: {}", visible(why)))?;
        }
        for held in &self.held_by {
            output.line(format_args!("  held: {}", visible(&held.text)))?;
        }
        match (self.merged, self.merged_into) {
            ("by_content", Some(into)) => {
                let how = how(self.merged_sign.unwrap_or_default());
                output.line(format_args!("  merged by content into {}: {how}", visible(into)))?;
            }
            ("not_proved", _) => output.line("  cannot be proved merged")?,
            _ => {}
        }
        if self.held_by.is_empty() && self.stays.is_none() {
            output.line("  nothing holds it: `sillage clean` removes it when its run is over")?;
        }
        Ok(())
    }
}

fn word(sign: Sign) -> &'static str {
    match sign {
        Sign::Commits => "commits",
        Sign::EachChange => "each_change",
        Sign::SameFiles => "same_files",
        Sign::OneChange => "one_change",
    }
}

fn how(sign: &str) -> &'static str {
    match sign {
        "commits" => "it has the commits",
        "each_change" => "it has the same change for each commit",
        "same_files" => "merging would change nothing there",
        _ => "one commit there makes the same change",
    }
}

/// A folder in the trash. Dates are milliseconds since 1970 in UTC.
#[derive(Debug, Serialize)]
pub(crate) struct Trash<'a> {
    path: &'a Path,
    disk_bytes: u64,
    since: Timestamp,
    until: Timestamp,
    run: Option<&'a str>,
    step: Option<&'a str>,
    /// Where it was.
    was: Option<&'a Path>,
    rescued: &'a [String],
}

impl<'a> Trash<'a> {
    pub(crate) fn of(trashed: &'a Trashed) -> Trash<'a> {
        let note = trashed.note.as_ref();
        Trash {
            path: &trashed.path,
            disk_bytes: trashed.disk_bytes,
            since: trashed.since,
            until: trashed.until,
            run: note.map(|note| note.run.as_str()),
            step: note.map(|note| note.step.as_str()),
            was: note.map(|note| note.path.as_path()),
            rescued: note.map_or(&[], |note| note.rescued.as_slice()),
        }
    }

    /// Tells it to a person.
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub(crate) fn tell(&self, output: &mut Output) -> Result<(), Failure> {
        output.line(format_args!("  {}", visible(&self.path.display().to_string())))?;
        let whose = match (self.run, self.step) {
            (Some(run), Some(step)) => format!("run {run}, step {step}, "),
            _ => String::new(),
        };
        output.line(format_args!(
            "    {}{}, deleted after {}",
            visible(&whose),
            size(self.disk_bytes),
            self.until
        ))?;
        Ok(())
    }
}

/// A worktree that was removed. Dates are milliseconds since 1970 in UTC.
#[derive(Debug, Serialize)]
pub(crate) struct Removed<'a> {
    run: &'a str,
    step: &'a str,
    path: &'a Path,
    /// Its own branch, which stays.
    branch: &'a str,
    /// Where its folder is until `until`; null where there was none any more.
    trash: Option<&'a Path>,
    until: Option<Timestamp>,
    rescued: &'a [String],
}

impl<'a> Removed<'a> {
    pub(crate) fn of(left: &'a Surveyed, branch: &'a str, gone: &'a Gone) -> Removed<'a> {
        Removed {
            run: &left.run,
            step: &left.step,
            path: &left.path,
            branch,
            trash: gone.trash.as_ref().map(|(path, _)| path.as_path()),
            until: gone.trash.as_ref().map(|(_, until)| *until),
            rescued: &gone.rescued,
        }
    }

    /// Tells it to a person.
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub(crate) fn tell(&self, output: &mut Output) -> Result<(), Failure> {
        let word = output.paint(Tone::Good, "removed");
        output.line(format_args!(
            "{word}: {}",
            visible(&self.path.display().to_string())
        ))?;
        output.line(format_args!("  branch {} stays", visible(self.branch)))?;
        for rescued in self.rescued {
            output.line(format_args!("  kept under {}", visible(rescued)))?;
        }
        if let (Some(trash), Some(until)) = (self.trash, self.until) {
            let trash = trash.display().to_string();
            output.line(format_args!("  in the trash until {until}: {}", visible(&trash)))?;
        }
        Ok(())
    }
}

/// Tells the repositories that could not be looked at.
///
/// # Errors
/// When standard output cannot be written to.
pub(crate) fn unknown(unknown: &[Unknown], output: &mut Output) -> Result<(), Failure> {
    for unknown in unknown {
        let warning = output.paint(Tone::Warning, "warning");
        let repository = unknown.repository.display().to_string();
        output.line(format_args!(
            "{warning}: {}: {}",
            visible(&repository),
            visible(&unknown.why)
        ))?;
    }
    Ok(())
}

/// Bytes as a person reads them, e.g. `1.5 MB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let mut rest = bytes as f64 / 1000.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if rest < 999.95 {
            break;
        }
        rest /= 1000.0;
        unit = next;
    }
    format!("{rest:.1} {unit}")
}

/// A span as a person reads it, in days from two days on.
fn span(span: Duration) -> String {
    const DAY: u64 = 24 * 60 * 60;
    match span.as_secs() / DAY {
        0 | 1 => human(span),
        days => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use sillage::core::ports::workspace::Worktree;
    use sillage::workspace::{Content, Process};

    use super::*;

    fn surveyed(held_by: Vec<Hold>) -> Surveyed {
        Surveyed {
            run: "r-1".to_owned(),
            step: "a".to_owned(),
            worktree: Some(Worktree {
                repository: "/repo".into(),
                path: "/wt/a".into(),
                branch: "sillage/steps/r-1/a".to_owned(),
                base: "0".repeat(40),
            }),
            repository: "/repo".into(),
            path: "/wt/a".into(),
            present: true,
            branch: None,
            held_by,
            processes: vec![Process {
                pid: 7,
                name: "sleep".to_owned(),
            }],
            content: Some(Content {
                into: "main".to_owned(),
                sign: Sign::OneChange,
            }),
            disk_bytes: 4096,
            made: Some(Timestamp(1000)),
        }
    }

    /// Programs read these: names may be added, and none changed.
    #[test]
    fn the_fields_for_programs_are_these() {
        let held = surveyed(vec![
            Hold::Files(vec!["new".into()]),
            Hold::Commits(2),
            Hold::Operation("merge".into()),
            Hold::Process(7),
            Hold::Lock("mine".into()),
            Hold::NestedRepository("inner".into()),
            Hold::OtherBranch("mine".into()),
            Hold::Changed("is gone".into()),
        ]);
        let told = serde_json::to_value(Left::of(&held, Timestamp(61_000)).staying(Some("so"))).unwrap();
        let expected = serde_json::json!({
            "run": "r-1", "step": "a", "repository": "/repo", "path": "/wt/a", "present": true,
            "branch": null, "own_branch": "sillage/steps/r-1/a", "stays": "so",
            "held_by": [
                { "kind": "files", "text": "1 uncommitted file: new", "files": ["new"] },
                { "kind": "commits", "text": "2 commits that are not merged", "commits": 2 },
                { "kind": "operation", "text": "a merge that is not over", "operation": "merge" },
                { "kind": "process", "text": "process 7 (sleep) works there", "pid": 7, "name": "sleep" },
                { "kind": "lock", "text": "it is locked: mine", "reason": "mine" },
                { "kind": "nested_repository", "text": "a repository within it: inner", "path": "inner" },
                { "kind": "other_branch", "text": "its head is not on its own branch: mine", "head": "mine" },
                { "kind": "changed", "text": "it is not as it was made: is gone", "reason": "is gone" },
            ],
            "merged": "by_content", "merged_into": "main", "merged_sign": "one_change",
            "disk_bytes": 4096, "made": 1000, "age_ms": 60_000,
        });
        assert_eq!(told, expected);

        let mut clean = surveyed(vec![]);
        clean.content = None;
        let told = serde_json::to_value(Left::of(&clean, Timestamp(0))).unwrap();
        assert_eq!(
            (&told["merged"], &told["merged_sign"]),
            (&"yes".into(), &serde_json::Value::Null)
        );

        let gone = Gone {
            trash: Some(("/trash/1".into(), Timestamp(5))),
            rescued: vec!["refs/sillage/rescue/r-1/a/1".to_owned()],
        };
        assert_eq!(
            serde_json::to_value(Removed::of(&clean, "b", &gone)).unwrap(),
            serde_json::json!({
                "run": "r-1", "step": "a", "path": "/wt/a", "branch": "b", "trash": "/trash/1", "until": 5,
                "rescued": ["refs/sillage/rescue/r-1/a/1"],
            })
        );
        let trashed = Trashed {
            path: "/trash/1".into(),
            since: Timestamp(4),
            until: Timestamp(5),
            disk_bytes: 6,
            note: None,
        };
        assert_eq!(
            serde_json::to_value(Trash::of(&trashed)).unwrap(),
            serde_json::json!({
                "path": "/trash/1", "disk_bytes": 6, "since": 4, "until": 5, "run": null, "step": null, "was": null,
                "rescued": [],
            })
        );
    }

    #[test]
    fn sizes_and_ages_are_as_a_person_reads_them() {
        let sizes = [
            0,
            999,
            1000,
            1_540_000,
            999_949_000,
            999_960_000,
            2_000_000_000_000,
        ];
        assert_eq!(
            sizes.map(size),
            [
                "0 bytes",
                "999 bytes",
                "1.0 kB",
                "1.5 MB",
                "999.9 MB",
                "1.0 GB",
                "2.0 TB"
            ]
        );
        let hours = |hours: u64| span(Duration::from_secs(hours * 3600));
        assert_eq!([hours(3), hours(47), hours(48)], ["3h00m", "1d23h", "2 days"]);
    }
}

//! `sillage check`: would a run of this task be accepted? Every fault of the task at once (W11), its project (W1), its
//! folders (W2, W3), and what no check can promise (R22).

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use serde::Serialize;
use sillage::core::document::{self, Format, Node, Value};
use sillage::core::fault::{Fault, FaultCode};
use sillage::core::folders::Folders;
use sillage::core::plan;
use sillage::core::task::{self, Task};
use sillage::look_at_repository;
use sillage::project::{BadFolder, FolderOf, Project};
use sillage::workspace::GitWorkspace;

use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind, with_causes};
use crate::input;
use crate::output::{Output, Tone};
use crate::terminal::visible;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The task file; `-` for standard input.
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

/// What a person must know before launching anything (R22).
pub(crate) const NOT_ISOLATED: &str = "nothing isolates this machine from the agents: they run as you do and can reach whatever \
you can; the folders are what they are told and what their requests are answered by, not a wall";

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    task: &'a str,
    agents: usize,
    links: usize,
    project: ProjectAnswer<'a>,
    folders: &'a Folders,
    /// The command that is run on the merged work at the end.
    check: Option<&'a str>,
    /// Whether models and efforts were held against settings.
    models_checked: bool,
    warnings: &'a [Warning],
    notice: &'static str,
}

#[derive(Serialize)]
struct ProjectAnswer<'a> {
    name: &'a str,
    root: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Path>,
}

/// Something that is no fault of the text and would stop a run all the same.
#[derive(Serialize)]
struct Warning {
    code: &'static str,
    /// The file that names the thing.
    file: String,
    message: String,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
}

/// Checks the task and tells what a run of it would be given.
pub(crate) fn run(arguments: &Check, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let file = arguments.file.as_path();
    let bytes = input::read(file)?;
    // What a gateway offers is known to it alone, and a check asks nobody.
    let settings = global.settings()?.filter(|settings| settings.relais.is_empty());
    let offers = settings.map(|settings| settings.offers());
    let faulty = |faults| Failure::Faulty {
        file: input::name(file),
        faults,
    };
    let text = document::decode(&bytes).map_err(|unreadable| faulty(vec![Fault::from(unreadable)]))?;
    let format = Format::of_file(file);
    let read = task::read(text, format, offers.as_deref());
    // A faulty task is told with its folders, where those can be looked for.
    let Some(lists) = task::read_its_folders(text, format) else {
        return Err(faulty(read.err().unwrap_or_default()));
    };
    let folder = folder_of(file)?;
    let project = match (&read, Project::of(&folder)) {
        (_, Ok(project)) => project,
        (Ok(_), Err(error)) => return Err(error.into()),
        (Err(faults), Err(_)) => return Err(faulty(faults.clone())),
    };
    let (folders, bad) = project.entrust(&folder, &lists);
    let tree = document::read(text, format).ok();
    let unusable = bad.iter().map(|bad| unusable(bad, &project, tree.as_ref()));
    let task = match read {
        Ok(task) if bad.is_empty() => task,
        Ok(_) => return Err(faulty(unusable.collect())),
        Err(mut faults) => {
            faults.extend(unusable);
            // In the order of the text; what has no place in it comes last.
            faults.sort_by_key(|fault| (fault.line.is_none(), fault.line, fault.column));
            return Err(faulty(faults));
        }
    };
    let mut warnings = of_plans(&task, file, tree.as_ref());
    warnings.extend(of_repository(&task, &folders, &project, file)?);

    output.json(&Answer {
        ok: true,
        task: &task.title,
        agents: task.agents.len(),
        links: task.links.len(),
        project: ProjectAnswer {
            name: &project.name,
            root: &project.root,
            file: project.file.as_deref(),
        },
        folders: &folders,
        check: task.check.as_deref(),
        models_checked: offers.is_some(),
        warnings: &warnings,
        notice: NOT_ISOLATED,
    })?;
    tell(&task, &project, &folders, offers.is_some(), output)?;
    for warning in &warnings {
        tell_warning(warning, output)?;
    }
    output.line(format_args!(
        "{}: {NOT_ISOLATED}",
        output.paint(Tone::Warning, "note")
    ))?;
    Ok(Exit::Complete)
}

/// The folder that the task file's paths are relative to: that of the file itself, links resolved.
fn folder_of(file: &Path) -> Result<PathBuf, Failure> {
    let at = if input::is_stdin(file) {
        Path::new(".")
    } else {
        file
    };
    let canonical = at.canonicalize().map_err(|error| Failure::reading(at, &error))?;
    if input::is_stdin(file) {
        return Ok(canonical);
    }
    Ok(canonical
        .parent()
        .map_or_else(|| canonical.clone(), Path::to_owned))
}

fn tell(
    task: &Task,
    project: &Project,
    folders: &Folders,
    models_checked: bool,
    output: &mut Output,
) -> Result<(), Failure> {
    let good = output.paint(Tone::Good, "ok");
    let title = output.paint(Tone::Strong, &task.title);
    output.line(format_args!("{good}: {title}: {}", counts(task)))?;
    let of = if project.file.is_some() {
        ""
    } else {
        " (no project file: the task file's folder)"
    };
    output.line(format_args!(
        "  project    {} in {}{of}",
        visible(&project.name),
        visible(&project.root.to_string_lossy())
    ))?;
    for (grants, folders) in [("may read ", &folders.read), ("may write", &folders.write)] {
        for folder in folders {
            output.line(format_args!("  {grants}  {}", visible(&folder.to_string_lossy())))?;
        }
    }
    if folders.write.is_empty() {
        output.line("  may write  nothing: this task is read-only")?;
    }
    let models = if models_checked {
        "as the settings offer them"
    } else {
        "not checked: there are no settings, or they name a gateway, which a launch asks"
    };
    output.line(format_args!("  models     {models}"))?;
    if let Some(check) = &task.check {
        output.line(format_args!(
            "  check      {}, on the merged work, before a run is complete",
            visible(check)
        ))?;
    }
    Ok(())
}

fn counts(task: &Task) -> String {
    let count = |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    format!(
        "{}, {}",
        count(task.agents.len(), "agent"),
        count(task.links.len(), "link")
    )
}

/// A folder that a run would be refused for.
fn unusable(bad: &BadFolder, project: &Project, task: Option<&Node>) -> Fault {
    let fault = |message, path: String, place: Option<document::Place>| Fault {
        code: FaultCode::UnusableFolder,
        message,
        path,
        line: place.map(|place| place.line),
        column: place.map(|place| place.column),
        suggestion: None,
    };
    match bad.of {
        FolderOf::Task => {
            let path = bad.pointer();
            let place = task.and_then(|tree| find(tree, &path)).map(|node| node.place);
            fault(with_causes(bad), path, place)
        }
        FolderOf::Project => {
            let file = project.file.as_deref().unwrap_or(&project.root);
            let message = format!("{}, which {} names", with_causes(bad), file.display());
            fault(message, String::new(), None)
        }
    }
}

/// Dynamic agents whose plans would all be refused.
fn of_plans(task: &Task, file: &Path, tree: Option<&Node>) -> Vec<Warning> {
    let agents = task.agents.iter().enumerate();
    agents
        .filter(|(_, agent)| plan::rules_out_every_plan(agent))
        .map(|(position, agent)| {
            let path = format!("/agents/{position}/sub_agents/allow");
            let place = tree.and_then(|tree| find(tree, &path)).map(|node| node.place);
            Warning {
                code: "no_plan_possible",
                file: input::name(file),
                message: format!(
                    "every plan of `{}` would be refused: no model and effort of `allow` can come about from what is \
                     delegated and the agent's own `{}` and `{}`",
                    agent.id, agent.model, agent.effort
                ),
                line: place.map(|place| place.line),
                column: place.map(|place| place.column),
                path,
            }
        })
        .collect()
}

/// What a run would say of the repository that the task writes in.
fn of_repository(
    task: &Task,
    folders: &Folders,
    project: &Project,
    file: &Path,
) -> Result<Vec<Warning>, Failure> {
    let looked = drive::block_on(async {
        let workspace = GitWorkspace::temporary().map_err(|error| Failure::new(Kind::Io, error))?;
        Ok(look_at_repository(task, folders, project, &workspace).await)
    })?;
    let warning = |code, message| Warning {
        code,
        file: input::name(file),
        message,
        path: "/folders/write/0".to_owned(),
        line: None,
        column: None,
    };
    Ok(match looked {
        Ok(words) => words
            .into_iter()
            .map(|words| warning("repository", words))
            .collect(),
        Err(error) => vec![warning(
            "unusable_repository",
            format!("{}; a run would be refused", with_causes(&error)),
        )],
    })
}

fn tell_warning(warning: &Warning, output: &mut Output) -> Result<(), Failure> {
    let place = match (warning.line, warning.column) {
        (Some(line), Some(column)) => format!("{line}:{column}: "),
        _ => format!(" {}: ", warning.path),
    };
    let word = output.paint(Tone::Warning, "warning");
    output.line(format_args!(
        "{}:{place}{word}: {}",
        visible(&warning.file),
        visible(&warning.message)
    ))?;
    Ok(())
}

/// The value that a JSON pointer without escapes leads to.
fn find<'n>(root: &'n Node, pointer: &str) -> Option<&'n Node> {
    pointer
        .split('/')
        .skip(1)
        .try_fold(root, |node, segment| match &node.value {
            Value::Map(entries) => entries
                .iter()
                .find(|(key, _)| key.name == segment)
                .map(|(_, node)| node),
            Value::List(items) => items.get(segment.parse::<usize>().ok()?),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => None,
        })
}

//! `sillage run`: launches a task, shows it live, and waits for its end.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use sillage::core::estimate::{Estimator, Foretold, Replays, Subject};
use sillage::core::ports::Clock as _;
use sillage::core::ports::runtime::PermissionPolicy;
use sillage::core::ports::store::Which;
use sillage::core::run::{Budget, RunDefinition};
use sillage::core::settings::Settings;
use sillage::{LaunchRequest, Reader, SystemClock, check_sandboxes, new_run_id, past, prepare};

use super::check::NOT_ISOLATED;
use super::estimate::limit_costs;
use crate::adapters::Adapters;
use crate::arguments::Global;
use crate::ceilings::{self, Ceilings};
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind, with_causes};
use crate::left_behind;
use crate::output::{Output, Tone};
use crate::runtimes::{Chosen, Runtime, Where};
use crate::terminal::visible;

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The task file.
    #[arg(value_hint = ValueHint::FilePath)]
    task: PathBuf,
    /// What happens to agents' requests for permission.
    #[arg(long, value_enum, default_value_t, value_name = "POLICY")]
    permissions: Permissions,
    #[command(flatten)]
    held: Where,
    #[command(flatten)]
    ceilings: Ceilings,
    /// Begin nothing more once a step has failed [default: as in the settings, else false].
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    fail_fast: Option<bool>,
}

/// What happens to agents' requests for permission.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Permissions {
    /// A person is asked: `sillage permissions`, or a key while the run is shown.
    Ask,
    /// Allowed within the task's folders, refused elsewhere.
    #[default]
    AllowInFolders,
    /// Refused, but for reading within the folders.
    Deny,
}

impl From<Permissions> for PermissionPolicy {
    fn from(permissions: Permissions) -> Self {
        match permissions {
            Permissions::Ask => PermissionPolicy::Ask,
            Permissions::AllowInFolders => PermissionPolicy::AllowInFolders,
            Permissions::Deny => PermissionPolicy::Deny,
        }
    }
}

/// Launches and follows a run; the exit code is the run's.
pub(crate) fn run(arguments: &Run, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let settings = global.settings()?.unwrap_or_default();
    let chosen = arguments.held.choose(None, &settings)?;
    let data = global.data_folder()?;
    if chosen.is_none() {
        global.with_agents(&settings)?;
    }
    drive::block_on(async {
        let adapters = Adapters::open(&data)?;
        left_behind::tell(&adapters, output).await?;
        let runtime = Runtime::of_new(chosen.as_ref(), &adapters, &settings, global).await?;
        let change = arguments.ceilings.change();
        ceilings::tell_exchanged(&change, settings.limits.budget.as_ref(), output)?;
        let budget = Budget::changed(settings.limits.budget, &change);
        let request = LaunchRequest {
            budget,
            fail_fast: arguments.fail_fast.or(settings.limits.fail_fast).unwrap_or(false),
            task_file: arguments.task.clone(),
            offers: Some(runtime.offers.clone()),
            parallel: Chosen::parallel(chosen.as_ref(), settings.limits.parallel),
            permissions: arguments.permissions.into(),
            waits: settings.waits,
            closed: global.closed_places(&runtime.gateways),
            gateways: runtime.gateways.clone(),
            data,
        };
        launch(&adapters, &runtime, &request, &settings, global.yes, output).await
    })
}

/// Launches what was asked and shows it to its end.
pub(crate) async fn launch(
    adapters: &Adapters,
    runtime: &Runtime,
    request: &LaunchRequest,
    settings: &Settings,
    yes: bool,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let run = new_run_id(SystemClock.now());
    let (mut definition, mut warnings) =
        prepare(request, run, &*adapters.store, &*adapters.workspace).await?;
    if let Some(budget) = &definition.policy.budget {
        warnings.extend(ceilings::not_held(budget, &definition.task, settings));
    }
    let offers = request.offers.as_deref().unwrap_or_default();
    check_sandboxes(&definition, offers, &runtime.agents, &adapters.data)
        .map_err(|words| Failure::new(Kind::Refused, words).hint("nothing was started"))?;
    tell(&definition, &warnings, output)?;
    definition.foretold = foretell(adapters, &definition, output).await?;
    mention_resumable(adapters, &definition, output).await?;
    // What cannot be told of is not begun.
    output.flush()?;
    if !yes && !output.confirm("Launch it?")? {
        return Ok(Exit::Interrupted);
    }
    let handle = adapters.engine(runtime).launch(definition).await?;
    drive::to_its_end(adapters, handle, None, output).await
}

/// Tells how long it should take. What cannot be foretold, or is not for want of a past that can be read, keeps nobody
/// from launching.
async fn foretell(
    adapters: &Adapters,
    definition: &RunDefinition,
    output: &mut Output,
) -> Result<Option<Foretold>, Failure> {
    let past = match past(&Reader::over(adapters.store.clone())).await {
        Ok(past) => past,
        Err(error) => {
            let error = with_causes(&error);
            output.line(format_args!(
                "  estimate   none: past runs cannot be read: {error}"
            ))?;
            return Ok(None);
        }
    };
    let Ok(estimator) = Estimator::new(&Subject::of(definition), &past) else {
        return Ok(None);
    };
    let agents = definition.task.agents.len();
    let estimate = estimator.estimate(Replays::of(agents));
    output.line(format_args!("  estimate   {estimate}; {}", estimate.rests_on()))?;
    for cost in limit_costs(&estimator, agents) {
        output.line(format_args!("             {cost}"))?;
    }
    Ok(Some(Foretold::from(&estimate)))
}

pub(super) fn tell(
    definition: &RunDefinition,
    warnings: &[String],
    output: &mut Output,
) -> Result<(), Failure> {
    let title = output.paint(Tone::Strong, visible(&definition.task.title));
    let agents = definition.task.agents.len();
    let s = if agents == 1 { "" } else { "s" };
    output.line(format_args!(
        "{title}: {agents} agent{s}, at most {} at once",
        definition.parallel
    ))?;
    match &definition.repository {
        Some(repository) => {
            let base: String = repository.base.chars().take(12).collect();
            let on = repository.branch.as_deref().unwrap_or("a detached head");
            let root = repository.root.to_string_lossy();
            output.line(format_args!(
                "  repository {} at {base} ({})",
                visible(&root),
                visible(on)
            ))?;
            let own: Vec<bool> = (0..agents)
                .map(|step| definition.worktrees.get(step) == Some(&true))
                .collect();
            let separate = own.iter().filter(|has| **has).count();
            let merged = match separate {
                0 => "nothing is committed or merged".to_owned(),
                _ => format!("merged into {}", definition.integration_branch()),
            };
            output.line(format_args!("  worktrees  {separate} of {agents}; {merged}"))?;
            tell_who_works_in_the_folder(definition, &own, output)?;
        }
        None if definition.folders.write.is_empty() => output
            .line("  repository none: the task names no folder to write, and its agents are to read only")?,
        None => {
            output.line("  repository none: agents work in the folder itself, and nothing is committed")?
        }
    }
    if let Some(check) = &definition.task.check {
        output.line(format_args!("  check      {}, once all is done", visible(check)))?;
    }
    for gateway in &definition.gateways {
        output.line(format_args!(
            "  sessions   held by the gateway at {}",
            visible(&gateway.url)
        ))?;
    }
    output.line(format_args!(
        "  requests   {}",
        requests(definition.policy.permissions)
    ))?;
    if let Some(budget) = &definition.policy.budget {
        output.line(format_args!("  budget     {}", ceilings::told(budget)))?;
    }
    if definition.policy.fail_fast {
        output.line("  failures   the first one keeps the rest from being begun; a sub-agent's counts once its coordinator fails")?;
    }
    let note = output.paint(Tone::Warning, "note");
    output.line(format_args!("  {note}: {NOT_ISOLATED}"))?;
    for warning in warnings {
        output.line(format_args!(
            "  {}: {}",
            output.paint(Tone::Warning, "warning"),
            visible(warning)
        ))?;
    }
    Ok(())
}

/// What becomes of agents' requests for permission.
fn requests(policy: PermissionPolicy) -> &'static str {
    match policy {
        PermissionPolicy::Ask => "you are asked: a key answers here, `sillage permissions` elsewhere",
        PermissionPolicy::AllowInFolders => {
            "allowed within the folders, refused elsewhere; a command where a folder may be written, whatever it does"
        }
        PermissionPolicy::Deny => "refused, but for reading within the folders",
    }
}

/// An agent without a worktree writes where the person does: they are told who, and how to have it otherwise.
fn tell_who_works_in_the_folder(
    definition: &RunDefinition,
    own: &[bool],
    output: &mut Output,
) -> Result<(), Failure> {
    let agents = definition.task.agents.iter().zip(own);
    let shared: Vec<&str> = agents
        .filter(|(_, own)| !**own)
        .map(|(agent, _)| agent.id.as_str())
        .collect();
    if shared.is_empty() {
        return Ok(());
    }
    let word = output.paint(Tone::Warning, "note");
    let s = if shared.len() == 1 { "s" } else { "" };
    output.line(format_args!(
        "  {word}: {} work{s} in your own folder, not in a worktree (`worktree: always` changes that)",
        shared.join(", ")
    ))?;
    Ok(())
}

/// A run never resumes an older one by itself; it says that one can be.
async fn mention_resumable(
    adapters: &Adapters,
    definition: &RunDefinition,
    output: &mut Output,
) -> Result<(), Failure> {
    let runs = adapters.store.runs(Which::All, 20).await?;
    let earlier = runs.iter().find(|run| {
        run.task_file == definition.task_file && !matches!(run.state.as_str(), "complete" | "partial")
    });
    if let Some(earlier) = earlier {
        let words = format!(
            "run {} of this task {}; `sillage resume {}` goes on with it",
            earlier.run,
            match earlier.finished {
                true => format!("is {}", earlier.state),
                // Who asks holds the store: nobody drives it.
                false => "was cut".to_owned(),
            },
            earlier.run
        );
        output.line(format_args!("  {}: {words}", output.paint(Tone::Warning, "note")))?;
    }
    Ok(())
}

//! `sillage relaunch`: a new run that takes what is upstream of an agent from an earlier one (R13).

use clap::Args;
use sillage::core::id::RunId;
use sillage::core::ports::Clock as _;
use sillage::core::run::{Budget, NotRelaunched, Run, RunDefinition};
use sillage::{
    LaunchRequest, RelaunchError, Relaunched, SystemClock, check_sandboxes, new_run_id, prepare_relaunch,
};

use super::diff::{self, task_file};
use super::run::Permissions;
use crate::adapters::Adapters;
use crate::arguments::Global;
use crate::ceilings::{self, Ceilings};
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::left_behind;
use crate::output::{Output, Tone};
use crate::runtimes::{Chosen, Runtime, Where};
use crate::terminal::visible;

/// Arguments of `relaunch`.
#[derive(Debug, Args)]
pub(crate) struct Relaunch {
    /// The earlier run.
    run: RunId,
    /// The agent from which on everything runs again; what is upstream of it is taken from the earlier run.
    #[arg(long, value_name = "AGENT")]
    from: String,
    /// What happens to agents' requests for permission [default: as in the earlier run].
    #[arg(long, value_enum, value_name = "POLICY")]
    permissions: Option<Permissions>,
    #[command(flatten)]
    held: Where,
    #[command(flatten)]
    ceilings: Ceilings,
    /// Begin nothing more once a step has failed [default: as in the settings, else false].
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    fail_fast: Option<bool>,
}

/// Launches and follows the new run; the exit code is that run's.
pub(crate) fn run(arguments: &Relaunch, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let settings = global.settings()?.unwrap_or_default();
    let data = global.data_folder()?;
    drive::block_on(async {
        let adapters = Adapters::open(&data)?;
        left_behind::tell(&adapters, output).await?;
        let earlier = adapters.load(&arguments.run).await?;
        let chosen = arguments.held.choose(Some(earlier.definition()), &settings)?;
        let runtime = Runtime::of_new(chosen.as_ref(), &adapters, &settings, global).await?;
        let policy = earlier.definition().policy.permissions;
        // As for permissions, what the earlier run went by holds unless something else is said.
        let before = earlier.budget().copied().or(settings.limits.budget);
        let change = arguments.ceilings.change();
        let budget = Budget::changed(before, &change);
        let request = LaunchRequest {
            budget,
            fail_fast: arguments.fail_fast.or(settings.limits.fail_fast).unwrap_or(false),
            task_file: task_file(earlier.definition())?.to_path_buf(),
            offers: Some(runtime.offers.clone()),
            parallel: Chosen::parallel(chosen.as_ref(), settings.limits.parallel),
            gateways: runtime.gateways.clone(),
            waits: settings.waits,
            permissions: arguments.permissions.map_or(policy, Into::into),
            closed: global.closed_places(&runtime.gateways),
            data,
        };
        let run = new_run_id(SystemClock.now());
        let (store, workspace) = (&*adapters.store, &*adapters.workspace);
        let from = &arguments.from;
        let mut relaunched = prepare_relaunch(&request, run, &earlier, from, store, workspace).await?;
        relaunched
            .warnings
            .extend(ceilings::exchanged(&change, before.as_ref()));
        if let Some(budget) = &relaunched.definition.policy.budget {
            let task = &relaunched.definition.task;
            relaunched
                .warnings
                .extend(ceilings::not_held(budget, task, &settings));
        }
        let offers = request.offers.as_deref().unwrap_or_default();
        check_sandboxes(&relaunched.definition, offers, &runtime.agents, &adapters.data)
            .map_err(|words| Failure::new(Kind::Refused, words).hint("nothing was started"))?;
        super::run::tell(&relaunched.definition, &relaunched.warnings, output)?;
        tell(&relaunched, &earlier, output)?;
        if !global.yes && !output.confirm("Launch it?")? {
            return Ok(Exit::Interrupted);
        }
        let Relaunched {
            definition, taken, ..
        } = relaunched;
        let handle = adapters
            .engine(&runtime)
            .relaunch(definition, earlier.id(), taken)
            .await?;
        drive::to_its_end(&adapters, handle, None, output).await
    })
}

/// What is taken, and what is otherwise than it was.
fn tell(relaunched: &Relaunched, earlier: &Run, output: &mut Output) -> Result<(), Failure> {
    let names = |taken: bool| -> Vec<&str> {
        let agents = relaunched.definition.task.agents.iter().enumerate();
        agents
            .filter(|(at, _)| relaunched.taken.iter().any(|one| one.step.position() == *at) == taken)
            .map(|(_, agent)| agent.id.as_str())
            .collect()
    };
    let all = |names: &[&str]| match names.is_empty() {
        true => "nothing".to_owned(),
        false => names.join(", "),
    };
    output.line(format_args!(
        "  taken      {} from run {}",
        all(&names(true)),
        earlier.id()
    ))?;
    output.line(format_args!("  runs       {}", all(&names(false))))?;
    if !relaunched.changes.is_nothing() {
        output.line(format_args!("  since run {}:", earlier.id()))?;
        diff::tell(&relaunched.changes, output)?;
    }
    Ok(())
}

/// What a run that is a relaunch says of the earlier one.
pub(crate) fn told(definition: &RunDefinition, output: &mut Output) -> Result<(), Failure> {
    let Some(relaunch) = &definition.relaunch_of else {
        return Ok(());
    };
    output.line(output.paint(Tone::Faint, relaunch))?;
    for change in &relaunch.changes {
        output.line(format_args!("  {}", visible(change)))?;
    }
    Ok(())
}

impl From<RelaunchError> for Failure {
    fn from(error: RelaunchError) -> Self {
        match error {
            RelaunchError::Launch(error) => error.into(),
            // Who relaunches holds the store: nobody else drives it.
            RelaunchError::Refused(NotRelaunched::NotOver(run)) => {
                let words = format!("run {run} was cut before it was over, and nobody drives it");
                let hint = format!(
                    "`sillage resume {run}` goes on with it; once it is over or stopped it can be relaunched"
                );
                Failure::new(Kind::Refused, words).hint(hint)
            }
            RelaunchError::Refused(_) | RelaunchError::CommitLost { .. } | _ => {
                Failure::new(Kind::Refused, error).hint("nothing was started")
            }
        }
    }
}

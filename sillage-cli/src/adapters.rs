//! The store and the workspace that commands on runs use, and how this program starts agents.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sillage::acp::launcher::Limits;
use sillage::acp::leftovers::Leftover;
use sillage::acp::{AgentCommand, Options};
use sillage::core::id::RunId;
use sillage::core::ports::store::StoreError;
use sillage::core::ports::{Store, Workspace};
use sillage::core::run::Run;
use sillage::core::settings::Settings;
use sillage::store::SledStore;
use sillage::workspace::GitWorkspace;
use sillage::{DiskPatience, Engine, Reader, agent_commands};

use crate::arguments::Global;
use crate::failure::{Failure, Kind, with_causes};
use crate::runtimes::Runtime;
use crate::{left_behind, places};

/// What an engine needs, and where it keeps its things.
pub(crate) struct Adapters {
    pub(crate) data: PathBuf,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) workspace: Arc<dyn Workspace>,
    /// What an engine before this one left, and what became of it.
    pub(crate) left: Vec<Leftover>,
    /// What starts checks, so that they end whole.
    launcher: Vec<OsString>,
}

impl Adapters {
    /// Opens both. The store comes first: who holds it may start agents, and may end what those left who held it before.
    ///
    /// # Errors
    /// When the data folder cannot be used or another process holds the store.
    pub(crate) fn open(data: &Path) -> Result<Adapters, Failure> {
        let store = open_store(data)?;
        left_behind::adopt_orphans()?;
        let left = left_behind::end(data)?;
        let workspace = GitWorkspace::new(data).map_err(|error| Failure::new(Kind::Io, error))?;
        let launcher = launched_by_us()?.launcher_words(Limits::default());
        Ok(Adapters {
            data: data.to_path_buf(),
            store: Arc::new(store),
            workspace: Arc::new(workspace),
            left,
            launcher,
        })
    }

    /// A run, before it is known who holds its sessions.
    ///
    /// # Errors
    /// When there is no such run, or its log cannot be read.
    pub(crate) async fn load(&self, run: &RunId) -> Result<Run, Failure> {
        Ok(Reader::over(Arc::clone(&self.store)).load(run).await?)
    }

    /// An engine over them and over who holds the sessions.
    pub(crate) fn engine(&self, runtime: &Runtime) -> Engine {
        let (store, sessions) = (Arc::clone(&self.store), Arc::clone(&runtime.sessions));
        Engine::builder(store, sessions, Arc::clone(&self.workspace))
            .left_behind(left_behind::for_journals(&self.left))
            .launcher(self.launcher.clone())
            .disk_patience(DiskPatience::LONG)
            .build()
    }
}

/// How long the store is waited for: commands that look at runs hold it for a moment.
const PATIENCE: Duration = Duration::from_secs(1);

/// Opens the store of a data folder.
///
/// # Errors
/// When the folder cannot be used or another process holds the store.
pub(crate) fn open_store(data: &Path) -> Result<SledStore, Failure> {
    let given_up = Instant::now() + PATIENCE;
    loop {
        match SledStore::open(data.join("store"), sillage::store::Options::default()) {
            Err(StoreError::Held { .. }) if Instant::now() < given_up => {
                std::thread::sleep(Duration::from_millis(50));
            }
            opened => return Ok(opened?),
        }
    }
}

/// The agents of the settings as they are started.
///
/// # Errors
/// When one names a variable that is not there, or cannot be started for another reason.
pub(crate) fn commands(settings: &Settings) -> Result<Vec<AgentCommand>, Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    agent_commands(settings, variable)
        .map_err(|error| Failure::new(Kind::Usage, with_causes(&error)).hint("mend the settings file"))
}

/// How the agents of runs are started: their processes are recorded, so that who starts next finds what is left.
///
/// # Errors
/// When the system does not tell where this program is.
pub(crate) fn options(settings: &Settings, data: &Path) -> Result<Options, Failure> {
    let usual = launched_by_us()?;
    Ok(Options {
        records: Some(left_behind::records(data)),
        silent_after: settings.limits.silent_after.unwrap_or(usual.silent_after),
        ..usual
    })
}

/// Agents are started by this program itself, so that they do not outlive it.
pub(crate) fn launched_by_us() -> Result<Options, Failure> {
    Ok(Options {
        launcher: Some(launcher_words()?),
        ..Options::default()
    })
}

/// The words by which this program starts an agent.
///
/// # Errors
/// When the system does not tell where this program is.
pub(crate) fn launcher_words() -> Result<Vec<OsString>, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(
            Kind::Io,
            format_args!("cannot tell where this program is: {error}"),
        )
    })?;
    Ok(vec![program.into(), "launch-agent".into()])
}

impl Global {
    /// The folder that runs are kept in.
    ///
    /// # Errors
    /// When none was named and the platform names none.
    pub(crate) fn data_folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.data_dir.clone().or_else(places::usual_data_folder);
        let folder = folder.ok_or_else(|| {
            Failure::new(Kind::Usage, "this machine names no folder for data").hint("name one by --data-dir")
        })?;
        // Agents are told paths in it, and work elsewhere.
        std::path::absolute(&folder).map_err(|error| Failure::reading(&folder, &error))
    }

    /// The settings, without which no agent is known.
    ///
    /// # Errors
    /// When there are none, or they are faulty.
    pub(crate) fn settings_with_agents(&self) -> Result<Settings, Failure> {
        let settings = self.settings()?.unwrap_or_default();
        self.with_agents(&settings)?;
        Ok(settings)
    }

    /// The same settings, which name agents.
    ///
    /// # Errors
    /// When they name none.
    pub(crate) fn with_agents<'s>(&self, settings: &'s Settings) -> Result<&'s Settings, Failure> {
        if !settings.agents.is_empty() {
            return Ok(settings);
        }
        let meant = self.config.clone().or_else(places::usual_settings_file);
        let meant = meant.map(|path| path.display().to_string()).unwrap_or_default();
        Err(Failure::new(Kind::Usage, "no agent is configured").hint(format_args!(
            "write one in {meant}, or name another settings file by --config; `sillage agents detect` finds those installed"
        )))
    }
}

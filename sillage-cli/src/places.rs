//! Where our own files are, and the settings.

use std::path::{Path, PathBuf};

use directories::ProjectDirs;
use sillage::core::document;
use sillage::core::fault::Fault;
use sillage::core::run::RunGateway;
use sillage::core::settings::{self, Settings};

use crate::arguments::Global;
use crate::failure::Failure;
use crate::input;

impl Global {
    /// The settings of the file that was named, else of the usual one where it exists; none without a file.
    ///
    /// # Errors
    /// When the file cannot be read, is faulty, or was named and is not there.
    pub(crate) fn settings(&self) -> Result<Option<Settings>, Failure> {
        self.settings_file().as_deref().map(read_settings).transpose()
    }

    /// The settings file that was named, else the usual one where it exists.
    pub(crate) fn settings_file(&self) -> Option<PathBuf> {
        let usual = || usual_settings_file().filter(|path| path.exists());
        self.config.clone().or_else(usual)
    }

    /// Places of the program's own besides its data, which agents neither read nor write: the settings file in use, the
    /// usual folder of settings and the files of gateways' tokens, whether they exist or not.
    pub(crate) fn closed_places(&self, gateways: &[RunGateway]) -> Vec<PathBuf> {
        let usual = usual_settings_file().and_then(|file| file.parent().map(Path::to_path_buf));
        let named = self
            .config
            .as_ref()
            .and_then(|file| std::path::absolute(file).ok());
        let tokens = gateways.iter().map(|gateway| gateway.token_file.clone());
        usual.into_iter().chain(named).chain(tokens).collect()
    }
}

/// `sillage/config.yaml` in the user's folder for settings.
pub(crate) fn usual_settings_file() -> Option<PathBuf> {
    ProjectDirs::from("", "", "sillage").map(|folders| folders.config_dir().join("config.yaml"))
}

/// `sillage` in the user's folder for data.
pub(crate) fn usual_data_folder() -> Option<PathBuf> {
    ProjectDirs::from("", "", "sillage").map(|folders| folders.data_dir().to_path_buf())
}

fn read_settings(file: &Path) -> Result<Settings, Failure> {
    let bytes = input::read(file)?;
    let read = document::decode(&bytes)
        .map_err(|unreadable| vec![Fault::from(unreadable)])
        .and_then(settings::read);
    read.map_err(|faults| Failure::Faulty {
        file: input::name(file),
        faults,
    })
}

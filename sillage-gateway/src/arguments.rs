//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use directories::ProjectDirs;
use sillage::RelaisOptions;

use crate::failure::Failure;

/// Holds sessions with the agents of the settings file, and serves them over HTTP to programs of this machine.
///
/// It listens on 127.0.0.1 alone; every request needs the token of the token file. SIGTERM or SIGINT ends it: sessions
/// are found again by the next start where their agents can bring them back.
#[derive(Debug, Parser)]
#[command(name = "relais", version, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) itself: Option<Itself>,
}

/// How the gateway is served.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The settings file with the agents; `sillage/config.yaml` in your configuration folder where none is named
    #[arg(long, value_name = "FILE", env = "SILLAGE_CONFIG")]
    config: Option<PathBuf>,
    /// The folder of the gateway's log; `relais` in your data folder where none is named
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// The file of the token, which is made where it is missing; `relais/token` in your configuration folder where none
    /// is named
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The port on 127.0.0.1; 0 takes one that is free
    #[arg(long, default_value_t = RelaisOptions::USUAL_PORT)]
    pub(crate) port: u16,
    /// The most sessions at once
    #[arg(long, default_value_t = RelaisOptions::USUAL_SESSIONS, value_name = "NUMBER")]
    pub(crate) sessions: usize,
}

/// What this program is when it starts itself.
#[derive(Debug, Subcommand)]
pub(crate) enum Itself {
    /// Starts an agent and guards it to its end
    #[command(hide = true)]
    LaunchAgent(Words),
    /// Plays a script as an agent
    #[command(hide = true)]
    ScriptedAgent(Words),
}

/// Words that are another program's.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
}

impl Options {
    /// The settings file.
    pub(crate) fn settings(&self) -> Result<PathBuf, Failure> {
        let usual =
            || ProjectDirs::from("", "", "sillage").map(|folders| folders.config_dir().join("config.yaml"));
        let named = self.config.clone().or_else(usual);
        named.ok_or_else(|| {
            Failure::Usage("this machine names no folder for settings: name a file by --config".to_owned())
        })
    }

    /// The gateway's folder.
    pub(crate) fn data(&self) -> Result<PathBuf, Failure> {
        let usual = || ProjectDirs::from("", "", "relais").map(|folders| folders.data_dir().to_path_buf());
        let named = self.data_dir.clone().or_else(usual);
        let named = named.ok_or_else(|| {
            Failure::Usage("this machine names no folder for data: name one by --data-dir".to_owned())
        })?;
        absolute(&named)
    }

    /// The token's file.
    pub(crate) fn token(&self) -> Result<PathBuf, Failure> {
        let usual = || ProjectDirs::from("", "", "relais").map(|folders| folders.config_dir().join("token"));
        let named = self.token_file.clone().or_else(usual);
        let named = named.ok_or_else(|| {
            Failure::Usage(
                "this machine names no folder for settings: name a file by --token-file".to_owned(),
            )
        })?;
        absolute(&named)
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|source| Failure::File {
        path: path.to_path_buf(),
        source,
    })
}

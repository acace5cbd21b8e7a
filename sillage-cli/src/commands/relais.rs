//! `sillage relais`: a gateway over the agents of the settings, on loopback, until it is told to end.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use directories::ProjectDirs;
use serde::Serialize;
use sillage::{RelaisError, RelaisOptions, serve_relais};

use crate::adapters::launcher_words;
use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind, with_causes};
use crate::output::{Output, Tone};

/// Arguments of `relais`.
#[derive(Debug, Args)]
pub(crate) struct Relais {
    /// The port on 127.0.0.1; 0 takes one that is free.
    #[arg(long, default_value_t = RelaisOptions::USUAL_PORT)]
    port: u16,
    /// The file of the token, which is made where it is missing [default: relais/token in the folder for settings].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
    /// The most sessions at once.
    #[arg(long, default_value_t = RelaisOptions::USUAL_SESSIONS, value_name = "NUMBER")]
    sessions: usize,
}

#[derive(Serialize)]
struct Listening {
    event: &'static str,
    url: String,
    token_file: PathBuf,
}

/// Serves until SIGTERM or SIGINT. A second one ends it at once.
pub(crate) fn run(arguments: &Relais, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("RELAIS_LOG").unwrap_or_else(|_| "warn".into()),
        )
        .init();
    let settings = global.settings_with_agents()?;
    let own = ProjectDirs::from("", "", "relais");
    // The gateway's things are not those of runs, which may be removed with their folder.
    let data = match &global.data_dir {
        Some(folder) => Some(folder.join("relais")),
        None => own.as_ref().map(|own| own.data_dir().to_path_buf()),
    };
    let token_file = arguments.token_file.clone();
    let token_file = token_file.or_else(|| own.map(|own| own.config_dir().join("token")));
    let (Some(data), Some(token_file)) = (data, token_file) else {
        let words = "this machine names no folder for data and settings";
        return Err(Failure::new(Kind::Usage, words).hint("name them by --data-dir and --token-file"));
    };
    let absolute =
        |path: PathBuf| std::path::absolute(&path).map_err(|error| Failure::reading(&path, &error));
    let token_file = absolute(token_file)?;
    let options = RelaisOptions {
        settings,
        data: absolute(data)?,
        token_file: token_file.clone(),
        port: arguments.port,
        sessions: arguments.sessions,
        launcher: launcher_words()?,
    };
    let mut told = Ok(());
    let served = drive::block_on(async {
        let listening = |address| {
            told = tell(
                Listening {
                    event: "listening",
                    url: format!("http://{address}"),
                    token_file,
                },
                output,
            );
        };
        Ok(serve_relais(options, listening).await)
    })?;
    match served {
        Ok(()) => told.map(|()| Exit::Complete),
        Err(error) => Err(failure(&error)),
    }
}

fn tell(listening: Listening, output: &mut Output) -> Result<(), Failure> {
    let url = output.paint(Tone::Strong, &listening.url);
    output.line(format_args!("relais listens on {url}"))?;
    output.line(format_args!(
        "its token is in {}",
        output.paint(Tone::Strong, listening.token_file.display())
    ))?;
    output.json(&listening)?;
    Ok(output.flush()?)
}

fn failure(error: &RelaisError) -> Failure {
    let of = |kind| Failure::new(kind, with_causes(error));
    match error {
        RelaisError::Agent(_) => of(Kind::Usage).hint("mend the settings file"),
        RelaisError::Port { .. } | RelaisError::Listener(_) => of(Kind::OutOfReach),
        RelaisError::System { .. } => of(Kind::Io),
        RelaisError::Interrupted => of(Kind::Interrupted),
        RelaisError::File { .. } | RelaisError::Token(_) | RelaisError::Journal(_) | _ => of(Kind::Store),
    }
}

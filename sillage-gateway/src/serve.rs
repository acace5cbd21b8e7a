//! From the settings to a gateway that is served.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use sillage::{RelaisOptions, serve_relais};
use sillage_core::document::{self, MAX_BYTES};
use sillage_core::fault::Fault;
use sillage_core::settings::{self, Settings};

use crate::arguments::Options;
use crate::failure::Failure;

/// Serves until the program is told to end.
pub(crate) fn serve(options: &Options) -> Result<(), Failure> {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("RELAIS_LOG").unwrap_or_else(|_| "warn".into()),
        )
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System {
            what: "start threads",
            source,
        })?;
    let program = std::env::current_exe().map_err(|source| Failure::System {
        what: "tell where this program is",
        source,
    })?;
    let token_file = options.token()?;
    let served = RelaisOptions {
        settings: read_settings(&options.settings()?)?,
        data: options.data()?,
        token_file: token_file.clone(),
        port: options.port,
        sessions: options.sessions,
        launcher: vec![program.into(), "launch-agent".into()],
    };
    let listening = |address| {
        // Whoever started it may not read on.
        let mut stdout = io::stdout();
        let _ = writeln!(stdout, "relais listens on http://{address}")
            .and_then(|()| writeln!(stdout, "its token is in {}", token_file.display()));
    };
    Ok(runtime.block_on(serve_relais(served, listening))?)
}

fn read_settings(path: &Path) -> Result<Settings, Failure> {
    let failed = |source| Failure::File {
        path: path.to_path_buf(),
        source,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    // One byte over the bound is enough to be told apart from a text that fits.
    file.take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let read = document::decode(&bytes)
        .map_err(|unreadable| vec![Fault::from(unreadable)])
        .and_then(settings::read);
    let settings = read.map_err(|faults| Failure::Settings {
        path: path.to_path_buf(),
        faults: faults
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n"),
    })?;
    if settings.agents.is_empty() {
        let words = format!("{} names no agent: write one into `agents`", path.display());
        return Err(Failure::Usage(words));
    }
    Ok(settings)
}

//! Real agents for tests, offline: opencode, codex and Gemini CLI, with [`crate::model_server`] as their model; and the
//! judges that are not ours.
//!
//! `.ci/agents.sh` of the workspace installs them, at its versions. A test of what is not installed is skipped with a
//! word, unless [`REQUIRED`] is set.

mod configure;
pub mod table;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

use crate::model_server::ModelServer;

/// The variable which, when set, makes a test fail that would be skipped.
pub const REQUIRED: &str = "SILLAGE_TEST_AGENTS_REQUIRED";

/// How long the script may take to tell what is there.
const ASKED: Duration = Duration::from_secs(60);

/// The agents, each with its own wire format of a model's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// opencode, over chat completions.
    Opencode,
    /// codex behind its ACP adapter, over responses.
    Codex,
    /// Gemini CLI, over `generateContent`.
    Gemini,
}

impl Kind {
    /// Its name in the settings, in `.ci/agents.sh` and in the table of `docs/agents.md`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Opencode => "opencode",
            Kind::Codex => "codex",
            Kind::Gemini => "gemini",
        }
    }

    /// What the agent calls the model that tests ask for; it starts with another one.
    #[must_use]
    pub fn model(self) -> &'static str {
        match self {
            Kind::Opencode => "test/test-model",
            Kind::Codex => "test-model",
            Kind::Gemini => "gemini-2.5-pro",
        }
    }

    /// What the model server is asked for then.
    #[must_use]
    pub fn model_at_server(self) -> &'static str {
        match self {
            Kind::Opencode | Kind::Codex => "test-model",
            Kind::Gemini => "gemini-2.5-pro",
        }
    }

    /// Whether an effort can be asked of it.
    #[must_use]
    pub fn takes_effort(self) -> bool {
        match self {
            Kind::Opencode | Kind::Codex => true,
            Kind::Gemini => false,
        }
    }
}

/// An agent that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealAgent {
    /// Which one.
    pub kind: Kind,
    /// Its version; that of an adapter and of the agent behind it, joined by `+`.
    pub version: String,
    /// The program.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

impl RealAgent {
    /// The agent; none, with a printed reason, where it is not installed. `package` is the folder of a package of the
    /// workspace (`CARGO_MANIFEST_DIR`).
    ///
    /// # Panics
    /// As [`installed`].
    pub async fn get(kind: Kind, package: &Path) -> Option<RealAgent> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (command, args) = match kind {
            Kind::Opencode => {
                let [program] = installed(package, ["opencode"]).await?;
                (program, vec!["acp".to_owned()])
            }
            Kind::Codex => {
                let [node, script] = installed(package, ["node", "codex"]).await?;
                (node, vec![text(&script)])
            }
            Kind::Gemini => {
                let [node, script] = installed(package, ["node", "gemini"]).await?;
                (node, vec![text(&script), "--acp".to_owned()])
            }
        };
        let script = args
            .first()
            .filter(|first| first.contains('/'))
            .map_or(&*command, Path::new);
        Some(RealAgent {
            kind,
            version: version_of(script),
            command,
            args,
        })
    }

    /// A model server for it: only the model that tests ask for takes part in scripts.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn model_server(&self) -> io::Result<ModelServer> {
        ModelServer::scripting(&[self.kind.model_at_server()]).await
    }

    /// The variables with which the agent has `home` for its own and asks the model server, and nothing of this
    /// machine's settings reaches it. Its settings files are written into `home`.
    ///
    /// # Errors
    /// When those files cannot be written.
    pub fn environment(&self, home: &Path, server: &ModelServer) -> io::Result<BTreeMap<String, String>> {
        match self.kind {
            Kind::Opencode => configure::opencode(home, &server.base_url()),
            Kind::Codex => configure::codex(home, &server.base_url()),
            Kind::Gemini => configure::gemini(home, &server.root_url()),
        }
    }
}

/// The version in the name of the folder that an agent was installed in: `NAME-VERSION/node_modules/…`.
fn version_of(script: &Path) -> String {
    let installed = script
        .ancestors()
        .find(|place| place.file_name().is_some_and(|name| name == "node_modules"));
    let folder = installed.and_then(|modules| modules.parent()?.file_name()?.to_str());
    let version = folder.and_then(|folder| Some(folder.rsplit_once('-')?.1));
    version.unwrap_or_default().to_owned()
}

/// The paths of what `.ci/agents.sh` calls by these names; none, with a printed reason, where one of them is not
/// installed. `package` is the folder of a package of the workspace (`CARGO_MANIFEST_DIR`).
///
/// # Panics
/// When the script fails, or one of them is not installed and [`REQUIRED`] is set.
#[expect(
    clippy::panic,
    clippy::print_stderr,
    reason = "a test tells why it is skipped or cannot go on"
)]
pub async fn installed<const N: usize>(package: &Path, names: [&str; N]) -> Option<[PathBuf; N]> {
    let beside = package.join(".ci/agents.sh");
    let script = if beside.exists() {
        beside
    } else {
        package.join("../.ci/agents.sh")
    };
    let mut command = Command::new(script);
    command.arg("--there").args(names).kill_on_drop(true);
    let told = tokio::time::timeout(ASKED, command.output()).await;
    let Ok(Ok(told)) = told else {
        panic!("the agents' script did not run to its end: {told:?}")
    };
    let words = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{names:?} cannot be asked for: {words}");
    let lines = String::from_utf8_lossy(&told.stdout);
    let found = lines
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(_, path)| PathBuf::from(path));
    let found: Vec<PathBuf> = found.collect();
    let Ok(paths) = <[PathBuf; N]>::try_from(found) else {
        let required = std::env::var_os(REQUIRED).filter(|value| *value != OsString::new());
        assert!(required.is_none(), "{} is set, and {words}", REQUIRED);
        eprintln!("skipped: {}", words.trim());
        return None;
    };
    for path in &paths {
        assert!(path.exists(), "{}: {words}", path.display());
    }
    Some(paths)
}

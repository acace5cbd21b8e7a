//! A real agent for tests, offline: opencode, installed from its registry once, with [`crate::model_server`] as its
//! model.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::process::Command;

/// What opencode calls the model of [`opencode_environment`].
pub const OPENCODE_MODEL: &str = "test/test-model";

/// How long the installation may take.
const INSTALL: Duration = Duration::from_secs(600);

/// The program of opencode, installed by `.ci/agents.sh` of the workspace if need be; none, with a printed reason, where
/// npm is missing. `package` is the folder of a package of the workspace (`CARGO_MANIFEST_DIR`).
///
/// # Panics
/// When there is npm and the installation fails: a test that could run must not be skipped in silence.
#[expect(
    clippy::panic,
    clippy::print_stderr,
    reason = "a test tells why it is skipped or cannot go on"
)]
pub async fn opencode(package: &Path) -> Option<PathBuf> {
    let npm = Command::new("npm")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .await;
    if !npm.is_ok_and(|status| status.success()) {
        eprintln!("skipped: npm is not installed, so there is no real agent to try");
        return None;
    }
    let beside = package.join(".ci/agents.sh");
    let script = if beside.exists() {
        beside
    } else {
        package.join("../.ci/agents.sh")
    };
    let installed = tokio::time::timeout(INSTALL, Command::new(script).kill_on_drop(true).output()).await;
    let Ok(Ok(installed)) = installed else {
        panic!("the agents' script did not run to its end: {installed:?}")
    };
    let words = String::from_utf8_lossy(&installed.stderr);
    assert!(
        installed.status.success(),
        "the agents could not be installed: {words}"
    );
    let program = PathBuf::from(String::from_utf8_lossy(&installed.stdout).trim());
    assert!(program.is_file(), "{}: {words}", program.display());
    Some(program)
}

/// The variables with which opencode has `home` for its own and asks the model server at `model_url`, and nothing of
/// this machine's settings reaches it. Its settings file is written into `home`.
///
/// # Errors
/// When that file cannot be written.
pub fn opencode_environment(home: &Path, model_url: &str) -> io::Result<BTreeMap<String, String>> {
    let limit = json!({ "context": 128_000, "output": 8_192 });
    let model = json!({ "name": "Test", "tool_call": true, "reasoning": true, "limit": limit });
    let small = json!({ "name": "Small", "tool_call": true, "limit": limit });
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "Test",
        "options": { "baseURL": model_url, "apiKey": "none" },
        "models": { "test-model": model, "test-small": small },
    });
    let settings = json!({
        "autoupdate": false, "share": "disabled", "model": "test/test-small", "small_model": "test/test-small",
        "permission": { "edit": "ask", "bash": "ask", "webfetch": "deny" },
        "enabled_providers": ["test"], "provider": { "test": provider },
    });
    let file = home.join("opencode.json");
    std::fs::write(&file, settings.to_string())?;
    let off = [
        "MODELS_FETCH",
        "AUTOUPDATE",
        "LSP_DOWNLOAD",
        "DEFAULT_PLUGINS",
        "SHARE",
    ];
    let off = off.map(|what| (format!("OPENCODE_DISABLE_{what}"), "1".to_owned()));
    let own = [("HOME", home), ("OPENCODE_CONFIG", &file)];
    let own = own.map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned()));
    Ok(off.into_iter().chain(own).collect())
}

//! An executed definition brought back as its task's newest version (R14).

use sillage_core::id::RunId;
use sillage_core::ports::store::Store;

use crate::engine::EngineError;
use crate::follow::read_launch;
use crate::launch::TASK_DOCUMENT;

/// The text that a run executed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ExecutedText {
    /// The text, byte for byte.
    pub text: Vec<u8>,
    /// The version that it was when it was launched.
    pub version: u64,
    /// The version that it is now: the newest, where it was asked to be.
    pub newest: u64,
}

/// The text that a run executed; none where the store has it no more, or the run was of no file. With `renew` it is
/// made the task's newest version, unless it is that already.
///
/// # Errors
/// [`EngineError::NoSuchRun`], and when the store cannot be used.
pub(crate) async fn executed_text(
    store: &dyn Store,
    run: &RunId,
    renew: bool,
) -> Result<Option<ExecutedText>, EngineError> {
    let launch = read_launch(store, run).await?;
    let sillage_core::run::Event::RunCreated(definition) = launch.event else {
        return Ok(None);
    };
    let Some(file) = &definition.task_file else {
        return Ok(None);
    };
    let (name, version) = (file.to_string_lossy(), definition.task_version);
    let Some(text) = store.version(TASK_DOCUMENT, &name, version).await? else {
        return Ok(None);
    };
    let (newest, kept) = store
        .get(TASK_DOCUMENT, &name)
        .await?
        .unwrap_or((version, text.clone()));
    let newest = match renew && kept != text {
        true => store.put(TASK_DOCUMENT, &name, newest, text.clone()).await?,
        false => newest,
    };
    Ok(Some(ExecutedText {
        text,
        version,
        newest,
    }))
}

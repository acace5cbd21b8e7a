//! Carrying out one effect: one call to an adapter, and the input that comes of it.

use std::path::PathBuf;

use sillage_core::ports::runtime::{MessageRequest, RuntimeError};
use sillage_core::run::{Effect, EffectKey, Input};

use sillage_core::id::ClientSessionId;

use crate::engine::Engine;

/// Does what `effect` asks, once; tells what came of it, where that is news.
pub(crate) async fn carry_out(engine: &Engine, key: EffectKey, effect: Effect) -> Option<Input> {
    let workspace = &engine.workspace;
    let runtime = &engine.runtime;
    match (key, effect) {
        (EffectKey::Lease(step), Effect::Lease(wish)) => Some(Input::Leased {
            step,
            result: workspace.lease(&wish).await,
        }),
        (
            EffectKey::Restart(step),
            Effect::Restart {
                worktree,
                run,
                step: name,
            },
        ) => Some(Input::Restarted {
            step,
            result: workspace.restart(&worktree, &run, &name).await,
        }),
        (EffectKey::Open(_, session), Effect::Open(request)) => Some(Input::Opened {
            session,
            result: runtime.open(&request).await,
        }),
        (
            EffectKey::Find(_, session),
            Effect::Find {
                request,
                native,
                in_flight,
            },
        ) => {
            let result = runtime
                .find(&request, native.as_deref(), in_flight.as_ref())
                .await;
            Some(Input::Found { session, result })
        }
        (
            EffectKey::Send(..),
            Effect::Send {
                session,
                message,
                files,
            },
        ) => send(engine, session, message, files).await,
        (EffectKey::Verify(step), Effect::Verify { folder, files }) => Some(Input::Verified {
            step,
            result: workspace.missing(&folder, &files).await,
        }),
        (EffectKey::Commit(step), Effect::Commit { worktree, message }) => Some(Input::Committed {
            step,
            result: workspace.commit(&worktree, &message).await,
        }),
        (EffectKey::Merge(step), Effect::Merge(wish)) => Some(Input::Merged {
            step,
            result: workspace.merge(&wish).await,
        }),
        (
            EffectKey::Remove(step),
            Effect::Remove {
                worktree,
                integration,
            },
        ) => Some(Input::Removed {
            step,
            result: workspace.remove(&worktree, &integration).await,
        }),
        (EffectKey::Close(_, session), Effect::Close(_)) => Some(Input::Closed {
            session,
            result: runtime.close(session).await,
        }),
        (EffectKey::Cancel(_, session), Effect::Cancel(_)) => {
            if let Err(error) = runtime.cancel(session).await {
                // The stop's grace ends the session if this did not.
                tracing::warn!(%session, %error, "cancel not passed on");
            }
            None
        }
        (key, effect) => {
            tracing::error!(?key, ?effect, "an effect under another's key: a defect");
            None
        }
    }
}

/// The answer comes as an event of the session: only a message that was not accepted is news here.
async fn send(
    engine: &Engine,
    session: ClientSessionId,
    message: MessageRequest,
    files: Vec<(PathBuf, String)>,
) -> Option<Input> {
    let result = match write_files(files).await {
        Ok(()) => engine.runtime.send(session, &message).await,
        Err(error) => Err(error),
    };
    let message = message.client_message_id;
    result.err().map(|error| Input::NotSent {
        session,
        message,
        error,
    })
}

async fn write_files(files: Vec<(PathBuf, String)>) -> Result<(), RuntimeError> {
    for (path, content) in files {
        let folder = path.parent().map(PathBuf::from).unwrap_or_default();
        let written = async {
            tokio::fs::create_dir_all(&folder).await?;
            tokio::fs::write(&path, content).await
        };
        written.await.map_err(|error| RuntimeError::Temporary {
            words: format!("{}: {error}", path.display()),
            retry_after: None,
        })?;
    }
    Ok(())
}

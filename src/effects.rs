//! Carrying out one effect: one call to an adapter, and the input that comes of it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join;
use sillage_core::planted::{Bug, planted};
use sillage_core::ports::RunFiles;
use sillage_core::ports::runtime::RuntimeError;
use sillage_core::ports::workspace::Worktree;
use sillage_core::run::{CheckoutWatch, Effect, EffectKey, Input, ReportFile, StraySeen};

use crate::check::{self, Check};
use crate::engine::Engine;
use crate::stray::{self, Named};

/// Does what `effect` asks, once; tells what came of it, where that is news.
pub(crate) async fn carry_out(
    engine: &Engine,
    files: &Files,
    watch: Option<CheckoutWatch>,
    key: EffectKey,
    effect: Effect,
) -> Option<Input> {
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
        (EffectKey::Open(_, session), Effect::Open(request)) => {
            let look = async {
                if let Some(watch) = &watch {
                    stray::begin(&**workspace, &*engine.files, watch).await;
                }
            };
            let (result, ()) = join(runtime.open(&request), look).await;
            Some(Input::Opened { session, result })
        }
        (
            EffectKey::Find(_, session),
            Effect::Find {
                request,
                native,
                in_flight,
                worktree,
            },
        ) => {
            if let Some(watch) = &watch {
                stray::cut(&*engine.files, watch).await;
            }
            let result = match gone(engine, worktree).await {
                // It is not asked for where it cannot go on: the step starts again in a worktree made anew. Its opening
                // may still be on its way.
                Some(words) => match runtime.close(session).await {
                    Err(error @ (RuntimeError::Temporary { .. } | RuntimeError::Capacity { .. })) => {
                        Err(error)
                    }
                    Err(error) => {
                        tracing::warn!(%session, %error, "a session without its worktree is not closed");
                        Err(RuntimeError::Lost { words })
                    }
                    Ok(()) => Err(RuntimeError::Lost { words }),
                },
                None => {
                    runtime
                        .find(&request, native.as_deref(), in_flight.as_deref())
                        .await
                }
            };
            Some(Input::Found { session, result })
        }
        (
            EffectKey::Send(..),
            Effect::Send {
                session,
                message,
                files: wanted,
            },
        ) => {
            let wanted = if planted(Bug::FilesForgotten) {
                Vec::new()
            } else {
                wanted
            };
            let sent = match files.write(&*engine.files, wanted).await {
                Ok(()) => runtime.send(session, &message).await,
                Err(error) => Err(error),
            };
            // The answer comes as an event of the session: only a message that was not accepted is news here.
            let message = message.client_message_id;
            sent.err().map(|error| Input::NotSent {
                session,
                message,
                error,
            })
        }
        (
            EffectKey::AnswerPermission(_, asked),
            Effect::AnswerPermission {
                session,
                permission,
                option,
            },
        ) => {
            // That it was told comes as an event of the session: only what could not be is news here.
            let told = runtime.answer_permission(session, &permission, &option).await;
            told.err().map(|error| Input::PermissionNotPassed {
                session,
                asked,
                error,
            })
        }
        (EffectKey::Verify(step), Effect::Verify { folder, files }) => Some(Input::Verified {
            step,
            result: workspace.missing(&folder, &files).await,
        }),
        (EffectKey::Commit(step), Effect::Commit { worktree, message }) => {
            let look = async {
                match &watch {
                    Some(watch) => stray::end(&**workspace, &*engine.files, watch, &files.named, step).await,
                    None => StraySeen::default(),
                }
            };
            let (result, seen) = join(workspace.commit(&worktree, &message), look).await;
            Some(Input::Committed { step, result, seen })
        }
        (EffectKey::Merge(step), Effect::Merge(wish)) => Some(Input::Merged {
            step,
            result: workspace.merge(&wish).await,
        }),
        (EffectKey::BeginMerge(step), Effect::BeginMerge { worktree, wish }) => Some(Input::MergeBegun {
            step,
            result: workspace.begin_merge(&worktree, &wish).await,
        }),
        (EffectKey::Inspect(step), Effect::Inspect { worktree, files }) => Some(Input::Inspected {
            step,
            result: workspace.unresolved(&worktree, &files).await,
        }),
        (
            EffectKey::AbandonMerge(step),
            Effect::AbandonMerge {
                worktree,
                tip,
                run,
                step: name,
            },
        ) => Some(Input::MergeAbandoned {
            step,
            result: workspace.abandon_merge(&worktree, &tip, &run, &name).await,
        }),
        (
            EffectKey::Check,
            Effect::Check {
                command,
                place,
                output,
                limit,
            },
        ) => {
            let check = Check {
                command,
                place,
                output,
                limit,
                launcher: engine.launcher.to_vec(),
            };
            Some(Input::Checked(check::run(&**workspace, check).await))
        }
        (EffectKey::ClearCheck, Effect::ClearCheck { repository, run }) => {
            let result = workspace.clear_check(&repository, &run).await;
            if let Err(error) = &result {
                tracing::warn!(%run, %error, "the check's folder is not removed");
            }
            Some(Input::CheckCleared { result })
        }
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

/// How a session's worktree was lost, if it was.
async fn gone(engine: &Engine, worktree: Option<Worktree>) -> Option<String> {
    let worktree = worktree?;
    match engine.workspace.lost(&worktree).await {
        Ok(why) => why.map(|why| format!("its worktree {} {why}", worktree.path.display())),
        Err(error) => {
            // Whoever uses the worktree next meets what is wrong, and tells it.
            tracing::warn!(worktree = %worktree.path.display(), %error, "a worktree could not be looked at");
            None
        }
    }
}

/// The files that messages speak of: the full reports of agents upstream.
///
/// Each is written once while its run is driven, however many messages speak of it, and again once its step was done
/// anew and hands on another report. Whoever takes the run up later writes them again, for they are not synced.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// By path, a digest of what stands there, if that is known. Held while the file is written, so that a slow write of
    /// an earlier report does not land on a later one.
    reports: Mutex<HashMap<PathBuf, Arc<Stands>>>,
    /// What tool calls name.
    pub(crate) named: Named,
}

type Stands = tokio::sync::Mutex<Option<u64>>;

impl Files {
    /// Returns once all of them are written, by this call or another. One that failed is tried again by the next who
    /// needs it.
    async fn write(&self, disk: &dyn RunFiles, files: Vec<ReportFile>) -> Result<(), RuntimeError> {
        for file in files {
            let wanted = Some(digest(&file.content));
            let stands = self.stands(&file.path);
            let mut stands = stands.lock().await;
            if *stands != wanted {
                *stands = None;
                write(disk, file).await?;
                *stands = wanted;
            }
        }
        Ok(())
    }

    fn stands(&self, path: &Path) -> Arc<Stands> {
        // No holder can leave them half-changed in a way that matters: a file written twice is the same file.
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(reports.entry(path.to_owned()).or_default())
    }
}

fn digest(content: &str) -> u64 {
    let mut digest = DefaultHasher::new();
    content.hash(&mut digest);
    digest.finish()
}

async fn write(disk: &dyn RunFiles, file: ReportFile) -> Result<(), RuntimeError> {
    let written = disk.write(&file.path, file.content.into_bytes()).await;
    written.map_err(|error| RuntimeError::Temporary {
        words: format!("{}: {error}", file.path.display()),
        retry_after: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::DiskFiles;

    fn file(path: &Path, content: &str) -> ReportFile {
        ReportFile {
            path: path.to_owned(),
            content: content.to_owned(),
        }
    }

    #[tokio::test]
    async fn w14_a_file_is_written_once_and_again_by_the_next_engine() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("step/report.json");
        let wanted = |content: &str| vec![file(&path, content)];
        let files = Files::default();
        let (first, second) = tokio::join!(
            files.write(&DiskFiles, wanted("first")),
            files.write(&DiskFiles, wanted("first"))
        );
        assert_eq!((first, second), (Ok(()), Ok(())));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        std::fs::remove_file(&path).unwrap();
        files.write(&DiskFiles, wanted("first")).await.unwrap();
        assert!(!path.exists(), "it was written before");
        Files::default()
            .write(&DiskFiles, wanted("after a restart"))
            .await
            .unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "after a restart");
    }

    #[tokio::test]
    async fn w18_the_report_of_a_step_that_was_done_again_takes_the_place_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("step/report.json");
        let files = Files::default();
        for content in ["of the first try", "of the second", "of the first try"] {
            files.write(&DiskFiles, vec![file(&path, content)]).await.unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
    }

    /// Writes one after the other as it is let, and the first only when it is told to.
    struct Slow(tokio::sync::Semaphore, DiskFiles);

    #[async_trait::async_trait]
    impl RunFiles for Slow {
        async fn write(&self, file: &Path, content: Vec<u8>) -> std::io::Result<()> {
            if content == b"of the first try" {
                let _ = self.0.acquire().await;
            }
            self.1.write(file, content).await
        }
        async fn read(&self, file: &Path) -> std::io::Result<Vec<u8>> {
            self.1.read(file).await
        }
    }

    #[tokio::test]
    async fn w18_a_slow_write_of_an_earlier_report_does_not_land_on_a_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("step/report.json");
        let disk = Slow(tokio::sync::Semaphore::new(0), DiskFiles);
        let files = Files::default();
        let first = files.write(&disk, vec![file(&path, "of the first try")]);
        let second = async {
            tokio::task::yield_now().await;
            let later = files.write(&disk, vec![file(&path, "of the second")]);
            let let_go = async { disk.0.add_permits(1) };
            tokio::join!(later, let_go).0
        };
        assert_eq!(tokio::join!(first, second), (Ok(()), Ok(())));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "of the second");
    }

    #[tokio::test]
    async fn w14_a_write_that_failed_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("step");
        std::fs::write(&blocked, "a file where a folder must be").unwrap();
        let path = blocked.join("report.json");
        let files = Files::default();
        let wanted = || vec![file(&path, "whole")];
        let failed = files.write(&DiskFiles, wanted()).await;
        assert!(
            matches!(failed, Err(RuntimeError::Temporary { .. })),
            "{failed:?}"
        );
        std::fs::remove_file(&blocked).unwrap();
        files.write(&DiskFiles, wanted()).await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole");
    }
}

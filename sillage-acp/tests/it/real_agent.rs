//! Real agents, offline, with the testkit's model server as their model: what each does in each row of the table of
//! `docs/agents.md`. What a row cannot do without is asserted in it; what agents may do each in their own way is its
//! outcome, which the table holds them to.

use std::future::Future;
use std::path::Path;

use sillage_testkit::real_agent::{Kind, table};
use tokio::sync::Semaphore;

mod endings;
mod sessions;
mod stage;
mod turns;

use self::stage::Stage;

/// Agents that work at once: each is as heavy as all other tests together.
static ROOM: Semaphore = Semaphore::const_new(2);

/// Plays a row with an agent, and tells its outcome.
async fn row<F: Future<Output = String>>(title: &str, kind: Kind, play: impl FnOnce(Stage) -> F) {
    let _room = ROOM.acquire().await.expect("it is never closed");
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(stage) = Stage::of(kind).await else {
        return;
    };
    let outcome = play(stage).await;
    table::tell(
        package,
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        title,
        kind,
        &outcome,
    );
}

/// A module of tests for each row, one for each agent.
macro_rules! rows {
    ($($name:ident: $title:literal, $play:path;)*) => {$(
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn opencode() {
                row($title, Kind::Opencode, $play).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn codex() {
                row($title, Kind::Codex, $play).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn gemini() {
                row($title, Kind::Gemini, $play).await;
            }
        }
    )*};
}

// The numbers give the order in the table.
rows! {
    version: "00 Version tried", sessions::version;
    a3_model_and_effort: "02 Model, effort, tokens", sessions::model_effort_and_tokens;
    a5_r21_allowed: "03 A write that the folders allow", turns::allowed;
    a5_r21_refused: "04 A write that the policy refuses", turns::refused;
    a5_cancelled_while_asked: "05 Cancelled while it asks for permission", turns::cancelled_while_asked;
    a5_cancelled_in_stream: "06 Cancelled while its model speaks", turns::cancelled_in_stream;
    r9_model_answers_400: "07 Its model answers 400", turns::model_answers_400;
    r7_model_answers_500: "08 Its model answers 500", turns::model_answers_500;
    r7_model_hangs_up: "09 Its model hangs up in the middle", turns::model_hangs_up;
    r4_found_idle: "10 Found again by another engine", sessions::found_idle;
    r4_found_answered: "11 Found again, the answer not received", sessions::found_answered;
    a2_mcp_server: "12 An MCP server of the settings", sessions::mcp_server;
    a4_closed_at_work: "13 Closed while its shell works", endings::closed_at_work;
    a4_killed_at_work: "14 Killed while its shell works", endings::killed_at_work;
}

//! What clients of ACP have stumbled over in the field, one test a case: `acp01` to `acp32`. Most of what goes wrong
//! within a prompt is a rule of `scripts/faults.yaml`, played when the prompt names it.

use sillage_core::ports::runtime::{StopReason, Usage};

use super::*;

mod cancel;
mod ends;
mod floods;
mod lines;
mod opening;
mod permission;
mod turns;

/// An agent that misbehaves as the rule says that a prompt names; `head` is more of its script.
fn faulty(head: &str) -> Theatre {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/faults.yaml");
    let rules = std::fs::read_to_string(rules).expect("a script of the package");
    let rules = rules.replace("\nids: strings\n", "\n");
    let model = "options: [{ id: m, category: model, values: [fake-1] }]";
    Theatre::new(&format!("{model}\n{head}\n{rules}"))
}

/// The answer to a prompt that names a rule, by an agent of its own.
async fn answer_of(rule: &str) -> Answer {
    let theatre = faulty("");
    let scene = theatre.scene().await;
    let answer = scene
        .answer(rule)
        .await
        .unwrap_or_else(|error| panic!("{rule}: {error:?}"));
    scene.leave(&theatre).await;
    answer
}

/// The failure of a prompt that names a rule, by an agent whose session goes on.
async fn failure_of(rule: &str) -> RuntimeError {
    let theatre = faulty("");
    let scene = theatre.scene().await;
    let error = scene.answer(rule).await.expect_err(rule);
    let next = scene.answer("and then").await.expect("the session goes on");
    assert_eq!(next.text, "all is well", "{rule}");
    scene.leave(&theatre).await;
    error
}

/// The answer's text and stop reason.
fn told(answer: &Answer) -> (&str, &StopReason) {
    (answer.text.as_str(), &answer.stop)
}

impl Scene {
    /// Closes the session: no process is left, and every frame of ours was as the schema wants it.
    async fn leave(self, theatre: &Theatre) {
        self.close().await;
        theatre.check_frames();
        assert!(!theatre.leaves_processes(), "a process is left");
    }

    /// The session's events so far and the rest of them once it was closed.
    async fn leave_with_events(self, theatre: &Theatre) -> Vec<SessionEventKind> {
        let events = self.runtime.events(self.id, 0).await.expect("events");
        self.leave(theatre).await;
        within(events.map(|event| event.kind).collect()).await
    }
}

fn is_note(kind: &SessionEventKind, part: &str) -> bool {
    matches!(kind, SessionEventKind::Note { text } if text.contains(part))
}

/// The states that a tool call went through.
fn states<'a>(events: &'a [SessionEventKind], call: &str) -> Vec<&'a str> {
    let mut states = Vec::new();
    for kind in events {
        if let SessionEventKind::Tool { id, status, .. } = kind
            && id == call
        {
            states.push(status.as_str());
        }
    }
    states
}

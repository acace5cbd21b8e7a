//! The judge: compares the log and the engine's requests with the world's tables and the promises of the project.

mod book;
mod calls;
mod ending;
mod facts;
mod gates;
mod groups;
mod hands;
mod limits;
mod merges;
mod starts;

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::path::PathBuf;

use sillage_core::id::{ClientMessageId, ClientSessionId, Seq, StepIndex};
use sillage_core::ports::runtime::SessionRequest;
use sillage_core::ports::store::RunSummary;
use sillage_core::run::{Budget, BudgetKind, MessagePurpose, Run, RunEnd};
use sillage_core::task::AgentDefinition;

use book::{MessageBook, SessionBook, StepBook};
use gates::GateBook;

macro_rules! promises {
    ($($(#[$doc:meta])* $name:ident $word:literal,)*) => {
        /// What is promised whatever happens.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Promise {
            $($(#[$doc])* $name,)*
        }

        impl Promise {
            /// All of them.
            pub const ALL: &[Promise] = &[$(Promise::$name,)*];

            /// What it is called.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Promise::$name => $word,)*
                }
            }
        }
    };
}

promises! {
    /// An identifier of a session starts one session, asked for with one request; a step has one session at a time.
    OneStart "one-start",
    /// An identifier of a message is one message, received once; a mission is told once in a session.
    OneMessage "one-message",
    /// What is asked of the world was in the log before.
    IntentFirst "intent-first",
    /// What was shown or told as done is in the log.
    NothingLost "nothing-lost",
    /// After an append that failed the log is read before it is written again.
    ReadsAgain "reads-again",
    /// The log grows without gaps, and nothing but a person's wish to go on follows the run's end.
    Order "order",
    /// A step starts only after what it depends on let it.
    Parents "parents",
    /// A step ends once in a life.
    EndsOnce "ends-once",
    /// Sessions at work stay within the limits of the run and of the models.
    Limits "limits",
    /// A report goes back twice at most.
    Corrections "corrections",
    /// A plan against the rules launches nothing and goes back twice at most; sub-agents are those of an accepted plan,
    /// and start after those that they wait for.
    Plans "plans",
    /// A coordinator is asked for its report once its sub-agents are over, and a group that lost one is not complete.
    Groups "groups",
    /// After an enforced ceiling, or a failure that is to stop the rest, no new session is planned.
    Ceilings "ceilings",
    /// A conflict goes back twice at most.
    Returns "returns",
    /// Waits are as long as they must be.
    Waits "waits",
    /// A provider account is left alone until the date that the provider named, but for one that tries when it is due.
    Gates "gates",
    /// After a stop nothing new begins.
    StopWins "stop-wins",
    /// A step is complete only by a right report of its own session, and totals are what their parts are.
    HonestTotals "honest-totals",
    /// What a complete step made in a worktree is merged.
    NoWorkLost "no-work-lost",
    /// What messages speak of is there before they leave.
    FilesFirst "files-first",
    /// The state that lives is the state that the log tells.
    Replays "replays",
    /// The log says of sessions what the world said.
    AsTold "as-told",
    /// Work is merged one step at a time.
    OneMerge "one-merge",
    /// A run has work under way, a dated wait, a question to a person, or an end.
    NeverStuck "never-stuck",
    /// Once faults are over a run ends.
    Ends "ends",
    /// No session outlives the run.
    NothingLeft "nothing-left",
    /// Nothing is asked again and again without a wait.
    NoStorm "no-storm",
    /// The engine does not panic.
    NoPanic "no-panic",
    /// The same seed tells the same story.
    SameStory "same-story",
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The promise.
    pub promise: Promise,
    /// How.
    pub words: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.words)
    }
}

/// Watches one story.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    /// The log, folded by the product.
    run: Option<Run>,
    steps: Vec<StepBook>,
    sessions: BTreeMap<ClientSessionId, SessionBook>,
    messages: BTreeMap<ClientMessageId, MessageBook>,
    last: u64,
    stopping: bool,
    stopped: bool,
    ended: Option<RunEnd>,
    budget: Option<Budget>,
    /// Ceilings that were told to be reached.
    reached: Vec<(BudgetKind, u64)>,
    /// The failure that is to stop the rest.
    failed_first: Option<StepIndex>,
    /// Whose work is being merged.
    merging: Option<StepIndex>,
    /// Permission requests that nobody was told of yet.
    asked: Vec<Seq>,
    gates: BTreeMap<String, GateBook>,
    /// Messages that the engine was told to be in conflict since it last decided something.
    conflicts: Vec<ClientMessageId>,
    found: Option<Violation>,
}

impl Judge {
    pub(crate) fn violated(&mut self, promise: Promise, words: impl FnOnce() -> String) {
        if self.found.is_none() {
            self.found = Some(Violation {
                promise,
                words: words(),
            });
        }
    }

    /// Expects something of a promise.
    fn expect(&mut self, promise: Promise, holds: bool, words: impl FnOnce() -> String) {
        if !holds {
            self.violated(promise, words);
        }
    }

    pub(crate) fn found(&self) -> Option<&Violation> {
        self.found.as_ref()
    }

    pub(crate) fn take_asked(&mut self) -> Vec<Seq> {
        mem::take(&mut self.asked)
    }

    pub(crate) fn purpose(&self, message: ClientMessageId) -> Option<MessagePurpose> {
        self.messages.get(&message).map(|message| message.purpose)
    }

    /// Whether the run is over.
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// How many steps there are.
    pub(crate) fn count_steps(&self) -> u64 {
        self.steps.len() as u64
    }

    /// A step's agent.
    pub(crate) fn agent(&self, step: StepIndex) -> Option<&AgentDefinition> {
        let run = self.run.as_ref()?;
        run.step(step).map(|_| run.agent(step))
    }

    /// The step of a session, and the folder that it works in.
    pub(crate) fn place_of(&self, session: ClientSessionId) -> Option<(StepIndex, PathBuf)> {
        let session = self.sessions.get(&session)?;
        Some((session.step, session.request.workspace.clone()))
    }

    /// What a session was planned with.
    pub(crate) fn request_of(&self, session: ClientSessionId) -> Option<SessionRequest> {
        self.sessions
            .get(&session)
            .map(|session| SessionRequest::clone(&session.request))
    }

    /// After a batch: what the engine says of its own state is what the log tells, and the run is not stuck.
    pub(crate) fn batch_written(&mut self, summary: &RunSummary) {
        let Some(run) = &self.run else { return };
        let told = run.summary();
        // A launch alone starts nothing: the engine that launched it, or the next one, goes on at once.
        let moves = self.last == 1
            || run.end().is_some()
            || !run.outbox().is_empty()
            || run.deadline().is_some()
            || run
                .steps()
                .iter()
                .any(|step| matches!(step.phase(), sillage_core::run::Phase::Asking(_)));
        self.expect(Promise::Replays, told == *summary, || {
            format!("the engine's summary is {summary:?}, the log's {told:?}")
        });
        self.expect(Promise::NeverStuck, moves, || {
            "nothing is under way and nothing will come".to_owned()
        });
        if let Some(end) = self.ended
            && !self.stopped
        {
            self.stopped = true;
            self.run_over(end);
        }
    }

    /// How the run and its steps ended, in words.
    pub(crate) fn outcome(&self) -> String {
        let Some(run) = &self.run else {
            return "not launched".to_owned();
        };
        let mut words = run.word().to_owned();
        let own = self.task_steps();
        for step in &run.steps()[..own] {
            words.push(' ');
            words.push_str(step.word());
        }
        // Groups come in the order in which plans were accepted.
        let mut subs: Vec<String> = (own..run.steps().len())
            .map(|position| StepIndex(u32::try_from(position).unwrap_or(u32::MAX)))
            .map(|step| format!(" {}:{}", run.step_name(step), run.steps()[step.position()].word()))
            .collect();
        subs.sort_unstable();
        words.extend(subs);
        words
    }
}

//! Bugs that the project plants in itself, to see that its judge finds them. `docs/simulation.md` lists them.
//!
//! Without the feature `planted-bugs`, which nothing that is shipped enables, there is none: [`planted`] is `false` when
//! the program is compiled. With it there is none until a test plants one in its own thread.

#[cfg(feature = "planted-bugs")]
use std::cell::Cell;

macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident $word:literal,)*) => {
        /// A bug that can be planted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Bug {
            $($(#[$doc])* $name,)*
        }

        impl Bug {
            /// All of them.
            pub const ALL: &[Bug] = &[$(Bug::$name,)*];

            /// What it is called.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Bug::$name => $word,)*
                }
            }
        }
    };
}

bugs! {
    /// The wait between two tries doubles without end.
    BackoffUncapped "backoff-uncapped",
    /// An answer does not end a series of failed tries.
    SeriesNotReset "series-not-reset",
    /// The time that a provider asks for is not waited.
    RetryAfterIgnored "retry-after-ignored",
    /// The date that a provider names for the end of a quota is not gone by.
    QuotaDateIgnored "quota-date-ignored",
    /// A date that is past is waited for all the same.
    PastDateBelieved "past-date-believed",
    /// Agents of an account whose quota is used up are not held.
    GateIgnored "gate-ignored",
    /// A step tries again although it tried as often as it may.
    AttemptsIgnored "attempts-ignored",
    /// A wait that is under way is forgotten when another engine takes the run up.
    WaitNotRearmed "wait-not-rearmed",
    /// A session whose opening failed is opened under a new identifier.
    NewSessionOnRetry "new-session-on-retry",
    /// A session that may have been opened is opened anew by the next engine, instead of being looked for.
    RestartOpensAnew "restart-opens-anew",
    /// A session that is lost is taken as found.
    LostAsFound "lost-as-found",
    /// A message that failed is written and sent anew.
    NewMessageOnRetry "new-message-on-retry",
    /// An answer counts whatever its step is at.
    LateAnswerTaken "late-answer-taken",
    /// A report goes back once too often.
    ThirdCorrection "third-correction",
    /// A report is taken although its deliverable is not there.
    MissingTaken "missing-taken",
    /// What is partial is told as complete.
    PartialAsComplete "partial-as-complete",
    /// A run whose step is blocked is told as complete.
    BlockedAsComplete "blocked-as-complete",
    /// Ready steps start although the run is to stop.
    StopIgnored "stop-ignored",
    /// A stop is never forced.
    StopNeverForced "stop-never-forced",
    /// One session too many may be at work.
    OneTooMany "one-too-many",
    /// A model's own limit is not looked at.
    ModelLimitIgnored "model-limit-ignored",
    /// A step starts after the first of those before it.
    FirstParentEnough "first-parent-enough",
    /// A step that two others keep from running ends twice.
    EndsTwice "ends-twice",
    /// The run ends before its last step.
    EndsEarly "ends-early",
    /// Two merges are under way at once.
    TwoMerges "two-merges",
    /// The work of a complete step is not merged.
    MergeForgotten "merge-forgotten",
    /// A conflict goes back once too often.
    ThirdReturn "third-return",
    /// A plan with too many sub-agents is taken.
    PlanCapIgnored "plan-cap-ignored",
    /// A plan goes back once too often.
    ThirdPlanReturn "third-plan-return",
    /// A group that lost a sub-agent may be complete.
    LostSubAgentForgotten "lost-sub-agent-forgotten",
    /// An enforced ceiling holds nobody back.
    CeilingIgnored "ceiling-ignored",
    /// What ran on what a step did before stays as it is when that is done again.
    NothingOutdated "nothing-outdated",
    /// A message whose identifier came before with another text is sent again.
    ConflictTriedAgain "conflict-tried-again",
    /// Sessions are not closed when their step ends.
    NotClosed "not-closed",
    /// The driver acts before the log holds why.
    ActsFirst "acts-first",
    /// The driver shows facts before the log holds them.
    ShowsFirst "shows-first",
    /// A write that failed is taken as done.
    FailedWriteTaken "failed-write-taken",
    /// After a write that failed, the log is written to without being read.
    WritesBlindly "writes-blindly",
    /// A message leaves before the files that it speaks of are there.
    FilesForgotten "files-forgotten",
    /// What a session says while its message waits to be sent again is heard neither then nor later.
    NotHeardAgain "not-heard-again",
    /// A session whose stream of events was cut is not looked for.
    CutUnnoticed "cut-unnoticed",
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Plants a bug in what this thread does from now on, in place of an earlier one; none: takes it away.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Whether this bug is planted.
#[cfg(feature = "planted-bugs")]
#[must_use]
pub fn planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Whether this bug is planted: there is none.
#[cfg(not(feature = "planted-bugs"))]
#[must_use]
pub const fn planted(_: Bug) -> bool {
    false
}

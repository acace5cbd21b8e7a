//! A step: one agent within one run, and where it stands.

use std::sync::Arc;
use std::time::Duration;

use super::event::{MessagePurpose, StepEnd, WaitCause};
use super::group::Group;
pub(super) use super::hand::Hand;
use super::permissions::OpenPermission;
pub use super::work::{Conflict, Ledger, Work};
use crate::id::{ClientMessageId, ClientSessionId};
use crate::ports::runtime::{MessageRequest, OpenedSession, SessionRequest, Usage};
use crate::ports::workspace::Worktree;
use crate::report::Report;
use crate::time::Timestamp;

/// Where a step stands. Each phase but the resting ones is work for the outside, held in the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Some step upstream is not over.
    Pending,
    /// Waits for a place.
    Ready,
    /// Its worktree is being made.
    Leasing,
    /// Its worktree is being put back to its base.
    Restarting,
    /// Its session is being opened.
    Opening,
    /// Its session is being looked for.
    Finding,
    /// Its session is answering a message.
    Prompted,
    /// Its deliverable's files are being looked at.
    Verifying,
    /// It waits for a date and holds no place.
    Waiting(Box<Wait>),
    /// Its provider account's gate holds it, since then (R8). It holds no place.
    Held(Timestamp),
    /// Its session, in the middle of a message, waits for a person to answer a permission request, since then. It holds
    /// no place.
    Asking(Timestamp),
    /// A coordinator whose sub-agents are not all over. It holds no place; its session is kept open for what follows.
    Gathering,
    /// It is over; its session is being closed so that its work can be committed.
    Closing(StepEnd),
    /// It is over; what it left is being committed.
    Committing(StepEnd),
    /// Its work conflicts; the integration branch is being merged into its worktree, for its agent to resolve.
    BeginningMerge(StepEnd),
    /// Its agent reported on the conflict; the files are being looked at.
    Inspecting(StepEnd),
    /// It is over; the merge in its worktree is being given up.
    Abandoning(StepEnd),
    /// It is over; its commit waits for its turn to be merged.
    MergeQueued(StepEnd),
    /// It is over; its commit is being merged.
    Merging(StepEnd),
    /// It is over.
    Ended(StepEnd),
}

impl Phase {
    /// Whether a step in this phase counts under the limits of sessions at work.
    #[must_use]
    pub const fn holds_place(&self) -> bool {
        match self {
            Phase::Leasing
            | Phase::Restarting
            | Phase::Opening
            | Phase::Finding
            | Phase::Prompted
            | Phase::Verifying => true,
            Phase::Pending
            | Phase::Ready
            | Phase::Waiting(_)
            | Phase::Held(_)
            | Phase::Asking(_)
            | Phase::Gathering
            | Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::Abandoning(_)
            | Phase::MergeQueued(_)
            | Phase::Merging(_)
            | Phase::Ended(_) => false,
        }
    }
}

/// A dated wait (R10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// What for.
    pub cause: WaitCause,
    /// Since when.
    pub since: Timestamp,
    /// Until when before the next try.
    pub until: Timestamp,
    /// The provider's words.
    pub words: String,
}

/// What a step does when it gets a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Start from nothing.
    Begin,
    /// Put its worktree back to its base, then start.
    Restart,
    /// Start from nothing, with a worktree that is put to where the run's work is now.
    Anew,
    /// Ask again for the worktree that was planned.
    Lease,
    /// Ask again for the session that was planned.
    Open,
    /// Look for its session.
    Find,
    /// Send again the message that was not accepted.
    Send,
    /// Go on in the same session with a new message.
    Continue,
    /// Tell its session, which is in the middle of a message, what a person answered.
    Answer,
    /// Tell its session of the conflict in its worktree.
    Resolve,
    /// Tell its session what came of its sub-agents.
    Synthesize,
}

/// A step of a run.
#[derive(Debug, Clone)]
pub struct Step {
    pub(super) phase: Phase,
    pub(super) next: Next,
    pub(super) corrections: u8,
    /// Failed tries in the present series.
    pub(super) tries: u16,
    /// Upstream steps that have not let it run yet.
    pub(super) unmet: u32,
    pub(super) report: Option<Arc<Report>>,
    pub(super) session: Option<Box<StepSession>>,
    pub(super) work: Option<Box<Work>>,
    pub(super) group: Option<Box<Group>>,
    pub(super) ledger: Option<Box<Ledger>>,
    pub(super) started: Option<Timestamp>,
    pub(super) ended: Option<Timestamp>,
    /// Since when its session is answering.
    pub(super) working_since: Option<Timestamp>,
    pub(super) worked: Duration,
    /// The date of its entry among the run's timers.
    pub(super) timer: Option<Timestamp>,
    /// What people asked of it; absent while there is nothing to tell.
    pub(super) hand: Option<Box<Hand>>,
}

/// The session of a step, until the step is over and its session closed.
#[derive(Debug, Clone)]
pub struct StepSession {
    pub(super) request: Arc<SessionRequest>,
    pub(super) opened: Option<OpenedSession>,
    /// Whether this engine is attached to it.
    pub(super) attached: bool,
    pub(super) in_flight: Option<Arc<MessageRequest>>,
    /// Whether that message has its answer, whole.
    pub(super) answered: bool,
    /// Whether that message was accepted and failed: its runtime may tell so once more.
    pub(super) failed: bool,
    pub(super) purpose: MessagePurpose,
    /// Whether any message was planned in it.
    pub(super) prompted: bool,
    pub(super) usage: Usage,
    /// Permission requests that wait for a person, or whose answer is on its way.
    pub(super) permissions: Vec<OpenPermission>,
    /// Permission requests of it that were told to be refused by a rule.
    pub(super) refusals: u16,
}

impl StepSession {
    pub(super) fn planned(request: &Arc<SessionRequest>) -> Self {
        Self {
            request: Arc::clone(request),
            opened: None,
            attached: false,
            in_flight: None,
            answered: false,
            failed: false,
            purpose: MessagePurpose::Mission,
            prompted: false,
            usage: Usage::default(),
            permissions: Vec::new(),
            refusals: 0,
        }
    }

    /// What the runtime said of it when it was opened or found.
    #[must_use]
    pub fn opened(&self) -> Option<&OpenedSession> {
        self.opened.as_ref()
    }

    /// Its identifier.
    #[must_use]
    pub fn id(&self) -> ClientSessionId {
        self.request.client_session_id
    }

    /// Whether `message` is the one being answered.
    pub(super) fn answers(&self, message: ClientMessageId) -> bool {
        self.in_flight
            .as_ref()
            .is_some_and(|m| m.client_message_id == message)
    }
}

impl Step {
    pub(super) fn new(unmet: u32) -> Self {
        Self {
            phase: if unmet == 0 { Phase::Ready } else { Phase::Pending },
            next: Next::Begin,
            corrections: 0,
            tries: 0,
            unmet,
            report: None,
            session: None,
            work: None,
            group: None,
            ledger: None,
            started: None,
            ended: None,
            working_since: None,
            worked: Duration::ZERO,
            timer: None,
            hand: None,
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn end(&self) -> Option<&StepEnd> {
        let Phase::Ended(end) = &self.phase else {
            return None;
        };
        Some(end)
    }

    /// Its state in the words of R2.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match &self.phase {
            Phase::Prompted | Phase::Verifying if self.conflict().is_some() => "merging",
            Phase::Pending => "pending",
            Phase::Ready => "ready",
            Phase::Leasing | Phase::Restarting | Phase::Opening | Phase::Finding => "starting",
            Phase::Prompted | Phase::Verifying if self.returns() > 0 => "correcting",
            Phase::Prompted | Phase::Verifying => "running",
            Phase::Waiting(_) | Phase::Held(_) | Phase::Asking(_) | Phase::Gathering => "waiting",
            Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::Abandoning(_)
            | Phase::MergeQueued(_)
            | Phase::Merging(_) => "merging",
            Phase::Ended(end) => end.word(),
        }
    }

    /// Its accepted report.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.report.as_deref()
    }

    /// Its session, while it has one.
    #[must_use]
    pub fn session(&self) -> Option<&StepSession> {
        self.session.as_deref()
    }

    /// Its worktree and commits, if it has any.
    #[must_use]
    pub fn work(&self) -> Option<&Work> {
        self.work.as_deref()
    }

    /// What it has spent and suffered, if anything.
    #[must_use]
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    /// Times that what it owes went back to it: its plan before that is accepted, then its report.
    #[must_use]
    pub fn returns(&self) -> u8 {
        match self.group.as_deref() {
            Some(group) if group.is_planned() => self.corrections,
            Some(group) => group.returns,
            None => self.corrections,
        }
    }

    /// What it does when it gets a place and has no session.
    pub(super) fn next_without_session(&self) -> Next {
        match &self.work {
            Some(work) if work.worktree.is_some() => Next::Restart,
            Some(_) => Next::Lease,
            None => Next::Begin,
        }
    }

    /// Times that its report went back to it.
    #[must_use]
    pub fn corrections(&self) -> u8 {
        self.corrections
    }

    /// When it first got a place.
    #[must_use]
    pub fn started(&self) -> Option<Timestamp> {
        self.started
    }

    /// When it ended.
    #[must_use]
    pub fn ended(&self) -> Option<Timestamp> {
        self.ended
    }

    /// Time that its sessions spent answering, up to `now`. Waits are not in it.
    #[must_use]
    pub fn worked(&self, now: Timestamp) -> Duration {
        self.worked
            + self
                .working_since
                .map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Time spent waiting for a date or for a person, up to `now`.
    #[must_use]
    pub fn waited(&self, now: Timestamp) -> Duration {
        let over = self
            .ledger
            .as_deref()
            .map_or(Duration::ZERO, |ledger| ledger.waited);
        let since = match &self.phase {
            Phase::Waiting(wait) => wait.since,
            Phase::Held(since) | Phase::Asking(since) => *since,
            Phase::Pending
            | Phase::Ready
            | Phase::Leasing
            | Phase::Restarting
            | Phase::Opening
            | Phase::Finding
            | Phase::Prompted
            | Phase::Verifying
            | Phase::Gathering
            | Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::Abandoning(_)
            | Phase::MergeQueued(_)
            | Phase::Merging(_)
            | Phase::Ended(_) => return over,
        };
        over + now.since(since)
    }

    /// Usage of all its sessions, as far as known.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let ledger = self.ledger.as_deref();
        let earlier = ledger.map_or(Usage::default(), |l| l.earlier_usage);
        let leaving = ledger
            .into_iter()
            .flat_map(|l| &l.leaving)
            .map(|(_, usage)| *usage);
        let own = self.session.as_deref().map(|session| session.usage);
        leaving.chain(own).fold(earlier, added)
    }

    /// Whether its session has a message in hand: being answered, or held up by a person's answer.
    pub(super) fn is_answering(&self) -> bool {
        match self.phase {
            Phase::Prompted | Phase::Asking(_) => true,
            Phase::Ready => self.next == Next::Answer,
            Phase::Pending
            | Phase::Leasing
            | Phase::Restarting
            | Phase::Opening
            | Phase::Finding
            | Phase::Verifying
            | Phase::Waiting(_)
            | Phase::Held(_)
            | Phase::Gathering
            | Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::Abandoning(_)
            | Phase::MergeQueued(_)
            | Phase::Merging(_)
            | Phase::Ended(_) => false,
        }
    }

    /// Whether its message goes out again under its own identifier, for it is not known to have arrived. If it did, its
    /// answer, or what its agent asks, may come any time, and does not come again.
    pub(super) fn sends_again(&self) -> bool {
        self.next == Next::Send && matches!(self.phase, Phase::Waiting(_) | Phase::Ready)
    }

    /// The merge begun in its worktree, while its agent is to resolve it.
    #[must_use]
    pub fn conflict(&self) -> Option<&Conflict> {
        self.work.as_deref()?.conflict.as_ref()
    }

    /// Whether its session is kept open with nothing to do: in case that its work conflicts, or until its sub-agents are
    /// over.
    pub(super) fn is_kept_open(&self) -> bool {
        match &self.phase {
            Phase::Gathering
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::MergeQueued(_)
            | Phase::Merging(_) => true,
            Phase::Ready | Phase::Held(_) => matches!(self.next, Next::Resolve | Next::Synthesize),
            Phase::Pending
            | Phase::Leasing
            | Phase::Restarting
            | Phase::Opening
            | Phase::Finding
            | Phase::Prompted
            | Phase::Verifying
            | Phase::Waiting(_)
            | Phase::Asking(_)
            | Phase::Closing(_)
            | Phase::Abandoning(_)
            | Phase::Ended(_) => false,
        }
    }

    pub(super) fn ledger_mut(&mut self) -> &mut Ledger {
        self.ledger.get_or_insert_default()
    }

    pub(super) fn work_mut(&mut self) -> &mut Work {
        self.work.get_or_insert_default()
    }

    pub(super) fn worktree(&self) -> Option<&Worktree> {
        self.work.as_ref().and_then(|w| w.worktree.as_ref())
    }
}

/// Sums of what is known; unknown only where both are.
#[must_use]
pub(super) fn added(a: Usage, b: Usage) -> Usage {
    fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (known, None) | (None, known) => known,
        }
    }
    Usage {
        input_tokens: sum(a.input_tokens, b.input_tokens),
        output_tokens: sum(a.output_tokens, b.output_tokens),
        cache_read_tokens: sum(a.cache_read_tokens, b.cache_read_tokens),
        cache_write_tokens: sum(a.cache_write_tokens, b.cache_write_tokens),
        context_used: b.context_used.or(a.context_used),
        cost_micros: sum(a.cost_micros, b.cost_micros),
        currency: b.currency.or(a.currency),
    }
}

//! What closes an account's gate: a used-up quota or an expired sign-in, and the date that follows from it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::definition::RunPolicy;
use super::event::WaitCause;
use crate::planted::{Bug, planted};
use crate::time::Timestamp;

/// How far away a date may be before it is doubted.
pub const DOUBTFUL_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);

/// How often an account is tried whose date is doubted.
pub const DOUBTFUL_RETRY: Duration = Duration::from_secs(24 * 3600);

/// What an agent of an account met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wall {
    /// Quota or sign-in.
    pub cause: WaitCause,
    /// The provider's words.
    pub words: String,
    /// When it goes, as far as the provider said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    /// When the account is used again.
    pub until: Timestamp,
    /// Whether a single agent tries it then, rather than all going on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub single: bool,
    /// Whether it was met in opening a session.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_opening: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Wall {
    /// Whether its date is too far away to be trusted.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.single && self.resets_at.is_some()
    }
}

/// What was said of an account, for [`Wall`] to be made of.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) cause: WaitCause,
    pub(super) words: String,
    pub(super) resets_at: Option<Timestamp>,
    pub(super) at_opening: bool,
}

/// The wall that follows from what was said at `now`. `before`: that of a gate which is closed already. `closings`: how
/// often it closed since the account last answered, this time not counted.
pub(super) fn wall(
    said: Said,
    before: Option<&Wall>,
    closings: u16,
    now: Timestamp,
    policy: &RunPolicy,
) -> Wall {
    let ahead = |at: &Timestamp| *at > now || planted(Bug::PastDateBelieved);
    let told = said
        .resets_at
        .filter(ahead)
        .filter(|_| !planted(Bug::QuotaDateIgnored));
    let kept = before.and_then(|wall| wall.resets_at).filter(ahead);
    let least = match closings {
        0 => now,
        again => now.plus(backoff(policy.backoff_first, policy.backoff_most, again - 1)),
    };
    // A date that was doubted is not trusted because it came nearer: nobody said it again.
    let trusted = match (told, kept) {
        (Some(at), _) => at.since(now) <= DOUBTFUL_AFTER,
        (None, Some(at)) => at.since(now) <= DOUBTFUL_AFTER && !before.is_some_and(Wall::is_doubtful),
        (None, None) => false,
    };
    let resets_at = told.or(kept);
    let until = match resets_at {
        Some(at) if trusted => at,
        Some(at) => at.min(now.plus(DOUBTFUL_RETRY)),
        None => now.plus(policy.gate_retry),
    };
    Wall {
        cause: said.cause,
        words: said.words,
        resets_at,
        until: until.max(least),
        single: !trusted,
        at_opening: said.at_opening,
    }
}

/// `first`, then double with each try, never over `most` (R7).
pub(super) fn backoff(first: Duration, most: Duration, tries: u16) -> Duration {
    let doubled = 1u32
        .checked_shl(u32::from(tries))
        .and_then(|factor| first.checked_mul(factor));
    let most = if planted(Bug::BackoffUncapped) {
        first * 64
    } else {
        most
    };
    doubled.unwrap_or(most).min(most)
}

//! How long an agent that is at work has been silent, and whether a child of it was busy meanwhile (R11).

use std::time::Duration;

use tokio::time::Instant;

/// Looks at the children in a window of silence.
const LOOKS: u32 = 10;

/// The share of the time between two looks that children must have computed for to count as busy: a server that only
/// waits computes a little too.
const BUSY_SHARE: u32 = 1000;

/// How late a look may be, at most, before it says less of the agent than of this process, which was stopped meanwhile.
const LATE: Duration = Duration::from_secs(1);

/// The silence of one turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Silence {
    /// When the last frame came, or the turn began.
    heard: Instant,
    /// When children were last seen to be busy, or as if they had been where it cannot be told yet.
    busy: Instant,
    /// The last look: when, and how much the children had computed.
    look: Option<(Instant, Duration)>,
}

impl Silence {
    pub(super) fn from(now: Instant) -> Self {
        Self {
            heard: now,
            busy: now,
            look: None,
        }
    }

    /// A frame came.
    pub(super) fn broken(&mut self, now: Instant) {
        *self = Self::from(now);
    }

    /// When to look at the children next, if silence is borne for `bound`.
    pub(super) fn next_look(&self, bound: Duration) -> Instant {
        let last = self.look.map_or(self.heard, |(at, _)| at);
        let end = self.heard.max(self.busy) + bound;
        end.min(last + bound / LOOKS)
    }

    /// Takes notice of how much the children have `computed` by `now`; says for how long nothing was heard, once that
    /// is too long. None computed where it cannot be known: no child counts as busy then. A look that is late decides
    /// nothing: what the agent said meanwhile may not have been read yet, and is before the next one.
    pub(super) fn look(
        &mut self,
        now: Instant,
        computed: Option<Duration>,
        bound: Duration,
    ) -> Option<Duration> {
        let computed = computed.unwrap_or_default();
        let late = now.saturating_duration_since(self.next_look(bound)) >= LATE.min(bound / LOOKS);
        if let Some((at, before)) = self.look {
            // Less than before is a child that ended.
            let change = computed.abs_diff(before);
            if !change.is_zero() && change >= (now - at) / BUSY_SHARE {
                self.busy = now;
            }
        }
        self.look = Some((now, computed));
        let too_long = now >= self.heard.max(self.busy) + bound;
        if too_long && late {
            self.busy = now.checked_sub(bound - bound / LOOKS).unwrap_or(now);
            return None;
        }
        too_long.then(|| now - self.heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_secs(1800);

    /// Looks whenever it wants to; gives the second at which it is too long. `computed` gives the children's time.
    fn ends(mut silence: Silence, start: Instant, computed: impl Fn(u64) -> Option<Duration>) -> u64 {
        for _ in 0..1000 {
            let now = silence.next_look(BOUND);
            let second = (now - start).as_secs();
            if silence.look(now, computed(second), BOUND).is_some() {
                return second;
            }
        }
        panic!("it never ends")
    }

    #[test]
    fn r11_silence_is_too_long_after_the_bound_without_a_busy_child() {
        let start = Instant::now();
        let silence = Silence::from(start);
        assert_eq!(ends(silence, start, |_| None), 1800);
        assert_eq!(ends(silence, start, |_| Some(Duration::from_secs(99))), 1800);
        let idle = |second| Some(Duration::from_millis(second / 10));
        assert_eq!(
            ends(silence, start, idle),
            1800,
            "a server that waits is not busy"
        );
    }

    #[test]
    fn r11_a_busy_child_puts_the_end_off_and_a_frame_begins_anew() {
        let start = Instant::now();
        let busy_for_an_hour = |second: u64| Some(Duration::from_secs(second.min(3600)));
        assert_eq!(ends(Silence::from(start), start, busy_for_an_hour), 3600 + 1800);
        let one_child_after_the_other = |second: u64| Some(Duration::from_secs(second.min(3600) % 300));
        assert_eq!(
            ends(Silence::from(start), start, one_child_after_the_other),
            3600 + 1800
        );
        let mut silence = Silence::from(start);
        let heard = start + Duration::from_secs(1000);
        silence.broken(heard);
        assert_eq!(ends(silence, start, |_| None), 2800);
    }

    #[test]
    fn h2_r11_a_look_after_a_pause_of_our_own_leaves_time_to_hear_what_was_said_meanwhile() {
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let mut silence = Silence::from(start);
        assert_eq!(silence.look(at(180), None, BOUND), None);
        // Stopped for two hours; what was said in them is read before the next look.
        assert_eq!(silence.look(at(7200), None, BOUND), None);
        assert_eq!(silence.next_look(BOUND), at(7200 + 180));
        let mut spoke = silence;
        spoke.broken(at(7201));
        assert_eq!(ends(spoke, start, |_| None), 7201 + 1800);
        // Nothing was.
        assert_eq!(
            silence.look(at(7380), None, BOUND),
            Some(Duration::from_secs(7380))
        );
    }

    #[test]
    fn r11_the_words_count_from_the_last_frame_and_not_from_the_busy_child() {
        let start = Instant::now();
        let mut silence = Silence::from(start);
        let at = |second| start + Duration::from_secs(second);
        assert_eq!(silence.look(at(180), Some(Duration::ZERO), BOUND), None);
        assert_eq!(silence.look(at(1800), Some(Duration::from_secs(60)), BOUND), None);
        assert_eq!(silence.look(at(3420), Some(Duration::from_secs(60)), BOUND), None);
        let told = silence.look(at(3600), Some(Duration::from_secs(60)), BOUND);
        assert_eq!(told, Some(Duration::from_secs(3600)));
    }
}

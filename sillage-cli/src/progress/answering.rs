//! Answering permission requests while a run is shown: by a key, for the request that is in sight.

use std::time::{Duration, Instant};

use sillage::core::run::{PermissionAnswer, PermissionId, PermissionView, Run};
use sillage::{Reader, RunHandle};

use crate::failure::Failure;

/// How long a request must have been in sight before a key counts for it: the key may have been meant for the one
/// before it.
const IN_SIGHT: Duration = Duration::from_millis(700);

/// Who passes a person's answers on.
pub(crate) enum Answers {
    /// This process, which drives the run.
    Here(RunHandle),
    /// The process that does.
    There(Reader),
    /// Nobody: the run is not driven.
    Nobody,
}

impl Answers {
    /// Passes an answer on; it is durable when this returns.
    ///
    /// # Errors
    /// When the request is not open any more, or cannot be answered so.
    async fn answer(&self, id: &PermissionId, answer: PermissionAnswer) -> Result<(), Failure> {
        match self {
            Answers::Here(handle) => Ok(handle.answer_permission(id.asked, answer).await?),
            Answers::There(reader) => Ok(reader.answer_permission(&id.run, id.asked, answer).await?),
            Answers::Nobody => Ok(()),
        }
    }
}

/// The request that keys are for.
#[derive(Debug, Default)]
pub(super) struct InSight {
    request: Option<(PermissionId, Instant)>,
}

impl InSight {
    /// The request to be shown, the oldest, and how many more there are; keys are for it from a moment after it was
    /// first shown.
    pub(super) fn show(&mut self, run: &Run) -> Option<(PermissionView, usize)> {
        let mut open = run.permissions().into_iter();
        let Some(oldest) = open.next() else {
            self.request = None;
            return None;
        };
        if self.request.as_ref().is_none_or(|(id, _)| *id != oldest.id) {
            self.request = Some((oldest.id.clone(), Instant::now()));
        }
        Some((oldest, open.len()))
    }

    /// What a key means now.
    fn meant(&self, key: char, now: Instant) -> Option<(&PermissionId, PermissionAnswer)> {
        let (id, since) = self.request.as_ref()?;
        let answer = match key {
            'a' => PermissionAnswer::Allow,
            'd' => PermissionAnswer::Deny,
            _ => return None,
        };
        (now.saturating_duration_since(*since) >= IN_SIGHT).then_some((id, answer))
    }

    /// Does what a key means; the words of what was wrong, for a line.
    pub(super) async fn press(&mut self, key: char, answers: &Answers) -> Option<String> {
        let (id, answer) = self.meant(key, Instant::now())?;
        let failed = answers.answer(id, answer).await.err();
        failed.map(|failure| failure.words())
    }
}

#[cfg(test)]
mod tests {
    use sillage::core::id::{RunId, Seq};

    use super::*;

    #[test]
    fn a5_a_key_is_for_the_request_in_sight_and_only_once_it_was_seen() {
        let seen = Instant::now();
        let later = seen + IN_SIGHT;
        let mut sight = InSight::default();
        assert!(sight.meant('a', later).is_none(), "nothing is asked");
        let id = PermissionId {
            run: RunId::new("r1").expect("a name"),
            asked: Seq(7),
        };
        sight.request = Some((id.clone(), seen));
        assert!(sight.meant('a', seen).is_none(), "meant for another");
        assert_eq!(sight.meant('a', later), Some((&id, PermissionAnswer::Allow)));
        assert_eq!(sight.meant('d', later), Some((&id, PermissionAnswer::Deny)));
        for key in ['A', 'y', '\n', 'x'] {
            assert!(sight.meant(key, later).is_none(), "{key:?}");
        }
    }
}

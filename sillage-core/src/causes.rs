//! An error with all that caused it, in one line.

/// The error's words and those of its causes, the outermost first, joined by colons.
///
/// For errors that leave their cause to `source`, as ours do; one that repeats it says it twice.
#[must_use]
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |words, cause| format!("{words}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Told(&'static str, #[source] Option<Box<Told>>);

    #[test]
    fn every_cause_is_told_the_outermost_first() {
        let inner = Told("the disk is gone", None);
        let error = Told("no run", Some(Box::new(Told("no log", Some(Box::new(inner))))));
        assert_eq!(with_causes(&error), "no run: no log: the disk is gone");
    }
}

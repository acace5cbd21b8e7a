//! git's version, and the oldest that can be used.

use std::fmt;

/// A version of git: major and minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    major: u32,
    minor: u32,
}

impl Version {
    /// The first with `merge-tree --write-tree`.
    pub(super) const OLDEST: Self = Self { major: 2, minor: 38 };
    /// The first that runs hooks named by settings, which `core.hooksPath` does not stop.
    pub(super) const WITH_HOOKS_IN_SETTINGS: Self = Self { major: 2, minor: 54 };

    /// Reads what `git version` prints, e.g. `git version 2.39.2 (Apple Git-143)`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.strip_prefix("git version ")?.split('.');
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers
            .next()?
            .trim_end_matches(|c: char| !c.is_ascii_digit())
            .parse()
            .ok()?;
        Some(Self { major, minor })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_versions_that_git_prints() {
        let read = |text| Version::parse(text).map(|version| version.to_string());
        assert_eq!(read("git version 2.47.3").as_deref(), Some("2.47"));
        assert_eq!(
            read("git version 2.39.2 (Apple Git-143)").as_deref(),
            Some("2.39")
        );
        assert_eq!(read("git version 2.45.1.windows.1").as_deref(), Some("2.45"));
        assert_eq!(read("git version 2.55.GIT").as_deref(), Some("2.55"));
        assert_eq!(read("hub version 2.14"), None);
        assert_eq!(read("git version two"), None);
    }

    #[test]
    fn orders_by_number_and_not_by_text() {
        assert!(Version::parse("git version 2.9.0") < Some(Version::OLDEST));
        assert!(Version::parse("git version 3.0.0") > Some(Version::OLDEST));
    }
}

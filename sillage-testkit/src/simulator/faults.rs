//! The kinds of fault that a simulated world knows.

use std::fmt;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident $word:literal,)*) => {
        /// A kind of fault. Each seed switches each on or off.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// All of them.
            pub const ALL: &[Fault] = &[$(Fault::$name,)*];

            /// What it is called on a command line.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Fault::$name => $word,)*
                }
            }
        }
    };
}

faults! {
    /// Requests and answers take up to minutes.
    Late "late",
    /// A request never arrives, and the caller is told of a failed connection.
    LostRequests "lost-requests",
    /// A request is carried out, and the caller is told of a failed connection.
    LostReplies "lost-replies",
    /// What a session says arrives again later.
    Doubled "doubled",
    /// Temporary errors, alone and in series.
    Temporary "temporary",
    /// Temporary errors whose provider asks for a time.
    RetryAfter "retry-after",
    /// A quota is used up: with a date, without one, with one that is past or far away.
    Quota "quota",
    /// Somebody must sign in.
    SignIn "sign-in",
    /// Errors that no try mends.
    Permanent "permanent",
    /// The provider says that an identifier came before with another request.
    Conflict "conflict",
    /// Sessions end by themselves or cannot be found again.
    Lost "lost",
    /// Reports that are missing or malformed, up to three times in a row.
    Reports "reports",
    /// Answers that the model's limit cut.
    Cut "cut",
    /// Reports that promise files which are not there.
    Missing "missing",
    /// Reports of work that is partial or blocked.
    Outcomes "outcomes",
    /// Agents that ask for permissions.
    Permissions "permissions",
    /// The engine dies, before and after anything that it does.
    Crashes "crashes",
    /// An engine dies soon after it took a run up.
    CrashAgain "crash-again",
    /// Appends that fail.
    AppendFails "append-fails",
    /// Appends that take place, and are told as failed.
    AppendTorn "append-torn",
    /// The disk is full for a while.
    DiskFull "disk-full",
    /// A run's own files cannot be written.
    Files "files",
    /// The clock is set forward and back.
    Clock "clock",
    /// The machine sleeps.
    Sleep "sleep",
    /// A person stops the run, once or twice.
    Stops "stops",
    /// A person takes up again what ended.
    Resumes "resumes",
    /// Worktrees, commits and merges that cannot be made.
    Workspace "workspace",
    /// Agents that write into the same file.
    Merges "merges",
    /// Folders of worktrees are taken away.
    Worktrees "worktrees",
    /// Sessions that cannot be closed, or not at once.
    Closing "closing",
    /// Plans of coordinators that are against the rules, up to three times in a row.
    Plans "plans",
    /// A person has steps done again, or goes on without them.
    Hands "hands",
    /// Ceilings, told or enforced, that a person changes.
    Budgets "budgets",
    /// The runtime holds as many sessions as it can, and may say for how long.
    Capacity "capacity",
    /// What a session says is not heard any more in the middle of it, and cannot be had for a while.
    Streams "streams",
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A set of kinds of fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults(u64);

impl Faults {
    /// No fault.
    pub const NONE: Faults = Faults(0);

    /// Every kind.
    #[must_use]
    pub fn all() -> Faults {
        Fault::ALL
            .iter()
            .fold(Faults::NONE, |all, fault| all.with(*fault))
    }

    /// Whether it holds the kind.
    #[must_use]
    pub const fn has(self, fault: Fault) -> bool {
        self.0 & (1 << fault as u64) != 0
    }

    /// With the kind.
    #[must_use]
    pub const fn with(self, fault: Fault) -> Faults {
        Faults(self.0 | (1 << fault as u64))
    }

    /// Without the kind.
    #[must_use]
    pub const fn without(self, fault: Fault) -> Faults {
        Faults(self.0 & !(1 << fault as u64))
    }

    /// The kinds in it.
    pub fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.iter().copied().filter(move |fault| self.has(*fault))
    }

    /// Reads words with commas between them.
    ///
    /// # Errors
    /// The word that names no kind.
    pub fn read(words: &str) -> Result<Faults, String> {
        let mut faults = Faults::NONE;
        for word in words.split(',').filter(|word| !word.is_empty()) {
            let known = Fault::ALL.iter().find(|fault| fault.word() == word);
            faults = faults.with(*known.ok_or_else(|| word.to_owned())?);
        }
        Ok(faults)
    }
}

/// The words with commas between them.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(Fault::word).collect();
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_and_read() {
        let some = Faults::NONE.with(Fault::Quota).with(Fault::Crashes);
        assert_eq!(some.to_string(), "quota,crashes");
        assert_eq!(Faults::read("crashes,quota"), Ok(some));
        assert_eq!(Faults::read("quota,weather"), Err("weather".to_owned()));
        assert_eq!(Faults::read(&Faults::all().to_string()), Ok(Faults::all()));
        assert!(!Faults::all().without(Fault::Quota).has(Fault::Quota));
    }
}

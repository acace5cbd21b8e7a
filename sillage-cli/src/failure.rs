//! Why a command did not do what was asked, as it is told to a person or a program.

use std::fmt::Display;
use std::io;
use std::path::Path;

use serde::Serialize;
pub(crate) use sillage::core::causes::with_causes;
use sillage::core::fault::Fault;
use sillage::core::ports::store::StoreError;
use sillage::project::ProjectError;
use sillage::{EngineError, LaunchError};

use crate::ceilings;
use crate::exit::Exit;

/// A command's failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A file that a person or an agent wrote is faulty: a line for each fault, or `{ "ok": false, "faults": […] }`.
    Faulty {
        /// The file, as messages call it.
        file: String,
        /// What is wrong in it.
        faults: Vec<Fault>,
    },
    /// Anything else: `error: message`, then `hint: …`; or `{ "ok": false, "error": { … } }`.
    Error(Trouble),
}

/// What went wrong, when it is not a faulty file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Trouble {
    /// What kind.
    pub(crate) kind: Kind,
    /// What went wrong, naming the thing at fault.
    pub(crate) message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

/// Kinds of trouble, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The command line is wrong, or names something that is not there.
    Usage,
    /// The system refused to read or write something.
    Io,
    /// What was asked for cannot be done there: no commit yet, a folder that is missing.
    Refused,
    /// An agent or gateway is out of reach.
    OutOfReach,
    /// The store.
    Store,
    /// It was told to end at once.
    Interrupted,
    /// We panicked.
    Defect,
}

impl Failure {
    /// Trouble without a hint.
    pub(crate) fn new(kind: Kind, message: impl Display) -> Self {
        Failure::Error(Trouble {
            kind,
            message: message.to_string(),
            hint: None,
        })
    }

    /// The same, with what to do about it. A faulty file's faults say that themselves.
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        if let Failure::Error(trouble) = &mut self {
            trouble.hint = Some(hint.to_string());
        }
        self
    }

    /// A file that could not be read: one that is not there is a mistake on the command line.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> Self {
        let mistaken = matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory
        );
        let kind = if mistaken { Kind::Usage } else { Kind::Io };
        Failure::new(kind, format_args!("cannot read {}: {error}", path.display()))
    }

    /// A file or folder that could not be written.
    pub(crate) fn writing(path: &Path, error: &io::Error) -> Self {
        Failure::new(Kind::Io, format_args!("cannot write {}: {error}", path.display()))
    }

    /// A panic of ours, whose words have been told.
    pub(crate) fn defect() -> Self {
        Failure::new(Kind::Defect, "sillage has a defect, told above")
            .hint("runs are kept as they were; `sillage resume` goes on with one")
    }

    /// What went wrong, in a line.
    pub(crate) fn words(&self) -> String {
        match self {
            Failure::Faulty { file, .. } => format!("{file} is faulty"),
            Failure::Error(trouble) => trouble.message.clone(),
        }
    }

    /// The code that the program ends with.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Failure::Faulty { .. } => Exit::Faulty,
            Failure::Error(trouble) => match trouble.kind {
                Kind::Usage | Kind::Refused => Exit::Faulty,
                Kind::OutOfReach => Exit::OutOfReach,
                Kind::Store => Exit::Store,
                Kind::Io => Exit::Failed,
                Kind::Interrupted => Exit::Interrupted,
                Kind::Defect => Exit::Defect,
            },
        }
    }
}

/// Standard output that could not be written to. A reader that went away is no failure and does not come here.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::new(Kind::Io, format_args!("cannot write to standard output: {error}"))
    }
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Self {
        match error {
            ProjectError::Unreadable { path, source } => Failure::reading(&path, &source),
            ProjectError::Faulty { path, faults } => Failure::Faulty {
                file: path.display().to_string(),
                faults,
            },
            other => Failure::new(Kind::Io, with_causes(&other)),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let failure = Failure::new(Kind::Store, with_causes(&error));
        if let StoreError::Held { .. } = error {
            return failure.hint(
                "`sillage stop` asks the run under way there to stop; `sillage status` tells which it is",
            );
        }
        failure
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        let refused = Failure::new(Kind::Refused, with_causes(&error)).hint("nothing was started");
        match error {
            LaunchError::Unreadable { path, source } => Failure::reading(&path, &source),
            LaunchError::Faulty { path, faults } => Failure::Faulty {
                file: path.display().to_string(),
                faults,
            },
            LaunchError::Project(error) => error.into(),
            LaunchError::Store(error) => error.into(),
            LaunchError::Folders(_)
            | LaunchError::NoRepository { .. }
            | LaunchError::Unsupported(_)
            | LaunchError::Workspace(_)
            | _ => refused,
        }
    }
}

impl From<&EngineError> for Failure {
    fn from(error: &EngineError) -> Self {
        let of = |kind| Failure::new(kind, with_causes(error));
        match error {
            EngineError::NoSuchRun(_) => of(Kind::Usage).hint("`sillage status` lists the runs"),
            EngineError::Refused(refused) => match ceilings::hint(refused) {
                Some(hint) => of(Kind::Usage).hint(hint),
                None => of(Kind::Usage),
            },
            EngineError::Gone(_) => of(Kind::Defect),
            EngineError::Panicked { .. } => {
                of(Kind::Defect).hint("nothing that was done is lost; `sillage resume` goes on with it")
            }
            EngineError::Store(_) => {
                of(Kind::Store).hint("nothing that was done is lost; `sillage resume` goes on with it")
            }
            EngineError::Corrupt { .. } | EngineError::Codec { .. } | _ => of(Kind::Store),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Failure::from(&error)
    }
}

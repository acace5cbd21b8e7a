//! What a script is asked, and what it may reply.

use std::time::Duration;

use sillage_core::id::ClientSessionId;
use sillage_core::ports::runtime::{
    Answer, MessageRequest, PermissionOption, PermissionRequest, RuntimeError, SessionEventKind,
    SessionRequest, StopReason, Usage,
};

/// A message that a script is to answer.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The session that received it.
    pub session: &'a SessionRequest,
    /// The message.
    pub message: &'a MessageRequest,
    /// Its place among the session's messages; the first is 0.
    pub turn: usize,
}

/// How a message is answered.
#[derive(Debug, Clone)]
pub enum Reply {
    /// These events, then the answer. [`SessionEventKind::Usage`] adds to the answer's usage.
    Answer {
        /// What comes before the answer.
        before: Vec<SessionEventKind>,
        /// The answer.
        answer: Answer,
    },
    /// The message is accepted and ends with this error; the session lives on.
    Fail(RuntimeError),
    /// `send` fails and the message is not accepted: it may be sent again.
    Refuse(RuntimeError),
    /// The message is accepted and nothing more comes, until a cancel or [`super::ScriptedRuntime::answer`].
    Silent,
    /// Like [`Reply::Silent`] until this time of tokio's clock has passed.
    Later(Duration, Box<Reply>),
    /// Permission is asked, and the reply is one or the other by what is answered. A session whose policy is not
    /// `ask` is answered at once: allowed under `allow-in-folders`, refused under `deny`.
    Permission {
        /// What is asked.
        request: PermissionRequest,
        /// Follows an option whose kind begins with `allow`.
        allowed: Box<Reply>,
        /// Follows any other option.
        refused: Box<Reply>,
    },
    /// The session's process dies with these last words.
    Die(String),
}

impl Reply {
    /// This text, with `end_turn` and unknown usage.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Reply {
        let answer = Answer {
            text: text.into(),
            stop: StopReason::EndTurn,
            usage: Usage::default(),
        };
        Reply::Answer {
            before: Vec::new(),
            answer,
        }
    }

    /// Permission asked under this identifier, with the options `allow` (`allow_once`) and `reject` (`reject_once`).
    #[must_use]
    pub fn permission(id: &str, title: &str, allowed: Reply, refused: Reply) -> Reply {
        let option = |id: &str, kind: &str| PermissionOption {
            id: id.to_owned(),
            name: id.to_owned(),
            kind: kind.to_owned(),
        };
        let request = PermissionRequest {
            id: id.to_owned(),
            title: title.to_owned(),
            kind: None,
            paths: Vec::new(),
            options: vec![option("allow", "allow_once"), option("reject", "reject_once")],
        };
        Reply::Permission {
            request,
            allowed: Box::new(allowed),
            refused: Box::new(refused),
        }
    }
}

/// A call that is about to be made of the runtime.
#[derive(Debug, Clone, Copy)]
pub enum Call<'a> {
    /// `status`.
    Status,
    /// `open`.
    Open(&'a SessionRequest),
    /// `find`.
    Find(&'a SessionRequest),
    /// `send`.
    Send(ClientSessionId, &'a MessageRequest),
    /// `events`.
    Events(ClientSessionId),
    /// `answer_permission`.
    AnswerPermission(ClientSessionId),
    /// `cancel`.
    Cancel(ClientSessionId),
    /// `account`.
    Account(&'a str),
    /// `close`.
    Close(ClientSessionId),
}

/// How a call fails.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Nothing is done.
    Before(RuntimeError),
    /// It is done, and its answer is lost (R5).
    After(RuntimeError),
}

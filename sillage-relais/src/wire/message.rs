//! Messages to a session.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Sends a message: the body of `POST /api/sessions/{id}/messages`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SendMessage {
    /// Chosen by the client (UUID v4), and kept by it before the request leaves.
    pub client_message_id: Uuid,
    /// What is said, in order.
    #[cfg_attr(feature = "gateway", schema(min_items = 1))]
    pub content: Vec<ContentBlock>,
}

impl SendMessage {
    /// The text of all blocks, a line end between them.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self
            .content
            .iter()
            .map(|ContentBlock::Text { text }| text.as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ContentBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
}

/// A message was taken, now or before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct MessageAccepted {
    /// The message.
    pub client_message_id: Uuid,
}

/// The last message of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct LastMessage {
    /// The message.
    pub client_message_id: Uuid,
    /// What became of it.
    pub state: MessageState,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// It is being answered.
    InHand,
    /// Its answer is among the events.
    Answered,
    /// Its failure is among the events.
    Failed,
}

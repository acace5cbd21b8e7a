//! What messages are for, and by whom permission requests are decided: words of the run's facts.

use serde::{Deserialize, Serialize};

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessagePurpose {
    /// The agent's mission.
    Mission,
    /// A report that goes back to its agent.
    Correction,
    /// To go on after an interruption or a provider's failure, in the same session.
    Continuation,
    /// A conflict of the agent's work with that of others, for it to resolve (R17).
    Conflict,
    /// A dynamic agent's mission, to be divided in a plan (W19).
    Plan,
    /// A plan that goes back to its coordinator (W21).
    PlanCorrection,
    /// What came of a coordinator's sub-agents, for the group's report (W22).
    Synthesis,
}

/// Who decided on a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A person.
    Person,
    /// The session's policy.
    Policy,
    /// Nobody: the message that it belonged to was cancelled or is over.
    Cancel,
}

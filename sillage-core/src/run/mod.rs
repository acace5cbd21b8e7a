//! The run as a state machine.

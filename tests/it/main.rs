//! The engine through its public API.

mod engine;

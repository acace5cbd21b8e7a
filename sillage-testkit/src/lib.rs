//! Scripted runtime, faulty store and conformance suites for the traits of Sillage.

pub mod runtime_suite;
pub mod scripted_runtime;

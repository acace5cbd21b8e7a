//! Scripted runtime, faulty store and conformance suites for the traits of Sillage.

pub mod scripted_runtime;

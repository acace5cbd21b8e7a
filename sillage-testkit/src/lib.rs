//! Scripted runtime, faulty store, model server and conformance suites for the traits of Sillage.

pub mod condition;
pub mod crashing_store;
pub mod faulty_store;
pub mod machine;
pub mod model_server;
pub mod real_agent;
pub mod runtime_suite;
pub mod scripted_runtime;
pub mod simulator;
pub mod store_suite;
pub mod workspace;
pub mod workspace_suite;

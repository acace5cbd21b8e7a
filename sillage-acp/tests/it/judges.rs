//! Judges that are not ours: a client of the protocol against the scripted agent, and agents of the protocol's Python
//! library against our client; its golden frames are in `acp_runtime/golden.rs`. An agreement between two ends of our own
//! would prove little.

mod acpx;
mod python_agents;

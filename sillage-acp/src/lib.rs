//! Local agent processes over the Agent Client Protocol, as a runtime of Sillage.

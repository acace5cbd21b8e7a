//! The engine of Sillage.

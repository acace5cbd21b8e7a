//! The JSON Schema of a task file, by which editors complete and check it (W11).

/// The schema (draft 2020-12) of a task file. It holds what a schema can: fields, types, forms, bounds. What joins
/// one part with another (links, cycles, identifiers given twice) is for [`super::read`] alone.
pub const SCHEMA: &str = include_str!("schema.json");

#[cfg(test)]
mod tests;

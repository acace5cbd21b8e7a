//! What people and agents write, damaged in every way: each text has an answer that keeps its promises, without a panic,
//! without a hang, and without more work than in proportion to its length.
//!
//! The texts are the golden cases, damaged at random: bytes flipped, parts left out, repeated, moved from one text into
//! another, wrapped in brackets. `PROPTEST_CASES=100000 cargo test -p sillage-core --release --test fuzz` tries more.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its cases is to fail")]

mod corpus;
mod damage;
mod growth;
mod targets;

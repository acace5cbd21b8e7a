//! The command line of Sillage.

fn main() {}

//! The adapter for rustdds.
fn main() {}

//! The adapter for hdds.
fn main() {}

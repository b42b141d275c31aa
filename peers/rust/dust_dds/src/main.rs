//! The adapter for dust_dds.
fn main() {}

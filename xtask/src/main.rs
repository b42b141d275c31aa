//! Checks of style that run as `cargo xtask`.
fn main() {}

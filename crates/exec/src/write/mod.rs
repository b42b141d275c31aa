//! From a `write` to the protocol: what it writes, when it is sent, who sends it, and whom it waits for.

pub(crate) mod burst;
pub(crate) mod goodbye;
#[cfg(test)]
mod held_tests;
pub(crate) mod left;
pub(crate) mod memory;
pub(crate) mod outlet;
pub(crate) mod owed;
pub(crate) mod payload;
pub(crate) mod promises;
pub(crate) mod slow;
pub(crate) mod wakes;
pub(crate) mod writes;

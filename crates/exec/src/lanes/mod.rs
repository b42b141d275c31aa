//! Samples that stay on this machine: who shares lanes with whom, and the doors of readers.

pub(crate) mod door;
pub(crate) mod ends;
pub(crate) mod following;
pub(crate) mod greeting;
pub(crate) mod local;
pub(crate) mod matched;
pub(crate) mod neighbours;
#[cfg(test)]
mod neighbours_tests;
pub(crate) mod own;
pub(crate) mod pairs;
pub(crate) mod path;
pub(crate) mod peers;
pub(crate) mod pulling;
pub(crate) mod quiet;
pub(crate) mod ringer;

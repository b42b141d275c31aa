//! The ports of a participant, and what becomes of them while it lives.

pub(crate) mod comeback;
pub(crate) mod frames;
pub(crate) mod network;
pub(crate) mod ports;

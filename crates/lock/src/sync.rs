//! What the word is made of, in one place: the models in crates/exec/models put loom's there.

pub(crate) use std::sync::atomic::{AtomicU32, Ordering, fence};

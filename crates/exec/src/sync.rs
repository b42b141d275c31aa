//! What threads tell each other with, in one place: the models in crates/exec/models put loom's there.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering, fence};

pub(crate) use crossbeam_queue::ArrayQueue;
pub(crate) use parking_lot::{Condvar, Mutex};

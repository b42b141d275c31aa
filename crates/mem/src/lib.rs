//! Taut's buffers: slots from a pool, written by one owner, then shared as views.
//!
//! Owns every buffer on the path of a sample. A [`Pool`] belongs to one thread; a [`Slot`] is a
//! buffer that one owner writes; [`Bytes`] is a counted view that any thread may read and keep.
//! A slot is used again once no view of it is left, so that a warm pool allocates nothing.
#![cfg_attr(not(feature = "counting"), forbid(unsafe_code))]

mod bytes;
#[cfg(feature = "counting")]
mod counting;
mod pool;

pub use bytes::Bytes;
#[cfg(feature = "counting")]
pub use counting::CountingAllocator;
pub use pool::{Pool, Slot};

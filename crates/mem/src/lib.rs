//! Taut's buffers: what samples lie in on their way, and the lanes that carry them inside of a machine.
//!
//! Owns every buffer on the path of a sample. A [`Pool`] belongs to one thread; a [`Slot`] is a
//! buffer that one owner writes; [`Bytes`] is a counted view that any thread may read and keep.
//! A slot is used again once no view of it is left, so that a warm pool allocates nothing. A
//! [`lane`] gives one writer's samples to readers of other threads and processes without a lock. [`Chunks`] are memory
//! that a driver shares, for payloads that are sent from where they were written, and read where they were received.
//!
//! All unsafe code of the core is here; each block names an invariant that its type or module states.

mod bytes;
mod chunks;
#[cfg(feature = "counting")]
mod counting;
pub mod fail;
pub mod lane;
mod outbound;
mod pool;
mod region;
mod sync;

pub use bytes::Bytes;
pub use chunks::{Chunk, Chunks};
#[cfg(feature = "counting")]
pub use counting::CountingAllocator;
pub use outbound::{Outbound, Wrap, gather};
pub use pool::{Pool, Slot};
pub use region::Region;
#[cfg(not(loom))]
pub use sync::store_and_fence;

//! The memory that the frames of a device come from.
//!
//! Owns a pool of DPDK. Its frames go to drivers and users, any of whom may have one when the device is closed: so the
//! pool is freed only if all are back, and stays for ever if not.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::eal::{c_string, said};
use crate::ffi::{self, Mempool};
use crate::{Error, Mbuf};

/// Frames that a thread known to DPDK keeps at hand. More lie idle with a thread that does nothing; fewer and each
/// one costs an exchange with the other threads. Others, which are not known to it, have none.
const CACHE: u32 = 64;

/// Pools have names; this is that of the next.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Frames that nobody uses.
///
/// Invariant: the pool is DPDK's and alive. Frames are taken from it and given back by any thread.
pub(crate) struct Pool(NonNull<Mempool>);

// SAFETY: the type's invariant: DPDK's pools are for any thread, as they are made here.
unsafe impl Send for Pool {}

impl Pool {
    /// So many frames, each with so much room behind DPDK's own headroom, near the device that has that number. The lock of
    /// what DPDK does not lock is held.
    pub fn new(frames: u32, room: u16, port: u16) -> Result<Pool, Error> {
        const ENOMEM: i32 = 12;
        // There is memory for the pool and not for its frames.
        const ENOBUFS: i32 = 105;
        // Nothing is told by the number but that it is another.
        let name = c_string(format!("taut-{}", NEXT.fetch_add(1, Ordering::Relaxed)))?;
        // One less than a power of two is what DPDK's rings hold.
        let frames = frames.saturating_add(1).checked_next_power_of_two().unwrap_or(1 << 31) - 1;
        // SAFETY: a name that ends in a zero; the lock is held.
        let pool = unsafe { ffi::taut_dpdk_pool(name.as_ptr(), frames, CACHE.min(frames / 4), room, port) };
        match NonNull::new(pool) {
            Some(pool) => Ok(Pool(pool)),
            // SAFETY: needs nothing.
            None => match unsafe { ffi::taut_dpdk_errno() } {
                ENOMEM | ENOBUFS => {
                    Err(Error::NoMemory { frames, bytes: u64::from(frames) * u64::from(room) })
                }
                errno => Err(Error::Refused { call: "rte_pktmbuf_pool_create".into(), said: said(), errno }),
            },
        }
    }

    /// An empty frame; `None` if all are in use.
    pub fn frame(&self) -> Option<Mbuf> {
        // SAFETY: the type's invariant.
        let frame = NonNull::new(unsafe { ffi::taut_dpdk_frame(self.0.as_ptr()) })?;
        // SAFETY: it was just taken for us.
        Some(unsafe { Mbuf::own(frame) })
    }

    pub fn as_ptr(&self) -> *mut Mempool {
        self.0.as_ptr()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the type's invariant; nobody takes frames from it any more, as its device is closed and this is the
        // end of its owner.
        unsafe { ffi::taut_dpdk_drop_pool(self.0.as_ptr()) }
    }
}

//! The memory that the frames of a device come from.
//!
//! Owns a pool of DPDK, and the memory that the bytes of its frames are in, one frame behind the other. Its frames go to
//! drivers and users, any of whom may have one when the device is closed: so the pool is freed only if all are back, and
//! stays for ever if not. A number of frames is [`crate::lend`]'s, always as many, and in the pool never.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::eal::{c_string, said};
use crate::ffi::{self, Mempool, RawMbuf, RawPool};
use crate::{Error, Mbuf};

/// Frames that a thread known to DPDK keeps at hand. More lie idle with a thread that does nothing; fewer and each
/// one costs an exchange with the other threads. Others, which are not known to it, have none.
const CACHE: u32 = 64;
/// Bytes that DPDK leaves free before a frame (RTE_PKTMBUF_HEADROOM).
const HEADROOM: u32 = 128;
/// More than the bytes by which a frame is shifted.
const SHIFTED: u32 = 8;
/// The largest power of two that DPDK counts in 16 bits.
const MOST_EVEN: u32 = 1 << 15;

/// Pools have names; this is that of the next.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// What a pool is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// How many frames at least, those that are lent left out.
    pub frames: u32,
    /// How many are lent.
    pub lent: u32,
    /// Bytes of each, DPDK's headroom not counted.
    pub room: u16,
    /// Where a frame begins, beside DPDK's headroom: as many bytes behind a multiple of eight. *Range*: 0 to 7.
    pub shift: u16,
}

/// Frames that nobody uses, and those that are lent.
///
/// Invariant: the pool is DPDK's and alive, with the memory of all frames, and `frames` are all of it, in the order of
/// their bytes. As many of them as `lent` says are not in the pool, nor with a device but to be sent; all others are
/// taken from it and given back by any thread.
pub(crate) struct Pool {
    raw: RawPool,
    frames: Box<[*mut RawMbuf]>,
    lent: u32,
}

// SAFETY: the type's invariant: DPDK's pools are for any thread, as they are made here, and the rest is only read.
unsafe impl Send for Pool {}
// SAFETY: the same.
unsafe impl Sync for Pool {}

impl Pool {
    /// With all frames taken, near the device that has that number. The lock of what DPDK does not lock is held.
    pub fn new(wanted: Wanted, port: u16) -> Result<Pool, Error> {
        const ENOMEM: i32 = 12;
        // There is memory for the pool and not for its frames.
        const ENOBUFS: i32 = 105;
        // Nothing is told by the number but that it is another.
        let name = c_string(format!("taut-{}", NEXT.fetch_add(1, Ordering::Relaxed)))?;
        // One less than a power of two is what DPDK's rings hold.
        let all = wanted.frames.saturating_add(wanted.lent).saturating_add(1);
        let frames = all.checked_next_power_of_two().unwrap_or(1 << 31) - 1;
        let mut raw = RawPool {
            pool: ptr::null_mut(),
            memory: ptr::null(),
            bytes: ptr::null_mut(),
            frames,
            cache: CACHE.min(frames / 4),
            stride: stride(wanted.room),
            shift: wanted.shift,
        };
        // SAFETY: a name that ends in a zero; the lock is held.
        let mut result = unsafe { ffi::taut_dpdk_pool(&mut raw, name.as_ptr(), port) };
        let mut all = vec![ptr::null_mut(); frames as usize].into_boxed_slice();
        if result == 0 {
            // SAFETY: the pool was just made, and there is room for all of its frames.
            result = unsafe { ffi::taut_dpdk_take_all(&raw, all.as_mut_ptr()) };
        }
        match -result {
            0 => Ok(Pool { raw, frames: all, lent: wanted.lent }),
            ENOMEM | ENOBUFS => {
                Err(Error::NoMemory { frames, bytes: u64::from(frames) * u64::from(raw.stride) })
            }
            errno => {
                Err(Error::Refused { call: "rte_pktmbuf_pool_create_extbuf".into(), said: said(), errno })
            }
        }
    }

    /// An empty frame; `None` if all are in use.
    pub fn frame(&self) -> Option<Mbuf> {
        // SAFETY: the type's invariant.
        let frame = NonNull::new(unsafe { ffi::taut_dpdk_frame(self.raw.pool) })?;
        // SAFETY: it was just taken for us.
        Some(unsafe { Mbuf::own(frame) })
    }

    pub fn as_ptr(&self) -> *mut Mempool {
        self.raw.pool
    }

    /// How many frames there are, and how many of them are lent.
    pub fn count(&self) -> (u32, u32) {
        (self.frames.len() as u32, self.lent)
    }

    /// The memory of all frames, and how much of it is each one's.
    pub fn memory(&self) -> (Option<NonNull<u8>>, usize) {
        (NonNull::new(self.raw.bytes), self.raw.stride.into())
    }

    /// How many bytes of a frame's memory are before those that the driver knows of.
    pub fn shift(&self) -> usize {
        self.raw.shift.into()
    }

    /// The frame at a place in the memory.
    pub fn at(&self, number: u32) -> Option<NonNull<RawMbuf>> {
        self.frames.get(number as usize).and_then(|frame| NonNull::new(*frame))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the type's invariant; nobody takes frames from it any more, as its device is closed and this is the
        // end of its owners.
        unsafe { ffi::taut_dpdk_drop_pool(&self.raw, self.lent) }
    }
}

/// How far apart frames are: a power of two if there is one, so that none is on two pages.
fn stride(room: u16) -> u16 {
    let least = u32::from(room) + HEADROOM + SHIFTED;
    let even = least.next_power_of_two();
    let stride = if even <= MOST_EVEN { even } else { least.next_multiple_of(64) };
    u16::try_from(stride).unwrap_or(u16::MAX - 63)
}

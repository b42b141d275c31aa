//! A port of DPDK's from its name to its end, and its half that receives.
//!
//! Owns the closing: the last of those who have a port does it. Receiving and sending are independent, so that one thread
//! may look for frames while another one sends.

use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::eal::control;
use crate::ffi::{self, RawDevice, RawMbuf};
use crate::lend::Lending;
use crate::{BURST, Burst};

/// Bursts that a ring of its driver's holds: it has 1,024 places.
const RING: usize = 1_024 / BURST;

/// A port, for all who use it.
///
/// Invariant: the number is that of a port of DPDK's that this value owns and that is not closed. Who sends by it is the
/// one [`crate::Device`] that has it, who receives the one [`RxQueues`].
pub(crate) struct Port {
    number: u16,
    /// What is given back when it is closed, once that is known.
    pub device: *mut RawDevice,
    pub is_memif: bool,
    /// How many rings it has to receive by, if it runs and is one of these. Its driver leaves what nobody has received
    /// where it is, and the next device of that name would have it.
    pub rings: u16,
    /// Have we had the driver receive all frames?
    pub promiscuous: AtomicBool,
    /// What has the kernel's interface take all frames for as long as it is open.
    all: OnceLock<OwnedFd>,
    /// Frames that came in pieces and did not fit one.
    split: AtomicU64,
    /// Of the device that has ended. Ends last: the driver gives its frames back before.
    frames: Mutex<Option<Lending>>,
}

// SAFETY: the type's invariant: DPDK asks for no thread, and the pointer is only used to close the port.
unsafe impl Send for Port {}
// SAFETY: the same; what changes is atomic or locked.
unsafe impl Sync for Port {}

impl Port {
    /// # Safety
    /// The type's invariant.
    pub unsafe fn own(number: u16) -> Port {
        let (promiscuous, all, split, frames) = Default::default();
        let (device, is_memif, rings) = (ptr::null_mut(), false, 0);
        Port { number, device, is_memif, rings, promiscuous, all, split, frames }
    }

    #[inline]
    pub fn number(&self) -> u16 {
        self.number
    }

    pub fn split(&self) -> u64 {
        self.split.load(Ordering::Relaxed)
    }

    /// See [`RxQueues::receive`].
    ///
    /// # Safety
    /// The port runs and has this queue, and nobody else receives by it meanwhile.
    #[inline]
    unsafe fn receive(&self, queue: u16, burst: &mut Burst) -> usize {
        let (number, mut split) = (self.number, 0);
        let come = |free: *mut *mut RawMbuf, room: u16| {
            // SAFETY: the caller's promise.
            unsafe { ffi::taut_dpdk_rx(number, queue, free, room, &raw mut split) }
        };
        // SAFETY: what the driver gives is the caller's, and in one piece, as the shim sees to; the pool it is from
        // stays for as long as one of its frames is away.
        let came = unsafe { burst.receive(come) };
        if split > 0 {
            self.split.fetch_add(split, Ordering::Relaxed);
        }
        came
    }

    /// Keeps this open for as long as the port is.
    pub fn hold(&self, all: OwnedFd) {
        // A second one says the same.
        let _ = self.all.set(all);
    }

    /// Keeps these until the driver has given back what it has of them.
    pub fn keep(&self, frames: Option<Lending>) {
        *self.frames.lock().unwrap_or_else(PoisonError::into_inner) = frames;
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let _control = control();
        let promiscuous = (*self.promiscuous.get_mut()).into();
        for queue in 0..self.rings {
            let mut left = Burst::new();
            for _ in 0..RING {
                // SAFETY: it runs, and has this queue; whoever received by it has ended.
                if unsafe { self.receive(queue, &mut left) } == 0 {
                    break;
                }
                left.clear();
            }
        }
        // SAFETY: the type's invariant, which ends here; the lock is held.
        unsafe { ffi::taut_dpdk_close(self.number, self.device, promiscuous, self.is_memif.into()) }
        if let Some(frames) = self.frames.get_mut().unwrap_or_else(PoisonError::into_inner) {
            frames.take_back();
        }
    }
}

/// What receives by the queues of a device; see [`crate::Device::take_rx`]. The device is closed when both have ended.
///
/// Invariant: there is one of a port, which runs and has so many queues to receive by, that were set up with a pool of
/// whole frames.
pub struct RxQueues {
    port: Arc<Port>,
    count: u16,
}

impl RxQueues {
    /// # Safety
    /// The type's invariant.
    pub(crate) unsafe fn own(port: Arc<Port>, count: u16) -> RxQueues {
        RxQueues { port, count }
    }

    /// Adds frames that have come by a queue to a burst, as many as it has room for. Returns how many; none come by a
    /// queue that is not there.
    ///
    /// *Cost*: no lock, and no system call of a card's or of memif's; af_packet's driver makes some.
    #[inline]
    pub fn receive(&mut self, queue: u16, burst: &mut Burst) -> usize {
        if queue >= self.count || burst.room() == 0 {
            return 0;
        }
        // SAFETY: the type's invariant: the queue is there, and nobody else uses it while we are borrowed.
        unsafe { self.port.receive(queue, burst) }
    }
}

//! Frames whose payloads are looked at where they have come, or written where they are sent from.
//!
//! Owns which frames are the device's and which are lent. The bytes of each frame are a chunk of [`Chunks`]; one that is
//! in the pool, or with the driver to receive into, has the pool as its holder. A frame that has come is given on by a
//! swap: its chunk is the view's from then on, and a free one's frame goes into the pool instead. A payload is sent by a
//! second reference to its frame, which the driver gives back by freeing it: so nothing calls us, and we look.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

use taut_mem::{Bytes, Chunks, Outbound, Wrap};

use crate::ffi::{self, RawMbuf};
use crate::mbuf::bytes_of;
use crate::pool::Pool;
use crate::{Burst, Mbuf};

/// The frames of a device.
///
/// Invariant: a chunk that has holders beside the pool, or is free, has a frame that is not in the pool; its mbuf is only
/// used here. It has two references while it is sent, and one else.
pub(crate) struct Lending {
    pool: Arc<Pool>,
    chunks: Arc<Chunks>,
    outbound: Outbound,
    /// Those that are being sent by each queue, in their order: a driver gives back those of one queue when more go by that
    /// one, and has done with the first of them first.
    leaving: Vec<VecDeque<u32>>,
}

impl Lending {
    /// All frames of a pool that were taken from it, to be sent by so many queues: it gets back those that are not lent.
    pub fn new(pool: Pool, queues: u16) -> Option<Lending> {
        let (count, lent) = pool.count();
        let (Some(base), size) = pool.memory() else { return None };
        let pool = Arc::new(pool);
        // SAFETY: the memory is there for as long as the pool, which is kept, and begins at a multiple of 64. DPDK uses
        // what its drivers have only, and those are chunks that the pool is the holder of, or that are on their way.
        let chunks = unsafe { Chunks::new(base, size, count, Box::new(Arc::clone(&pool))) };
        let chunks = Arc::new(chunks);
        for number in (lent..count).filter_map(|_| chunks.take()) {
            // SAFETY: it was taken, and is not used here.
            pool.at(number).into_iter().for_each(|frame| drop(unsafe { Mbuf::own(frame) }));
        }
        // SAFETY: it is the only one, and nobody here writes around payloads.
        let outbound = unsafe { Outbound::new(Arc::clone(&chunks)) };
        // More than are lent cannot be on their way.
        let leaving = (0..queues).map(|_| VecDeque::with_capacity(lent as usize)).collect();
        Some(Lending { pool, chunks, outbound, leaving })
    }

    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    pub fn chunks(&self) -> &Arc<Chunks> {
        &self.chunks
    }

    /// Adds a frame to a burst for this queue whose payload lies in one of the chunks. `false` if it has to be copied, or
    /// there is no room in the burst.
    pub fn wrap(
        &mut self,
        (queue, burst): (u16, &mut Burst),
        datagram: Wrap<'_>,
        header: impl FnOnce(&[u8], &mut [u8]) -> Option<()>,
    ) -> bool {
        let Some(leaving) = self.leaving.get_mut(usize::from(queue)).filter(|_| burst.room() > 0) else {
            return false;
        };
        let Some((number, range)) = self.outbound.wrap(datagram, header) else { return false };
        let start = range.start.checked_sub(self.pool.shift()).and_then(|start| u16::try_from(start).ok());
        let frame = start.zip(u16::try_from(range.len()).ok()).zip(self.pool.at(number));
        let Some(((start, len), frame)) = frame else {
            // SAFETY: the driver has not got it.
            unsafe { self.outbound.is_back(number) };
            return false;
        };
        // SAFETY: the type's invariant: the frame is not in the pool, and was not on its way.
        let frame = unsafe {
            ffi::taut_dpdk_share(frame.as_ptr(), start, len);
            Mbuf::own(frame)
        };
        leaving.push_back(number);
        burst.push(frame).is_ok()
    }

    /// Looks which frames have been sent, of each queue the oldest first.
    pub fn take_back(&mut self) {
        let Lending { pool, outbound, leaving, .. } = self;
        for leaving in leaving {
            while let Some(number) = leaving.front().copied() {
                // SAFETY: the type's invariant: the frame is there.
                if pool.at(number).is_some_and(|frame| unsafe { is_shared(frame) }) {
                    break;
                }
                leaving.pop_front();
                // SAFETY: one reference is left, which is ours.
                unsafe { outbound.is_back(number) };
            }
        }
    }

    /// Has `take` look at a frame that has come, and returns the frame that is to be given back: another one if `take` has
    /// asked for a view of a part of it, and there is another one.
    ///
    /// # Safety
    /// The frame is the caller's, as that of a [`Mbuf`]; it has the result instead.
    pub unsafe fn take(
        &self,
        frame: NonNull<RawMbuf>,
        take: impl FnOnce(&[u8], &mut dyn FnMut(&[u8]) -> Option<Bytes>),
    ) -> NonNull<RawMbuf> {
        // SAFETY: the caller's promise. Whoever asks for a view and drops it does not free the chunk: see below.
        let (bytes, is_ours) = unsafe { (bytes_of(frame), !is_shared(frame)) };
        let mut instead = None;
        take(bytes, &mut |part| {
            // A driver may have put the bytes elsewhere than into the frame's own memory.
            let is_its_own = self.chunks.has(part) && self.pool.at(self.number_of(part)) == Some(frame);
            let is_inside = bytes.as_ptr_range().contains(&part.as_ptr());
            if !is_ours || !is_inside || !is_its_own || instead.is_some() {
                return None;
            }
            let number = self.chunks.take()?;
            let other = self.pool.at(number)?;
            instead = Some(other);
            // SAFETY: the pool is the lone holder of the chunk of a frame that has come, and the view is instead; the
            // other chunk was taken for the pool. The frame is held while it is looked at.
            unsafe {
                let view = self.chunks.view(part);
                self.chunks.hold(self.number_of(part));
                Some(view)
            }
        });
        let Some(other) = instead else { return frame };
        // SAFETY: it was held above.
        unsafe { self.chunks.let_go(self.number_of(bytes)) }
        other
    }

    /// The number of the chunk that a part lies in.
    fn number_of(&self, part: &[u8]) -> u32 {
        let (base, size) = self.pool.memory();
        let base = base.map_or(0, |base| base.as_ptr() as usize);
        ((part.as_ptr() as usize).wrapping_sub(base) / size.max(1)) as u32
    }
}

/// # Safety
/// The frame's memory is there.
unsafe fn is_shared(frame: NonNull<RawMbuf>) -> bool {
    // SAFETY: the caller's promise.
    unsafe { ffi::taut_dpdk_is_shared(frame.as_ptr()) != 0 }
}

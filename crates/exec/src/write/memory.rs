//! Memory that a payload is written into where its readers look at it, or a port sends it from.

use std::ops::{Deref, DerefMut};

use taut_base::{Error, Result};
use taut_mem::lane::{INLINE, Short, Slot};
use taut_mem::{Chunk, Pool};

use crate::executor::Executor;
use crate::write::outlet::Outlet;
use crate::write::payload::Payload;

/// Where a payload is written.
pub enum Memory {
    /// In the writer's lane.
    Slot(Slot),
    /// In a frame.
    Chunk(Chunk),
    /// Here, until it is copied into a cell of the lane: that costs less than to lend and to give back.
    Short(Short),
}

/// A payload that is shorter lowers what is usual by one part in so many. Lower and one that is long again is encoded
/// twice, higher and short ones keep long slots.
const SLOWLY: usize = 64;

impl Executor {
    /// Memory to write a payload of `len` bytes in place: in the writer's lane, where its readers on this machine look;
    /// without one of those, in a frame, if a port sends from frames.
    ///
    /// *Errors*: [`Error::OutOfResources`] when the readers hold all that there is; those of [`Executor::may_use`].
    pub fn lend(&self, outlet: &mut Outlet, pool: &mut Pool, len: usize) -> Result<Memory> {
        self.may_use()?;
        outlet.refresh();
        if !outlet.has_readers
            && let Some(chunk) = pool.chunk(len)
        {
            return Ok(Memory::Chunk(chunk));
        }
        outlet.loan(len, self.inner.lane_memory()).map(Memory::Slot).ok_or_else(|| {
            Error::OutOfResources(format!(
                "no memory to lend for a sample of {len} B: the readers hold what there is, or the machine is full"
            ))
        })
    }
}

impl Outlet {
    /// A payload that was encoded is so long.
    #[inline]
    pub fn note_len(&mut self, len: usize) {
        self.usual = len.max(self.usual - self.usual / SLOWLY);
    }

    /// How long its encoded payloads are as a rule. *Units*: bytes.
    pub fn usual_len(&self) -> usize {
        self.usual
    }

    /// Memory to encode a payload of the usual length into: in the lane if the writer has readers on this machine, else
    /// in a frame, if a port sends from those. `None` without either, and for a short one, which is copied at less
    /// cost.
    #[inline]
    pub fn memory(&mut self, pool: &mut Pool) -> Option<Memory> {
        let usual = self.usual;
        if usual <= INLINE {
            return None;
        }
        self.refresh();
        match self.lane.as_mut().filter(|_| self.has_readers) {
            Some(lane) => lane.claim(usual).map(Memory::Slot),
            None => pool.chunk(usual).map(Memory::Chunk),
        }
    }

    /// The payload that was written into the first `len` bytes of `memory`. A short one is taken out again: it costs less
    /// to copy into its cell than to look at elsewhere.
    #[inline]
    pub fn payload<'a>(&mut self, pool: &'a mut Pool, memory: Memory, len: usize) -> Payload<'a> {
        if len > INLINE {
            return Payload::of(pool, memory, len);
        }
        let short = Payload::short(memory.get(..len).unwrap_or_default());
        self.take_back(memory);
        short
    }

    /// It is not used after all.
    pub fn take_back(&mut self, memory: Memory) {
        if let (Memory::Slot(slot), Some(lane)) = (memory, &mut self.lane) {
            lane.give_back(slot);
        }
    }
}

impl Deref for Memory {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Memory::Slot(slot) => slot,
            Memory::Chunk(chunk) => chunk,
            Memory::Short(short) => short,
        }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Slot(slot) => slot,
            Memory::Chunk(chunk) => chunk,
            Memory::Short(short) => short,
        }
    }
}

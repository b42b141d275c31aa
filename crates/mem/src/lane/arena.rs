//! Slots for payloads that do not fit a cell: cut from the lane's memory, used again when nobody looks.
//!
//! Belongs to the lane's writer alone; readers see offsets. There are few sizes, so that a slot of one serves
//! any payload of it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Lane, UNIT};
use crate::region::PAGE;

/// Bytes in front of each payload, for the headers of whatever carries it further. *Source*: Ethernet 14 +
/// VLAN 8, IPv6 40, UDP 8, RTPS header 20, INFO_TS 12, DATA 24 and inline QoS, rounded up to 64.
pub const HEADROOM: usize = if cfg!(loom) { 0 } else { 192 };

/// Payloads start so many bytes before a multiple of 64: a serialized value behind its header of four bytes
/// (RTPS 2.5 §10.2) is aligned for whatever it is.
pub const LEAD: usize = if cfg!(loom) { 0 } else { 4 };

/// The smallest slot and how many sizes there are: 512 B to 256 MiB, four to a doubling. Fewer waste more
/// of each slot, more share fewer slots.
const SMALLEST: usize = if cfg!(loom) { UNIT } else { 512 };
const SIZES: usize = 77;
/// How many busy slots of a size one claim looks at before it cuts a new one: a bound on its time. Only
/// when there is no memory left to cut does it look at all of them.
const PROBES: usize = 4;
/// Memory is committed in steps of this. Lower costs more system calls while a writer warms up, higher
/// takes memory that it never needs.
const STEP: usize = 64 * PAGE;

/// Makes sure that bytes of the lane's memory, from an offset, are there to be written, now and later.
/// `false`: the machine has no more.
pub type Commit = Box<dyn FnMut(usize, usize) -> bool + Send>;

/// A slot with one owner, to be filled and pushed.
pub struct Slot {
    lane: Arc<Lane>,
    /// Where in the lane's memory the payload starts.
    offset: usize,
    capacity: usize,
}

/// A slot whose position was pushed.
struct Pushed {
    offset: usize,
    position: u64,
}

/// What a look at a pushed position finds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Nobody looks at its slot, now or later.
    Free,
    /// Somebody has yet to read it.
    Unread,
    /// It is read or overtaken, and some view of it is left.
    Held,
}

#[derive(Default)]
struct Size {
    /// How many slots of it there are.
    count: usize,
    /// Those that were never pushed, or are known to be free; what was freed last is on top.
    free: Vec<usize>,
    /// Pushed ones, oldest first.
    pushed: VecDeque<Pushed>,
    /// Those that were held when their turn came: at most the loans of all readers.
    held: VecDeque<Pushed>,
}

impl Size {
    /// A slot that is free, if a short look finds one: the one that was read last, as that is in the caches still.
    fn reclaim(&mut self, mut look: impl FnMut(u64) -> Look) -> Option<usize> {
        for _ in 0..PROBES {
            let Some(oldest) = self.pushed.front() else { break };
            match look(oldest.position) {
                Look::Free => self.free.extend(self.pushed.pop_front().map(|oldest| oldest.offset)),
                // So are all that come after it.
                Look::Unread => break,
                Look::Held => self.held.extend(self.pushed.pop_front()),
            }
        }
        self.free.pop().or_else(|| self.reclaim_held(PROBES, look))
    }

    fn reclaim_held(&mut self, probes: usize, mut look: impl FnMut(u64) -> Look) -> Option<usize> {
        for _ in 0..probes.min(self.held.len()) {
            let oldest = self.held.pop_front()?;
            if look(oldest.position) == Look::Free {
                return Some(oldest.offset);
            }
            self.held.push_back(oldest);
        }
        None
    }

    /// A slot that is free, or that `overtake` takes from its readers; it may refuse to.
    fn reclaim_any(
        &mut self,
        look: impl Fn(u64) -> Look,
        mut overtake: impl FnMut(u64) -> bool,
    ) -> Option<usize> {
        if let Some(offset) = self.reclaim_held(self.held.len(), &look) {
            return Some(offset);
        }
        while let Some(oldest) = self.pushed.front() {
            if look(oldest.position) == Look::Unread && !overtake(oldest.position) {
                return None;
            }
            let oldest = self.pushed.pop_front()?;
            if look(oldest.position) == Look::Free {
                return Some(oldest.offset);
            }
            self.held.push_back(oldest);
        }
        None
    }
}

pub(super) struct Arena {
    sizes: [Size; SIZES],
    /// The first byte that belongs to no slot yet.
    next: usize,
    committed: usize,
    end: usize,
    commit: Commit,
}

impl Arena {
    pub fn new(lane: &Lane, commit: Commit) -> Arena {
        let start = Lane::arena_start(lane.cells as usize);
        let end = lane.region.len();
        let sizes = std::array::from_fn(|_| Size::default());
        Arena { sizes, next: start, committed: start, end, commit }
    }

    /// So much of the lane's memory, from its start, was committed before.
    pub fn note_committed(&mut self, len: usize) {
        self.committed = self.committed.max(len.min(self.end));
    }

    /// The size that a payload takes and its place in the table.
    fn size_of(len: usize) -> Option<(usize, usize)> {
        let wanted = len.checked_add(HEADROOM - LEAD)?.max(SMALLEST);
        let quarter = 1 << (wanted.ilog2() - 2);
        let bytes = wanted.checked_next_multiple_of(quarter)?;
        Some((Arena::index_of(bytes), bytes)).filter(|(index, _)| *index < SIZES)
    }

    fn index_of(bytes: usize) -> usize {
        let doublings = bytes.ilog2();
        let quarters = (bytes >> (doublings - 2)) & 3;
        (doublings - SMALLEST.ilog2()) as usize * 4 + quarters
    }

    /// A slot for `len` bytes: a free one, else a new one, else one that `overtake` takes from its readers.
    pub fn claim(
        &mut self,
        lane: &Arc<Lane>,
        len: usize,
        look: impl Fn(u64) -> Look,
        overtake: impl FnMut(u64) -> bool,
    ) -> Option<Slot> {
        let (index, bytes) = Arena::size_of(len)?;
        let size = &mut self.sizes[index];
        let offset = match size.reclaim(&look) {
            Some(offset) => offset,
            None => self.cut(index, bytes).or_else(|| self.sizes[index].reclaim_any(look, overtake))?,
        };
        Some(Slot { lane: Arc::clone(lane), offset, capacity: bytes - HEADROOM + LEAD })
    }

    /// A slot's payload offset in memory that was not used before. A page or more starts at a page, so
    /// that it can be handed to a network card whole.
    fn cut(&mut self, index: usize, bytes: usize) -> Option<usize> {
        let start = self.next.next_multiple_of(if bytes < PAGE { UNIT } else { PAGE });
        let end = start.checked_add(bytes).filter(|end| *end <= self.end)?;
        if end > self.committed {
            let until = end.next_multiple_of(STEP).min(self.end);
            if !(self.commit)(self.committed, until - self.committed) {
                return None;
            }
            self.committed = until;
        }
        self.next = end;
        let size = &mut self.sizes[index];
        size.count += 1;
        // So that no claim allocates that cuts none.
        size.free.reserve(size.count - size.free.len());
        Some(start + HEADROOM - LEAD)
    }

    pub fn give_back(&mut self, slot: &Slot) {
        self.size_mut(slot).free.push(slot.offset);
    }

    pub fn note_pushed(&mut self, slot: &Slot, position: u64) {
        self.size_mut(slot).pushed.push_back(Pushed { offset: slot.offset, position });
    }

    fn size_mut(&mut self, slot: &Slot) -> &mut Size {
        let index = Arena::index_of(slot.capacity + HEADROOM - LEAD);
        &mut self.sizes[index]
    }
}

impl Slot {
    /// Bytes that it holds at most.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The offset in units, plus 1: how a cell names it.
    pub(super) fn name(&self) -> u64 {
        ((self.offset + LEAD) / UNIT) as u64 + 1
    }

    /// Is it of this lane?
    pub(super) fn is_of(&self, lane: &Arc<Lane>) -> bool {
        Arc::ptr_eq(&self.lane, lane)
    }
}

#[cfg(loom)]
impl Slot {
    /// Writes the one word of its payload that loom watches.
    pub fn write(&mut self, value: u64) {
        self.lane.region.write_bytes(self.offset, value);
    }
}

#[cfg(not(loom))]
impl std::ops::Deref for Slot {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: [L] a slot that was handed out is looked at by nobody, and this is its only handle.
        unsafe { self.lane.region.bytes(self.offset, self.capacity) }.unwrap_or_default()
    }
}

#[cfg(not(loom))]
impl std::ops::DerefMut for Slot {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: [L] a slot that was handed out is looked at by nobody, and this is its only handle.
        unsafe { self.lane.region.bytes_mut(self.offset, self.capacity) }.unwrap_or_default()
    }
}

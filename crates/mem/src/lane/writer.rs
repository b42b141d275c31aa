//! The writing side of a lane.

use std::sync::Arc;

use super::arena::{Arena, Commit, Look, Slot};
use super::{
    AT_CLOSED, AT_HEAD, AT_LAST, AT_WAITING, CALLS, Cell, DATA, Feedback, HEAD, INLINE, LEAD, Lane, META,
    Meta, PAYLOAD, STAMP, WAITS, ready,
};
use crate::fail::{self, Point};
use crate::region::WORD;
use crate::sync::{Ordering, fence};

/// A reader of the lane.
#[derive(Clone)]
pub struct Peer {
    /// Its words.
    pub feedback: Arc<Feedback>,
    /// Must it get every sample? One that must not is overtaken.
    pub reliable: bool,
}

/// A reliable reader has not read what would have to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

/// The one that writes a lane.
///
/// *Cost* of a push: no lock, no system call, no allocation once the arena is warm, whatever the number of
/// readers. *Shape*: lines of memory of its own, as no other thread writes there.
#[repr(align(64))]
pub struct LaneWriter {
    lane: Arc<Lane>,
    arena: Arena,
    peers: Vec<Peer>,
    /// Feedback of readers that have gone, as long as they may read on or views of their samples are left.
    left: Vec<Arc<Feedback>>,
    head: u64,
    /// At this head the readers' cursors are looked at again.
    limit: u64,
    /// Some may be overtaken.
    overtakes: bool,
    /// They lag, and are to be called.
    calls: bool,
}

/// The part of the ring after which readers are called that lag, and each such part again. Lower wakes them more often, higher
/// leaves them less time.
const CALLED_AT: u64 = 4;

impl LaneWriter {
    /// The writer of a lane that was just created; there must be no other.
    pub fn new(lane: Arc<Lane>, commit: Commit) -> LaneWriter {
        let arena = Arena::new(&lane, commit);
        let limit = lane.cells;
        let (peers, left) = (Vec::new(), Vec::new());
        LaneWriter { lane, arena, peers, left, head: 0, limit, overtakes: false, calls: false }
    }

    /// The first `len` bytes of the lane's memory are there already: no claim within them commits.
    pub fn with_committed(mut self, len: usize) -> LaneWriter {
        self.arena.note_committed(len);
        self
    }

    /// The lane.
    pub fn lane(&self) -> &Arc<Lane> {
        &self.lane
    }

    /// Is it one of the readers?
    pub fn knows(&self, peer: &Peer) -> bool {
        self.peers.iter().any(|known| Arc::ptr_eq(&known.feedback, &peer.feedback))
    }

    /// The readers from now on. [P] Those that have gone may not know it and read on: they are overtaken like any that must
    /// not get each sample. What they hold stays theirs until their views are dropped or their process is known to have ended.
    pub fn set_peers(&mut self, peers: Vec<Peer>) {
        for old in std::mem::replace(&mut self.peers, peers) {
            if !self.peers.iter().any(|peer| Arc::ptr_eq(&peer.feedback, &old.feedback)) {
                self.left.push(old.feedback);
            }
        }
        self.left.retain(|feedback| !feedback.has_ended());
        self.limit = self.head;
        self.overtakes = self.peers.iter().any(|peer| !peer.reliable);
    }

    /// How many readers have gone that held samples, or could read on, when somebody last looked. Each claim looks through
    /// what they hold.
    pub fn left(&self) -> usize {
        self.left.len()
    }

    /// Would a push find a cell that every reliable reader has read? *Cost*: one comparison mostly.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        if self.head < self.limit {
            return true;
        }
        let room_until = self.slowest().saturating_add(self.lane.cells);
        self.limit = room_until;
        if self.overtakes {
            self.call_who_lags();
            self.limit = room_until.min(self.head.saturating_add(self.lane.cells / CALLED_AT));
        }
        self.head < room_until
    }

    /// Readers that may be overtaken, and want none of it, are called in time: whoever drives for them reads on.
    #[cold]
    fn call_who_lags(&mut self) {
        let lags = |peer: &Peer| {
            let behind = self.head.saturating_sub(peer.feedback.cursor());
            !peer.reliable && peer.feedback.wants_all() && behind >= self.lane.cells / CALLED_AT
        };
        self.calls = self.peers.iter().any(lags);
        let waiting = &self.lane.header()[AT_WAITING];
        // A write that waits for room is the same to them, and wants an answer.
        if waiting.load(Ordering::Relaxed) != WAITS {
            waiting.store(if self.calls { CALLS } else { 0 }, Ordering::Relaxed);
        }
    }

    /// Are readers to be called that lag? Once for each time that they were found to. The caller fences before it rings.
    #[inline]
    pub fn take_call(&mut self) -> bool {
        std::mem::take(&mut self.calls)
    }

    /// How many samples the slowest reliable reader has not read.
    pub fn unread(&self) -> u64 {
        self.head - self.slowest()
    }

    /// How many samples a reader has not read, and the meta words of the first of them.
    pub fn unread_by(&self, feedback: &Feedback) -> (u64, Option<Meta>) {
        let cursor = as_may_be(feedback.cursor(), self.head, self.lane.cells);
        (self.head - cursor, self.meta(cursor))
    }

    /// The meta words of the first sample that the slowest reliable reader has not read.
    pub fn first_unread(&self) -> Option<Meta> {
        self.meta(self.slowest())
    }

    /// The meta words at a position, if a sample is there.
    fn meta(&self, position: u64) -> Option<Meta> {
        (position < self.head).then(|| {
            let cell = self.lane.cell(position);
            std::array::from_fn(|at| cell[META + at].load(Ordering::Relaxed))
        })
    }

    /// The cursor of the slowest reliable reader.
    fn slowest(&self) -> u64 {
        slowest(&self.peers, self.head, self.lane.cells)
    }

    /// A slot for a payload of `len` bytes. *Errors*: `None` when all are looked at and the memory is used up.
    pub fn claim(&mut self, len: usize) -> Option<Slot> {
        let LaneWriter { lane, arena, peers, left, head, .. } = self;
        left.retain(|feedback| !feedback.has_ended());
        let look = |position| look(lane, peers, left, position);
        // Best-effort readers lose what they have not read before a write fails for want of memory.
        let slot = arena.claim(lane, len, look, |position| {
            let awaited = slowest(peers, *head, lane.cells) <= position;
            if !awaited {
                overtake(lane, position);
            }
            !awaited
        });
        fail::point(Point::SlotClaimed);
        slot
    }

    /// Gives a slot back unused.
    pub fn give_back(&mut self, slot: Slot) {
        if slot.is_of(&self.lane) {
            self.arena.give_back(&slot);
        }
    }

    /// Writes a sample whose payload, at most [`INLINE`] bytes, goes into the cell.
    ///
    /// *Errors*: [`NoRoom`], or a payload that is too long.
    #[inline]
    pub fn push(&mut self, meta: &Meta, payload: &[u8]) -> Result<(), NoRoom> {
        let (first, value) = payload.split_at(payload.len().min(HEAD));
        let mut head = [0; HEAD];
        head[..first.len()].copy_from_slice(first);
        self.push_value(meta, head, value, payload.len())
    }

    /// Writes a sample of `len` bytes: a value behind its header, and zeros. No byte of them is moved but
    /// from the value's words into the cell's.
    #[inline]
    pub fn push_value(
        &mut self,
        meta: &Meta,
        head: [u8; HEAD],
        value: &[u8],
        len: usize,
    ) -> Result<(), NoRoom> {
        if len > INLINE || value.len() > INLINE - HEAD || !self.has_room() {
            return Err(NoRoom);
        }
        let cell = open_cell(&self.lane, self.head);
        let (words, rest) = value.as_chunks::<WORD>();
        let rest = (!rest.is_empty()).then(|| word_of(rest, 0));
        let words = words.iter().map(|bytes| u64::from_ne_bytes(*bytes)).chain(rest);
        cell[DATA].store(word_of(&head, LEAD), Ordering::Relaxed);
        for (to, word) in cell[DATA + 1..].iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        fail::point(Point::CellFilled);
        close_cell(&self.lane, cell, &mut self.head, meta, len as u64);
        Ok(())
    }

    /// Writes a sample whose payload is the first `len` bytes of a slot.
    ///
    /// *Errors*: the slot back, without room or if it is of another lane or shorter.
    pub fn push_slot(&mut self, meta: &Meta, slot: Slot, len: usize) -> Result<(), Slot> {
        let fits = u32::try_from(len).is_ok() && len <= slot.capacity() && slot.is_of(&self.lane);
        if !fits || !self.has_room() {
            return Err(slot);
        }
        let cell = open_cell(&self.lane, self.head);
        self.arena.note_pushed(&slot, self.head);
        fail::point(Point::SlotPushed);
        close_cell(&self.lane, cell, &mut self.head, meta, slot.name() << 32 | len as u64);
        Ok(())
    }

    /// Asks readers to tell when they move on, or no longer. The caller looks once more before it waits. [W]
    pub fn await_readers(&self, wanted: bool) {
        self.lane.header()[AT_WAITING].store(if wanted { WAITS } else { 0 }, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        fail::point(Point::ReadersAwaited);
    }
}

impl Drop for LaneWriter {
    fn drop(&mut self) {
        self.lane.header()[AT_CLOSED].store(1, Ordering::Release);
    }
}

/// The first half of [C].
#[inline]
fn open_cell(lane: &Lane, head: u64) -> &Cell {
    let cell = lane.cell(head);
    cell[STAMP].store(ready(head) - 1, Ordering::Relaxed);
    fence(Ordering::Release);
    fail::point(Point::CellOpened);
    cell
}

/// The second half of [C].
#[inline]
fn close_cell(lane: &Lane, cell: &Cell, head: &mut u64, meta: &Meta, payload: u64) {
    for (word, value) in cell[META..].iter().zip(meta) {
        word.store(*value, Ordering::Relaxed);
    }
    fail::point(Point::CellMeta);
    cell[PAYLOAD].store(payload, Ordering::Relaxed);
    fail::point(Point::CellPayload);
    cell[STAMP].store(ready(*head), Ordering::Release);
    fail::point(Point::CellStamped);
    let header = lane.header();
    // Before the head: who attaches there finds it, or a later one.
    header[AT_LAST].store(meta[0], Ordering::Release);
    fail::point(Point::LastMoved);
    *head += 1;
    header[AT_HEAD].store(*head, Ordering::Release);
    fail::point(Point::HeadMoved);
}

/// A word of zeros but for a few bytes from `at` on.
#[inline]
fn word_of(bytes: &[u8], at: usize) -> u64 {
    u64::from_le(bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)) << (8 * at))
}

/// The least of the reliable readers' cursors.
fn slowest(peers: &[Peer], head: u64, cells: u64) -> u64 {
    let cursors = peers.iter().filter(|peer| peer.reliable).map(|peer| peer.feedback.cursor());
    cursors.map(|cursor| as_may_be(cursor, head, cells)).min().unwrap_or(head)
}

/// A reader that claims to be ahead or long overtaken is as if it had read all.
#[inline]
fn as_may_be(cursor: u64, head: u64, cells: u64) -> u64 {
    if cursor > head || head - cursor > cells { head } else { cursor }
}

/// Does somebody look at the slot of a position, now or later? [L]
///
/// Cursors count as they are: a reader may be about to attach, and its cursor not to say yet where.
fn look(lane: &Lane, peers: &[Peer], left: &[Arc<Feedback>], position: u64) -> Look {
    let overtaken = lane.stamp(position).load(Ordering::Relaxed) != ready(position);
    if !overtaken && !peers.iter().all(|peer| peer.feedback.cursor() > position) {
        return Look::Unread;
    }
    if !left.is_empty() {
        overtake(lane, position);
    }
    fence(Ordering::SeqCst);
    let held = peers.iter().any(|peer| peer.feedback.holds(position))
        || left.iter().any(|feedback| feedback.holds(position));
    if held { Look::Held } else { Look::Free }
}

/// Makes a cell look as if the next round had begun, so that its sample is lost to who has not read it. The
/// fence of [L] follows in [`look`].
fn overtake(lane: &Lane, position: u64) {
    let stamp = lane.stamp(position);
    if stamp.load(Ordering::Relaxed) == ready(position) {
        // Release: who finds it finds the head behind the position.
        stamp.store(ready(position.wrapping_add(lane.cells)) - 1, Ordering::Release);
    }
}

//! The reading side of a lane.

use std::sync::Arc;

use super::feedback::PLACES;
use super::{
    AT_HEAD, Cell, DATA, Entry, Feedback, INLINE, LEAD, Lane, META, Meta, PAYLOAD, Payload, STAMP, UNIT,
    ready,
};
use crate::Bytes;
use crate::sync::{AtomicU64, Ordering, fence};

/// How often one poll begins anew when the writer overtakes it. Lower and a reader that is overtaken once
/// comes back with nothing, higher and a fast writer keeps it here.
const ATTEMPTS: usize = 4;
/// How many stamps, in rings, are looked at between two times that progress is published, on the way to what is not
/// overtaken: one ring after a jump, and one for a writer that is fast. Lower and who is overtaken often comes back with
/// nothing, higher and a writer that lies keeps it here.
const PASSED: u64 = 2;

/// What a look at a lane finds.
#[derive(Debug)]
pub enum Next {
    /// Nothing new, or the writer is too fast to catch, for now: then [`LaneReader::is_ready`] still says yes.
    Empty,
    /// A sample, which is now in the entry.
    Sample {
        /// Samples that were overtaken before this one.
        lost: u64,
    },
    /// The writer does not keep to the rules: read no further.
    Broken,
}

/// One reader of a lane.
pub struct LaneReader {
    shared: Arc<Attachment>,
    position: u64,
    published: u64,
    lost: u64,
    /// Stamps that were looked at on the way to what is not overtaken.
    passed: u64,
    /// What it was published to last, and how many there may be until it is published again.
    may_pass: (u64, u64),
    /// Copy payloads out of their slots rather than to look at them in place.
    copies: bool,
    /// The place of the last loan.
    hint: usize,
}

/// Where a reader looked last: who does not have the reader looks there whether it can find something. *Shape*: of its own,
/// so that many are looked at in a row of memory.
pub struct Peephole {
    lane: Arc<Lane>,
    position: u64,
}

impl Peephole {
    /// Was something written where the reader looked? It may have been read meanwhile; if not, there is nothing.
    #[inline]
    pub fn shows(&self) -> bool {
        self.lane.stamp(self.position).load(Ordering::Acquire) >= ready(self.position)
    }

    /// Does the writer want readers to read on?
    #[inline]
    pub fn wants_readers(&self) -> bool {
        self.lane.is_awaited() || self.lane.calls_readers() && self.shows()
    }
}

/// What the views of a reader's samples keep alive.
#[repr(align(64))]
struct Attachment {
    lane: Arc<Lane>,
    feedback: Arc<Feedback>,
    /// Views of the slot that each place of the feedback names.
    views: [AtomicU64; PLACES],
}

/// A view's part in a loan: the slot is held while there is one.
pub(crate) struct Hold {
    shared: Arc<Attachment>,
    offset: usize,
    /// A cell has 32 bits for it.
    len: u32,
    /// Below [`super::LOANS`] and a few.
    place: u16,
}

impl LaneReader {
    /// A reader that gets what is written from now on. Its writer must have been told of its feedback
    /// before, else it may use a slot again that this reader looks at. Until the writer has seen what it
    /// was told, it may overtake the reader. [P]
    ///
    /// With `copies` it does not trust the writer to leave a slot alone that it has handed over.
    pub fn attach(lane: Arc<Lane>, feedback: Arc<Feedback>, copies: bool) -> LaneReader {
        fence(Ordering::SeqCst);
        let position = join(&lane, &feedback);
        let views = std::array::from_fn(|_| AtomicU64::new(0));
        let cells = lane.cells;
        let shared = Arc::new(Attachment { lane, feedback, views });
        LaneReader {
            shared,
            position,
            published: position,
            lost: 0,
            passed: 0,
            may_pass: (position, PASSED * cells),
            copies,
            hint: 0,
        }
    }

    /// The lane.
    pub fn lane(&self) -> &Arc<Lane> {
        &self.shared.lane
    }

    /// One that may be overtaken wants to be called before ([`LaneWriter::take_call`](super::LaneWriter::take_call)).
    pub fn want_all(&self) {
        self.shared.feedback.want_all();
    }

    /// Is there something to read? *Cost*: one load of a cell.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.shared.lane.stamp(self.position).load(Ordering::Acquire) >= ready(self.position)
    }

    /// Stamps that it has looked at so far on the way to what was not overtaken: who does not lie has as many cells less to read.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Where it looks next.
    pub fn peephole(&self) -> Peephole {
        Peephole { lane: Arc::clone(&self.shared.lane), position: self.position }
    }

    /// The next sample's words, if there is one.
    pub fn peek(&self) -> Option<Meta> {
        words_at(&self.shared.lane, self.position)
    }

    /// The words of all samples that are there to be read and not overtaken, oldest first. *Cost*: a look at each cell.
    pub fn peek_all(&self) -> impl Iterator<Item = Meta> {
        let lane = self.shared.lane.as_ref();
        let positions = (0..lane.cells).map(|ahead| self.position.wrapping_add(ahead));
        positions.map_while(|position| words_at(lane, position))
    }

    /// The next sample, put into `entry`; without one nothing can be said of what is in there. The writer
    /// learns of the progress by [`LaneReader::publish`].
    #[inline]
    pub fn poll(&mut self, entry: &mut Entry) -> Next {
        for _ in 0..ATTEMPTS {
            let cell = self.shared.lane.cell(self.position);
            let stamp = cell[STAMP].load(Ordering::Acquire);
            if stamp < ready(self.position) {
                return Next::Empty;
            }
            if stamp > ready(self.position) {
                match self.catch_up() {
                    None => continue,
                    Some(end) => return end,
                }
            }
            entry.meta = words_of(cell);
            let payload = cell[PAYLOAD].load(Ordering::Relaxed);
            let found = match payload >> 32 {
                0 => self.inline(cell, payload as usize, &mut entry.payload),
                name => self.slot(name as usize - 1, payload as u32 as usize, &mut entry.payload),
            };
            match found {
                Found::Payload => {
                    self.position = self.position.wrapping_add(1);
                    return Next::Sample { lost: std::mem::take(&mut self.lost) };
                }
                Found::Overtaken => {}
                Found::Broken => return Next::Broken,
            }
        }
        Next::Empty
    }

    /// Has not read the last sample after all: the next poll finds it again.
    pub fn step_back(&mut self) {
        self.position = self.position.wrapping_sub(1).max(self.published);
    }

    /// Tells the writer how far it has read. Returns whether the writer waits to hear it. [W]
    #[inline]
    pub fn publish(&mut self) -> bool {
        if self.published == self.position {
            return false;
        }
        self.published = self.position;
        self.shared.feedback.set_cursor(self.position);
        self.shared.lane.is_awaited()
    }

    /// The same for a reader that may be overtaken, which no writer waits for. *Cost*: one store.
    #[inline]
    pub fn publish_unawaited(&mut self) {
        self.published = self.position;
        self.shared.feedback.note_cursor(self.position);
    }

    /// Goes on with the oldest cell that is not about to be overtaken too. Returns why not: it has looked for that long
    /// enough; or the head has not come so far, so that what is overtaken was never written; or it has come farther than what was.
    fn catch_up(&mut self) -> Option<Next> {
        let lane = &self.shared.lane;
        if self.may_pass.0 != self.published {
            self.may_pass = (self.published, self.passed + PASSED * lane.cells);
        }
        if self.passed >= self.may_pass.1 {
            return Some(Next::Empty);
        }
        let head = || lane.header()[AT_HEAD].load(Ordering::Acquire);
        let begun = head();
        let oldest = begun.saturating_sub(lane.cells - lane.cells / 4);
        let mut next = oldest.max(self.position.wrapping_add(1));
        // Cells whose slots the writer needed are gone though the ring has not come round.
        for _ in 0..lane.cells {
            if lane.stamp(next).load(Ordering::Relaxed) <= ready(next) {
                break;
            }
            next = next.wrapping_add(1);
            self.passed += 1;
        }
        // A cell below the head was written. Partner: the Release of the head.
        let is_there = next >= begun || lane.stamp(next).load(Ordering::Relaxed) >= ready(next);
        // A cell is overtaken after the head has passed it. Partner: the Release before or of its stamp.
        fence(Ordering::Acquire);
        if !is_there || head().wrapping_sub(next).cast_signed() < 0 {
            // It stays where it shows: whoever looks next finds it, too.
            return Some(Next::Broken);
        }
        self.lost = self.lost.saturating_add(next.wrapping_sub(self.position));
        self.position = next;
        None
    }

    /// Is the cell still what it was? [C]
    fn is_current(&self) -> bool {
        is_still(self.shared.lane.cell(self.position), self.position)
    }

    #[inline]
    fn inline(&self, cell: &Cell, len: usize, into: &mut Payload) -> Found {
        into.short_mut().fill(&cell[DATA..], len);
        match is_still(cell, self.position) {
            false => Found::Overtaken,
            true if len > INLINE => Found::Broken,
            true => Found::Payload,
        }
    }

    fn slot(&mut self, unit: usize, len: usize, into: &mut Payload) -> Found {
        let lane = &self.shared.lane;
        let start = Lane::arena_start(lane.cells as usize);
        let offset = unit.saturating_mul(UNIT).saturating_sub(LEAD);
        let inside = offset >= start && offset.checked_add(len).is_some_and(|end| end <= lane.region.len());
        if !inside {
            return if self.is_current() { Found::Broken } else { Found::Overtaken };
        }
        let feedback = &self.shared.feedback;
        let loan = if self.copies { None } else { feedback.hold(self.hint, self.position) };
        let place = loan.unwrap_or_else(|| feedback.hold_to_copy(self.position));
        if !self.is_current() {
            feedback.release(place);
            return Found::Overtaken;
        }
        if loan.is_none() {
            let copied = self.copy(offset, len, into);
            feedback.release(place);
            return copied;
        }
        self.hint = place;
        self.shared.views[place].store(1, Ordering::Relaxed);
        let hold = Hold { shared: Arc::clone(&self.shared), offset, len: len as u32, place: place as u16 };
        *into = Payload::Long(Bytes::held(hold));
        Found::Payload
    }

    fn copy(&self, offset: usize, len: usize, into: &mut Payload) -> Found {
        let Some(bytes) = self.shared.lane.region.copy_bytes(offset, len) else { return Found::Broken };
        if !self.is_current() {
            return Found::Overtaken;
        }
        *into = Payload::Long(bytes);
        Found::Payload
    }
}

impl Drop for LaneReader {
    fn drop(&mut self) {
        self.shared.feedback.end();
    }
}

/// Puts the cursor at the head. A writer that goes on meanwhile reckons without it, or as with one that lies a ring
/// behind, up to where it is then: the reader begins there.
fn join(lane: &Lane, feedback: &Feedback) -> u64 {
    let head = || lane.header()[AT_HEAD].load(Ordering::Acquire);
    let mut told = head();
    feedback.set_cursor(told);
    let mut position = told;
    for _ in 0..ATTEMPTS {
        // Who has not seen what was told had not come further.
        position = head();
        feedback.set_cursor(position);
        // Who has did not find it a ring behind.
        if head().wrapping_sub(told) <= lane.cells {
            break;
        }
        told = position;
    }
    position
}

#[cfg(test)]
impl LaneReader {
    /// Where it looks next.
    pub(super) fn position(&self) -> u64 {
        self.position
    }
}

/// Does a cell still hold the sample of a position? [C]
#[inline]
fn is_still(cell: &Cell, position: u64) -> bool {
    fence(Ordering::Acquire);
    cell[STAMP].load(Ordering::Relaxed) == ready(position)
}

/// What the cell of a position says, if the sample of that is there.
#[inline]
fn words_at(lane: &Lane, position: u64) -> Option<Meta> {
    let cell = lane.cell(position);
    let there = cell[STAMP].load(Ordering::Acquire) == ready(position);
    let meta = words_of(cell);
    (there && is_still(cell, position)).then_some(meta)
}

/// What a cell says beside its payload, if it [is still that](is_still).
#[inline]
fn words_of(cell: &Cell) -> Meta {
    std::array::from_fn(|at| cell[META + at].load(Ordering::Relaxed))
}

enum Found {
    Payload,
    Overtaken,
    Broken,
}

impl Hold {
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Narrows the view to a range of it, cut to what there is.
    pub(crate) fn cut(&mut self, range: std::ops::Range<usize>) {
        let start = range.start.min(self.len());
        let end = range.end.clamp(start, self.len());
        self.offset += start;
        self.len = (end - start) as u32;
    }

    #[cfg(not(loom))]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: [L] the writer leaves the slot alone while the feedback names its position, which is
        // until its last view is dropped.
        unsafe { self.shared.lane.region.bytes(self.offset, self.len()) }.unwrap_or_default()
    }

    /// The word of the slot that loom watches.
    #[cfg(loom)]
    pub(crate) fn watched(&self) -> u64 {
        self.shared.lane.region.read_bytes(self.offset)
    }
}

impl Clone for Hold {
    fn clone(&self) -> Hold {
        self.shared.views[usize::from(self.place)].fetch_add(1, Ordering::Relaxed);
        Hold { shared: Arc::clone(&self.shared), ..*self }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // The last view's drop comes after all that was done with the others. In the child of a fork it is not the last.
        let feedback = &self.shared.feedback;
        if self.shared.views[usize::from(self.place)].fetch_sub(1, Ordering::AcqRel) == 1
            && feedback.is_of_this_process()
        {
            feedback.release(usize::from(self.place));
        }
    }
}

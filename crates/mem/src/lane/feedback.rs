//! What a reader tells its writer: how far it has read and which slots it still looks at.

use crate::fail::{self, Point};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering as StdOrdering};

use crate::region::{PAGE, Region};
use crate::sync::{AtomicU64, Ordering, fence, store_and_fence};

/// How many slots of one lane a reader may hold at a time; what it is given beyond is copied. Lower and
/// a reader that keeps samples copies them early, higher and the writer has more to look through.
pub const LOANS: usize = if cfg!(loom) { 1 } else { 240 };

/// Bytes of a feedback: one page.
pub const FEEDBACK_LEN: usize = PAGE;

const AT_CURSOR: usize = 0;
/// The cursor of a reader that reads no more: ahead of all.
const ENDED: u64 = u64::MAX;
/// Not 0: the reader is to be called before it is overtaken.
const AT_WANTS_ALL: usize = 1;
/// How many of the places may be in use: the writer looks at no more.
const AT_USED: usize = 8;
const AT_PLACES: usize = 16;
/// Where positions are named: one for the sample that is just copied, one for each loan.
pub(super) const PLACES: usize = 1 + LOANS;
const COPIED: usize = 0;
/// The place of a loan while no other is out.
const LONE: usize = COPIED + 1;

/// One reader's words for the writer of one lane.
///
/// The reader writes; the writer, who may see a lie, only compares and never counts on them for memory.
#[repr(align(64))]
pub struct Feedback {
    region: Region,
    /// Known to this process alone.
    abandoned: AtomicBool,
    /// A word that children of a fork find changed, and what it is in the reader's process, if they have this memory, too.
    process: Option<(&'static AtomicU32, u32)>,
}

impl Drop for Feedback {
    fn drop(&mut self) {
        // The reader's own, which may never have attached.
        if self.process.is_some() {
            self.end();
        }
    }
}

impl Feedback {
    /// Feedback in zeroed memory of at least [`FEEDBACK_LEN`]; `None` if it is shorter.
    pub fn new(region: Region) -> Option<Feedback> {
        let abandoned = AtomicBool::new(false);
        (region.len() >= FEEDBACK_LEN).then(|| Feedback { region, abandoned, process: None })
    }

    /// The same of a reader of this process in memory that children of a fork have, too: what they drop is held on.
    /// `word` is another in those.
    pub fn of_process(mut self, word: &'static AtomicU32) -> Feedback {
        self.process = Some((word, word.load(StdOrdering::Relaxed)));
        self
    }

    /// Is this the reader's process? *Cost*: one load, of what nobody changes.
    #[inline]
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.process.is_none_or(|(word, of)| word.load(StdOrdering::Relaxed) == of)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        let words: Option<&[AtomicU64; AT_PLACES + PLACES]> = self.region.row(0);
        &words.expect("invariant: a feedback has its length")[at]
    }

    /// The position up to which, exclusively, the reader has read.
    pub fn cursor(&self) -> u64 {
        self.word(AT_CURSOR).load(Ordering::Acquire)
    }

    /// The reader, which may be overtaken, wants to be called before.
    pub(crate) fn want_all(&self) {
        self.word(AT_WANTS_ALL).store(1, Ordering::Relaxed);
    }

    /// Does it?
    pub(crate) fn wants_all(&self) -> bool {
        self.word(AT_WANTS_ALL).load(Ordering::Relaxed) != 0
    }

    /// Tells how far it has read, and fences: a look at the other side's sleep follows. [W]
    pub(crate) fn set_cursor(&self, position: u64) {
        store_and_fence(self.word(AT_CURSOR), position);
        fail::point(Point::CursorMoved);
    }

    /// Tells how far it has read.
    pub(crate) fn note_cursor(&self, position: u64) {
        self.word(AT_CURSOR).store(position, Ordering::Release);
        fail::point(Point::CursorMoved);
    }

    /// No reader reads on with it. What it holds is held on.
    pub(crate) fn end(&self) {
        if self.is_of_this_process() {
            self.note_cursor(ENDED);
        }
    }

    /// Does nobody read on with it, or look at any slot?
    pub fn has_ended(&self) -> bool {
        self.abandoned.load(StdOrdering::Acquire) || self.cursor() == ENDED && !self.holds_any()
    }

    /// The reader's process has ended: what it held is nobody's any more.
    pub fn abandon(&self) {
        self.abandoned.store(true, StdOrdering::Release);
    }

    /// Is any slot looked at?
    pub fn holds_any(&self) -> bool {
        fence(Ordering::SeqCst);
        !self.abandoned.load(StdOrdering::Acquire)
            && (0..PLACES).any(|place| self.place(place).load(Ordering::Acquire) != 0)
    }

    /// Is the slot of a position looked at? The caller has fenced. [L]
    pub(crate) fn holds(&self, position: u64) -> bool {
        if self.abandoned.load(StdOrdering::Acquire) {
            return false;
        }
        let used = self.word(AT_USED).load(Ordering::Acquire).min(PLACES as u64) as usize;
        (0..used).any(|place| self.place(place).load(Ordering::Acquire) == position.wrapping_add(1))
    }

    /// Notes that the slot of a position is looked at; the place is for [`Feedback::release`]. `None` when
    /// all loans are out.
    pub(crate) fn hold(&self, hint: usize, position: u64) -> Option<usize> {
        let free = |place: &usize| self.place(*place).load(Ordering::Acquire) == 0;
        // That of the last loan is free again if loans end one by one, the next one if they end in their order.
        let from = hint.clamp(LONE, PLACES - 1);
        let place = std::iter::once(LONE).chain(from..PLACES).chain(LONE..from).find(free)?;
        if place == LONE {
            self.forget_unused();
        }
        self.name(place, position);
        Some(place)
    }

    /// Has the writer look at no more places than there is need for, after there were more loans. Only who names places does
    /// so, and whoever names one of those behind the last counts it again.
    #[inline]
    fn forget_unused(&self) {
        let used = self.word(AT_USED);
        let before = used.load(Ordering::Relaxed).min(PLACES as u64) as usize;
        let is_free = |place: &usize| self.place(*place).load(Ordering::Acquire) == 0;
        let free = (LONE + 1..before).rev().take_while(is_free).count();
        if free > 0 {
            used.store((before - free) as u64, Ordering::Release);
        }
    }

    /// Notes that the slot of a position is looked at for as long as the reader copies it.
    pub(crate) fn hold_to_copy(&self, position: u64) -> usize {
        self.name(COPIED, position);
        fail::point(Point::CopyNamed);
        COPIED
    }

    /// The reader's half of [L], with its fence.
    fn name(&self, place: usize, position: u64) {
        // Release: who finds this name has seen what the place's last views did, as if it found the 0 between.
        self.place(place).store(position.wrapping_add(1), Ordering::Release);
        fail::point(Point::PlaceNamed);
        let used = self.word(AT_USED);
        if used.load(Ordering::Relaxed) <= place as u64 {
            used.store(place as u64 + 1, Ordering::Release);
            fail::point(Point::PlaceCounted);
        }
        fence(Ordering::SeqCst);
        fail::point(Point::PlaceFenced);
    }

    /// How many places the writer looks at.
    #[cfg(test)]
    pub(super) fn used(&self) -> u64 {
        self.word(AT_USED).load(Ordering::Relaxed)
    }

    /// Ends what [`Feedback::hold`] began.
    pub(crate) fn release(&self, place: usize) {
        self.place(place).store(0, Ordering::Release);
        fail::point(Point::PlaceReleased);
    }

    fn place(&self, place: usize) -> &AtomicU64 {
        self.word(AT_PLACES + place)
    }
}

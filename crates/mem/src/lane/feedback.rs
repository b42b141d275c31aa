//! What a reader tells its writer: how far it has read and which slots it still looks at.

use crate::region::{PAGE, Region};
use crate::sync::{AtomicU64, Ordering, fence};

/// How many slots of one lane a reader may hold at a time; what it is given beyond is copied. Lower and
/// a reader that keeps samples copies them early, higher and the writer has more to look through.
pub const LOANS: usize = if cfg!(loom) { 2 } else { 240 };

/// Bytes of a feedback: one page.
pub const FEEDBACK_LEN: usize = PAGE;

const AT_CURSOR: usize = 0;
/// How many of the loans were ever used: the writer looks at no more.
const AT_USED: usize = 8;
const AT_LOANS: usize = 16;

/// One reader's words for the writer of one lane.
///
/// The reader writes; the writer, who may see a lie, only compares and never counts on them for memory.
pub struct Feedback {
    region: Region,
}

impl Feedback {
    /// Feedback in zeroed memory of at least [`FEEDBACK_LEN`]; `None` if it is shorter.
    pub fn new(region: Region) -> Option<Feedback> {
        (region.len() >= FEEDBACK_LEN).then_some(Feedback { region })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        let words = self.region.words(0, AT_LOANS + LOANS).unwrap_or_default();
        words.get(at).expect("invariant: a feedback has its length")
    }

    /// The position up to which, exclusively, the reader has read.
    pub fn cursor(&self) -> u64 {
        self.word(AT_CURSOR).load(Ordering::Acquire)
    }

    /// Tells how far it has read. Followed by a look at the other side's sleep: a full barrier. [W]
    pub(crate) fn set_cursor(&self, position: u64) {
        self.word(AT_CURSOR).swap(position, Ordering::SeqCst);
    }

    /// Is the slot of a position looked at? The caller has fenced. [L]
    pub(crate) fn holds(&self, position: u64) -> bool {
        let used = (self.word(AT_USED).load(Ordering::Acquire) as usize).min(LOANS);
        (0..used).any(|loan| self.loan(loan).load(Ordering::Acquire) == position.wrapping_add(1))
    }

    /// Notes that the slot of a position is looked at; the fence of [L] is here. `None` without a free place.
    pub(crate) fn hold(&self, hint: usize, position: u64) -> Option<usize> {
        let free = |loan: &usize| self.loan(*loan).load(Ordering::Acquire) == 0;
        let loan = Some(hint).filter(|hint| *hint < LOANS && free(hint)).or_else(|| (0..LOANS).find(free))?;
        self.loan(loan).store(position.wrapping_add(1), Ordering::Relaxed);
        let used = self.word(AT_USED);
        if used.load(Ordering::Relaxed) <= loan as u64 {
            used.store(loan as u64 + 1, Ordering::Release);
        }
        fence(Ordering::SeqCst);
        Some(loan)
    }

    /// Ends what [`Feedback::hold`] began.
    pub(crate) fn release(&self, loan: usize) {
        self.loan(loan).store(0, Ordering::Release);
    }

    fn loan(&self, loan: usize) -> &AtomicU64 {
        self.word(AT_LOANS + loan)
    }
}

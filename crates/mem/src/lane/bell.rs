//! Whether somebody sleeps who wants to be woken.

use crate::fail::{self, Point};
use crate::region::Region;
use crate::sync::{AtomicU64, Ordering, fence};

/// One sleeper's word, which only it writes: odd while it sleeps, another value each time.
///
/// The other side rings (by an eventfd, a condition variable) when it finds the word odd, once for each
/// value that it finds.
pub struct Bell(Word);

enum Word {
    Shared(Region),
    OfProcess(AtomicU64),
}

impl Bell {
    /// A bell in zeroed memory; `None` if that is too short for a word.
    pub fn new(region: Region) -> Option<Bell> {
        region.words(0, 1).is_some().then_some(Bell(Word::Shared(region)))
    }

    /// A bell that only this process sees.
    pub fn of_process() -> Bell {
        Bell(Word::OfProcess(AtomicU64::new(0)))
    }

    fn word(&self) -> &AtomicU64 {
        match &self.0 {
            Word::Shared(region) => {
                let words = region.words(0, 1).unwrap_or_default();
                words.first().expect("invariant: a bell has a word")
            }
            Word::OfProcess(word) => word,
        }
    }

    /// Says that its owner is about to sleep. The owner looks once more before it does. [W]
    pub fn arm(&self) {
        let word = self.word();
        word.store(word.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        fail::point(Point::BellArmed);
    }

    /// Says that its owner is awake.
    pub fn disarm(&self) {
        let word = self.word();
        let value = word.load(Ordering::Relaxed);
        if value & 1 == 1 {
            word.store(value.wrapping_add(1), Ordering::Release);
            fail::point(Point::BellDisarmed);
        }
    }

    /// The value to ring for, if its owner sleeps. The caller has fenced after what it has to tell. [W]
    pub fn armed(&self) -> Option<u64> {
        Some(self.word().load(Ordering::Relaxed)).filter(|value| value & 1 == 1)
    }
}

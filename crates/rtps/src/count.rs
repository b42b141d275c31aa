//! The counts of HEARTBEATs, of ACKNACKs and of those of fragments, by which one is known that has come before.
//! RTPS 2.5 §8.4.15.7.
//!
//! Owns the last count of one kind that one endpoint has heard of another. Never decides what is said with it: who asks,
//! the proxies of both sides, refuses lies before.

use taut_base::Time;

use crate::limits;

/// The last count of a kind.
#[derive(Default)]
pub(crate) struct Count {
    /// `None` as long as none has come.
    pub last: Option<i32>,
    /// Since when nothing has come but old ones, and the last one before that was new.
    doubted: Option<(Time, i32)>,
}

impl Count {
    /// Is `count` later than the last one, in the arithmetic of a counter that wraps?
    #[inline]
    pub fn is_new(&self, count: i32) -> bool {
        self.last.is_none_or(|last| count.wrapping_sub(last) > 0)
    }

    /// The same. Remembers it.
    #[inline]
    pub fn rises(&mut self, count: i32) -> bool {
        let is_new = self.is_new(count);
        if is_new {
            self.last = Some(count);
        }
        is_new
    }

    /// One that is not new has come. Is it taken all the same, as it has been like that for longer than the network holds back
    /// what is old? Then it was the last one that was wrong, nobody else's or damaged: who sends one that is far ahead would
    /// silence the other for good.
    #[cold]
    #[inline(never)]
    pub fn begins_anew(&mut self, now: Time, count: i32) -> bool {
        let Some(last) = self.last else { return false };
        let known = self.doubted.filter(|(_, doubted)| *doubted == last);
        let (since, _) = *self.doubted.insert(known.unwrap_or((now, last)));
        let lasts = now.since(since) >= limits::RESTART_AFTER;
        if lasts {
            self.last = Some(count);
        }
        lasts
    }

    /// Is it one of the two? Remembers it.
    #[inline]
    pub fn is_news(&mut self, now: Time, count: i32) -> bool {
        self.rises(count) || self.begins_anew(now, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taut_base::Duration;

    #[test]
    fn a_count_far_ahead_is_forgotten_once_no_other_follows_it() {
        let later = |n| Time(1) + limits::RESTART_AFTER.times(n);
        let mut count = Count::default();
        assert!(count.is_news(Time(1), 1) && count.is_news(Time(1), i32::MAX));
        assert!(!count.is_news(Time(1), 2) && !count.is_news(later(1) - Duration(1), 3));
        assert!(count.is_news(later(1), 4) && count.is_news(later(1), 5));
        // What is old and comes between new ones is nothing to go by, whenever that is.
        assert!(!count.is_news(later(1), 4) && count.is_news(later(2), 6));
        assert!(!count.is_news(later(3), 4));
    }

    #[test]
    fn counts_wrap() {
        let mut count = Count::default();
        assert!(count.rises(i32::MAX) && count.rises(i32::MIN) && !count.rises(i32::MAX));
    }
}

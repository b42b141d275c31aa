//! Changes one behind the other, in a ring of places that stay.
//!
//! A place is as large as a change is. A change goes into it once and is looked at there; who takes it out leaves the place
//! to another one, and nothing is moved. What is in a place that no change is in is no matter. Must never choose which
//! change goes: the caches of writers and readers do.

use taut_base::{Guid, SequenceNumber, Time};
use taut_mem::Bytes;

use super::{CacheChange, ChangeKind};

/// The changes, oldest first. *Cost*: O(1) at both ends; no allocation once there have been as many.
#[derive(Debug, Default)]
pub struct Ring {
    places: Vec<CacheChange>,
    /// The place of the oldest.
    first: usize,
    len: usize,
}

/// What is in a place in which no change has been.
fn nothing() -> CacheChange {
    CacheChange {
        kind: ChangeKind::Alive,
        writer_guid: Guid::UNKNOWN,
        sequence_number: SequenceNumber::ZERO,
        instance: None,
        source_timestamp: None,
        time: Time::default(),
        payload: Bytes::new(),
    }
}

impl Ring {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Are there none?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The place of the one that stands there, or of the next one.
    #[inline]
    fn place_of(&self, at: usize) -> usize {
        let straight = self.first.wrapping_add(at);
        if straight < self.places.len() { straight } else { straight.wrapping_sub(self.places.len()) }
    }

    /// The one that stands there, the oldest at 0.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&CacheChange> {
        if at < self.len { self.places.get(self.place_of(at)) } else { None }
    }

    /// The same, to change it.
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut CacheChange> {
        let place = self.place_of(at);
        if at < self.len { self.places.get_mut(place) } else { None }
    }

    /// The oldest.
    #[inline]
    pub fn front(&self) -> Option<&CacheChange> {
        if self.len == 0 { None } else { self.places.get(self.first) }
    }

    /// The newest.
    #[inline]
    pub fn back(&self) -> Option<&CacheChange> {
        self.get(self.len.wrapping_sub(1))
    }

    /// Puts a change behind the others: `fill` sets all of it, as what it finds there is of another one. Returns it.
    #[inline(always)]
    pub fn push(&mut self, fill: impl FnOnce(&mut CacheChange)) -> Option<&CacheChange> {
        if self.len == self.places.len() {
            self.grow();
        }
        let place = self.place_of(self.len);
        let change = self.places.get_mut(place)?;
        fill(change);
        self.len = self.len.wrapping_add(1);
        Some(change)
    }

    /// Twice as many places, with the oldest in the first one.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.straighten();
        self.places.resize_with(self.len.saturating_mul(2).max(1), nothing);
    }

    fn straighten(&mut self) {
        self.places.rotate_left(self.first);
        self.first = 0;
    }

    /// Takes the oldest out. It stays in its place until another one comes there: whoever does not use its payload lets go
    /// of it.
    #[inline]
    pub fn pop(&mut self) -> Option<&mut CacheChange> {
        if self.len == 0 {
            return None;
        }
        let place = self.first;
        self.first = self.place_of(1);
        self.len = self.len.wrapping_sub(1);
        self.places.get_mut(place)
    }

    /// Those from this one on, rising.
    pub fn from(&self, at: usize) -> impl DoubleEndedIterator<Item = &CacheChange> {
        (at..self.len).filter_map(|at| self.get(at))
    }

    /// Where the first one stands for which `is_before` is false, as it is for all behind it.
    pub fn partition_point(&self, is_before: impl Fn(&CacheChange) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle).is_some_and(&is_before) {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        low
    }

    /// Keeps those for which `is_kept` is true. *Cost*: O(n).
    pub fn retain(&mut self, is_kept: impl FnMut(&CacheChange) -> bool) {
        self.straighten();
        self.places.truncate(self.len);
        self.places.retain(is_kept);
        self.len = self.places.len();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::history_cache::tests::change;

    fn numbers<'a>(changes: impl Iterator<Item = &'a CacheChange>) -> Vec<i64> {
        changes.map(|change| change.sequence_number.0).collect()
    }

    /// It empties, and fills further than before, again and again: wherever it begins when it grows or loses some.
    #[test]
    fn it_is_what_a_queue_is() {
        for ahead in 0..5 {
            let (mut ring, mut model) = (Ring::default(), VecDeque::new());
            for number in 0..60_i64 {
                let mut next = change(number, 0);
                next.payload = Bytes::from(vec![1; 100 + number as usize]);
                ring.push(|place| place.take_over(&mut next.clone()));
                model.push_back(next);
                if number % 17 == 16 {
                    ring.retain(|change| change.sequence_number.0 % 3 > 0);
                    model.retain(|change| change.sequence_number.0 % 3 > 0);
                }
                let most = if number % 13 == 12 { 0 } else { ahead + number as usize / 8 };
                while ring.len() > most {
                    let popped = ring.pop().map(|change| (change.sequence_number, change.payload.clone()));
                    assert_eq!(popped, model.pop_front().map(|c| (c.sequence_number, c.payload)));
                }
                assert_eq!(numbers(ring.from(0)), numbers(model.iter()));
                assert_eq!(numbers(ring.from(2).rev()), numbers(model.iter().skip(2).rev()));
                assert_eq!(numbers(ring.front().into_iter()), numbers(model.front().into_iter()));
                assert_eq!(numbers(ring.back().into_iter()), numbers(model.back().into_iter()));
                assert_eq!((ring.len(), ring.is_empty()), (model.len(), model.is_empty()));
                for at in 0..ring.len() + 2 {
                    assert_eq!(numbers(ring.get(at).into_iter()), numbers(model.get(at).into_iter()));
                    let number = number - at as i64;
                    let is_before = |change: &CacheChange| change.sequence_number.0 < number;
                    assert_eq!(ring.partition_point(is_before), model.partition_point(is_before));
                }
                assert!(ring.get_mut(ring.len()).is_none());
            }
        }
    }

    #[test]
    fn it_has_no_more_places_than_twice_those_in_use() {
        let mut ring = Ring::default();
        for number in 0..1_000 {
            ring.push(|place| place.take_over(&mut change(number, 0)));
            if number >= 5 {
                ring.pop();
            }
        }
        assert!(ring.places.len() <= 12, "{}", ring.places.len());
    }
}

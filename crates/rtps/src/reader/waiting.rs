//! The changes of one writer that have arrived and cannot be delivered yet: an earlier one is missing, or the cache is full.
//!
//! Owns how much of them is held. What has no place is asked for again, so the first ones in order are worth most.

use std::collections::BTreeMap;
use std::collections::btree_map::Keys;
use std::ops::Range;

use taut_base::SequenceNumber;

use crate::history_cache::CacheChange;
use crate::limits;

#[derive(Default)]
pub(super) struct Waiting {
    changes: BTreeMap<SequenceNumber, CacheChange>,
    /// Of their payloads.
    bytes: usize,
}

impl Waiting {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub fn contains(&self, number: SequenceNumber) -> bool {
        self.changes.contains_key(&number)
    }

    pub fn numbers(&self) -> Keys<'_, SequenceNumber, CacheChange> {
        self.changes.keys()
    }

    pub fn first(&self) -> Option<SequenceNumber> {
        self.changes.first_key_value().map(|(number, _)| *number)
    }

    pub fn first_in(&self, numbers: Range<SequenceNumber>) -> Option<SequenceNumber> {
        self.changes.range(numbers).next().map(|(number, _)| *number)
    }

    pub fn last(&self) -> Option<SequenceNumber> {
        self.changes.last_key_value().map(|(number, _)| *number)
    }

    /// Takes a change in, whatever is there.
    pub fn insert(&mut self, change: CacheChange) {
        self.bytes = self.bytes.saturating_add(change.payload.len());
        if let Some(before) = self.changes.insert(change.sequence_number, change) {
            self.bytes = self.bytes.saturating_sub(before.payload.len());
        }
    }

    /// Is there a place for one more, of so many bytes? There is always one for one change.
    pub fn has_room(&self, bytes: usize) -> bool {
        let fits = self.bytes.saturating_add(bytes) <= limits::PENDING_BYTES || self.is_empty();
        fits && self.has_place()
    }

    /// The same for one whose bytes are held anyway.
    pub fn has_place(&self) -> bool {
        self.changes.len() < limits::PENDING_CHANGES
    }

    /// The last one goes, if it is behind this number.
    pub fn drop_last_behind(&mut self, number: SequenceNumber) -> bool {
        self.last().is_some_and(|last| last > number && self.remove(last).is_some())
    }

    pub fn remove(&mut self, number: SequenceNumber) -> Option<CacheChange> {
        let change = self.changes.remove(&number)?;
        self.bytes = self.bytes.saturating_sub(change.payload.len());
        Some(change)
    }

    /// Those before this number go.
    pub fn remove_before(&mut self, number: SequenceNumber) {
        while let Some(first) = self.first().filter(|first| *first < number) {
            self.remove(first);
        }
    }
}

//! How large a writer's datagrams and fragments are: as large as gets through to all of its readers in one
//! piece, since a datagram that the network cuts is lost with any of its pieces. RTPS 2.5 §8.4.14.1 (large data).

use std::cell::Cell;
use std::collections::VecDeque;

use taut_base::SequenceNumber;

use crate::history_cache::CacheChange;
use crate::limits;

/// The sizes of one writer. A change keeps the size of its fragments for good: readers ask for them by number.
pub(super) struct PathSizes {
    datagram: usize,
    /// The answers of the port that it goes by; `None` if the readers have changed since.
    generation: Option<u64>,
    /// Some change has been cut.
    used: Cell<bool>,
    may_fragment: bool,
    /// Bytes of a datagram around a fragment.
    headers: usize,
    /// From which change on which size, in order; the first is for all before the second.
    fragments: VecDeque<(SequenceNumber, usize)>,
    /// The smallest of them.
    smallest: usize,
}

impl PathSizes {
    /// No reader is known. A writer that does not fragment below the largest datagram is of discovery, whose
    /// data some peers take only whole.
    pub fn new(may_fragment: bool) -> PathSizes {
        let fragments = VecDeque::from([(SequenceNumber::ZERO, limits::FRAGMENT_SIZE)]);
        PathSizes {
            datagram: limits::MESSAGE_SIZE,
            generation: Some(0),
            used: Cell::new(false),
            may_fragment,
            headers: limits::FRAGMENT_HEADERS,
            fragments,
            smallest: limits::FRAGMENT_SIZE,
        }
    }

    /// All fragments are as small as any path needs.
    pub fn cut(&mut self) {
        self.fragments = VecDeque::from([(SequenceNumber::ZERO, limits::FRAGMENT_SIZE_MIN)]);
        self.smallest = limits::FRAGMENT_SIZE_MIN;
    }

    /// Fragments leave room for so many more bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.headers = self.headers.saturating_add(bytes);
    }

    /// The readers have changed.
    pub fn forget(&mut self) {
        self.generation = None;
    }

    #[inline]
    pub fn are_known(&self, generation: u64) -> bool {
        self.generation == Some(generation)
    }

    /// The port's answer of this generation: the smallest of the paths takes datagrams of this size, if there is a
    /// path. Changes below `from` may be out, and there is none below `first`.
    pub fn learn(
        &mut self,
        generation: u64,
        datagram: Option<usize>,
        from: SequenceNumber,
        first: Option<SequenceNumber>,
    ) {
        self.generation = Some(generation);
        let Some(datagram) = datagram else { return };
        self.datagram = datagram.clamp(limits::DATAGRAM_MIN, limits::MESSAGE_SIZE);
        let first = first.unwrap_or(from);
        while self.fragments.get(1).is_some_and(|(next, _)| *next <= first) {
            self.fragments.pop_front();
        }
        let size = (self.datagram.saturating_sub(self.headers) & !7).min(limits::FRAGMENT_SIZE);
        if !self.may_fragment {
            return;
        }
        if !self.used.get() || first >= from {
            self.fragments.clear();
        }
        // No change has the sizes that there were in between.
        while self.fragments.back().is_some_and(|(since, _)| *since >= from) {
            self.fragments.pop_back();
        }
        if self.fragments.back().is_none_or(|(_, last)| *last != size) {
            let since = if self.fragments.is_empty() { SequenceNumber::ZERO } else { from };
            self.fragments.push_back((since, size));
        }
        self.smallest = self.fragments.iter().map(|(_, size)| *size).min().unwrap_or(size);
    }

    /// Bytes of a datagram.
    pub fn datagram(&self) -> usize {
        self.datagram
    }

    /// Does a payload of this length go in one piece, whichever change it is of?
    #[inline]
    pub fn is_small(&self, len: usize) -> bool {
        len <= self.smallest
    }

    /// The size of a change's fragments; `None` if it goes in one piece.
    #[inline]
    pub fn fragment_size(&self, change: &CacheChange) -> Option<usize> {
        if self.is_small(change.payload.len()) { None } else { self.look_up(change) }
    }

    #[cold]
    fn look_up(&self, change: &CacheChange) -> Option<usize> {
        let mut sizes = self.fragments.iter().rev();
        let size = sizes.find(|(from, _)| *from <= change.sequence_number).or(self.fragments.front());
        let size = size.map_or(limits::FRAGMENT_SIZE, |(_, size)| *size);
        let is_cut = change.payload.len() > size;
        self.used.set(self.used.get() || is_cut);
        is_cut.then_some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history_cache::ChangeKind;
    use taut_base::{Guid, Time};
    use taut_mem::Bytes;

    fn large(number: i64) -> CacheChange {
        CacheChange {
            kind: ChangeKind::Alive,
            writer_guid: Guid::UNKNOWN,
            sequence_number: SequenceNumber(number),
            instance: None,
            source_timestamp: None,
            time: Time(0),
            payload: Bytes::from(vec![0; 100_000]),
        }
    }

    /// Learns a path when the changes below `from` are out and `first` is the oldest.
    fn learn(paths: &mut PathSizes, datagram: usize, from: i64, first: i64) {
        paths.learn(1, Some(datagram), SequenceNumber(from), Some(SequenceNumber(first)));
    }

    #[test]
    fn a_change_keeps_the_size_of_its_fragments() {
        let mut paths = PathSizes::new(true);
        learn(&mut paths, 65_507, 1, 1);
        learn(&mut paths, 1_472, 3, 1);
        assert_eq!(paths.fragment_size(&large(1)), Some(1_352), "none was cut before the second was learned");
        learn(&mut paths, 65_507, 3, 1);
        learn(&mut paths, 8_972, 5, 1);
        let sizes = [1, 2, 3, 4, 5, 6].map(|number| paths.fragment_size(&large(number)).unwrap());
        assert_eq!(sizes, [1_352, 1_352, 64_000, 64_000, 8_848, 8_848]);
        assert_eq!(paths.datagram(), 8_972);
        learn(&mut paths, 100, 7, 3);
        assert_eq!(paths.fragment_size(&large(3)), Some(64_000));
        assert_eq!(paths.fragment_size(&large(7)), Some(512), "a lie about a path does not make dust");
        assert_eq!(PathSizes::new(false).fragment_size(&large(1)), Some(64_000));
    }

    #[test]
    fn sizes_that_no_change_has_are_forgotten() {
        let mut paths = PathSizes::new(true);
        assert!(paths.fragment_size(&large(1)).is_some());
        for _ in 0..1_000 {
            learn(&mut paths, 1_472, 2, 1);
            learn(&mut paths, 65_507, 2, 1);
        }
        assert!(paths.fragments.len() <= 2, "{:?}", paths.fragments);
        for from in 3..1_000 {
            learn(&mut paths, if from % 2 == 0 { 1_472 } else { 65_507 }, from, from - 1);
        }
        assert!(paths.fragments.len() <= 3, "{:?}", paths.fragments);
    }
}

//! Sets of sequence numbers as intervals: their cost is the number of intervals, never the length
//! of a range, which a peer may choose.

use taut_base::SequenceNumber;

/// A sorted set of disjoint, non-touching intervals `[start, end)`, at most `cap` of them.
#[derive(Clone, Default, Debug)]
pub struct IntervalSet {
    intervals: Vec<(i64, i64)>,
    cap: usize,
}

impl IntervalSet {
    /// An empty set of at most `cap` intervals.
    pub fn new(cap: usize) -> IntervalSet {
        IntervalSet { intervals: Vec::new(), cap }
    }

    /// Is there no number in it?
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Adds `[start, end)`. What needs more than the cap takes the place of the last interval, as what comes first is waited for.
    /// `false` if it would be the last itself: nothing is added then.
    pub fn insert(&mut self, start: SequenceNumber, end: SequenceNumber) -> bool {
        let (mut start, mut end) = (start.0, end.0);
        if start >= end {
            return true;
        }
        let from = self.intervals.partition_point(|(_, e)| *e < start);
        let to = self.intervals.partition_point(|(s, _)| *s <= end);
        if from == to && self.intervals.len() >= self.cap {
            if from == self.intervals.len() {
                return false;
            }
            self.intervals.pop();
        }
        for (s, e) in self.intervals.get(from..to).unwrap_or(&[]) {
            start = start.min(*s);
            end = end.max(*e);
        }
        self.intervals.splice(from..to, [(start, end)]);
        true
    }

    /// Takes `[start, end)` out. What is in two parts then may be one more than the cap.
    pub fn remove(&mut self, start: SequenceNumber, end: SequenceNumber) {
        let (start, end) = (start.0, end.0);
        if start >= end {
            return;
        }
        let from = self.intervals.partition_point(|(_, e)| *e <= start);
        let to = self.intervals.partition_point(|(s, _)| *s < end);
        let touched = self.intervals.get(from..to).unwrap_or(&[]);
        let before = touched.first().map(|(s, _)| (*s, start));
        let behind = touched.last().map(|(_, e)| (end, *e));
        let rest = before.into_iter().chain(behind).filter(|(s, e)| s < e);
        self.intervals.splice(from..to, rest);
    }

    /// The last number in it.
    pub fn last(&self) -> Option<SequenceNumber> {
        self.intervals.last().map(|(_, end)| SequenceNumber(*end).prev())
    }

    /// How many numbers are in it.
    pub fn count(&self) -> u64 {
        let lengths = self.intervals.iter().map(|(s, e)| u64::try_from(e.saturating_sub(*s)).unwrap_or(0));
        lengths.fold(0, u64::saturating_add)
    }

    /// The intervals, each as its start and its end.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SequenceNumber, SequenceNumber)> {
        self.intervals.iter().map(|(s, e)| (SequenceNumber(*s), SequenceNumber(*e)))
    }

    /// Is the number in the set?
    pub fn contains(&self, number: SequenceNumber) -> bool {
        let at = self.intervals.partition_point(|(_, e)| *e <= number.0);
        self.intervals.get(at).is_some_and(|(s, _)| *s <= number.0)
    }

    /// The first number from `number` on that is not in the set; forgets all below it.
    pub fn pass(&mut self, number: SequenceNumber) -> SequenceNumber {
        let mut number = number.0;
        let done = self.intervals.partition_point(|(_, e)| *e <= number);
        self.intervals.drain(..done);
        if let Some((s, e)) = self.intervals.first().copied()
            && s <= number
        {
            number = e;
            self.intervals.remove(0);
        }
        SequenceNumber(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sn(n: i64) -> SequenceNumber {
        SequenceNumber(n)
    }

    #[test]
    fn merges_and_passes() {
        let mut set = IntervalSet::new(8);
        for (s, e) in [(10, 12), (14, 16), (12, 14), (1, 3), (20, i64::MAX)] {
            assert!(set.insert(sn(s), sn(e)));
        }
        assert_eq!(set.intervals, [(1, 3), (10, 16), (20, i64::MAX)]);
        assert!(set.contains(sn(15)) && !set.contains(sn(16)) && !set.contains(sn(0)));
        assert_eq!((set.pass(sn(1)), set.pass(sn(3)), set.pass(sn(11))), (sn(3), sn(3), sn(16)));
        assert_eq!(set.intervals, [(20, i64::MAX)]);
    }

    #[test]
    fn removes_and_counts() {
        let mut set = IntervalSet::new(8);
        for (s, e) in [(1, 5), (7, 9), (10, 20)] {
            set.insert(sn(s), sn(e));
        }
        assert_eq!(set.count(), 16);
        for (s, e) in [(5, 7), (4, 12), (14, 15), (19, 30), (3, 3)] {
            set.remove(sn(s), sn(e));
        }
        assert_eq!((&set.intervals[..], set.count()), (&[(1, 4), (12, 14), (15, 19)][..], 9));
        set.remove(sn(1), sn(i64::MAX));
        assert!(set.is_empty() && set.count() == 0);
    }

    #[test]
    fn a_cap_holds() {
        let mut set = IntervalSet::new(2);
        assert!(set.insert(sn(1), sn(2)) && set.insert(sn(5), sn(6)) && !set.insert(sn(9), sn(10)));
        assert!(set.insert(sn(2), sn(5)), "what merges needs no room");
        assert_eq!(set.intervals, [(1, 6)]);
        assert!(set.insert(sn(9), sn(10)) && set.insert(sn(7), sn(8)), "what comes first is waited for");
        assert_eq!(set.intervals, [(1, 6), (7, 8)]);
        let mut none = IntervalSet::new(0);
        assert!(!none.insert(sn(1), sn(2)) && none.is_empty());
    }
}

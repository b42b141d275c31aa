//! What is to be sent, by class: the highest class first; inside of a class by TRANSPORT_PRIORITY, the highest first,
//! and in turn inside of that.
//! The executor decides how far down a step goes.

use std::collections::VecDeque;

use crate::{ReaderIndex, WriterIndex};

/// The class of a piece of sending work, highest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TxClass {
    /// Fresh changes of writers with a TRANSPORT_PRIORITY above 0.
    Critical,
    /// Acknowledgements and repairs of user data.
    Repair,
    /// Fresh changes of other writers.
    Data,
    /// Liveliness.
    Liveliness,
    /// Discovery.
    Discovery,
}

impl TxClass {
    /// All, highest first.
    pub const ALL: [TxClass; 5] =
        [TxClass::Critical, TxClass::Repair, TxClass::Data, TxClass::Liveliness, TxClass::Discovery];
}

/// A piece of sending work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Work {
    /// What discovery owes: announcements, and all that built-in endpoints owe single participants.
    Discovery,
    /// What a reader of the user owes its writers.
    Acks(ReaderIndex),
    /// What a writer of the user owes single readers.
    Repair(WriterIndex),
    /// Fresh changes.
    Push(WriterIndex),
    /// A heartbeat that only says that the writer is alive.
    Liveliness(WriterIndex),
}

/// How many pieces of one priority are looked through for one that goes along. Lower leaves samples of writers for many
/// destinations in datagrams of their own, higher looks longer for each piece.
const BESIDE: usize = 64;

/// Queues of work. Each piece is in at most one, its entity keeps the mark.
#[derive(Default)]
pub(crate) struct Schedule {
    queues: [VecDeque<(i32, Work)>; TxClass::ALL.len()],
    /// A bit for each class that has work, the lowest for the highest class: asked many times for each sample.
    any: u8,
}

impl Schedule {
    /// Queues a piece of a writer with this TRANSPORT_PRIORITY, 0 for what is no writer's.
    #[inline]
    pub fn push(&mut self, class: TxClass, priority: i32, work: Work) {
        let Some(queue) = self.queues.get_mut(class as usize) else { return };
        if self.any & bit(class) == 0 || queue.back().is_none_or(|last| last.0 >= priority) {
            queue.push_back((priority, work));
        } else {
            insert_before_lower(queue, priority, work);
        }
        self.any |= bit(class);
    }

    /// The highest class that has work, if that is `lowest` or above.
    #[inline]
    pub fn highest(&self, lowest: TxClass) -> Option<TxClass> {
        let class = TxClass::ALL.get(self.any.trailing_zeros() as usize);
        class.copied().filter(|class| *class <= lowest)
    }

    /// The next piece of a class, with its priority.
    #[inline]
    pub fn pop(&mut self, class: TxClass) -> Option<(i32, Work)> {
        let queue = self.queues.get_mut(class as usize)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.any &= !bit(class);
        }
        next
    }

    /// The writers with fresh changes of this class.
    pub fn pushing(&self, class: TxClass) -> impl Iterator<Item = WriterIndex> {
        let queued = self.queues.get(class as usize).into_iter().flatten();
        queued.filter_map(|(_, work)| if let Work::Push(writer) = work { Some(*writer) } else { None })
    }

    /// How many pieces of a class there are.
    pub fn count(&self, class: TxClass) -> usize {
        self.queues.get(class as usize).map_or(0, VecDeque::len)
    }

    /// Is there work of this class?
    #[inline]
    pub fn has(&self, class: TxClass) -> bool {
        self.any & bit(class) != 0
    }

    /// Where a piece stands that goes along with the one of this class and priority that was popped last.
    pub fn find_beside(
        &self,
        class: TxClass,
        priority: i32,
        mut goes_along: impl FnMut(Work) -> bool,
    ) -> Option<usize> {
        let equals = self.queues.get(class as usize)?.iter().take_while(|(other, _)| *other == priority);
        equals.take(BESIDE).position(|(_, work)| goes_along(*work))
    }

    /// Takes the piece that stands there.
    pub fn take(&mut self, class: TxClass, at: usize) -> Option<Work> {
        let queue = self.queues.get_mut(class as usize)?;
        let taken = queue.remove(at);
        if queue.is_empty() {
            self.any &= !bit(class);
        }
        taken.map(|(_, work)| work)
    }

    /// Is there work of class `lowest` or above?
    #[inline]
    pub fn has_work(&self, lowest: TxClass) -> bool {
        self.any & (bit(lowest) | bit(lowest).wrapping_sub(1)) != 0
    }
}

#[inline(never)]
fn insert_before_lower(queue: &mut VecDeque<(i32, Work)>, priority: i32, work: Work) {
    let at = queue.iter().rposition(|other| other.0 >= priority);
    queue.insert(at.map_or(0, |at| at.saturating_add(1)), (priority, work));
}

fn bit(class: TxClass) -> u8 {
    1 << class as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_priority_first_and_equals_in_turn() {
        let mut schedule = Schedule::default();
        for (n, priority) in [5, 1, 9, 5, i32::MIN, 0, 9].into_iter().enumerate() {
            schedule.push(TxClass::Critical, priority, Work::Push(WriterIndex(n as u32)));
        }
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop(TxClass::Critical))
            .map(|(priority, work)| match work {
                Work::Push(index) => (priority, index.0),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(order, [(9, 2), (9, 6), (5, 0), (5, 3), (1, 1), (0, 5), (i32::MIN, 4)]);
    }

    #[test]
    fn only_equals_go_along_and_not_from_far_behind() {
        let mut schedule = Schedule::default();
        let last = WriterIndex(BESIDE as u32);
        (0..=last.0).for_each(|n| schedule.push(TxClass::Data, 0, Work::Push(WriterIndex(n))));
        let is = |index| move |work| work == Work::Push(index);
        assert_eq!(schedule.find_beside(TxClass::Data, 0, is(last)), None);
        assert_eq!(schedule.find_beside(TxClass::Data, 1, is(WriterIndex(7))), None);
        assert_eq!(schedule.find_beside(TxClass::Critical, 0, is(WriterIndex(7))), None);
        let at = schedule.find_beside(TxClass::Data, 0, is(WriterIndex(7))).unwrap();
        assert_eq!(schedule.take(TxClass::Data, at), Some(Work::Push(WriterIndex(7))));
        while schedule.take(TxClass::Data, 0).is_some() {}
        assert!(!schedule.has_work(TxClass::Data));
    }

    #[test]
    fn highest_first_and_not_below_the_limit() {
        let mut schedule = Schedule::default();
        schedule.push(TxClass::Discovery, 0, Work::Discovery);
        schedule.push(TxClass::Data, 0, Work::Push(WriterIndex(1)));
        schedule.push(TxClass::Critical, 1, Work::Push(WriterIndex(2)));
        let mut next =
            |lowest| schedule.highest(lowest).and_then(|class| schedule.pop(class)).map(|(_, work)| work);
        assert_eq!(next(TxClass::Data), Some(Work::Push(WriterIndex(2))));
        assert_eq!(next(TxClass::Data), Some(Work::Push(WriterIndex(1))));
        assert_eq!((next(TxClass::Data), next(TxClass::Liveliness)), (None, None));
        assert_eq!(next(TxClass::Discovery), Some(Work::Discovery));
        assert!(TxClass::ALL.into_iter().all(|class| !schedule.has_work(class)));
    }
}

//! What is to be sent, by class: the highest class first, in turn inside of a class.
//! The order is DESIGN's; the executor decides how far down a step goes.

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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// SPDP.
    Announce,
    /// What a reader owes its writers.
    Acks(ReaderIndex),
    /// What a writer owes single readers.
    Repair(WriterIndex),
    /// Fresh changes.
    Push(WriterIndex),
    /// A heartbeat that only says that the writer is alive.
    Liveliness(WriterIndex),
}

/// Queues of work. Each piece is in at most one, its entity keeps the mark.
#[derive(Default)]
pub(crate) struct Schedule {
    queues: [VecDeque<Work>; TxClass::ALL.len()],
    /// A bit for each class that has work, the lowest for the highest class: asked many times for each sample.
    any: u8,
}

impl Schedule {
    pub fn push(&mut self, class: TxClass, work: Work) {
        if let Some(queue) = self.queues.get_mut(class as usize) {
            queue.push_back(work);
            self.any |= bit(class);
        }
    }

    /// The next piece of class `lowest` or above.
    pub fn pop(&mut self, lowest: TxClass) -> Option<(TxClass, Work)> {
        if !self.has_work(lowest) {
            return None;
        }
        let class = *TxClass::ALL.get(self.any.trailing_zeros() as usize)?;
        let queue = self.queues.get_mut(class as usize)?;
        let work = queue.pop_front();
        if queue.is_empty() {
            self.any &= !bit(class);
        }
        Some((class, work?))
    }

    /// Is there work of class `lowest` or above?
    #[inline]
    pub fn has_work(&self, lowest: TxClass) -> bool {
        self.any & (bit(lowest) | bit(lowest).wrapping_sub(1)) != 0
    }
}

fn bit(class: TxClass) -> u8 {
    1 << class as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_first_and_not_below_the_limit() {
        let mut schedule = Schedule::default();
        schedule.push(TxClass::Discovery, Work::Announce);
        schedule.push(TxClass::Data, Work::Push(WriterIndex(1)));
        schedule.push(TxClass::Critical, Work::Push(WriterIndex(2)));
        assert_eq!(schedule.pop(TxClass::Data).unwrap().1, Work::Push(WriterIndex(2)));
        assert_eq!(schedule.pop(TxClass::Data).unwrap().1, Work::Push(WriterIndex(1)));
        assert!(schedule.pop(TxClass::Data).is_none() && schedule.has_work(TxClass::Discovery));
        assert!(!schedule.has_work(TxClass::Liveliness));
        assert_eq!(schedule.pop(TxClass::Discovery).unwrap().1, Work::Announce);
        assert!(TxClass::ALL.into_iter().all(|class| !schedule.has_work(class)));
    }
}

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
}

impl Schedule {
    pub fn push(&mut self, class: TxClass, work: Work) {
        if let Some(queue) = self.queues.get_mut(class as usize) {
            queue.push_back(work);
        }
    }

    /// The next piece of class `lowest` or above.
    pub fn pop(&mut self, lowest: TxClass) -> Option<(TxClass, Work)> {
        let queues = TxClass::ALL.into_iter().zip(&mut self.queues);
        queues
            .take_while(|(class, _)| *class <= lowest)
            .find_map(|(class, queue)| Some((class, queue.pop_front()?)))
    }

    /// Is there work of class `lowest` or above?
    pub fn has_work(&self, lowest: TxClass) -> bool {
        let queues = TxClass::ALL.into_iter().zip(&self.queues);
        queues.take_while(|(class, _)| *class <= lowest).any(|(_, queue)| !queue.is_empty())
    }
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
    }
}

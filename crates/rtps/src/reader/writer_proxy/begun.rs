//! Samples of which not all has come: how many there may be, and what becomes of the others. RTPS 2.5 §8.3.8.3.

use std::collections::BTreeMap;

use taut_base::{SequenceNumber, Time};

use super::WriterProxy;
use crate::intervals::IntervalSet;
use crate::limits;
use crate::reader::Assembly;

impl WriterProxy {
    /// Takes a new assembly in. Too many at once: a reliable reader does without the last in order, as
    /// it can ask again, so that made-up numbers far ahead cannot keep the next sample out; a
    /// best-effort one gives up the oldest. Returns how many changes are lost with that; `None` if it is this one that is
    /// done without.
    pub fn admit_assembly(&mut self, now: Time, number: SequenceNumber, assembly: Assembly) -> Option<u64> {
        // How long it takes until the sample is whole says nothing of how long the writer takes to answer.
        if number <= self.asked_until {
            self.time_answer(now);
        }
        let mut lost = 0;
        if self.assemblies.len() >= limits::ASSEMBLIES {
            let (first, last) = (self.assemblies.first_key_value(), self.assemblies.last_key_value());
            if !self.reliable && first.is_some_and(|(first, _)| *first < number) {
                lost = self.give_up_first();
            } else if self.reliable && last.is_some_and(|(last, _)| *last > number) {
                self.assemblies.pop_last();
            } else {
                return None;
            }
        }
        self.assemblies.insert(number, assembly);
        Some(lost)
    }

    /// Best effort: the oldest sample in assembly will not become whole. Returns how many are lost: it, and those before it
    /// that have not come. They are behind this reader now, so that nobody counts them again.
    #[cold]
    fn give_up_first(&mut self) -> u64 {
        let first = self.assemblies.first_key_value().map(|(number, _)| *number);
        first.map_or(0, |number| self.skip_to(number).saturating_add(1))
    }

    /// Gives samples in assembly up for those that a reliable reader wants before them, or that a best-effort one may get
    /// whole, if they take too much memory together. Returns how many changes are lost with that.
    #[inline]
    pub fn bound_assemblies(&mut self) -> u64 {
        if self.assemblies.len() > 1 { self.give_up_assemblies() } else { 0 }
    }

    #[inline(never)]
    fn give_up_assemblies(&mut self) -> u64 {
        let bytes = |assemblies: &BTreeMap<SequenceNumber, Assembly>| -> usize {
            assemblies.values().map(Assembly::bytes).sum()
        };
        let mut lost = 0_u64;
        while self.assemblies.len() > 1 && bytes(&self.assemblies) > limits::ASSEMBLY_BYTES {
            if self.reliable {
                self.assemblies.pop_last();
            } else {
                lost = lost.saturating_add(self.give_up_first());
            }
        }
        lost
    }

    /// How many changes before this one have begun to come: whatever else is not lost, they are.
    #[cold]
    pub(super) fn begun_before(&self, number: SequenceNumber) -> u64 {
        self.assemblies.range(..number).count() as u64
    }

    /// What has begun to come, and is not whole.
    pub(super) fn begun(&self) -> IntervalSet {
        // No more than samples in assembly.
        let mut begun = IntervalSet::new(usize::MAX);
        self.assemblies.keys().for_each(|number| _ = begun.insert(*number, number.next()));
        begun
    }
}

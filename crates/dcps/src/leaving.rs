//! Writers that go or fall silent: what only they wrote has no writers. DCPS 1.4 §2.2.2.5.1.3.
//!
//! A writer may write more instances than one step can look at. So they are looked at in turns, each as far as its budget
//! goes, and whoever drives takes the next one. Of what somebody says something meanwhile that comes first.

use std::collections::BTreeSet;

use taut_base::{Guid, InstanceHandle, SequenceNumber, Time};
use taut_mem::Bytes;
use taut_rtps::history_cache::{CacheChange, ChangeKind};

use crate::deadline::DEADLINES_PER_STEP;
use crate::reader_cache::{Insert, ReaderCache};

/// How many are looked at in turns. Lower and where many go at once more is done in one step, higher and the instances of one
/// lose it later.
const IN_TURNS: usize = 64;

/// A writer that has gone.
#[derive(Debug)]
pub(crate) struct Leaving {
    writer: Guid,
    /// The first of the instances that were not looked at yet.
    next: u32,
    /// Those behind that it has written since.
    back: BTreeSet<u32>,
}

impl ReaderCache {
    /// The writer has gone or is no longer alive: what only it wrote has no writers. Says whether a new sample tells that.
    /// *Cost*: one step; what is left of it comes with the deadlines.
    pub fn writer_gone(&mut self, now: Time, writer: Guid) -> bool {
        self.settle_fresh();
        self.unheard.forget(writer);
        self.leaving.retain(|other| other.writer != writer);
        let mut is_told = false;
        if self.leaving.len() >= IN_TURNS {
            let first = self.leaving[0].writer;
            while self.leaving.first().is_some_and(|leaving| leaving.writer == first) {
                is_told |= self.go_on_leaving(now, &mut DEADLINES_PER_STEP.clone());
            }
        }
        self.leaving.push(Leaving { writer, next: 0, back: BTreeSet::new() });
        is_told |= self.go_on_leaving(now, &mut DEADLINES_PER_STEP.clone());
        self.note_passing();
        self.alarm |= self.is_leaving();
        is_told
    }

    /// Is there more to do for a writer that has gone?
    pub(crate) fn is_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Looks at so many instances of those that have gone. Says whether a new sample tells of one.
    pub(crate) fn go_on_leaving(&mut self, now: Time, budget: &mut usize) -> bool {
        let mut is_told = false;
        while *budget > 0
            && let Some(first) = self.leaving.first_mut()
        {
            let (writer, index) = (first.writer, first.next);
            if index >= self.instances.end() {
                self.leaving.remove(0);
                self.note_passing();
                continue;
            }
            first.next += 1;
            *budget -= 1;
            if !first.back.remove(&index) {
                is_told |= self.leave_instance(now, index, writer);
            }
        }
        is_told
    }

    /// Something is said of an instance: first it has lost those that have gone.
    #[cold]
    pub(crate) fn leave_first(&mut self, now: Time, handle: InstanceHandle) {
        let Some(index) = self.instances.find(handle) else { return };
        for at in 0..self.leaving.len() {
            let Leaving { writer, next, ref back } = self.leaving[at];
            if next <= index && !back.contains(&index) {
                self.surfaced |= self.leave_instance(now, index, writer);
            }
        }
        self.alarm |= self.surfaced;
    }

    /// The writer has said something of the instance since it has gone: it writes that one.
    #[cold]
    pub(crate) fn come_back(&mut self, writer: Guid, handle: InstanceHandle) {
        let Some(index) = self.instances.find(handle) else { return };
        for leaving in self.leaving.iter_mut().filter(|leaving| leaving.writer == writer) {
            if leaving.next <= index {
                leaving.back.insert(index);
            }
        }
    }

    fn leave_instance(&mut self, now: Time, index: u32, writer: Guid) -> bool {
        if !self.instances.get_mut(index).is_some_and(|instance| instance.unregister(writer)) {
            return false;
        }
        self.lapse(index, now);
        let marked = self.without_writers(now, index, || CacheChange {
            kind: ChangeKind::NotAliveUnregistered,
            writer_guid: writer,
            sequence_number: SequenceNumber::UNKNOWN,
            instance: None,
            source_timestamp: None,
            time: now,
            payload: Bytes::new(),
        });
        self.instances.settle(index);
        marked == Some(Insert::Stored)
    }
}

#[cfg(test)]
mod tests {
    use taut_base::InstanceHandle;
    use taut_qos::DataReaderQos;
    use taut_rtps::history_cache::ChangeKind::Alive;

    use super::*;
    use crate::reader_cache_tests::{change, writer};
    use crate::{IgnoredReason, InstanceState};

    const INSTANCES: usize = 4 * DEADLINES_PER_STEP + 10;

    fn handle(n: usize) -> InstanceHandle {
        InstanceHandle((n as u128 + 1).to_be_bytes())
    }

    fn write(cache: &mut ReaderCache, n: usize) -> Insert {
        let change = CacheChange { instance: Some(handle(n)), ..change(Alive, 1, 0, 1) };
        cache.insert(Time(5), change, 0, None)
    }

    /// A reader without samples that knows many instances of a writer.
    fn with_many_instances() -> ReaderCache {
        let mut cache = ReaderCache::new(&DataReaderQos::default().keep_all(), true);
        (0..INSTANCES).for_each(|n| _ = write(&mut cache, n));
        while cache.take_next().is_some() {}
        cache
    }

    fn ended(cache: &ReaderCache) -> usize {
        let state = |n: &usize| cache.instance_state(handle(*n));
        (0..INSTANCES).filter(|n| state(n) == Some(InstanceState::NotAliveNoWriters)).count()
    }

    #[test]
    fn the_instances_of_a_writer_that_goes_lose_it_in_steps() {
        let mut cache = with_many_instances();
        assert!(cache.writer_gone(Time(9), writer(1)) && std::mem::take(&mut cache.alarm));
        for steps in 1..5 {
            assert_eq!((ended(&cache), cache.next_deadline()), (steps * DEADLINES_PER_STEP, Time::AT_ONCE));
            cache.look_at_deadlines(Time(9), &mut DEADLINES_PER_STEP.clone());
            assert!(std::mem::take(&mut cache.surfaced), "whoever waits is to hear it");
        }
        assert_eq!((ended(&cache), cache.len()), (INSTANCES, INSTANCES));
        assert_eq!((cache.next_deadline(), cache.is_leaving(), cache.passes), (Time::NEVER, false, true));
    }

    #[test]
    fn what_is_said_meanwhile_is_of_an_instance_that_it_has_left() {
        let mut cache = with_many_instances();
        cache.writer_gone(Time(9), writer(1));
        let (first, last) = (0, INSTANCES - 1);
        assert_eq!(write(&mut cache, last), Insert::Stored, "it is back");
        assert_eq!(write(&mut cache, first), Insert::Stored);
        assert_eq!(write(&mut cache, INSTANCES), Insert::Stored, "with one more");
        assert!(cache.alarm && cache.surfaced && cache.is_leaving());
        while cache.is_leaving() {
            cache.look_at_deadlines(Time(9), &mut DEADLINES_PER_STEP.clone());
        }
        let state = |n| cache.instance_state(handle(n));
        assert_eq!((ended(&cache), state(INSTANCES)), (INSTANCES - 2, Some(InstanceState::Alive)));
        let last = cache.instances.find(handle(last)).unwrap();
        assert_eq!(cache.instances.at(last).no_writers_generations, 1, "it has come back");
    }

    #[test]
    fn who_is_weaker_is_heard_of_each_instance_at_once() {
        let mut cache = ReaderCache::new(&DataReaderQos::default().keep_all().exclusive(), true);
        let of = |w, n| CacheChange { instance: Some(handle(n)), ..change(Alive, w, 0, 1) };
        (0..INSTANCES).for_each(|n| _ = cache.insert(Time(5), of(1, n), 9, None));
        let last = INSTANCES - 1;
        assert_eq!(cache.insert(Time(6), of(2, last), 5, None), Insert::Ignored(IgnoredReason::NotOwner));
        cache.writer_gone(Time(9), writer(1));
        assert_eq!(cache.insert(Time(9), of(2, last), 5, None), Insert::Stored);
    }

    #[test]
    fn many_that_go_at_once_go_in_turns_that_have_a_bound() {
        let mut cache = with_many_instances();
        (2..2 + 2 * IN_TURNS as u8).for_each(|w| _ = cache.writer_gone(Time(9), writer(w)));
        assert_eq!(cache.leaving.len(), IN_TURNS);
    }
}

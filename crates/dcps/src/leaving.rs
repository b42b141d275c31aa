//! Writers that go or fall silent: what only they wrote has no writers. DCPS 1.4 §2.2.2.5.1.3.
//!
//! A writer may write more instances than one step can look at. So they are looked at in turns, each as far as its budget
//! goes, and whoever drives takes the next one. What the writer says meanwhile comes after all of them.

use taut_base::{Guid, SequenceNumber, Time};
use taut_mem::Bytes;
use taut_rtps::history_cache::{CacheChange, ChangeKind};

use crate::deadline::DEADLINES_PER_STEP;
use crate::reader_cache::{Insert, ReaderCache};

/// A writer that has gone, and the first of the instances that were not looked at yet.
#[derive(Debug)]
pub(crate) struct Leaving {
    writer: Guid,
    next: u32,
}

impl ReaderCache {
    /// The writer has gone or is no longer alive: what only it wrote has no writers. Says whether a new sample tells that.
    /// *Cost*: one step; what is left of it comes with the deadlines.
    pub fn writer_gone(&mut self, now: Time, writer: Guid) -> bool {
        self.settle_fresh();
        self.unheard.forget(writer);
        self.leaving.retain(|other| other.writer != writer);
        self.leaving.push(Leaving { writer, next: 0 });
        let is_told = self.go_on_leaving(now, &mut DEADLINES_PER_STEP.clone());
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
            && let Some(first) = self.leaving.last_mut()
        {
            let (writer, index) = (first.writer, first.next);
            if index >= self.instances.end() {
                self.leaving.pop();
                self.note_passing();
                continue;
            }
            first.next += 1;
            *budget -= 1;
            is_told |= self.leave_instance(now, index, writer);
        }
        is_told
    }

    /// The writer says something: first, all of its instances have lost it.
    #[cold]
    pub(crate) fn end_leaving(&mut self, now: Time, writer: Guid) {
        let Some(at) = self.leaving.iter().position(|leaving| leaving.writer == writer) else { return };
        for index in self.leaving.remove(at).next..self.instances.end() {
            self.surfaced |= self.leave_instance(now, index, writer);
        }
        self.alarm |= self.surfaced;
        self.note_passing();
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
    use crate::InstanceState;
    use crate::reader_cache_tests::{change, writer};

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
    fn what_it_says_meanwhile_comes_after_all_of_them() {
        let mut cache = with_many_instances();
        cache.writer_gone(Time(9), writer(1));
        assert_eq!(write(&mut cache, INSTANCES - 1), Insert::Stored);
        assert_eq!((ended(&cache), cache.is_leaving()), (INSTANCES - 1, false));
        assert!(cache.alarm && cache.surfaced);
        let last = cache.instances.find(handle(INSTANCES - 1)).unwrap();
        assert_eq!(cache.instances.at(last).no_writers_generations, 1, "it has come back");
    }
}

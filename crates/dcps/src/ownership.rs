//! OWNERSHIP EXCLUSIVE while strengths change. DCPS 1.4 §2.2.3.9.2, §2.2.3.10.
//!
//! Who is heard is decided sample by sample, in the cache. Here only what no sample says: that a writer is stronger or
//! weaker than it was.

use taut_base::{Guid, Time};
use taut_rtps::ReaderIndex;
use taut_rtps::history_cache::CacheChange;

use crate::participant::DomainParticipant;
use crate::reader_cache::ReaderCache;

impl ReaderCache {
    /// Is a change of a known instance from who owns it, or will from now on? Beside an owner that is late that is whoever
    /// writes next. What others say takes no room: samples are ignored, and the instance has a writer when they leave it.
    #[cold]
    pub(crate) fn is_heard(&self, index: u32, change: &CacheChange, strength: i32) -> bool {
        !self.exclusive
            || self.instances.deadlines.is_late(index, change.time)
            || self.instances.at(index).gives_way_to(change.writer_guid, strength)
    }

    /// The strength of a writer may have changed. *Cost*: O(n) in the instances, if they are owned.
    pub(crate) fn weigh(&mut self, writer: Guid, strength_of: impl Fn(Guid) -> i32) {
        if self.exclusive {
            self.instances.for_each(|instance| instance.weigh(writer, &strength_of));
            self.unheard.weigh(writer, strength_of(writer));
        }
    }
}

impl DomainParticipant {
    /// A writer that a reader is matched with announces its strength.
    pub(crate) fn weigh(&mut self, now: Time, reader: ReaderIndex, writer: Guid) {
        let DomainParticipant { core, readers, .. } = self;
        let strength_of =
            |writer: Guid| core.endpoint(writer).map_or(0, |endpoint| endpoint.qos.ownership_strength);
        readers.change_side(reader, |side| {
            // What it has written before has the strength that it had.
            let pulled = side.pull(now);
            side.note_awaited(pulled);
            side.set_lane_strength(writer, strength_of(writer));
            side.cache.weigh(writer, strength_of);
            ((), pulled.news)
        });
    }
}

#[cfg(test)]
mod tests {
    use taut_qos::DataReaderQos;
    use taut_rtps::history_cache::ChangeKind;

    use super::*;
    use crate::reader_cache_tests::{change, writer};
    use crate::{IgnoredReason, Insert};

    const NOT_OWNER: Insert = Insert::Ignored(IgnoredReason::NotOwner);

    #[test]
    fn an_owner_that_gets_weaker_makes_way_at_once() {
        let mut cache = ReaderCache::new(&DataReaderQos::default().keep_all().exclusive(), true);
        let mut number = 0;
        let mut put = |cache: &mut ReaderCache, w, strength| {
            number += 1;
            cache.insert(Time(number), change(ChangeKind::Alive, w, 1, number), strength, None)
        };
        assert_eq!(put(&mut cache, 1, 9), Insert::Stored);
        assert_eq!((put(&mut cache, 2, 5), put(&mut cache, 3, 7)), (NOT_OWNER, NOT_OWNER));
        let strengths = |strengths: [i32; 3]| move |of: Guid| strengths[of.prefix.0[0] as usize - 1];
        // One that does not own it, and one that stays the strongest.
        cache.weigh(writer(2), strengths([9, 6, 7]));
        cache.weigh(writer(1), strengths([8, 6, 7]));
        assert_eq!((put(&mut cache, 3, 7), put(&mut cache, 1, 8)), (NOT_OWNER, Insert::Stored));
        cache.weigh(writer(1), strengths([6, 6, 7]));
        assert_eq!((put(&mut cache, 1, 6), put(&mut cache, 2, 6)), (NOT_OWNER, NOT_OWNER), "3 has it");
        assert_eq!(put(&mut cache, 3, 7), Insert::Stored);
        cache.weigh(writer(3), strengths([6, 6, 6]));
        assert_eq!(
            (put(&mut cache, 3, 6), put(&mut cache, 1, 6)),
            (NOT_OWNER, Insert::Stored),
            "the lowest GUID"
        );
    }
}

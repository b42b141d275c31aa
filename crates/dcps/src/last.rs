//! Data that end their instance: a DATA with both serialized data and a status. RTPS 2.5 §8.3.8.2, §9.6.4.9.
//!
//! `dds_writedispose` of Cyclone DDS sends it, for one. A reader sees what it would see of a write and of the dispose or
//! unregister right after it. A filter and LIFESPAN keep only the data from it, never the end.

use taut_base::Time;
use taut_mem::Bytes;
use taut_rtps::history_cache::{CacheChange, ChangeKind};

use crate::reader_cache::Insert;
use crate::reader_side::ReaderSide;
use crate::status::StatusMask;

impl ReaderSide {
    /// Puts both into the cache. There is room for the data, and `change.instance` is what they belong to.
    #[cold]
    pub(crate) fn insert_last(&mut self, now: Time, strength: i32, change: CacheChange) -> StatusMask {
        let end = CacheChange { kind: change.kind.end(), payload: Bytes::new(), ..change.clone() };
        let mut data = Some(CacheChange { kind: ChangeKind::Alive, ..change });
        let news = self.insert(now, strength, &mut data);
        let instance = self.cache.handle(&end);
        if self.filter.is_some() && self.cache.lookup_instance(instance).is_none() {
            // Nothing of it has passed.
            self.end_unheard(instance, &end);
            return news;
        }
        let inserted = self.cache.insert(now, end, strength, None);
        self.note_purge();
        match inserted {
            Insert::Stored | Insert::Replaced => news | StatusMask::DATA_AVAILABLE,
            Insert::Rejected(_) | Insert::Ignored(_) => news,
        }
    }
}

//! Instances by names other than their handles. RTPS 2.5 §9.6.4.8, XTypes 1.3 §7.6.8.
//!
//! A key hash depends on the version of XCDR in which the key is hashed, and peers differ in which they take. A handle
//! is the hash in one version, whatever version samples come in; what says no key but only its hash may say the other.
//! Only types whose key the versions write otherwise have these names, one for each instance from when that is made: one
//! that came to need them all at once would hash the keys of all. An end that says no more and comes before all else makes
//! an instance of that name, which has its handle once its key is known.

use std::collections::BTreeMap;

use taut_base::InstanceHandle;
use taut_mem::Bytes;
use taut_rtps::history_cache::CacheChange;

use crate::instance::{Instance, InstanceTable};
use crate::reader_side::ReaderSide;
use crate::sample_info::PayloadKind;
use crate::type_support::{KeyHash, instance_handle};

/// The names of a reader's instances where these are not the handles.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// How a key is hashed otherwise; `None` if there is no other way.
    hash: Option<KeyHash>,
    /// As many as instances at most.
    known: BTreeMap<InstanceHandle, u32>,
}

impl Names {
    pub fn new(hash: Option<KeyHash>) -> Names {
        Names { hash, known: BTreeMap::new() }
    }

    /// What a key is named otherwise.
    pub fn of_key(&self, key: &[u8], kind: PayloadKind) -> Option<InstanceHandle> {
        match kind {
            PayloadKind::Empty => None,
            _ => (self.hash?)(key, kind == PayloadKind::Key),
        }
    }

    fn of(&self, instance: &Instance) -> Option<InstanceHandle> {
        self.of_key(&instance.key, instance.key_kind).filter(|name| *name != instance.handle)
    }

    /// The instance of this name. *Cost*: O(log n).
    pub fn find(&self, name: InstanceHandle) -> Option<u32> {
        self.known.get(&name).copied()
    }

    /// An instance is new. *Cost*: O(log n) and a hash of its key.
    #[inline]
    pub fn add(&mut self, index: u32, instance: &Instance) {
        if let Some(name) = self.of(instance) {
            self.known.insert(name, index);
        }
    }

    /// An instance is forgotten. *Cost*: as [`Names::add`].
    #[inline]
    pub fn remove(&mut self, instance: &Instance) {
        if let Some(name) = self.of(instance) {
            self.known.remove(&name);
        }
    }
}

impl InstanceTable {
    /// The instance of a handle has this key. If no more than a hash was known of it, all is now.
    #[cold]
    fn learn_key(&mut self, handle: InstanceHandle, key: &Bytes, kind: PayloadKind) {
        let name = || self.find(self.names.of_key(key, kind)?);
        let known = self.find(handle).or_else(name);
        if let Some(index) = known.filter(|index| self.at(*index).key_kind == PayloadKind::Empty) {
            self.rename(index, handle);
            self.set_key(index, key, kind);
        }
    }
}

impl ReaderSide {
    /// The instance, computed here where there are bytes to compute it from: peers differ in how they
    /// hash keys, and one instance must have one handle whoever wrote it.
    #[inline]
    pub(crate) fn instance_of(&mut self, change: &CacheChange) -> Option<InstanceHandle> {
        match self.key_hash {
            Some(key_hash) => self.instance_by(key_hash, change),
            None => Some(InstanceHandle::NIL),
        }
    }

    fn instance_by(&mut self, key_hash: KeyHash, change: &CacheChange) -> Option<InstanceHandle> {
        let (instances, payload) = (&mut self.cache.instances, &change.payload);
        if payload.is_empty() && !change.kind.has_data() {
            return change.instance.map(|hash| instances.handle_of(instance_handle(hash)));
        }
        let is_key = !change.kind.has_data();
        let handle = key_hash(payload, is_key)?;
        if instances.has_nameless() {
            instances.learn_key(handle, payload, if is_key { PayloadKind::Key } else { PayloadKind::Data });
        }
        Some(handle)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use taut_qos::DataReaderQos;
    use taut_rtps::history_cache::ChangeKind::{Alive, NotAliveDisposed, NotAliveDisposedUnregistered};

    use super::*;
    use crate::TypeSupport;
    use crate::reader_cache_tests::{change, handle};

    thread_local!(static HASHED: Cell<usize> = const { Cell::new(0) });

    fn other(payload: &[u8], _: bool) -> Option<InstanceHandle> {
        HASHED.set(HASHED.get() + 1);
        payload.first().map(|byte| handle(byte + 100))
    }

    #[test]
    fn a_name_costs_no_more_than_a_hash_when_its_instance_comes_and_goes() {
        let key_hash: KeyHash = |payload, _| payload.first().map(|byte| handle(*byte));
        let of_keys = TypeSupport { key_hash: Some(key_hash), ..TypeSupport::default() };
        for other_key_hash in [None, Some(other as KeyHash)] {
            let of_keys = TypeSupport { other_key_hash, ..of_keys.clone() };
            let mut side = ReaderSide::new(&DataReaderQos::default().keep_all(), &of_keys);
            let (mut number, each) = (0, usize::from(other_key_hash.is_some()));
            let mut hashed = |kind, instance| {
                number += 1;
                HASHED.set(0);
                side.deliver(taut_base::Time(number), 0, &mut Some(change(kind, 1, instance, number)));
                while side.take_next(taut_base::Time(number)).is_some() {}
                HASHED.get()
            };
            assert!((1..=50).all(|instance| hashed(Alive, instance) == each), "once each");
            assert!((1..=50).all(|instance| hashed(Alive, instance) == 0), "and then never");
            assert_eq!(hashed(NotAliveDisposed, 101), 0, "by its other name");
            assert_eq!(hashed(NotAliveDisposed, 200), 0, "by one that nobody knows");
            assert_eq!(hashed(NotAliveDisposedUnregistered, 2), each, "it goes");
        }
    }
}

//! A map that remembers where it has found something last: what is looked for most often is what was looked for before.
//!
//! The submessages of a datagram are of one participant and mostly of one writer, and so are most of those that follow
//! it. A sorted index finds the others, and is the order in which all are visited.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::{Bound, RangeBounds};

use crate::table::Table;

/// Values by key. *Cost*: O(log n), O(1) for the key that [`RecentMap::get_mut`] has found last.
pub struct RecentMap<K, V> {
    index: BTreeMap<K, u32>,
    /// In boxes: when there is no place left all places move, and values may be large.
    slots: Table<Box<V>>,
    /// What was found last, and its place.
    recent: Option<(K, u32)>,
}

impl<K, V> Default for RecentMap<K, V> {
    fn default() -> Self {
        RecentMap { index: BTreeMap::new(), slots: Table::default(), recent: None }
    }
}

impl<K: Ord + Copy, V> RecentMap<K, V> {
    /// The value of a key. Remembers nothing.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.slots.get(*self.index.get(key)?).map(|value| &**value)
    }

    /// The value of a key, to change it. The next look for the same key is short.
    #[inline]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = match self.recent {
            Some((recent, at)) if recent == *key => at,
            _ => self.search(key)?,
        };
        self.slots.get_mut(at).map(|value| &mut **value)
    }

    #[cold]
    fn search(&mut self, key: &K) -> Option<u32> {
        let at = *self.index.get(key)?;
        self.recent = Some((*key, at));
        Some(at)
    }

    /// The value of a key, a new one if there is none.
    pub fn get_or_default(&mut self, key: K) -> Option<&mut V>
    where
        V: Default,
    {
        let RecentMap { index, slots, .. } = self;
        let at = *index.entry(key).or_insert_with(|| slots.insert_with(|_| Box::default()));
        slots.get_mut(at).map(|value| &mut **value)
    }

    /// Puts a value in the place of the one that the key had.
    pub fn insert(&mut self, key: K, value: V) {
        match self.index.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(self.slots.insert_with(|_| Box::new(value)));
            }
            Entry::Occupied(entry) => {
                if let Some(slot) = self.slots.get_mut(*entry.get()) {
                    **slot = value;
                }
            }
        }
    }

    /// Takes the value out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.index.remove(key)?;
        self.recent = self.recent.filter(|(recent, _)| recent != key);
        self.slots.remove(at).map(|value| *value)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// The keys, rising.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.index.keys()
    }

    /// The first key behind this one. *Cost*: O(log n).
    pub fn key_after(&self, key: K) -> Option<K> {
        self.index.range((Bound::Excluded(key), Bound::Unbounded)).next().map(|(key, _)| *key)
    }

    /// Both, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.index.iter().filter_map(|(key, at)| Some((key, &**self.slots.get(*at)?)))
    }

    /// The values in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.index.values().filter_map(|at| self.slots.get(*at)).map(|value| &**value)
    }

    /// Calls with each key of a range and its value, rising.
    pub fn for_each_in(&mut self, range: impl RangeBounds<K>, mut call: impl FnMut(&K, &mut V)) {
        let RecentMap { index, slots, .. } = self;
        for (key, at) in index.range(range) {
            if let Some(value) = slots.get_mut(*at) {
                call(key, value);
            }
        }
    }

    /// Calls with each key and its value, rising.
    pub fn for_each(&mut self, call: impl FnMut(&K, &mut V)) {
        self.for_each_in(.., call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_what_a_sorted_map_does() {
        let (mut map, mut model) = (RecentMap::default(), BTreeMap::new());
        let mut state = 1_u64;
        for step in 0..2_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (state >> 40) % 9;
            match (state >> 33) % 5 {
                0 => assert_eq!(map.remove(&key), model.remove(&key)),
                1 => {
                    map.insert(key, step);
                    model.insert(key, step);
                }
                2 => {
                    *map.get_or_default(key).unwrap() += 1;
                    *model.entry(key).or_default() += 1;
                }
                _ => assert_eq!(map.get_mut(&key), model.get_mut(&key), "step {step}"),
            }
            assert_eq!((map.get(&key), map.len()), (model.get(&key), model.len()));
        }
        assert!(map.keys().eq(model.keys()) && map.values().eq(model.values()));
        let mut seen = Vec::new();
        map.for_each_in(3..6, |key, value| seen.push((*key, *value)));
        assert!((0..9).all(|key| map.key_after(key) == model.range(key + 1..).next().map(|(key, _)| *key)));
        assert!(seen.iter().map(|(key, value)| (key, value)).eq(model.range(3..6)));
    }

    #[test]
    fn another_value_in_the_place_of_what_was_found_last_is_not_found_for_it() {
        let mut map = RecentMap::default();
        map.insert(1, 'a');
        assert_eq!(map.get_mut(&1), Some(&mut 'a'));
        assert_eq!(map.remove(&1), Some('a'));
        assert_eq!(map.get_mut(&1), None);
        map.insert(2, 'b');
        assert_eq!(map.get_mut(&1), None);
        assert_eq!(map.get(&2), Some(&'b'));
        map.insert(1, 'c');
        assert_eq!(map.get_mut(&1), Some(&mut 'c'));
    }
}

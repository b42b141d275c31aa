//! Linked lists over small numbers: the orders in which a cache keeps its samples and instances.
//!
//! Owns links only, never values. Every operation is O(1) and allocates nothing once the largest number
//! has been seen. Called by the reader cache.

use std::ops::{Index, IndexMut};

/// No number: the end of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// Values at numbers that stay the same; a number that is free is used again.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { slots: Vec::new(), free: Vec::new() }
    }

    /// Stores a value and gives its number. *Cost*: O(1); the slab grows to the most values it has held.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = Some(value);
            return id;
        }
        let id = u32::try_from(self.slots.len()).ok().filter(|id| *id != NIL);
        self.slots.push(Some(value));
        // The caches bound what they hold far below this.
        id.expect("invariant: a slab holds fewer than 2^32 - 1 values")
    }

    /// Drops a value where it is.
    pub(crate) fn remove(&mut self, id: u32) {
        debug_assert!(self.get(id).is_some(), "only a number that is used is freed");
        self.free.push(id);
        self.slots[id as usize] = None;
    }

    /// Takes a value out.
    pub(crate) fn take(&mut self, id: u32) -> Option<T> {
        let value = self.slots.get_mut(id as usize)?.take()?;
        self.free.push(id);
        Some(value)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.slots.get(id as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.slots.get_mut(id as usize)?.as_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// One above the highest number that was ever used.
    pub(crate) fn end(&self) -> u32 {
        self.slots.len() as u32
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, id: u32) -> &T {
        self.slots[id as usize].as_ref().expect("invariant: only a number that is used is looked up")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, id: u32) -> &mut T {
        self.slots[id as usize].as_mut().expect("invariant: only a number that is used is looked up")
    }
}

/// One list; its links are in a [`Chain`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) len: u32,
}

impl List {
    pub(crate) const EMPTY: List = List { head: NIL, tail: NIL, len: 0 };
}

#[derive(Clone, Copy, Debug)]
struct Links {
    prev: u32,
    next: u32,
}

/// The links of any number of lists, of which each number is in at most one.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    links: Vec<Links>,
}

impl Chain {
    pub(crate) fn next(&self, id: u32) -> u32 {
        self.links[id as usize].next
    }

    pub(crate) fn prev(&self, id: u32) -> u32 {
        self.links[id as usize].prev
    }

    pub(crate) fn push_back(&mut self, list: &mut List, id: u32) {
        self.insert_after(list, list.tail, id);
    }

    /// Puts `id` behind `before`, or at the front if that is [`NIL`].
    pub(crate) fn insert_after(&mut self, list: &mut List, before: u32, id: u32) {
        let next = if before == NIL { list.head } else { self.next(before) };
        let slot = id as usize;
        if self.links.len() <= slot {
            self.links.resize(slot + 1, Links { prev: NIL, next: NIL });
        }
        self.links[slot] = Links { prev: before, next };
        self.join(list, before, id);
        self.join(list, id, next);
        list.len += 1;
    }

    pub(crate) fn unlink(&mut self, list: &mut List, id: u32) {
        let Links { prev, next } = self.links[id as usize];
        self.join(list, prev, next);
        list.len -= 1;
    }

    fn join(&mut self, list: &mut List, prev: u32, next: u32) {
        match prev {
            NIL => list.head = next,
            prev => self.links[prev as usize].next = next,
        }
        match next {
            NIL => list.tail = prev,
            next => self.links[next as usize].prev = prev,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(chain: &Chain, list: &List) -> Vec<u32> {
        let step = |id: u32| (id != NIL).then_some(id);
        let found: Vec<u32> = std::iter::successors(step(list.head), |id| step(chain.next(*id))).collect();
        let mut back: Vec<u32> = std::iter::successors(step(list.tail), |id| step(chain.prev(*id))).collect();
        back.reverse();
        assert_eq!(found, back);
        assert_eq!(found.len(), list.len as usize);
        found
    }

    #[test]
    fn links() {
        let (mut chain, mut list) = (Chain::default(), List::EMPTY);
        for id in [4, 2, 7] {
            chain.push_back(&mut list, id);
        }
        chain.insert_after(&mut list, NIL, 0);
        chain.insert_after(&mut list, 2, 9);
        assert_eq!(numbers(&chain, &list), [0, 4, 2, 9, 7]);
        for id in [2, 0, 7] {
            chain.unlink(&mut list, id);
        }
        assert_eq!(numbers(&chain, &list), [4, 9]);
        chain.unlink(&mut list, 4);
        chain.unlink(&mut list, 9);
        assert_eq!(numbers(&chain, &list), []);
    }

    #[test]
    fn numbers_are_used_again() {
        let mut slab = Slab::new();
        assert_eq!((slab.insert('a'), slab.insert('b')), (0, 1));
        slab.remove(0);
        assert_eq!((slab.len(), slab.get(0)), (1, None));
        assert_eq!((slab.insert('c'), slab[0], slab.end()), (0, 'c', 2));
    }
}

//! Times at which numbered things are due: one time for each number, to be changed or taken back.
//!
//! A binary heap that knows where each number is, so that what is taken back leaves nothing behind.
//! Called by the reader cache for lifespans and for the purge of finished instances, and for deadlines.

use taut_base::Time;

use crate::list::NIL;

/// Numbers by time. *Cost*: O(log n) each; no allocation once warm.
#[derive(Debug, Default)]
pub(crate) struct Due {
    heap: Vec<(Time, u32)>,
    /// Where in the heap a number is; [`NIL`] if it is not.
    places: Vec<u32>,
}

impl Due {
    /// The earliest time.
    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// Is nothing due at any time?
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Is `id` there?
    #[inline]
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.places.get(id as usize).is_some_and(|place| *place != NIL)
    }

    /// Makes `id` due at `at`, whatever it was before; never if that is [`Time::NEVER`].
    pub(crate) fn set(&mut self, id: u32, at: Time) {
        self.cancel(id);
        if at == Time::NEVER {
            return;
        }
        if self.places.len() <= id as usize {
            self.places.resize(id as usize + 1, NIL);
        }
        self.heap.push((at, id));
        self.rise(self.heap.len() - 1);
    }

    /// Takes `id` back, if it is there.
    pub(crate) fn cancel(&mut self, id: u32) {
        let place = self.places.get(id as usize).copied().unwrap_or(NIL);
        if place == NIL {
            return;
        }
        self.places[id as usize] = NIL;
        let place = place as usize;
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            // What came from the end may belong above or below.
            let place = self.rise(place);
            self.sink(place);
        }
    }

    /// Takes the first number that is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<u32> {
        let (_, id) = self.heap.first().copied().filter(|(at, _)| *at <= now)?;
        self.cancel(id);
        Some(id)
    }

    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 && self.heap[place] < self.heap[(place - 1) / 2] {
            self.heap.swap(place, (place - 1) / 2);
            self.note(place);
            place = (place - 1) / 2;
        }
        self.note(place);
        place
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let first = 2 * place + 1;
            let Some(child) = (first..self.heap.len().min(first + 2)).min_by_key(|c| self.heap[*c]) else {
                break;
            };
            if self.heap[place] <= self.heap[child] {
                break;
            }
            self.heap.swap(place, child);
            self.note(place);
            place = child;
        }
        self.note(place);
    }

    fn note(&mut self, place: usize) {
        self.places[self.heap[place].1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use taut_base::Rng;

    use super::*;

    #[test]
    fn agrees_with_a_sorted_map() {
        let mut rng = Rng::new(1);
        let (mut due, mut model) = (Due::default(), BTreeMap::new());
        for _ in 0..20_000 {
            let id = rng.below(50) as u32;
            match rng.below(4) {
                0 | 1 => {
                    let at = Time(rng.below(1_000) as i64);
                    due.set(id, at);
                    model.insert(id, at);
                }
                2 => {
                    due.cancel(id);
                    model.remove(&id);
                }
                _ => {
                    let now = Time(rng.below(300) as i64);
                    let first = model.iter().map(|(id, at)| (*at, *id)).min().filter(|(at, _)| *at <= now);
                    assert_eq!(due.pop(now), first.map(|(_, id)| id));
                    first.map(|(_, id)| model.remove(&id));
                }
            }
            assert_eq!(due.next(), model.values().min().copied());
        }
    }

    #[test]
    fn never_is_not_kept() {
        let mut due = Due::default();
        due.set(3, Time(5));
        due.set(3, Time::NEVER);
        assert_eq!((due.next(), due.pop(Time::NEVER)), (None, None));
    }
}

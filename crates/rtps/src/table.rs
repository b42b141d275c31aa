//! Entities by small index: a vector with holes, for lookups without a search.

/// Values at stable indices; a freed index is used again.
pub struct Table<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    /// Adds a value made from the index it gets.
    pub fn insert_with(&mut self, make: impl FnOnce(u32) -> T) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len().saturating_sub(1)).unwrap_or(u32::MAX)
        });
        if let Some(slot) = self.slots.get_mut(index as usize) {
            *slot = Some(make(index));
        }
        index
    }

    /// The value at an index.
    pub fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.as_ref()
    }

    /// The value at an index, to change it.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    /// Takes the value out.
    pub fn remove(&mut self, index: u32) -> Option<T> {
        let value = self.slots.get_mut(index as usize)?.take();
        if value.is_some() {
            self.free.push(index);
        }
        value
    }

    /// The index that the next value gets.
    pub fn next_index(&self) -> u32 {
        self.free.last().copied().unwrap_or(u32::try_from(self.slots.len()).unwrap_or(u32::MAX))
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    /// All values with their indices, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        (0u32..).zip(&mut self.slots).filter_map(|(index, slot)| Some((index, slot.as_mut()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_used_again() {
        let mut table = Table::default();
        assert_eq!((table.insert_with(|_| 'a'), table.insert_with(|_| 'b')), (0, 1));
        assert_eq!((table.remove(0), table.remove(0), table.get(0)), (Some('a'), None, None));
        assert_eq!((table.next_index(), table.insert_with(|_| 'c')), (0, 0));
        assert_eq!(table.next_index(), 2);
        assert_eq!(table.iter_mut().map(|(i, c)| (i, *c)).collect::<Vec<_>>(), [(0, 'c'), (1, 'b')]);
    }
}

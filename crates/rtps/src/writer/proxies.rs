//! The readers of other participants that a writer is matched with, by GUID. RTPS 2.5 §8.4.7.1 (matched_readers).
//!
//! Most writers have one or a few, and look at all of them for each sample: to go through them must cost next to nothing.
//! Called by the writer only.

use taut_base::Guid;

use super::ReaderProxy;

/// Proxies in the order of their readers' GUIDs. *Cost*: get O(log n); insert and remove move a word or three for each
/// reader behind; one allocation for each reader.
#[derive(Default)]
pub(super) struct Proxies {
    readers: Vec<(Guid, Box<ReaderProxy>)>,
    /// Some of them are taking a history.
    pub has_joiners: bool,
}

impl Proxies {
    fn find(&self, reader: &Guid) -> Result<usize, usize> {
        self.readers.binary_search_by(|(guid, _)| guid.cmp(reader))
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.readers.is_empty()
    }

    pub fn get(&self, reader: &Guid) -> Option<&ReaderProxy> {
        let (_, proxy) = self.readers.get(self.find(reader).ok()?)?;
        Some(proxy)
    }

    pub fn get_mut(&mut self, reader: &Guid) -> Option<&mut ReaderProxy> {
        let at = self.find(reader).ok()?;
        let (_, proxy) = self.readers.get_mut(at)?;
        Some(proxy)
    }

    /// Takes the place of the reader's proxy, if there is one.
    pub fn insert(&mut self, reader: Guid, proxy: ReaderProxy) {
        match self.get_mut(&reader) {
            Some(place) => *place = proxy,
            None => {
                let at = self.find(&reader).unwrap_or_else(|at| at);
                self.readers.insert(at, (reader, Box::new(proxy)));
            }
        }
    }

    /// Returns whether there was one.
    pub fn remove(&mut self, reader: &Guid) -> bool {
        let found = self.find(reader);
        found.into_iter().for_each(|at| _ = self.readers.remove(at));
        found.is_ok()
    }

    #[inline]
    pub fn values(&self) -> impl Iterator<Item = &ReaderProxy> + Clone {
        self.readers.iter().map(|(_, proxy)| &**proxy)
    }

    #[inline]
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut ReaderProxy> {
        self.readers.iter_mut().map(|(_, proxy)| &mut **proxy)
    }
}

//! The readers that a writer owes something, in turn.

use std::collections::VecDeque;

use taut_base::Guid;

use super::ReaderProxy;
use super::proxies::Proxies;

/// Each reader at most once, but for one that has gone and come back.
#[derive(Default)]
pub(super) struct Turns(VecDeque<Guid>);

impl Turns {
    /// A reader gets a turn, behind all others, if it has none yet.
    ///
    /// *Cost*: none that grows with the readers.
    pub fn add(&mut self, proxy: &mut ReaderProxy) {
        if !std::mem::replace(&mut proxy.has_turn, true) {
            self.0.push_back(proxy.guid);
        }
    }

    /// Whose turn it is.
    pub fn next(&self) -> Option<Guid> {
        self.0.front().copied()
    }

    /// How many readers have one.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Has no reader one?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The others come before the rest of the one whose turn it is.
    pub fn let_others(&mut self) {
        self.0.rotate_left(self.0.len().min(1));
    }

    /// Gives one its turn now, whosever it is. Returns whether it had one to come.
    pub fn take(&mut self, reader: Guid, proxies: &mut Proxies) -> bool {
        let Some(at) = self.0.iter().position(|other| *other == reader) else { return false };
        self.0.remove(at);
        if let Some(proxy) = proxies.get_mut(&reader) {
            proxy.has_turn = false;
        }
        true
    }
}

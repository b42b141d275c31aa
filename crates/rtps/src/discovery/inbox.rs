//! What has come for the built-in readers and was not handled yet.
//!
//! Owns how much that is: what has no room stays with the proxy of its writer, which holds no more of it than of a user's,
//! until some of what is here is handled. Filled by the receiver, emptied in steps by
//! [`Participant::handle_inbox`](crate::participant::Participant::handle_inbox).

use std::collections::VecDeque;

use taut_base::GuidPrefix;

use crate::history_cache::CacheChange;
use crate::limits;
use crate::reader::Offer;

#[derive(Default)]
pub(crate) struct Inbox {
    changes: VecDeque<CacheChange>,
    /// Something found no room since the last time that this was asked.
    has_refused: bool,
    /// Which of the readers was the first to fill it last.
    turn: usize,
}

impl Inbox {
    /// Takes a change, if there is room. Apart from the samples whose way it is on.
    #[cold]
    pub fn take(&mut self, offer: &mut Offer) {
        if self.changes.len() < limits::INBOX {
            self.changes.extend(offer.take());
        } else {
            self.has_refused = true;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    pub fn next(&mut self) -> Option<CacheChange> {
        self.changes.pop_front()
    }

    /// Nothing of this participant is wanted any more.
    pub fn forget(&mut self, prefix: GuidPrefix) {
        self.changes.retain(|change| change.writer_guid.prefix != prefix);
    }

    /// Does something wait elsewhere for room?
    pub fn has_refused(&self) -> bool {
        self.has_refused
    }

    /// Which of so many readers is the first to fill it now.
    pub fn turn(&mut self, readers: usize) -> usize {
        self.turn = self.turn.wrapping_add(1).checked_rem(readers).unwrap_or(0);
        self.turn
    }

    /// Is what waits elsewhere to be taken now? It counts as taken: what finds no room again says so.
    pub fn is_to_be_filled(&mut self) -> bool {
        let has_room = self.changes.len() <= limits::INBOX / 2;
        has_room && std::mem::take(&mut self.has_refused)
    }
}

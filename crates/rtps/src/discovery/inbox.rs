//! What has come for the built-in readers and was not handled yet.
//!
//! Owns how much that is: what has no room stays with the proxy of its writer, which holds no more of it than of a user's,
//! until some of what is here is handled. Filled by the receiver, emptied in steps by
//! [`Participant::handle_inbox`](crate::participant::Participant::handle_inbox). Knows of which participants there is something:
//! what they have said is not acknowledged meanwhile.

use std::collections::VecDeque;

use taut_base::{EntityId, GuidPrefix};

use crate::history_cache::CacheChange;
use crate::limits;
use crate::reader::Offer;

/// What a participant has said of its endpoints that is yet to be handled, or being handled.
struct Said {
    count: usize,
    /// What it is owed was to be sent meanwhile.
    withheld: bool,
}

#[derive(Default)]
pub(crate) struct Inbox {
    changes: VecDeque<CacheChange>,
    /// How many there are that tell of endpoints, of each participant that has some, by its name, with the one that is being
    /// handled. In a row that keeps its memory.
    said: Vec<(GuidPrefix, Said)>,
    /// Whose change is being handled.
    current: Option<GuidPrefix>,
    /// Something found no room since the last time that this was asked.
    has_refused: bool,
    /// Which of the readers was the first to fill it last.
    turn: usize,
}

impl Inbox {
    /// Takes a change, if there is room. Apart from the samples whose way it is on.
    #[cold]
    pub fn take(&mut self, offer: &mut Offer) {
        // Once one has found no room all others wait, too: who says much would take each place that is free.
        if self.has_refused || self.changes.len() >= limits::INBOX {
            self.has_refused = true;
            return;
        }
        let Some(change) = offer.take() else { return };
        if tells_of_endpoints(&change) {
            self.count(change.writer_guid.prefix);
        }
        self.changes.push_back(change);
    }

    fn count(&mut self, prefix: GuidPrefix) {
        match self.place_of(prefix) {
            Ok(at) => {
                if let Some((_, said)) = self.said.get_mut(at) {
                    said.count = said.count.saturating_add(1);
                }
            }
            Err(at) => self.said.insert(at, (prefix, Said { count: 1, withheld: false })),
        }
    }

    #[inline]
    fn place_of(&self, prefix: GuidPrefix) -> Result<usize, usize> {
        // Most often nobody or this one alone has said something.
        match self.said.as_slice() {
            [] => return Err(0),
            [(of, _)] if *of == prefix => return Ok(0),
            _ => {}
        }
        self.said.binary_search_by_key(&prefix, |(of, _)| *of)
    }

    /// Is something that this participant has said of its endpoints yet to be handled, or being handled? What it is owed is not
    /// sent then, and [`Inbox::end_current`] tells when it is to be.
    pub fn withholds(&mut self, prefix: GuidPrefix) -> bool {
        let said = self.place_of(prefix).ok().and_then(|at| self.said.get_mut(at));
        said.map(|(_, said)| said.withheld = true).is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// The next one, which is being handled until [`Inbox::end_current`].
    pub fn next(&mut self) -> Option<CacheChange> {
        let change = self.changes.pop_front()?;
        self.current = tells_of_endpoints(&change).then_some(change.writer_guid.prefix);
        Some(change)
    }

    /// What was being handled, if anything, has been. Returns whose it was, if that was the last one of a participant from which
    /// something is withheld.
    pub fn end_current(&mut self) -> Option<GuidPrefix> {
        let prefix = self.current.take()?;
        let at = self.place_of(prefix).ok()?;
        let (_, said) = self.said.get_mut(at)?;
        said.count = said.count.saturating_sub(1);
        if said.count > 0 {
            return None;
        }
        let withheld = said.withheld;
        if at == self.said.len().saturating_sub(1) {
            self.said.pop();
        } else {
            self.said.remove(at);
        }
        withheld.then_some(prefix)
    }

    /// Nothing of this participant is wanted any more.
    pub fn forget(&mut self, prefix: GuidPrefix) {
        self.changes.retain(|change| change.writer_guid.prefix != prefix);
        self.said.retain(|(of, _)| *of != prefix);
        self.current = self.current.filter(|of| *of != prefix);
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

/// An assertion of liveliness tells of none: what is acknowledged does not wait for it.
fn tells_of_endpoints(change: &CacheChange) -> bool {
    change.writer_guid.entity != EntityId::PARTICIPANT_MESSAGE_WRITER
}

//! Participants that are known no more, and what they had said of themselves.
//!
//! One whose lease has ended was perhaps only stopped, or cut off, and may know this one all the same. It goes on where it was,
//! and may be heard long before it announces itself again, Cyclone DDS for up to 30 s: so what it had said then counts as said
//! once more, if it goes on for longer than those take that have lost this one, too, and are about to find it.
//! One that has said that it leaves does not come back, but what it had said before may come behind that, by another socket or
//! another way, and is not believed.
//!
//! Must hold no more than [`limits::LOST_PEERS`] of each kind; of those that were lost nobody who is known to have ended, and
//! nobody who has never answered: there may be none behind that name.

use std::collections::VecDeque;
use std::sync::Arc;

use taut_base::{GuidPrefix, Locator, Time};

use super::spdp::says_else;
use super::{ParticipantData, Peer};
use crate::limits;
use crate::participant::Participant;

struct LostPeer {
    at: Time,
    data: Arc<ParticipantData>,
    source: Locator,
    /// When it was first heard since.
    heard_at: Option<Time>,
}

/// In the order in which they were lost.
#[derive(Default)]
pub(super) struct LostPeers(VecDeque<LostPeer>);

impl LostPeers {
    pub fn note(&mut self, now: Time, peer: &Peer) {
        if peer.silent_since.is_none() {
            let (data, source) = (Arc::clone(&peer.data), peer.source);
            self.0.push_back(LostPeer { at: now, data, source, heard_at: None });
        }
        if self.0.len() > limits::LOST_PEERS {
            self.0.pop_front();
        }
    }

    /// Is it one of them?
    pub fn contains(&self, prefix: GuidPrefix) -> bool {
        self.0.iter().any(|peer| peer.data.guid_prefix == prefix)
    }

    /// It is known again, or will not come back.
    pub fn forget(&mut self, prefix: GuidPrefix) {
        self.0.retain(|peer| peer.data.guid_prefix != prefix);
    }

    /// It is heard. Is it time to believe that it has not lost this one, and will not announce itself soon?
    fn hear(&mut self, now: Time, prefix: GuidPrefix) -> Option<LostPeer> {
        self.0.retain(|peer| now.since(peer.at) < limits::GONE_KEPT);
        let place = self.0.iter().position(|peer| peer.data.guid_prefix == prefix)?;
        let heard_at = *self.0.get_mut(place)?.heard_at.get_or_insert(now);
        if now.since(heard_at) < limits::LOST_PATIENCE { None } else { self.0.remove(place) }
    }
}

/// Those that have said so, in that order.
#[derive(Default)]
pub(super) struct LeftPeers(VecDeque<(Time, Arc<ParticipantData>)>);

impl LeftPeers {
    pub fn note(&mut self, now: Time, data: &Arc<ParticipantData>) {
        self.0.push_back((now, Arc::clone(data)));
        if self.0.len() > limits::LOST_PEERS {
            self.0.pop_front();
        }
    }

    /// Is this what one of them had said before it left? Another one under its name says something else, or says it later.
    pub fn has_said(&mut self, now: Time, data: &ParticipantData) -> bool {
        self.0.retain(|(at, _)| now.since(*at) < limits::RESTART_AFTER);
        let of = |said: &ParticipantData| said.guid_prefix == data.guid_prefix;
        self.0.iter().any(|(_, said)| of(said) && !says_else(said, data))
    }
}

impl Participant {
    /// One that is not known has something to say.
    #[cold]
    #[inline(never)]
    pub(super) fn note_unknown(&mut self, prefix: GuidPrefix) {
        if self.database.lost.contains(prefix) {
            // To be looked at behind that: it may say that it leaves, or who it is.
            self.announced = Some(prefix);
        }
    }

    /// It is not known behind that either: it is found, if it was lost and goes on for a while.
    #[cold]
    #[inline(never)]
    pub(super) fn find_lost(&mut self, now: Time, prefix: GuidPrefix) {
        if let Some(LostPeer { data, source, .. }) = self.database.lost.hear(now, prefix) {
            self.note_peer(now, Arc::unwrap_or_clone(data), &source, &[]);
        }
    }
}

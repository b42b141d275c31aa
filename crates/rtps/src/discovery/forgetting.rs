//! Forgetting a participant with all that it has: match by match, so that no step of it takes long. RTPS 2.5 §8.5.3.
//!
//! From the first step on it is no known peer any more: nothing of it is believed, nothing new is matched with its
//! endpoints. Owns those that are not forgotten altogether yet. Called when a lease runs out, when a participant leaves
//! or starts again, and by [`Timer::Forget`] until all is done.

use taut_base::{EntityId, Guid, GuidPrefix, Locator, Time};

use super::ParticipantData;
use crate::event::Event;
use crate::limits;
use crate::participant::Participant;
use crate::timers::Timer;

/// A participant that is being forgotten.
pub(super) struct Leaving {
    /// When it was lost; `None`: it has said so itself.
    lost_at: Option<Time>,
    /// Its name is another one's now.
    is_replaced: bool,
    /// What it has announced since, and from where: another life of it, to be found once this one is forgotten.
    again: Option<(ParticipantData, Locator)>,
    /// Before this, it is not believed once more that another process has taken its name.
    next_life_at: Time,
}

impl Participant {
    /// Forgets a participant: at once if it has little, else in steps that follow at once.
    pub(super) fn remove_peer(&mut self, now: Time, prefix: GuidPrefix, left: bool) {
        self.replace_peer(now, prefix, left, None);
    }

    /// The same, and finds what it has announced since, if anything, when that is done.
    pub(super) fn replace_peer(
        &mut self,
        now: Time,
        prefix: GuidPrefix,
        left: bool,
        again: Option<(ParticipantData, Locator)>,
    ) {
        if left {
            self.database.lost.forget(prefix);
        }
        let Some(mut peer) = self.database.peers.remove(&prefix) else {
            // The life that it has announced since is over as well.
            if let Some(leaving) = self.database.leaving.get_mut(&prefix).filter(|_| again.is_none()) {
                leaving.again = None;
            }
            return;
        };
        if left {
            self.database.left.note(now, &peer.data);
        }
        if let Some(since) = peer.silent_since {
            self.database.silent.remove(&(since, prefix));
        }
        self.spdp.take_newcomer(prefix, Some(&mut peer));
        self.spdp.stranded.remove(prefix);
        self.announcements.forget(prefix);
        self.inbox.forget(prefix);
        if self.inbox.has_refused() {
            self.timers.set(now, Timer::Inbox);
        }
        self.found.forget(prefix);
        self.timers.set(Time::NEVER, Timer::Lease(prefix));
        self.timers.set(Time::NEVER, Timer::Peer(prefix));
        self.timers.set(Time::NEVER, Timer::Ask(prefix));
        self.timers.set(Time::NEVER, Timer::Look(prefix));
        self.unmatch_builtin_endpoints(prefix);
        let lost_at = (!left).then_some(now);
        let is_replaced = again.as_ref().is_some_and(|(data, _)| data.is_of_another_process(&peer.data));
        let next_life_at = peer.next_life_at;
        self.database.leaving.insert(prefix, Leaving { lost_at, is_replaced, again, next_life_at });
        self.forget_more(now, prefix);
    }

    /// The next step of it. *Cost*: [`limits::PEER_STEP`] matches or endpoints, each O(log n), and O(readers of the
    /// writer) where one of those is.
    pub(crate) fn forget_more(&mut self, now: Time, prefix: GuidPrefix) {
        for _ in 0..limits::PEER_STEP {
            if !self.forget_one(prefix) {
                return self.end_forgetting(now, prefix);
            }
        }
        self.timers.set(now, Timer::Forget(prefix));
    }

    /// Ends a match with an endpoint of it, or forgets one that has none left. `false`: there is none.
    fn forget_one(&mut self, prefix: GuidPrefix) -> bool {
        let first = Guid::new(prefix, EntityId::UNKNOWN);
        let last = Guid::new(prefix, EntityId([u8::MAX; 4]));
        let Some((guid, _)) = self.database.endpoints.range(first..=last).next() else { return false };
        let guid = *guid;
        let matched = self.database.matches.of_remote(guid).next();
        match matched {
            Some(local) => self.unmatch(local, guid),
            None => self.remove_endpoint(guid),
        }
        true
    }

    /// When a participant that is being forgotten was lost.
    pub(super) fn lost_at(&self, prefix: GuidPrefix) -> Option<Time> {
        self.database.leaving.get(&prefix)?.lost_at
    }

    /// Is it the same that comes back, if one does under the name of a participant that is being forgotten?
    pub(super) fn may_return(&self, prefix: GuidPrefix) -> bool {
        self.database.leaving.get(&prefix).is_some_and(|leaving| !leaving.is_replaced)
    }

    fn end_forgetting(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(Leaving { lost_at, again, next_life_at, .. }) = self.database.leaving.remove(&prefix) else {
            return;
        };
        self.push_event(Event::ParticipantLost { prefix, left: lost_at.is_none() });
        if let Some((data, source)) = again {
            self.note_peer(now, data, &source, &[]);
            if let Some(peer) = self.database.peers.get_mut(&prefix) {
                peer.next_life_at = next_life_at;
            }
        }
    }

    /// One that is being forgotten announces itself, and is found when that is done. `None`: this was such a one.
    pub(super) fn unless_leaving(
        &mut self,
        now: Time,
        data: ParticipantData,
        source: &Locator,
    ) -> Option<ParticipantData> {
        match self.database.leaving.get_mut(&data.guid_prefix) {
            Some(leaving) => {
                // As for one that is known: what the earlier process has said may come behind it.
                let known = leaving.again.as_ref();
                let is_other = known.is_some_and(|(known, _)| known.is_of_another_process(&data));
                if is_other && now < leaving.next_life_at {
                    return None;
                }
                if is_other {
                    leaving.next_life_at = now + limits::RESTART_AFTER;
                    leaving.is_replaced = true;
                }
                leaving.again = Some((data, *source));
                None
            }
            None => Some(data),
        }
    }
}

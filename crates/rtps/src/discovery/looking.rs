//! Going through all matches with a peer, some in each step, so that no step takes long however many there are.
//! RTPS 2.5 §8.5.3, §8.5.4.
//!
//! A peer gives reason for it that is reached elsewhere, that has forgotten this side, or that announces itself while
//! some of its writers have said nothing. Owns how far that has come. Must never end a match. Called with what peers say
//! of themselves, and by [`Timer::Peer`] and [`Timer::Ask`] where that was too early, and by [`Timer::Look`] until all is done,
//! with which those go on that [greet](Participant::greet_known) a peer.

use taut_base::{Duration, EntityId, Guid, GuidPrefix, Time};
use taut_qos::DurabilityKind;

use crate::ReaderIndex;
use crate::limits;
use crate::participant::Participant;
use crate::timers::Timer;

/// A match, in the order in which those of a peer are gone through.
type Place = (Guid, EntityId);

/// What is under way through the matches of a peer.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Looks {
    /// Up to where those that change its matches have come.
    changes: Option<Changes>,
    /// Up to where writers that have said nothing have been asked again.
    asked: Option<Place>,
}

/// What is seen to in each match.
#[derive(Clone, Copy, Debug)]
struct Changes {
    after: Place,
    /// The peer has forgotten this side.
    anew: bool,
    /// It is reached elsewhere.
    moved: bool,
}

/// Before all matches of a peer.
pub(super) fn start(prefix: GuidPrefix) -> Place {
    (Guid::new(prefix, EntityId::UNKNOWN), EntityId::UNKNOWN)
}

impl Participant {
    /// A peer says something for which all matches with it are gone through. It decides how often it says so: that is
    /// begun now, or later if it was begun just before.
    pub(crate) fn look_through(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(peer) = self.database.peers.get_mut(&prefix) else { return };
        if now < peer.look_at {
            return self.timers.set(peer.look_at, Timer::Peer(prefix));
        }
        peer.look_at = now + limits::LOOK_REPEAT;
        if std::mem::take(&mut peer.has_forgotten) {
            self.change_matches(now, prefix, (true, false));
        }
        self.find_peer(now, prefix);
    }

    /// A peer has said something for which all matches with it are to be gone through, and it is time for it.
    pub(crate) fn on_peer_timer(&mut self, now: Time, prefix: GuidPrefix) {
        self.look_through(now, prefix);
        self.greet_more(now, prefix);
    }

    fn greet_more(&mut self, now: Time, prefix: GuidPrefix) {
        [true, false].into_iter().for_each(|of_writers| self.greet_known(now, prefix, of_writers));
    }

    /// A peer has acknowledged less of the publications than before.
    pub(crate) fn on_forgotten(&mut self, now: Time, prefix: GuidPrefix) {
        if let Some(peer) = self.database.peers.get_mut(&prefix) {
            peer.has_forgotten = true;
            self.look_through(now, prefix);
        }
    }

    /// Sees to the matches of a peer that has forgotten this side, or is reached elsewhere: to all at once if there are
    /// few, else in steps that follow at once; anew, if that is under way.
    pub(super) fn change_matches(&mut self, now: Time, prefix: GuidPrefix, (anew, moved): (bool, bool)) {
        let Some(peer) = self.database.peer(prefix) else { return };
        let asked = peer.looks.asked;
        let (was_anew, had_moved) = peer.looks.changes.map_or((false, false), |of| (of.anew, of.moved));
        let after = start(prefix);
        let changes = Changes { after, anew: anew || was_anew, moved: moved || had_moved };
        let changes = self.change_some(now, prefix, changes);
        self.go_on_looking(now, prefix, Looks { changes, asked });
    }

    /// A peer is there, but some of its writers have not said what they have: asks them again. If its
    /// built-in ones have not, it may not know this side: the first answer came before it listened. That is done now,
    /// or later if it was done just before: the peer may announce itself to whoever announces itself to it. One that has no
    /// built-in writers is told of this side each time.
    pub(crate) fn ask_again(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(peer) = self.database.peer(prefix) else { return self.find_lost(now, prefix) };
        if now < peer.ask_at {
            return self.timers.set(peer.ask_at, Timer::Ask(prefix));
        }
        let mut knows_us = !self.is_told_back(now, prefix);
        for pair in self.builtin.pairs() {
            knows_us &= !self.ask_one_again(pair.reader, Guid::new(prefix, pair.remote_writer));
        }
        if !knows_us {
            self.tell(prefix);
            self.queue_discovery();
        }
        let Some(peer) = self.database.peers.get_mut(&prefix) else { return };
        let pause = if knows_us { Duration::ZERO } else { peer.ask_pause.times(2) };
        peer.ask_pause = pause.clamp(limits::ASK_REPEAT, limits::ASK_REPEAT_MOST);
        peer.ask_at = now + peer.ask_pause;
        // One that announces itself all the time is not begun with again.
        if peer.looks.asked.is_some() {
            return;
        }
        let changes = peer.looks.changes;
        let asked = self.ask_some(prefix, start(prefix));
        self.go_on_looking(now, prefix, Looks { changes, asked });
    }

    /// Asks a writer again that has said nothing. Returns whether it is such a one.
    fn ask_one_again(&mut self, reader: ReaderIndex, writer: Guid) -> bool {
        let found = self.readers.get_mut(reader.0).is_some_and(|reader| reader.ask_again(writer));
        if found {
            self.wake_reader(reader);
        }
        found
    }

    /// The next step through the matches of a peer. *Cost*: [`limits::PEER_STEP`] matches that change, each O(log n) and
    /// O(readers of the writer), a look at [`limits::ASK_STEP`] others, and twice as many greetings.
    pub(crate) fn look_more(&mut self, now: Time, prefix: GuidPrefix) {
        self.greet_more(now, prefix);
        let Some(peer) = self.database.peer(prefix) else { return };
        let Looks { changes, asked } = peer.looks;
        let changes = changes.and_then(|changes| self.change_some(now, prefix, changes));
        let asked = asked.and_then(|after| self.ask_some(prefix, after));
        self.go_on_looking(now, prefix, Looks { changes, asked });
    }

    /// So far it has come.
    fn go_on_looking(&mut self, now: Time, prefix: GuidPrefix, looks: Looks) {
        let is_done = looks.changes.is_none() && looks.asked.is_none();
        let Some(peer) = self.database.peers.get_mut(&prefix) else { return };
        peer.looks = looks;
        if !is_done {
            self.timers.set(now, Timer::Look(prefix));
        }
    }

    /// Sees to some matches. `None`: that were all.
    fn change_some(&mut self, now: Time, prefix: GuidPrefix, mut changes: Changes) -> Option<Changes> {
        for _ in 0..limits::PEER_STEP {
            let (local, remote) = self.database.matches.of_peer_after(prefix, changes.after).next()?;
            changes.after = (remote, local);
            if changes.anew {
                self.begin_anew(now, local, remote);
            }
            if changes.moved {
                self.find_endpoint(now, local, remote);
            }
        }
        Some(changes)
    }

    /// Asks some writers again. `None`: that were all.
    fn ask_some(&mut self, prefix: GuidPrefix, mut after: Place) -> Option<Place> {
        for _ in 0..limits::ASK_STEP {
            let (local, remote) = self.database.matches.of_peer_after(prefix, after).next()?;
            after = (remote, local);
            let reader = self.locals.get(&local).and_then(|local| local.kind.reader());
            if let Some(reader) = reader {
                self.ask_one_again(reader, remote);
            }
        }
        Some(after)
    }

    /// A peer that this side knows has forgotten this side (a cut that only it noticed) and begins anew: a writer
    /// that a reader of it matches is to greet that once the peer knows the writer again.
    fn begin_anew(&mut self, now: Time, local: EntityId, remote: Guid) {
        let Some(index) = self.locals.get(&local).and_then(|local| local.kind.writer()) else { return };
        let reader = self.database.endpoints.get(&remote);
        if let (Some(writer), Some(reader)) = (self.writers.get_mut(index.0), reader) {
            writer.begin_anew(remote, reader.qos.durability != DurabilityKind::Volatile);
            self.greet(now, local, remote);
        }
    }
}

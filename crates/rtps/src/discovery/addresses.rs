//! Addresses that change while participants run: this one's and its peers'. RTPS 2.5 §8.5.3.2, §8.5.4.4.
//!
//! Owns nothing: it brings what discovery knows of addresses into the proxies, whoever has moved. Must never
//! end a match: who moves keeps its endpoints, and what was lost on the way to the old address is repaired.

use std::sync::Arc;

use taut_base::{Duration, EntityId, Guid, GuidPrefix, Locator, Time};

use super::locators::{groups, is_usable, nearest};
use super::stranded::{is_stranded, kept_addresses};
use super::{LocalKind, ParticipantData, Peer};
use crate::limits;
use crate::participant::{Addresses, Participant, Sink};
use crate::timers::Timer;

/// How many addresses of an announcement lead nowhere from here.
pub(super) fn unusable(data: &ParticipantData, own: &Addresses) -> u64 {
    let all = data.metatraffic_unicast.iter().chain(&data.default_unicast);
    u64::try_from(all.filter(|locator| !is_usable(locator, own)).count()).unwrap_or(u64::MAX)
}

impl Participant {
    /// This participant is reached elsewhere from now on: all are told at once, and peers are looked for again
    /// from where it is now. With the same addresses as before it only tells that it is there.
    pub fn set_addresses(&mut self, now: Time, addresses: Addresses, sink: &mut dyn Sink) {
        let own = &self.config.addresses;
        let moved = (&own.default_unicast, &own.critical_unicast)
            != (&addresses.default_unicast, &addresses.critical_unicast);
        // Then the interfaces by which groups are reached may be others.
        let is_elsewhere = self.config.addresses.interfaces != addresses.interfaces;
        let before = std::mem::replace(&mut self.config.addresses, addresses);
        let peers: Vec<GuidPrefix> = self.database.peers.keys().copied().collect();
        for prefix in &peers {
            if let Some(peer) = self.database.peers.get_mut(prefix) {
                peer.has_regrouped |= is_elsewhere;
            }
            self.find_peer(now, *prefix);
        }
        if !self.spdp.announce_anew(now, &self.config) {
            return;
        }
        let is_left = |prefix: &GuidPrefix| {
            // One that could hear the last end, and has not answered, knows the addresses of then or those of before.
            let is_between = |peer: &Peer| {
                self.spdp.stranded.may_be_reached(*prefix)
                    && !kept_addresses(&peer.data, &peer.metatraffic, &before).is_empty()
            };
            let peer = self.database.peer(*prefix);
            peer.is_some_and(|peer| is_stranded(peer, &self.config.addresses) || is_between(peer))
        };
        let stranded = peers.iter().copied().filter(is_left).collect();
        self.spdp.stranded.begin_anew(stranded);
        for prefix in peers {
            // Not before those have heard that this participant leaves.
            if !self.spdp.stranded.contains(prefix) {
                self.tell(prefix);
            }
        }
        self.queue_discovery();
        self.timers.set(now, Timer::Announce);
        if moved {
            self.move_locals(now, sink);
        }
    }

    /// Tells all that this participant is there, each peer directly.
    pub fn announce(&mut self, now: Time) {
        if !self.spdp.announce_anew(now, &self.config) {
            return;
        }
        let peers: Vec<GuidPrefix> = self.database.peers.keys().copied().collect();
        peers.into_iter().for_each(|prefix| self.tell(prefix));
        self.queue_discovery();
        self.timers.set(now, Timer::Announce);
    }

    /// Endpoints name their addresses themselves: those are told anew, too.
    fn move_locals(&mut self, now: Time, sink: &mut dyn Sink) {
        let locals = self.locals.iter_mut().filter(|(entity, _)| !entity.is_builtin());
        let moved: Vec<EntityId> = locals
            .map(|(entity, local)| {
                let unicast = self.config.addresses.unicast_of(local.data.qos.transport_priority);
                Arc::make_mut(&mut local.data).unicast_locators = unicast.to_vec();
                *entity
            })
            .collect();
        moved.into_iter().for_each(|entity| self.announce_local(now, entity, sink));
    }

    /// Where a participant's discovery and its endpoints are reached from here.
    pub(super) fn addresses_of(
        &self,
        data: &ParticipantData,
        source: &Locator,
    ) -> (Vec<Locator>, Vec<Locator>) {
        let own = &self.config.addresses;
        let metatraffic = match &nearest(&data.metatraffic_unicast, own, source)[..] {
            [] => groups(&data.metatraffic_multicast, &[], own),
            found => found.to_vec(),
        };
        (metatraffic, nearest(&data.default_unicast, own, source))
    }

    /// Where a peer is reached now, by what it last said and by where this participant is, if that is elsewhere than
    /// before. One that names no address that could be reached keeps those it had.
    pub(super) fn moved_to(&self, prefix: GuidPrefix) -> Option<(Vec<Locator>, Vec<Locator>)> {
        let peer = self.database.peer(prefix)?;
        let (metatraffic, unicast) = self.addresses_of(&peer.data, &peer.source);
        let has_moved = peer.has_regrouped || (&peer.metatraffic, &peer.unicast) != (&metatraffic, &unicast);
        (has_moved && !metatraffic.is_empty()).then_some((metatraffic, unicast))
    }

    /// A peer has acknowledged discovery, from `source`. What does so comes to this participant alone: where that is, is known
    /// there, if it is told so and is at home at `source`.
    pub(crate) fn note_reached(&mut self, prefix: GuidPrefix, source: &Locator) {
        if !self.spdp.stranded.may_be_reached(prefix) {
            return;
        }
        let Some(peer) = self.database.peers.get_mut(&prefix) else { return };
        let named = peer.data.metatraffic_unicast.iter().chain(&peer.data.default_unicast);
        if named.chain([&peer.source]).any(|own| own.ip() == source.ip()) {
            peer.kept_addresses = kept_addresses(&peer.data, &peer.metatraffic, &self.config.addresses);
            self.spdp.stranded.reached(prefix);
        }
    }

    /// Looks where a peer is reached now, and sends what is for it there.
    pub(super) fn find_peer(&mut self, now: Time, prefix: GuidPrefix) {
        let Some((metatraffic, unicast)) = self.moved_to(prefix) else { return };
        let Some(peer) = self.database.peers.get_mut(&prefix) else { return };
        (peer.metatraffic, peer.unicast, peer.has_regrouped) = (metatraffic, unicast, false);
        // That it has said nothing was perhaps for where it was asked.
        peer.ask_pause = Duration::ZERO;
        peer.ask_at = peer.ask_at.min(now + limits::ASK_REPEAT);
        self.find_builtin_endpoints(now, prefix);
        self.change_matches(now, prefix, (false, true));
    }

    fn find_builtin_endpoints(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(peer) = self.database.peer(prefix) else { return };
        let unicast = peer.metatraffic.clone();
        let multicast = groups(&peer.data.metatraffic_multicast, &unicast, &self.config.addresses);
        for pair in self.builtin.pairs() {
            let (reader, writer) =
                (Guid::new(prefix, pair.remote_reader), Guid::new(prefix, pair.remote_writer));
            self.find(now, LocalKind::Writer(pair.writer), reader, &unicast, &multicast);
            self.find(now, LocalKind::Reader(pair.reader), writer, &unicast, &multicast);
        }
    }

    /// Sends what is for a matched endpoint of a peer to where it is now.
    pub(super) fn find_endpoint(&mut self, now: Time, local: EntityId, remote: Guid) {
        let (Some(kind), Some(data)) =
            (self.locals.get(&local).map(|local| local.kind), self.database.endpoint(remote).map(Arc::clone))
        else {
            return;
        };
        let (unicast, multicast) = self.locators_of(&data);
        self.find(now, kind, remote, &unicast, &multicast);
    }

    fn find(
        &mut self,
        now: Time,
        local: LocalKind,
        remote: Guid,
        unicast: &[Locator],
        multicast: &[Locator],
    ) {
        match local {
            LocalKind::Writer(index) => {
                let writer = self.writers.get_mut(index.0);
                if writer.is_some_and(|writer| writer.move_reader(remote, unicast, multicast)) {
                    self.wake_writer(now, index);
                }
            }
            LocalKind::Reader(index) => {
                let to = if unicast.is_empty() { multicast } else { unicast };
                let reader = self.readers.get_mut(index.0);
                if reader.is_some_and(|reader| reader.move_writer(remote, to)) {
                    self.wake_reader(index);
                }
            }
        }
    }
}

//! Endpoints: announcing local ones, learning of others'. RTPS 2.5 §8.5.4.

use std::sync::Arc;

use taut_base::{EntityId, Guid, GuidPrefix, SequenceNumber, Time};
use taut_mem::Bytes;
use taut_qos::{DurabilityKind, EndpointQos, History, ReliabilityKind};

use super::locators::groups;
use super::matching::is_asked_from_zero;
use super::{Builtin, EndpointData, Local, LocalKind, Peer};
use crate::counters::bump;
use crate::event::Event;
use crate::history_cache::{CacheChange, ChangeKind};
use crate::limits;
use crate::participant::{EndpointConfig, Participant, Sink};
use crate::reader::{Reader, WriterProxy};
use crate::timers::Timer;
use crate::writer::{MulticastChoice, NewChange, ReaderProxy, Writer};
use crate::{ReaderIndex, WriterIndex};

/// The policies of built-in endpoints but SPDP's: reliable, transient-local, keep-last 1
/// (RTPS 2.5 §8.5.4.2, §8.4.13.3).
fn builtin_qos() -> EndpointQos {
    let mut qos = EndpointQos::default_writer();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.durability = DurabilityKind::TransientLocal;
    qos
}

/// How many endpoints of all peers are known when this one has no more. Who has answered nothing may be made up.
fn most_endpoints(peer: &Peer) -> usize {
    if peer.silent_since.is_some() { limits::ENDPOINTS / 2 } else { limits::ENDPOINTS }
}

/// Is it another endpoint of the same name? What differs cannot change while an endpoint lives (DCPS 1.4 §2.2.3).
fn is_another(known: &EndpointData, data: &EndpointData) -> bool {
    let fixed = |data: &EndpointData| (data.qos.reliability.kind, data.qos.durability);
    known.topic_name != data.topic_name || fixed(known) != fixed(data)
}

impl Participant {
    pub(crate) fn create_builtin_endpoints(&mut self) {
        self.builtin = Builtin {
            publications_writer: self.create_builtin_writer(EntityId::SEDP_PUBLICATIONS_WRITER),
            subscriptions_writer: self.create_builtin_writer(EntityId::SEDP_SUBSCRIPTIONS_WRITER),
            message_writer: self.create_builtin_writer(EntityId::PARTICIPANT_MESSAGE_WRITER),
            publications_reader: self.create_builtin_reader(EntityId::SEDP_PUBLICATIONS_READER),
            subscriptions_reader: self.create_builtin_reader(EntityId::SEDP_SUBSCRIPTIONS_READER),
            message_reader: self.create_builtin_reader(EntityId::PARTICIPANT_MESSAGE_READER),
            queued: false,
        };
    }

    fn create_builtin_writer(&mut self, entity: EntityId) -> WriterIndex {
        let (guid, qos) = (Guid::new(self.config.guid_prefix, entity), builtin_qos());
        let index = WriterIndex(self.writers.insert_with(|index| {
            let history = History::KeepLast(1);
            let mut writer =
                Writer::new(guid, WriterIndex(index), &qos, history, None, MulticastChoice::Auto);
            if self.config.cuts_discovery {
                writer.cut_all();
            }
            writer
        }));
        let data = Arc::new(EndpointData::of(guid, "", "", qos));
        self.locals.insert(
            entity,
            Local { data, kind: LocalKind::Writer(index), ends: false, announced: SequenceNumber::ZERO },
        );
        index
    }

    fn create_builtin_reader(&mut self, entity: EntityId) -> ReaderIndex {
        let (guid, qos) = (Guid::new(self.config.guid_prefix, entity), builtin_qos());
        let index = ReaderIndex(
            self.readers
                .insert_with(|index| Reader::new(guid, ReaderIndex(index), &qos, History::KeepLast(1))),
        );
        let data = Arc::new(EndpointData::of(guid, "", "", qos));
        self.locals.insert(
            entity,
            Local { data, kind: LocalKind::Reader(index), ends: false, announced: SequenceNumber::ZERO },
        );
        index
    }

    pub(crate) fn match_builtin_endpoints(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(peer) = self.database.peer(prefix) else { return };
        let (has, unicast) = (peer.data.builtin_endpoints, peer.metatraffic.clone());
        let asks_from_zero = is_asked_from_zero(peer.data.vendor_id);
        let multicast = groups(&peer.data.metatraffic_multicast, &unicast, &self.config.addresses);
        let acknowledges_liveliness = peer.data.acknowledges_liveliness();
        for pair in self.builtin.pairs() {
            if has & pair.reads != 0
                && let Some(local) = self.writers.get_mut(pair.writer.0)
            {
                let guid = Guid::new(prefix, pair.remote_reader);
                let reliable = acknowledges_liveliness || guid.entity != EntityId::PARTICIPANT_MESSAGE_READER;
                let proxy = ReaderProxy::new(guid, reliable, unicast.clone(), multicast.clone());
                // One that cannot ask waits for the next assertion rather than for history.
                local.match_reader(proxy, reliable);
                local.greet(guid);
                self.wake_writer(now, pair.writer);
            }
            if has & pair.writes != 0
                && let Some(local) = self.readers.get_mut(pair.reader.0)
            {
                let guid = Guid::new(prefix, pair.remote_writer);
                let mut proxy = WriterProxy::new(guid, true, 0, unicast.clone());
                proxy.asks_from_zero = asks_from_zero;
                local.match_writer(proxy, false);
                local.greet(now, guid);
                self.sources.insert(guid, vec![pair.reader]);
                self.wake_reader(pair.reader);
            }
        }
    }

    /// A built-in writer of a peer is heard for the first time: its opposite is greeted once more.
    pub(crate) fn greet_opposite(&mut self, now: Time, remote: Guid) {
        for pair in self.builtin.pairs() {
            if pair.remote_writer == remote.entity
                && let Some(local) = self.writers.get_mut(pair.writer.0)
            {
                local.greet_again(Guid::new(remote.prefix, pair.remote_reader));
                self.wake_writer(now, pair.writer);
            }
        }
    }

    pub(crate) fn unmatch_builtin_endpoints(&mut self, prefix: GuidPrefix) {
        for pair in self.builtin.pairs() {
            if let Some(local) = self.writers.get_mut(pair.writer.0) {
                local.unmatch_reader(Guid::new(prefix, pair.remote_reader));
            }
            let guid = Guid::new(prefix, pair.remote_writer);
            if let Some(local) = self.readers.get_mut(pair.reader.0) {
                local.unmatch_writer(guid);
            }
            self.sources.remove(&guid);
        }
    }

    /// Announces a new local endpoint, and begins to match it with all that is known.
    pub(crate) fn add_local(
        &mut self,
        now: Time,
        guid: Guid,
        kind: LocalKind,
        endpoint: EndpointConfig,
        sink: &mut dyn Sink,
    ) {
        let EndpointConfig { topic_name, type_name, qos, .. } = endpoint;
        let mut data = EndpointData::of(guid, &topic_name, &type_name, qos);
        // Fast DDS 2.9 has an address of its own to write to only then: two readers that leave it to their
        // participants' defaults, multicast among them, end its process.
        data.unicast_locators = self.config.addresses.unicast_of(data.qos.transport_priority).to_vec();
        self.topics.insert(&topic_name, guid.entity);
        self.locals.insert(
            guid.entity,
            Local { data: Arc::new(data), kind, ends: false, announced: SequenceNumber::ZERO },
        );
        self.announce_local(now, guid.entity, sink);
        self.await_matches(guid.entity);
        self.match_more(now, sink);
    }

    /// Tells the peers of a local endpoint.
    pub(super) fn announce_local(&mut self, now: Time, entity: EntityId, sink: &mut dyn Sink) {
        let Some(local) = self.locals.get(&entity) else { return };
        let mut payload = Vec::new();
        local.data.write(&mut payload);
        // It is kept for as long as the endpoint.
        payload.shrink_to_fit();
        let announced = self.publish(now, local.data.guid, ChangeKind::Alive, Bytes::from(payload), sink);
        if let Some(local) = self.locals.get_mut(&entity) {
            let before = std::mem::replace(&mut local.announced, announced);
            self.announce_by(entity, before, announced);
        }
    }

    /// Takes a local endpoint out of everything and tells the peers.
    pub(crate) fn remove_local(&mut self, now: Time, entity: EntityId, sink: &mut dyn Sink) {
        if entity.is_builtin() || !self.locals.contains_key(&entity) {
            return;
        }
        self.unmatched.retain(|unmatched| unmatched.local != entity);
        while self.part_more(entity) {}
        let guid = Guid::new(self.config.guid_prefix, entity);
        self.database.refusals.remove_local(guid);
        let mut key = Vec::new();
        EndpointData::write_key(guid, &mut key);
        self.publish(now, guid, ChangeKind::NotAliveDisposedUnregistered, Bytes::from(key), sink);
        let local = self.locals.remove(&entity);
        if let Some(local) = &local {
            self.topics.remove(&local.data.topic_name, entity);
        }
        match local.map(|local| local.kind) {
            Some(LocalKind::Writer(index)) => drop(self.writers.remove(index.0)),
            Some(LocalKind::Reader(index)) => drop(self.readers.remove(index.0)),
            None => {}
        }
    }

    /// Deletes a writer. *Cost*: one that matches much is parted first, in steps ([`Participant::part_more`]).
    pub fn delete_writer(&mut self, now: Time, index: WriterIndex, sink: &mut dyn Sink) {
        if let Some(entity) = self.writers.get(index.0).map(|writer| writer.guid.entity) {
            self.remove_local(now, entity, sink);
            self.arm_liveliness(now);
        }
    }

    /// Deletes a reader. *Cost*: as with [`Participant::delete_writer`].
    pub fn delete_reader(&mut self, now: Time, index: ReaderIndex, sink: &mut dyn Sink) {
        if let Some(entity) = self.readers.get(index.0).map(|reader| reader.guid.entity) {
            self.remove_local(now, entity, sink);
        }
    }

    fn publish(
        &mut self,
        now: Time,
        guid: Guid,
        kind: ChangeKind,
        payload: Bytes,
        sink: &mut dyn Sink,
    ) -> SequenceNumber {
        let writer = if guid.entity.is_writer() {
            self.builtin.publications_writer
        } else {
            self.builtin.subscriptions_writer
        };
        let mut change = NewChange {
            kind,
            instance: guid.into(),
            source_timestamp: None,
            payload,
            number: None,
            in_lane: false,
            called: Time::default(),
            was_left: false,
        };
        // KEEP_LAST always has room.
        let number = self.write(now, writer, &mut change, sink).unwrap_or_default();
        if let Some(writer) = self.writers.get_mut(writer.0) {
            writer.ask_with_next();
        }
        number
    }

    /// Handles what has come for the built-in readers; [`Timer::Inbox`] goes on. One datagram may name a thousand endpoints, and
    /// each may match all there are here. *Cost*: so many endpoints and as many matches, or events of both; fewer after
    /// [`limits::COMPARED_STEP`].
    #[inline(never)]
    pub(crate) fn handle_inbox(&mut self, now: Time, count: usize) {
        self.compared = 0;
        let most = self.events.len().saturating_add(count);
        let (mut endpoints, mut matches) = (0..count, 0..count);
        while self.match_some(now, |of| of.events.len() < most && matches.next().is_some())
            && self.events.len() < most
            && self.compared < limits::COMPARED_STEP
            && endpoints.next().is_some()
        {
            self.end_handling();
            let Some(change) = self.inbox.next() else { break };
            match change.writer_guid.entity {
                EntityId::PARTICIPANT_MESSAGE_WRITER => self.on_participant_message(now, &change),
                _ => self.on_endpoint_change(&change),
            }
        }
        if !self.found.is_any_left() {
            self.end_handling();
        }
        if self.inbox.is_to_be_filled() {
            self.fill_inbox();
        }
        // After a long comparison, what more comes with this step waits for the next one.
        let is_used_up = self.compared >= limits::COMPARED_STEP;
        self.found.waits = !self.inbox.is_empty() || self.found.is_any_left() || is_used_up;
        if self.found.waits {
            self.timers.set(now, Timer::Inbox);
        }
    }

    /// A change has been handled. If it was the last one of a participant that was not told what it has said, it is now: before,
    /// it would take endpoints for known here that are not, and send history to readers that do not listen.
    #[inline]
    fn end_handling(&mut self) {
        if let Some(prefix) = self.inbox.end_current() {
            self.send_withheld(prefix);
        }
    }

    #[cold]
    fn send_withheld(&mut self, prefix: GuidPrefix) {
        for pair in self.builtin.pairs() {
            if let Some(reader) = self.readers.get_mut(pair.reader.0) {
                reader.queue_owed(Guid::new(prefix, pair.remote_writer));
                self.wake_reader(pair.reader);
            }
        }
    }

    /// There is room for what waits of the built-in readers, of another one first each time.
    #[cold]
    fn fill_inbox(&mut self) {
        let mut pairs = self.builtin.pairs();
        let first = self.inbox.turn(pairs.len());
        pairs.rotate_left(first);
        for index in pairs.map(|pair| pair.reader) {
            let Participant { readers, inbox, .. } = self;
            let Some(reader) = readers.get_mut(index.0) else { continue };
            reader.for_each_blocked(|proxy| proxy.deliver_pending(|offer| inbox.take(offer)));
            self.wake_reader(index);
        }
    }

    fn on_endpoint_change(&mut self, change: &CacheChange) {
        let (prefix, by) = (change.writer_guid.prefix, change.writer_guid.entity);
        // Nobody speaks of endpoints of another participant, and a writer of publications says nothing of readers.
        let ours = |guid: Guid| {
            let kind_fits = match by {
                EntityId::SEDP_PUBLICATIONS_WRITER => guid.entity.is_writer(),
                _ => guid.entity.is_reader(),
            };
            guid.prefix == prefix && kind_fits && !guid.entity.is_builtin()
        };
        if change.kind != ChangeKind::Alive {
            let named = change.instance.map(|handle| Guid::from_bytes(handle.0));
            match named.map_or_else(|| EndpointData::parse_key(&change.payload), Ok) {
                Ok(guid) if ours(guid) => self.part_remote_endpoint(guid),
                Ok(_) => bump(&mut self.counters.foreign_guid),
                Err(reason) => self.counters.malformed(reason),
            }
            return;
        }
        let Some(peer) = self.database.peer(prefix) else { return };
        let writer = by == EntityId::SEDP_PUBLICATIONS_WRITER;
        match EndpointData::parse_of(&change.payload, writer, &peer.data) {
            Ok(data) if ours(data.guid) => {
                self.counters.note_too_long(data.too_long);
                self.note_endpoint(data);
            }
            Ok(_) => bump(&mut self.counters.foreign_guid),
            Err(reason) => self.counters.malformed(reason),
        }
    }

    fn note_endpoint(&mut self, data: EndpointData) {
        let guid = data.guid;
        if self.database.endpoint(guid).is_some_and(|known| is_another(known, &data)) {
            self.remove_endpoint(guid);
        }
        let Some(peer) = self.database.peers.get_mut(&guid.prefix) else { return };
        match self.database.endpoints.get(&guid) {
            Some(known) if **known == data => return,
            Some(_) => {}
            None if peer.endpoints >= limits::ENDPOINTS_PER_PEER
                || self.database.endpoints.len() >= most_endpoints(peer) =>
            {
                return bump(&mut self.counters.too_many_endpoints);
            }
            None => peer.endpoints = peer.endpoints.saturating_add(1),
        }
        let topic = self.database.by_topic.entry(data.topic_name.clone()).or_default();
        topic.insert(guid);
        self.database.endpoints.insert(guid, Arc::new(data));
        self.push_event(Event::EndpointDiscovered(guid));
        self.match_remote_endpoint(guid);
    }

    pub(crate) fn remove_endpoint(&mut self, guid: Guid) {
        let Some(data) = self.database.endpoints.remove(&guid) else { return };
        if let Some(peer) = self.database.peers.get_mut(&guid.prefix) {
            peer.endpoints = peer.endpoints.saturating_sub(1);
        }
        if let Some(topic) = self.database.by_topic.get_mut(&data.topic_name) {
            topic.remove(&guid);
            if topic.is_empty() {
                self.database.by_topic.remove(&data.topic_name);
            }
        }
        let matched: Vec<EntityId> = self.database.matches.of_remote(guid).collect();
        matched.into_iter().for_each(|local| self.unmatch(local, guid));
        self.database.refusals.remove_remote(guid);
        self.push_event(Event::EndpointLost(guid));
    }
}

#[cfg(test)]
mod tests {
    use taut_base::Locator;

    use super::*;
    use crate::Config;
    use crate::discovery::{ParticipantData, builtin_endpoint};

    /// A participant that knows a peer with these built-in endpoints.
    fn with_peer(builtin_endpoints: u32) -> (Participant, GuidPrefix) {
        let address = |port| Locator::udp_v4([127, 0, 0, 1].into(), port);
        let mut participant = Participant::new(Config::at(GuidPrefix([1; 12]), address(7410)));
        let (guid_prefix, metatraffic_unicast) = (GuidPrefix([2; 12]), vec![address(7412)]);
        let data = ParticipantData {
            guid_prefix,
            metatraffic_unicast,
            builtin_endpoints,
            ..ParticipantData::default()
        };
        participant.note_peer(Time(0), data, &address(7412), &[]);
        (participant, guid_prefix)
    }

    /// Who tells of writers without end does not keep out what others say of readers.
    #[test]
    fn what_waits_for_room_in_the_inbox_has_it_in_turn() {
        let announcers = builtin_endpoint::PUBLICATIONS_ANNOUNCER | builtin_endpoint::SUBSCRIPTIONS_ANNOUNCER;
        let (mut participant, peer) = with_peer(announcers);
        let change = |entity, number| {
            Some(CacheChange {
                kind: ChangeKind::Alive,
                writer_guid: Guid::new(peer, entity),
                sequence_number: SequenceNumber(number),
                instance: None,
                source_timestamp: None,
                time: Time(0),
                payload: Bytes::new(),
            })
        };
        let told = [EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::SEDP_SUBSCRIPTIONS_WRITER];
        let pairs = participant.builtin.pairs();
        for pair in pairs.iter().filter(|pair| told.contains(&pair.remote_writer)) {
            let reader = participant.readers.get_mut(pair.reader.0).unwrap();
            let proxy = reader.proxies.get_mut(&Guid::new(peer, pair.remote_writer)).unwrap();
            (1..=9).for_each(|number| _ = proxy.on_change(&mut change(pair.remote_writer, number), |_| {}));
        }
        (0..=limits::INBOX).for_each(|_| participant.inbox.take(&mut change(EntityId::UNKNOWN, 1)));
        let mut all = Vec::new();
        for _ in 0..pairs.len() {
            let mut steps = 0..limits::INBOX;
            while !participant.inbox.is_to_be_filled() {
                assert!(steps.next().is_some(), "nothing that waits ever has room");
                // Who says something while others wait has to wait as well.
                participant.inbox.take(&mut change(EntityId::UNKNOWN, 1));
                all.extend(participant.inbox.next());
            }
            while participant.inbox.len() + 1 < limits::INBOX {
                participant.inbox.take(&mut change(EntityId::UNKNOWN, 1));
            }
            participant.fill_inbox();
        }
        all.extend(std::iter::from_fn(|| participant.inbox.next()));
        let all: Vec<EntityId> = all.iter().map(|change| change.writer_guid.entity).collect();
        assert!(told.iter().all(|entity| all.contains(entity)));
    }

    #[test]
    fn those_that_have_answered_nothing_leave_room_for_the_others() {
        let (mut participant, peer) = with_peer(ParticipantData::default().builtin_endpoints);
        let named = |n: u32| Guid::new(peer, EntityId::user(n, true, false));
        let of = |guid| EndpointData::of(guid, "Topic", "Type", EndpointQos::default_writer());
        let known = Arc::new(of(named(0)));
        let foreign = |n: usize| {
            let mut prefix = [3; 12];
            prefix[..8].copy_from_slice(&n.to_le_bytes());
            Guid::new(GuidPrefix(prefix), EntityId::user(1, true, false))
        };
        let fill = |participant: &mut Participant, numbers: std::ops::Range<usize>| {
            numbers.for_each(|n| _ = participant.database.endpoints.insert(foreign(n), Arc::clone(&known)));
        };
        let takes = |participant: &mut Participant, n| {
            participant.note_endpoint(of(named(n)));
            participant.database.endpoint(named(n)).is_some()
        };
        fill(&mut participant, 1..limits::ENDPOINTS / 2);
        assert!(takes(&mut participant, 1) && !takes(&mut participant, 2));
        participant.database.peers.get_mut(&peer).unwrap().silent_since = None;
        assert!(takes(&mut participant, 2));
        fill(&mut participant, limits::ENDPOINTS / 2..limits::ENDPOINTS - 1);
        assert!(!takes(&mut participant, 3));
        assert_eq!(participant.counters.too_many_endpoints, 2);
    }
}

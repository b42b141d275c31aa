//! Participants: announcing this one, finding, keeping and forgetting others. RTPS 2.5 §8.5.3.

use std::collections::{BTreeSet, VecDeque};

use taut_base::{Duration, EntityId, Guid, GuidPrefix, InstanceHandle, Locator, SequenceNumber, Time};
use taut_mem::Bytes;
use taut_wire::WireError;

use super::addresses::unusable;
use super::locators::{is_routed, lead_alike};
use super::stranded::{Stranded, kept_addresses};
use super::{Database, ParticipantData, Peer, builtin_endpoint};
use crate::counters::bump;
use crate::event::Event;
use crate::history_cache::{CacheChange, ChangeKind};
use crate::limits;
use crate::message::Tx;
use crate::participant::{Config, Participant};
use crate::receiver::Source;
use crate::timers::Timer;
use crate::writer::{FragmentJob, send_fragments};

/// The stateless writer that announces this participant. RTPS 2.5 §8.5.3.3.1.
pub(crate) struct Spdp {
    change: CacheChange,
    /// Everybody: multicast and the initial peers.
    everybody: Vec<Locator>,
    /// So many of them, from the end, are still to be told.
    untold: usize,
    /// Participants that are told directly, most of them just found.
    pub(super) newcomers: VecDeque<GuidPrefix>,
    pub(crate) stranded: Stranded,
    next_at: Time,
    initial_left: u32,
    /// A long announcement goes in fragments.
    cuts: bool,
}

impl Spdp {
    pub fn new(config: &Config) -> Spdp {
        let guid = Guid::new(config.guid_prefix, EntityId::PARTICIPANT);
        Spdp {
            change: CacheChange {
                kind: ChangeKind::Alive,
                writer_guid: Guid::new(config.guid_prefix, EntityId::SPDP_WRITER),
                sequence_number: SequenceNumber::FIRST,
                instance: Some(guid.into()),
                source_timestamp: None,
                time: Time(0),
                payload: announcement(config),
            },
            everybody: everybody(config),
            untold: 0,
            newcomers: VecDeque::new(),
            stranded: Stranded::default(),
            next_at: Time::AT_ONCE,
            initial_left: limits::INITIAL_ANNOUNCEMENTS,
            cuts: config.cuts_discovery,
        }
    }

    /// Has other addresses to tell from now on, to all and at once. `false` if it has left.
    pub fn announce_anew(&mut self, now: Time, config: &Config) -> bool {
        if self.next_at == Time::NEVER {
            return false;
        }
        self.change.sequence_number = self.change.sequence_number.next();
        self.change.payload = announcement(config);
        self.everybody = everybody(config);
        self.untold = 0;
        // The first ones after a change of the network are as likely to be lost as the very first.
        self.initial_left = limits::INITIAL_ANNOUNCEMENTS;
        self.next_at = now;
        true
    }

    /// This one is told directly.
    pub fn tell(&mut self, prefix: GuidPrefix) {
        if !self.newcomers.contains(&prefix) {
            self.newcomers.push_back(prefix);
        }
    }

    /// Is this one to be told? It counts as told from now on.
    pub(super) fn take_newcomer(&mut self, prefix: GuidPrefix) -> bool {
        let at = self.newcomers.iter().position(|newcomer| *newcomer == prefix);
        at.is_some_and(|at| self.newcomers.remove(at).is_some())
    }

    /// Those that would not hear it otherwise are told that this participant leaves, if it is time, and all a little later
    /// that it is there. Returns whether there are any.
    fn tell_stranded(&mut self, now: Time) -> bool {
        if !self.stranded.begin(now) {
            return false;
        }
        // One number for the end, and one for the announcement that follows.
        self.change.sequence_number = self.change.sequence_number.next().next();
        self.initial_left = limits::INITIAL_ANNOUNCEMENTS;
        true
    }

    /// Tells those who are to be told that this participant leaves, and no more of them than the budget. Returns whether all
    /// are told.
    pub(super) fn send_to_stranded(&mut self, tx: &mut Tx<'_>, database: &Database) -> bool {
        while let Some(prefix) = self.stranded.next_due() {
            if tx.budget == 0 {
                return false;
            }
            self.stranded.take_due();
            let Some(peer) = database.peer(prefix) else { continue };
            let end = CacheChange {
                kind: ChangeKind::NotAliveDisposedUnregistered,
                sequence_number: SequenceNumber(self.change.sequence_number.0.saturating_sub(1)),
                payload: key_of(self.change.writer_guid.prefix),
                ..self.change.clone()
            };
            tx.message.directed(prefix);
            tx.message.data(EntityId::SPDP_READER, &end, &end.payload);
            tx.flush(&peer.metatraffic);
        }
        true
    }

    /// All are to be told, and directly those that were told that this participant leaves: the groups and the initial peers
    /// need not lead to them.
    fn tell_everybody(&mut self) {
        self.untold = self.everybody.len();
        self.stranded.take_told(self.initial_left > 0).into_iter().for_each(|prefix| self.tell(prefix));
    }

    /// Tells everybody, if that is due: one datagram for each destination, and no more of them than the budget. Returns
    /// whether all are told.
    pub(super) fn send_to_everybody(&mut self, tx: &mut Tx<'_>) -> bool {
        while self.untold > 0 {
            if tx.budget == 0 {
                return false;
            }
            let first = self.everybody.len().saturating_sub(self.untold);
            let rest = self.everybody.get(first..).unwrap_or_default();
            let next = rest.get(..tx.budget).unwrap_or(rest);
            self.untold = rest.len().saturating_sub(next.len());
            self.write(tx, next);
            tx.flush(next);
        }
        true
    }

    /// Puts the announcement into the message; of one that goes in fragments the last one, if something may follow it, once the
    /// others have gone to these.
    pub(super) fn write(&self, tx: &mut Tx<'_>, to: &[Locator]) {
        let (size, len) = (limits::FRAGMENT_SIZE_MIN, self.change.payload.len());
        if !self.cuts || len <= size {
            return tx.message.data(EntityId::SPDP_READER, &self.change, &self.change.payload);
        }
        let (mut room, number) = (usize::MAX, self.change.sequence_number);
        let mut job = FragmentJob { number, next: 1, only: None };
        // All of it, as nobody asks for what is missing.
        let budget = std::mem::replace(&mut tx.budget, usize::MAX);
        send_fragments(tx, &self.change, size, EntityId::SPDP_READER, &mut job, (to, None), &mut room);
        tx.budget = budget.saturating_sub(usize::MAX.saturating_sub(tx.budget));
    }
}

fn everybody(config: &Config) -> Vec<Locator> {
    config.addresses.metatraffic_multicast.iter().chain(&config.initial_peers).copied().collect()
}

/// The payload that ends a participant.
fn key_of(prefix: GuidPrefix) -> Bytes {
    let mut key = Vec::new();
    ParticipantData::write_key(Guid::new(prefix, EntityId::PARTICIPANT), &mut key);
    Bytes::from(key)
}

/// What this participant says of itself.
fn announcement(config: &Config) -> Bytes {
    let addresses = config.addresses.clone();
    let data = ParticipantData {
        guid_prefix: config.guid_prefix,
        domain_id: Some(config.domain_id),
        metatraffic_unicast: addresses.metatraffic_unicast,
        metatraffic_multicast: addresses.metatraffic_multicast,
        default_unicast: addresses.default_unicast,
        default_multicast: addresses.default_multicast,
        builtin_endpoints: builtin_endpoint::PARTICIPANT_ANNOUNCER
            | builtin_endpoint::PARTICIPANT_DETECTOR
            | builtin_endpoint::PUBLICATIONS_ANNOUNCER
            | builtin_endpoint::PUBLICATIONS_DETECTOR
            | builtin_endpoint::SUBSCRIPTIONS_ANNOUNCER
            | builtin_endpoint::SUBSCRIPTIONS_DETECTOR
            | builtin_endpoint::PARTICIPANT_MESSAGE_WRITER
            | builtin_endpoint::PARTICIPANT_MESSAGE_READER,
        lease_duration: config.lease_duration,
        entity_name: config.entity_name.clone(),
        user_data: config.user_data.clone(),
        properties: config.properties.clone(),
        ..ParticipantData::default()
    };
    let mut out = Vec::new();
    data.write(&mut out);
    Bytes::from(out)
}

impl Participant {
    pub(crate) fn on_announce_timer(&mut self, now: Time, at: Time) {
        if at < self.spdp.next_at {
            return;
        }
        let period = if self.spdp.tell_stranded(now) {
            limits::INITIAL_ANNOUNCEMENT_PERIOD
        } else if self.spdp.initial_left > 0 {
            self.spdp.initial_left = self.spdp.initial_left.saturating_sub(1);
            self.spdp.tell_everybody();
            limits::INITIAL_ANNOUNCEMENT_PERIOD
        } else {
            self.spdp.tell_everybody();
            self.tell_others();
            announcement_period(&self.config)
        };
        self.spdp.next_at = now + period;
        self.timers.set(self.spdp.next_at, Timer::Announce);
        self.queue_discovery();
    }

    /// Those are told directly whom that does not reach: they have found this participant, as one of their initial peers, and
    /// would forget it when they have heard nothing else for as long as its lease.
    fn tell_others(&mut self) {
        let Participant { spdp, database, config, .. } = self;
        for (prefix, peer) in database.peers.iter() {
            let is_told = |locator: &Locator| spdp.everybody.iter().any(|told| told.by_all() == *locator);
            let hears_group = !is_routed(&peer.source, &config.addresses.interfaces)
                && peer.data.metatraffic_multicast.iter().any(is_told);
            if !hears_group && !peer.metatraffic.iter().any(is_told) {
                spdp.tell(*prefix);
            }
        }
    }

    /// Tells everybody that this participant leaves; nothing is announced after it.
    pub fn leave(&mut self) {
        let key = key_of(self.config.guid_prefix);
        let change = &mut self.spdp.change;
        change.kind = ChangeKind::NotAliveDisposedUnregistered;
        change.sequence_number = change.sequence_number.next();
        change.payload = key;
        self.spdp.next_at = Time::NEVER;
        self.spdp.everybody.extend(self.database.peers.values().flat_map(|peer| &peer.metatraffic));
        self.spdp.tell_everybody();
        self.spdp.newcomers.clear();
        self.spdp.stranded.clear();
        self.queue_discovery();
    }

    /// A participant announces itself or leaves.
    // Apart, what the message says would have to lie in memory for each sample that arrives.
    #[inline(always)]
    pub(crate) fn on_spdp(
        &mut self,
        now: Time,
        source: &Source<'_>,
        kind: ChangeKind,
        payload: &[u8],
        key_hash: Option<InstanceHandle>,
    ) {
        if kind != ChangeKind::Alive {
            let named = key_hash.map(|InstanceHandle(bytes)| Guid::from_bytes(bytes));
            let named = named.or_else(|| ParticipantData::parse_key(payload).ok());
            if named.is_some_and(|guid| guid.prefix == source.prefix) {
                self.remove_peer(now, source.prefix, true);
            } else {
                bump(&mut self.counters.foreign_guid);
            }
            return;
        }
        if self.is_said_again(now, source, payload) {
            return;
        }
        let data = match ParticipantData::parse(payload, source.vendor) {
            Ok(data) => data,
            Err(reason) => return self.counters.malformed(reason),
        };
        self.counters.note_too_long(data.too_long);
        if data.guid_prefix != source.prefix {
            return bump(&mut self.counters.foreign_guid);
        }
        // RTPS 2.5 §9.6.2.2: those of a domain with a tag are a domain of their own, and this side has none.
        if data.domain_id.is_some_and(|domain| domain != self.config.domain_id) || !data.domain_tag.is_empty()
        {
            return bump(&mut self.counters.foreign_domain);
        }
        self.counters.note_unusable(unusable(&data, &self.config.addresses));
        let said = Some(payload).filter(|said| said.len() <= limits::SAID).unwrap_or_default();
        self.note_peer(now, data, &source.locator, said);
    }

    /// Does a known participant say what it has said last, and is it reached the same way from here? Then what was read of that
    /// holds, and it lives. *Cost*: a comparison of the bytes, no allocation.
    #[inline(never)]
    fn is_said_again(&mut self, now: Time, source: &Source<'_>, payload: &[u8]) -> bool {
        let Some(peer) = self.database.peers.get_mut(&source.prefix) else { return false };
        let own = &self.config.addresses;
        // It may come by each of several networks. Whose announcement names no vendor is of the one that the message names.
        let is_alike = peer.data.vendor_id == source.vendor
            && lead_alike(&peer.source, &source.locator, &own.interfaces);
        if !is_alike || payload.is_empty() || peer.said != payload {
            return false;
        }
        (peer.heard_at, peer.source) = (now, source.locator);
        self.counters.note_too_long(peer.data.too_long);
        self.counters.note_unusable(unusable(&peer.data, own));
        self.announced = Some(source.prefix);
        true
    }

    /// `said` is what it was read from; empty if that is long, or not at hand.
    pub(super) fn note_peer(&mut self, now: Time, data: ParticipantData, source: &Locator, said: &[u8]) {
        let Some(data) = self.unless_leaving(now, data, source) else { return };
        let prefix = data.guid_prefix;
        let known = self.database.peers.get_mut(&prefix);
        if let Some(peer) = known.filter(|peer| peer.data.is_of_another_process(&data)) {
            // What the earlier process has said may come behind it, and somebody may tell of many.
            if now >= peer.next_life_at {
                peer.next_life_at = now + limits::RESTART_AFTER;
                self.replace_peer(now, prefix, false, Some((data, *source)));
            }
            return;
        }
        if self.database.peer(prefix).is_some() {
            return self.note_known_peer(now, data, source, said);
        }
        let (metatraffic, unicast) = self.addresses_of(&data, source);
        if metatraffic.is_empty() {
            return self.counters.malformed(WireError::MissingParameter);
        }
        if self.database.peers.len() >= limits::PEERS {
            bump(&mut self.counters.too_many_participants);
            // The table has a cap: who has only announced itself may not exist, however long its lease is.
            let Some((_, silent)) = self.database.silent.first().copied() else { return };
            self.remove_peer(now, silent, false);
        }
        self.spdp.tell(prefix);
        self.queue_discovery();
        let lease = lease(&data, true);
        let peer = Peer {
            kept_addresses: kept_addresses(&data, &metatraffic, &self.config.addresses),
            data,
            metatraffic,
            unicast,
            source: *source,
            said: said.to_vec(),
            lease,
            heard_at: now,
            silent_since: Some(now),
            endpoints: 0,
            greetings: BTreeSet::new(),
            look_at: Time::AT_ONCE,
            ask_at: Time::AT_ONCE,
            ask_pause: Duration::ZERO,
            next_life_at: Time::AT_ONCE,
            looks: Default::default(),
            has_forgotten: false,
            has_regrouped: false,
        };
        self.database.peers.insert(prefix, peer);
        self.database.silent.insert((now, prefix));
        self.timers.set(now + lease, Timer::Lease(prefix));
        self.push_event(Event::ParticipantDiscovered(prefix));
        self.match_builtin_endpoints(now, prefix);
    }

    /// A known participant says something else than before, or from elsewhere.
    fn note_known_peer(&mut self, now: Time, data: ParticipantData, source: &Locator, said: &[u8]) {
        let prefix = data.guid_prefix;
        let Some(peer) = self.database.peers.get_mut(&prefix) else { return };
        let lease = lease(&data, peer.silent_since.is_some());
        peer.heard_at = now;
        if peer.lease > lease {
            self.timers.set(now + lease, Timer::Lease(prefix));
        }
        peer.lease = lease;
        peer.has_regrouped |= peer.data.metatraffic_multicast != data.metatraffic_multicast
            || peer.data.default_multicast != data.default_multicast;
        let is_news = says_else(&peer.data, &data);
        (peer.data, peer.source) = (data, *source);
        peer.said.clear();
        peer.said.extend_from_slice(said);
        self.announced = Some(prefix);
        if is_news {
            self.push_event(Event::ParticipantDiscovered(prefix));
        }
        if self.moved_to(prefix).is_some() {
            self.look_through(now, prefix);
        }
    }

    /// Anything that a known participant says shows that it lives.
    pub(crate) fn renew_lease(&mut self, now: Time, prefix: GuidPrefix) {
        if let Some(peer) = self.database.peers.get_mut(&prefix) {
            peer.heard_at = peer.heard_at.max(now);
        }
    }

    /// A built-in endpoint of a participant has answered: there is one behind what it has announced.
    pub(crate) fn note_answer(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(peer) = self.database.peers.get_mut(&prefix) else { return };
        if let Some(since) = peer.silent_since.take() {
            peer.lease = lease(&peer.data, false);
            peer.heard_at = now;
            self.database.silent.remove(&(since, prefix));
        }
    }

    pub(crate) fn on_lease_timer(&mut self, now: Time, at: Time, prefix: GuidPrefix) {
        let Some(peer) = self.database.peers.get(&prefix) else { return };
        let until = peer.heard_at + peer.lease;
        // Timers come before discovery, so a process that was stopped, or a machine that slept, gets here before it has
        // received what the peer has said meanwhile. A second look is given to each end of a lease, whatever else comes.
        let is_first_look = at <= until;
        if until > now {
            self.timers.set(until, Timer::Lease(prefix));
        } else if is_first_look && now.since(until) >= limits::LEASE_LATE {
            self.timers.set(now + limits::LEASE_GRACE, Timer::Lease(prefix));
        } else {
            self.remove_peer(now, prefix, false);
        }
    }

    /// A participant is known to have ended, though its lease has not.
    pub fn forget_participant(&mut self, now: Time, prefix: GuidPrefix) {
        self.remove_peer(now, prefix, false);
    }

    /// A participant has started again under its old name: what is known of it is of another one.
    pub(crate) fn begin_life(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(Peer { data, source, .. }) = self.database.peers.get(&prefix).cloned() else { return };
        self.replace_peer(now, prefix, false, Some((data, source)));
    }
}

/// How long a participant counts as alive after each message.
fn lease(data: &ParticipantData, is_silent: bool) -> Duration {
    let lease = data.lease_duration;
    if is_silent { lease.min(limits::SILENT_LEASE) } else { lease }
}

/// Does a participant say something else of itself than before, but that it is alive?
fn says_else(before: &ParticipantData, now: &ParticipantData) -> bool {
    let count = now.manual_liveliness_count;
    before != now && ParticipantData { manual_liveliness_count: count, ..before.clone() } != *now
}

/// The announcement period that a lease needs: three in each, so that two may be lost.
fn announcement_period(config: &Config) -> Duration {
    let third = Duration(config.lease_duration.0.checked_div(3).unwrap_or(1).max(1));
    config.announcement_period.min(third)
}

//! Participants: announcing this one, finding, keeping and forgetting others. RTPS 2.5 §8.5.3.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use taut_base::{Duration, EntityId, Guid, GuidPrefix, InstanceHandle, Locator, SequenceNumber, Time};
use taut_mem::Bytes;
use taut_port::Traffic;
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
    /// Up to whom it has been seen to that those are told directly whom an announcement does not reach; `None`: to all.
    others: Option<GuidPrefix>,
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
            others: None,
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
    fn tell(&mut self, peer: &mut Peer) {
        if !std::mem::replace(&mut peer.is_newcomer, true) {
            self.newcomers.push_back(peer.data.guid_prefix);
        }
    }

    /// Is this one to be told? It counts as told from now on. *Cost*: a look at those before it, of which who is told has none.
    pub(super) fn take_newcomer(&mut self, prefix: GuidPrefix, peer: Option<&mut Peer>) -> bool {
        if !peer.is_none_or(|peer| std::mem::take(&mut peer.is_newcomer)) {
            return false;
        }
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
            self.tell_everybody();
            limits::INITIAL_ANNOUNCEMENT_PERIOD
        } else {
            self.tell_everybody();
            self.spdp.others.get_or_insert(GuidPrefix::UNKNOWN);
            self.tell_others(now);
            announcement_period(&self.config)
        };
        self.spdp.next_at = now + period;
        self.timers.set(self.spdp.next_at, Timer::Announce);
        self.queue_discovery();
    }

    /// All are to be told, and directly those that were told that this participant leaves: the groups and the initial peers
    /// need not lead to them.
    fn tell_everybody(&mut self) {
        self.spdp.untold = self.spdp.everybody.len();
        let is_repeated = self.spdp.initial_left > 0;
        self.spdp.stranded.take_told(is_repeated).into_iter().for_each(|prefix| self.tell(prefix));
    }

    /// This one is told directly.
    pub(super) fn tell(&mut self, prefix: GuidPrefix) {
        if let Some(peer) = self.database.peers.get_mut(&prefix) {
            self.spdp.tell(peer);
        }
    }

    /// Those are told directly whom an announcement does not reach: they have found this participant, as one of their initial
    /// peers, and would forget it when they have heard nothing else for as long as its lease. The next step of it. *Cost*: a
    /// look at [`limits::TELL_STEP`] peers, each O(log n) and O(initial peers).
    pub(crate) fn tell_others(&mut self, now: Time) {
        for _ in 0..limits::TELL_STEP {
            let next = self.spdp.others.and_then(|after| self.database.peers.key_after(after));
            self.spdp.others = next;
            let Some(prefix) = next else { return };
            if self.is_told_directly(now, prefix) {
                self.tell(prefix);
                self.queue_discovery();
            }
        }
        self.timers.set(now, Timer::Others);
    }

    /// Does no announcement reach this one that is not for it alone? Who has answered nothing is not told again and again, as it
    /// may not be there, but for somebody who has made it up: it is told when it announces itself, in
    /// [`Participant::ask_again`].
    fn is_told_directly(&self, now: Time, prefix: GuidPrefix) -> bool {
        let peer = self.database.peer(prefix).filter(|peer| peer.silent_since.is_none());
        peer.is_some_and(|peer| !self.is_reached(now, peer))
    }

    /// Is this one told whenever it announces itself, as nothing else reaches it? With static discovery it has no built-in writers
    /// that would say that it is there, and forgets this participant with its lease. As somebody may have made it up, with the
    /// address of another, it is told no more than [`limits::TOLD_BACK`] times what it has said.
    pub(super) fn is_told_back(&self, now: Time, prefix: GuidPrefix) -> bool {
        let Some(peer) = self.database.peer(prefix).filter(|peer| peer.silent_since.is_some()) else {
            return false;
        };
        let may_answer =
            self.builtin.pairs().iter().any(|pair| peer.data.builtin_endpoints & pair.writes != 0);
        let told = self.spdp.change.payload.len().saturating_mul(peer.metatraffic.len());
        let is_within = told <= peer.said.len().saturating_mul(limits::TOLD_BACK);
        !may_answer && is_within && !self.is_reached(now, peer)
    }

    /// Does an announcement that is not for it alone reach this one?
    fn is_reached(&self, now: Time, peer: &Peer) -> bool {
        let is_told = |locator: &Locator| self.spdp.everybody.iter().any(|told| told.by_all() == *locator);
        // Groups of a network that does not pass them on lead nowhere, whatever is announced.
        let hears_group = peer.group_at.is_some_and(|at| at + peer.lease > now)
            && !is_routed(&peer.source, &self.config.addresses.interfaces)
            && peer.data.metatraffic_multicast.iter().any(is_told);
        hears_group || peer.metatraffic.iter().any(is_told)
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
        self.tell_everybody();
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
        traffic: Traffic,
    ) {
        if kind != ChangeKind::Alive {
            let named = key_hash.map(|InstanceHandle(bytes)| Guid::from_bytes(bytes));
            let named = named.or_else(|| ParticipantData::parse_key(payload).ok());
            match named.is_some_and(|guid| guid.prefix == source.prefix) {
                true if source.may_announce() => self.remove_peer(now, source.prefix, true),
                true => bump(&mut self.counters.too_many_participants),
                false => bump(&mut self.counters.foreign_guid),
            }
            return;
        }
        if !self.is_said_again(now, source, payload) {
            self.on_announcement(now, source, payload);
        }
        if traffic == Traffic::MetaMulticast
            && let Some(peer) = self.database.peers.get_mut(&source.prefix)
        {
            peer.group_at = Some(now);
        }
    }

    /// A participant says of itself what it has not said before, or not from there.
    fn on_announcement(&mut self, now: Time, source: &Source<'_>, payload: &[u8]) {
        if !source.may_announce() {
            return bump(&mut self.counters.too_many_participants);
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
        let keeps_source = peer.keeps_source(now, &source.locator, &own.interfaces);
        let is_alike = peer.data.vendor_id == source.vendor
            && (keeps_source || lead_alike(&peer.source, &source.locator, &own.interfaces));
        if !is_alike || payload.is_empty() || peer.said != payload {
            return false;
        }
        (peer.heard_at, peer.asked) = (now, 0);
        if !keeps_source {
            (peer.source, peer.source_at) = (source.locator, now);
        }
        self.counters.note_too_long(peer.data.too_long);
        self.counters.note_unusable(unusable(&peer.data, own));
        self.announced = Some(source.prefix);
        true
    }

    /// `said` is what it was read from; empty if that is long, or not at hand.
    pub(super) fn note_peer(&mut self, now: Time, data: ParticipantData, source: &Locator, said: &[u8]) {
        if self.database.left.has_said(now, &data) {
            return bump(&mut self.counters.late_announcements);
        }
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
        let lease = lease(&data, true);
        let peer = Peer {
            kept_addresses: kept_addresses(&data, &metatraffic, &self.config.addresses),
            data: Arc::new(data),
            metatraffic,
            unicast,
            source: *source,
            source_at: now,
            group_at: None,
            is_newcomer: false,
            said: said.to_vec(),
            lease,
            heard_at: now,
            silent_since: Some(now),
            asked: 0,
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
        self.database.lost.forget(prefix);
        self.database.peers.insert(prefix, peer);
        self.database.silent.insert((now, prefix));
        self.tell(prefix);
        self.queue_discovery();
        self.timers.set(now + lease, Timer::Lease(prefix));
        self.push_event(Event::ParticipantDiscovered(prefix));
        self.match_builtin_endpoints(now, prefix);
    }

    /// A known participant says something else than before, or from elsewhere.
    fn note_known_peer(&mut self, now: Time, data: ParticipantData, source: &Locator, said: &[u8]) {
        let prefix = data.guid_prefix;
        let Some(peer) = self.database.peers.get_mut(&prefix) else { return };
        let lease = lease(&data, peer.silent_since.is_some());
        (peer.heard_at, peer.asked) = (now, 0);
        if peer.lease > lease {
            self.timers.set(now + lease, Timer::Lease(prefix));
        }
        peer.lease = lease;
        peer.has_regrouped |= peer.data.metatraffic_multicast != data.metatraffic_multicast
            || peer.data.default_multicast != data.default_multicast;
        let is_news = says_else(&peer.data, &data);
        if !peer.keeps_source(now, source, &self.config.addresses.interfaces) {
            (peer.source, peer.source_at) = (*source, now);
        }
        peer.data = Arc::new(data);
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
        } else {
            self.note_unknown(prefix);
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
            self.database.lost.note(now, peer);
            self.remove_peer(now, prefix, false);
        }
    }

    /// A participant is known to have ended, though its lease has not.
    pub fn forget_participant(&mut self, now: Time, prefix: GuidPrefix) {
        self.remove_peer(now, prefix, false);
    }

    /// A participant has started again under its old name: what is known of it is of another one.
    pub(crate) fn begin_life(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(Peer { data, source, .. }) = self.database.peer(prefix) else { return };
        let again = (ParticipantData::clone(data), *source);
        self.replace_peer(now, prefix, false, Some(again));
    }

    /// The same, as it says; that is done for no more of them in a message than may be told of.
    #[cold]
    pub(crate) fn begin_said_life(&mut self, now: Time, prefix: GuidPrefix) {
        match self.lives_left.checked_sub(1) {
            Some(left) => {
                self.lives_left = left;
                self.begin_life(now, prefix);
            }
            None => bump(&mut self.counters.too_many_participants),
        }
    }
}

/// How long a participant counts as alive after each message.
fn lease(data: &ParticipantData, is_silent: bool) -> Duration {
    let lease = data.lease_duration;
    if is_silent { lease.min(limits::SILENT_LEASE) } else { lease }
}

/// Does a participant say something else of itself than before, but that it is alive?
pub(super) fn says_else(before: &ParticipantData, now: &ParticipantData) -> bool {
    let count = now.manual_liveliness_count;
    before != now && ParticipantData { manual_liveliness_count: count, ..before.clone() } != *now
}

/// The announcement period that a lease needs: three in each, so that two may be lost.
fn announcement_period(config: &Config) -> Duration {
    let third = Duration(config.lease_duration.0.checked_div(3).unwrap_or(1).max(1));
    config.announcement_period.min(third)
}

#[cfg(test)]
mod tests {
    use taut_port::Loopback;

    use super::*;
    use crate::TxClass;

    /// How many are to be told directly.
    fn newcomers(participant: &Participant) -> usize {
        participant.spdp.newcomers.len()
    }

    /// Sends all that is to be sent. Returns to whom.
    fn told(participant: &mut Participant, now: Time) -> Vec<Locator> {
        let mut port = Loopback::new();
        while participant.poll_transmit(now, &mut port, TxClass::Discovery, 8).more {}
        std::iter::from_fn(|| port.take()).map(|(to, _)| to).collect()
    }

    #[test]
    fn of_as_many_peers_as_there_may_be_some_are_seen_to_in_each_step() {
        let address = |port| Locator::udp_v4([127, 0, 0, 1].into(), port);
        let config =
            Config { lease_duration: Duration::from_secs(90), ..Config::at(GuidPrefix([1; 12]), address(1)) };
        let mut participant = Participant::new(config);
        let prefix = |n: u16| {
            let [high, low] = n.to_be_bytes();
            GuidPrefix([high, low, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2])
        };
        let peers = 0..limits::PEERS as u16;
        for n in peers.clone() {
            let data = ParticipantData {
                guid_prefix: prefix(n),
                metatraffic_unicast: vec![address(10_000 + n)],
                ..ParticipantData::default()
            };
            participant.note_peer(Time(0), data, &address(10_000 + n), &[]);
        }
        let all: Vec<Locator> = peers.clone().map(|n| address(10_000 + n)).collect();
        assert!(told(&mut participant, Time(0)) == all, "in the order in which they came");
        let mut now = Time(0);
        let mut period = |participant: &mut Participant| {
            now = now + Duration::from_secs(3);
            let mut steps = 0;
            loop {
                let before = newcomers(participant);
                if participant.on_timeout(now, 1) == 0 {
                    break;
                }
                let more = newcomers(participant) - before;
                assert!(more <= limits::TELL_STEP, "{more} in one step");
                steps += usize::from(more > 0);
            }
            (steps, told(participant, now))
        };
        // The first ones are for all.
        (0..limits::INITIAL_ANNOUNCEMENTS).for_each(|_| _ = period(&mut participant));
        let (steps, of_silent) = period(&mut participant);
        assert_eq!((steps, of_silent.len()), (0, 0), "nobody has answered");
        peers.clone().for_each(|n| participant.note_answer(Time(0), prefix(n)));
        let (steps, of_answering) = period(&mut participant);
        assert_eq!(steps, limits::PEERS / limits::TELL_STEP);
        assert!(of_answering == all);
        (0..2).for_each(|_| participant.announce(Time(0)));
        assert_eq!(newcomers(&participant), limits::PEERS, "each once");
        participant.forget_participant(Time(0), prefix(7));
        assert_eq!(newcomers(&participant), limits::PEERS - 1);
        (0..limits::INITIAL_ANNOUNCEMENTS).for_each(|_| _ = period(&mut participant));
        // It leaves in the midst of telling them.
        let left = now + Duration::from_secs(3);
        participant.on_timeout(left, 1);
        assert_eq!(newcomers(&participant), limits::TELL_STEP);
        participant.leave();
        assert_eq!(told(&mut participant, left).len(), limits::PEERS - 1);
        participant.on_timeout(left, usize::MAX);
        assert_eq!(told(&mut participant, left), [], "nobody is told twice that it leaves");
    }
}

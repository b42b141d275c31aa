//! What must be true at the end of a seed.

use std::collections::{BTreeMap, BTreeSet};

use taut_base::{Duration, Guid, InstanceHandle};

use taut_dcps::InstanceState;
use taut_qos::{
    DestinationOrderKind, DurabilityKind, History, LivelinessKind, OwnershipKind, ReliabilityKind,
};
use taut_rtps::ChangeKind;

use crate::oracle::{
    ReaderRecord, WriterRecord, check_complete, compatible, disposes, leaves_gap, same_partition,
};
use crate::payload::instance;
use crate::plan::Class;
use crate::scenario::World;

/// How long an idle system is watched.
const WATCH: Duration = Duration::from_secs(10);

impl World {
    pub(crate) fn check(&mut self) -> Result<(), String> {
        let stolen = self.plan.class == Class::StolenPrefix;
        // With its name stolen, anything may be believed of node 0.
        let trusted = |node: usize| !stolen || node != 0;
        self.check_peers(&trusted)?;
        for writer in self.writers.iter().filter(|w| w.exists && trusted(w.writer.node)) {
            for reader in self.readers.iter().filter(|r| r.exists && trusted(r.reader.node)) {
                self.check_pair(writer, reader)?;
            }
        }
        if !stolen {
            self.check_owners()?;
            self.check_instances()?;
            self.check_told()?;
            self.check_statuses()?;
            self.check_memory()?;
        }
        self.note_sometimes();
        if stolen { Ok(()) } else { self.check_quiet() }
    }

    /// Both databases of each pair of participants agree with who is there.
    fn check_peers(&self, trusted: &dyn Fn(usize) -> bool) -> Result<(), String> {
        let nodes: Vec<usize> = (0..self.network.nodes.len())
            .filter(|node| self.network.is_up(*node) && trusted(*node))
            .collect();
        for node in nodes.iter().copied() {
            let Some(participant) = self.network.participant(node) else { continue };
            let database = participant.core().database();
            let known: BTreeSet<_> = database.peers().map(|peer| peer.data.guid_prefix).collect();
            let there = nodes.iter().filter(|other| **other != node);
            let expected: BTreeSet<_> = there.map(|other| self.network.prefix(*other)).collect();
            let stolen = self.plan.class == Class::StolenPrefix;
            if known != expected && !(stolen && known.is_superset(&expected)) {
                return Err(format!("node {node} knows {known:?}, there are {expected:?}"));
            }
            let writers = self.writers.iter().filter(|w| w.exists).map(|w| (w.writer.node, w.writer.guid));
            let readers = self.readers.iter().filter(|r| r.exists).map(|r| (r.reader.node, r.reader.guid));
            let there: BTreeSet<Guid> = writers
                .chain(readers)
                .filter(|(other, _)| *other != node && trusted(*other))
                .map(|(_, guid)| guid)
                .collect();
            let known = database.endpoints().map(|endpoint| endpoint.guid);
            let zero = self.network.prefix(0);
            let known: BTreeSet<Guid> = known.filter(|guid| trusted(0) || guid.prefix != zero).collect();
            if known != there {
                return Err(format!("node {node} knows the endpoints {known:?}, there are {there:?}"));
            }
        }
        Ok(())
    }

    fn check_pair(&self, writer: &WriterRecord, reader: &ReaderRecord) -> Result<(), String> {
        let should = writer.topic == reader.topic && compatible(&writer.qos, &reader.qos);
        let is = self.network.is_matched(&writer.writer, &reader.reader);
        let who = format!("{} and {}", writer.writer.guid, reader.reader.guid);
        if is != (should, should) {
            return Err(format!("{who}: matched on the two sides {is:?}, should be {should}"));
        }
        if !should {
            return Ok(());
        }
        // Made-up readers of node 0 acknowledge nothing.
        if self.plan.class != Class::StolenPrefix && !self.is_acknowledged(writer) {
            return Err(format!("{who}: not all is acknowledged"));
        }
        let has_spoken = writer.times.last().is_some_and(|at| *at >= self.spoke_at);
        if !has_spoken && reader.seen.get(&writer.writer.tag).is_some_and(|seen| seen.matches > 1) {
            return Ok(());
        }
        check_complete(&self.network, writer, reader, self.is_alone(writer))
    }

    /// Has no other writer of the topic, of now or before, written instances of this one?
    fn is_alone(&self, writer: &WriterRecord) -> bool {
        let others = self.writers.iter().filter(|other| other.topic == writer.topic).count() > 1;
        let apart = self.plan.topics[writer.topic].keyed && !self.plan.shared_keys;
        // A forged sample may name any instance.
        self.plan.class != Class::StolenPrefix && (!others || apart)
    }

    fn matched<'a>(&'a self, reader: &'a ReaderRecord) -> impl Iterator<Item = &'a WriterRecord> {
        self.writers.iter().filter(|w| w.exists && w.topic == reader.topic && compatible(&w.qos, &reader.qos))
    }

    /// What has ended is not alive, and what was written and has not ended is.
    fn check_instances(&self) -> Result<(), String> {
        for reader in self.readers.iter().filter(|r| r.exists) {
            let state = |key| self.instance_state(reader, instance(key));
            for writer in self.writers.iter().filter(|w| w.topic == reader.topic && self.is_alone(w)) {
                if !self.plan.topics[writer.topic].keyed {
                    continue;
                }
                let Some(seen) = reader.seen.get(&writer.writer.tag) else { continue };
                let mut last: BTreeMap<u32, (u64, ChangeKind)> = BTreeMap::new();
                for (number, (key, kind)) in (1..).zip(&writer.changes) {
                    last.insert(*key, (number, *kind));
                }
                let matched = writer.exists && compatible(&writer.qos, &reader.qos);
                let liveliness = writer.qos.writer.liveliness;
                let silent =
                    liveliness.kind != LivelinessKind::Automatic && !liveliness.lease_duration.is_infinite();
                for (key, (number, kind)) in last {
                    let found = state(key);
                    let fail = |what: &str| {
                        Err(format!(
                            "reader {}: instance {key} of {} is {found:?} {what}",
                            reader.reader.guid, writer.writer.guid
                        ))
                    };
                    if !matched || silent {
                        if found == Some(InstanceState::Alive) {
                            return fail("though its writer has gone");
                        }
                        continue;
                    }
                    if reader.qos.reader.reliability.kind != ReliabilityKind::Reliable {
                        continue;
                    }
                    let ended = kind != ChangeKind::Alive;
                    // All samples are taken: an instance that nobody writes is forgotten.
                    let since = writer.matched_at.get(&reader.reader.guid).copied().unwrap_or(0);
                    if number <= since {
                        continue;
                    }
                    if ended && found == Some(InstanceState::Alive) {
                        return fail("though it has ended");
                    }
                    if kind == ChangeKind::NotAliveUnregistered
                        && found == Some(InstanceState::NotAliveNoWriters)
                    {
                        return fail("though nobody writes it and all is taken");
                    }
                    if !ended
                        && seen.ever.contains(&number)
                        && found != Some(InstanceState::Alive)
                        && seen.matches == 1
                        && liveliness.lease_duration.is_infinite()
                    {
                        return fail("though it has been written");
                    }
                }
            }
        }
        Ok(())
    }

    /// Whoever has taken all knows of each instance that has ended, even if it is forgotten since: that it was written is
    /// not the last that was said of it. Nobody says so of what goes by its age.
    fn check_told(&self) -> Result<(), String> {
        let keyed = |r: &&ReaderRecord| self.plan.topics[r.topic].keyed;
        for reader in self.readers.iter().filter(keyed).filter(|r| r.exists && !r.is_purged()) {
            for (handle, told) in &reader.told {
                let found = self.instance_state(reader, InstanceHandle(*handle));
                if *told == InstanceState::Alive && found != Some(InstanceState::Alive) {
                    return Err(format!(
                        "reader {}: instance {handle:02x?} is {found:?}, and it was not told",
                        reader.reader.guid
                    ));
                }
            }
            for writer in self.matched(reader).filter(|w| self.is_alone(w) && is_followed(w, reader)) {
                check_ends(writer, reader)?;
            }
        }
        Ok(())
    }

    fn instance_state(&self, reader: &ReaderRecord, handle: InstanceHandle) -> Option<InstanceState> {
        let participant = self.network.participant(reader.reader.node)?;
        participant.side(reader.reader.index, |side| side.cache.instance_state(handle)).flatten()
    }

    /// The strongest of its writers has been heard last.
    fn check_owners(&self) -> Result<(), String> {
        for reader in self.readers.iter().filter(|r| r.exists) {
            let r = &reader.qos.reader;
            if r.ownership != OwnershipKind::Exclusive
                || r.reliability.kind != ReliabilityKind::Reliable
                || reader.filter.is_some()
                || r.time_based_filter > Duration::ZERO
                || r.destination_order == DestinationOrderKind::BySourceTimestamp
                || !r.reader_data_lifecycle.autopurge_nowriter_samples_delay.is_infinite()
                || !r.reader_data_lifecycle.autopurge_disposed_samples_delay.is_infinite()
                || r.resource_limits.max_instances.is_some()
            {
                continue;
            }
            let strongest = self
                .matched(reader)
                .max_by_key(|w| (w.qos.writer.ownership_strength, std::cmp::Reverse(w.writer.guid)));
            let Some(writer) = strongest else { continue };
            let spoke = writer.times.last().is_some_and(|at| *at >= self.spoke_at);
            let last = writer.changes.len() as u64;
            let seen = reader.seen.get(&writer.writer.tag).is_some_and(|seen| seen.ever.contains(&last));
            if spoke && writer.qos.writer.lifespan.is_infinite() && !seen {
                return Err(format!(
                    "reader {}: number {last} of {}, the strongest, is missing",
                    reader.reader.guid, writer.writer.guid
                ));
            }
        }
        Ok(())
    }

    fn check_statuses(&mut self) -> Result<(), String> {
        for reader in self.readers.iter().filter(|r| r.exists) {
            let Some(participant) = self.network.participant(reader.reader.node) else { continue };
            let Some(entity) = participant.reader(reader.reader.index) else { continue };
            let (matched, liveliness) = (&entity.subscription_matched, &entity.liveliness_changed);
            let who = reader.reader.guid;
            let writers: Vec<_> = self.matched(reader).collect();
            let count = writers.len() as u32;
            if matched.current_count != count
                || matched.current_count_change != count as i32
                || matched.total_count < count
                || matched.total_count_change != matched.total_count as i32
            {
                return Err(format!("reader {who}: {matched:?} of {count} writers"));
            }
            let silent = writers.iter().filter(|w| {
                let of = w.qos.writer.liveliness;
                of.kind != LivelinessKind::Automatic && !of.lease_duration.is_infinite()
            });
            let silent = silent.count() as u32;
            if (liveliness.alive_count, liveliness.not_alive_count) != (count - silent, silent)
                || liveliness.alive_count_change != (count - silent) as i32
                || liveliness.not_alive_count_change != silent as i32
            {
                return Err(format!("reader {who}: {liveliness:?} of {count} writers, {silent} silent"));
            }
            let incompatible = self.writers.iter().any(|w| {
                w.exists
                    && w.topic == reader.topic
                    && same_partition(&w.qos, &reader.qos)
                    && !compatible(&w.qos, &reader.qos)
            });
            if incompatible && entity.requested_incompatible_qos.total_count == 0 {
                return Err(format!("reader {who}: nobody tells that a writer is incompatible"));
            }
            self.check_lost(reader)?;
        }
        for writer in self.writers.iter().filter(|w| w.exists) {
            let Some(participant) = self.network.participant(writer.writer.node) else { continue };
            let Some(entity) = participant.writer(writer.writer.index) else { continue };
            let matched = &entity.publication_matched;
            let readers = self
                .readers
                .iter()
                .filter(|r| r.exists && r.topic == writer.topic && compatible(&writer.qos, &r.qos));
            let count = readers.count() as u32;
            if matched.current_count != count
                || matched.current_count_change != count as i32
                || matched.total_count < count
                || matched.total_count_change != matched.total_count as i32
            {
                return Err(format!("writer {}: {matched:?} of {count} readers", writer.writer.guid));
            }
            let of = writer.qos.writer.liveliness;
            let silent = of.kind != LivelinessKind::Automatic && !of.lease_duration.is_infinite();
            if silent != (entity.liveliness_lost.total_count > 0) {
                return Err(format!("writer {}: {:?} {of:?}", writer.writer.guid, entity.liveliness_lost));
            }
        }
        Ok(())
    }

    /// A best-effort reader is told of what it lost.
    fn check_lost(&self, reader: &ReaderRecord) -> Result<(), String> {
        let r = &reader.qos.reader;
        let Some(participant) = self.network.participant(reader.reader.node) else { return Ok(()) };
        let told = participant.side(reader.reader.index, |side| {
            (side.sample_lost.total_count, side.sample_rejected.total_count)
        });
        let (lost, rejected) = told.unwrap_or_default();
        let of_topic = || self.writers.iter().filter(|w| w.topic == reader.topic);
        let calm = self.plan.class != Class::Wild;
        if r.reliability.kind == ReliabilityKind::Reliable {
            let all = of_topic()
                .all(|w| w.qos.writer.history == History::KeepAll && w.qos.writer.lifespan.is_infinite());
            if calm && all && lost > 0 {
                return Err(format!("reader {}: {lost} lost", reader.reader.guid));
            }
            if rejected > 0 && r.resource_limits.max_instances.is_none() {
                return Err(format!("reader {}: {rejected} rejected", reader.reader.guid));
            }
            return Ok(());
        }
        let purge = r.reader_data_lifecycle;
        if r.durability != DurabilityKind::Volatile
            || r.history != History::KeepAll
            || !purge.autopurge_nowriter_samples_delay.is_infinite()
            || !purge.autopurge_disposed_samples_delay.is_infinite()
            || r.ownership == OwnershipKind::Exclusive
            || r.destination_order == DestinationOrderKind::BySourceTimestamp
            || r.time_based_filter > Duration::ZERO
            || reader.filter.is_some()
            || of_topic().any(|w| !w.qos.writer.lifespan.is_infinite())
            || reader.seen.values().any(|seen| seen.matches > 1)
        {
            return Ok(());
        }
        let (mut least, mut most) = (0, 0);
        for writer in of_topic() {
            let Some(seen) = reader.seen.get(&writer.writer.tag) else { continue };
            let (Some(first), Some(last)) = (seen.ever.first(), seen.ever.last()) else { continue };
            let missing = (*first..*last).filter(|n| !seen.ever.contains(n));
            least +=
                missing.filter(|n| writer.changes[*n as usize - 1].1 == ChangeKind::Alive).count() as u32;
            most += (writer.changes.len() - seen.ever.len()) as u32;
        }
        if lost + rejected < least {
            return Err(format!(
                "reader {}: {least} missing, {lost} lost, {rejected} rejected",
                reader.reader.guid
            ));
        }
        let no_more =
            of_topic().all(|w| reader.seen.get(&w.writer.tag).is_some_and(|seen| !seen.ever.is_empty()));
        if no_more && lost > most {
            return Err(format!("reader {}: {lost} lost of {most}", reader.reader.guid));
        }
        Ok(())
    }

    /// What everybody has is kept by nobody.
    fn check_memory(&mut self) -> Result<(), String> {
        for writer in self.writers.iter().filter(|w| w.exists) {
            let Some(participant) = self.network.participant(writer.writer.node) else { continue };
            let Some(entity) = participant.core().writer(writer.writer.index) else { continue };
            let held = entity.changes_held();
            let w = &writer.qos.writer;
            let keys: BTreeSet<u32> = writer.changes.iter().map(|(key, _)| *key).collect();
            let most = match w.history {
                _ if w.durability == DurabilityKind::Volatile => 0,
                History::KeepLast(depth) => depth as usize * keys.len(),
                History::KeepAll => usize::MAX,
            };
            if held > most {
                return Err(format!("writer {}: {held} changes held, at most {most}", writer.writer.guid));
            }
            let ends = writer.changes.iter().filter(|(_, kind)| *kind != ChangeKind::Alive).count();
            if self.spoke_at + w.lifespan < self.network.now() && held > ends && !w.lifespan.is_infinite() {
                return Err(format!("writer {}: {held} changes held that are too old", writer.writer.guid));
            }
        }
        for reader in self.readers.iter().filter(|r| r.exists) {
            let Some(participant) = self.network.participant(reader.reader.node) else { continue };
            let Some(entity) = participant.core().reader(reader.reader.index) else { continue };
            let in_assembly: usize =
                entity.proxies.values().filter(|p| p.reliable).map(|p| p.assemblies.len()).sum();
            let blocked = entity.proxies.values().filter(|p| p.is_blocked()).count();
            let held = participant.side(reader.reader.index, |side| side.cache.len()).unwrap_or(0);
            if in_assembly + blocked + held > 0 {
                return Err(format!(
                    "reader {}: {in_assembly} in assembly, {blocked} blocked, {held} in the cache",
                    reader.reader.guid
                ));
            }
        }
        Ok(())
    }

    fn note_sometimes(&mut self) {
        let mut hits = Vec::new();
        for writer in &self.writers {
            for reader in self.readers.iter().filter(|reader| reader.topic == writer.topic) {
                let same = same_partition(&writer.qos, &reader.qos);
                hits.push((!same, "other partition"));
                hits.push((same && !compatible(&writer.qos, &reader.qos), "incompatible QoS"));
                let seen = reader.seen.get(&writer.writer.tag);
                let local = writer.writer.node == reader.reader.node
                    && seen.is_some_and(|seen| !seen.ever.is_empty());
                hits.push((local, "reader in the writer's participant"));
                let late = seen.is_some_and(|seen| seen.now.len() > 256 && seen.now.contains(&1));
                hits.push((
                    late && reader.reader.guid.entity > writer.writer.guid.entity,
                    "late joiner over 256 samples",
                ));
            }
        }
        hits.extend(self.readers.iter().flat_map(|reader| self.policies_of(reader)));
        let nodes = self.network.nodes.iter();
        hits.extend(nodes.map(|node| (node.matched_in_steps, "matched in steps")));
        hits.into_iter().for_each(|(reached, branch)| self.sometimes.hit_if(reached, branch));
    }

    /// What has left samples out of a reader.
    fn policies_of(&self, reader: &ReaderRecord) -> Vec<(bool, &'static str)> {
        let index = reader.reader.index;
        let participant = self.network.participant(reader.reader.node).filter(|_| reader.exists);
        let filtered = participant.and_then(|p| p.side(index, |side| side.filtered_out));
        let missed = participant.and_then(|p| Some(p.reader(index)?.requested_deadline_missed.total_count));
        let purged = |(handle, state): (&[u8; 16], &InstanceState)| {
            let found = self.instance_state(reader, InstanceHandle(*handle));
            *state == InstanceState::Alive && found.is_none()
        };
        let is_purged = participant.is_some() && self.plan.topics[reader.topic].keyed;
        let is_purged = is_purged && reader.is_purged() && reader.told.iter().any(purged);
        let is_exclusive = reader.qos.reader.ownership == OwnershipKind::Exclusive;
        let leaves_gap = |by_lifespan| self.matched(reader).any(|w| leaves_gap(w, reader, by_lifespan));
        vec![
            (filtered.is_some_and(|count| count > 0), "filtered"),
            (missed.is_some_and(|count| count > 0), "deadline missed"),
            (is_purged, "purged"),
            (is_exclusive && reader.taken_over, "ownership taken over"),
            (leaves_gap(true), "expired"),
            (leaves_gap(false), "separated"),
        ]
    }

    /// An idle system says that it is there, and nothing else.
    fn check_quiet(&mut self) -> Result<(), String> {
        let before = self.network.sent();
        let timeouts: u64 = self.network.nodes.iter().map(|node| node.timeouts).sum();
        self.run_for(WATCH)?;
        let sent = self.network.sent().since(&before);
        let timeouts = self.network.nodes.iter().map(|node| node.timeouts).sum::<u64>() - timeouts;
        let nodes = self.network.nodes.len() as u64;
        // Announcements each 500 ms at most, to all by unicast at worst; liveliness each 167 ms at most, with
        // heartbeat and acknowledgement for each peer.
        let announcements = nodes * nodes.max(2) * 21;
        let liveliness = if self.writers.iter().any(|w| !w.qos.writer.liveliness.lease_duration.is_infinite())
        {
            nodes * nodes * 61 * 5
        } else {
            0
        };
        if sent.user_traffic() + sent.sedp > 0 || sent.spdp > announcements || sent.wlp > liveliness {
            return Err(format!("not quiet: {sent:?}"));
        }
        let watching =
            self.readers.iter().filter(|r| r.exists && !r.qos.reader.deadline.is_infinite()).count();
        let bound = nodes * (25 + 61 * 4) + sent.datagrams + watching as u64 * 11 * 128;
        if timeouts > bound {
            Err(format!("{timeouts} timeouts while idle, at most {bound}"))
        } else {
            Ok(())
        }
    }
}

/// Does a reader hear in which way each instance of a writer ends?
fn is_followed(writer: &WriterRecord, reader: &ReaderRecord) -> bool {
    reader.qos.reader.reliability.kind == ReliabilityKind::Reliable
        && writer.qos.writer.liveliness.lease_duration.is_infinite()
        && reader.seen.get(&writer.writer.tag).is_some_and(|seen| seen.matches == 1)
}

/// Of an instance whose last change but one has come, the reader has heard in which way it ended.
fn check_ends(writer: &WriterRecord, reader: &ReaderRecord) -> Result<(), String> {
    let Some(seen) = reader.seen.get(&writer.writer.tag) else { return Ok(()) };
    let since = writer.matched_at.get(&reader.reader.guid).copied().unwrap_or(u64::MAX);
    let mut last: BTreeMap<u32, (u64, ChangeKind, bool)> = BTreeMap::new();
    for (number, (key, kind)) in (1..).zip(&writer.changes) {
        let is_heard = last.get(key).is_some_and(|(before, _, _)| seen.ever.contains(before));
        last.insert(*key, (number, *kind, is_heard));
    }
    for (key, (number, kind, is_heard)) in last {
        let state = match kind {
            kind if disposes(kind) => InstanceState::NotAliveDisposed,
            ChangeKind::NotAliveUnregistered => InstanceState::NotAliveNoWriters,
            _ => continue,
        };
        let told = reader.told.get(&instance(key).0);
        if is_heard && number > since && told != Some(&state) {
            let (of, who) = (writer.writer.guid, reader.reader.guid);
            return Err(format!("reader {who}: {told:?} of instance {key} of {of}, which is {state:?}"));
        }
    }
    Ok(())
}

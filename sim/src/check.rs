//! What must be true at the end of a seed.

use std::collections::BTreeSet;

use taut_base::{Duration, Guid};

use crate::oracle::{ReaderRecord, WriterRecord, check_complete, compatible, same_partition};
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
        check_complete(&self.network, writer, reader, self.is_alone(writer))
    }

    /// Has no other writer of the topic, of now or before, written instances of this one?
    fn is_alone(&self, writer: &WriterRecord) -> bool {
        let others = self.writers.iter().filter(|other| other.topic == writer.topic).count() > 1;
        let apart = self.plan.topics[writer.topic].keyed && !self.plan.shared_keys;
        // A forged sample may name any instance.
        self.plan.class != Class::StolenPrefix && (!others || apart)
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
        hits.into_iter().for_each(|(reached, branch)| self.sometimes.hit_if(reached, branch));
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
        let bound = nodes * (25 + 61 * 4) + sent.datagrams;
        if timeouts > bound {
            Err(format!("{timeouts} timeouts while idle, at most {bound}"))
        } else {
            Ok(())
        }
    }
}

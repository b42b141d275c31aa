//! What must be true of samples: a naive record of what was written and taken, and of who was matched.

use std::collections::{BTreeMap, BTreeSet};

use taut_base::{Duration, Guid, GuidPrefix, Time};
use taut_dcps::{InstanceState, SampleInfo};
use taut_qos::{
    DestinationOrderKind, DurabilityKind, History, OwnershipKind, Qos, ReliabilityKind, ResourceLimits,
};
use taut_rtps::ChangeKind;

use crate::endpoint::{SimReader, SimWriter, Taken};
use crate::network::Network;
use crate::payload::{Content, instance};

/// Longer than any datagram takes.
const ON_THE_WAY: Duration = Duration::from_secs(1);
/// For longer than that something is sent again to a group, until all there that are reliable have it: each time they ask for it
/// takes two ways.
const SENT_AGAIN: Duration = Duration::from_secs(5);

/// A writer and what it did.
pub struct WriterRecord {
    /// The writer.
    pub writer: SimWriter,
    /// Its topic's place.
    pub topic: usize,
    /// Its QoS.
    pub qos: Qos,
    /// Does it still exist?
    pub exists: bool,
    /// Which incarnation of its node it is of.
    pub incarnation: u32,
    /// What it did to which instance, by number from 1.
    pub changes: Vec<(u32, ChangeKind)>,
    /// When it did so.
    pub times: Vec<Time>,
    /// By reader: how many changes it had written when it matched that reader, the last time.
    pub matched_at: BTreeMap<Guid, u64>,
    /// The same for the first time.
    pub first_matched_at: BTreeMap<Guid, u64>,
}

/// What a reader has of one writer.
#[derive(Default)]
pub struct Seen {
    /// When it matched that writer first.
    pub since: Time,
    /// How often it has matched that writer.
    pub matches: u32,
    /// Numbers taken in the present match.
    pub now: BTreeSet<u64>,
    /// Numbers taken in any.
    pub ever: BTreeSet<u64>,
    /// By instance, the last number taken in the present match.
    last: BTreeMap<u32, u64>,
}

/// A reader and what it got.
pub struct ReaderRecord {
    /// The reader.
    pub reader: SimReader,
    /// Its topic's place.
    pub topic: usize,
    /// Its QoS.
    pub qos: Qos,
    /// Does it still exist?
    pub exists: bool,
    /// What it has of each writer, by tag.
    pub seen: BTreeMap<u64, Seen>,
    /// Of each instance, the state that it was told last.
    pub told: BTreeMap<[u8; 16], InstanceState>,
    /// Of each instance, the writer whose sample was taken last.
    owners: BTreeMap<[u8; 16], u64>,
    /// Has a writer taken over an instance from another one that has come before?
    pub taken_over: bool,
    /// Whom it is matched with.
    pub matched: BTreeSet<Guid>,
    /// It lets in the numbers of a writer that are no multiples of this.
    pub filter: Option<u64>,
}

/// Does it end an instance for all?
pub fn disposes(kind: ChangeKind) -> bool {
    matches!(kind, ChangeKind::NotAliveDisposed | ChangeKind::NotAliveDisposedUnregistered)
}

/// Must these two match? Written down apart from the code that is under test.
pub fn compatible(writer: &Qos, reader: &Qos) -> bool {
    let reliability = writer.writer.reliability.kind == ReliabilityKind::Reliable
        || reader.reader.reliability.kind == ReliabilityKind::BestEffort;
    let durability = writer.writer.durability != DurabilityKind::Volatile
        || reader.reader.durability == DurabilityKind::Volatile;
    let (w, r) = (&writer.writer, &reader.reader);
    let order = w.destination_order == DestinationOrderKind::BySourceTimestamp
        || r.destination_order == DestinationOrderKind::ByReceptionTimestamp;
    let deadline = w.deadline <= r.deadline;
    let liveliness =
        w.liveliness.kind >= r.liveliness.kind && w.liveliness.lease_duration <= r.liveliness.lease_duration;
    reliability && durability && order && deadline && liveliness && same_partition(writer, reader)
}

/// Have these two a partition in common? Only the names that `plan` draws.
pub fn same_partition(writer: &Qos, reader: &Qos) -> bool {
    match (&writer.publisher.partition[..], &reader.subscriber.partition[..]) {
        ([], []) => true,
        ([], [one]) | ([one], []) => one.is_empty(),
        // The list with patterns also names the default partition; two patterns do not match each other.
        (many, other) | (other, many) if many.len() == 3 && other.len() <= 1 => true,
        (a, b) => a == b,
    }
}

impl WriterRecord {
    /// Was a change written so long before `match_at` that it cannot have been on its way then?
    fn is_before(&self, number: u64, reader: &ReaderRecord, match_at: Time) -> bool {
        let takes_all = reader.qos.reader.reliability.kind == ReliabilityKind::BestEffort;
        let on_the_way = if takes_all { SENT_AGAIN } else { ON_THE_WAY };
        let written = usize::try_from(number - 1).ok().and_then(|at| self.times.get(at));
        written.is_some_and(|at| *at + on_the_way < match_at)
    }
}

impl ReaderRecord {
    /// A reader that has nothing.
    pub fn new(reader: SimReader, topic: usize, qos: Qos, filter: Option<u64>) -> ReaderRecord {
        let (seen, told, owners, matched) = Default::default();
        ReaderRecord {
            reader,
            topic,
            qos,
            exists: true,
            seen,
            told,
            owners,
            taken_over: false,
            matched,
            filter,
        }
    }

    /// What is too old, or does not pass its filter, is not let in. How old it is says the reader's wall clock. What was from
    /// the future when it came counts from then, and is no longer there than that: it came before its timestamp.
    fn check_let_in(&self, network: &Network, number: u64, record: &WriterRecord) -> Result<(), String> {
        let (who, of, lifespan) = (self.reader.guid, record.writer.guid, record.qos.writer.lifespan);
        let offset = |node: usize| network.nodes[node].options.wall_offset;
        let ahead = offset(self.reader.node).0 - offset(record.writer.node).0;
        let age = Duration(network.now().since(record.times[number as usize - 1]).0 + ahead);
        if age.0.saturating_sub(1_000) > lifespan.0 {
            return Err(format!(
                "reader {who}: number {number} of {of} is {age:?} old, its lifespan {lifespan:?}"
            ));
        }
        if !self.passes(number) {
            return Err(format!("reader {who}: number {number} of {of} does not pass"));
        }
        Ok(())
    }

    /// Must it know that a writer has disposed an instance between two samples of it that it takes together?
    fn is_between(&self, record: &WriterRecord, before: u64, content: &Content) -> bool {
        let r = &self.qos.reader;
        // A writer that has forgotten the reader meanwhile, and found it again, says nothing of what it wrote in between.
        let is_one_match = record.matched_at.get(&self.reader.guid).is_some_and(|since| before > *since);
        let follows = is_one_match
            && r.reliability.kind == ReliabilityKind::Reliable
            && r.ownership == OwnershipKind::Shared
            && r.destination_order == DestinationOrderKind::ByReceptionTimestamp
            && record.qos.writer.history == History::KeepAll;
        let is_disposed = |(key, kind): &(u32, ChangeKind)| *key == content.key && disposes(*kind);
        let (from, to) = (before as usize, content.number as usize - 1);
        follows && record.changes.get(from..to).is_some_and(|between| between.iter().any(is_disposed))
    }

    fn is_alive(&self, network: &Network, key: u32) -> bool {
        let state = network.participant(self.reader.node).and_then(|participant| {
            participant.side(self.reader.index, |side| side.cache.instance_state(instance(key)))
        });
        state.flatten() == Some(InstanceState::Alive)
    }

    /// Does it drop instances by their age?
    pub fn is_purged(&self) -> bool {
        let purge = self.qos.reader.reader_data_lifecycle;
        !purge.autopurge_nowriter_samples_delay.is_infinite()
            || !purge.autopurge_disposed_samples_delay.is_infinite()
    }

    fn passes(&self, number: u64) -> bool {
        self.filter.is_none_or(|filter| !number.is_multiple_of(filter))
    }

    /// The writer that has written a sample so.
    fn writer_of<'a>(
        &self,
        content: &Content,
        info: &SampleInfo,
        writers: &'a [WriterRecord],
    ) -> Result<&'a WriterRecord, String> {
        let who = self.reader.guid;
        let Some(record) = writers.iter().find(|record| record.writer.tag == content.tag) else {
            return Err(format!("reader {who}: a sample of nobody: {content:?}"));
        };
        let publication = Guid::from_bytes(info.publication_handle.0);
        if publication != record.writer.guid || record.topic != self.topic {
            return Err(format!("reader {who}: {content:?} is said to be of {publication}"));
        }
        let written = usize::try_from(content.number - 1).ok().and_then(|at| record.changes.get(at));
        if written != Some(&(content.key, ChangeKind::Alive)) {
            return Err(format!("reader {who}: {content:?} was not written so"));
        }
        Ok(record)
    }

    /// Takes samples into account.
    pub fn note(
        &mut self,
        network: &Network,
        taken: &[Taken],
        writers: &[WriterRecord],
        distrusted: Option<GuidPrefix>,
    ) -> Result<(), String> {
        let who = self.reader.guid;
        let trusted = |sample: &&Taken| {
            sample.info.valid_data
                && distrusted != Some(Guid::from_bytes(sample.info.publication_handle.0).prefix)
        };
        self.told.extend(taken.iter().map(|sample| (sample.info.instance_handle.0, sample.state())));
        let mut per_instance: BTreeMap<[u8; 16], u32> = BTreeMap::new();
        let (mut latest, mut generations) = (BTreeMap::new(), BTreeMap::new());
        for sample in taken.iter().filter(trusted) {
            let Some(content) = sample.content else { return Err(format!("reader {who}: a damaged sample")) };
            let record = self.writer_of(&content, &sample.info, writers)?;
            self.check_let_in(network, content.number, record)?;
            if self.qos.reader.destination_order == DestinationOrderKind::BySourceTimestamp {
                let before = latest.insert(sample.info.instance_handle.0, sample.info.source_timestamp);
                if before.is_some_and(|before| before > sample.info.source_timestamp) {
                    return Err(format!("reader {who}: {content:?} is older than what came before it"));
                }
            }
            let generation = (content.number, sample.info.disposed_generation_count);
            let before = generations.insert((content.tag, content.key), generation);
            if before
                .is_some_and(|before| before.1 >= generation.1 && self.is_between(record, before.0, &content))
            {
                return Err(format!(
                    "reader {who}: {content:?} is of generation {generation:?}, as {before:?}"
                ));
            }
            let newer = writers.iter().any(|other| {
                other.writer.guid.prefix == record.writer.guid.prefix
                    && other.incarnation > record.incarnation
                    && self.seen.get(&other.writer.tag).is_some_and(|seen| !seen.ever.is_empty())
            });
            if newer {
                return Err(format!("reader {who}: {content:?} of an incarnation that is over"));
            }
            let owner = self.owners.insert(sample.info.instance_handle.0, content.tag);
            self.taken_over |= owner.is_some_and(|owner| owner != content.tag);
            let seen = self.seen.entry(content.tag).or_default();
            if !seen.now.insert(content.number) {
                return Err(format!("reader {who}: {content:?} twice"));
            }
            seen.ever.insert(content.number);
            let last = seen.last.entry(content.key).or_default();
            if *last >= content.number {
                return Err(format!("reader {who}: {content:?} after number {last}"));
            }
            *last = content.number;
            *per_instance.entry(sample.info.instance_handle.0).or_default() += 1;
        }
        let most = per_instance.values().max().copied().unwrap_or(0);
        match self.qos.reader.history {
            History::KeepLast(depth) if most > depth => {
                Err(format!("reader {who}: {most} samples at depth {depth}"))
            }
            _ => Ok(()),
        }
    }

    /// A best-effort reader takes what lay in its sockets when it matched, and what others are sent again. Where processes
    /// stop, any of them, that may be of long ago.
    fn takes_late(&self, network: &Network) -> bool {
        self.qos.reader.reliability.kind == ReliabilityKind::BestEffort
            && (0..network.nodes.len()).any(|node| network.has_paused(node))
    }

    /// A match with a writer begins. One that was lost and is found again goes on, as the standard has a RELIABLE reader get
    /// each sample once, but where what the writer keeps is all that says that instances are there again.
    pub fn begin(&mut self, now: Time, tag: u64) {
        let gets_history_again = {
            let qos = &self.qos.reader;
            qos.reliability.kind != ReliabilityKind::Reliable
                || qos.durability != DurabilityKind::Volatile && qos.history != History::KeepAll
        };
        let seen = self.seen.entry(tag).or_insert_with(|| Seen { since: now, ..Seen::default() });
        seen.matches += 1;
        if seen.matches > 1 && gets_history_again {
            seen.now.clear();
            seen.last.clear();
        }
    }
}

/// The number after which a reliable reader is owed everything.
fn owed_since(writer: &WriterRecord, reader: &ReaderRecord, seen: &Seen) -> Result<u64, String> {
    match writer.matched_at.get(&reader.reader.guid) {
        _ if reader.qos.reader.durability != DurabilityKind::Volatile => Ok(0),
        // A reader that has forgotten the writer and found it again takes what is unacknowledged for
        // history if the writer keeps one. Then only what every seed writes at its end is owed.
        Some(_) if seen.matches > 1 && writer.qos.writer.durability != DurabilityKind::Volatile => {
            Ok(writer.changes.len().saturating_sub(1) as u64)
        }
        Some(since) => Ok(*since),
        None => Err(format!("{} has never matched {}", writer.writer.guid, reader.reader.guid)),
    }
}

/// Is something missing between the samples that a reader has of a writer, and only this leaves samples out, LIFESPAN or
/// TIME_BASED_FILTER?
pub fn leaves_gap(writer: &WriterRecord, reader: &ReaderRecord, by_lifespan: bool) -> bool {
    let (w, r) = (&writer.qos.writer, &reader.qos.reader);
    let Some(seen) = reader.seen.get(&writer.writer.tag) else { return false };
    let (Some(first), Some(last)) = (seen.ever.first(), seen.ever.last()) else { return false };
    let is_kept = w.history == History::KeepAll
        && r.history == History::KeepAll
        && r.reliability.kind == ReliabilityKind::Reliable
        && r.ownership == OwnershipKind::Shared
        && r.destination_order == DestinationOrderKind::ByReceptionTimestamp
        && r.resource_limits.max_instances.is_none()
        && seen.matches == 1
        && !reader.is_purged();
    let is_only =
        (!w.lifespan.is_infinite(), r.time_based_filter > Duration::ZERO) == (by_lifespan, !by_lifespan);
    let is_missing = |n: u64| writer.changes[n as usize - 1].1 == ChangeKind::Alive && reader.passes(n);
    is_kept && is_only && (*first..*last).any(|n| !seen.ever.contains(&n) && is_missing(n))
}

/// Are there policies by which a reliable reader need not have what was written last?
fn leaves_out(writer: &WriterRecord, reader: &ReaderRecord, alone: bool) -> bool {
    let (w, r) = (&writer.qos.writer, &reader.qos.reader);
    let is_filtered = r.time_based_filter > Duration::ZERO;
    !w.lifespan.is_infinite()
        || reader.is_purged()
        || r.ownership == OwnershipKind::Exclusive
        || r.resource_limits.max_instances.is_some()
        || (r.destination_order == DestinationOrderKind::BySourceTimestamp && !alone)
        || (is_filtered && (!alone || r.resource_limits != ResourceLimits::default()))
}

/// Checks that a reader has had of each instance as many as HISTORY keeps.
fn check_depth(writer: &WriterRecord, reader: &ReaderRecord, seen: &Seen, since: u64) -> Result<(), String> {
    let (w, r) = (&writer.qos.writer, &reader.qos.reader);
    if r.time_based_filter > Duration::ZERO || w.resource_limits != ResourceLimits::default() {
        return Ok(());
    }
    let depth = |history: History| match history {
        History::KeepLast(depth) => depth as usize,
        History::KeepAll => usize::MAX,
    };
    let kept = depth(w.history).min(depth(r.history));
    let mut all: BTreeMap<u32, Vec<(u64, ChangeKind)>> = BTreeMap::new();
    // What has ended before they matched a durable KEEP_LAST writer may have forgotten.
    let forgets = w.history != History::KeepAll;
    let matched_at = writer.matched_at.get(&reader.reader.guid).copied().filter(|_| forgets).unwrap_or(0);
    for (number, (key, kind)) in (1..).zip(&writer.changes).filter(|(number, _)| *number > since) {
        let of_instance = all.entry(*key).or_default();
        if *kind == ChangeKind::NotAliveDisposedUnregistered && number <= matched_at {
            of_instance.clear();
            continue;
        }
        of_instance.push((number, *kind));
    }
    for (key, all) in all {
        for (number, kind) in all.into_iter().rev().take(kept) {
            if kind == ChangeKind::Alive && reader.passes(number) && !seen.ever.contains(&number) {
                let (writer, reader) = (writer.writer.guid, reader.reader.guid);
                let what = format!("number {number}, of the last {kept} of instance {key}, is missing");
                return Err(format!("writer {writer} -> reader {reader}: {what}"));
            }
        }
    }
    Ok(())
}

/// Checks that a reliable reader has all that a writer owes it. `alone`: no other writer has ever written
/// the instances of this one.
pub fn check_complete(
    network: &Network,
    writer: &WriterRecord,
    reader: &ReaderRecord,
    alone: bool,
) -> Result<(), String> {
    let (w, r) = (&writer.qos.writer, &reader.qos.reader);
    let empty = Seen::default();
    let seen = reader.seen.get(&writer.writer.tag).unwrap_or(&empty);
    let durable = r.durability != DurabilityKind::Volatile;
    let volatile = w.durability == DurabilityKind::Volatile || !durable;
    let first = writer.first_matched_at.get(&reader.reader.guid).copied().unwrap_or(0);
    // Either side may match first; a change is old if it was written before both did.
    let takes_late = reader.takes_late(network);
    let is_old = |number: &&u64| {
        volatile && !takes_late && **number <= first && writer.is_before(**number, reader, seen.since)
    };
    if let Some(old) = seen.ever.first().filter(is_old) {
        let writer = writer.writer.guid;
        return Err(format!("{}: number {old} of {writer} is older than the match", reader.reader.guid));
    }
    if r.reliability.kind != ReliabilityKind::Reliable {
        return Ok(());
    }
    let since = owed_since(writer, reader, seen)?;
    let is_filtered = r.time_based_filter > Duration::ZERO;
    if leaves_out(writer, reader, alone) {
        return Ok(());
    }
    let passes = |number: u64| reader.passes(number);
    let owed = (1..).zip(&writer.changes).filter(|(number, _)| *number > since);
    let fail =
        |what: String| Err(format!("writer {} -> reader {}: {what}", writer.writer.guid, reader.reader.guid));
    if w.history == History::KeepAll && r.history == History::KeepAll && !is_filtered {
        let got = if durable { &seen.now } else { &seen.ever };
        let mut missing =
            owed.filter(|(n, (_, kind))| *kind == ChangeKind::Alive && passes(*n) && !got.contains(n));
        return match missing.next() {
            Some((number, _)) => fail(format!(
                "number {number} of {} is missing, {} more, owed from {}",
                writer.changes.len(),
                missing.count(),
                since + 1
            )),
            None => Ok(()),
        };
    }
    // KEEP_LAST: the last change of each instance, where no other writer may have pushed it out.
    if !alone && r.history != History::KeepAll {
        return Ok(());
    }
    check_depth(writer, reader, seen, since)?;
    let last: BTreeMap<u32, (u64, ChangeKind)> =
        owed.map(|(number, (key, kind))| (*key, (number, *kind))).collect();
    for (key, (number, kind)) in last {
        match kind {
            ChangeKind::Alive if passes(number) && !seen.ever.contains(&number) => {
                return fail(format!("number {number}, the last of instance {key}, is missing"));
            }
            kind if disposes(kind) && alone && reader.is_alive(network, key) => {
                return fail(format!("instance {key} is alive after its dispose, number {number}"));
            }
            _ => {}
        }
    }
    Ok(())
}

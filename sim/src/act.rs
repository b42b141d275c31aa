//! What may happen in a seed: writes, takes, comings and goings, cuts, attacks.

use taut_base::{Duration, Time};
use taut_dcps::{
    ContentFilter, DomainParticipant, InstanceStateMask, SampleStateMask, Selection, ViewStateMask,
};
use taut_port::Traffic;
use taut_rtps::ChangeKind;

use crate::endpoint::SimWriter;
use crate::hostile;
use crate::network::user_locator;
use crate::oracle::{ReaderRecord, WriterRecord};
use crate::payload::Content;
use crate::plan::{self, Class, between};
use crate::scenario::World;

/// Endpoints of one node.
const ENDPOINTS: usize = 6;

impl World {
    pub(crate) fn act(&mut self) {
        let wild = self.plan.class == Class::Wild;
        self.go_on_some();
        match self.rng.below(1_000) {
            0..=549 => self.write_some(),
            550..=699 => self.take_some(),
            700..=719 => self.read_some(),
            720..=749 if self.plan.policies => self.assert_some(),
            720..=749 => self.take_some(),
            750..=799 => self.end_some_instance(),
            800..=829 => self.network.faults = plan::faults(&mut self.rng),
            830..=999 if !wild => self.attack(),
            830..=859 => self.cut_some(),
            860..=863 => self.network.mend_all(),
            864..=899 => self.create_some_endpoint(),
            900..=909 => self.pause_some(),
            910..=919 => self.move_some(),
            920..=939 => self.delete_some_endpoint(),
            940..=959 => self.stop_some(),
            _ => self.start_some(),
        }
        self.note_news();
    }

    fn pick(&mut self, count: usize) -> usize {
        self.rng.below(count.max(1) as u64) as usize
    }

    fn some_writer(&mut self) -> Option<usize> {
        let runs =
            |at: &usize| self.writers[*at].exists && !self.network.is_paused(self.writers[*at].writer.node);
        let there: Vec<usize> = (0..self.writers.len()).filter(runs).collect();
        there.get(self.pick(there.len())).copied()
    }

    pub(crate) fn key_for(&mut self, writer: usize) -> u32 {
        let record = &self.writers[writer];
        if !self.plan.topics[record.topic].keyed {
            return 0;
        }
        let base = if self.plan.shared_keys { 0 } else { record.writer.tag as u32 * 16 };
        base + self.rng.below(5) as u32
    }

    fn some_reader(&mut self) -> Option<usize> {
        let runs =
            |at: &usize| self.readers[*at].exists && !self.network.is_paused(self.readers[*at].reader.node);
        let there: Vec<usize> = (0..self.readers.len()).filter(runs).collect();
        there.get(self.pick(there.len())).copied()
    }

    fn write_some(&mut self) {
        let Some(at) = self.some_writer() else { return };
        let most = if self.rng.chance(30) { 400 } else { 20 };
        for _ in 0..between(&mut self.rng, 1, most) {
            let key = self.key_for(at);
            let hostile = matches!(self.plan.class, Class::ForeignPrefix | Class::StolenPrefix);
            let filler = if most > 20 { 20 } else { plan::filler(&mut self.rng, hostile) };
            if !self.write(at, key, filler) {
                return;
            }
        }
    }

    pub(crate) fn write(&mut self, at: usize, key: u32, filler: u32) -> bool {
        let record = &mut self.writers[at];
        if self.network.write(&mut record.writer, key, filler).is_err() {
            self.sometimes.hit("writer full");
            return false;
        }
        record.changes.push((key, ChangeKind::Alive));
        record.times.push(self.network.now());
        true
    }

    fn end_some_instance(&mut self) {
        let Some(at) = self.some_writer() else { return };
        let key = self.key_for(at);
        let (kind, what) = match self.rng.below(3) {
            0 => (ChangeKind::NotAliveDisposed, "dispose"),
            1 => (ChangeKind::NotAliveUnregistered, "unregister"),
            _ => (ChangeKind::NotAliveDisposedUnregistered, "dispose and unregister"),
        };
        let record = &mut self.writers[at];
        if self.plan.topics[record.topic].keyed
            && self.network.end_instance(&mut record.writer, kind, key).is_ok()
        {
            record.changes.push((key, kind));
            record.times.push(self.network.now());
            self.sometimes.hit(what);
        }
    }

    fn take_some(&mut self) {
        let Some(at) = self.some_reader() else { return };
        let most = if self.rng.chance(500) { usize::MAX } else { between(&mut self.rng, 1, 20) as usize };
        self.take(at, most);
    }

    fn read_some(&mut self) {
        let Some(at) = self.some_reader() else { return };
        let reader = self.readers[at].reader;
        let mut mask = |top: u64| if self.rng.chance(600) { 0xffff } else { 1 + self.rng.below(top) as u32 };
        let selection = Selection {
            sample_states: SampleStateMask(mask(3)),
            view_states: ViewStateMask(mask(3)),
            instance_states: InstanceStateMask(mask(7)),
            ..Selection::ANY
        };
        let read = self.network.read(&reader, &selection);
        if let Some(damaged) =
            read.iter().find(|sample| sample.is_damaged() && self.plan.class != Class::StolenPrefix)
        {
            self.fail(format!("reader {}: read {damaged:?}", reader.guid));
        }
    }

    fn assert_some(&mut self) {
        let Some(at) = self.some_writer() else { return };
        let SimWriter { node, index, .. } = self.writers[at].writer;
        self.network.on(node, |p, now| p.assert_liveliness(now, index));
    }

    fn attack(&mut self) {
        let nodes = self.network.nodes.len();
        let stolen = match self.plan.class {
            Class::ForeignPrefix => None,
            Class::StolenPrefix => Some(self.network.prefix(0).0),
            _ => return,
        };
        for _ in 0..between(&mut self.rng, 1, 30) {
            let to = self.pick(nodes);
            let captured = std::mem::take(&mut self.network.captured);
            let bytes = hostile::mutate(&mut self.rng, &captured, stolen);
            self.network.captured = captured;
            // Node 0's own name is an echo to it.
            if let Some(bytes) = bytes {
                let source = user_locator(self.pick(nodes));
                self.network.inject(to, Traffic::User, source, bytes);
            }
        }
    }

    fn cut_some(&mut self) {
        let nodes = self.network.nodes.len();
        let (a, b) = (self.pick(nodes), self.pick(nodes));
        if a != b {
            self.network.cut(a, b);
            let both = self.rng.chance(500);
            self.sometimes.hit(if both { "cut both ways" } else { "cut one way" });
            if both {
                self.network.cut(b, a);
            }
        }
    }

    /// For shorter than a lease, or for longer.
    fn pause_some(&mut self) {
        let node = self.pick(self.network.nodes.len());
        if self.network.is_up(node) && !self.network.is_paused(node) {
            self.sometimes.hit("pause");
            self.network.pause(node);
            let most = self.plan.lease.times(3).0.cast_unsigned() / 2;
            let span = Duration(between(&mut self.rng, 1_000_000, most).cast_signed());
            self.paused_until[node] = self.network.now() + span;
        }
    }

    fn go_on_some(&mut self) {
        for node in 0..self.network.nodes.len() {
            if self.network.is_paused(node) && self.paused_until[node] <= self.network.now() {
                let clock_first = self.rng.chance(500);
                self.network.go_on(node, clock_first);
            }
        }
    }

    /// All that are paused go on.
    pub(crate) fn go_on_all(&mut self) {
        self.paused_until.fill(Time(0));
        self.go_on_some();
    }

    /// Who starts with the addresses of others only would not find one that has moved.
    fn move_some(&mut self) {
        let node = self.pick(self.network.nodes.len());
        let may = self.plan.nodes[node].multicast_discovery && self.network.is_up(node);
        if may && !self.network.is_paused(node) {
            self.sometimes.hit("move");
            self.network.move_away(node, true);
        }
    }

    fn create_some_endpoint(&mut self) {
        let node = self.pick(self.network.nodes.len());
        let here = self.writers.iter().filter(|w| w.exists && w.writer.node == node).count()
            + self.readers.iter().filter(|r| r.exists && r.reader.node == node).count();
        if self.network.is_up(node) && !self.network.is_paused(node) && here < ENDPOINTS {
            self.create_endpoint(node);
        }
    }

    pub(crate) fn create_endpoint(&mut self, node: usize) {
        let topic = self.pick(self.plan.topics.len());
        let spec = self.plan.topics[topic].clone();
        if self.rng.chance(500) {
            let mut qos = plan::writer_qos(&mut self.rng);
            if self.plan.policies {
                qos = plan::writer_policies(&mut self.rng, qos, self.plan.exclusive[topic]);
            }
            let tag = self.writers.len() as u64 + 1;
            let writer = self.network.create_writer(node, tag, &spec, &qos);
            let incarnation = self.network.nodes[node].incarnation;
            self.writers.push(WriterRecord {
                writer,
                topic,
                qos,
                exists: true,
                incarnation,
                changes: Vec::new(),
                times: Vec::new(),
                matched_at: Default::default(),
                first_matched_at: Default::default(),
            });
        } else {
            let mut qos = plan::reader_qos(&mut self.rng);
            let mut filter = None;
            if self.plan.policies {
                qos = plan::reader_policies(&mut self.rng, qos, self.plan.exclusive[topic]);
                filter = self.rng.chance(150).then(|| between(&mut self.rng, 2, 4));
            }
            let passes = filter.map(|filter| {
                ContentFilter::new(move |payload| {
                    Content::decode(payload).is_none_or(|content| !content.number.is_multiple_of(filter))
                })
            });
            let reader = self.network.create_reader_of(node, &spec, &qos, passes);
            self.readers.push(ReaderRecord::new(reader, topic, qos, filter));
        }
        self.note_news();
    }

    fn delete_some_endpoint(&mut self) {
        self.sometimes.hit("endpoint deleted");
        if self.rng.chance(500) {
            let Some(at) = self.some_writer() else { return };
            let (node, index) = (self.writers[at].writer.node, self.writers[at].writer.index);
            self.writers[at].exists = false;
            self.part(node, |p, now| p.part_writer(now, index));
            self.network.on(node, |p, now| p.delete_writer(now, index));
        } else {
            let Some(at) = self.some_reader() else { return };
            let reader = self.readers[at].reader;
            self.take(at, usize::MAX);
            self.readers[at].exists = false;
            self.part(reader.node, |p, now| p.part_reader(now, reader.index));
            self.network.on(reader.node, |p, now| p.delete_reader(now, reader.index));
        }
    }

    /// What is to be deleted is parted first, in steps if its participant does things in steps; others come between.
    fn part(&mut self, node: usize, mut more: impl FnMut(&mut DomainParticipant, Time) -> bool) {
        let steps = self.network.nodes[node].options.step.map_or(0, |_| self.rng.below(6));
        for _ in 0..steps {
            self.network.on(node, &mut more);
            let pause = self.network.pause_between_steps();
            self.network.run_for(pause);
        }
    }

    fn stop_some(&mut self) {
        let node = self.pick(self.network.nodes.len());
        if !self.network.is_up(node)
            || self.network.is_paused(node)
            || self.down_since.iter().flatten().count() > 0
        {
            return;
        }
        self.note_counters(node);
        if self.rng.chance(500) {
            self.sometimes.hit("crash");
            self.network.crash(node);
        } else {
            self.sometimes.hit("leave");
            self.network.leave(node);
        }
        self.down_since[node] = Some(self.network.now());
        self.keeps_name = self.rng.chance(200);
        self.writers.iter_mut().filter(|w| w.writer.node == node).for_each(|w| w.exists = false);
        self.readers.iter_mut().filter(|r| r.reader.node == node).for_each(|r| r.exists = false);
    }

    fn start_some(&mut self) {
        let Some(node) = self.down_since.iter().position(Option::is_some) else { return };
        let since = self.down_since[node].take().unwrap_or_default();
        // Who was paused meanwhile counts the lease from when it went on.
        let last = self.paused_until.iter().copied().fold(since, Time::max);
        let forgotten = self.network.now() > last + self.plan.lease + Duration::from_secs(1);
        let keeps_name = self.keeps_name && self.network.nodes[node].incarnation > 0;
        if keeps_name && forgotten {
            self.sometimes.hit("restart under the old name");
            self.network.start_again(node);
        } else if !keeps_name && self.rng.chance(300) {
            self.sometimes.hit("restart under a new name");
            self.network.start(node);
        } else {
            self.down_since[node] = Some(since);
            return;
        }
        for _ in 0..between(&mut self.rng, 1, self.plan.endpoints) {
            self.create_endpoint(node);
        }
    }
}

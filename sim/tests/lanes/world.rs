//! What a seed draws, and what may happen in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use taut_base::{Duration, Rng, SequenceNumber};
use taut_dcps::{Passed, Pulled, Selection, Taken};
use taut_mem::Region;
use taut_mem::lane::{FEEDBACK_LEN, Feedback, LaneReader, Peer};
use taut_qos::{History, Qos, ReliabilityKind, ResourceLimits};
use taut_rtps::ChangeKind;
use taut_sim::{Content, Network, NodeOptions, SimReader, TopicSpec};

use crate::outlet::Outlet;

/// A sample has to be younger when its reader looks once more.
const LEAST_LIFESPAN_MS: i64 = 30;
/// How long readers wait before they look again, in the end.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A reader, and what it has given out: numbers by the writer's tag.
pub struct Inlet {
    pub reader: SimReader,
    pub qos: Qos,
    pub seen: BTreeMap<u64, Vec<u64>>,
    /// The last number by tag and instance.
    last: BTreeMap<(u64, u32), u64>,
}

impl Inlet {
    pub fn is_reliable(&self) -> bool {
        self.qos.reader.reliability.kind == ReliabilityKind::Reliable
    }

    pub fn keeps_all(&self) -> bool {
        self.qos.reader.history == History::KeepAll
    }
}

/// What is left to do of a join, by the places of writer and reader: others act in between.
enum Step {
    Attach(usize, usize),
    /// The writer's participant does not know yet from where on the reader reads the lane.
    Tell(usize, usize, SequenceNumber),
}

impl Step {
    fn is_of(&self, w: usize, r: usize) -> bool {
        let (Step::Attach(writer, reader) | Step::Tell(writer, reader, _)) = self;
        (*writer, *reader) == (w, r)
    }
}

/// Two participants with writers and readers of one topic.
pub struct World {
    pub network: Network,
    pub outlets: Vec<Outlet>,
    pub inlets: Vec<Inlet>,
    pub keyed: bool,
    /// Have the writers instances in common?
    pub shared: bool,
    rng: Rng,
    steps: Vec<Step>,
    joined: Vec<(usize, usize)>,
}

impl World {
    pub fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let mut network = Network::new(rng.next_u64());
        for _ in 0..2 {
            let node = network.add(NodeOptions::default());
            network.start(node);
        }
        let (keyed, shared, durable) = (rng.chance(600), rng.chance(400), rng.chance(200));
        let (outlets, inlets, steps, joined) = Default::default();
        let mut world = World { network, outlets, inlets, keyed, shared, rng, steps, joined };
        let topic = TopicSpec::new("Square", keyed);
        for tag in 1..=1 + world.rng.below(3) {
            let (node, mut qos) = (world.pick(2), world.draw_qos(durable));
            if world.rng.chance(200) {
                let span = LEAST_LIFESPAN_MS + world.rng.below(200).cast_signed();
                qos = qos.lifespan(Duration::from_millis(span));
            }
            let writer = world.network.create_writer(node, tag, &topic, &qos);
            world.outlets.push(Outlet::new(&world.network, writer, qos, keyed));
        }
        for _ in 0..1 + world.rng.below(3) {
            let (node, qos) = (world.pick(2), world.draw_reader_qos(durable));
            let reader = world.network.create_reader(node, &topic, &qos);
            world.inlets.push(Inlet { reader, qos, seen: BTreeMap::new(), last: BTreeMap::new() });
        }
        world.network.run_for(Duration::from_secs(5));
        world.check_matched();
        world.network.faults.loss = [0, 100, 300][world.pick(3)];
        world.network.faults.jitter = Duration::from_micros(world.rng.below(2_000).cast_signed() + 1);
        world
    }

    fn check_matched(&self) {
        for outlet in &self.outlets {
            for inlet in &self.inlets {
                let matched = self.network.is_matched(&outlet.writer, &inlet.reader);
                assert_eq!(matched, (true, true));
            }
        }
    }

    fn draw_qos(&mut self, durable: bool) -> Qos {
        let qos = Qos::default().reliable();
        let qos = if durable { qos.transient_local() } else { qos };
        if self.rng.chance(600) { qos.keep_all() } else { qos.keep_last(1 + self.rng.below(4) as u32) }
    }

    fn draw_reader_qos(&mut self, durable: bool) -> Qos {
        let qos = self.draw_qos(durable);
        let max_samples = match qos.reader.history {
            History::KeepAll => self.rng.chance(400).then(|| 1 + self.rng.below(10) as u32),
            History::KeepLast(depth) => self.rng.chance(300).then_some(depth * 2),
        };
        let qos = qos.resource_limits(ResourceLimits { max_samples, ..ResourceLimits::default() });
        if self.rng.chance(150) { qos.best_effort() } else { qos }
    }

    fn pick(&mut self, count: usize) -> usize {
        self.rng.below(count as u64) as usize
    }

    fn pick_pair(&mut self) -> (usize, usize) {
        (self.pick(self.outlets.len()), self.pick(self.inlets.len()))
    }

    /// Does one thing, and lets some time pass.
    pub fn act(&mut self) {
        match self.rng.below(100) {
            0..=44 => self.write_some(),
            45..=74 => self.take_some(),
            75..=79 => self.pull_some(),
            80 => self.cut_for_some_time(),
            81..=86 => self.join(),
            87 => self.part(),
            _ => self.step(),
        }
        let pause = Duration::from_micros(self.rng.below(3_000).cast_signed());
        self.network.run_for(pause);
    }

    /// The first instance of a writer.
    pub fn first_key(&self, outlet: usize) -> u32 {
        if self.keyed && !self.shared { self.outlets[outlet].writer.tag as u32 * 16 } else { 0 }
    }

    fn write_some(&mut self) {
        let at = self.pick(self.outlets.len());
        for _ in 0..1 + self.rng.below(12) {
            let key = if self.keyed { self.first_key(at) + self.rng.below(3) as u32 } else { 0 };
            let kind = match self.rng.below(12) {
                0 if self.keyed => ChangeKind::NotAliveDisposed,
                1 if self.keyed => ChangeKind::NotAliveUnregistered,
                _ => ChangeKind::Alive,
            };
            // The long ones fit into no cell.
            let filler = if self.rng.chance(100) { 500 } else { 8 };
            if !self.outlets[at].write(&mut self.network, kind, key, filler) {
                break;
            }
        }
    }

    fn take_some(&mut self) {
        let at = self.pick(self.inlets.len());
        let most = if self.rng.chance(500) { usize::MAX } else { self.pick(6) };
        if self.rng.chance(500) { self.take_one_by_one(at, most) } else { self.take(at, most) }
    }

    fn pull_some(&mut self) {
        let (at, most) = (self.pick(self.inlets.len()), 1 + self.pick(10));
        let reader = self.inlets[at].reader;
        self.network.on(reader.node, |participant, now| participant.pull(now, reader.index, most));
    }

    fn cut_for_some_time(&mut self) {
        self.network.cut(0, 1);
        if self.rng.chance(500) {
            self.network.cut(1, 0);
        }
        let span = Duration::from_millis(self.rng.below(300).cast_signed());
        self.network.run_for(span);
        self.network.mend_all();
    }

    /// Takes as `take` does.
    fn take(&mut self, at: usize, most: usize) {
        let reader = self.inlets[at].reader;
        let mut taken = Vec::new();
        self.network.on(reader.node, |participant, now| {
            participant.pull(now, reader.index, usize::MAX);
            let selection = Selection { max_samples: most, ..Selection::ANY };
            participant.take(now, reader.index, &selection, |sample| {
                taken.push((Content::decode(&sample.payload), sample.info.valid_data));
            })
        });
        self.note(at, taken);
    }

    /// Takes as a reader's own thread does, straight from a lane where that may be.
    fn take_one_by_one(&mut self, at: usize, most: usize) {
        let reader = self.inlets[at].reader;
        let mut taken = Vec::new();
        for _ in 0..most {
            let before = taken.len();
            self.network.on(reader.node, |participant, now| {
                let blocked = participant.at_side(reader.index, |side| {
                    let mut put = |one: Taken<'_>| {
                        taken.push((Content::decode(&one.payload), one.info.valid_data));
                    };
                    let any = match side.pass_next(&mut Pulled::default(), &mut put) {
                        Passed::On(()) => true,
                        Passed::Nothing => false,
                        Passed::Not(put) => {
                            side.refill(|| now);
                            side.take_next_with(|| now, put).is_some()
                        }
                    };
                    if any && side.is_stalled() {
                        side.refill(|| now);
                    }
                    any && side.take_blocked(|| now)
                });
                if blocked == Some(true) {
                    participant.on_room(now, reader.index);
                }
            });
            if taken.len() == before {
                break;
            }
        }
        self.note(at, taken);
    }

    /// Each sample is whole, and comes once and in the order of its instance.
    fn note(&mut self, at: usize, taken: Vec<(Option<Content>, bool)>) {
        let inlet = &mut self.inlets[at];
        for (content, _) in taken.into_iter().filter(|(_, valid)| *valid) {
            let content = content.unwrap_or_else(|| panic!("reader {at}: a damaged sample"));
            let last = inlet.last.entry((content.tag, content.key)).or_default();
            assert!(*last < content.number, "reader {at}: {content:?} after {last}");
            *last = content.number;
            inlet.seen.entry(content.tag).or_default().push(content.number);
        }
    }

    /// A reader begins to read a lane.
    fn join(&mut self) {
        let (w, r) = self.pick_pair();
        let (outlet, inlet) = (&mut self.outlets[w], &self.inlets[r]);
        let core = self.network.participant(inlet.reader.node).unwrap().core();
        let may = core.may_read_lane(inlet.reader.guid.entity, outlet.writer.guid);
        if !may || self.joined.contains(&(w, r)) {
            return;
        }
        let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
        let reliable = inlet.is_reliable() && outlet.is_reliable();
        outlet.add_reader(inlet.reader.guid, Peer { feedback, reliable });
        self.joined.push((w, r));
        self.steps.push(Step::Attach(w, r));
    }

    /// The processes of a writer and a reader part: they are matched still.
    fn part(&mut self) {
        let (w, r) = self.pick_pair();
        let (outlet, reader) = (&mut self.outlets[w], self.inlets[r].reader);
        let begins = self.steps.iter().any(|step| step.is_of(w, r));
        if outlet.writer.node == reader.node || begins || !self.joined.contains(&(w, r)) {
            return;
        }
        let (writer, index) = (outlet.writer.guid, outlet.writer.index);
        self.network.on(outlet.writer.node, |participant, now| {
            participant.set_reader_lane(now, index, reader.guid, None);
        });
        self.network.on(reader.node, |participant, now| {
            participant.remove_lane(now, reader.index, writer);
        });
        outlet.remove_reader(reader.guid);
        self.joined.retain(|pair| *pair != (w, r));
    }

    /// Goes on with a join.
    fn step(&mut self) {
        if !self.steps.is_empty() {
            let at = self.pick(self.steps.len());
            match self.steps.remove(at) {
                Step::Attach(w, r) => self.attach(w, r),
                Step::Tell(w, r, from) => self.tell(w, r, from),
            }
        }
    }

    fn attach(&mut self, w: usize, r: usize) {
        let (outlet, reader) = (&mut self.outlets[w], self.inlets[r].reader);
        let Some((_, peer)) = outlet.readers.iter().find(|(known, _)| *known == reader.guid) else { return };
        let lane = LaneReader::attach(Arc::clone(&outlet.lane), Arc::clone(&peer.feedback), false);
        let writer = outlet.writer.guid;
        let from = self
            .network
            .on(reader.node, |participant, now| participant.add_lane(now, reader.index, writer, lane));
        match from.flatten() {
            None => {
                outlet.remove_reader(reader.guid);
                self.joined.retain(|pair| *pair != (w, r));
            }
            Some(_) if reader.node == outlet.writer.node => {}
            Some(from) => self.steps.push(Step::Tell(w, r, from)),
        }
    }

    fn tell(&mut self, w: usize, r: usize, from: SequenceNumber) {
        let (writer, reader) = (&self.outlets[w].writer, self.inlets[r].reader.guid);
        let index = writer.index;
        self.network.on(writer.node, |participant, now| {
            participant.set_reader_lane(now, index, reader, Some(from));
        });
    }

    /// Ends what has begun, and all that goes wrong.
    pub fn heal(&mut self) {
        while !self.steps.is_empty() {
            self.step();
            self.network.run_for(Duration::from_millis(1));
        }
        self.network.faults = Default::default();
    }

    /// Takes until nothing has come for two seconds.
    pub fn drain(&mut self) {
        let mut idle = 0;
        while idle < 100 {
            let before = self.count_seen();
            self.take_all();
            idle = if self.count_seen() == before { idle + 1 } else { 0 };
        }
    }

    /// All readers take, and what they made room for is on its way.
    pub fn take_all(&mut self) {
        (0..self.inlets.len()).for_each(|at| self.take(at, usize::MAX));
        self.network.run_for(LOOK_AGAIN);
    }

    fn count_seen(&self) -> usize {
        self.inlets.iter().flat_map(|inlet| inlet.seen.values()).map(Vec::len).sum()
    }
}

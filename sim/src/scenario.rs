//! One seed: draws a plan, lets everything go wrong, lets it heal, and checks that all is well.

use std::collections::BTreeSet;

use taut_base::{Duration, Guid, GuidPrefix, Rng, Time};
use taut_dcps::{Entity, StatusMask};

use crate::faults::Faults;
use crate::network::Network;
use crate::oracle::{ReaderRecord, WriterRecord};
use crate::plan::{self, Class, Plan, between};
use crate::sometimes::{EXPECTED, Sometimes};
use crate::tally::Tally;

/// Events in one seed. More is a storm: seeds that pass stay far below.
const EVENTS: u64 = 3_000_000;
/// How much longer the end of a seed may take while something is not acknowledged.
const PATIENCE: Duration = Duration::from_secs(100);

/// What a seed did.
#[derive(Clone, Default, Debug)]
pub struct Outcome {
    /// How long it ran, on the virtual clock.
    pub virtual_time: Duration,
    /// Samples written.
    pub written: u64,
    /// Samples taken.
    pub taken: u64,
    /// Events of the network.
    pub events: u64,
    /// What was sent.
    pub sent: Tally,
    /// Rare branches.
    pub sometimes: Sometimes,
}

/// Everything in one run.
pub(crate) struct World {
    pub network: Network,
    pub rng: Rng,
    pub plan: Plan,
    pub writers: Vec<WriterRecord>,
    pub readers: Vec<ReaderRecord>,
    pub sometimes: Sometimes,
    pub taken: u64,
    /// When every writer spoke once more.
    pub spoke_at: Time,
    /// When a node stopped that may start again.
    pub down_since: Vec<Option<Time>>,
    /// Is the one that stopped last to start again under its old name?
    pub keeps_name: bool,
    /// When each node goes on that is paused.
    pub paused_until: Vec<Time>,
    /// Whom each node knows.
    known: Vec<BTreeSet<GuidPrefix>>,
    failure: Option<String>,
}

/// Runs one seed. *Errors*: the first thing that is wrong.
pub fn run(seed: u64, trace: bool) -> Result<Outcome, String> {
    let mut world = World::new(seed, trace);
    world.start();
    let end = world.network.now() + world.plan.wild;
    while world.network.now() < end {
        world.act();
        let pause = Duration::from_micros(between(&mut world.rng, 100, 40_000).cast_signed());
        world.run_for(pause)?;
    }
    world.heal()?;
    world.check()?;
    Ok(world.outcome())
}

impl World {
    fn new(seed: u64, trace: bool) -> World {
        let mut rng = Rng::new(seed);
        let plan = Plan::draw(&mut rng);
        let mut network = Network::new(rng.next_u64());
        network.observe = true;
        network.trace = trace;
        network.event_limit = EVENTS;
        if matches!(plan.class, Class::ForeignPrefix | Class::StolenPrefix) {
            network.capturing = 2_000;
        }
        let (down_since, known) = (vec![None; plan.nodes.len()], vec![BTreeSet::new(); plan.nodes.len()]);
        let paused_until = vec![Time(0); plan.nodes.len()];
        World {
            network,
            rng,
            plan,
            writers: Vec::new(),
            readers: Vec::new(),
            sometimes: Sometimes::default(),
            taken: 0,
            spoke_at: Time(0),
            down_since,
            keeps_name: false,
            paused_until,
            known,
            failure: None,
        }
    }

    fn start(&mut self) {
        self.network.faults = plan::faults(&mut self.rng);
        for options in self.plan.nodes.clone() {
            self.network.add(options);
        }
        for node in 0..self.plan.nodes.len() {
            if self.plan.class == Class::Wild && node > 0 && self.rng.chance(100) {
                self.sometimes.hit("slow start");
                self.down_since[node] = Some(Time(0));
                continue;
            }
            self.network.start(node);
            for _ in 0..between(&mut self.rng, 1, self.plan.endpoints) {
                self.create_endpoint(node);
            }
        }
        let class = match self.plan.class {
            Class::Calm => "calm",
            Class::Wild => return,
            Class::ForeignPrefix => "class: foreign prefix",
            Class::StolenPrefix => "class: stolen prefix",
        };
        self.sometimes.hit(class);
        self.sometimes.hit_if(!self.plan.nodes[0].multicast_discovery, "initial peers only");
    }

    fn outcome(mut self) -> Outcome {
        let sent = self.network.sent();
        self.sometimes.hit_if(sent.gap > 0, "gap");
        self.sometimes.hit_if(sent.nack_frag > 0, "nack_frag");
        self.sometimes.hit_if(sent.data_frag > 0, "fragments");
        for node in 0..self.plan.nodes.len() {
            self.note_counters(node);
        }
        Outcome {
            virtual_time: self.network.now().since(Time(0)),
            written: self.writers.iter().map(|w| w.changes.len() as u64).sum(),
            taken: self.taken,
            events: self.network.events,
            sent,
            sometimes: self.sometimes,
        }
    }

    pub(crate) fn note_counters(&mut self, node: usize) {
        let Some(participant) = self.network.participant(node) else { return };
        let counters = participant.core().counters();
        let malformed = taut_wire::WireError::ALL.iter().any(|reason| counters.of(*reason) > 0);
        let rare = counters.named().into_iter().filter(|(name, _)| EXPECTED.contains(name));
        rare.for_each(|(name, _)| self.sometimes.hit(name));
        self.sometimes.hit_if(malformed, "malformed");
    }

    /// Lets time pass, and keeps the record of matches.
    pub(crate) fn run_for(&mut self, span: Duration) -> Result<(), String> {
        let end = self.network.now() + span;
        loop {
            self.note_news();
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            if !self.network.step(end) {
                self.network.run_to(end);
                return Ok(());
            }
        }
    }

    pub(crate) fn note_news(&mut self) {
        for (node, entity, mask) in std::mem::take(&mut self.network.news) {
            match entity {
                Entity::Reader(index) if mask.contains(StatusMask::SUBSCRIPTION_MATCHED) => {
                    let found =
                        |r: &ReaderRecord| r.exists && r.reader.node == node && r.reader.index == index;
                    if let Some(at) = self.readers.iter().position(found) {
                        self.note_reader_matches(at);
                    }
                }
                Entity::Writer(index) if mask.contains(StatusMask::PUBLICATION_MATCHED) => {
                    let found =
                        |w: &WriterRecord| w.exists && w.writer.node == node && w.writer.index == index;
                    if let Some(at) = self.writers.iter().position(found) {
                        self.note_writer_matches(at);
                    }
                }
                Entity::Participant => self.note_lost_peers(node),
                Entity::Reader(_) => {
                    self.sometimes.hit_if(mask.contains(StatusMask::LIVELINESS_CHANGED), "liveliness lost");
                }
                _ => {}
            }
        }
    }

    /// Has this node forgotten one that is up?
    fn note_lost_peers(&mut self, node: usize) {
        let Some(participant) = self.network.participant(node) else { return };
        let known: BTreeSet<_> = participant.core().database().peers().map(|p| p.data.guid_prefix).collect();
        let up = |prefix: &GuidPrefix| {
            (0..self.network.nodes.len()).any(|n| self.network.is_up(n) && self.network.prefix(n) == *prefix)
        };
        let lost = self.known[node].difference(&known).any(up);
        self.known[node] = known;
        self.sometimes.hit_if(lost, "lease expired");
    }

    pub(crate) fn matches_of(&self, node: usize, guid: Guid) -> BTreeSet<Guid> {
        let participant = self.network.participant(node);
        participant.map(|p| p.core().database().matches(guid.entity).collect()).unwrap_or_default()
    }

    fn note_reader_matches(&mut self, at: usize) {
        let reader = self.readers[at].reader;
        let now = self.matches_of(reader.node, reader.guid);
        let new: Vec<Guid> = now.difference(&self.readers[at].matched).copied().collect();
        for guid in new {
            // The newest of that name: an older incarnation cannot come back.
            let Some(writer) = self.writers.iter().rfind(|w| w.writer.guid == guid) else { continue };
            let tag = writer.writer.tag;
            if self.readers[at].seen.get(&tag).is_some_and(|seen| seen.matches > 0) {
                self.sometimes.hit("match again");
                // What is in the cache is of the match before.
                self.take(at, usize::MAX);
            }
            self.readers[at].begin(self.network.now(), tag);
        }
        self.readers[at].matched = now;
    }

    fn note_writer_matches(&mut self, at: usize) {
        let (node, guid) = (self.writers[at].writer.node, self.writers[at].writer.guid);
        let now = self.matches_of(node, guid);
        let record = &mut self.writers[at];
        record.matched_at.retain(|reader, _| now.contains(reader));
        let written = record.changes.len() as u64;
        for reader in now {
            record.matched_at.entry(reader).or_insert(written);
            record.first_matched_at.entry(reader).or_insert(written);
        }
    }

    pub(crate) fn fail(&mut self, what: String) {
        self.failure.get_or_insert(what);
    }

    pub(crate) fn take(&mut self, at: usize, most: usize) {
        let record = &mut self.readers[at];
        let taken = self.network.take(&record.reader, most);
        self.taken += taken.len() as u64;
        let distrusted = (self.plan.class == Class::StolenPrefix).then(|| self.network.prefix(0));
        if let Err(failure) = record.note(&self.network, &taken, &self.writers, distrusted) {
            self.failure.get_or_insert(failure);
        }
    }

    /// Ends all faults, waits for everybody to find everybody, and lets every writer speak once more.
    fn heal(&mut self) -> Result<(), String> {
        self.network.mend_all();
        self.go_on_all();
        self.network.faults = Faults { loss: self.network.faults.loss.min(50), ..Faults::default() };
        let settle = if self.plan.class == Class::Wild { self.plan.lease } else { Duration::ZERO };
        self.run_taking(settle)?;
        self.run_taking(Duration::from_secs(10))?;
        self.spoke_at = self.network.now();
        for at in 0..self.writers.len() {
            if self.writers[at].exists {
                let key = self.key_for(at);
                self.write(at, key, 10);
            }
        }
        self.network.faults = Faults::default();
        // A reader with little room and a long backlog takes its time, and so does a writer with little bandwidth.
        let patience = self.network.now() + PATIENCE;
        while self.network.now() < patience
            && !self.writers.iter().all(|w| !w.exists || (self.is_acknowledged(w) && self.is_sent(w)))
        {
            self.run_taking(Duration::from_secs(1))?;
        }
        self.run_taking(Duration::from_secs(8))
    }

    fn is_sent(&self, record: &WriterRecord) -> bool {
        let writer = self.network.participant(record.writer.node);
        let writer = writer.and_then(|participant| participant.core().writer(record.writer.index));
        writer.is_some_and(|writer| !writer.has_fresh())
    }

    pub(crate) fn is_acknowledged(&self, record: &WriterRecord) -> bool {
        let participant = self.network.participant(record.writer.node);
        participant.is_some_and(|p| p.is_acknowledged(record.writer.index))
    }

    fn take_all(&mut self) {
        for at in 0..self.readers.len() {
            // What is taken makes room for more, of writers in the same participant at once.
            let mut before = None;
            while self.readers[at].exists && before != Some(self.taken) {
                before = Some(self.taken);
                self.take(at, usize::MAX);
            }
        }
        self.note_news();
    }

    fn run_taking(&mut self, span: Duration) -> Result<(), String> {
        let end = self.network.now() + span;
        while self.network.now() < end {
            self.take_all();
            self.run_for(Duration::from_millis(50))?;
        }
        self.take_all();
        self.run_for(Duration::ZERO)
    }
}

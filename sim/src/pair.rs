//! Two participants for tests of the protocol: writers on one, readers on the other.
//!
//! ```
//! use taut_base::Duration;
//! use taut_qos::Qos;
//! use taut_sim::Pair;
//!
//! let mut pair = Pair::new(1).with_loss(0.2);
//! pair.reader(Qos::default().reliable().keep_all());
//! pair.writer(Qos::default().reliable().keep_all());
//! pair.run_until_matched();
//! for _ in 0..10 {
//!     pair.write(0, 100).unwrap();
//! }
//! pair.run_for(Duration::from_secs(2));
//! assert_eq!(pair.take_numbers(), (1..=10).collect::<Vec<u64>>());
//! ```

use taut_base::{Duration, SequenceNumber};
use taut_qos::Qos;
use taut_rtps::{ChangeKind, Full};

use crate::endpoint::{SimReader, SimWriter, Taken, TopicSpec};
use crate::faults::Faults;
use crate::network::{Network, NodeOptions};

/// Longer than discovery takes on a bad network.
const PATIENCE: Duration = Duration::from_secs(30);

/// Two participants in a network of their own.
pub struct Pair {
    /// The network, for what the pair has no short word for.
    pub network: Network,
    /// The topic of endpoints to come.
    pub topic: TopicSpec,
    /// The writers, in the order in which they were made.
    pub writers: Vec<SimWriter>,
    /// The readers, in the order in which they were made.
    pub readers: Vec<SimReader>,
}

impl Pair {
    /// The node of the writers.
    pub const WRITER: usize = 0;
    /// The node of the readers.
    pub const READER: usize = 1;

    /// Two participants that do not know each other yet, on a network without faults.
    pub fn new(seed: u64) -> Pair {
        Pair::with_options(seed, NodeOptions::default(), NodeOptions::default())
    }

    /// The same with options for the writer's and the reader's side.
    pub fn with_options(seed: u64, writer: NodeOptions, reader: NodeOptions) -> Pair {
        let mut network = Network::new(seed);
        for options in [writer, reader] {
            let node = network.add(options);
            network.start(node);
        }
        Pair { network, topic: TopicSpec::new("Square", true), writers: Vec::new(), readers: Vec::new() }
    }

    /// Loses this share of the datagrams, both ways.
    #[must_use]
    pub fn with_loss(mut self, share: f64) -> Pair {
        self.network.faults.loss = (share * 1_000.0) as u64;
        self
    }

    /// Has these faults, both ways.
    #[must_use]
    pub fn with_faults(mut self, faults: Faults) -> Pair {
        self.network.faults = faults;
        self
    }

    /// Prints every datagram.
    #[must_use]
    pub fn with_trace(mut self) -> Pair {
        self.network.trace = true;
        self
    }

    /// Endpoints to come are of a topic without a key.
    #[must_use]
    pub fn without_key(mut self) -> Pair {
        self.topic.keyed = false;
        self
    }

    /// Adds a writer. Returns its place in `writers`.
    pub fn writer(&mut self, qos: Qos) -> usize {
        self.writer_on(Pair::WRITER, qos)
    }

    /// Adds a reader. Returns its place in `readers`.
    pub fn reader(&mut self, qos: Qos) -> usize {
        self.reader_on(Pair::READER, qos)
    }

    /// Adds a writer on either side.
    pub fn writer_on(&mut self, node: usize, qos: Qos) -> usize {
        let tag = self.writers.len() as u64 + 1;
        let writer = self.network.create_writer(node, tag, &self.topic, &qos);
        self.writers.push(writer);
        self.writers.len() - 1
    }

    /// Adds a reader on either side.
    pub fn reader_on(&mut self, node: usize, qos: Qos) -> usize {
        let reader = self.network.create_reader(node, &self.topic, &qos);
        self.readers.push(reader);
        self.readers.len() - 1
    }

    /// The first writer writes.
    pub fn write(&mut self, key: u32, filler: u32) -> Result<SequenceNumber, Full> {
        self.write_by(0, key, filler)
    }

    /// A writer writes.
    pub fn write_by(&mut self, writer: usize, key: u32, filler: u32) -> Result<SequenceNumber, Full> {
        self.network.write(&mut self.writers[writer], key, filler)
    }

    /// The first writer ends an instance.
    pub fn end_instance(&mut self, kind: ChangeKind, key: u32) -> Result<SequenceNumber, Full> {
        self.network.end_instance(&mut self.writers[0], kind, key)
    }

    /// Takes all from the first reader.
    pub fn take(&mut self) -> Vec<Taken> {
        self.take_from(0)
    }

    /// Takes all from a reader.
    pub fn take_from(&mut self, reader: usize) -> Vec<Taken> {
        self.network.take(&self.readers[reader], usize::MAX)
    }

    /// Takes all from the first reader: the numbers of the samples with data.
    pub fn take_numbers(&mut self) -> Vec<u64> {
        self.take_numbers_from(0)
    }

    /// Takes all from a reader: the numbers of the samples with data.
    pub fn take_numbers_from(&mut self, reader: usize) -> Vec<u64> {
        let taken = self.take_from(reader);
        assert!(taken.iter().all(|sample| !sample.is_damaged()), "samples arrive as they were written");
        taken.iter().filter(|sample| sample.info.valid_data).map(Taken::number).collect()
    }

    /// Lets time pass.
    pub fn run_for(&mut self, span: Duration) {
        self.network.run_for(span);
    }

    /// Lets time pass until `done`, at most for `limit`. Returns whether it was.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&mut Pair) -> bool) -> bool {
        let end = self.network.now() + limit;
        loop {
            if done(self) {
                return true;
            }
            if !self.network.step(end) {
                self.network.run_to(end);
                return done(self);
            }
        }
    }

    /// Lets time pass until every writer has matched every reader, on both sides.
    ///
    /// # Panics
    /// If that takes more than half a minute.
    pub fn run_until_matched(&mut self) {
        let matched = self.run_until(PATIENCE, |pair| pair.is_matched());
        assert!(matched, "all writers match all readers");
    }

    /// Has every writer matched every reader, on both sides?
    pub fn is_matched(&self) -> bool {
        let pairs = self.writers.iter().flat_map(|w| self.readers.iter().map(move |r| (w, r)));
        pairs.into_iter().all(|(writer, reader)| self.network.is_matched(writer, reader) == (true, true))
    }

    /// Has everything that a writer wrote been acknowledged?
    pub fn is_acknowledged(&self, writer: usize) -> bool {
        let writer = &self.writers[writer];
        self.network.participant(writer.node).is_some_and(|p| p.is_acknowledged(writer.index))
    }

    /// Loses everything, both ways.
    pub fn cut(&mut self) {
        self.network.cut(0, 1);
        self.network.cut(1, 0);
    }

    /// Ends all cuts.
    pub fn mend(&mut self) {
        self.network.mend_all();
    }
}

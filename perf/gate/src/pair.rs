//! Two participants of the core that have found each other in the simulator, with a writer on one and a
//! reader on the other, taken out to be driven by hand at a time that stands still.

use taut_base::{Duration, Guid, Locator, Time, Timestamp};
use taut_dcps::{DomainParticipant, Write};
use taut_mem::{Bytes, Pool};
use taut_port::{Frame, Port, Traffic};
use taut_qos::Qos;
use taut_rtps::{ChangeKind, ReaderIndex, TxClass, WriterIndex};
use taut_sim::{NodeOptions, TopicSpec};

/// Long enough for greetings, first acknowledgements and the announcements in quick succession.
const SETTLE: Duration = Duration::from_secs(2);
/// Datagrams of one transmission, as the executor has it.
const BUDGET: usize = 64;

/// What the two participants have to do with besides, none of which concerns the pair. A sample is to cost the same beside it
/// as alone, but for the tables being deeper.
#[derive(Clone, Copy, Default)]
pub struct Crowd {
    /// Other topics, each with a writer and a reader on both sides, which are all matched.
    topics: u32,
    /// Other participants, with an endpoint of a topic of their own each.
    peers: u32,
}

impl Crowd {
    /// Nobody else.
    pub const NONE: Crowd = Crowd { topics: 0, peers: 0 };
    /// Many topics.
    pub const TOPICS: Crowd = Crowd { topics: 1_000, peers: 0 };
    /// Many participants.
    pub const PEERS: Crowd = Crowd { topics: 0, peers: 100 };

    fn join(self, pair: &mut taut_sim::Pair) {
        let (network, qos) = (&mut pair.network, Qos::default().reliable());
        for n in 0..self.topics {
            let topic = TopicSpec::new(&format!("Other{n}"), false);
            for node in [taut_sim::Pair::WRITER, taut_sim::Pair::READER] {
                network.create_writer(node, 0, &topic, &qos);
                network.create_reader(node, &topic, &qos);
            }
        }
        for n in 0..self.peers {
            let node = network.add(NodeOptions::default());
            // What they have to do with each other is of no interest, and takes time.
            for other in 2..node {
                network.cut(node, other);
                network.cut(other, node);
            }
            network.start(node);
            network.create_reader(node, &TopicSpec::new(&format!("Of{n}"), false), &Qos::default());
        }
    }

    /// Does a participant know them all?
    fn is_known(self, participant: &DomainParticipant) -> bool {
        let database = participant.core().database();
        let (peers, endpoints) = (database.peers().count() as u32, database.endpoints().count() as u32);
        // The other side of the pair, with its endpoint.
        peers == 1 + self.peers && endpoints == 1 + 2 * self.topics + self.peers
    }
}

/// One side.
pub struct Side<Index> {
    pub participant: DomainParticipant,
    pub now: Time,
    pub index: Index,
    pub guid: Guid,
    /// Where its datagrams come from.
    pub locator: Locator,
}

/// Both.
pub struct Matched {
    pub writer: Side<WriterIndex>,
    pub reader: Side<ReaderIndex>,
}

impl Matched {
    /// A writer and a reader of a topic without a key that are matched and have nothing left to say.
    pub fn new(qos: impl Fn(Qos) -> Qos) -> Matched {
        Matched::beside(Crowd::NONE, qos)
    }

    /// The same beside others.
    pub fn beside(crowd: Crowd, qos: impl Fn(Qos) -> Qos) -> Matched {
        let mut pair = settled(crowd, qos);
        let (writer, reader) = (&pair.writers[0], &pair.readers[0]);
        let (writer_index, reader_index) = (writer.index, reader.index);
        let (writer_guid, reader_guid) = (writer.guid, reader.guid);
        Matched {
            writer: Side::take(&mut pair, taut_sim::Pair::WRITER, writer_index, writer_guid),
            reader: Side::take(&mut pair, taut_sim::Pair::READER, reader_index, reader_guid),
        }
    }
}

/// Both in their network.
fn settled(crowd: Crowd, qos: impl Fn(Qos) -> Qos) -> taut_sim::Pair {
    let mut pair = taut_sim::Pair::new(1).without_key();
    pair.reader(qos(Qos::default().reliable()));
    pair.writer(qos(Qos::default().reliable()));
    crowd.join(&mut pair);
    pair.run_until_matched();
    pair.run_for(SETTLE);
    for node in [taut_sim::Pair::WRITER, taut_sim::Pair::READER] {
        assert!(pair.network.participant(node).is_some_and(|participant| crowd.is_known(participant)));
    }
    pair
}

/// The side of the reader, and datagrams of the other that tell of so many writers more, of other topics.
pub fn told_of_writers(crowd: Crowd, count: u64) -> (Side<ReaderIndex>, Vec<Frame>) {
    let mut pair = settled(crowd, |qos| qos);
    let (index, guid) = (pair.readers[0].index, pair.readers[0].guid);
    let reader = Side::take(&mut pair, taut_sim::Pair::READER, index, guid);
    let network = &mut pair.network;
    network.capturing = usize::MAX;
    for n in 0..count {
        let topic = TopicSpec::new(&format!("New{n}"), false);
        network.create_writer(taut_sim::Pair::WRITER, n, &topic, &Qos::default());
    }
    let source = taut_sim::meta_locator(taut_sim::Pair::WRITER);
    let frames =
        network.captured.drain(..).map(|sent| Frame { source, traffic: Traffic::Meta, bytes: sent.bytes });
    (reader, frames.collect())
}

impl<Index> Side<Index> {
    fn take(pair: &mut taut_sim::Pair, node: usize, index: Index, guid: Guid) -> Side<Index> {
        let now = pair.network.local_now(node);
        let participant = pair.network.nodes[node].participant.take().expect("the node is up");
        let locator = participant.core().config().addresses.default_unicast[0];
        Side { participant, now, index, guid, locator }
    }

    /// Handles a datagram and tells of the news, as the executor does.
    pub fn receive(&mut self, frame: &Frame, port: &mut Outgoing) {
        self.participant.on_frame(self.now, frame);
        self.transmit(port);
        while self.participant.poll_news().is_some() {}
    }

    /// Sends all that there is.
    pub fn transmit(&mut self, port: &mut Outgoing) {
        while self.participant.has_work(TxClass::Discovery) {
            self.participant.poll_transmit(self.now, port, TxClass::Discovery, BUDGET);
        }
    }

    /// A datagram from this side with these bytes.
    pub fn frame(&self, bytes: Bytes) -> Frame {
        Frame { source: self.locator, traffic: Traffic::User, bytes }
    }
}

impl Side<WriterIndex> {
    /// Writes a sample and sends it.
    pub fn write(&mut self, n: u64, payload: Bytes, port: &mut Outgoing) {
        let mut write = Write {
            kind: ChangeKind::Alive,
            instance: Default::default(),
            source_timestamp: Some(Timestamp::from_unix_ns(n.cast_signed())),
            payload,
            number: None,
            in_lane: false,
            called: Time::default(),
            was_left: false,
        };
        self.participant.write(self.now, self.index, &mut write).expect("the writer has room");
        self.transmit(port);
    }

    /// The datagrams of so many samples of 64 bytes, one each.
    pub fn frames(&mut self, count: u64) -> Vec<Frame> {
        let mut port = Outgoing::keeping();
        let mut payloads = Payloads::new();
        (0..count).for_each(|n| self.write(n, payloads.next(n), &mut port));
        assert_eq!(port.datagrams, count, "a sample is a datagram");
        port.kept.into_iter().map(|bytes| self.frame(bytes)).collect()
    }
}

/// Payloads of 64 bytes out of a pool, as a DataWriter has them.
pub struct Payloads(Pool);

impl Payloads {
    pub fn new() -> Payloads {
        Payloads(Pool::new(128, 64))
    }

    pub fn next(&mut self, n: u64) -> Bytes {
        let mut slot = self.0.claim();
        slot.clear();
        slot.extend_from_slice(&[0, 1, 0, 0]);
        slot.extend_from_slice(&[n.to_le_bytes()[0]; 64]);
        self.0.share(slot)
    }
}

/// A port that counts, and keeps the datagrams if it is to.
#[derive(Default)]
pub struct Outgoing {
    pub datagrams: u64,
    pub bytes: usize,
    pub kept: Vec<Bytes>,
    keep: bool,
}

impl Outgoing {
    pub fn counting() -> Outgoing {
        Outgoing::default()
    }

    pub fn keeping() -> Outgoing {
        Outgoing { keep: true, ..Outgoing::default() }
    }
}

impl Port for Outgoing {
    fn send(&mut self, to: &[Locator], parts: &[&[u8]]) {
        self.datagrams += to.len() as u64;
        self.bytes += parts.iter().map(|part| part.len()).sum::<usize>();
        if self.keep {
            // A receive buffer is much larger than a small sample: the core then copies it out.
            let mut datagram = Vec::with_capacity(1_024);
            parts.iter().for_each(|part| datagram.extend_from_slice(part));
            self.kept.push(Bytes::from(datagram));
        }
    }

    fn flush(&mut self) {}
}

//! A writer as its owner sees it, which writes into a lane, past the protocol or through it.

use std::sync::Arc;

use taut_base::{Guid, SequenceNumber, Time, Timestamp};
use taut_dcps::{Write, cell};
use taut_mem::Region;
use taut_mem::lane::{INLINE, Lane, LaneWriter, Peer};
use taut_qos::{History, Qos, ReliabilityKind};
use taut_rtps::{ChangeKind, Link};
use taut_sim::{Content, Network, SimWriter, instance, key_payload};

/// Few, so that the lane is often full.
const CELLS: usize = 8;
/// What the wall clock shows when the network begins, in ns.
const WALL: i64 = 1_700_000_000_000_000_000;

/// A writer, its lane, and what its owner knows of both.
pub struct Outlet {
    pub writer: SimWriter,
    pub qos: Qos,
    pub lane: Arc<Lane>,
    pub writes: LaneWriter,
    /// Who reads the lane, and where each says how far.
    pub readers: Vec<(Guid, Peer)>,
    /// What it did, by number from 1.
    pub changes: Vec<(u32, ChangeKind)>,
    keyed: bool,
    link: Arc<Link>,
    /// Who reads the lane is another since the last write.
    is_new: bool,
    last: SequenceNumber,
    /// The last that the protocol was given, or has to know of before it is passed by.
    given: SequenceNumber,
    /// The last that nobody was given.
    gone: SequenceNumber,
}

impl Outlet {
    pub fn new(network: &Network, writer: SimWriter, qos: Qos, keyed: bool) -> Outlet {
        let participant = network.participant(writer.node).unwrap();
        let link = Arc::clone(&participant.core().writer(writer.index).unwrap().link);
        let lane = Arc::new(Lane::create(Region::heap(Lane::size(CELLS, 0)), CELLS));
        let writes = LaneWriter::new(Arc::clone(&lane), Box::new(|_, _| true));
        let [last, given, gone] = [SequenceNumber::ZERO; 3];
        let (readers, changes, is_new) = (Vec::new(), Vec::new(), false);
        Outlet { writer, qos, lane, writes, readers, changes, keyed, link, is_new, last, given, gone }
    }

    pub fn last(&self) -> u64 {
        self.last.0.cast_unsigned()
    }

    pub fn is_reliable(&self) -> bool {
        self.qos.writer.reliability.kind == ReliabilityKind::Reliable
    }

    pub fn keeps_all(&self) -> bool {
        self.qos.writer.history == History::KeepAll
    }

    pub fn add_reader(&mut self, reader: Guid, peer: Peer) {
        self.readers.push((reader, peer));
        self.is_new = true;
    }

    pub fn remove_reader(&mut self, reader: Guid) {
        self.readers.retain(|(known, _)| *known != reader);
        self.is_new = true;
    }

    /// Looks who reads the lane from now on.
    pub fn refresh(&mut self) {
        if std::mem::take(&mut self.is_new) {
            if !self.readers.is_empty() {
                self.given = self.given.max(self.gone);
            }
            self.writes.set_peers(self.readers.iter().map(|(_, peer)| peer.clone()).collect());
        }
    }

    /// Writes a change. `false` if it has to wait.
    pub fn write(&mut self, network: &mut Network, kind: ChangeKind, key: u32, filler: u32) -> bool {
        self.refresh();
        let has_readers = !self.readers.is_empty();
        let has_room = !has_readers || self.writes.has_room();
        if self.keeps_all() && !has_room {
            return false;
        }
        let number = self.last.next();
        let content = Content { key, tag: self.writer.tag, number: number.0.cast_unsigned(), filler };
        let payload = if kind == ChangeKind::Alive { content.encode() } else { key_payload(key) };
        let in_lane = has_room && has_readers && payload.len() <= INLINE;
        let mut write = Write {
            kind,
            instance: if self.keyed { instance(key) } else { Default::default() },
            source_timestamp: Some(Timestamp::from_unix_ns(WALL + network.now().0)),
            payload: payload.clone(),
            number: None,
            in_lane,
            called: Time::default(),
            was_left: false,
        };
        let is_direct = self.link.is_direct() && self.link.seen() >= self.given;
        if !(is_direct && (in_lane || !has_readers)) {
            write.number = Some(number);
            let index = self.writer.index;
            let done = network
                .on(self.writer.node, |participant, now| participant.write(now, index, &mut write).is_ok());
            if done != Some(true) {
                return false;
            }
            self.given = number;
        }
        self.last = number;
        if in_lane {
            self.writes.push(&cell::meta(number, &write), &payload).unwrap();
        }
        if self.given < self.last {
            self.pass_by(in_lane);
        }
        self.changes.push((key, kind));
        true
    }

    /// The protocol has not seen the last change.
    fn pass_by(&mut self, in_lane: bool) {
        if !in_lane {
            self.link.set_off_lane(self.last);
            self.gone = self.last;
        }
        self.link.set_last(self.last);
    }
}

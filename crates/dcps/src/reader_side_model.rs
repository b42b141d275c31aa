//! A reader that passes samples on from its lane against one that has each go through its cache: whoever
//! takes must not see which it is.

use std::collections::VecDeque;
use std::sync::Arc;

use taut_base::{InstanceHandle, Rng, SequenceNumber, Time};
use taut_mem::lane::{FEEDBACK_LEN, Feedback, Lane, LaneReader, LaneWriter};
use taut_mem::{Bytes, Region};
use taut_qos::{DataReaderQos, History, Reliability, ReliabilityKind};
use taut_rtps::history_cache::{CacheChange, ChangeKind};

use crate::reader_cache_tests::{handle, writer};
use crate::reader_side::{Passed, Pulled, ReaderSide};
use crate::sample_info::{Sample, SampleInfo};
use crate::{TypeSupport, cell};
use taut_rtps::NewChange as Write;

const CELLS: usize = 4;
const NOW: Time = Time(1);
const RUNS: u64 = 300;
const STEPS: u64 = 200;

/// A reader, the lane that it reads, and the changes that the protocol has for it.
struct Reader {
    side: ReaderSide,
    lane: LaneWriter,
    beside: VecDeque<CacheChange>,
    passes: bool,
}

fn key_hash(payload: &[u8], _key_only: bool) -> Option<InstanceHandle> {
    Some(handle(*payload.first()?))
}

impl Reader {
    fn new(history: History, keyed: bool, passes: bool) -> Reader {
        let mut qos = DataReaderQos { history, ..DataReaderQos::default() };
        qos.reliability = Reliability { kind: ReliabilityKind::Reliable, ..qos.reliability };
        if history == History::KeepAll {
            qos.resource_limits.max_samples = Some(6);
        }
        let type_support = TypeSupport {
            type_name: "Key".into(),
            key_hash: keyed.then_some(key_hash),
            ..TypeSupport::default()
        };
        let mut side = ReaderSide::new(&qos, &type_support);
        let lane = Arc::new(Lane::create(Region::heap(Lane::size(CELLS, 0)), CELLS));
        let mut writes = LaneWriter::new(Arc::clone(&lane), Box::new(|_, _| true));
        let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
        writes.set_peers(vec![taut_mem::lane::Peer { feedback: Arc::clone(&feedback), reliable: true }]);
        side.add_lane(writer(1), 0, LaneReader::attach(lane, feedback, false), true, SequenceNumber(1));
        Reader { side, lane: writes, beside: VecDeque::new(), passes }
    }

    /// Hands over what the protocol has, in its order, until something has to wait.
    fn deliver(&mut self) {
        while let Some(change) = self.beside.pop_front() {
            let mut offered = Some(change);
            self.side.deliver(NOW, 0, &mut offered);
            if let Some(change) = offered {
                return self.beside.push_front(change);
            }
        }
    }

    /// What an owner's take does.
    fn take(&mut self) -> Option<Sample> {
        let taken = if self.passes {
            match self.side.pass_next(&mut Pulled::default(), |taken| taken.keep()) {
                Passed::On(sample) => return Some(sample),
                Passed::Nothing => return None,
                Passed::Not(keep) => {
                    self.side.refill(|| NOW);
                    self.side.take_next_with(|| NOW, keep)
                }
            }
        } else {
            self.side.pull(NOW);
            self.side.take_next(NOW)
        };
        if taken.is_some() && self.side.is_stalled() {
            self.side.refill(|| NOW);
        }
        if taken.is_some() && self.side.take_blocked(|| NOW) {
            self.deliver();
        }
        taken
    }
}

fn seen(sample: Sample) -> (SampleInfo, Vec<u8>) {
    (sample.info, sample.payload.to_vec())
}

/// One change for both readers, through the lane or beside it. It may end its instance if `ends`.
fn write(rng: &mut Rng, number: i64, (keyed, ends): (bool, bool), readers: &mut [Reader; 2]) {
    let kind = match rng.below(8) {
        0 if ends => ChangeKind::NotAliveDisposed,
        1 if ends => ChangeKind::NotAliveUnregistered,
        _ => ChangeKind::Alive,
    };
    let key = rng.below(3) as u8;
    let payload = [key, number as u8, (number >> 8) as u8, 0];
    let number = SequenceNumber(number);
    let instance = if keyed { handle(key) } else { InstanceHandle::NIL };
    let in_lane = rng.chance(850) && readers.iter_mut().all(|reader| reader.lane.has_room());
    let write = Write {
        kind,
        instance,
        source_timestamp: None,
        payload: Bytes::new(),
        number: None,
        in_lane,
        called: Time::default(),
        was_left: false,
    };
    for reader in readers {
        if in_lane {
            reader.lane.push(&cell::meta(number, &write), &payload).unwrap();
        } else {
            let change = CacheChange {
                kind,
                writer_guid: writer(1),
                sequence_number: number,
                instance: Some(instance),
                source_timestamp: None,
                time: NOW,
                payload: Bytes::copy_from(&payload),
            };
            reader.beside.push_back(change);
            reader.deliver();
        }
    }
}

#[test]
fn nobody_sees_which_way_a_sample_went() {
    let (mut passed, mut compared) = (0, 0);
    for seed in 0..RUNS {
        let mut rng = Rng::new(seed);
        let keyed = rng.chance(500);
        let history = match rng.below(3) {
            0 => History::KeepAll,
            depth => History::KeepLast(depth as u32),
        };
        // With KEEP_ALL what follows stays in the lane, so that an instance ends later for who takes.
        let ends = keyed && history != History::KeepAll;
        let mut readers = [true, false].map(|passes| Reader::new(history, keyed, passes));
        let mut number = 0;
        for step in 0..STEPS {
            if rng.chance(450) {
                number += 1;
                write(&mut rng, number, (keyed, ends), &mut readers);
                continue;
            }
            passed +=
                u64::from(readers[0].side.shows_unread(Time::default) && readers[0].side.cache.is_empty());
            let [one, other] = readers.each_mut().map(|reader| reader.take().map(seen));
            assert_eq!(one, other, "seed {seed}, step {step}, {history:?}, keyed {keyed}");
            compared += u64::from(one.is_some());
        }
    }
    assert!(passed > 1_000 && compared > 10_000, "{passed} of {compared} were passed on");
}

//! A lane against a plain model: one writer, three readers, everything at random from a seed.
//!
//! The model is what each reader has yet to get, in a queue. Whatever the lane gives must be next in it, whole,
//! with the right count of lost ones before; a view must keep its bytes for as long as it is kept, and room
//! must be there exactly when the model has it. `LANE_SEED=n` repeats one seed.
#![cfg(not(loom))]
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::sync::Arc;

use taut_mem::lane::{
    Entry, FEEDBACK_LEN, Feedback, INLINE, LOANS, Lane, LaneReader, LaneWriter, Meta, Next, Peer,
};
use taut_mem::{Bytes, Region};

const READERS: usize = 3;
const STEPS: usize = 2_000;
const SEEDS: u64 = if cfg!(miri) { 1 } else { 60 };
/// The longest payload.
const LONGEST: usize = if cfg!(miri) { 5_000 } else { 200_000 };

struct ModelReader {
    reader: LaneReader,
    peer: Peer,
    /// Positions that it has yet to get.
    queue: VecDeque<u64>,
    /// How many of these are known to be lost, as the arena needed their slots: the next sample counts them.
    gone: usize,
    /// How many it has taken when it last told.
    told: u64,
    taken: u64,
    held: Vec<(u64, Bytes)>,
}

struct Model {
    writer: LaneWriter,
    readers: Vec<ModelReader>,
    /// Length of each sample by its position.
    lens: Vec<usize>,
    cells: u64,
    random: fastrand::Rng,
}

fn meta(position: u64) -> Meta {
    std::array::from_fn(|at| (position + 1) * (at as u64 + 1))
}

/// A byte of a sample; enough of them differ between samples to tell one from another.
fn byte(position: u64, at: usize) -> u8 {
    (position as usize).wrapping_mul(167).wrapping_add(at.wrapping_mul(13)).wrapping_add(at >> 8) as u8
}

fn is_content(position: u64, bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(at, found)| *found == byte(position, at))
}

impl Model {
    fn new(seed: u64) -> Model {
        let mut random = fastrand::Rng::with_seed(seed);
        let cells = 1_usize << random.usize(1..6);
        let arena = *random.choice(&[0, 4_096, 1 << 16, 1 << 20, 4 << 20]).unwrap();
        let lane = Lane::create(Region::heap(Lane::size(cells, arena)), cells);
        let writer = LaneWriter::new(Arc::new(lane), Box::new(|_, _| true));
        Model { writer, readers: Vec::new(), lens: Vec::new(), cells: cells as u64, random }
    }

    fn head(&self) -> u64 {
        self.lens.len() as u64
    }

    fn attach(&mut self) {
        let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
        let peer = Peer { feedback, reliable: self.random.bool() };
        let mut peers: Vec<Peer> = self.readers.iter().map(|reader| reader.peer.clone()).collect();
        peers.push(peer.clone());
        self.writer.set_peers(peers);
        let copies = self.random.u8(..4) == 0;
        let reader = LaneReader::attach(self.writer.lane().clone(), peer.feedback.clone(), copies);
        let position = self.head();
        let (queue, held) = (VecDeque::new(), Vec::new());
        self.readers.push(ModelReader {
            reader,
            peer,
            queue,
            gone: 0,
            told: position,
            taken: position,
            held,
        });
    }

    fn detach(&mut self) {
        let which = self.random.usize(..self.readers.len());
        let gone = self.readers.swap_remove(which);
        // Its views go first: the writer looks at no feedback that it does not know.
        drop(gone);
        self.writer.set_peers(self.readers.iter().map(|reader| reader.peer.clone()).collect());
    }

    /// Is there a cell that every reliable reader has read, and said so?
    fn has_room(&self) -> bool {
        let told = self.readers.iter().filter(|reader| reader.peer.reliable).map(|reader| reader.told);
        self.head() < told.min().unwrap_or(self.head()) + self.cells
    }

    fn push(&mut self) {
        let len = match self.random.u8(..4) {
            0 | 1 => self.random.usize(..=INLINE),
            2 => self.random.usize(..4_000),
            _ => self.random.usize(..LONGEST),
        };
        let (position, room) = (self.head(), self.has_room());
        let content = |at| byte(position, at);
        let pushed = if len <= INLINE {
            let bytes: Vec<u8> = (0..len).map(content).collect();
            self.writer.push(&meta(position), &bytes).is_ok()
        } else {
            let Some(mut slot) = self.writer.claim(len) else { return };
            slot[..len].iter_mut().enumerate().for_each(|(at, byte)| *byte = content(at));
            match self.writer.push_slot(&meta(position), slot, len) {
                Ok(()) => true,
                Err(slot) => {
                    self.writer.give_back(slot);
                    false
                }
            }
        };
        assert_eq!(pushed, room, "room is exact, at {position}");
        if pushed {
            self.lens.push(len);
            self.readers.iter_mut().for_each(|reader| reader.queue.push_back(position));
        }
    }

    fn take(&mut self) {
        let which = self.random.usize(..self.readers.len());
        let reader = &mut self.readers[which];
        let ready = reader.reader.is_ready();
        assert_eq!(ready, reader.queue.len() > reader.gone, "what is written can be seen");
        let mut entry = Entry::default();
        match reader.reader.poll(&mut entry) {
            Next::Sample { lost } => {
                let Entry { meta: found, payload } = entry;
                assert!(lost == 0 || !reader.peer.reliable, "a reliable reader has lost {lost}");
                assert!(lost as usize >= reader.gone, "lost ones that were not counted");
                reader.queue.drain(..lost as usize);
                reader.gone = 0;
                let position = reader.queue.pop_front().expect("a sample that was written");
                let payload = Bytes::from(payload);
                assert_eq!((found, payload.len()), (meta(position), self.lens[position as usize]));
                assert!(is_content(position, &payload), "the content of {position}");
                reader.taken = position + 1;
                if self.random.u8(..3) == 0 && reader.held.len() < LOANS + 3 {
                    let end = payload.len();
                    reader.held.push((position, payload.slice(0..end)));
                }
            }
            // Ready, and yet all that was left is lost: never to a reliable reader.
            Next::Empty => {
                assert!(!ready || !reader.peer.reliable && !reader.reader.is_ready());
                reader.gone = reader.queue.len();
            }
            Next::Broken => panic!("the writer keeps to the rules"),
        }
        if self.random.bool() {
            reader.reader.publish();
            reader.told = reader.taken;
        }
    }

    fn drop_views(&mut self) {
        let which = self.random.usize(..self.readers.len());
        let held = &mut self.readers[which].held;
        for _ in 0..self.random.usize(..=held.len()) {
            held.swap_remove(self.random.usize(..held.len()));
        }
    }

    fn step(&mut self) {
        let readers = self.readers.len();
        match self.random.u8(..100) {
            0 | 1 if readers < READERS => self.attach(),
            2 if readers > 0 => self.detach(),
            3..50 if readers > 0 => self.take(),
            50..55 if readers > 0 => self.drop_views(),
            _ => self.push(),
        }
        // All views at each step would take too long.
        for reader in &self.readers {
            let looked_at = self.random.choice(&reader.held);
            assert!(looked_at.is_none_or(|(position, view)| is_content(*position, view)), "a held view");
        }
    }

    fn finish(mut self) {
        while self.readers.iter().any(|reader| reader.queue.len() > reader.gone) {
            self.take();
        }
        for (position, view) in self.readers.iter().flat_map(|reader| &reader.held) {
            assert!(is_content(*position, view), "a view held to the end");
        }
    }
}

#[test]
fn a_lane_does_what_a_queue_does() {
    let one: Option<u64> = std::env::var("LANE_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in one.map_or(0..SEEDS, |seed| seed..seed + 1) {
        let failed = std::panic::catch_unwind(|| {
            let mut model = Model::new(seed);
            (0..STEPS).for_each(|_| model.step());
            model.finish();
        });
        assert!(failed.is_ok(), "repeat with LANE_SEED={seed}");
    }
}

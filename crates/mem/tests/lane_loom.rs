//! The lanes under loom: short programs of a writer and its readers, run in every order that threads and
//! the memory model allow.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p taut-mem --release --test lane_loom`; empty without the flag. Each
//! model names the invariant of `taut_mem::lane` that it is about; bytes of slots are watched for races.
#![cfg(loom)]
#![forbid(unsafe_code)]

use std::sync::Arc;

use loom::sync::Notify;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;
use taut_mem::lane::{Bell, Entry, FEEDBACK_LEN, Feedback, Lane, LaneReader, LaneWriter, Next, Peer};
use taut_mem::{Bytes, Region};

/// The least lane that is a ring, and an arena of two slots.
const CELLS: usize = 2;
const SLOT: usize = 64;
const ARENA: usize = 2 * SLOT;

/// How often loom takes the processor from a thread that could go on, if `LOOM_MAX_PREEMPTIONS` does not
/// say. One more multiplies the time by about ten; with fewer, models miss faults that were put in.
const PREEMPTIONS: usize = 2;

fn explore(program: impl Fn() + Send + Sync + 'static) {
    explore_within(PREEMPTIONS, program);
}

fn explore_within(preemptions: usize, program: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 20_000;
    builder.check(program);
}

fn writer() -> LaneWriter {
    let lane = Lane::create(Region::heap(Lane::size(CELLS, ARENA)), CELLS);
    LaneWriter::new(Arc::new(lane), Box::new(|_, _| true))
}

fn peer(reliable: bool) -> Peer {
    let feedback = Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap();
    Peer { feedback: Arc::new(feedback), reliable }
}

fn attach(writer: &LaneWriter, peer: &Peer) -> Checked {
    let reader = LaneReader::attach(writer.lane().clone(), peer.feedback.clone(), false);
    Checked { reader, next: 1 }
}

/// A reader that checks what it gets. The first sample is 1: memory is zero where nothing was written.
struct Checked {
    reader: LaneReader,
    next: u64,
}

impl Checked {
    /// The payload of the next sample, if there is one: its words belong together, and none is missing that
    /// is not counted.
    fn take(&mut self) -> Option<Bytes> {
        let mut entry = Entry::default();
        match self.reader.poll(&mut entry) {
            Next::Empty => None,
            Next::Broken => panic!("the writer keeps to the rules"),
            Next::Sample { lost } => {
                let (meta, payload) = (entry.meta, Bytes::from(entry.payload));
                assert_eq!(meta[0], self.next + lost, "order, and count of lost samples");
                assert_eq!(payload.first_word(), meta[0], "torn");
                self.next = meta[0] + 1;
                Some(payload)
            }
        }
    }

    /// All that is left.
    fn finish(&mut self, written: u64) {
        while self.reader.is_ready() {
            self.take();
        }
        assert_eq!(self.next, written + 1, "the last sample is there, and all lost ones were counted");
    }
}

fn push(writer: &mut LaneWriter, n: u64) -> bool {
    writer.push(&[n], &n.to_le_bytes()).is_ok()
}

fn push_slot(writer: &mut LaneWriter, n: u64) -> bool {
    let Some(mut slot) = writer.claim(SLOT) else { return false };
    slot.write(n);
    writer.push_slot(&[n], slot, 8).is_ok()
}

/// C: a reader that is overtaken accepts no torn sample.
fn inline(readers: usize, polls: usize, preemptions: usize) {
    let samples = CELLS as u64 + 1;
    explore_within(preemptions, move || {
        let mut writer = writer();
        let peers: Vec<Peer> = (0..readers).map(|_| peer(false)).collect();
        writer.set_peers(peers.clone());
        let read = |mut reader: Checked| {
            thread::spawn(move || {
                (0..polls).for_each(|_| drop(reader.take()));
                reader
            })
        };
        let threads: Vec<_> = peers.iter().map(|peer| read(attach(&writer, peer))).collect();
        (1..=samples).for_each(|n| assert!(push(&mut writer, n)));
        threads.into_iter().for_each(|thread| thread.join().unwrap().finish(samples));
    });
}

#[test]
fn inline_samples_are_never_torn() {
    inline(1, 2, PREEMPTIONS);
}

#[test]
fn inline_samples_are_never_torn_for_two_readers() {
    inline(2, 1, PREEMPTIONS - 1);
}

/// C, and room: a reliable reader gets all in order, through a ring that is shorter.
#[test]
fn a_reliable_reader_loses_nothing() {
    const SAMPLES: u64 = 4;
    explore(|| {
        let mut writer = writer();
        let peer = peer(true);
        writer.set_peers(vec![peer.clone()]);
        let mut reader = attach(&writer, &peer);
        let thread = thread::spawn(move || {
            while reader.next <= SAMPLES {
                let expected = reader.next;
                match reader.take() {
                    Some(_) => assert_eq!(reader.next, expected + 1, "lost"),
                    None => thread::yield_now(),
                }
                reader.reader.publish();
            }
        });
        for n in 1..=SAMPLES {
            while !push(&mut writer, n) {
                thread::yield_now();
            }
        }
        thread.join().unwrap();
    });
}

/// L: a slot is not written while a view of it is left, whether it was overtaken or read. The arena has
/// room for two; a reader has one loan, so its second view is a copy. Who `leaves` reads on, as it does not know.
fn slots(reliable: bool, samples: u64, publishes: bool, leaves: bool) {
    explore(move || {
        let mut writer = writer();
        let peer = peer(reliable);
        writer.set_peers(vec![peer.clone()]);
        let mut reader = attach(&writer, &peer);
        let thread = thread::spawn(move || {
            let held = reader.take();
            if publishes {
                reader.reader.publish();
            }
            let first = held.as_ref().map(Bytes::first_word);
            let copied = reader.take();
            assert_eq!(held.as_ref().map(Bytes::first_word), first, "a held view has changed");
            drop((held, copied));
            reader
        });
        if leaves {
            writer.set_peers(Vec::new());
        }
        let written = (1..=samples).take_while(|n| push_slot(&mut writer, *n)).count() as u64;
        thread.join().unwrap().finish(written);
    });
}

#[test]
fn a_slot_that_is_overtaken_is_not_reused_while_held() {
    slots(false, 3, false, false);
}

#[test]
fn a_slot_that_is_read_is_not_reused_while_held() {
    slots(true, 3, true, false);
}

#[test]
fn a_slot_is_not_reused_while_who_has_left_looks_at_it() {
    slots(true, 3, false, true);
}

/// L, of views that two threads drop: what was read through it comes before the slot's next use,
/// also when the place in the feedback names the next position by then.
#[test]
fn views_dropped_by_another_thread() {
    explore(|| {
        let mut writer = writer();
        let peer = peer(false);
        writer.set_peers(vec![peer.clone()]);
        let mut reader = attach(&writer, &peer);
        assert!(push_slot(&mut writer, 1) && push_slot(&mut writer, 2));
        let first = reader.take().unwrap();
        let clone = first.clone();
        reader.reader.publish();
        let second = thread::spawn(move || {
            assert_eq!(first.first_word(), 1);
            drop(first);
        });
        let third = thread::spawn(move || {
            assert_eq!(clone.first_word(), 1);
            drop(clone);
            drop(reader.take());
        });
        // Into the first slot if it is free by now.
        push_slot(&mut writer, 3);
        second.join().unwrap();
        third.join().unwrap();
    });
}

/// P: a reader that attaches while the writer reuses slots as fast as it can.
#[test]
fn a_reader_that_attaches_is_reckoned_with() {
    explore(|| {
        let mut writer = writer();
        let told = Arc::new(AtomicU64::new(0));
        let peer = peer(false);
        let (lane, told_by_reader, feedback) = (writer.lane().clone(), told.clone(), peer.feedback.clone());
        let thread = thread::spawn(move || {
            told_by_reader.store(1, Ordering::Release);
            let mut reader = LaneReader::attach(lane, feedback, false);
            let mut entry = Entry::default();
            if let Next::Sample { .. } = reader.poll(&mut entry) {
                let payload = Bytes::from(entry.payload);
                assert_eq!(payload.first_word(), entry.meta[0]);
            }
        });
        for n in 1..=3 {
            fence(Ordering::SeqCst);
            if told.load(Ordering::Acquire) == 1 {
                writer.set_peers(vec![peer.clone()]);
            }
            assert!(push_slot(&mut writer, n));
        }
        thread.join().unwrap();
    });
}

/// P, of a reliable reader that attaches while the writer goes on: from the sample on that follows the last one it
/// then finds, all that is written is there.
#[test]
fn a_reliable_reader_that_attaches_loses_nothing() {
    explore_within(PREEMPTIONS + 1, || {
        let mut writer = writer();
        (1..=CELLS as u64 + 1).for_each(|n| assert!(push(&mut writer, n)));
        let told = Arc::new(AtomicU64::new(0));
        let peer = peer(true);
        let (lane, told_by_reader, feedback) = (writer.lane().clone(), told.clone(), peer.feedback.clone());
        let thread = thread::spawn(move || {
            told_by_reader.store(1, Ordering::Release);
            let reader = LaneReader::attach(lane, feedback, false);
            let from = reader.lane().last() + 1;
            (reader, from)
        });
        let (mut written, mut knows) = (CELLS as u64 + 1, false);
        for n in written + 1..=written + 4 {
            fence(Ordering::SeqCst);
            if !knows && told.load(Ordering::Acquire) == 1 {
                writer.set_peers(vec![peer.clone()]);
                knows = true;
            }
            if !push(&mut writer, n) {
                break;
            }
            written = n;
        }
        let (mut reader, mut next) = thread.join().unwrap();
        if !knows {
            return;
        }
        while reader.is_ready() {
            let mut entry = Entry::default();
            if let Next::Sample { .. } = reader.poll(&mut entry) {
                assert!(entry.meta[0] <= next, "lost {next}");
                next = next.max(entry.meta[0] + 1);
            }
        }
        assert_eq!(next, written + 1);
    });
}

/// W: a reader that sleeps is woken by the sample that it did not see. A lost one is a deadlock to loom.
#[test]
fn a_reader_that_sleeps_is_woken() {
    const SAMPLES: u64 = 2;
    explore(|| {
        let mut writer = writer();
        let peer = peer(false);
        writer.set_peers(vec![peer.clone()]);
        let mut reader = attach(&writer, &peer);
        let bell = Arc::new(Bell::new(Region::heap(8)).unwrap());
        let wake = Arc::new(Notify::new());
        let (bell_of_reader, wake_of_reader) = (bell.clone(), wake.clone());
        let thread = thread::spawn(move || {
            while reader.next <= SAMPLES {
                if reader.take().is_some() {
                    continue;
                }
                bell_of_reader.arm();
                if !reader.reader.is_ready() {
                    wake_of_reader.wait();
                }
                bell_of_reader.disarm();
            }
        });
        let mut rung = None;
        for n in 1..=SAMPLES {
            assert!(push(&mut writer, n));
            fence(Ordering::SeqCst);
            let armed = bell.armed();
            if armed.is_some() && armed != rung {
                wake.notify();
                rung = armed;
            }
        }
        thread.join().unwrap();
    });
}

/// W: a writer that waits for room is told of it.
#[test]
fn a_writer_that_waits_for_room_is_woken() {
    const SAMPLES: u64 = 4;
    explore(|| {
        let mut writer = writer();
        let peer = peer(true);
        writer.set_peers(vec![peer.clone()]);
        let mut reader = attach(&writer, &peer);
        let wake = Arc::new(Notify::new());
        let wake_of_reader = wake.clone();
        (1..=CELLS as u64).for_each(|n| assert!(push(&mut writer, n)));
        let thread = thread::spawn(move || {
            // As many as make room for all; the rest is left unread.
            for _ in 0..SAMPLES - CELLS as u64 {
                assert!(reader.take().is_some());
                if reader.reader.publish() {
                    wake_of_reader.notify();
                }
            }
        });
        for n in CELLS as u64 + 1..=SAMPLES {
            while !push(&mut writer, n) {
                writer.await_readers(true);
                if !writer.has_room() {
                    wake.wait();
                }
                writer.await_readers(false);
            }
        }
        thread.join().unwrap();
    });
}

//! A lane under real threads: a writer that never rests, a reader that keeps up, one that is slow and one
//! that holds views, all reading in place what is checked for as long as a view lives.
//!
//! Runs under the address and thread sanitizers: `make test-mem`.
#![cfg(not(loom))]
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taut_mem::lane::{Entry, FEEDBACK_LEN, Feedback, INLINE, Lane, LaneReader, LaneWriter, Next, Peer};
use taut_mem::{Bytes, Region};

/// Two runs of this make about five seconds.
const RUN: Duration = Duration::from_millis(if cfg!(miri) { 200 } else { 2_500 });
/// A reader that gets nothing for so long, of a writer that never rests, is lost.
const PATIENCE: Duration = Duration::from_secs(30);
const CELLS: usize = 16;
/// Fewer slots than cells, so that slots are taken from readers as well.
const ARENA: usize = 48 << 10;

/// Every word of a sample is made of its number.
fn fill(bytes: &mut [u8], n: u64) {
    for (at, chunk) in bytes.chunks_mut(8).enumerate() {
        let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(at as u64);
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

fn check(bytes: &[u8], n: u64) {
    for (at, chunk) in bytes.chunks(8).enumerate() {
        let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(at as u64);
        assert_eq!(chunk, &word.to_le_bytes()[..chunk.len()], "sample {n}, word {at}");
    }
}

fn len_of(n: u64) -> usize {
    match n % 4 {
        0 => (n as usize / 4) % (INLINE + 1),
        1 => INLINE + 1 + (n as usize % 200),
        2 => 300,
        _ => 1 + (n as usize * 37) % 3_000,
    }
}

/// How a reader behaves; what it has found in the end.
#[derive(Clone, Copy)]
struct Manner {
    reliable: bool,
    copies: bool,
    /// Loads between two polls.
    rest: u32,
    /// Views that it keeps.
    keeps: usize,
}

#[derive(Default)]
struct Tally {
    taken: u64,
    lost: u64,
}

fn read(mut reader: LaneReader, manner: Manner, done: &AtomicBool) -> Tally {
    let mut tally = Tally::default();
    let mut held: VecDeque<(u64, Bytes)> = VecDeque::new();
    let mut heard = Instant::now();
    loop {
        // Looked at before the poll: what was written before the end is still found after it.
        let ended = done.load(Ordering::Acquire);
        let mut entry = Entry::default();
        match reader.poll(&mut entry) {
            Next::Sample { lost } => {
                let Entry { meta, payload } = entry;
                let n = meta[0];
                assert_eq!(n, tally.taken + tally.lost + lost, "order, and count of lost samples");
                let payload = Bytes::from(payload);
                assert_eq!((meta[4], payload.len()), (n.wrapping_mul(3), len_of(n)));
                assert!(lost == 0 || !manner.reliable, "lost {lost} before {n}");
                check(&payload, n);
                tally.lost += lost;
                tally.taken += 1;
                held.push_back((n, payload));
                heard = Instant::now();
            }
            Next::Empty if ended && !reader.is_ready() => break,
            Next::Empty => thread::yield_now(),
            Next::Broken => panic!("the writer keeps to the rules"),
        }
        assert!(heard.elapsed() < PATIENCE, "nothing comes");
        while held.len() > manner.keeps {
            held.pop_front().inspect(|(n, view)| check(view, *n));
        }
        (0..manner.rest).for_each(|_| std::hint::spin_loop());
        reader.publish();
    }
    held.iter().for_each(|(n, view)| check(view, *n));
    tally
}

fn write(mut writer: LaneWriter) -> u64 {
    let (start, mut n, mut failed_at) = (Instant::now(), 0, None);
    while start.elapsed() < RUN {
        let len = len_of(n);
        let meta = [n, 0, 0, 0, n.wrapping_mul(3)];
        let pushed = if len <= INLINE {
            let mut bytes = [0; INLINE];
            fill(&mut bytes[..len], n);
            writer.push(&meta, &bytes[..len]).is_ok()
        } else {
            writer.claim(len).is_some_and(|mut slot| {
                fill(&mut slot[..len], n);
                writer.push_slot(&meta, slot, len).map_err(|slot| writer.give_back(slot)).is_ok()
            })
        };
        if pushed {
            (n, failed_at) = (n + 1, None);
        } else {
            let since = *failed_at.get_or_insert_with(Instant::now);
            assert!(since.elapsed() < PATIENCE, "sample {n} finds no room");
            thread::yield_now();
        }
    }
    n
}

fn run(manners: [Manner; 3]) -> (u64, Vec<Tally>) {
    let lane = Lane::create(Region::heap(Lane::size(CELLS, ARENA)), CELLS);
    let mut writer = LaneWriter::new(Arc::new(lane), Box::new(|_, _| true));
    let peer = |manner: &Manner| {
        let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
        Peer { feedback, reliable: manner.reliable }
    };
    let peers: Vec<Peer> = manners.iter().map(peer).collect();
    writer.set_peers(peers.clone());
    let done = Arc::new(AtomicBool::new(false));
    let readers = manners.into_iter().zip(&peers).map(|(manner, peer)| {
        let reader = LaneReader::attach(writer.lane().clone(), peer.feedback.clone(), manner.copies);
        let done = done.clone();
        thread::spawn(move || read(reader, manner, &done))
    });
    let readers: Vec<_> = readers.collect();
    let written = thread::spawn(move || write(writer)).join();
    done.store(true, Ordering::Release);
    let tallies: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    let written = written.unwrap();
    for tally in &tallies {
        assert_eq!(tally.taken + tally.lost, written, "all samples are accounted for");
    }
    (written, tallies)
}

#[test]
fn best_effort_readers_are_overtaken_and_see_no_torn_sample() {
    let quick = Manner { reliable: false, copies: false, rest: 0, keeps: 0 };
    let slow = Manner { rest: 3_000, copies: true, ..quick };
    let (_, tallies) = run([quick, slow, Manner { keeps: 5, ..quick }]);
    assert!(cfg!(miri) || tallies[1].lost > 0, "the slow reader was never overtaken");
    assert!(tallies.iter().all(|tally| tally.taken > 0));
}

#[test]
fn reliable_readers_get_all() {
    let quick = Manner { reliable: true, copies: false, rest: 0, keeps: 0 };
    let slow = Manner { rest: 300, ..quick };
    let (written, tallies) = run([quick, slow, Manner { keeps: 5, copies: false, reliable: true, rest: 0 }]);
    assert!(written > 0 && tallies.iter().all(|tally| tally.taken == written));
}

//! A lane by one thread: each rule of the ring, of the arena and of what a reader believes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering as StdOrdering};
use std::sync::{Arc, Mutex};

use super::*;
use crate::Bytes;

/// The smallest slot's payload, and one that needs a slot.
const SMALL: usize = 512 - HEADROOM + LEAD;

/// Miri takes a thousand times as long.
const ROUNDS: u64 = if cfg!(miri) { 40 } else { 1_000 };

fn granted() -> Commit {
    Box::new(|_, _| true)
}

fn writer(cells: usize, arena: usize) -> LaneWriter {
    let lane = Lane::create(Region::heap(Lane::size(cells, arena)), cells);
    LaneWriter::new(Arc::new(lane), granted())
}

fn peer(reliable: bool) -> Peer {
    let feedback = Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap();
    Peer { feedback: Arc::new(feedback), reliable }
}

/// Readers that the writer knows before they attach.
fn readers(writer: &mut LaneWriter, reliable: &[bool]) -> (Vec<LaneReader>, Vec<Peer>) {
    let peers: Vec<Peer> = reliable.iter().map(|reliable| peer(*reliable)).collect();
    writer.set_peers(peers.clone());
    let attach = |peer: &Peer| LaneReader::attach(writer.lane().clone(), peer.feedback.clone(), false);
    (peers.iter().map(attach).collect(), peers)
}

fn reader(writer: &mut LaneWriter, reliable: bool) -> (LaneReader, Peer) {
    let (mut all, mut peers) = readers(writer, &[reliable]);
    (all.remove(0), peers.remove(0))
}

fn meta(n: u64) -> Meta {
    std::array::from_fn(|at| n.wrapping_mul(at as u64 + 1).wrapping_add(at as u64))
}

fn content(n: u64, len: usize) -> Vec<u8> {
    (0..len).map(|at| (n as usize * 31 + at * 7) as u8).collect()
}

fn push_small(writer: &mut LaneWriter, n: u64, len: usize) -> bool {
    let Some(mut slot) = writer.claim(len) else { return false };
    slot[..len].copy_from_slice(&content(n, len));
    writer.push_slot(&meta(n), slot, len).is_ok()
}

/// A sample that must be there, with how many were lost before it.
fn take(reader: &mut LaneReader) -> (Meta, Bytes, u64) {
    let mut entry = Entry::default();
    match reader.poll(&mut entry) {
        Next::Sample { lost } => (entry.meta, entry.payload.into(), lost),
        other => panic!("no sample but {other:?}"),
    }
}

#[test]
fn inline_payloads_of_every_length() {
    let mut writer = writer(4, 0);
    let (mut reader, _) = reader(&mut writer, true);
    for len in 0..=INLINE {
        let n = len as u64;
        writer.push(&meta(n), &content(n, len)).unwrap();
        assert!(reader.is_ready() && writer.lane().last() == meta(n)[0]);
        let (got, payload, lost) = take(&mut reader);
        assert_eq!((got, &*payload, lost), (meta(n), &content(n, len)[..], 0));
        assert!(matches!(reader.poll(&mut Entry::default()), Next::Empty) && !reader.is_ready());
        assert!(!reader.publish(), "the writer does not wait");
    }
    assert_eq!(writer.push(&meta(0), &[0; INLINE + 1]), Err(NoRoom));
}

#[test]
fn payloads_in_slots_of_every_size() {
    let mut writer = writer(4, 4 << 20);
    let (mut reader, _) = reader(&mut writer, true);
    for len in [0, 1, INLINE + 1, SMALL, SMALL + 1, 4_096, 4_096 - HEADROOM, 100_000, 1 << 20] {
        let n = len as u64;
        assert!(push_small(&mut writer, n, len), "{len}");
        let (got, payload, lost) = take(&mut reader);
        assert_eq!((got, payload.len(), lost), (meta(n), len, 0));
        assert!(*payload == content(n, len), "{len}");
        reader.publish();
    }
    assert!(writer.claim(usize::MAX).is_none() && writer.claim(4 << 20).is_none());
}

#[test]
fn the_slot_that_was_read_last_is_filled_next() {
    let mut writer = writer(8, 1 << 16);
    let (mut reader, _) = reader(&mut writer, true);
    let mut slots = Vec::new();
    for n in 0..4 {
        let slot = writer.claim(SMALL).unwrap();
        slots.push(slot.name());
        assert!(writer.push_slot(&meta(n), slot, SMALL).is_ok());
    }
    let mut views: Vec<_> = (0..4).map(|_| take(&mut reader)).collect();
    reader.publish();
    // The last one is looked at still.
    views.drain(..3);
    let next = |writer: &mut LaneWriter| writer.claim(SMALL).unwrap().name();
    assert_eq!([next(&mut writer), next(&mut writer), next(&mut writer)], [slots[2], slots[1], slots[0]]);
    drop(views);
    assert_eq!(next(&mut writer), slots[3]);
}

#[test]
fn values_behind_their_header_start_at_a_cache_line() {
    let mut writer = writer(4, 1 << 20);
    for len in [1, 400, 5_000, 70_000] {
        let slot = writer.claim(len).unwrap();
        assert_eq!((slot.as_ptr() as usize + LEAD) % UNIT, 0, "{len}");
        assert!(slot.capacity() >= len && slot.len() == slot.capacity());
    }
    let slot = writer.claim(PAGE - HEADROOM).unwrap();
    assert_eq!((slot.as_ptr() as usize + LEAD - HEADROOM) % PAGE, 0, "a page's slot is a page");
}

#[test]
fn what_was_overtaken_is_counted() {
    let mut writer = writer(8, 0);
    let (mut reader, _) = reader(&mut writer, false);
    (0..20).for_each(|n| writer.push(&meta(n), &[n as u8]).unwrap());
    // A quarter of the ring is left to the writer, who is about to take it.
    for (n, lost) in [(14, 14), (15, 0), (16, 0)] {
        assert_eq!(take(&mut reader), (meta(n), Bytes::copy_from(&[n as u8]), lost));
    }
    (20..28).for_each(|n| writer.push(&meta(n), &[n as u8]).unwrap());
    let (got, _, lost) = take(&mut reader);
    assert_eq!((got, lost), (meta(22), 5));
}

#[test]
fn there_is_room_for_as_many_as_there_are_cells() {
    let mut writer = writer(4, 1 << 20);
    let (mut reader, _) = reader(&mut writer, true);
    for n in 0..4 {
        assert!(writer.has_room());
        writer.push(&meta(n), &[]).unwrap();
        assert_eq!(writer.unread(), n + 1);
    }
    assert!(!writer.has_room() && writer.push(&meta(4), &[]) == Err(NoRoom));
    let slot = writer.claim(100).unwrap();
    let slot = writer.push_slot(&meta(4), slot, 100).err().unwrap();
    writer.give_back(slot);
    writer.await_readers(true);
    take(&mut reader);
    assert_eq!(writer.push(&meta(4), &[]), Err(NoRoom), "it has not told yet");
    assert!(reader.publish(), "the writer waits to be told");
    assert!(!reader.publish(), "there is nothing new to tell");
    writer.push(&meta(4), &[]).unwrap();
    assert_eq!(writer.push(&meta(5), &[]), Err(NoRoom));
    writer.set_peers(Vec::new());
    (0..100).for_each(|n| writer.push(&meta(n), &[]).unwrap());
}

#[test]
fn a_reader_that_lies_harms_itself_alone() {
    let mut writer = writer(4, 16 << 10);
    let (mut readers, peers) = readers(&mut writer, &[true, true]);
    let mut honest = readers.remove(0);
    let liar = &peers[1].feedback;
    for n in 0..ROUNDS {
        let lies = [0, 1, n, n + 1, n + 2, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        liar.set_cursor(lies[n as usize % lies.len()]);
        liar.hold(n as usize, n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if !writer.has_room() {
            // A reader may say that it has read nothing, until it is a whole ring behind.
            liar.set_cursor(u64::MAX);
        }
        assert!(writer.unread() <= 4);
        assert!(push_small(&mut writer, n, 100), "{n}");
        let (got, payload, lost) = take(&mut honest);
        assert_eq!((got, &*payload, lost), (meta(n), &content(n, 100)[..], 0));
        drop(payload);
        honest.publish();
    }
}

#[test]
fn a_reader_that_is_a_ring_behind_is_not_waited_for() {
    let mut writer = writer(4, 2 * 512);
    let stuck = peer(true);
    (0..9).for_each(|n| writer.push(&meta(n), &[]).unwrap());
    writer.set_peers(vec![stuck]);
    (0..9).for_each(|n| assert!(push_small(&mut writer, n, SMALL), "{n}"));
}

#[test]
fn a_warm_arena_takes_no_more_slots() {
    let mut writer = writer(16, 1 << 20);
    let (mut reader, _) = reader(&mut writer, true);
    let mut slots = BTreeSet::new();
    for n in 0..ROUNDS {
        let slot = writer.claim(SMALL).unwrap();
        slots.insert(slot.as_ptr());
        assert!(writer.push_slot(&meta(n), slot, SMALL).is_ok());
        take(&mut reader);
        reader.publish();
    }
    assert_eq!(slots.len(), 1, "nobody looks at the last one when the next is claimed");
    for n in 0..ROUNDS {
        let slot = writer.claim(SMALL).unwrap();
        slots.insert(slot.as_ptr());
        writer.give_back(slot);
        assert!(push_small(&mut writer, n, SMALL));
        take(&mut reader);
        reader.publish();
    }
    assert_eq!(slots.len(), 1);
}

#[test]
fn a_held_view_keeps_its_slot() {
    let mut writer = writer(4, 64 * 512);
    let (mut reader, _) = reader(&mut writer, false);
    let mut held: Vec<(u64, Bytes)> = Vec::new();
    for n in 0..ROUNDS {
        assert!(push_small(&mut writer, n, SMALL), "{n}");
        let (got, payload, lost) = take(&mut reader);
        assert_eq!((got, lost), (meta(n), 0));
        reader.publish();
        if n % 20 == 0 {
            held.push((n, payload.slice(1..SMALL)));
        }
        for (n, payload) in &held {
            assert!(**payload == content(*n, SMALL)[1..], "{n}");
        }
    }
    drop(reader);
    assert_eq!(&*held[0].1, &content(0, SMALL)[1..], "the view outlives its reader");
}

#[test]
fn who_holds_too_many_gets_copies() {
    let mut writer = writer(4, (LOANS + 2) * 512);
    let (mut reader, _) = reader(&mut writer, false);
    let mut held = Vec::new();
    // A copy is made of whole words.
    let len = SMALL - 3;
    let mut push_and_take = |n| {
        assert!(push_small(&mut writer, n, len), "{n}");
        let (_, payload, lost) = take(&mut reader);
        reader.publish();
        assert_eq!(lost, 0);
        payload
    };
    for n in 0..LOANS as u64 + 5 {
        held.push(push_and_take(n));
    }
    let is_copy = |payload: &Bytes| payload.pinned() > payload.len();
    assert_eq!(held.iter().map(is_copy).filter(|copied| *copied).count(), 5);
    assert!(held.iter().enumerate().all(|(n, payload)| **payload == content(n as u64, len)));
    held.truncate(LOANS - 1);
    let (next, copied) = (push_and_take(1_000), push_and_take(1_001));
    assert!(!is_copy(&next) && is_copy(&copied));
    assert_eq!((&*next, &*copied), (&content(1_000, len)[..], &content(1_001, len)[..]));
}

#[test]
fn a_writer_looks_at_no_more_places_than_there_is_need_for() {
    let mut writer = writer(4, (LOANS + 2) * 512);
    let (mut reader, peer) = reader(&mut writer, false);
    let mut push_and_take = |n| {
        assert!(push_small(&mut writer, n, SMALL), "{n}");
        let payload = take(&mut reader).1;
        reader.publish();
        payload
    };
    let mut held: Vec<Bytes> = (0..10).map(&mut push_and_take).collect();
    assert_eq!(peer.feedback.used(), 11);
    drop(held.split_off(1));
    let next = push_and_take(10);
    assert_eq!(peer.feedback.used(), 11, "the next is behind the first, which is held");
    drop((held, next));
    drop(push_and_take(11));
    assert_eq!(peer.feedback.used(), 2);
}

#[test]
fn a_reader_that_trusts_nobody_copies_and_holds_nothing() {
    let mut writer = writer(4, 4 * 512);
    let peer = peer(true);
    writer.set_peers(vec![peer.clone()]);
    let mut reader = LaneReader::attach(writer.lane().clone(), peer.feedback.clone(), true);
    let mut kept = Vec::new();
    for n in 0..20 {
        assert!(push_small(&mut writer, n, SMALL));
        kept.push(take(&mut reader).1);
        reader.publish();
        assert!((0..=n).all(|position| !peer.feedback.holds(position)));
    }
    assert!(kept.iter().enumerate().all(|(n, payload)| **payload == content(n as u64, SMALL)));
}

#[test]
fn best_effort_readers_are_overtaken_before_a_claim_fails() {
    for slots in [1, 2, 5, 12, 40] {
        let mut writer = writer(64, slots * 512);
        let (mut reader, _) = reader(&mut writer, false);
        for n in 0..200 {
            assert!(push_small(&mut writer, n, SMALL), "{slots} slots, sample {n}");
        }
        let mut next = 0;
        while reader.is_ready() {
            let mut entry = Entry::default();
            let Next::Sample { lost } = reader.poll(&mut entry) else { continue };
            let Entry { meta: got, payload } = entry;
            next += lost;
            assert_eq!((got, &*payload), (meta(next), &content(next, SMALL)[..]), "{slots} slots");
            next += 1;
        }
        assert_eq!(next, 200, "{slots} slots: all lost ones are counted, and the last is there");
    }
}

#[test]
fn a_claim_fails_only_when_every_slot_is_held_or_awaited() {
    let mut writer = writer(64, 12 * 512);
    let (mut reader, _) = reader(&mut writer, false);
    let mut held = Vec::new();
    for n in 0..11 {
        assert!(push_small(&mut writer, n, SMALL));
        held.push(take(&mut reader).1);
    }
    for n in 11..100 {
        assert!(push_small(&mut writer, n, SMALL), "sample {n}: one slot is not held");
    }
    held.push(take(&mut reader).1);
    assert!(!reader.is_ready());
    assert!(writer.claim(SMALL).is_none(), "all are held");
    held.remove(7);
    let slot = writer.claim(SMALL).expect("the one that was released");
    assert!(writer.claim(SMALL).is_none());
    writer.give_back(slot);
    drop((held, reader));

    let (_reader, _peer) = readers(&mut writer, &[true]);
    for n in 0..12 {
        assert!(push_small(&mut writer, n, SMALL), "{n}");
    }
    assert!(writer.has_room() && writer.claim(SMALL).is_none(), "a reliable reader has not read them");
}

#[test]
fn slots_that_were_held_come_back() {
    let mut writer = writer(64, 12 * 512);
    let (mut reader, _) = reader(&mut writer, true);
    let mut held = Vec::new();
    for n in 0..10 {
        assert!(push_small(&mut writer, n, SMALL));
        held.push(take(&mut reader).1);
        reader.publish();
    }
    drop(held);
    let slots: Vec<Slot> = std::iter::from_fn(|| writer.claim(SMALL)).collect();
    assert_eq!(slots.len(), 12);
    assert_eq!(slots.iter().map(|slot| slot.as_ptr()).collect::<BTreeSet<_>>().len(), 12);
}

#[test]
fn memory_that_is_not_granted_is_not_used() {
    let allowed = Arc::new(AtomicBool::new(false));
    let lane = Arc::new(Lane::create(Region::heap(Lane::size(4, 1 << 20)), 4));
    let (start, seen) = (Lane::arena_start(4), allowed.clone());
    let commit: Commit = Box::new(move |from, len| {
        assert!(from >= start && from + len <= Lane::size(4, 1 << 20));
        seen.load(StdOrdering::Relaxed)
    });
    let mut writer = LaneWriter::new(lane, commit);
    assert!(writer.claim(SMALL).is_none());
    writer.push(&meta(1), &[1]).expect("a small sample needs none");
    allowed.store(true, StdOrdering::Relaxed);
    assert!(push_small(&mut writer, 2, SMALL));
}

#[test]
fn memory_that_is_there_is_not_asked_for() {
    /// A slot of SMALL takes 512 B.
    const SLOTS: usize = 12;
    let lane = Arc::new(Lane::create(Region::heap(Lane::size(4, 1 << 20)), 4));
    let there = Lane::arena_start(4) + SLOTS * 512;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let commit: Commit = Box::new(move |from, _| {
        seen.lock().unwrap().push(from);
        false
    });
    let mut writer = LaneWriter::new(lane, commit).with_committed(there);
    let slots: Vec<Slot> = std::iter::from_fn(|| writer.claim(SMALL)).collect();
    assert_eq!((slots.len(), &*asked.lock().unwrap()), (SLOTS, &vec![there]));
}

#[test]
fn slots_that_do_not_fit_are_refused() {
    let (mut one, mut other) = (writer(4, 1 << 16), writer(4, 1 << 16));
    let slot = one.claim(SMALL).unwrap();
    let slot = other.push_slot(&meta(0), slot, 10).err().unwrap();
    let slot = one.push_slot(&meta(0), slot, SMALL + 1).err().unwrap();
    other.give_back(slot);
    let (a, b) = (other.claim(SMALL).unwrap(), other.claim(SMALL).unwrap());
    assert_ne!(a.as_ptr(), b.as_ptr(), "the foreign slot was not taken in");
    assert_eq!(one.lane().last(), 0, "nothing was written");
}

#[test]
fn only_a_whole_lane_is_opened() {
    let laid = |len: usize, words: &[(usize, u64)]| {
        let region = Region::heap(len);
        for (at, value) in words {
            region.words(*at, 1).unwrap()[0].store(*value, Ordering::Relaxed);
        }
        Lane::open(region).map(|lane| lane.cells())
    };
    let size = Lane::size(8, 0);
    let of_cells = |len, cells| laid(len, &[(AT_MAGIC, MAGIC), (AT_CELLS, cells)]);
    assert_eq!(of_cells(size, 8), Ok(8));
    assert_eq!(laid(size, &[(AT_MAGIC, MAGIC + 1), (AT_CELLS, 8)]), Err(NotALane::Layout));
    assert_eq!(laid(size, &[(AT_CELLS, 8)]), Err(NotALane::Layout));
    assert_eq!(of_cells(size - 1, 32), Err(NotALane::Short));
    assert_eq!(of_cells(size, 64), Err(NotALane::Short));
    for cells in [0, 7, 9, 1 << 32, 1 << 63, u64::MAX] {
        assert_eq!(of_cells(size, cells), Err(NotALane::Cells(cells)));
    }
    for len in [0, 8] {
        assert_eq!(Lane::open(Region::heap(len)).err(), Some(NotALane::Layout));
    }
    assert!(Feedback::new(Region::heap(FEEDBACK_LEN - 1)).is_none() && Bell::new(Region::heap(7)).is_none());
}

#[test]
fn a_lane_of_more_cells_than_anybody_looks_through_is_not_read() {
    let open = |cells: usize| {
        let lane = Lane::create(Region::heap(Lane::size(cells, 0)), cells);
        Lane::open(lane.region).map(|lane| lane.cells())
    };
    assert_eq!(open(MAX_CELLS), Ok(MAX_CELLS as u64));
    assert_eq!(open(2 * MAX_CELLS), Err(NotALane::Cells(2 * MAX_CELLS as u64)));
}

#[test]
fn who_has_left_with_samples_counts_until_they_are_dropped() {
    let mut writer = writer(8, 1 << 16);
    let (mut reader, _) = reader(&mut writer, true);
    assert!(push_small(&mut writer, 1, SMALL));
    let (_, kept, _) = take(&mut reader);
    writer.set_peers(Vec::new());
    assert_eq!(writer.left(), 1);
    drop(reader);
    writer.set_peers(Vec::new());
    assert_eq!(writer.left(), 1);
    drop(kept);
    writer.set_peers(Vec::new());
    assert_eq!(writer.left(), 0);
}

/// As one whose process stood still for so long that its writer has given it up.
#[test]
fn who_has_left_without_knowing_it_reads_on_and_finds_no_other_samples() {
    let mut writer = writer(16, 1 << 16);
    let (mut readers, peers) = readers(&mut writer, &[true, true]);
    let mut gone = readers.pop().unwrap();
    let push = |writer: &mut LaneWriter, reader: &mut LaneReader, from: u64| {
        for n in from..from + 4 {
            assert!(push_small(writer, n, SMALL));
            take(reader);
            reader.publish();
        }
    };
    push(&mut writer, &mut readers[0], 0);
    writer.set_peers(vec![peers[0].clone()]);
    push(&mut writer, &mut readers[0], 4);
    let (first, payload, lost) = take(&mut gone);
    let (n, content_of) = (lost, content(lost, SMALL));
    assert_eq!((first, &*payload), (meta(n), &content_of[..]));
    assert!(n > 0, "the arena takes slots anew that all others have read");
    push(&mut writer, &mut readers[0], 8);
    assert_eq!(&*payload, &content_of[..], "what it looks at stays");
    assert_eq!(writer.left(), 1);
    drop((gone, payload));
    push(&mut writer, &mut readers[0], 12);
    assert_eq!(writer.left(), 0, "and no longer than that");
}

/// The words of a writer that is mad: some at random, some nearly right.
fn scramble(region: &Region, cells: usize, position: u64, random: &mut fastrand::Rng) {
    let words = region.words(0, region.len() / WORD).unwrap();
    for word in words {
        word.store(random.u64(..), Ordering::Relaxed);
    }
    words[AT_MAGIC].store(MAGIC, Ordering::Relaxed);
    words[AT_CELLS].store(cells as u64, Ordering::Relaxed);
    if random.bool() {
        words[AT_HEAD].store(position.wrapping_add(random.u64(..2 * cells as u64)), Ordering::Relaxed);
    }
    for cell in words[HEADER..HEADER + cells * CELL].chunks_exact(CELL) {
        let near = position.wrapping_add(random.u64(..4)).wrapping_sub(1);
        cell[STAMP].store(ready(near).wrapping_sub(random.u64(..8) / 7), Ordering::Relaxed);
        let units = (region.len() / UNIT) as u64;
        let name = *random.choice(&[0, 1, units / 2, units - 1, units, units + 1, u64::MAX >> 32]).unwrap();
        let len = *random.choice(&[0, 8, 72, 73, 500, region.len() as u64, u64::MAX >> 32]).unwrap();
        cell[PAYLOAD].store(name << 32 | len, Ordering::Relaxed);
    }
}

#[test]
fn a_writer_that_is_mad_is_survived() {
    let rounds = if cfg!(miri) { 2 } else { 4_000 };
    let (mut samples, mut broken, mut empty) = (0, 0, 0);
    for seed in 0..rounds {
        let mut random = fastrand::Rng::with_seed(seed);
        let cells = 1 << random.usize(..4);
        // Lengths that are no multiple of a word, too.
        let region = Region::heap(Lane::size(cells, random.usize(..2_000)));
        scramble(&region, cells, random.u64(..) >> random.u32(..64), &mut random);
        let lane = Arc::new(Lane::open(region).unwrap());
        let mut reader = LaneReader::attach(lane.clone(), peer(true).feedback, random.bool());
        let mut held = Vec::new();
        for _ in 0..20 {
            scramble(&lane.region, cells, reader.position(), &mut random);
            let mut entry = Entry::default();
            match reader.poll(&mut entry) {
                Next::Sample { .. } => {
                    let payload = entry.payload;
                    assert!(payload.len() <= lane.region.len(), "seed {seed}");
                    samples += 1;
                    held.push(payload);
                }
                Next::Broken => broken += 1,
                Next::Empty => empty += 1,
            }
            reader.is_ready();
            reader.publish();
            held.truncate(random.usize(..8));
            std::hint::black_box(held.iter().map(sum).sum::<u64>());
        }
    }
    let seen_all = samples > rounds && broken > rounds && empty > rounds;
    assert!(seen_all || cfg!(miri), "{samples} {broken} {empty}");
}

fn sum(payload: &Payload) -> u64 {
    payload.iter().map(|byte| u64::from(*byte)).sum()
}

#[test]
fn samples_that_were_not_written_break_the_lane() {
    for (head, lies) in [0, 3, 4, 1 << 40, u64::MAX].into_iter().flat_map(|head| [(head, 1), (head, 4)]) {
        let lane = Arc::new(Lane::create(Region::heap(Lane::size(4, 0)), 4));
        let mut reader = LaneReader::attach(lane.clone(), peer(true).feedback, false);
        (0..lies).for_each(|position| lane.stamp(position).store(u64::MAX, Ordering::Relaxed));
        lane.header()[AT_HEAD].store(head, Ordering::Relaxed);
        assert!(reader.is_ready());
        // Who finds it first may not be who minds.
        for _ in 0..2 {
            let found = reader.poll(&mut Entry::default());
            assert!(matches!(found, Next::Broken), "head {head}, {lies} stamps: {found:?}");
        }
    }
}

/// It moves on each time that it is caught.
#[test]
fn a_writer_that_lies_keeps_its_reader_looking_for_some_rings_only() {
    const CELLS: usize = 64;
    let lane = Arc::new(Lane::create(Region::heap(Lane::size(CELLS, 0)), CELLS));
    let mut reader = LaneReader::attach(lane.clone(), peer(false).feedback, false);
    (0..CELLS as u64).for_each(|position| lane.stamp(position).store(u64::MAX, Ordering::Relaxed));
    // Each poll passes three quarters of the stamps.
    let finds = |reader: &mut LaneReader| {
        lane.stamp(reader.position().wrapping_sub(1)).store(u64::MAX, Ordering::Relaxed);
        let next = reader.position() + CELLS as u64;
        lane.stamp(next).store(ready(next), Ordering::Relaxed);
        lane.header()[AT_HEAD].store(next, Ordering::Relaxed);
        matches!(reader.poll(&mut Entry::default()), Next::Sample { .. })
    };
    for _ in 0..2 {
        assert_eq!((0..CELLS).take_while(|_| finds(&mut reader)).count(), 3);
        assert!(reader.is_ready(), "what is left is found after the next");
        reader.publish();
    }
}

#[test]
fn payloads_that_are_not_in_the_arena_break_the_lane() {
    let units = |bytes: usize| (bytes / UNIT) as u64;
    let (start, end) = (units(Lane::arena_start(2)), units(Lane::size(2, 4_096)));
    // A slot's name is its unit plus 1.
    let broken = [
        (0, INLINE + 1),
        (1, 8),
        (start, 8),
        (start + 1, 8),
        (end, UNIT + LEAD + 1),
        (end + 2, 1),
        (u64::MAX >> 32, 1),
    ];
    let sound = [(0, INLINE), (start + 2, 4_096 - UNIT + LEAD), (end, UNIT + LEAD), (end + 1, LEAD)];
    for (name, len, is_sound) in
        broken.map(|(name, len)| (name, len, false)).into_iter().chain(sound.map(|(n, len)| (n, len, true)))
    {
        for copies in [false, true] {
            let lane = Lane::create(Region::heap(Lane::size(2, 4_096)), 2);
            lane.cell(0)[PAYLOAD].store(name << 32 | len as u64, Ordering::Relaxed);
            lane.stamp(0).store(ready(0), Ordering::Relaxed);
            let mut reader = LaneReader::attach(Arc::new(lane), peer(true).feedback, copies);
            let mut entry = Entry::default();
            match reader.poll(&mut entry) {
                Next::Sample { .. } => assert!(is_sound && entry.payload.len() == len, "{name} {len}"),
                found => assert!(!is_sound && matches!(found, Next::Broken), "{name} {len}: {found:?}"),
            }
        }
    }
}

#[test]
fn a_copy_is_whole_or_refused() {
    let region = Region::heap(Lane::size(2, 20));
    let lane = Lane::create(region, 2);
    let unit = (Lane::arena_start(2) / UNIT) as u64 + 1;
    lane.cell(0)[PAYLOAD].store(unit << 32 | 20, Ordering::Relaxed);
    lane.stamp(0).store(ready(0), Ordering::Relaxed);
    let mut reader = LaneReader::attach(Arc::new(lane), peer(true).feedback, true);
    let mut entry = Entry::default();
    match reader.poll(&mut entry) {
        Next::Sample { .. } => assert_eq!(entry.payload.len(), 20),
        other => assert!(matches!(other, Next::Broken)),
    }
}

#[test]
fn a_new_reader_starts_at_the_head_and_is_reckoned_with_before_it_attaches() {
    let mut writer = writer(8, 1 << 16);
    let (mut old, peer_of_old) = reader(&mut writer, true);
    assert!(push_small(&mut writer, 0, SMALL));
    let told = peer(false);
    writer.set_peers(vec![peer_of_old, told.clone()]);
    let mut new = LaneReader::attach(writer.lane().clone(), told.feedback, false);
    for n in 1..4 {
        assert!(push_small(&mut writer, n, SMALL));
        take(&mut old);
        old.publish();
    }
    for n in 1..4 {
        assert_eq!(take(&mut new), (meta(n), Bytes::from(content(n, SMALL)), 0));
    }
}

#[test]
fn a_closed_lane_can_be_read_to_its_end() {
    let mut writer = writer(4, 0);
    let (mut reader, _) = reader(&mut writer, true);
    writer.push(&meta(7), b"last").unwrap();
    assert!(!reader.lane().is_closed());
    drop(writer);
    assert!(reader.lane().is_closed());
    assert_eq!(&*take(&mut reader).1, b"last");
    assert!(matches!(reader.poll(&mut Entry::default()), Next::Empty));
}

#[test]
fn a_bell_has_another_value_each_time() {
    let bell = Bell::new(Region::heap(8)).unwrap();
    let mut values = BTreeSet::new();
    for _ in 0..10 {
        assert_eq!(bell.armed(), None);
        bell.arm();
        let value = bell.armed().unwrap();
        bell.arm();
        assert_eq!(bell.armed(), Some(value), "it sleeps still");
        assert!(values.insert(value));
        bell.disarm();
        bell.disarm();
    }
}

#[test]
fn who_wants_all_is_called_before_it_is_overtaken() {
    for (reliable, wants_all) in [(false, true), (false, false), (true, true)] {
        let mut writer = writer(64, 0);
        let (mut reader, _) = reader(&mut writer, reliable);
        if wants_all {
            reader.want_all();
        }
        let mut calls = Vec::new();
        for n in 0..48 {
            writer.push(&meta(n), &[]).unwrap();
            if writer.take_call() {
                calls.push(n);
                assert!(reader.lane().calls_readers() && !reader.lane().is_awaited());
                assert!(reader.peephole().wants_readers());
            }
        }
        let are_called = wants_all && !reliable;
        assert_eq!(calls, if are_called { vec![16, 32] } else { Vec::new() });
        while reader.is_ready() {
            take(&mut reader);
        }
        reader.publish_unawaited();
        assert!(!reader.peephole().wants_readers(), "there is nothing to read");
        (48..64).for_each(|n| writer.push(&meta(n), &[]).unwrap());
        assert!(!writer.take_call(), "it has read on");
        writer.await_readers(true);
        assert!(reader.lane().is_awaited());
    }
}

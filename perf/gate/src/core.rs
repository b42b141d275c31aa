//! The core without I/O: one participant at a time, fed by hand.

use std::hint::black_box;

use taut_base::{EntityId, SequenceNumber, SequenceNumberSet};
use taut_dcps::SampleInfo;
use taut_mem::Bytes;
use taut_port::Frame;
use taut_rtps::ReaderIndex;
use taut_wire::{AckNack, Endian, Heartbeat, write_info_dst, write_message_header};

use crate::Path;
use crate::pair::{Crowd, Matched, Outgoing, Payloads, Side, told_of_writers};
use crate::rounds::{WARM_UP, counted_rounds, warm_and_count};

/// The large sample, encapsulation header included. *Units*: bytes.
const LARGE: usize = 1 << 20;
/// The datagrams that it takes, of 64,000 bytes each.
const FRAGMENTS: u64 = 17;
/// Samples of which all fragments wait in memory at a time.
const LARGE_ROUNDS: [u64; 2] = [4, 12];
/// Higher than any count that the participants have used while they met.
const COUNT: i32 = 1_000_000;

pub fn paths() -> Vec<Path> {
    vec![
        Path::new("core/write-transmit/64", |rounds| write(rounds, Crowd::NONE)),
        Path::new("core/write-transmit/64-beside-1000-topics", |rounds| write(rounds, Crowd::TOPICS)),
        Path::new("core/write-transmit/64-beside-100-peers", |rounds| write(rounds, Crowd::PEERS)),
        Path::new("core/on-frame/data/64", |rounds| receive(rounds, Crowd::NONE)),
        Path::new("core/on-frame/data/64-beside-1000-topics", |rounds| receive(rounds, Crowd::TOPICS)),
        Path::new("core/on-frame/data/64-beside-100-peers", |rounds| receive(rounds, Crowd::PEERS)),
        Path::new("core/on-frame/publication", |rounds| publication(rounds, Crowd::NONE)),
        Path::new("core/on-frame/publication-beside-1000-topics", |rounds| {
            publication(rounds, Crowd::TOPICS)
        }),
        Path::new("core/on-frame/heartbeat", heartbeat),
        Path::new("core/on-frame/acknack", acknack),
        Path { rounds: LARGE_ROUNDS, ..Path::new("core/transmit/fragment-of-1MiB", write_fragments) },
        Path { rounds: LARGE_ROUNDS, ..Path::new("core/on-frame/fragment-of-1MiB", receive_fragments) },
        Path::new("dcps/take-next/64", take),
    ]
}

/// A sample of a reliable writer with one matched reader, from the call to the port.
fn write(rounds: u64, crowd: Crowd) -> u64 {
    let mut writer = Matched::beside(crowd, |qos| qos).writer;
    let (mut port, mut payloads) = (Outgoing::counting(), Payloads::new());
    warm_and_count(rounds, |n| writer.write(n, payloads.next(n), &mut port));
    assert_eq!(port.datagrams, rounds + WARM_UP, "each left in a datagram of its own");
    assert!(port.bytes > 64 * (rounds + WARM_UP) as usize, "with its data");
    rounds
}

/// The same sample, from the datagram to the reader's cache.
fn receive(rounds: u64, crowd: Crowd) -> u64 {
    let Matched { mut writer, mut reader } = Matched::beside(crowd, |qos| qos);
    let frames = writer.frames(rounds + WARM_UP);
    let mut port = Outgoing::counting();
    warm_and_count(rounds, |n| reader.receive(&frames[n as usize], &mut port));
    let newest = reader.participant.take_next(reader.now, reader.index).expect("a sample is there");
    assert_eq!(number(&newest.info), rounds + WARM_UP, "KEEP_LAST 1 has the newest");
    rounds
}

/// A datagram that tells of a writer of a topic which has no reader here, and its answer.
fn publication(rounds: u64, crowd: Crowd) -> u64 {
    let count = rounds + WARM_UP;
    let (mut reader, frames) = told_of_writers(crowd, count);
    assert_eq!(frames.len() as u64, count, "each is told in a datagram of its own");
    let known = |reader: &Side<ReaderIndex>| reader.participant.core().database().endpoints().count() as u64;
    let (before, mut port) = (known(&reader), Outgoing::counting());
    warm_and_count(rounds, |n| reader.receive(&frames[n as usize], &mut port));
    assert_eq!(known(&reader), before + count, "each is known now");
    rounds
}

/// A HEARTBEAT that wants an answer, and the ACKNACK.
fn heartbeat(rounds: u64) -> u64 {
    let Matched { writer, mut reader } = Matched::new(|qos| qos);
    let frames: Vec<Frame> = (COUNT..)
        .take((rounds + WARM_UP) as usize)
        .map(|count| {
            let heartbeat = Heartbeat {
                reader_id: EntityId::UNKNOWN,
                writer_id: writer.guid.entity,
                first_sn: SequenceNumber::FIRST,
                last_sn: SequenceNumber::ZERO,
                count,
                final_flag: false,
                liveliness_flag: false,
                group_info: None,
            };
            message(&writer, &reader, |out| heartbeat.write(out, Endian::Little))
        })
        .collect();
    let mut port = Outgoing::counting();
    warm_and_count(rounds, |n| reader.receive(&frames[n as usize], &mut port));
    assert_eq!(port.datagrams, rounds + WARM_UP, "each was answered");
    rounds
}

/// An ACKNACK that acknowledges one more sample of a long history.
fn acknack(rounds: u64) -> u64 {
    let Matched { mut writer, reader } = Matched::new(|qos| qos.keep_last(10_000));
    let count = rounds + WARM_UP;
    drop(writer.frames(count));
    let frames: Vec<Frame> = (0..count)
        .map(|n| {
            let acknack = AckNack {
                reader_id: reader.guid.entity,
                writer_id: writer.guid.entity,
                reader_sn_state: SequenceNumberSet::new(SequenceNumber(n.cast_signed() + 2)),
                count: COUNT + n as i32,
                final_flag: true,
            };
            message(&reader, &writer, |out| acknack.write(out, Endian::Little))
        })
        .collect();
    let mut port = Outgoing::counting();
    assert!(!writer.participant.is_acknowledged(writer.index));
    warm_and_count(rounds, |n| {
        writer.receive(&frames[n as usize], &mut port);
        let all = writer.participant.is_acknowledged(writer.index);
        assert_eq!(all, n + 1 == count, "the last one completes it");
    });
    rounds
}

/// A datagram with one submessage for the other side.
fn message<A, B>(from: &Side<A>, to: &Side<B>, write: impl FnOnce(&mut Vec<u8>)) -> Frame {
    let mut out = Vec::new();
    write_message_header(&mut out, from.guid.prefix);
    write_info_dst(&mut out, Endian::Little, to.guid.prefix);
    write(&mut out);
    from.frame(Bytes::from(out))
}

/// One fragment of a large sample, from the write to the port.
fn write_fragments(rounds: u64) -> u64 {
    let mut writer = Matched::new(|qos| qos).writer;
    let payload = Bytes::from(vec![5; LARGE]);
    let mut port = Outgoing::counting();
    writer.write(0, payload.clone(), &mut port);
    counted_rounds(rounds, &mut |n| writer.write(n, payload.clone(), &mut port));
    let samples = rounds + 1;
    assert_eq!(port.datagrams, samples * FRAGMENTS);
    assert!(port.bytes > samples as usize * LARGE, "with their data");
    rounds * FRAGMENTS
}

/// The same fragment, from its datagram into the sample.
fn receive_fragments(rounds: u64) -> u64 {
    let Matched { mut writer, mut reader } = Matched::new(|qos| qos);
    let payload = Bytes::from((0..LARGE).map(|at| at.to_le_bytes()[0]).collect::<Vec<u8>>());
    let mut sent = Outgoing::keeping();
    (0..=rounds).for_each(|n| writer.write(n, payload.clone(), &mut sent));
    let frames: Vec<Frame> = sent.kept.into_iter().map(|bytes| writer.frame(bytes)).collect();
    let mut port = Outgoing::counting();
    let mut receive = |n: u64| {
        let first = (n * FRAGMENTS) as usize;
        frames[first..first + FRAGMENTS as usize].iter().for_each(|frame| reader.receive(frame, &mut port));
    };
    receive(0);
    counted_rounds(rounds, &mut |n| receive(n + 1));
    let newest = reader.participant.take_next(reader.now, reader.index).expect("a sample is there");
    assert_eq!(number(&newest.info), rounds + 1);
    assert!(newest.payload == payload, "it is whole");
    rounds * FRAGMENTS
}

/// A sample out of the reader's cache.
fn take(rounds: u64) -> u64 {
    let Matched { mut writer, mut reader } = Matched::new(|qos| qos.keep_last(10_000));
    let count = rounds + WARM_UP;
    let mut port = Outgoing::counting();
    writer.frames(count).iter().for_each(|frame| reader.receive(frame, &mut port));
    let mut taken = 0;
    warm_and_count(rounds, |n| {
        let sample = black_box(reader.participant.take_next(reader.now, reader.index));
        taken += u64::from(sample.is_some_and(|sample| number(&sample.info) == n + 1));
    });
    assert_eq!(taken, count, "each in its turn");
    assert!(reader.participant.take_next(reader.now, reader.index).is_none());
    rounds
}

fn number(info: &SampleInfo) -> u64 {
    info.sequence_number.0.cast_unsigned()
}

//! What is written is read back, and what is read can be written to the same bytes.

mod common;

use common::{HEADER, KINDS, message, write_kind};
use taut_base::{EntityId, Rng, SequenceNumber};
use taut_wire::{
    Checksum, Data, DataFrag, DataFragHeader, DataHeader, Endian, HEADER_LEN, Header, HeaderExtension,
    InlineQos, Payload, PayloadKind, Submessage, SubmessageKind, Submessages, WireError, write_info_dst,
    write_info_ts, write_pad,
};

/// Writes back what was read, in the byte order of the original.
fn rewrite(submessage: &Submessage<'_>, out: &mut Vec<u8>, endian: Endian, pad_words: u16) {
    match submessage {
        Submessage::Data(data) => rewrite_data(data, out, endian),
        Submessage::DataFrag(frag) => rewrite_frag(frag, out, endian),
        Submessage::Heartbeat(x) => x.write(out, endian),
        Submessage::HeartbeatFrag(x) => x.write(out, endian),
        Submessage::AckNack(x) => x.write(out, endian),
        Submessage::NackFrag(x) => x.write(out, endian),
        Submessage::Gap(x) => x.write(out, endian),
        Submessage::InfoTimestamp(x) => write_info_ts(out, endian, *x),
        Submessage::InfoDestination(x) => write_info_dst(out, endian, *x),
        Submessage::InfoSource(x) => x.write(out, endian),
        Submessage::InfoReply(x) => x.write(out, endian),
        Submessage::InfoReplyIp4(x) => x.write(out, endian),
        Submessage::Pad => write_pad(out, endian, pad_words),
        Submessage::HeaderExtension(x) => x.write(out, endian),
        Submessage::Unknown { id, .. } => panic!("{id:?} was never written"),
    }
}

fn rewrite_data(data: &Data<'_>, out: &mut Vec<u8>, endian: Endian) {
    let header =
        DataHeader { reader_id: data.reader_id, writer_id: data.writer_id, writer_sn: data.writer_sn };
    let qos = data.inline_qos.map_or(&[][..], |list| list.bytes());
    let (kind, payload) = match data.payload {
        Payload::None => (PayloadKind::None, &[][..]),
        Payload::Data(bytes) => (PayloadKind::Data, bytes),
        Payload::Key(bytes) => (PayloadKind::Key, bytes),
    };
    header.write(out, endian, qos, kind, payload.len());
    out.extend_from_slice(payload);
}

fn rewrite_frag(frag: &DataFrag<'_>, out: &mut Vec<u8>, endian: Endian) {
    let header = DataFragHeader {
        reader_id: frag.reader_id,
        writer_id: frag.writer_id,
        writer_sn: frag.writer_sn,
        fragment_starting_num: frag.fragment_starting_num,
        fragments_in_submessage: frag.fragments_in_submessage,
        fragment_size: frag.fragment_size,
        sample_size: frag.sample_size,
        key: frag.key,
    };
    let qos = frag.inline_qos.map_or(&[][..], |list| list.bytes());
    header.write(out, endian, qos, frag.payload.len());
    out.extend_from_slice(frag.payload);
}

#[test]
fn every_kind_in_both_byte_orders() {
    let mut rng = Rng::new(1);
    for round in 0..500 {
        for kind in 0..KINDS {
            for endian in [Endian::Big, Endian::Little] {
                let mut bytes = Vec::new();
                write_kind(kind, &mut rng, &mut bytes, endian);
                let read: Vec<_> = Submessages::new(&bytes)
                    .collect::<Result<_, _>>()
                    .unwrap_or_else(|e| panic!("round {round} kind {kind} {endian:?}: {e}"));
                // A PAD of no words has no successor that could tell its length.
                assert_eq!(read.len(), 1, "round {round} kind {kind} {endian:?}");
                let mut again = Vec::new();
                let pad_words = (bytes.len() / 4 - 1) as u16;
                rewrite(&read[0], &mut again, endian, pad_words);
                assert_eq!(again, bytes, "round {round} kind {kind} {endian:?}");
            }
        }
    }
}

#[test]
fn the_same_value_in_both_byte_orders() {
    for kind in (0..KINDS).filter(|kind| ![2, 3].contains(kind)) {
        for seed in 0..50 {
            let (mut big, mut little) = (Vec::new(), Vec::new());
            write_kind(kind, &mut Rng::new(seed), &mut big, Endian::Big);
            write_kind(kind, &mut Rng::new(seed), &mut little, Endian::Little);
            assert_ne!(big, little);
            let (a, b) = (Submessages::new(&big).next(), Submessages::new(&little).next());
            match (a, b) {
                (Some(Ok(Submessage::InfoReply(a))), Some(Ok(Submessage::InfoReply(b)))) => {
                    assert!(a.unicast.iter().eq(b.unicast.iter()));
                    let list =
                        |x: taut_wire::InfoReply<'_>| x.multicast.map(|l| l.iter().collect::<Vec<_>>());
                    assert_eq!(list(a), list(b));
                }
                (a, b) => assert_eq!(a, b, "kind {kind} seed {seed}"),
            }
        }
    }
}

#[test]
fn whole_messages_of_mixed_byte_order() {
    for seed in 0..2_000 {
        let bytes = message(&mut Rng::new(seed));
        let (header, rest) = Header::parse(&bytes).unwrap();
        assert_eq!(header, HEADER);
        assert!(HeaderExtension::verify(&bytes).is_ok(), "seed {seed}");
        for submessage in Submessages::new(rest) {
            submessage.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
    }
}

#[test]
fn inline_qos_round_trip() {
    let mut rng = Rng::new(5);
    for _ in 0..500 {
        for endian in [Endian::Big, Endian::Little] {
            let qos = InlineQos {
                original_writer: rng.chance(500).then_some((
                    taut_base::Guid::new(HEADER.prefix, EntityId::SPDP_WRITER),
                    SequenceNumber(77),
                )),
                group_coherent_set: Some(SequenceNumber::UNKNOWN),
                ..common::inline_qos(&mut rng)
            };
            let mut bytes = Vec::new();
            qos.write(&mut bytes, endian);
            let list = taut_wire::ParameterList::new(&bytes, endian);
            assert_eq!(InlineQos::parse(list), Ok(qos));
        }
    }
}

/// The layout of a HEARTBEAT and an ACKNACK, by hand from RTPS 2.5 §9.4.5.7 and §9.4.5.3.
#[test]
fn bytes_by_hand() {
    let bytes = [
        0x07, 0x03, 28, 0, // HEARTBEAT, little, final
        0, 0, 0x10, 0x07, 0, 0, 0x10, 0x02, // reader, writer
        0, 0, 0, 0, 1, 0, 0, 0, // first 1
        0, 0, 0, 0, 9, 0, 0, 0, // last 9
        5, 0, 0, 0, // count
        0x06, 0x00, 0, 28, // ACKNACK, big, not final
        0, 0, 0x10, 0x07, 0, 0, 0x10, 0x02, // reader, writer
        0, 0, 0, 1, 0, 0, 0, 2, // base 2^32+2
        0, 0, 0, 3, 0xa0, 0, 0, 0, // 3 bits: 101
        0, 0, 0, 6, // count
    ];
    let read: Vec<_> = Submessages::new(&bytes).collect::<Result<_, _>>().unwrap();
    let Submessage::Heartbeat(heartbeat) = read[0] else { panic!() };
    assert_eq!((heartbeat.first_sn.0, heartbeat.last_sn.0, heartbeat.count), (1, 9, 5));
    assert!(heartbeat.final_flag && !heartbeat.liveliness_flag);
    let Submessage::AckNack(acknack) = read[1] else { panic!() };
    let base = (1 << 32) + 2;
    let missing: Vec<_> = acknack.reader_sn_state.iter().map(|sn| sn.0).collect();
    assert_eq!((missing, acknack.count, acknack.final_flag), (vec![base, base + 2], 6, false));
}

#[test]
fn checksums_catch_every_bit_and_span_parts() {
    // The check values of the catalogue of CRC algorithms for "123456789".
    let digits: &[u8] = b"123456789";
    let of = |kind: taut_wire::ChecksumKind| kind.compute([digits].into_iter());
    assert_eq!(of(taut_wire::ChecksumKind::Crc32c), Checksum::Crc32c(0xe306_9283));
    assert_eq!(of(taut_wire::ChecksumKind::Crc64), Checksum::Crc64(0x995d_c9bb_df19_39fa));
    for checksum in [Checksum::Crc32c(0), Checksum::Crc64(0), Checksum::Md5([0; 16])] {
        let extension = HeaderExtension {
            message_length: Some(0),
            timestamp: Some(taut_base::Timestamp { seconds: 1, fraction: 2 }),
            checksum: Some(checksum),
            ..HeaderExtension::default()
        };
        let mut head = Vec::new();
        HEADER.write(&mut head);
        extension.write(&mut head, Endian::Little);
        let mut tail = Vec::new();
        write_info_dst(&mut tail, Endian::Big, HEADER.prefix);
        HeaderExtension::seal(&mut head, &[&tail[..8], &tail[8..]]).unwrap();
        let mut message = [head, tail].concat();
        let read = HeaderExtension::verify(&message).unwrap().unwrap();
        assert_eq!(read.message_length, Some(message.len() as u32));
        if let Some(Checksum::Crc32c(value)) = read.checksum {
            // Behind header, submessage header, length and timestamp; big-endian in a little one.
            assert_eq!(message[36..40], value.to_be_bytes());
            message[36..40].fill(0);
            assert_eq!(
                taut_wire::ChecksumKind::Crc32c.compute([&message[..]].into_iter()),
                Checksum::Crc32c(value)
            );
            message[36..40].copy_from_slice(&value.to_be_bytes());
        }
        for bit in 20 * 8 + 32..message.len() * 8 {
            message[bit / 8] ^= 1 << (bit % 8);
            assert!(HeaderExtension::verify(&message).is_err(), "bit {bit}");
            message[bit / 8] ^= 1 << (bit % 8);
        }
        message.push(0);
        assert_eq!(HeaderExtension::verify(&message), Err(WireError::BadLength));
    }
}

#[test]
fn lengths_over_16_bits_reach_to_the_end() {
    let header = DataHeader {
        reader_id: EntityId::UNKNOWN,
        writer_id: EntityId::user(1, true, false),
        writer_sn: SequenceNumber(1),
    };
    let payload = vec![3; 70_000];
    let mut bytes = Vec::new();
    assert!(!header.write(&mut bytes, Endian::Little, &[], PayloadKind::Data, payload.len()));
    bytes.extend_from_slice(&payload);
    let read: Vec<_> = Submessages::new(&bytes).collect::<Result<_, _>>().unwrap();
    let [Submessage::Data(data)] = read[..] else { panic!() };
    assert_eq!(data.payload, Payload::Data(&payload));
    assert!(!header.write(&mut bytes, Endian::Little, &[], PayloadKind::Data, 5), "must be the last");
}

#[test]
fn no_length_means_none_for_pad_and_info_ts() {
    let bytes = [0x01, 0, 0, 0, 0x09, 0x02, 0, 0, 0x01, 0, 0, 0];
    let read: Vec<_> = Submessages::new(&bytes).collect::<Result<_, _>>().unwrap();
    assert_eq!(read, [Submessage::Pad, Submessage::InfoTimestamp(None), Submessage::Pad]);
    let unknown = [0x7f, 0, 0, 0, 1, 2, 3, 4];
    let read: Vec<_> = Submessages::new(&unknown).collect::<Result<_, _>>().unwrap();
    let body = &[1, 2, 3, 4][..];
    assert_eq!(read, [Submessage::Unknown { id: SubmessageKind(0x7f), flags: 0, body }]);
    assert_eq!(HEADER_LEN, 20);
}

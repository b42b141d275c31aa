//! Hostile bytes, as far as they can be told without state: all end in a value or a reason, never in a panic.

mod common;

use common::{HEADER, KINDS, message, write_kind};
use taut_base::{EntityId, GuidPrefix, Rng, SequenceNumber};
use taut_wire::{
    Data, DataFrag, DataFragHeader, DataHeader, EncapsulationId, Endian, HEADER_LEN, Header, HeaderExtension,
    InlineQos, Payload, PayloadKind, Submessage, SubmessageKind, Submessages, WireError,
};

/// A submessage with the right length in front of `body`.
fn submessage(id: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u16;
    let length = if flags & 1 == 1 { length.to_le_bytes() } else { length.to_be_bytes() };
    [&[id, flags], &length[..], body].concat()
}

fn only(bytes: &[u8]) -> Result<Submessage<'_>, WireError> {
    let mut iter = Submessages::new(bytes);
    let first = iter.next().unwrap();
    assert_eq!(iter.next(), None);
    first
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_be_bytes()).collect()
}

/// reader, writer, then 32-bit numbers, all big-endian.
fn body(values: &[u32]) -> Vec<u8> {
    words(&[&[0x0000_0107, 0x0000_0102], values].concat())
}

/// Reads everything that can be read of a message.
fn read_all(message: &[u8]) -> Result<usize, WireError> {
    let (_, rest) = Header::parse(message)?;
    let _ = HeaderExtension::verify(message);
    let mut count = 0;
    for submessage in Submessages::new(rest) {
        match submessage? {
            Submessage::Data(Data { inline_qos, payload, .. }) => {
                let _ = inline_qos.map(InlineQos::parse);
                if let Payload::Data(bytes) | Payload::Key(bytes) = payload {
                    let _ = EncapsulationId::parse(bytes);
                }
            }
            Submessage::DataFrag(frag) => {
                let _ = frag.inline_qos.map(InlineQos::parse);
                let end = frag.offset() + frag.payload.len();
                assert!(end <= frag.sample_size as usize && !frag.payload.is_empty());
            }
            Submessage::InfoReply(reply) => {
                assert_eq!(reply.unicast.iter().count(), reply.unicast.len());
            }
            Submessage::AckNack(acknack) => {
                let state = acknack.reader_sn_state;
                assert!(state.iter().all(|sn| sn >= state.base() && sn.0 > 0));
            }
            _ => {}
        }
        count += 1;
    }
    Ok(count)
}

#[test]
fn short_messages() {
    let mut bytes = Vec::new();
    HEADER.write(&mut bytes);
    for length in 0..HEADER_LEN {
        assert_eq!(read_all(&bytes[..length]), Err(WireError::Truncated));
    }
    assert_eq!(read_all(&bytes), Ok(0));
    for _ in 1..=3 {
        bytes.push(0x15);
        assert_eq!(read_all(&bytes), Err(WireError::Truncated));
    }
}

#[test]
fn magic_and_version() {
    let mut bytes = Vec::new();
    HEADER.write(&mut bytes);
    for (place, value, error) in [
        (3, b'X', WireError::BadMagic),
        (0, b'r', WireError::BadMagic),
        (4, 1, WireError::BadVersion),
        (4, 3, WireError::BadVersion),
        (4, 255, WireError::BadVersion),
    ] {
        let mut bad = bytes.clone();
        bad[place] = value;
        assert_eq!(Header::parse(&bad), Err(error));
    }
    bytes[5] = 255;
    assert!(Header::parse(&bytes).is_ok(), "a later minor version is readable");
}

#[test]
fn lengths() {
    let mut long = submessage(0x07, 0, &body(&[0, 1, 0, 5, 1]));
    long[3] += 1;
    assert_eq!(only(&long), Err(WireError::BadLength));
    // 0 in the middle reaches to the end, whatever was meant to be there.
    let mut bytes = submessage(0x0e, 0, &[7; 12]);
    bytes[3] = 0;
    bytes.extend_from_slice(&submessage(0x0e, 0, &[8; 12]));
    assert_eq!(only(&bytes), Ok(Submessage::InfoDestination(GuidPrefix([7; 12]))));
    let mut odd = submessage(0x7f, 0, &[0; 5]);
    assert!(only(&odd).is_ok(), "the last may have any length");
    odd.extend_from_slice(&submessage(0x01, 0, &[]));
    assert_eq!(only(&odd), Err(WireError::BadLength));
    // An INFO_TS without a timestamp is too short; it has no "to the end".
    assert_eq!(only(&[0x09, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]), Err(WireError::Truncated));
}

#[test]
fn thousands_of_empty_submessages() {
    let mut bytes = Vec::new();
    HEADER.write(&mut bytes);
    for _ in 0..16_371 {
        bytes.extend_from_slice(&[0x01, 0, 0, 0]);
    }
    assert_eq!(read_all(&bytes), Ok(16_371));
}

#[test]
fn every_id_with_all_flags() {
    for id in 0..=255 {
        for flags in 0..=255 {
            for fill in [0, 1, 0xff] {
                for length in [0, 4, 8, 20, 32, 64] {
                    let mut bytes = Vec::new();
                    HEADER.write(&mut bytes);
                    bytes.extend_from_slice(&submessage(id, flags, &vec![fill; length]));
                    let _ = read_all(&bytes);
                }
            }
        }
    }
    let unknown = [submessage(0x80, 0xff, &[1; 8]), submessage(0x0e, 1, &[2; 12])].concat();
    let read: Vec<_> = Submessages::new(&unknown).collect();
    assert!(matches!(read[0], Ok(Submessage::Unknown { id: SubmessageKind(0x80), flags: 0xff, .. })));
    assert_eq!(read[1], Ok(Submessage::InfoDestination(GuidPrefix([2; 12]))));
}

#[test]
fn counts_of_locators() {
    for count in [u32::MAX, 2, 0x0aaa_aaab] {
        let bytes = submessage(0x0f, 0, &words(&[count, 1, 7400, 0, 0, 0, 0x7f00_0001]));
        assert_eq!(only(&bytes), Err(WireError::BadCount));
    }
}

#[test]
fn header_extension() {
    assert_eq!(only(&submessage(0x00, 0x02, &[])), Err(WireError::Truncated));
    let twice = [submessage(0x00, 0x02, &[0; 4]), submessage(0x00, 0x02, &[0; 4])].concat();
    let read: Vec<_> = Submessages::new(&twice).collect();
    assert_eq!(read[1], Err(WireError::MisplacedHeaderExtension));
    let late = [submessage(0x01, 0, &[]), submessage(0x00, 0x02, &[0; 4])].concat();
    assert_eq!(Submessages::new(&late).nth(1), Some(Err(WireError::MisplacedHeaderExtension)));
    let parameter = [0x40, 0x99, 0, 0, 0, 1, 0, 0];
    assert_eq!(only(&submessage(0x00, 0x80, &parameter)), Err(WireError::NotUnderstood));
}

#[test]
fn single_bits_and_cuts_of_every_kind() {
    for kind in 0..KINDS {
        for endian in [Endian::Big, Endian::Little] {
            let mut bytes = Vec::new();
            HEADER.write(&mut bytes);
            write_kind(kind, &mut Rng::new(kind + 100), &mut bytes, endian);
            for bit in 0..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                let _ = read_all(&bytes);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            for length in 0..bytes.len() {
                let _ = read_all(&bytes[..length]);
            }
        }
    }
}

#[test]
fn random_damage() {
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let mut bytes = message(&mut rng);
        for _ in 0..1 + rng.below(8) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, rng.next_u64() as u8][rng.below(6) as usize];
        }
        let _ = read_all(&bytes);
    }
}

const DATA_BODY: [u32; 5] = [0x10, 0x0000_0107, 0x0000_0102, 0, 1];

fn data(flags: u8, first_words: &[u32], tail: &[u8]) -> Vec<u8> {
    submessage(0x15, flags, &[&words(first_words), tail].concat())
}

#[test]
fn octets_to_inline_qos() {
    for offset in [0, 4, 15, 17, 0x2d, 0xffff, 24] {
        let mut fields = DATA_BODY;
        fields[0] = offset;
        let bytes = data(0x04, &fields, &[0, 1, 0, 0]);
        assert_eq!(only(&bytes), Err(WireError::BadInlineQosOffset), "{offset:#x}");
    }
    let mut later = DATA_BODY;
    later[0] = 20;
    let bytes = data(0x04, &later, &[9, 9, 9, 9, 0, 1, 0, 0, 5]);
    let Ok(Submessage::Data(data)) = only(&bytes) else { panic!() };
    assert_eq!(data.payload, Payload::Data(&[0, 1, 0, 0, 5]), "a later version may add fields");
}

#[test]
fn payload_flags() {
    assert_eq!(only(&data(0x0c, &DATA_BODY, &[0, 1, 0, 0])), Err(WireError::BadFlags));
    for flags in [0x04, 0x08] {
        assert_eq!(only(&data(flags, &DATA_BODY, &[])), Err(WireError::BadPayload));
        assert_eq!(only(&data(flags, &DATA_BODY, &[0, 1, 0])), Err(WireError::BadPayload));
    }
    let bytes = data(0x00, &DATA_BODY, &[]);
    assert!(matches!(only(&bytes), Ok(Submessage::Data(Data { payload: Payload::None, .. }))));
    let bytes = data(0x14, &DATA_BODY, &[1]);
    assert!(matches!(only(&bytes), Ok(Submessage::Data(Data { payload: Payload::Data([1]), .. }))));
}

#[test]
fn sequence_numbers() {
    for (high, low, valid) in [
        (0, 0, false),
        (0xffff_ffff, 0, false),
        (0x8000_0000, 1, false),
        (0xffff_ffff, 0xffff_ffff, false),
        (0, 1, true),
        (0x7fff_ffff, 0xffff_ffff, true),
    ] {
        let mut fields = DATA_BODY;
        (fields[3], fields[4]) = (high, low);
        let bytes = data(0x04, &fields, &[0, 1, 0, 0]);
        let result = only(&bytes);
        assert_eq!(result.is_ok(), valid, "{high:#x} {low:#x}");
        assert!(valid || result == Err(WireError::BadSequenceNumber));
    }
}

#[test]
fn inline_qos() {
    let sentinel = [0, 1, 0, 0];
    let qos = |list: &[u8]| data(0x06, &DATA_BODY, &[list, &[0, 1, 0, 0]].concat());
    assert!(only(&qos(&sentinel)).is_ok());
    for bad in [
        &[0, 0x70, 0, 4, 1, 2, 3, 4][..],
        &[0, 0x70, 0xff, 0xff, 1, 2, 3, 4, 0, 1, 0, 0],
        &[0, 0x70, 0, 3, 1, 2, 3, 0, 1, 0, 0],
    ] {
        // No payload after it: its first words could pass for a sentinel.
        let bytes = data(0x02, &DATA_BODY, bad);
        assert_eq!(only(&bytes), Err(WireError::BadParameterList), "{bad:?}");
    }
    let short_hash = [0, 0x70, 0, 4, 1, 2, 3, 4, 0, 1, 0, 0];
    let bytes = qos(&short_hash);
    let Ok(Submessage::Data(read)) = only(&bytes) else { panic!() };
    assert_eq!(InlineQos::parse(read.inline_qos.unwrap()), Err(WireError::BadParameter));
    let many: Vec<u8> = [0, 0x71, 0, 4, 0, 0, 0, 1].repeat(8_000);
    let bytes = data(0x02, &DATA_BODY, &[&many[..], &sentinel].concat());
    let Ok(Submessage::Data(read)) = only(&bytes) else { panic!() };
    assert_eq!(InlineQos::parse(read.inline_qos.unwrap()).map(|q| q.status_info.0), Ok(1));
    let unknown = [0x41, 0x23, 0, 0, 0, 1, 0, 0];
    let bytes = qos(&unknown);
    let Ok(Submessage::Data(read)) = only(&bytes) else { panic!() };
    assert_eq!(InlineQos::parse(read.inline_qos.unwrap()), Err(WireError::NotUnderstood));
}

#[test]
fn heartbeat_ranges() {
    for (first, last, valid) in [
        (0, 0, false),
        (0, -1, false),
        (-5, 4, false),
        (5, 3, false),
        (5, -1, false),
        (i64::MIN, i64::MAX, false),
        (5, 4, true),
        (1, 0, true),
        (1, i64::MAX, true),
        (1 << 32, 1 << 33, true),
    ] {
        let split = |n: i64| [(n >> 32) as u32, n as u32];
        let bytes = submessage(0x07, 0, &body(&[&split(first)[..], &split(last), &[1]].concat()));
        let expected = if valid { None } else { Some(WireError::BadSequenceNumber) };
        assert_eq!(only(&bytes).err(), expected, "{first} {last}");
    }
}

#[test]
fn acknack_sets() {
    let acknack = |values: &[u32]| submessage(0x06, 0, &body(values));
    for (values, error) in [
        (vec![0, 1, 257, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], WireError::BadSet),
        (vec![0, 1, u32::MAX, 0, 1], WireError::BadSet),
        (vec![0, 1, 64, 0, 1], WireError::Truncated),
        (vec![0, 1, 256, 0, 0, 0, 0, 0, 0, 0, 1], WireError::Truncated),
        (vec![0, 0, 1, 0x8000_0000, 1], WireError::BadSet),
        (vec![0x8000_0000, 0, 0, 1], WireError::BadSet),
        (vec![0x7fff_ffff, u32::MAX, 32, 1, 1], WireError::BadSet),
    ] {
        assert_eq!(only(&acknack(&values)), Err(error), "{values:x?}");
    }
    for values in
        [vec![0, 1, 0, 7], vec![0, 1, 1, u32::MAX, 7], vec![0, 1, 32, u32::MAX, 7], vec![0, 0, 0, 7]]
    {
        let bytes = acknack(&values);
        let Ok(Submessage::AckNack(read)) = only(&bytes) else { panic!("{values:x?}") };
        assert_eq!((read.reader_sn_state.base(), read.count), (SequenceNumber(1), 7));
    }
    let bytes = acknack(&[0, 1, 256, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert!(matches!(only(&bytes), Ok(Submessage::AckNack(a)) if a.reader_sn_state.num_bits() == 256));
}

#[test]
fn gap_ranges() {
    let gap = |values: &[u32]| submessage(0x08, 0, &body(values));
    assert_eq!(only(&gap(&[0, 0, 0, 5, 0])), Err(WireError::BadSequenceNumber));
    assert_eq!(only(&gap(&[0xffff_ffff, 5, 0, 5, 0])), Err(WireError::BadSequenceNumber));
    assert_eq!(only(&gap(&[0, 1, 0, 5, 257])), Err(WireError::BadSet));
    let backwards = gap(&[0, 9, 0, 5, 0]);
    assert!(matches!(only(&backwards), Ok(Submessage::Gap(g)) if g.gap_start > g.gap_list.base()));
    let huge = gap(&[0, 1, 0x4000_0000, 0, 0]);
    assert!(matches!(only(&huge), Ok(Submessage::Gap(g)) if g.gap_list.base().0 == 1 << 62));
}

/// start, count << 16 | size, sample; then the payload.
fn frag(start: u32, count: u16, size: u16, sample: u32, payload: usize) -> Vec<u8> {
    let fields = body(&[0, 1, start, u32::from(count) << 16 | u32::from(size), sample]);
    submessage(0x16, 0, &[&words(&[28])[..], &fields, &vec![1; payload]].concat())
}

#[test]
fn fragments() {
    for (start, count, size, sample, payload) in [
        (1, 1, 0, 100, 0),
        (0, 1, 100, 1000, 100),
        (u32::MAX, 1, 100, 1000, 100),
        (u32::MAX, u16::MAX, u16::MAX, u32::MAX, 100),
        (1, 0, 100, 1000, 0),
        (9, 3, 100, 1000, 300),
        (11, 1, 100, 1000, 100),
        (11, 1, 100, 1000, 0),
        (9, 3, 100, 1000, 200),
        (1, 2, 100, 1000, 100),
        (1, 1, 100, 1000, 99),
        (1, 1, 100, 1000, 104),
        (10, 1, 100, 950, 100),
        (10, 1, 100, 950, 49),
        (1, 1, 100, 0, 0),
        (1, 1, 65_535, 1000, 1000),
    ] {
        let bytes = frag(start, count, size, sample, payload);
        assert_eq!(only(&bytes), Err(WireError::BadFragment), "{start} {count} {size} {sample} {payload}");
    }
    for (start, count, size, sample, payload, length) in [
        (1, 1, 1, 4, 1, 1),
        (2, 1, 3, 9, 3, 3),
        (2, 1, 3, 9, 4, 3),
        (10, 1, 100, 950, 50, 50),
        (10, 1, 100, 950, 52, 50),
        (9, 2, 100, 950, 150, 150),
        (1, 1, 1024, u32::MAX, 1024, 1024),
        (u32::MAX, 1, 1, u32::MAX, 1, 1),
    ] {
        let bytes = frag(start, count, size, sample, payload);
        let Ok(Submessage::DataFrag(DataFrag { payload, .. })) = only(&bytes) else {
            panic!("{start} {count} {size} {sample}")
        };
        assert_eq!(payload.len(), length);
    }
}

#[test]
fn fragment_repair() {
    let heartbeat = |last: u32| submessage(0x13, 0, &body(&[0, 1, last, 1]));
    assert_eq!(only(&heartbeat(0)), Err(WireError::BadFragment));
    assert!(only(&heartbeat(u32::MAX)).is_ok());
    let nack = |values: &[u32]| submessage(0x12, 0, &body(values));
    assert_eq!(only(&nack(&[0, 1, 1, 257, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])), Err(WireError::BadSet));
    assert_eq!(only(&nack(&[0, 1, 0, 1, 0, 1])), Err(WireError::BadSet));
    assert_eq!(only(&nack(&[0, 1, u32::MAX, 32, 0, 1])), Err(WireError::BadSet));
    assert_eq!(only(&nack(&[0, 0, 1, 1, 0, 1])), Err(WireError::BadSequenceNumber));
    assert!(only(&nack(&[0, 1, 1, 1, 0x8000_0000, 1])).is_ok());
}

#[test]
fn what_comes_before_an_error_stands_and_what_follows_does_not() {
    let good = submessage(0x0e, 0, &[7; 12]);
    let bad = submessage(0x07, 0, &body(&[0, 0, 0, 0, 1]));
    let bytes = [good.clone(), bad, good].concat();
    let read: Vec<_> = Submessages::new(&bytes).collect();
    assert_eq!(read.len(), 2);
    assert!(read[0].is_ok() && read[1] == Err(WireError::BadSequenceNumber));
}

#[test]
fn headers_of_data_that_no_reader_could_take_are_not_written_by_accident() {
    let ids = (EntityId::UNKNOWN, EntityId::user(1, true, true));
    let header = DataHeader { reader_id: ids.0, writer_id: ids.1, writer_sn: SequenceNumber(3) };
    let mut bytes = Vec::new();
    assert!(header.write(&mut bytes, Endian::Big, &[], PayloadKind::None, 0));
    assert!(only(&bytes).is_ok());
    let frag = DataFragHeader {
        reader_id: ids.0,
        writer_id: ids.1,
        writer_sn: SequenceNumber(3),
        fragment_starting_num: 2,
        fragments_in_submessage: 1,
        fragment_size: 8,
        sample_size: 13,
        key: true,
    };
    let mut bytes = Vec::new();
    assert!(!frag.write(&mut bytes, Endian::Big, &[], 5), "5 bytes end off the grid");
    bytes.extend_from_slice(&[1; 5]);
    let Ok(Submessage::DataFrag(read)) = only(&bytes) else { panic!() };
    assert_eq!((read.offset(), read.fragment_count(), read.key), (8, 2, true));
}

//! Random but valid submessages, from a seed.

use taut_base::{
    EntityId, FragmentNumberSet, GuidPrefix, Locator, ProtocolVersion, Rng, SequenceNumber,
    SequenceNumberSet, Timestamp, VendorId,
};
use taut_wire::{
    AckNack, Checksum, DataFragHeader, DataHeader, Endian, Gap, GapGroupInfo, HEADER_LEN, Header,
    HeaderExtension, Heartbeat, HeartbeatFrag, HeartbeatGroupInfo, InfoReply, InfoReplyIp4, InfoSource,
    InlineQos, LocatorUdpV4, NackFrag, PayloadKind, StatusInfo, write_info_dst, write_info_ts, write_pad,
};

pub const HEADER: Header =
    Header { version: ProtocolVersion::RTPS_2_5, vendor: VendorId([1, 16]), prefix: GuidPrefix([9; 12]) };

/// How many kinds [`write_kind`] knows.
pub const KINDS: u64 = 14;

pub fn entity(rng: &mut Rng) -> EntityId {
    EntityId::user(rng.next_u64() as u32, rng.chance(500), rng.chance(500))
}

pub fn sn(rng: &mut Rng) -> SequenceNumber {
    let shift = rng.below(63);
    SequenceNumber(((rng.next_u64() >> 1) >> shift).max(1) as i64)
}

fn prefix(rng: &mut Rng) -> GuidPrefix {
    GuidPrefix(std::array::from_fn(|_| rng.next_u64() as u8))
}

pub fn sn_set(rng: &mut Rng) -> SequenceNumberSet {
    let base = SequenceNumber(sn(rng).0.min(i64::MAX - 300));
    let mut set = SequenceNumberSet::new(base);
    for _ in 0..rng.below(20) {
        assert!(set.insert(SequenceNumber(base.0 + rng.below(256) as i64)));
    }
    set
}

pub fn fn_set(rng: &mut Rng) -> FragmentNumberSet {
    let base = rng.below(1 << 31) as u32 + 1;
    let mut set = FragmentNumberSet::new(base);
    for _ in 0..rng.below(20) {
        assert!(set.insert(base + rng.below(256) as u32));
    }
    set
}

fn locators(rng: &mut Rng) -> Vec<Locator> {
    (0..rng.below(4)).map(|n| Locator::udp_v4([10, 0, 0, n as u8].into(), 7400 + n as u16)).collect()
}

fn heartbeat(rng: &mut Rng) -> Heartbeat {
    let first_sn = sn(rng);
    let group_info = rng.chance(500).then(|| HeartbeatGroupInfo {
        current_gsn: SequenceNumber(10),
        first_gsn: SequenceNumber(1),
        last_gsn: SequenceNumber(rng.below(11) as i64),
        writer_set: [1, 2, 3, 4],
        secure_writer_set: [5, 6, 7, 8],
    });
    Heartbeat {
        reader_id: entity(rng),
        writer_id: entity(rng),
        first_sn,
        last_sn: SequenceNumber(first_sn.0.saturating_add(rng.below(1000) as i64) - 1),
        count: rng.next_u64() as i32,
        final_flag: rng.chance(500),
        liveliness_flag: rng.chance(500),
        group_info,
    }
}

pub fn inline_qos(rng: &mut Rng) -> InlineQos {
    InlineQos {
        key_hash: rng.chance(500).then_some(taut_base::InstanceHandle([7; 16])),
        status_info: StatusInfo(rng.below(4) as u32),
        coherent_set: rng.chance(500).then(|| sn(rng)),
        ..InlineQos::default()
    }
}

fn data(rng: &mut Rng, out: &mut Vec<u8>, endian: Endian) {
    let mut qos = Vec::new();
    inline_qos(rng).write(&mut qos, endian);
    let payload: Vec<u8> = (0..4 + 4 * rng.below(20)).map(|n| n as u8).collect();
    let header = DataHeader { reader_id: entity(rng), writer_id: entity(rng), writer_sn: sn(rng) };
    let kind = [PayloadKind::None, PayloadKind::Data, PayloadKind::Key][rng.below(3) as usize];
    let payload = if kind == PayloadKind::None { &[][..] } else { &payload };
    assert!(header.write(out, endian, &qos, kind, payload.len()));
    out.extend_from_slice(payload);
}

fn data_frag(rng: &mut Rng, out: &mut Vec<u8>, endian: Endian) {
    let mut qos = Vec::new();
    inline_qos(rng).write(&mut qos, endian);
    let fragment_size = 4 * (1 + rng.below(40)) as u16;
    let total = 1 + rng.below(30) as u32;
    let start = 1 + rng.below(total.into()) as u32;
    let fragments_in_submessage = 1 + rng.below((total - start + 1).into()) as u16;
    let header = DataFragHeader {
        reader_id: entity(rng),
        writer_id: entity(rng),
        writer_sn: sn(rng),
        fragment_starting_num: start,
        fragments_in_submessage,
        fragment_size,
        sample_size: total * u32::from(fragment_size),
        key: rng.chance(500),
    };
    let payload = vec![0xaa; usize::from(fragments_in_submessage) * usize::from(fragment_size)];
    assert!(header.write(out, endian, &qos, payload.len()));
    out.extend_from_slice(&payload);
}

fn header_extension(rng: &mut Rng, out: &mut Vec<u8>, endian: Endian) {
    let checksum = match rng.below(4) {
        1 => Some(Checksum::Crc32c(0)),
        2 => Some(Checksum::Crc64(0)),
        3 => Some(Checksum::Md5([0; 16])),
        _ => None,
    };
    HeaderExtension {
        message_length: rng.chance(500).then_some(0),
        timestamp: rng.chance(500).then_some(Timestamp { seconds: 3, fraction: 4 }),
        uextension4: rng.chance(500).then_some([1; 4]),
        wextension8: rng.chance(500).then_some([2; 8]),
        checksum,
        parameters: None,
    }
    .write(out, endian);
}

/// Appends one valid submessage. Kind 0 is only valid as the first.
pub fn write_kind(kind: u64, rng: &mut Rng, out: &mut Vec<u8>, endian: Endian) {
    let (reader_id, writer_id, count) = (entity(rng), entity(rng), rng.next_u64() as i32);
    match kind {
        0 => header_extension(rng, out, endian),
        1 => write_pad(out, endian, rng.below(3) as u16),
        2 => data(rng, out, endian),
        3 => data_frag(rng, out, endian),
        4 => heartbeat(rng).write(out, endian),
        5 => {
            let last_fragment_num = 1 + rng.below(1000) as u32;
            HeartbeatFrag { reader_id, writer_id, writer_sn: sn(rng), last_fragment_num, count }
                .write(out, endian);
        }
        6 => {
            AckNack { reader_id, writer_id, reader_sn_state: sn_set(rng), count, final_flag: rng.chance(500) }
                .write(out, endian)
        }
        7 => {
            NackFrag { reader_id, writer_id, writer_sn: sn(rng), fragment_number_state: fn_set(rng), count }
                .write(out, endian);
        }
        8 => Gap {
            reader_id,
            writer_id,
            gap_start: sn(rng),
            gap_list: sn_set(rng),
            group_info: rng
                .chance(500)
                .then_some(GapGroupInfo { gap_start_gsn: SequenceNumber(4), gap_end_gsn: SequenceNumber(5) }),
            filtered_count: rng.chance(500).then_some(6),
        }
        .write(out, endian),
        9 => write_info_ts(
            out,
            endian,
            rng.chance(800).then(|| Timestamp { seconds: rng.next_u64() as u32 >> 1, fraction: 5 }),
        ),
        10 => write_info_dst(out, endian, prefix(rng)),
        11 => InfoSource { version: HEADER.version, vendor: VendorId([1, 1]), prefix: prefix(rng) }
            .write(out, endian),
        12 => {
            let (unicast, multicast) = (locators(rng), locators(rng));
            InfoReply::write_locators(out, endian, &unicast, rng.chance(500).then_some(&multicast[..]));
        }
        _ => InfoReplyIp4 {
            unicast: LocatorUdpV4 { address: 0x7f00_0001, port: 7411 },
            multicast: rng.chance(500).then_some(LocatorUdpV4 { address: 0xefff_0001, port: 7401 }),
        }
        .write(out, endian),
    }
}

/// A sealed message of up to 8 submessages of mixed kind and byte order.
pub fn message(rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    HEADER.write(&mut out);
    assert_eq!(out.len(), HEADER_LEN);
    let endian = |rng: &mut Rng| if rng.chance(500) { Endian::Big } else { Endian::Little };
    if rng.chance(500) {
        let order = endian(rng);
        write_kind(0, rng, &mut out, order);
    }
    for _ in 0..1 + rng.below(8) {
        let (kind, order) = (1 + rng.below(KINDS - 1), endian(rng));
        write_kind(kind, rng, &mut out, order);
    }
    HeaderExtension::seal(&mut out, &[]).unwrap();
    out
}

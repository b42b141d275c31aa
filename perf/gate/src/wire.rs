//! The message that carries one sample: header, INFO_TS, DATA of 64 bytes, HEARTBEAT.

use std::hint::black_box;

use taut_base::{EntityId, GuidPrefix, SequenceNumber, Timestamp};
use taut_wire::{
    DataHeader, Endian, Header, Heartbeat, Payload, PayloadKind, Submessage, Submessages, write_info_ts,
    write_message_header,
};

use crate::Path;
use crate::rounds::{WARM_UP, warm_and_count};

const PREFIX: GuidPrefix = GuidPrefix([7; 12]);
/// A user's writer without a key.
const WRITER: EntityId = EntityId([0, 0, 1, 0x03]);
/// Encapsulation header and 64 bytes.
const PAYLOAD: [u8; 68] = [9; 68];

pub fn paths() -> Vec<Path> {
    vec![Path::new("wire/build/data", build), Path::new("wire/parse/data", parse)]
}

fn write_message(out: &mut Vec<u8>, number: i64) {
    write_message_header(out, PREFIX);
    write_info_ts(out, Endian::Little, Some(Timestamp::from_unix_ns(number)));
    let header =
        DataHeader { reader_id: EntityId::UNKNOWN, writer_id: WRITER, writer_sn: SequenceNumber(number) };
    header.write(out, Endian::Little, &[], PayloadKind::Data, PAYLOAD.len());
    out.extend_from_slice(black_box(&PAYLOAD));
    let heartbeat = Heartbeat {
        reader_id: EntityId::UNKNOWN,
        writer_id: WRITER,
        first_sn: SequenceNumber(1),
        last_sn: SequenceNumber(number),
        count: 1,
        final_flag: true,
        liveliness_flag: false,
        group_info: None,
    };
    heartbeat.write(out, Endian::Little);
}

/// The submessages of a message, and the number of its DATA if that is as written.
fn read(message: &[u8]) -> (u64, Option<i64>) {
    let Ok((header, rest)) = Header::parse(message) else { return (0, None) };
    let (mut count, mut number) = (0, None);
    for submessage in Submessages::new(rest) {
        match submessage {
            Ok(Submessage::Data(data)) if data.payload == Payload::Data(&PAYLOAD) => {
                number = Some(data.writer_sn.0).filter(|_| header.prefix == PREFIX);
            }
            Ok(Submessage::InfoTimestamp(Some(_)) | Submessage::Heartbeat(_)) => {}
            _ => return (count, None),
        }
        count += 1;
    }
    (count, number)
}

fn build(rounds: u64) -> u64 {
    let mut out = Vec::new();
    let mut last = 0;
    warm_and_count(rounds, |n| {
        out.clear();
        last = 1 + i64::try_from(n).unwrap_or(i64::MAX);
        write_message(&mut out, last);
        black_box(&out);
    });
    assert_eq!(read(&out), (3, Some(last)));
    rounds
}

fn parse(rounds: u64) -> u64 {
    let mut message = Vec::new();
    write_message(&mut message, 5);
    let mut sum = (0, 0);
    warm_and_count(rounds, |_| {
        let (count, number) = read(black_box(&message));
        sum = (sum.0 + count, sum.1 + number.unwrap_or(0));
    });
    let all = rounds + WARM_UP;
    assert_eq!(sum, (3 * all, 5 * i64::try_from(all).unwrap_or(0)));
    rounds
}

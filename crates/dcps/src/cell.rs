//! A change as the words that go with its payload through a lane.
//!
//! Words: number; source timestamp as in RTPS 2.5 §9.3.2.1, all ones without one; kind in the two lowest bits
//! and above them when write was called, 0 if that is not known; the instance's handle in two.

use taut_base::{Guid, InstanceHandle, SequenceNumber, Time, Timestamp};
use taut_mem::Bytes;
use taut_mem::lane::Meta;
use taut_rtps::history_cache::{CacheChange, ChangeKind};

use taut_rtps::NewChange as Write;

/// No source timestamp.
const NONE: u64 = u64::MAX;

/// The words of a change that is about to be written.
pub fn meta(number: SequenceNumber, write: &Write) -> Meta {
    let kind = match write.kind {
        ChangeKind::Alive => 0,
        end => u64::from(end.status_info()),
    };
    let (high, low) = halves(write.instance);
    let timestamp = write.source_timestamp.map_or(NONE, Timestamp::to_bits);
    let kind_and_time = kind | write.called.0.cast_unsigned() << 2;
    [number.0.cast_unsigned(), timestamp, kind_and_time, high, low]
}

/// What the words say, but for the instance.
pub(crate) struct Head {
    pub number: SequenceNumber,
    pub source_timestamp: Option<Timestamp>,
    pub kind: ChangeKind,
}

impl Head {
    #[inline]
    pub fn of([number, timestamp, kind, ..]: &Meta) -> Head {
        Head {
            number: SequenceNumber(number.cast_signed()),
            source_timestamp: (*timestamp != NONE).then(|| Timestamp::from_bits(*timestamp)),
            kind: match kind & 3 {
                0 => ChangeKind::Alive,
                1 => ChangeKind::NotAliveDisposed,
                2 => ChangeKind::NotAliveUnregistered,
                _ => ChangeKind::NotAliveDisposedUnregistered,
            },
        }
    }
}

/// The number that the words say.
pub fn number(meta: &Meta) -> SequenceNumber {
    Head::of(meta).number
}

/// The source timestamp that the words say.
pub fn source_timestamp(meta: &Meta) -> Option<Timestamp> {
    Head::of(meta).source_timestamp
}

/// When `write` was called, if the words say so.
pub(crate) fn called([_, _, kind_and_time, ..]: &Meta) -> Option<Time> {
    Some(Time((kind_and_time >> 2).cast_signed())).filter(|called| *called != Time::default())
}

/// The change that was written, and is found now.
pub(crate) fn change(writer_guid: Guid, now: Time, meta: &Meta, payload: Bytes) -> CacheChange {
    let Head { number, source_timestamp, kind } = Head::of(meta);
    let [_, _, _, high, low] = *meta;
    // It has been there since it was written; a writer whose clock is another has not written it later than now.
    let time = called(meta).map_or(now, |called| called.min(now));
    let instance = InstanceHandle(((u128::from(high) << 64) | u128::from(low)).to_be_bytes());
    CacheChange {
        kind,
        writer_guid,
        sequence_number: number,
        instance: Some(instance),
        source_timestamp,
        time,
        payload,
    }
}

fn halves(instance: InstanceHandle) -> (u64, u64) {
    let all = u128::from_be_bytes(instance.0);
    ((all >> 64) as u64, all as u64)
}

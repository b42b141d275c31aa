//! Samples by reference: they are filled in place, and only what changes from sample to sample is
//! written, the numbers and both ends of the data. The receiver reads the same in place.

use std::time::Duration;

use taut_perf_kit::{Line, Options, Payload, Stamp, Stop};

use super::link::Ends;
use crate::sample::{Fields, Plain};

/// What a sample of type `plain` says of itself.
#[derive(Clone, Copy)]
pub struct Lent {
    stamp: Stamp,
    len: usize,
    ends: [u8; 2],
}

impl Payload for Lent {
    fn sized(size: usize) -> Lent {
        Lent { stamp: Stamp::default(), len: Plain::wire_len(size), ends: [0; 2] }
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn set_stamp(&mut self, stamp: Stamp) {
        self.stamp = stamp;
        self.ends = [stamp.seq as u8; 2];
    }

    fn intact(&self, size: usize) -> bool {
        self.len == Plain::wire_len(size) && self.ends == [self.stamp.seq as u8; 2]
    }
}

/// A line of such samples.
pub struct LentLine {
    ends: Ends,
    /// Only the numbers travel, within the slot's first cache line.
    bare: bool,
}

impl LentLine {
    /// Over these rings.
    pub fn new(ends: Ends, bare: bool) -> LentLine {
        LentLine { ends, bare }
    }
}

impl Line for LentLine {
    type Out = Lent;
    type In = Lent;

    fn send(&mut self, sample: &Lent) -> Result<(), Stop> {
        let writer = self.ends.writer()?;
        let (region, at) = writer.claim()?;
        let Stamp { seq, sent_ns, seen_ns } = sample.stamp;
        let data_at = Plain::data_at(sample.len);
        for (field, value) in [seq, sent_ns, seen_ns].into_iter().enumerate().take(data_at / 8) {
            region.copy_in(at + 8 * field, &value.to_le_bytes());
        }
        if sample.len > data_at && !self.bare {
            region.copy_in(at + data_at, &sample.ends[..1]);
            region.copy_in(at + sample.len - 1, &sample.ends[1..]);
        }
        writer.publish(sample.len)
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<Lent>, Stop> {
        let Some(reader) = self.ends.reader(at_most)? else { return Ok(None) };
        let lent = {
            let Some((region, at, len)) = reader.wait(at_most)? else { return Ok(None) };
            let number = |at| {
                let mut bytes = [0; 8];
                region.copy_out(at, &mut bytes);
                u64::from_le_bytes(bytes)
            };
            let data_at = Plain::data_at(len);
            let seen_ns = if data_at > 16 { number(at + 16) } else { 0 };
            let stamp = Stamp { seq: number(at), sent_ns: number(at + 8), seen_ns };
            let mut ends = [stamp.seq as u8; 2];
            if len > data_at && !self.bare {
                region.copy_out(at + data_at, &mut ends[..1]);
                region.copy_out(at + len - 1, &mut ends[1..]);
            }
            Lent { stamp, len, ends }
        };
        reader.release();
        Ok(Some(lent))
    }

    fn wait(&self, _: &Options) -> &'static str {
        self.ends.waits()
    }
}

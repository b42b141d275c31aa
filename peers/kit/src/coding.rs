//! The role `cdr`: what encoding and decoding cost, without a network.

use std::hint::black_box;

use serde_json::{Value, json};

use crate::clock::now_ns;
use crate::table::Table;
use crate::{Control, Options, Payload, Stamp, Stop};

/// Looks at what was decoded where it lies: to move a sample of some kilobytes is a copy more.
fn decoded<T>(sample: &Result<T, Stop>) -> Result<(), Stop> {
    match black_box(sample) {
        Ok(_) => Ok(()),
        Err(Stop::Absent(reason) | Stop::Failed(reason)) => Err(Stop::Failed(reason.clone())),
    }
}

/// What a sample says that is encoded.
const STAMP: Stamp = Stamp { seq: 7, sent_ns: 0, seen_ns: 0 };

/// The contract's batch.
const BATCH: u32 = 1_000;

/// Times batches of `encode`, which fills the given buffer anew, and of `decode`, which makes a new sample
/// of it.
pub fn cdr<T: Payload>(
    options: &Options,
    control: &Control,
    encode: impl Fn(&T, &mut Vec<u8>) -> Result<(), Stop>,
    decode: impl Fn(&[u8]) -> Result<T, Stop>,
) -> Result<Value, Stop> {
    batches(options, control, encode, &decode, |bytes| decoded(&decode(bytes)))
}

/// The same with a `decode` that reads into the sample that it read into before.
pub fn cdr_into<T: Payload>(
    options: &Options,
    control: &Control,
    encode: impl Fn(&T, &mut Vec<u8>) -> Result<(), Stop>,
    decode: impl Fn(&[u8], &mut T) -> Result<(), Stop>,
) -> Result<Value, Stop> {
    let mut into = T::sized(options.size);
    let again = |bytes: &[u8]| {
        let mut into = T::sized(0);
        decode(bytes, &mut into).map(|()| into)
    };
    batches(options, control, encode, again, |bytes| decode(bytes, black_box(&mut into)))
}

/// A sample and what it is encoded as, which is decoded once to see that it is the same.
fn checked<T: Payload>(
    size: usize,
    encode: impl Fn(&T, &mut Vec<u8>) -> Result<(), Stop>,
    again: impl Fn(&[u8]) -> Result<T, Stop>,
) -> Result<(T, Vec<u8>), Stop> {
    let (mut sample, mut encoded) = (T::sized(size), Vec::new());
    // One that was not decoded has none, if the type has one.
    sample.set_stamp(STAMP);
    encode(&sample, &mut encoded)?;
    let found = again(&encoded)?;
    if found.intact(size) && found.stamp() == sample.stamp() {
        return Ok((sample, encoded));
    }
    Err(Stop::Failed("what was decoded is not what was encoded".into()))
}

fn batches<T: Payload>(
    options: &Options,
    control: &Control,
    encode: impl Fn(&T, &mut Vec<u8>) -> Result<(), Stop>,
    again: impl Fn(&[u8]) -> Result<T, Stop>,
    mut decode: impl FnMut(&[u8]) -> Result<(), Stop>,
) -> Result<Value, Stop> {
    let mut table = Table::new(options.count);
    let (sample, mut encoded) = checked(options.size, &encode, again)?;
    control.ready("spin");
    let mut batch = || -> Result<[u64; 3], Stop> {
        let start_ns = now_ns();
        for _ in 0..BATCH {
            encode(black_box(&sample), &mut encoded)?;
            black_box(&encoded);
        }
        let middle_ns = now_ns();
        for _ in 0..BATCH {
            decode(black_box(&encoded))?;
        }
        Ok([middle_ns - start_ns, now_ns() - middle_ns, 0])
    };
    for _ in 0..options.warmup.div_ceil(u64::from(BATCH)) {
        batch()?;
    }
    let end_ns = match options.duration_ms {
        0 => u64::MAX,
        duration_ms => now_ns() + duration_ms * 1_000_000,
    };
    let mut batches = 0;
    while batches < options.count && now_ns() < end_ns {
        let times = batch()?;
        if let Some(record) = table.get_mut(batches) {
            *record = times;
        }
        batches += 1;
    }
    control.stop();
    table.write(&options.samples, batches)?;
    Ok(json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A type that a codec which does nothing would leave as it is to be.
    #[derive(Default)]
    struct Plain {
        seq: u64,
    }

    impl Payload for Plain {
        fn sized(_: usize) -> Plain {
            Plain::default()
        }

        fn stamp(&self) -> Stamp {
            Stamp { seq: self.seq, ..Stamp::default() }
        }

        fn set_stamp(&mut self, stamp: Stamp) {
            self.seq = stamp.seq;
        }

        fn intact(&self, _: usize) -> bool {
            true
        }
    }

    fn encode(sample: &Plain, to: &mut Vec<u8>) -> Result<(), Stop> {
        to.clear();
        to.extend(sample.seq.to_le_bytes());
        Ok(())
    }

    fn is_found(again: impl Fn(&[u8]) -> Result<Plain, Stop>) -> bool {
        checked(0, encode, again).is_err()
    }

    #[test]
    fn who_decodes_nothing_is_found_out() {
        assert!(is_found(|_| Ok(Plain::sized(0))));
        assert!(!is_found(|bytes| Ok(Plain { seq: bytes.first().copied().unwrap_or_default().into() })));
    }
}

//! The role `cdr`: what encoding and decoding cost, without a network.

use std::hint::black_box;

use serde_json::{Value, json};

use crate::clock::now_ns;
use crate::table::Table;
use crate::{Control, Options, Payload, Stop};

/// Looks at what was decoded where it lies: to move a sample of some kilobytes is a copy more.
fn decoded<T>(sample: &Result<T, Stop>) -> Result<(), Stop> {
    match black_box(sample) {
        Ok(_) => Ok(()),
        Err(Stop::Absent(reason) | Stop::Failed(reason)) => Err(Stop::Failed(reason.clone())),
    }
}

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
    let is_intact = |bytes: &[u8]| Ok(decode(bytes)?.intact(options.size));
    batches(options, control, encode, is_intact, |bytes| decoded(&decode(bytes)))
}

/// The same with a `decode` that reads into the sample that it read into before.
pub fn cdr_into<T: Payload>(
    options: &Options,
    control: &Control,
    encode: impl Fn(&T, &mut Vec<u8>) -> Result<(), Stop>,
    decode: impl Fn(&[u8], &mut T) -> Result<(), Stop>,
) -> Result<Value, Stop> {
    let mut into = T::sized(options.size);
    let is_intact = |bytes: &[u8]| {
        // One that is not intact before.
        let mut into = T::sized(0);
        decode(bytes, &mut into)?;
        Ok(into.intact(options.size))
    };
    batches(options, control, encode, is_intact, |bytes| decode(bytes, black_box(&mut into)))
}

fn batches<T: Payload>(
    options: &Options,
    control: &Control,
    encode: impl Fn(&T, &mut Vec<u8>) -> Result<(), Stop>,
    is_intact: impl Fn(&[u8]) -> Result<bool, Stop>,
    mut decode: impl FnMut(&[u8]) -> Result<(), Stop>,
) -> Result<Value, Stop> {
    let mut table = Table::new(options.count);
    let sample = T::sized(options.size);
    let mut encoded = Vec::new();
    encode(&sample, &mut encoded)?;
    if !is_intact(&encoded)? {
        return Err(Stop::Failed("what was decoded is not what was encoded".into()));
    }
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

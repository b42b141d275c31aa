//! The whole life of a subscriber.

use std::time::Instant;

use taut::{DataReader, Result, Selection};

use crate::bell::{Bell, after};
use crate::options::Options;
use crate::tally::{Matched, Tally};
use crate::types::Sample;

/// Samples that are taken at a time, as in the other peers.
const BATCH: Selection = Selection { max_samples: 32, ..Selection::ANY };

pub fn subscribe<T: Sample>(options: &Options, reader: &DataReader<T>) -> Result<u8> {
    let mut end = after(options.timeout);
    let bell = Bell::new();
    reader.set_listener(bell.listener());
    let mut tally = Tally::new(options);
    let mut matched = Matched::default();
    let mut lingers = false;
    loop {
        matched.update(reader.subscription_matched_status().current_count);
        let samples = reader.take_with(&BATCH)?;
        samples.iter().for_each(|sample| tally.count(sample));
        if !samples.is_empty() {
            continue;
        }
        if !lingers && (tally.is_complete() || (matched.left && matched.count == 0)) {
            lingers = true;
            end = after(options.linger);
        }
        if Instant::now() >= end {
            return Ok(tally.finish());
        }
        bell.wait_until(end);
    }
}

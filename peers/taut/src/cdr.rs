//! The role `cdr`: what encoding and decoding cost, XCDR1 as on the wire.

use std::hint::black_box;

use serde_json::{Value, json};
use taut::Representation;
use taut::cdr::{from_payload, to_payload};
use taut_perf_kit::clock::now_ns;
use taut_perf_kit::table::Table;
use taut_perf_kit::{Control, Options, Stop};

use crate::types::Type;

/// The contract's batch.
const BATCH: u32 = 1_000;

/// Encodes into a buffer that is kept; decodes into a new value.
pub fn cdr<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let mut table = Table::new(options.count);
    let value = T::sized(options.size);
    let mut payload = Vec::new();
    let fail = |error| Stop::Failed(format!("{error:?}"));
    control.ready("spin");
    for batch in 0..options.count {
        let start_ns = now_ns();
        for _ in 0..BATCH {
            payload.clear();
            to_payload(black_box(&value), Representation::Xcdr1, &mut payload).map_err(fail)?;
            black_box(&payload);
        }
        let middle_ns = now_ns();
        for _ in 0..BATCH {
            black_box(from_payload::<T>(black_box(&payload)).map_err(fail)?);
        }
        if let Some(record) = table.get_mut(batch) {
            *record = [middle_ns - start_ns, now_ns() - middle_ns, 0];
        }
    }
    control.stop();
    table.write(&options.samples, options.count)?;
    Ok(json!({}))
}

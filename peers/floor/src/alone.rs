//! The roles without another side: what a serialization costs at least, and what an empty process takes.

use std::hint::black_box;

use serde_json::{Value, json};
use taut_perf_kit::clock::now_ns;
use taut_perf_kit::table::Table;
use taut_perf_kit::{Control, Options, Stop};

/// As the contract says.
const BATCH: u64 = 1_000;

/// Copies a sample's bytes, as encode and as decode: no serialization of plain data is cheaper.
pub fn cdr(options: &Options, control: &Control, len: usize) -> Result<Value, Stop> {
    let sample = vec![0x5a_u8; len];
    let (mut encoded, mut decoded) = (vec![1_u8; len], vec![2_u8; len]);
    let mut table = Table::new(options.count);
    control.ready("spin");
    let mut both = || [batch(&sample, &mut encoded), batch(&encoded, &mut decoded), 0];
    (0..options.warmup.div_ceil(BATCH)).for_each(|_| _ = both());
    let end_ns = match options.duration_ms {
        0 => u64::MAX,
        duration_ms => now_ns() + duration_ms * 1_000_000,
    };
    let mut batches = 0;
    while batches < options.count && now_ns() < end_ns {
        let times_ns = both();
        if let Some(record) = table.get_mut(batches) {
            *record = times_ns;
        }
        batches += 1;
    }
    control.stop();
    table.write(&options.samples, batches)?;
    Ok(json!({}))
}

/// The nanoseconds of so many copies. Both ends are hidden from the optimizer each time.
fn batch(from: &[u8], to: &mut [u8]) -> u64 {
    let begin_ns = now_ns();
    for _ in 0..BATCH {
        black_box(&mut *to).copy_from_slice(black_box(from));
    }
    now_ns() - begin_ns
}

/// There are none: the process alone is what the driver reads.
pub fn entities(control: &Control) -> Value {
    control.ready("block");
    json!({})
}

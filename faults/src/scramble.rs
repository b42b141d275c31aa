//! A process that overwrites all that it shares with random words, beside a pair that keeps to the rules.

use std::fs::{File, OpenOptions, read_to_string};
use std::os::unix::fs::FileExt;

/// Bytes of each lane that are overwritten: header, cells and the first slots.
const REACH: u64 = 1 << 20;
/// Writes between two looks at which memory there is.
const WRITES: usize = 2_000;

/// Overwrites words of this process's own shared memory until `stop`.
pub fn scramble_own(seed: u64, stop: impl Fn() -> bool) {
    let mut random = fastrand::Rng::with_seed(seed);
    // Through this file even a mapping whose descriptor is sealed can be written: it is our own.
    let Ok(memory) = OpenOptions::new().write(true).open("/proc/self/mem") else { return };
    while !stop() {
        let maps = own_maps();
        for _ in 0..WRITES {
            let Some((start, len)) = random.choice(&maps).copied() else { break };
            scramble_one(&mut random, &memory, start, len);
        }
        std::thread::sleep(std::time::Duration::from_micros(random.u64(0..500)));
    }
}

/// Half of the words are random, half near to what is likely there: small numbers.
fn scramble_one(random: &mut fastrand::Rng, memory: &File, start: u64, len: u64) {
    let reach = if random.bool() { 4096 } else { len.min(REACH) };
    let at = start + random.u64(0..reach.min(len) / 8) * 8;
    let value = if random.bool() { random.u64(..) } else { random.u64(0..2_000) };
    let _ = memory.write_at(&value.to_ne_bytes(), at);
}

/// Start and length of what this process maps to share and to write.
fn own_maps() -> Vec<(u64, u64)> {
    let maps = read_to_string("/proc/self/maps").unwrap_or_default();
    let ours = maps.lines().filter(|line| line.contains("/memfd:taut-") && line.contains(" rw-s "));
    let range = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        Some((start, end - start))
    };
    ours.filter_map(range).collect()
}

//! What the threads of a part have seen, for whoever asks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::sample::Numbered;
use crate::sight::now_ns;

/// What the writing thread does: writes in its rhythm, rests, or writes until it is refused and then rests.
pub const WRITES: u8 = 0;
pub const RESTS: u8 = 1;
pub const FILLS: u8 = 2;

/// Arrivals that are remembered: three seconds at the shortest period.
const ARRIVALS: usize = 16_384;
/// Writers that are remembered: a few live at a time, and each victim leaves some behind. The one that was not heard for
/// longest makes room, never the healthy one.
const WRITERS: usize = 64;
/// The writer whose samples count as those of the healthy pair.
pub const HEALTHY: u64 = 1;

/// What the threads have seen.
#[derive(Default)]
pub struct Seen {
    pub stop: AtomicBool,
    pub writing: AtomicU8,
    pub sent: AtomicU64,
    pub refused: AtomicU64,
    /// Writes of the last filling, and how long the one that was refused took.
    pub filled: AtomicU64,
    pub blocked_ns: AtomicU64,
    /// When the writer last found or lost a reader.
    pub known_ns: AtomicU64,
    pub received: AtomicU64,
    /// Samples of any writer whose CRC is wrong.
    pub wrong: AtomicU64,
    /// Samples of the healthy writer, and of any, that came out of order or twice.
    pub disorder: AtomicU64,
    pub out_of_order: AtomicU64,
    /// The last of those.
    strange: Mutex<String>,
    pub turns: AtomicU64,
    pub last_healthy: AtomicU64,
    pub lost: AtomicU64,
    /// The longest time between two writes, or from one look for samples to the next: what the machine, not
    /// the middleware, takes.
    pub pause_ns: AtomicU64,
    pub write_ns: Mutex<Vec<u32>>,
    healthy: Mutex<VecDeque<u64>>,
    writers: Mutex<BTreeMap<[u8; 16], Writer>>,
    pub own: Mutex<[u8; 16]>,
}

/// What a reader knows of one writer.
#[derive(Default)]
struct Writer {
    healthy: bool,
    first: u64,
    last: u64,
    wrong: u64,
    /// How many samples of all writers came before its last one.
    heard: u64,
}

impl Seen {
    pub fn set_writing(&self, how: u8) -> String {
        self.writing.store(how, Ordering::SeqCst);
        "done=1".to_owned()
    }

    pub fn report(&self) -> String {
        let load = |count: &AtomicU64| count.load(Ordering::SeqCst);
        let writers = self.writers.lock().expect("no thread panics");
        let healthy = writers.iter().find(|(_, one)| one.healthy);
        let healthy = healthy.map_or(String::new(), |(guid, one)| format!("{}:{}", hex(guid), one.wrong));
        let one = writers.values().next();
        format!(
            "guid={} writing={} sent={} refused={} filled={} blocked_us={} known={} received={} disorder={} \
             out_of_order={} strange={} turns={} last_healthy={} lost={} first={} last={} wrong={} \
             healthy={healthy}",
            hex(&*self.own.lock().expect("no thread panics")),
            self.writing.load(Ordering::SeqCst),
            load(&self.sent),
            load(&self.refused),
            load(&self.filled),
            load(&self.blocked_ns) / 1_000,
            load(&self.known_ns),
            load(&self.received),
            load(&self.disorder),
            load(&self.out_of_order),
            self.strange.lock().expect("no thread panics"),
            load(&self.turns),
            load(&self.last_healthy),
            load(&self.lost),
            one.map_or(0, |one| one.first),
            one.map_or(0, |one| one.last),
            load(&self.wrong),
        )
    }

    /// Percentiles of what writes took since the last time this was asked.
    pub fn times(&self) -> String {
        let mut all = std::mem::take(&mut *self.write_ns.lock().expect("no thread panics"));
        all.sort_unstable();
        let part = |percent: usize| all.get(all.len() * percent / 100).copied().unwrap_or(0);
        let most = all.last().copied().unwrap_or(0);
        let pause = self.pause_ns.swap(0, Ordering::SeqCst);
        format!("count={} p50={} p99={} most={most} pause={pause}", all.len(), part(50), part(99))
    }

    /// The longest time between two samples of the healthy pair since `from_ns`, and how long after `known_ns`
    /// the next one came; 0 if there was none yet.
    pub fn gap(&self, from_ns: u64, known_ns: u64) -> String {
        let arrivals = self.healthy.lock().expect("no thread panics");
        // What was before the oldest that is remembered is not known.
        let oldest = arrivals.front().copied().filter(|_| arrivals.len() == ARRIVALS).unwrap_or(0);
        let (mut gap, mut before) = (0, from_ns.max(oldest));
        for at in arrivals.iter().filter(|at| **at >= from_ns) {
            gap = gap.max(at - before);
            before = *at;
        }
        let next = arrivals.iter().find(|at| **at >= known_ns);
        format!("gap_us={} next_us={}", gap / 1_000, next.map_or(0, |at| (at - known_ns) / 1_000 + 1))
    }

    /// Notes a sample of a writer; a strict one leaves none out.
    pub fn note(&self, guid: [u8; 16], sample: &Numbered, strict: bool) {
        let heard = self.received.fetch_add(1, Ordering::SeqCst);
        let mut writers = self.writers.lock().expect("no thread panics");
        if writers.len() == WRITERS && !writers.contains_key(&guid) {
            let others = writers.iter().filter(|(_, one)| !one.healthy);
            let gone = others.min_by_key(|(_, one)| one.heard).map(|(guid, _)| *guid);
            gone.map(|gone| writers.remove(&gone));
        }
        let writer = writers.entry(guid).or_default();
        writer.heard = heard;
        if !sample.is_right() {
            writer.wrong += 1;
            self.wrong.fetch_add(1, Ordering::SeqCst);
            return;
        }
        writer.healthy |= sample.writer == HEALTHY;
        let follows = if strict { sample.number == writer.last + 1 } else { sample.number > writer.last };
        if writer.first == 0 {
            writer.first = sample.number;
        } else if !follows {
            self.out_of_order.fetch_add(1, Ordering::SeqCst);
            *self.strange.lock().expect("no thread panics") =
                format!("{}-after-{}-of-writer-{}", sample.number, writer.last, sample.writer);
            self.disorder.fetch_add(u64::from(sample.writer == HEALTHY), Ordering::SeqCst);
        }
        writer.last = sample.number;
        drop(writers);
        if sample.writer == HEALTHY {
            self.last_healthy.store(sample.number, Ordering::SeqCst);
            let mut healthy = self.healthy.lock().expect("no thread panics");
            if healthy.len() == ARRIVALS {
                healthy.pop_front();
            }
            healthy.push_back(now_ns());
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(seen: &Seen, guid: u8, writer: u64, number: u64) {
        seen.note([guid; 16], &Numbered::new(writer, number, 16), true);
    }

    fn note_wrong(seen: &Seen, guid: u8) {
        seen.note([guid; 16], &Numbered { crc: 0, ..Numbered::new(HEALTHY, 2, 16) }, true);
    }

    #[test]
    fn a_wrong_sample_is_counted_whoever_comes_later() {
        let seen = Seen::default();
        note_wrong(&seen, 0);
        (1..=100).for_each(|guid| note(&seen, guid, 2, 1));
        assert!(seen.report().contains(" wrong=1 "), "{}", seen.report());
    }

    #[test]
    fn the_healthy_writer_is_remembered_whoever_comes_later() {
        let seen = Seen::default();
        note(&seen, 0, HEALTHY, 1);
        note_wrong(&seen, 0);
        (1..=70).for_each(|guid| note(&seen, guid, 2, 1));
        note(&seen, 0, HEALTHY, 3);
        assert_eq!(seen.disorder.load(Ordering::SeqCst), 1);
        assert!(seen.report().ends_with(" healthy=00000000000000000000000000000000:1"), "{}", seen.report());
    }

    #[test]
    fn who_was_not_heard_for_longest_makes_room() {
        let seen = Seen::default();
        (0..64).for_each(|guid| note(&seen, guid, 2, 1));
        note(&seen, 0, 2, 2);
        note(&seen, 64, 2, 1);
        // It is known: what does not follow is seen. Of the one that has gone anything would be the first.
        note(&seen, 0, 2, 4);
        note(&seen, 1, 2, 9);
        assert_eq!(seen.out_of_order.load(Ordering::SeqCst), 1);
    }
}

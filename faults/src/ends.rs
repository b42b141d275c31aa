//! The writing and the reading thread of a part, and what they have seen.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread::sleep;

use taut::qos::ResourceLimits;
use taut::{
    DataReader, DataWriter, DomainParticipant, Duration, Error, Qos, Result, Sample, Selection, StatusMask,
    Topic,
};

use crate::play::Part;
use crate::sample::Numbered;
use crate::sight::now_ns;

/// What the writing thread does: writes in its rhythm, rests, or writes until it is refused and then rests.
pub const WRITES: u8 = 0;
pub const RESTS: u8 = 1;
pub const FILLS: u8 = 2;

/// Arrivals that are remembered: three seconds at the shortest period.
const ARRIVALS: usize = 16_384;
/// The writer whose samples count as those of the healthy pair.
pub const HEALTHY: u64 = 1;
/// Longest wait of a reading thread before it looks whether to stop.
const LOOK: Duration = Duration::from_millis(20);

/// What the threads have seen.
#[derive(Default)]
pub struct Seen {
    pub stop: AtomicBool,
    writing: AtomicU8,
    sent: AtomicU64,
    refused: AtomicU64,
    /// Writes of the last filling, and how long the one that was refused took.
    filled: AtomicU64,
    blocked_ns: AtomicU64,
    /// When the writer last found or lost a reader.
    known_ns: AtomicU64,
    received: AtomicU64,
    /// Samples of the healthy writer, and of any, that came out of order or twice.
    disorder: AtomicU64,
    out_of_order: AtomicU64,
    turns: AtomicU64,
    last_healthy: AtomicU64,
    lost: AtomicU64,
    /// The longest time between two writes, or from one look for samples to the next: what the machine, not
    /// the middleware, takes.
    pause_ns: AtomicU64,
    write_ns: Mutex<Vec<u32>>,
    healthy: Mutex<VecDeque<u64>>,
    writers: Mutex<BTreeMap<[u8; 16], Writer>>,
    own: Mutex<[u8; 16]>,
}

/// What a reader knows of one writer.
#[derive(Default)]
struct Writer {
    first: u64,
    last: u64,
    received: u64,
    wrong: u64,
}

impl Seen {
    pub fn set_writing(&self, how: u8) -> String {
        self.writing.store(how, Ordering::SeqCst);
        "done=1".to_owned()
    }

    pub fn report(&self) -> String {
        let load = |count: &AtomicU64| count.load(Ordering::SeqCst);
        let writers = self.writers.lock().expect("no thread panics");
        let wrong: Vec<_> =
            writers.iter().map(|(guid, one)| format!("{}:{}", hex(guid), one.wrong)).collect();
        let one = writers.values().next();
        format!(
            "guid={} writing={} sent={} refused={} filled={} blocked_us={} known={} received={} disorder={} \
             out_of_order={} turns={} last_healthy={} lost={} first={} last={} wrong={}",
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
            load(&self.turns),
            load(&self.last_healthy),
            load(&self.lost),
            one.map_or(0, |one| one.first),
            one.map_or(0, |one| one.last),
            wrong.join(","),
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

    fn note(&self, guid: [u8; 16], sample: &Numbered, strict: bool) {
        self.received.fetch_add(1, Ordering::SeqCst);
        let mut writers = self.writers.lock().expect("no thread panics");
        let writer = writers.entry(guid).or_default();
        writer.received += 1;
        if !sample.is_right() {
            writer.wrong += 1;
            return;
        }
        let follows = if strict { sample.number == writer.last + 1 } else { sample.number > writer.last };
        if writer.first == 0 {
            writer.first = sample.number;
        } else if !follows {
            self.out_of_order.fetch_add(1, Ordering::SeqCst);
            self.disorder.fetch_add(u64::from(sample.writer == HEALTHY), Ordering::SeqCst);
        }
        writer.last = sample.number;
        // Writers that have gone make room for others.
        while writers.len() > 64 {
            let gone = writers.keys().copied().find(|known| *known != guid);
            gone.map(|gone| writers.remove(&gone));
        }
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

fn topic(participant: &DomainParticipant) -> Topic<Numbered> {
    participant.topic::<Numbered>("Faults").expect("the topic can be made")
}

fn qos(part: &Part) -> Qos {
    if !part.reliable {
        // What a cache of a reader replaces is not lost: it keeps all, so that all can be counted.
        return Qos::default().best_effort().keep_all();
    }
    let limits = ResourceLimits { max_samples: part.max_samples, ..ResourceLimits::default() };
    let reliable = Qos::default().reliable().keep_all().resource_limits(limits);
    reliable.max_blocking_time(Duration::from_millis(part.blocking_ms))
}

/// The writing thread.
pub fn write(part: &Part, id: u64, participant: &DomainParticipant, seen: &std::sync::Arc<Seen>) {
    let topic = topic(participant);
    let mut number = 0;
    while !seen.stop.load(Ordering::Relaxed) {
        let writer = topic.writer(qos(part)).expect("the writer can be made");
        *seen.own.lock().expect("no thread panics") = writer.guid().to_bytes();
        let told = std::sync::Arc::clone(seen);
        writer.set_listener(move |kinds| {
            if kinds.intersects(StatusMask::PUBLICATION_MATCHED) {
                told.known_ns.store(now_ns(), Ordering::SeqCst);
            }
        });
        let until = part.anew_after.map_or(u64::MAX, |count| number + count);
        while number < until && !seen.stop.load(Ordering::Relaxed) {
            match seen.writing.load(Ordering::SeqCst) {
                RESTS => sleep(std::time::Duration::from_millis(1)),
                FILLS => fill(part, id, &writer, &mut number, seen),
                _ => {
                    let _ = write_one(part, id, &writer, &mut number, seen);
                    let before = now_ns();
                    if part.period_us > 0 {
                        sleep(std::time::Duration::from_micros(part.period_us));
                    }
                    seen.pause_ns.fetch_max(now_ns() - before, Ordering::SeqCst);
                }
            }
        }
    }
}

fn write_one(
    part: &Part,
    id: u64,
    writer: &DataWriter<Numbered>,
    number: &mut u64,
    seen: &Seen,
) -> Result<()> {
    let sample = Numbered::new(id, *number + 1, part.sizes[*number as usize % part.sizes.len()]);
    let before = now_ns();
    let written = writer.write(&sample);
    let took = now_ns() - before;
    match &written {
        Ok(()) => {
            *number += 1;
            seen.sent.store(*number, Ordering::SeqCst);
            let mut times = seen.write_ns.lock().expect("no thread panics");
            if times.len() < 1 << 20 {
                times.push(took.min(u64::from(u32::MAX)) as u32);
            }
        }
        Err(_) => {
            seen.refused.fetch_add(1, Ordering::SeqCst);
            seen.blocked_ns.store(took, Ordering::SeqCst);
        }
    }
    written
}

/// Writes until a write is refused, then rests.
fn fill(part: &Part, id: u64, writer: &DataWriter<Numbered>, number: &mut u64, seen: &Seen) {
    let before = *number;
    let refused = loop {
        if let Err(error) = write_one(part, id, writer, number, seen) {
            break error;
        }
    };
    if !matches!(refused, Error::Timeout) {
        eprintln!("a write was refused: {refused}");
    }
    seen.filled.store(*number - before, Ordering::SeqCst);
    seen.writing.store(RESTS, Ordering::SeqCst);
}

/// The reading thread.
pub fn read(part: &Part, participant: &DomainParticipant, seen: &Seen) {
    let topic = topic(participant);
    while !seen.stop.load(Ordering::Relaxed) {
        read_some(part, &topic, seen);
    }
}

/// The reading thread of a process whose participants live for a few samples each.
pub fn read_in_turns(part: &Part, seen: &Seen) {
    while !seen.stop.load(Ordering::Relaxed) {
        let participant = DomainParticipant::with_config(&part.config()).expect("a participant can be made");
        read_some(part, &topic(&participant), seen);
        seen.turns.fetch_add(1, Ordering::SeqCst);
    }
}

/// A thread that waits for what never comes.
pub fn wait_in_vain(participant: &DomainParticipant, seen: &Seen) {
    let topic = participant.topic::<Numbered>("Silence").expect("the topic can be made");
    let reader = topic.reader(Qos::default().reliable()).expect("the reader can be made");
    while !seen.stop.load(Ordering::Relaxed) {
        let _ = reader.wait(Duration::from_secs(2));
    }
}

/// One life of a reader.
fn read_some(part: &Part, topic: &Topic<Numbered>, seen: &Seen) {
    let reader = topic.reader(qos(part)).expect("the reader can be made");
    let before = seen.received.load(Ordering::SeqCst);
    let until = part.anew_after.map_or(u64::MAX, |count| before + count);
    while seen.received.load(Ordering::SeqCst) < until && !seen.stop.load(Ordering::Relaxed) {
        let mut before = now_ns();
        if reader.wait(LOOK).is_ok() {
            before = now_ns();
            take(part, &reader, seen);
        } else {
            before += LOOK.0.unsigned_abs();
        }
        seen.pause_ns.fetch_max(now_ns().saturating_sub(before), Ordering::SeqCst);
        let lost = reader.sample_lost_status().total_count;
        seen.lost.store(u64::from(lost), Ordering::SeqCst);
    }
}

fn take(part: &Part, reader: &DataReader<Numbered>, seen: &Seen) {
    let note = |sample: Sample<Numbered>| {
        if let Some(data) = sample.data {
            seen.note(sample.info.publication_handle.0, &data, part.reliable);
        }
    };
    if part.hoard == 0 {
        while let Ok(Some(sample)) = reader.take_next() {
            note(sample);
        }
    } else if reader.read_with(&Selection::ANY).is_ok_and(|samples| samples.len() >= part.hoard) {
        reader.take().unwrap_or_default().into_iter().for_each(note);
    }
}

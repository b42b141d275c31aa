//! The writing and the reading thread of a part.

use std::sync::atomic::Ordering;
use std::thread::sleep;

use taut::qos::ResourceLimits;
use taut::{
    DataReader, DataWriter, DomainParticipant, Duration, Error, Qos, Result, Sample, Selection, StatusMask,
    Topic,
};

use crate::play::Part;
use crate::sample::Numbered;
use crate::seen::{FILLS, RESTS, Seen};
use crate::sight::now_ns;

/// Longest wait of a reading thread before it looks whether to stop.
const LOOK: Duration = Duration::from_millis(20);

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
            let mut times = seen.write_ns.lock().expect("no thread panics");
            if times.len() < 1 << 20 {
                times.push(took.min(u64::from(u32::MAX)) as u32);
            }
            // Who sees it sent finds how long it took.
            seen.sent.store(*number, Ordering::SeqCst);
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
    if !matches!(refused, Error::Timeout(_)) {
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

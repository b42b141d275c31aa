//! History for who joins a stream late, by each way that samples take.

use std::sync::atomic::{AtomicBool, Ordering};

use taut::{Config, DdsType, DomainParticipant, Duration, Qos};

const SOON: Duration = Duration::from_secs(20);

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Reading {
    number: u64,
}

/// What is written before a reader is made. Few enough for the socket's buffer.
const BEFORE: u64 = 200;

fn has_history_first(domain_id: u32, local: bool, apart: bool) {
    let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
    let open = || DomainParticipant::with_config(&config).unwrap();
    let out = open();
    let other = apart.then(open);
    let inward = other.as_ref().unwrap_or(&out);
    let durable = || Qos::default().keep_all().transient_local();
    let writer = out.topic::<Reading>("Readings").unwrap().writer(durable().reliable()).unwrap();
    // The writer's lane has a reader already.
    let witness = inward.topic::<Reading>("Readings").unwrap().reader(Qos::default().best_effort()).unwrap();
    writer.wait_matched(SOON).unwrap();
    witness.wait_matched(SOON).unwrap();
    (1..=BEFORE).for_each(|number| writer.write(&Reading { number }).unwrap());
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // A DataWriter belongs to one thread: this one goes on writing while the reader joins.
            let writer = writer;
            for number in BEFORE + 1..BEFORE + 4_000 {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                writer.write(&Reading { number }).unwrap();
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        let reader = inward.topic::<Reading>("Readings").unwrap().reader(durable().best_effort()).unwrap();
        let mut last = 0;
        while last < 2 * BEFORE {
            reader.wait(SOON).unwrap();
            while let Some(sample) = reader.take_next().unwrap() {
                let Some(Reading { number }) = sample.data else { continue };
                assert!(number > last, "{number} after {last}, local: {local}, apart: {apart}");
                assert!(number == last + 1 || last >= BEFORE, "{number} after {last}, local: {local}");
                last = number;
            }
        }
        ends.store(true, Ordering::Relaxed);
    });
}

#[test]
fn within_a_participant() {
    has_history_first(60, true, false);
}

#[test]
fn by_shared_memory() {
    has_history_first(61, true, true);
}

#[test]
fn by_the_network() {
    has_history_first(62, false, true);
}

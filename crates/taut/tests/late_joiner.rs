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

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Job {
    #[dds(key)]
    id: u32,
    done: u32,
}

/// A writer that lives long names what there is by ever new keys.
fn gets_nothing_of_instances_that_have_ended(domain_id: u32, local: bool, apart: bool, early: bool) {
    let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
    let open = || DomainParticipant::with_config(&config).unwrap();
    let out = open();
    let other = apart.then(open);
    let topic = other.as_ref().unwrap_or(&out).topic::<Job>("Jobs").unwrap();
    let durable = Qos::default().reliable().transient_local();
    let writer = out.topic::<Job>("Jobs").unwrap().writer(durable.clone().keep_last(1)).unwrap();
    let has_all = early.then(|| topic.reader(durable.clone().keep_last(1)).unwrap());
    if let Some(reader) = &has_all {
        writer.wait_matched(SOON).unwrap();
        reader.wait_matched(SOON).unwrap();
    }
    for id in 1..=1_000 {
        writer.write(&Job { id, done: 0 }).unwrap();
        writer.unregister_instance(&Job { id, done: 0 }).unwrap();
    }
    writer.wait_for_acknowledgments(SOON).unwrap();
    let live = Job { id: 0, done: 50 };
    writer.write(&live).unwrap();
    writer.wait_for_acknowledgments(SOON).unwrap();
    let late = topic.reader(durable.keep_all()).unwrap();
    late.wait(SOON).unwrap();
    // It would come last of all.
    let first = late.take_next().unwrap().unwrap();
    let case = format!("local: {local}, apart: {apart}, early: {early}");
    assert_eq!(first.data.as_ref(), Some(&live), "{case}: {:?} comes first", first.info);
    assert_eq!(late.take().unwrap().len(), 0, "{case}");
    let Some(reader) = has_all else { return };
    let ends = reader.take().unwrap().iter().filter(|sample| !sample.info.valid_data).count();
    assert_eq!(ends, 1_000, "{case}: who was there has heard of each");
}

#[test]
fn what_has_ended_is_not_told_within_a_participant() {
    gets_nothing_of_instances_that_have_ended(63, true, false, false);
    gets_nothing_of_instances_that_have_ended(63, true, false, true);
}

#[test]
fn what_has_ended_is_not_told_by_shared_memory() {
    gets_nothing_of_instances_that_have_ended(64, true, true, false);
    gets_nothing_of_instances_that_have_ended(64, true, true, true);
}

#[test]
fn what_has_ended_is_not_told_by_the_network() {
    gets_nothing_of_instances_that_have_ended(65, false, true, false);
    gets_nothing_of_instances_that_have_ended(65, false, true, true);
}

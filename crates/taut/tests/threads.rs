//! How many threads Taut makes. A binary of its own: it counts those of the whole process.

use std::time::Instant;

use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Duration, Qos};
use taut_testbed::{threads, threads_of_taut};

#[derive(DdsType)]
#[dds(final)]
struct Number {
    value: u32,
}

const SOON: Duration = Duration::from_secs(10);
/// Topics with a writer and a reader each.
const TOPICS: u32 = 100;

fn config(domain_id: u32) -> Config {
    Config { domain_id, interfaces: vec!["lo".into()], ..Config::default() }
}

/// One after the other: they look at all threads of the process.
#[test]
fn threads_are_made_by_participants_and_for_nothing_else() {
    the_inline_driver_makes_none_and_works_when_called();
    a_participant_makes_one_for_all_its_writers_and_readers();
}

fn the_inline_driver_makes_none_and_works_when_called() {
    let before = threads();
    let inline = Config { driver: Driver::Inline, ..config(26) };
    let a = DomainParticipant::with_config(&inline).unwrap();
    let b = DomainParticipant::with_config(&inline).unwrap();
    let writer = a.topic::<Number>("Inline").unwrap().writer(Qos::default().reliable()).unwrap();
    let reader = b.topic::<Number>("Inline").unwrap().reader(Qos::default().reliable()).unwrap();
    let until = Instant::now() + SOON.into();
    while writer.publication_matched_status().current_count == 0
        || reader.subscription_matched_status().current_count == 0
    {
        a.run_once(Duration::from_millis(1)).unwrap();
        b.run_once(Duration::from_millis(1)).unwrap();
        assert!(Instant::now() < until, "no match");
    }
    writer.write(&Number { value: 3 }).unwrap();
    reader.wait(SOON).unwrap();
    assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap().value, 3);
    assert_eq!(threads(), before);
}

fn a_participant_makes_one_for_all_its_writers_and_readers() {
    let before = threads().len();
    let participant = DomainParticipant::with_config(&config(26)).unwrap();
    let ends: Vec<(DataWriter<Number>, DataReader<Number>)> = (0..TOPICS)
        .map(|n| {
            let topic = participant.topic::<Number>(&format!("Topic{n}")).unwrap();
            let qos = Qos::default().reliable();
            (topic.writer(qos.clone()).unwrap(), topic.reader(qos).unwrap())
        })
        .collect();
    for (value, (writer, reader)) in (0..).zip(&ends) {
        writer.wait_matched(SOON).unwrap();
        reader.wait_matched(SOON).unwrap();
        writer.write(&Number { value }).unwrap();
        reader.wait(SOON).unwrap();
        assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap().value, value);
        writer.wait_for_acknowledgments(SOON).unwrap();
    }
    // Whatever they are called.
    assert_eq!((threads().len(), threads_of_taut().len()), (before + 1, 1));
    drop((ends, participant));
    assert_eq!(threads().len(), before, "it ends with the participant");
}

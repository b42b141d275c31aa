//! TIME_BASED_FILTER of a reliable reader: the last sample of a burst comes, whoever waits for it.

use std::sync::mpsc;

use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Duration, Qos, SamplePath, Timestamp,
};

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Number {
    value: u32,
}

const SOON: Duration = Duration::from_secs(20);
const LAST: u32 = 99;

/// A writer and a reader in one participant, or in two; and the participant of the writer.
fn ends(
    domain_id: u32,
    local: bool,
    alone: bool,
) -> (DomainParticipant, DataWriter<Number>, DataReader<Number>) {
    let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
    let open = || DomainParticipant::with_config(&config).unwrap();
    let one = open();
    let other = if alone { one.clone() } else { open() };
    let qos = Qos::default().reliable().keep_all();
    let writer = one.topic("Burst").unwrap().writer(qos.clone()).unwrap();
    let qos = qos.time_based_filter(Duration::from_millis(50));
    let reader = other.topic("Burst").unwrap().reader(qos).unwrap();
    writer.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    (one, writer, reader)
}

fn pair(domain_id: u32, local: bool, alone: bool) -> (DataWriter<Number>, DataReader<Number>) {
    let (_, writer, reader) = ends(domain_id, local, alone);
    (writer, reader)
}

fn burst(writer: &DataWriter<Number>) {
    (0..=LAST).for_each(|value| writer.write(&Number { value }).unwrap());
}

#[test]
fn who_waits_gets_the_last_of_a_burst() {
    for (domain_id, local, alone) in [(87, true, false), (96, false, false), (99, true, true)] {
        let (writer, reader) = pair(domain_id, local, alone);
        burst(&writer);
        let mut last = None;
        while last != Some(LAST) {
            reader.wait(SOON).unwrap_or_else(|error| panic!("{local} {alone} {last:?}: {error}"));
            last = reader.take().unwrap().pop().and_then(|sample| sample.data).map(|data| data.value);
        }
    }
}

#[test]
fn who_asks_again_and_again_gets_it() {
    let (writer, reader) = pair(100, true, false);
    burst(&writer);
    let begun = std::time::Instant::now();
    while !reader.take().unwrap().iter().any(|sample| sample.data == Some(Number { value: LAST })) {
        assert!(begun.elapsed() < SOON.into());
        std::thread::yield_now();
    }
}

#[test]
fn a_listener_hears_of_it() {
    for (domain_id, local) in [(101, true), (102, false)] {
        let (writer, reader) = pair(domain_id, local, false);
        let (send, heard) = mpsc::channel();
        reader.on_data_available(move |sample| send.send(sample.data.unwrap().value).unwrap());
        burst(&writer);
        while heard.recv_timeout(SOON.into()).unwrap_or_else(|_| panic!("{local}: the last one is not told"))
            != LAST
        {}
    }
}

#[test]
fn what_was_written_apart_comes_however_late_it_is_taken() {
    for (domain_id, alone, is_of_caller) in [(103, false, false), (104, true, false), (105, false, true)] {
        let (one, writer, reader) = ends(domain_id, true, alone);
        // Over the network it is about when they come, which may be at once.
        let begun = std::time::Instant::now();
        while one.matches().iter().all(|found| found.path != Some(SamplePath::Process)) {
            assert!(begun.elapsed() < SOON.into(), "{:?}", one.matches());
            std::thread::yield_now();
        }
        for value in 0..3 {
            if is_of_caller {
                writer.write_with_timestamp(&Number { value }, Timestamp::from_unix_ns(1)).unwrap();
            } else {
                writer.write(&Number { value }).unwrap();
            }
            // It is about the time between two.
            std::thread::sleep(std::time::Duration::from_millis(60));
        }
        let begun = std::time::Instant::now();
        let mut taken = Vec::new();
        while taken.last() != Some(&2) {
            assert!(begun.elapsed() < SOON.into());
            taken.extend(reader.take().unwrap().into_iter().filter_map(|sample| Some(sample.data?.value)));
        }
        assert_eq!(taken, [0, 1, 2], "{alone} {is_of_caller}");
    }
}

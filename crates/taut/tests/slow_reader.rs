//! Who holds a writer back is named, whatever way its samples go.

use std::sync::mpsc;

use taut::qos::ResourceLimits;
use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Duration, Error, Qos, SamplePath, StatusMask,
};

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Number {
    value: u32,
}

const SOON: Duration = Duration::from_secs(10);
const BLOCKING: Duration = Duration::from_millis(100);

fn participant(domain_id: u32, name: &str, local: bool) -> DomainParticipant {
    let config =
        Config { domain_id, name: name.into(), local, interfaces: vec!["lo".into()], ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

fn qos(samples: u32) -> Qos {
    let limits = ResourceLimits { max_samples: Some(samples), ..ResourceLimits::default() };
    Qos::default().reliable().keep_all().max_blocking_time(BLOCKING).resource_limits(limits)
}

/// Writes until a write gives up. Returns how many were accepted, and why no more.
fn fill(writer: &DataWriter<Number>, readers: &[&DataReader<Number>]) -> (u32, Error) {
    for value in 0..10_000 {
        if let Err(error) = writer.write(&Number { value }) {
            return (value, error);
        }
        for reader in readers {
            while reader.take_next().unwrap().is_none() {
                reader.wait(SOON).unwrap();
            }
        }
    }
    panic!("nothing stops the writer");
}

/// Waits until all readers are in the lane: what was written before comes the usual way.
fn wait_joined(participant: &DomainParticipant) {
    let start = std::time::Instant::now();
    while participant.matches().iter().any(|found| found.path != Some(SamplePath::Process)) {
        assert!(start.elapsed() < SOON.into(), "{:?}", participant.matches());
        // Joins tell nobody that they are done.
        std::thread::yield_now();
    }
}

/// A reader takes all, another one none, in participants of their own.
fn of_two_the_slow_one_is_named(domain_id: u32, local: bool) {
    let [a, b, c] = ["writes", "keeps up", "hangs"].map(|name| participant(domain_id, name, local));
    let [w, quick, slow] = [&a, &b, &c].map(|of| of.topic::<Number>("Slow").unwrap());
    let writer = w.writer(qos(20)).unwrap();
    let (quick, slow) = (quick.reader(qos(20)).unwrap(), slow.reader(qos(5)).unwrap());
    writer.wait_matched_count(2, SOON).unwrap();
    [&quick, &slow].into_iter().for_each(|reader| reader.wait_matched(SOON).unwrap());
    if local {
        wait_joined(&a);
    }
    assert_eq!(writer.slow_readers(), [], "nothing is written");
    let (news, heard) = mpsc::channel();
    writer.set_listener(move |mask| {
        let _ = news.send(mask);
    });

    let (written, error) = fill(&writer, &[&quick]);
    let Error::Timeout(text) = &error else { panic!("{error}") };
    let named = format!("reader {} of \"hangs\" (", slow.guid());
    assert!(text.starts_with(&named), "{text}");
    assert!(text.contains(" samples behind since 0."), "{text}");
    assert!(text.contains("udp/") != local && !text.contains("keeps up"), "{text}");

    let found = writer.slow_readers();
    assert_eq!(found.iter().map(|slow| slow.guid).collect::<Vec<_>>(), [slow.guid()]);
    assert!((10..=20).contains(&found[0].samples_behind), "{found:?} of {written}");
    assert!((BLOCKING..SOON).contains(&found[0].behind_for.unwrap()), "{found:?}");
    assert_eq!((found[0].locator.is_none(), found[0].last_answer.is_none()), (local, local), "{found:?}");

    let status = writer.slow_reader_status();
    assert_eq!((status.total_count, status.total_count_change), (1, 1));
    assert_eq!(status.last_subscription_handle, slow.guid().into());
    let told = std::iter::from_fn(|| heard.recv_timeout(SOON.into()).ok());
    assert!(
        told.into_iter().any(|mask: StatusMask| mask.contains(StatusMask::SLOW_READER)),
        "nobody is told"
    );

    let Err(Error::Timeout(text)) = writer.wait_for_acknowledgments(Duration::from_millis(50)) else {
        panic!("not all is acknowledged");
    };
    assert!(text.starts_with(&named), "{text}");
    assert_eq!(writer.slow_reader_status().total_count, 1, "no write has given up since");
    while writer.wait_for_acknowledgments(Duration::from_millis(50)).is_err() {
        [&quick, &slow].into_iter().for_each(|reader| drop(reader.take().unwrap()));
    }
    assert_eq!(writer.slow_readers(), []);
}

#[test]
fn of_two_readers_over_the_network_the_slow_one_is_named() {
    of_two_the_slow_one_is_named(141, false);
}

#[test]
fn of_two_readers_in_the_lane_the_slow_one_is_named() {
    of_two_the_slow_one_is_named(142, true);
}

#[test]
fn a_reader_of_the_same_participant_is_named_too() {
    let one = participant(143, "alone", true);
    let topic = one.topic::<Number>("Slow").unwrap();
    let (writer, reader) = (topic.writer(qos(5)).unwrap(), topic.reader(qos(5)).unwrap());
    writer.wait_matched(SOON).unwrap();
    let (written, error) = fill(&writer, &[]);
    let named = format!("reader {} of \"alone\" (", reader.guid());
    assert!(matches!(&error, Error::Timeout(text) if text.starts_with(&named)), "{error}");
    let Err(Error::Timeout(text)) = writer.try_write(&Number { value: written }) else {
        panic!("there is no room");
    };
    assert!(text.contains("slow_readers()"), "{text}");
}

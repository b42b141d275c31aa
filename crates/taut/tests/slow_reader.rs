//! Who holds a writer back is named, whatever way its samples go.

use std::sync::{Arc, mpsc};
use std::time::Instant;

use taut::qos::ResourceLimits;
use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Duration, Error, Qos, SamplePath,
    StatusMask,
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

/// Writes so many samples, for all of which there is room. A reader says in its own time that it has some, which may be later
/// than a write waits.
fn write_all(writer: &DataWriter<Number>, count: u32) {
    let start = Instant::now();
    for value in 0..count {
        while writer.write(&Number { value }).is_err() {
            assert!(start.elapsed() < SOON.into(), "no room for {value}");
        }
    }
}

/// Waits until all readers are in the lane: what was written before comes the usual way.
fn wait_joined(participant: &DomainParticipant) {
    wait_path(participant, |paths| paths.iter().all(|path| *path == Some(SamplePath::Process)));
}

/// Waits until the samples of the matched pairs take these paths.
fn wait_path(participant: &DomainParticipant, are_taken: impl Fn(&[Option<SamplePath>]) -> bool) {
    let start = Instant::now();
    let paths = || participant.matches().iter().map(|found| found.path).collect::<Vec<_>>();
    while !are_taken(&paths()) {
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

    let begun = Instant::now();
    let (written, error) = fill(&writer, &[&quick]);
    let Error::Timeout(text) = &error else { panic!("{error}") };
    let named = format!("reader {} of \"hangs\" (", slow.guid());
    assert!(text.starts_with(&named), "{text}");
    let (_, since) = text.split_once(" samples behind since ").expect(text);
    let behind_s: f64 = since.split_once(" s").expect(text).0.parse().unwrap();
    // To the millisecond, from the first write that waited at the latest.
    assert!(behind_s >= 0.099 && behind_s <= begun.elapsed().as_secs_f64() + 0.001, "{text}");
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

/// A reader that takes only when the writer may not go on is the slower one, however the machine runs the two.
#[test]
fn a_writer_that_its_reader_holds_back_loses_nothing() {
    const SAMPLES: u32 = 20_000;
    /// What the writer holds, and as much again the reader.
    const ROOM: u32 = 500;
    let [a, b] = ["writes", "is slow"].map(|name| participant(147, name, false));
    let [w, r] = [&a, &b].map(|of| of.topic::<Number>("Slow").unwrap());
    let (writer, reader) =
        (w.writer(qos(ROOM).max_blocking_time(SOON)).unwrap(), r.reader(qos(ROOM)).unwrap());
    writer.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    // It waits for the reader to hear of it: what it is about to write is not taken then, and will come.
    let (held_back, holds) = mpsc::sync_channel(0);
    let writes = std::thread::spawn(move || {
        for value in 0..SAMPLES {
            if writer.try_write(&Number { value }).is_err() {
                held_back.send(()).unwrap();
                writer.write(&Number { value }).unwrap();
            }
        }
        writer
    });
    let mut taken = Vec::new();
    let mut take = || {
        reader.wait(SOON).unwrap();
        taken.extend(reader.take().unwrap().into_iter().map(|sample| sample.data.unwrap().value));
        taken.len()
    };
    let times = holds.iter().map(|()| take()).count();
    let writer = writes.join().unwrap();
    while take() < SAMPLES as usize {}
    assert_eq!(taken, (0..SAMPLES).collect::<Vec<_>>(), "in order, each once");
    writer.wait_for_acknowledgments(SOON).unwrap();
    // Each time no more is taken than the reader holds, and at the end no more than both hold is left.
    assert!(times as u32 >= (SAMPLES - 2 * ROOM) / ROOM, "held back {times} times only");
    assert_eq!(reader.sample_lost_status().total_count, 0);
    assert_eq!(writer.slow_reader_status().total_count, 0, "no write has given up");
}

/// What a reader of those below holds, and its writer.
const FULL: u32 = 5 + 20;

/// A writer, a reader of its lane, and one over the network.
fn near_and_far(domain_id: u32, of_writer: Qos) -> (DataWriter<Number>, [DataReader<Number>; 2]) {
    let [a, b, c] = [("writes", true), ("lane", true), ("network", false)]
        .map(|(name, local)| participant(domain_id, name, local));
    let [w, near, far] = [&a, &b, &c].map(|of| of.topic::<Number>("Slow").unwrap());
    let writer = w.writer(of_writer).unwrap();
    let readers = [near.reader(qos(5)).unwrap(), far.reader(qos(5)).unwrap()];
    writer.wait_matched_count(2, SOON).unwrap();
    readers.iter().for_each(|reader| reader.wait_matched(SOON).unwrap());
    wait_path(&a, |paths| paths.contains(&Some(SamplePath::Process)));
    (writer, readers)
}

/// A sample that one reader finds in the lane and another one gets over the network is one sample to RESOURCE_LIMITS.
#[test]
fn a_sample_in_the_lane_and_on_the_network_counts_once() {
    let (writer, readers) = near_and_far(144, qos(20));
    write_all(&writer, FULL);
    assert!(writer.write(&Number { value: FULL }).is_err(), "there is room for more");
    let mut taken = [Vec::new(), Vec::new()];
    for (taken, reader) in taken.iter_mut().zip(&readers) {
        while taken.len() < FULL as usize {
            reader.wait(SOON).unwrap();
            taken.extend(reader.take().unwrap().into_iter().map(|sample| sample.data.unwrap().value));
        }
        assert_eq!(*taken, (0..FULL).collect::<Vec<_>>(), "in order, each once");
    }
}

/// It waits for the lane first and for the network then: `max_blocking_time` is for both together.
#[test]
fn a_write_that_waits_twice_waits_no_longer() {
    let (half, longest) = (std::time::Duration::from_millis(500), std::time::Duration::from_secs(1));
    let wait_twice = || {
        let (writer, [near, _far]) = near_and_far(146, qos(20).max_blocking_time(longest));
        write_all(&writer, FULL);
        let start = Instant::now();
        let write =
            std::thread::spawn(move || writer.write(&Number { value: FULL }).map_err(|_| start.elapsed()));
        while start.elapsed() < half {
            std::thread::yield_now();
        }
        assert_eq!(near.take().unwrap().len(), 5);
        let took = write.join().unwrap().unwrap_err();
        assert!(took >= longest, "it gave up after {took:?}");
        took
    };
    // One that waits for each of them as long as for both does so each time, one that is kept from its processor does not.
    let mut took = Vec::new();
    let is_in_time = (0..3).any(|_| {
        took.push(wait_twice());
        took.last() < Some(&(longest + half * 4 / 5))
    });
    assert!(is_in_time, "it gave up after {took:?}");
}

/// More than a lane holds is allowed, so that the protocol has the last word: a write that waits there hears of what is
/// taken from the lane, too. Who drives is the write itself, and what it tells a listener makes the room.
#[test]
fn a_write_that_waits_for_the_protocol_hears_of_room_in_the_lane() {
    let config = Config { interfaces: vec!["lo".into()], driver: Driver::Inline, ..Config::default() };
    let one = DomainParticipant::with_config(&Config { domain_id: 145, ..config }).unwrap();
    let topic = one.topic::<Number>("Slow").unwrap();
    let (writer, reader) = (topic.writer(qos(700).max_blocking_time(SOON)).unwrap(), topic.reader(qos(10)));
    let reader = Arc::new(reader.unwrap());
    let signal = one.topic::<Number>("Signal").unwrap();
    let (go, heard) = (signal.writer(qos(1)).unwrap(), signal.reader(qos(1)).unwrap());
    let held = (0..10_000).take_while(|value| writer.try_write(&Number { value: *value }).is_ok()).count();
    assert_eq!(held, 710);
    let taken = Arc::clone(&reader);
    heard.on_data_available(move |_| assert_eq!(taken.take().unwrap().len(), 10));
    go.write(&Number { value: 0 }).unwrap();
    writer.write(&Number { value: 710 }).unwrap();
    let mut left = Vec::new();
    while left.len() < 701 {
        reader.wait(SOON).unwrap();
        left.extend(reader.take().unwrap().into_iter().map(|sample| sample.data.unwrap().value));
    }
    assert_eq!(left, (10..711).collect::<Vec<_>>(), "in order, each once");
}

#[test]
fn a_reader_of_the_same_participant_is_named_too() {
    let one = participant(143, "alone", true);
    let topic = one.topic::<Number>("Slow").unwrap();
    let (writer, reader) = (topic.writer(qos(5)).unwrap(), topic.reader(qos(5)).unwrap());
    writer.wait_matched(SOON).unwrap();
    write_all(&writer, 10);
    let error = writer.write(&Number { value: 10 }).unwrap_err();
    let named = format!("reader {} of \"alone\" (", reader.guid());
    assert!(matches!(&error, Error::Timeout(text) if text.starts_with(&named)), "{error}");
    let Err(Error::Timeout(text)) = writer.try_write(&Number { value: 10 }) else {
        panic!("there is no room");
    };
    assert!(text.contains("slow_readers()"), "{text}");
}

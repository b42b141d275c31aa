//! RESOURCE_LIMITS of a durable KEEP_LAST writer: its history holds no more than max_samples. DCPS 1.4 §2.2.2.4.2.11,
//! §2.2.3.19.

use std::collections::BTreeMap;
use std::time::Instant;

use taut::qos::ResourceLimits;
use taut::{Config, DataWriter, DdsType, DomainParticipant, Duration, Error, Qos, StatusMask};

const SOON: Duration = Duration::from_secs(20);

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Reading {
    #[dds(key)]
    id: u32,
    value: u32,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Number {
    value: u32,
}

fn limited(depth: u32, samples: u32) -> Qos {
    let limits = ResourceLimits { max_samples: Some(samples), ..ResourceLimits::default() };
    Qos::default().reliable().transient_local().keep_last(depth).resource_limits(limits)
}

fn is_refused(done: taut::Result<()>) -> bool {
    match done {
        Ok(()) => false,
        Err(Error::OutOfResources(text)) if text.contains("max_samples") => true,
        Err(error) => panic!("{error}"),
    }
}

/// What a reader gets of `writer`'s history that comes now, by instance; `last` is what was written last.
fn history<T: DdsType>(
    config: &Config,
    last: (u32, u32),
    of: impl Fn(T) -> (u32, u32),
) -> Vec<(u32, Vec<u32>)> {
    let participant = DomainParticipant::with_config(config).unwrap();
    let qos = Qos::default().reliable().transient_local().keep_all();
    let reader = participant.topic::<T>("Limited").unwrap().reader(qos).unwrap();
    let mut values: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    loop {
        reader.wait(SOON).unwrap_or_else(|error| panic!("{error}: {last:?} does not come: {values:?}"));
        while let Some(sample) = reader.take_next().unwrap() {
            let Some((id, value)) = sample.data.map(&of) else { continue };
            values.entry(id).or_default().push(value);
            if (id, value) == last {
                return values.into_iter().collect();
            }
        }
    }
}

fn write(writer: &DataWriter<Reading>, id: u32, values: std::ops::RangeInclusive<u32>) {
    values.for_each(|value| writer.write(&Reading { id, value }).unwrap());
}

fn of_reading(reading: Reading) -> (u32, u32) {
    (reading.id, reading.value)
}

#[test]
fn a_durable_writer_keeps_no_more_than_max_samples() {
    for (domain_id, local) in [(115, true), (116, false)] {
        let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
        let participant = DomainParticipant::with_config(&config).unwrap();
        let writer = participant.topic::<Reading>("Limited").unwrap().writer(limited(3, 4)).unwrap();
        let held = |last| history(&config, last, of_reading);
        write(&writer, 1, 1..=5);
        assert_eq!(held((1, 5)), [(1, vec![3, 4, 5])]);
        write(&writer, 2, 1..=1);
        assert_eq!(held((2, 1)), [(1, vec![3, 4, 5]), (2, vec![1])]);
        // Older samples of other instances make room, as long as one remains for each.
        write(&writer, 3, 1..=1);
        write(&writer, 4, 1..=1);
        assert_eq!(held((4, 1)), [(1, vec![5]), (2, vec![1]), (3, vec![1]), (4, vec![1])]);
        let new = Reading { id: 5, value: 1 };
        assert!(is_refused(writer.write(&new)) && is_refused(writer.try_write(&new)), "local {local}");
        assert!(is_refused(writer.dispose(&new)));
        // Its own last sample makes room for the next one of an instance, and for its end.
        write(&writer, 2, 2..=3);
        writer.dispose(&Reading { id: 3, value: 0 }).unwrap();
        assert!(is_refused(writer.write(&new)), "the writer may write it again");
        write(&writer, 3, 2..=2);
        writer.unregister_instance(&Reading { id: 4, value: 0 }).unwrap();
        // What has ended is given up.
        write(&writer, 5, 1..=1);
        assert!(is_refused(writer.write(&Reading { id: 4, value: 2 })), "local {local}");
        write(&writer, 5, 2..=2);
        assert_eq!(held((5, 2)), [(1, vec![5]), (2, vec![3]), (3, vec![2]), (5, vec![2])]);
    }
}

#[test]
fn without_a_key_max_samples_is_the_depth_that_is_kept() {
    let config = Config { domain_id: 117, interfaces: vec!["lo".into()], ..Config::default() };
    let participant = DomainParticipant::with_config(&config).unwrap();
    let writer = participant.topic::<Number>("Limited").unwrap().writer(limited(9, 4)).unwrap();
    (1..=20).for_each(|value| writer.write(&Number { value }).unwrap());
    let held = history(&config, (0, 20), |number: Number| (0, number.value));
    assert_eq!(held, [(0, vec![17, 18, 19, 20])]);
}

#[test]
fn what_has_found_no_room_when_its_writer_goes_is_lost_and_counted() {
    /// More than the lane holds: the rest goes through the protocol.
    const WRITTEN: u32 = 700;
    let config = Config { domain_id: 50, interfaces: vec!["lo".into()], ..Config::default() };
    let own = DomainParticipant::with_config(&config).unwrap();
    let other = DomainParticipant::with_config(&config).unwrap();
    for (place, written) in [(&own, WRITTEN), (&other, 100)] {
        let limited = |samples| {
            let limits = ResourceLimits { max_samples: Some(samples), ..ResourceLimits::default() };
            Qos::default().reliable().keep_all().resource_limits(limits)
        };
        let reader = place.topic::<Number>("Full").unwrap().reader(limited(3)).unwrap();
        let writer = own.topic::<Number>("Full").unwrap().writer(limited(WRITTEN)).unwrap();
        writer.wait_matched(SOON).unwrap();
        reader.wait_matched(SOON).unwrap();
        writer.write(&Number { value: 0 }).unwrap();
        reader.wait(SOON).unwrap();
        assert!(reader.take_next().unwrap().is_some());
        let is_joined = |found: &taut::LocalMatch| found.path == Some(taut::SamplePath::Process);
        let are_joined = || {
            let found = own.matches();
            !found.is_empty() && found.iter().all(is_joined)
        };
        let start = Instant::now();
        while !are_joined() {
            assert!(start.elapsed() < SOON.into(), "{:?}", own.matches());
            std::thread::yield_now();
        }
        (1..=written).for_each(|value| writer.write(&Number { value }).unwrap());
        let (send, told) = std::sync::mpsc::channel();
        reader.set_listener(move |kinds| _ = send.send(kinds));
        drop(writer);
        while !told.recv_timeout(SOON.into()).unwrap().intersects(StatusMask::SAMPLE_LOST) {}
        let taken = reader.take().unwrap().iter().filter(|sample| sample.data.is_some()).count();
        assert_eq!((taken, i64::from(reader.sample_lost_status().total_count)), (3, i64::from(written) - 3));
    }
}

/// Neither nobody nor a reader that lags can make room: none is waited for.
#[test]
fn a_durable_writer_that_keeps_all_is_told_at_once_that_it_is_full() {
    let of_all = ResourceLimits { max_samples: Some(3), ..ResourceLimits::default() };
    let of_each = ResourceLimits { max_samples_per_instance: Some(3), ..ResourceLimits::default() };
    for (domain_id, local, limits) in [(141, true, of_all), (142, false, of_all), (141, true, of_each)] {
        let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
        let participant = DomainParticipant::with_config(&config).unwrap();
        let topic = participant.topic::<Reading>("Limited").unwrap();
        let qos = Qos::default().reliable().transient_local().keep_all().max_blocking_time(SOON);
        for has_reader in [false, true] {
            let writer = topic.writer(qos.clone().resource_limits(limits)).unwrap();
            let reader = has_reader.then(|| topic.reader(qos.clone()).unwrap());
            write(&writer, 1, 1..=3);
            let next = Reading { id: 1, value: 4 };
            let is_told = || is_refused(writer.write(&next)) && is_refused(writer.try_write(&next));
            assert!(is_told(), "local {local}, {limits:?}");
            if let Some(reader) = reader {
                assert_eq!(reader.take().unwrap().len(), 3);
                assert!(is_told(), "local {local}, {limits:?}");
            }
            assert_eq!(writer.write(&Reading { id: 2, value: 1 }).is_ok(), limits.max_samples.is_none());
        }
    }
}

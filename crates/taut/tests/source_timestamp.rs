//! The order of the source timestamps that a caller gives. DCPS 1.4 §2.2.2.4.2.12, §2.2.3.17.

use taut::cdr::bytemuck::{Pod, Zeroable};
use taut::qos::DestinationOrderKind;
use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Duration, Error, InstanceState, Qos,
    Timestamp,
};

const SOON: Duration = Duration::from_secs(20);

#[derive(DdsType, Clone, Copy, Pod, Zeroable, Debug, PartialEq)]
#[bytemuck(crate = "taut::cdr::bytemuck")]
#[dds(final, plain)]
#[repr(C)]
struct Reading {
    #[dds(key)]
    id: u32,
    value: u32,
}

fn pair(domain_id: u32, order: DestinationOrderKind) -> (DataWriter<Reading>, DataReader<Reading>) {
    let config = Config { domain_id, interfaces: vec!["lo".into()], ..Config::default() };
    let topic = DomainParticipant::with_config(&config).unwrap().topic("Ordered").unwrap();
    let qos = Qos::default().reliable().keep_all().destination_order(order);
    let (writer, reader) = (topic.writer(qos.clone()).unwrap(), topic.reader(qos).unwrap());
    writer.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    (writer, reader)
}

/// So many seconds after a time that was long ago.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_ns(1_000_000_000_000_000_000 + seconds * 1_000_000_000)
}

/// That many seconds from now.
fn ahead(seconds: i64) -> Timestamp {
    Timestamp::from_unix_ns(taut::wall_clock_now().to_unix_ns() + seconds * 1_000_000_000)
}

fn falls(done: taut::Result<()>) -> bool {
    match done {
        Ok(()) => false,
        Err(Error::BadParameter(text)) if text.contains("BY_SOURCE_TIMESTAMP") => true,
        Err(error) => panic!("{error}"),
    }
}

/// The values that are there, of those without data 0.
fn taken(reader: &DataReader<Reading>) -> Vec<u32> {
    reader.wait(SOON).unwrap();
    reader.take().unwrap().into_iter().map(|sample| sample.data.map_or(0, |data| data.value)).collect()
}

#[test]
fn by_source_timestamp_none_may_fall() {
    let (writer, reader) = pair(118, DestinationOrderKind::BySourceTimestamp);
    let put = |value, time| writer.write_with_timestamp(&Reading { id: 1, value }, time);
    put(1, at(5)).unwrap();
    put(2, at(5)).expect("the same is none that falls");
    assert!(falls(put(9, at(4))));
    assert!(falls(writer.write_with_timestamp(&Reading { id: 2, value: 9 }, at(4))), "of whatever instance");
    put(3, at(6)).expect("one that was refused does not count");
    let loan = |value, time| {
        let mut loan = writer.loan().unwrap();
        *loan = Reading { id: 1, value };
        loan.write_with_timestamp(time)
    };
    assert!(falls(loan(9, at(5))));
    loan(4, at(6)).unwrap();
    writer.write(&Reading { id: 1, value: 5 }).unwrap();
    assert!(falls(put(9, ahead(-1))), "the clock's own count, too");
    let invalid = put(9, Timestamp::INVALID);
    assert!(invalid.as_ref().is_err_and(|error| error.to_string().contains("INVALID")), "{invalid:?}");
    assert!(falls(invalid));
    assert_eq!(taken(&reader), [1, 2, 3, 4, 5]);
}

#[test]
fn the_clock_does_not_fall_behind_a_time_that_was_given() {
    let (writer, reader) = pair(119, DestinationOrderKind::BySourceTimestamp);
    let (one, late) = (Reading { id: 1, value: 2 }, ahead(3_600));
    writer.write_with_timestamp(&Reading { id: 1, value: 1 }, late).unwrap();
    reader.wait(SOON).unwrap();
    assert_eq!(reader.take_next().unwrap().unwrap().info.source_timestamp, Some(late));
    // A reader that has taken the first one would drop what is older.
    writer.write(&one).unwrap();
    reader.wait(SOON).unwrap();
    let next = reader.take_next().unwrap().unwrap();
    assert_eq!((next.data, next.info.source_timestamp), (Some(one), Some(late)));
    // And so it would the end of an instance.
    drop(writer);
    reader.wait(SOON).unwrap();
    let last = reader.take_next().unwrap().unwrap();
    assert_eq!(last.info.instance_state, InstanceState::NotAliveDisposed);
}

#[test]
fn by_reception_timestamp_any_will_do() {
    let (writer, reader) = pair(120, DestinationOrderKind::ByReceptionTimestamp);
    for (value, time) in [(1, 5), (2, 4), (3, 6)] {
        writer.write_with_timestamp(&Reading { id: 1, value }, at(time)).unwrap();
    }
    assert_eq!(taken(&reader), [1, 2, 3]);
}

#[test]
fn instances_end_at_a_time_that_is_given() {
    for order in [DestinationOrderKind::ByReceptionTimestamp, DestinationOrderKind::BySourceTimestamp] {
        let (writer, reader) = pair(121, order);
        let key = |id| Reading { id, value: 7 };
        (1..=3).for_each(|id| writer.write_with_timestamp(&key(id), at(1)).unwrap());
        writer.dispose_with_timestamp(&key(1), at(2)).unwrap();
        writer.unregister_instance_with_timestamp(&key(2), at(3)).unwrap();
        let by_source = order == DestinationOrderKind::BySourceTimestamp;
        let refused = [
            writer.dispose_with_timestamp(&key(3), at(2)),
            writer.unregister_instance_with_timestamp(&key(3), at(2)),
        ];
        if by_source {
            assert!(refused.into_iter().all(falls));
        } else {
            assert_eq!(refused, [Ok(()), Ok(())]);
        }
        let unknown = writer.unregister_instance_with_timestamp(&key(2), at(4));
        assert!(matches!(unknown, Err(Error::PreconditionNotMet(_))), "it is registered no longer");
        reader.wait(SOON).unwrap();
        let ends = reader.take().unwrap().into_iter().filter(|sample| sample.data.is_none());
        let ends: Vec<_> = ends.map(|end| (end.info.source_timestamp, end.info.instance_state)).collect();
        let disposed = InstanceState::NotAliveDisposed;
        let all = [(Some(at(2)), disposed), (Some(at(3)), disposed), (Some(at(2)), disposed)];
        assert_eq!(ends, all[..if by_source { 2 } else { 3 }]);
    }
}

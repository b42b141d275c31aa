//! Content-filtered topics: through the lanes of a process and over the network.

use taut::{
    Config, ContentFilteredTopic, DataReader, DataWriter, DdsType, DomainParticipant, Duration, Error,
    InstanceState, Qos, Topic,
};

const LIMIT: Duration = Duration::from_secs(20);

#[derive(DdsType, Clone, PartialEq, Debug)]
#[dds(final)]
struct Reading {
    #[dds(key)]
    sensor: u32,
    celsius: i32,
}

#[derive(DdsType)]
#[dds(final)]
struct Plain {
    celsius: i32,
}

/// One participant that writes and one that reads: through a lane, or over the network.
struct Pair {
    out: DomainParticipant,
    inward: DomainParticipant,
}

fn pair(local: bool) -> Pair {
    let config = Config { domain_id: 82, interfaces: vec!["lo".into()], local, ..Config::default() };
    let open = || DomainParticipant::with_config(&config).unwrap();
    Pair { out: open(), inward: open() }
}

impl Pair {
    fn topics<T: DdsType>(&self, name: &str) -> (Topic<T>, Topic<T>) {
        (self.out.topic(name).unwrap(), self.inward.topic(name).unwrap())
    }
}

fn matched<T: DdsType>(
    topic: &Topic<T>,
    filtered: &ContentFilteredTopic<'_, T>,
    [writes, reads]: [&Qos; 2],
) -> (DataWriter<T>, DataReader<T>) {
    let (writer, reader) = (topic.writer(writes.clone()).unwrap(), filtered.reader(reads.clone()).unwrap());
    writer.wait_matched(LIMIT).unwrap();
    reader.wait_matched(LIMIT).unwrap();
    (writer, reader)
}

/// What a reader takes until it has taken this value of `celsius`.
fn until(reader: &DataReader<Reading>, last: i32) -> Vec<Reading> {
    let mut taken = Vec::new();
    while taken.last().is_none_or(|one: &Reading| one.celsius != last) {
        match reader.take_next().unwrap() {
            Some(sample) => taken.extend(sample.data),
            None => reader.wait(LIMIT).unwrap(),
        }
    }
    taken
}

fn reading(sensor: u32, celsius: i32) -> Reading {
    Reading { sensor, celsius }
}

#[test]
fn only_what_passes_comes_and_all_of_it() {
    for local in [true, false] {
        let pair = pair(local);
        // A name for each: the endpoints of the last one may not be forgotten yet.
        for (name, qos) in [
            ("All", Qos::default().reliable().keep_all()),
            ("Many", Qos::default().reliable().keep_last(1_000)),
        ] {
            let (out, inward) = pair.topics::<Reading>(name);
            let filtered = inward.filtered("Hot", "celsius > %0 AND sensor < 2", &["50"]).unwrap();
            let (writer, reader) = matched(&out, &filtered, [&qos; 2]);
            for celsius in 0_i32..100 {
                writer.write(&reading(celsius.cast_unsigned() % 3, celsius)).unwrap();
            }
            let mut expected: Vec<_> =
                (51..100).filter(|n| n % 3 < 2).map(|n: i32| reading(n.cast_unsigned() % 3, n)).collect();
            let mut taken = until(&reader, 99);
            // The cache hands out instance by instance.
            taken.sort_by_key(|one| one.celsius);
            expected.sort_by_key(|one| one.celsius);
            assert_eq!(taken, expected, "local: {local}");
            assert!(reader.take_next().unwrap().is_none());
        }
    }
}

#[test]
fn what_does_not_pass_takes_no_place_and_wakes_nobody() {
    for local in [true, false] {
        let pair = pair(local);
        let (out, inward) = pair.topics::<Plain>("History");
        let filtered = inward.filtered("Hot", "celsius > 50", &[]).unwrap();
        let reliable = Qos::default().reliable();
        // What the writer keeps no longer may be gone before it comes to be asked whether it passes.
        let qos = [&reliable.clone().keep_last(4), &reliable.keep_last(1)];
        let (writer, reader) = matched(&out, &filtered, qos);
        for celsius in [90, 10, 20] {
            writer.write(&Plain { celsius }).unwrap();
        }
        writer.wait_for_acknowledgments(LIMIT).unwrap();
        reader.wait(LIMIT).unwrap();
        assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap().celsius, 90, "local: {local}");
        writer.write(&Plain { celsius: 30 }).unwrap();
        // In a lane it lies before the reader at once, over the network when that is acknowledged.
        let waited = reader.wait(Duration::from_millis(50));
        assert!(matches!(waited, Err(Error::Timeout(_))), "local: {local}: {waited:?}");
        writer.wait_for_acknowledgments(LIMIT).unwrap();
        let waited = reader.wait(Duration::from_millis(1));
        assert!(matches!(waited, Err(Error::Timeout(_))), "local: {local}: {waited:?}");
        assert_eq!(reader.sample_lost_status().total_count, 0, "local: {local}");
    }
}

#[test]
fn a_wait_in_vain_says_what_the_filter_keeps_out() {
    let long_enough_for_a_reason = Duration::from_millis(100);
    for local in [true, false] {
        let pair = pair(local);
        let (out, inward) = pair.topics::<Plain>("Vain");
        let filtered = inward.filtered("Hot", "celsius > 50", &[]).unwrap();
        let (writer, reader) = matched(&out, &filtered, [&Qos::default().reliable().keep_all(); 2]);
        let waits = || reader.wait(long_enough_for_a_reason).unwrap_err().to_string();
        let says = "no sample has come that was not read or taken; ";
        assert!(waits().contains(says) && !waits().contains("filter"), "{}", waits());
        for celsius in [10, 20, 90] {
            writer.write(&Plain { celsius }).unwrap();
        }
        writer.wait_for_acknowledgments(LIMIT).unwrap();
        assert_eq!(reader.take().unwrap().len(), 1);
        let waited = waits();
        assert!(waited.ends_with(&format!("{says}the content filter has kept out 2 that came")), "{waited}");
    }
}

#[test]
fn the_end_of_an_instance_is_told() {
    for local in [true, false] {
        let pair = pair(local);
        let (out, inward) = pair.topics::<Reading>("End");
        let filtered = inward.filtered("Hot", "celsius > 50", &[]).unwrap();
        let (writer, reader) = matched(&out, &filtered, [&Qos::default().reliable().keep_all(); 2]);
        writer.write(&reading(1, 90)).unwrap();
        assert_eq!(until(&reader, 90), [reading(1, 90)]);
        writer.dispose(&reading(1, 0)).unwrap();
        reader.wait(LIMIT).unwrap();
        let end = reader.take_next().unwrap().unwrap();
        assert_eq!(end.info.instance_state, InstanceState::NotAliveDisposed, "local: {local}");
        assert!(end.data.is_none() && end.key.unwrap().sensor == 1);
    }
}

#[test]
fn other_parameters_count_from_then_on() {
    let pair = pair(true);
    let (out, inward) = pair.topics::<Reading>("Change");
    let filtered = inward.filtered("Hot", "celsius > %0", &["50"]).unwrap();
    let (writer, reader) = matched(&out, &filtered, [&Qos::default().reliable().keep_all(); 2]);
    writer.write(&reading(1, 20)).unwrap();
    writer.write(&reading(1, 60)).unwrap();
    assert_eq!(until(&reader, 60), [reading(1, 60)]);
    assert!(matches!(filtered.set_expression_parameters(&["warm"]), Err(Error::BadParameter(_))));
    assert_eq!(filtered.expression_parameters(), ["50"]);
    filtered.set_expression_parameters(&["10"]).unwrap();
    assert_eq!((filtered.filter_expression(), filtered.name()), ("celsius > %0", "Hot"));
    assert_eq!(
        (filtered.expression_parameters(), filtered.related_topic().name()),
        (vec!["10".to_owned()], "Change")
    );
    writer.write(&reading(1, 5)).unwrap();
    writer.write(&reading(1, 30)).unwrap();
    assert_eq!(until(&reader, 30), [reading(1, 30)]);
}

#[test]
fn an_expression_of_another_type_is_refused() {
    let pair = pair(true);
    let (_, topic) = pair.topics::<Reading>("Wrong");
    for (expression, reason) in
        [("kelvin > 1", "no member kelvin"), ("celsius > 'warm'", "celsius is a number")]
    {
        match topic.filtered("Wrong", expression, &[]).err() {
            Some(Error::BadParameter(text)) => assert!(text.contains(reason), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_weaker_writer_is_not_heard_when_what_the_owner_writes_does_not_pass() {
    for local in [true, false] {
        let pair = pair(local);
        let (out, inward) = pair.topics::<Reading>("Owned");
        let warm = inward.filtered("Warm", "celsius > 0", &[]).unwrap();
        let qos = || Qos::default().reliable().keep_all().exclusive();
        let weak = out.writer(qos().ownership_strength(1)).unwrap();
        let (strong, reader) = matched(&out, &warm, [&qos().ownership_strength(2), &qos()]);
        weak.wait_matched(LIMIT).unwrap();
        strong.write(&reading(1, -1)).unwrap();
        strong.wait_for_acknowledgments(LIMIT).unwrap();
        weak.write(&reading(1, 5)).unwrap();
        weak.wait_for_acknowledgments(LIMIT).unwrap();
        strong.write(&reading(1, 7)).unwrap();
        assert_eq!(until(&reader, 7), [reading(1, 7)], "local {local}");
    }
}

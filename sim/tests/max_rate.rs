//! Pacing in time: what goes to each destination within any span, who waits for it, and who does not.

use taut_base::{Duration, EntityId, Locator, Time};
use taut_qos::{Qos, ResourceLimits};
use taut_rtps::limits::WINDOW_CHANGES;
use taut_rtps::{Full, MaxRate};
use taut_sim::{Captured, Faults, NodeOptions, Pair, user_locator};
use taut_wire::{Header, Submessage, Submessages};

const MAX: MaxRate = MaxRate { bytes_per_second: 1_000_000, burst: 20_000 };
/// Headers of Ethernet, IPv4 and UDP.
const HEADERS: u64 = 42;

fn options(path_size: usize) -> NodeOptions {
    NodeOptions { path_size, max_rate: Some(MAX), ..NodeOptions::default() }
}

/// A paced writer's side, and readers; endpoints follow.
fn pair(seed: u64, path_size: usize) -> Pair {
    let reader = NodeOptions { path_size, ..NodeOptions::default() };
    let mut pair = Pair::with_options(seed, options(path_size), reader);
    pair.network.capturing = usize::MAX;
    pair
}

/// Adds a writer with a reader of its own on another topic, and lets them match.
fn topic(pair: &mut Pair, node: usize, qos: &Qos, priority: i32) -> usize {
    pair.topic.name = format!("Topic{}", pair.writers.len());
    pair.reader_on(node, qos.clone());
    let at = pair.writer(qos.clone().transport_priority(priority));
    let (writer, reader) = (pair.writers[at].clone(), pair.readers[at]);
    assert!(pair.run_until(Duration::from_secs(30), |pair| {
        pair.network.is_matched(&writer, &reader) == (true, true)
    }));
    pair.network.run_for(Duration::from_secs(1));
    pair.network.captured.clear();
    at
}

/// The writer of the first sample in a datagram, if there is one.
fn writer_of(datagram: &Captured) -> Option<EntityId> {
    let (_, rest) = Header::parse(&datagram.bytes).unwrap();
    Submessages::new(rest).find_map(|submessage| match submessage.unwrap() {
        Submessage::Data(data) => (!data.writer_id.is_builtin()).then_some(data.writer_id),
        Submessage::DataFrag(fragment) => Some(fragment.writer_id),
        _ => None,
    })
}

fn has_samples(datagram: &Captured) -> bool {
    writer_of(datagram).is_some()
}

/// What went to a destination with samples in it, and when.
fn sent(pair: &Pair, to: Locator) -> Vec<(Time, u64)> {
    let to = pair.network.captured.iter().filter(|datagram| datagram.to == to && has_samples(datagram));
    to.map(|datagram| (datagram.at, datagram.bytes.len() as u64 + HEADERS)).collect()
}

/// Within any span no more than the rate and the burst went there.
fn check_rate(sent: &[(Time, u64)]) {
    for (at, (from, _)) in sent.iter().enumerate() {
        let mut sum = 0;
        for (to, bytes) in &sent[at..] {
            sum += bytes;
            let span = to.since(*from).0 as u64;
            let most = MAX.burst + MAX.bytes_per_second * span / 1_000_000_000;
            assert!(sum <= most, "{sum} B within {span} ns, {most} at most");
        }
    }
}

fn take_until(pair: &mut Pair, reader: usize, count: usize, limit: Duration) -> Vec<u64> {
    let mut numbers = Vec::new();
    let end = pair.network.now() + limit;
    while numbers.len() < count && pair.network.now() < end {
        pair.network.run_for(Duration::from_millis(1));
        numbers.extend(pair.take_numbers_from(reader));
    }
    numbers
}

#[test]
fn a_large_best_effort_sample_leaves_no_faster_than_the_rate() {
    let mut pair = pair(1, 1_472);
    topic(&mut pair, Pair::READER, &Qos::default().best_effort().keep_last(1), 0);
    let begun = pair.network.now();
    pair.write(1, 300_000).unwrap();
    assert_eq!(take_until(&mut pair, 0, 1, Duration::from_secs(2)), [1]);
    let took = pair.network.now().since(begun);
    // 222 datagrams of 1,514 B on the wire, less the burst.
    assert!(took > Duration::from_millis(290) && took < Duration::from_millis(330), "{took:?}");
    check_rate(&sent(&pair, user_locator(Pair::READER)));
}

#[test]
fn whatever_is_written_and_lost_the_rate_holds_and_order_is_kept() {
    for seed in 0..6 {
        let path_size = [1_472, 9_000, usize::MAX][seed % 3];
        let mut pair = pair(seed as u64, path_size);
        let reliable = Qos::default().reliable().keep_all();
        for priority in [0, 0, 3, -2] {
            topic(&mut pair, Pair::READER, &reliable, priority);
        }
        pair.network.faults = Faults::loss(100);
        let mut written = [0; 4];
        for round in 0..30 {
            for (writer, count) in written.iter_mut().enumerate() {
                let filler = [40, 3_000, 200, 12_000][(writer + round) % 4];
                *count += u64::from(pair.write_by(writer, 1, filler).is_ok());
            }
            pair.network.run_for(Duration::from_millis(2));
        }
        pair.network.run_for(Duration::from_secs(3));
        pair.network.faults = Faults::default();
        pair.network.run_for(Duration::from_secs(3));
        for (reader, count) in written.into_iter().enumerate() {
            assert_eq!(pair.take_numbers_from(reader), Vec::from_iter(1..=count), "seed {seed}");
            assert!(pair.is_acknowledged(reader));
        }
        let sent = sent(&pair, user_locator(Pair::READER));
        if path_size < MAX.burst as usize / 2 {
            check_rate(&sent);
        }
        assert!(sent.len() > 30);
    }
}

/// Bulk has taken all there is; who has a priority uses what is kept for it, and is first in line when that is gone.
#[test]
fn a_critical_writer_does_not_wait_behind_bulk() {
    let mut pair = pair(3, 1_472);
    let best_effort = Qos::default().best_effort().keep_last(10);
    let bulk = topic(&mut pair, Pair::READER, &best_effort, 0);
    let critical = topic(&mut pair, Pair::READER, &best_effort, 5);
    pair.write_by(bulk, 1, 1_000_000).unwrap();
    for n in 1..=90 {
        pair.network.run_for(Duration::from_millis(9));
        let begun = pair.network.now();
        pair.write_by(critical, 1, 100).unwrap();
        pair.network.run_for(Duration::from_micros(100));
        assert_eq!(
            pair.take_numbers_from(critical),
            [n],
            "50 us of way, {:?}",
            pair.network.now().since(begun)
        );
    }
    // More than is kept: it waits for the tokens that itself needs, and bulk for it.
    let before = pair.network.captured.len();
    for _ in 0..20 {
        pair.write_by(critical, 1, 1_000).unwrap();
    }
    pair.network.run_for(Duration::from_millis(30));
    assert!(pair.take_numbers_from(critical).len() >= 9);
    let sizes: Vec<usize> =
        pair.network.captured[before..].iter().map(|datagram| datagram.bytes.len()).collect();
    let is_bulk = |bytes: &usize| *bytes > 1_300;
    let last = sizes.iter().rposition(|bytes| !is_bulk(bytes)).unwrap();
    assert_eq!(sizes[..last].iter().filter(|bytes| is_bulk(bytes)).count(), 0, "{sizes:?}");
    assert_eq!(take_until(&mut pair, bulk, 1, Duration::from_secs(1)), [1]);
    check_rate(&sent(&pair, user_locator(Pair::READER)));
}

/// All have something to send before any of it may leave, whoever came first.
#[test]
fn those_that_wait_leave_by_their_priority() {
    let mut pair = pair(8, 1_472);
    let qos = Qos::default().reliable().keep_all();
    let [low, high, middle] = [1, 10, 5].map(|priority| topic(&mut pair, Pair::READER, &qos, priority));
    // More than may leave at once, with what is kept for priorities.
    for _ in 0..20 {
        pair.write_by(high, 1, 1_200).unwrap();
    }
    pair.network.captured.clear();
    for writer in [low, high, middle].into_iter().cycle().take(9) {
        pair.write_by(writer, 1, 1_200).unwrap();
    }
    assert!(!pair.network.captured.iter().any(has_samples), "all wait");
    pair.network.run_for(Duration::from_secs(1));
    let left: Vec<EntityId> = pair.network.captured.iter().filter_map(writer_of).collect();
    let [of_low, of_high, of_middle] = [low, high, middle].map(|writer| pair.writers[writer].guid.entity);
    let behind: Vec<EntityId> = left.iter().copied().skip_while(|writer| *writer == of_high).collect();
    assert_eq!(behind, [[of_middle; 3], [of_low; 3]].concat(), "{of_high:?} first: {left:?}");
    assert_eq!(pair.take_numbers_from(high), Vec::from_iter(1..=23));
}

/// Two of bulk and many small ones always have something to send, five times as much as may leave.
#[test]
fn nobody_starves() {
    [true, false].into_iter().for_each(nobody_starves_with);
}

fn nobody_starves_with(key: bool) {
    let mut pair = pair(4, 1_472);
    pair.topic.keyed = key;
    let qos = Qos::default().best_effort().keep_last(1);
    let writers: Vec<usize> = (0..12).map(|_| topic(&mut pair, Pair::READER, &qos, 0)).collect();
    let mut got = vec![0_usize; writers.len()];
    for _ in 0..1_000 {
        for &writer in &writers {
            pair.write_by(writer, 1, if writer < 2 { 20_000 } else { 400 }).unwrap();
        }
        pair.network.run_for(Duration::from_millis(1));
        for &writer in &writers {
            let numbers = pair.take_numbers_from(writer);
            assert!(numbers.is_sorted());
            got[writer] += numbers.len();
        }
        let participant = pair.network.participant(Pair::WRITER).unwrap().core();
        for &writer in &writers {
            let held = participant.writer(pair.writers[writer].index).unwrap().changes_held();
            assert!(held <= 3, "{held} changes of KEEP_LAST 1");
        }
    }
    let bulk = &got[..2];
    assert!(bulk.iter().all(|count| *count >= 3) && bulk[0].abs_diff(bulk[1]) <= 2, "{got:?}");
    let small = &got[2..];
    let (least, most) = (small.iter().min().unwrap(), small.iter().max().unwrap());
    assert!(*least >= 30 && most - least <= most / 4 + 2, "{got:?}");
    check_rate(&sent(&pair, user_locator(Pair::READER)));
}

#[test]
fn each_destination_has_a_bucket_of_its_own() {
    let mut pair = pair(5, 1_472);
    let third = pair.network.add(NodeOptions { path_size: 1_472, ..NodeOptions::default() });
    pair.network.start(third);
    let qos = Qos::default().best_effort().keep_last(1);
    let near = topic(&mut pair, Pair::READER, &qos, 0);
    let far = topic(&mut pair, third, &qos, 0);
    let both = topic(&mut pair, Pair::READER, &qos, 0);
    pair.reader_on(third, qos);
    pair.network.run_for(Duration::from_secs(1));
    let begun = pair.network.now();
    for writer in [near, far, both] {
        pair.write_by(writer, 1, 100_000).unwrap();
    }
    for reader in [near, far, both, 3] {
        assert_eq!(take_until(&mut pair, reader, 1, Duration::from_secs(1)), [1], "{reader}");
    }
    let took = pair.network.now().since(begun);
    assert!(took < Duration::from_millis(260), "200 kB for each: {took:?}");
    for node in [Pair::READER, third] {
        check_rate(&sent(&pair, user_locator(node)));
    }
}

#[test]
fn keep_all_waits_for_room_and_best_effort_holds_no_more_than_may_be_under_way() {
    let mut pair = pair(6, 1_472);
    let limits = ResourceLimits { max_samples: Some(20), ..ResourceLimits::default() };
    let keep_all = Qos::default().reliable().keep_all().resource_limits(limits);
    let reliable = topic(&mut pair, Pair::READER, &keep_all, 0);
    let mut accepted = 0;
    while pair.write_by(reliable, 1, 3_000) != Err(Full) {
        accepted += 1;
        assert!(accepted <= 20 + 7, "as many as are acknowledged at once, and 20");
    }
    assert_eq!(
        take_until(&mut pair, reliable, accepted, Duration::from_secs(1)),
        Vec::from_iter(1..=accepted as u64)
    );
    assert!(pair.write_by(reliable, 1, 3_000).is_ok());
    let best_effort = topic(&mut pair, Pair::READER, &Qos::default().best_effort().keep_all(), 0);
    for _ in 0..3 * WINDOW_CHANGES {
        pair.write_by(best_effort, 1, 100).unwrap();
    }
    let participant = pair.network.participant(Pair::WRITER).unwrap().core();
    let held = participant.writer(pair.writers[best_effort].index).unwrap().changes_held();
    assert!(held > WINDOW_CHANGES / 2 && held <= WINDOW_CHANGES, "{held}");
    let numbers = take_until(&mut pair, best_effort, usize::MAX, Duration::from_secs(3));
    assert!(
        numbers.is_sorted() && numbers.last() == Some(&(3 * WINDOW_CHANGES as u64)),
        "the newest are left"
    );
}

/// Who comes while all waits is found at once, and told by heartbeats what there is.
#[test]
fn discovery_and_heartbeats_wait_for_nothing() {
    let mut pair = pair(7, 1_472);
    let qos = Qos::default().reliable().keep_all();
    let bulk = topic(&mut pair, Pair::READER, &qos, 0);
    pair.write_by(bulk, 1, 5_000_000).unwrap();
    pair.network.run_for(Duration::from_millis(100));
    let begun = pair.network.now();
    pair.topic.name = "Late".into();
    pair.reader(qos.clone());
    let late = pair.writer(qos);
    let (writer, reader) = (pair.writers[late].clone(), pair.readers[late]);
    let is_matched = |pair: &mut Pair| pair.network.is_matched(&writer, &reader) == (true, true);
    assert!(pair.run_until(Duration::from_secs(1), is_matched));
    let took = pair.network.now().since(begun);
    assert!(took < Duration::from_millis(5), "{took:?}");
    pair.network.run_for(Duration::from_secs(7));
    assert_eq!(pair.take_numbers_from(bulk), [1]);
}

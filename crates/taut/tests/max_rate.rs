//! Pacing on a cable: the bytes that its interface counts stay within the rate.
//!
//! Needs root for two network namespaces. Without it the test says that it is left out; with `CI=true` that is a failure.

use std::time::{Duration, Instant};

use taut::qos::ResourceLimits;
use taut::{Config, DdsType, DomainParticipant, Driver, Error, Qos};
use taut_testbed::{End, ip, with_pair};

const LIMIT: Duration = Duration::from_secs(20);
const RATE: u64 = 2_000_000;
const BURST: u64 = 32_768;
/// Discovery, heartbeats that go alone, address resolution.
const BESIDE: u64 = 8_192;

#[derive(DdsType)]
#[dds(final)]
struct Cloud {
    points: Vec<u8>,
}

#[derive(DdsType)]
#[dds(final)]
struct Scan {
    #[dds(key)]
    id: u32,
    points: Vec<u8>,
}

fn config(domain_id: u32, end: End, max_rate: u64) -> Config {
    let interfaces = vec![end.name().into()];
    Config { domain_id, interfaces, max_rate, max_burst: BURST, local: false, ..Config::default() }
}

/// At the end where the thread is.
fn participant(domain_id: u32, end: End, max_rate: u64) -> DomainParticipant {
    DomainParticipant::with_config(&config(domain_id, end, max_rate)).unwrap()
}

/// Bytes that the interface of this thread's namespace has sent, and between which times it was asked.
fn sent(end: End) -> (Instant, u64, Instant) {
    let before = Instant::now();
    let shown = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let after = Instant::now();
    let line = shown.lines().find_map(|line| line.trim().strip_prefix(end.name())).unwrap();
    let bytes = line.trim_start_matches(':').split_whitespace().nth(8).unwrap().parse().unwrap();
    (before, bytes, after)
}

#[test]
fn a_large_sample_stays_within_the_rate_on_the_cable() {
    with_pair("a_large_sample_stays_within_the_rate_on_the_cable", ["mtu 1500", "mtu 1500"], |pair| {
        pair.enter(End::B);
        let far = participant(3, End::B, 0);
        let qos = Qos::default().best_effort().keep_last(1);
        let reader = far.topic::<Cloud>("Cloud").unwrap().reader(qos.clone()).unwrap();
        pair.enter(End::A);
        // Rows are cut before they are counted.
        ip("link set xa gso_max_segs 1");
        let near = participant(3, End::A, RATE);
        let writer = near.topic::<Cloud>("Cloud").unwrap().writer(qos).unwrap();
        writer.wait_matched(LIMIT).unwrap();
        reader.wait_matched(LIMIT).unwrap();

        let begun = Instant::now();
        let mut counts = vec![sent(End::A)];
        writer.write(&Cloud { points: vec![7; 3 << 20] }).unwrap();
        let sample = loop {
            counts.push(sent(End::A));
            match reader.take_next().unwrap() {
                Some(sample) => break sample,
                None => assert!(begun.elapsed() < LIMIT, "it does not come"),
            }
            let _ = reader.wait(Duration::from_millis(10));
        };
        assert_eq!(sample.data.unwrap().points.len(), 3 << 20);
        for (at, (from, before, _)) in counts.iter().enumerate() {
            for (_, after, to) in &counts[at..] {
                let span = to.duration_since(*from).as_secs_f64();
                // One burst that was accounted for before the system stopped the thread, and one after.
                let most = (RATE as f64 * span) as u64 + 2 * BURST + BESIDE;
                assert!(after - before <= most, "{} B in {span} s, {most} at most", after - before);
            }
        }
        let (all, took) = (counts.last().unwrap().1 - counts[0].1, begun.elapsed());
        println!("{all} B on the cable in {took:?}: {:.0} B/s", all as f64 / took.as_secs_f64());
        assert!(took > Duration::from_millis(1_500), "{took:?}");
    });
}

#[test]
fn a_writer_that_keeps_all_waits_for_no_longer_than_it_says() {
    with_pair("a_writer_that_keeps_all_waits_for_no_longer_than_it_says", ["mtu 1500", "mtu 1500"], |pair| {
        let limits = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
        let keep_all = Qos::default().reliable().keep_all();
        let qos = keep_all.clone().resource_limits(limits).max_blocking_time(Duration::from_millis(50));
        pair.enter(End::B);
        let far = participant(3, End::B, 0);
        let reader = far.topic::<Cloud>("Cloud").unwrap().reader(keep_all).unwrap();
        pair.enter(End::A);
        let near = participant(3, End::A, 100_000);
        let writer = near.topic::<Cloud>("Cloud").unwrap().writer(qos).unwrap();
        writer.wait_matched(LIMIT).unwrap();
        reader.wait_matched(LIMIT).unwrap();
        let mut accepted = 0;
        let refused = loop {
            match writer.write(&Cloud { points: vec![accepted; 20_000] }) {
                Ok(()) => accepted += 1,
                Err(error) => break error,
            }
            assert!(accepted < 50, "a second for 10 of them");
        };
        assert!(matches!(refused, Error::Timeout(_)), "{refused}");
        let until = Instant::now() + LIMIT;
        for n in 0..accepted {
            let sample = loop {
                if let Some(sample) = reader.take_next().unwrap() {
                    break sample;
                }
                assert!(Instant::now() < until, "sample {n} of {accepted} does not come");
                let _ = reader.wait(Duration::from_millis(10));
            };
            assert_eq!(sample.data.unwrap().points, vec![n; 20_000]);
        }
    });
}

/// Nobody acknowledges what a best-effort reader gets.
#[test]
fn a_write_that_waits_for_what_is_sent_is_woken_when_it_is() {
    with_pair("a_write_that_waits_for_what_is_sent_is_woken_when_it_is", ["mtu 1500", "mtu 1500"], |pair| {
        let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
        let qos = Qos::default().best_effort().keep_all();
        pair.enter(End::B);
        let far = participant(3, End::B, 0);
        let reader = far.topic::<Cloud>("Cloud").unwrap().reader(qos.clone()).unwrap();
        pair.enter(End::A);
        let near = participant(3, End::A, RATE);
        let qos = qos.resource_limits(limits).max_blocking_time(LIMIT);
        let writer = near.topic::<Cloud>("Cloud").unwrap().writer(qos).unwrap();
        writer.wait_matched(LIMIT).unwrap();
        reader.wait_matched(LIMIT).unwrap();
        let begun = Instant::now();
        for n in 0..2 {
            writer.write(&Cloud { points: vec![n; 1 << 20] }).unwrap();
        }
        let took = begun.elapsed();
        assert!(took > Duration::from_millis(300), "there was room: {took:?}");
        assert!(took < LIMIT / 4, "{took:?}");
    });
}

/// To readers that acknowledge nothing it is not sent again.
#[test]
fn a_writer_that_goes_sends_what_it_has_written() {
    with_pair("a_writer_that_goes_sends_what_it_has_written", ["mtu 1500", "mtu 1500"], |pair| {
        let qos = Qos::default().best_effort().keep_last(1);
        pair.enter(End::B);
        let far = participant(3, End::B, 0);
        let reader = far.topic::<Cloud>("Cloud").unwrap().reader(qos.clone()).unwrap();
        pair.enter(End::A);
        let near = participant(3, End::A, RATE);
        let writer = near.topic::<Cloud>("Cloud").unwrap().writer(qos.max_blocking_time(LIMIT)).unwrap();
        writer.wait_matched(LIMIT).unwrap();
        reader.wait_matched(LIMIT).unwrap();
        let begun = Instant::now();
        writer.write(&Cloud { points: vec![7; 1 << 20] }).unwrap();
        drop(writer);
        let took = begun.elapsed();
        assert!(took > Duration::from_millis(300), "it was all sent by then: {took:?}");
        let sample = loop {
            if let Some(sample) = reader.take_next().unwrap().and_then(|sample| sample.data) {
                break sample;
            }
            assert!(begun.elapsed() < LIMIT, "it does not come");
            let _ = reader.wait(Duration::from_millis(10));
        };
        assert_eq!(sample.points.len(), 1 << 20);
    });
}

/// The same where there is room for others, and another thread drives.
#[test]
fn a_write_that_waits_for_its_instance_is_woken_when_that_is_sent() {
    let test = "a_write_that_waits_for_its_instance_is_woken_when_that_is_sent";
    with_pair(test, ["mtu 1500", "mtu 1500"], |pair| {
        let limits = ResourceLimits { max_samples_per_instance: Some(1), ..ResourceLimits::default() };
        let qos = Qos::default().best_effort().keep_all();
        pair.enter(End::B);
        let far = participant(3, End::B, 0);
        let reader = far.topic::<Scan>("Scan").unwrap().reader(qos.clone()).unwrap();
        pair.enter(End::A);
        let polling = Config { driver: Driver::Polling, ..config(3, End::A, RATE) };
        let near = DomainParticipant::with_config(&polling).unwrap();
        let qos = qos.resource_limits(limits).max_blocking_time(LIMIT);
        let writer = near.topic::<Scan>("Scan").unwrap().writer(qos).unwrap();
        writer.wait_matched(LIMIT).unwrap();
        reader.wait_matched(LIMIT).unwrap();
        let begun = Instant::now();
        for n in 0..2 {
            writer.write(&Scan { id: 7, points: vec![n; 1 << 20] }).unwrap();
        }
        let took = begun.elapsed();
        assert!(took > Duration::from_millis(300), "there was room: {took:?}");
        assert!(took < LIMIT / 4, "{took:?}");
    });
}

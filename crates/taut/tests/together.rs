//! Samples of many writers that wait for company leave in few datagrams, by one call; with the inline driver, too.

use std::time::Instant;

use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Duration, Qos};

const LIMIT: Duration = Duration::from_secs(20);
/// Twice as long as any sample waits.
const BUDGET: Duration = Duration::from_millis(20);
const WRITERS: usize = 50;

#[derive(DdsType)]
#[dds(final)]
struct Joint {
    n: u32,
    rest: [u8; 46],
}

fn joint(n: u32) -> Joint {
    Joint { n, rest: [7; 46] }
}

struct Robot {
    out: DomainParticipant,
    inward: DomainParticipant,
    writers: Vec<DataWriter<Joint>>,
    readers: Vec<DataReader<Joint>>,
}

impl Robot {
    /// A writer for each of so many topics, with a reader each in another participant.
    fn new(domain_id: u32, driver: Driver, qos: &Qos, topics: usize) -> Robot {
        let config = Config { domain_id, interfaces: vec!["lo".into()], local: false, ..Config::default() };
        let out = DomainParticipant::with_config(&Config { driver, ..config.clone() }).unwrap();
        let inward = DomainParticipant::with_config(&config).unwrap();
        let topic = |of: &DomainParticipant, n| of.topic::<Joint>(&format!("Joint{n}")).unwrap();
        let writers: Vec<_> = (0..topics).map(|n| topic(&out, n).writer(qos.clone()).unwrap()).collect();
        let readers: Vec<_> = (0..topics).map(|n| topic(&inward, n).reader(qos.clone()).unwrap()).collect();
        let robot = Robot { out, inward, writers, readers };
        let until = Instant::now() + LIMIT.into();
        let matched = |writer: &DataWriter<_>| writer.publication_matched_status().current_count > 0;
        while !robot.writers.iter().all(matched) {
            assert!(Instant::now() < until, "no match");
            robot.drive(driver);
        }
        robot.readers.iter().for_each(|reader| reader.wait_matched(LIMIT).unwrap());
        robot
    }

    fn drive(&self, driver: Driver) {
        match driver {
            Driver::Inline => self.out.run_once(Duration::from_millis(1)).unwrap(),
            _ => std::thread::yield_now(),
        }
    }

    /// Datagrams and calls.
    fn sent(&self) -> (u64, u64) {
        let port = self.out.stats().port;
        (port.datagrams_out, port.send_calls)
    }

    fn write_all(&self, n: u32) {
        self.writers.iter().for_each(|writer| writer.write(&joint(n)).unwrap());
    }

    /// Takes one sample of each topic, which is this one.
    fn take_all(&self, driver: Driver, n: u32) {
        let until = Instant::now() + LIMIT.into();
        for reader in &self.readers {
            let sample = loop {
                if let Some(sample) = reader.take_next().unwrap() {
                    break sample;
                }
                assert!(Instant::now() < until, "sample {n} does not come");
                self.drive(driver);
            };
            assert_eq!(sample.data.unwrap().n, n);
        }
    }
}

/// How long a machine may stop a thread is its own business: one round in time is enough.
fn some_round_is(mut round: impl FnMut(u32) -> Result<(), String>) {
    let until = Instant::now() + LIMIT.into();
    for n in 0.. {
        match round(n) {
            Ok(()) => return,
            Err(why) => assert!(Instant::now() < until, "{why}"),
        }
    }
}

#[test]
fn fifty_writers_leave_in_one_datagram_by_one_call() {
    let qos = Qos::default().best_effort().keep_last(1).latency_budget(BUDGET);
    let robot = Robot::new(170, Driver::Threaded, &qos, WRITERS);
    some_round_is(|n| {
        let before = robot.sent();
        robot.write_all(n);
        robot.take_all(Driver::Threaded, n);
        let after = robot.sent();
        let (datagrams, calls) = (after.0 - before.0, after.1 - before.1);
        if (datagrams, calls) == (1, 1) {
            Ok(())
        } else {
            Err(format!("{datagrams} datagrams, {calls} calls"))
        }
    });
}

/// A shorter budget behind a longer one counts.
#[test]
fn nobody_waits_for_the_budget_of_another() {
    let qos = Qos::default().best_effort().keep_last(1);
    let robot = Robot::new(171, Driver::Threaded, &qos, 1);
    let writer = |name: &str, budget| {
        let qos = qos.clone().latency_budget(budget);
        let writer = robot.out.topic::<Joint>(name).unwrap().writer(qos.clone()).unwrap();
        let reader = robot.inward.topic::<Joint>(name).unwrap().reader(qos).unwrap();
        reader.wait_matched(LIMIT).unwrap();
        writer.wait_matched(LIMIT).unwrap();
        (writer, reader)
    };
    let (patient, _kept) = writer("Patient", BUDGET);
    let (quick, hears) = writer("Quick", Duration::from_millis(2));
    some_round_is(|n| {
        let begun = Instant::now();
        patient.write(&joint(n)).unwrap();
        quick.write(&joint(n)).unwrap();
        hears.wait(LIMIT).unwrap();
        hears.take_next().unwrap();
        let took = begun.elapsed();
        if took < std::time::Duration::from_millis(8) { Ok(()) } else { Err(format!("{took:?}")) }
    });
}

#[test]
fn the_inline_driver_sends_what_waits_in_the_call_that_finds_it_due() {
    let qos = Qos::default().reliable().keep_all().latency_budget(BUDGET);
    let robot = Robot::new(172, Driver::Inline, &qos, 10);
    some_round_is(|n| {
        let before = robot.sent();
        robot.write_all(n);
        // Too early: it looks, and leaves what waits.
        robot.out.run_once(Duration::ZERO).unwrap();
        let early = robot.sent().0 - before.0;
        robot.take_all(Driver::Inline, n);
        let sent = robot.sent().0 - before.0;
        // Heartbeats may follow where the readers are late.
        if (early, sent) == (0, 1) { Ok(()) } else { Err(format!("{early} too early, {sent} in all")) }
    });
}

/// Without a budget nobody waits for a call that may not come.
#[test]
fn without_a_budget_the_inline_driver_s_thread_sends_at_once() {
    let robot = Robot::new(173, Driver::Inline, &Qos::default().best_effort().keep_last(1), 1);
    let before = robot.sent().0;
    for n in 0..100 {
        robot.write_all(n);
        assert_eq!(robot.sent().0 - before, u64::from(n) + 1);
    }
}

/// What waits is sent when its writer ends.
#[test]
fn a_writer_that_ends_leaves_nothing_behind() {
    let qos = Qos::default().best_effort().keep_last(1).latency_budget(Duration::INFINITE);
    let mut robot = Robot::new(174, Driver::Inline, &qos, 1);
    some_round_is(|n| {
        let before = robot.sent().0;
        robot.writers[0].write(&joint(n)).unwrap();
        if robot.sent().0 == before { Ok(()) } else { Err("it did not wait".into()) }
    });
    let before = robot.inward.stats().port.datagrams_in;
    robot.writers.clear();
    robot.readers[0].wait(LIMIT).unwrap();
    assert!(robot.readers[0].take_next().unwrap().is_some());
    assert!(robot.inward.stats().port.datagrams_in > before);
}

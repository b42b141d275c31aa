//! Samples of a burst share datagrams, and the last of them is not left behind.

use std::sync::mpsc;
use std::time::Instant;

use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Duration, Error, Publisher,
    PublisherQos, Qos,
};
use taut_testbed::await_that;

const LIMIT: Duration = Duration::from_secs(20);
/// Long enough that a hundred writes fit in on any machine.
const BUDGET: Duration = Duration::from_millis(16);
const COUNT: u32 = 100;
/// What is written only to see whether it waits.
const TRIAL: u32 = u32::MAX;

#[derive(DdsType)]
#[dds(final)]
struct Count {
    n: u32,
}

struct Pair {
    out: DomainParticipant,
    _inward: DomainParticipant,
    writer: DataWriter<Count>,
    reader: DataReader<Count>,
}

fn by_network(domain_id: u32) -> Config {
    Config { domain_id, interfaces: vec!["lo".into()], local: false, ..Config::default() }
}

/// Two participants that meet over the network. A write waits for a reader's thread that the machine keeps from running.
fn pair(domain_id: u32, qos: &Qos) -> Pair {
    let (config, mut qos) = (by_network(domain_id), qos.clone());
    qos.writer.reliability.max_blocking_time = LIMIT;
    let open = || DomainParticipant::with_config(&config).unwrap();
    let (out, inward) = (open(), open());
    let writer = out.topic("Burst").unwrap().writer(qos.clone()).unwrap();
    let reader = inward.topic("Burst").unwrap().reader(qos.clone()).unwrap();
    writer.wait_matched(LIMIT).unwrap();
    reader.wait_matched(LIMIT).unwrap();
    Pair { out, _inward: inward, writer, reader }
}

impl Pair {
    fn write_all(&self) {
        (0..COUNT).for_each(|n| self.writer.write(&Count { n }).unwrap());
    }

    fn take_all(&self) -> Vec<u32> {
        let mut taken = Vec::new();
        while taken.len() < COUNT as usize {
            match self.reader.take_next().unwrap() {
                Some(sample) => taken.extend(sample.data.map(|data| data.n).filter(|n| *n != TRIAL)),
                None => self.reader.wait(LIMIT).unwrap(),
            }
        }
        taken
    }

    /// Writes until a sample is left for those behind it: somebody has to drive for that, and the background
    /// thread leaves the driving for a while to a thread that has waited.
    fn await_driver(&self) {
        let until = Instant::now() + LIMIT.into();
        while Instant::now() < until {
            let before = self.datagrams();
            self.writer.write(&Count { n: TRIAL }).unwrap();
            let waits = self.datagrams() == before;
            self.reader.wait(LIMIT).unwrap();
            self.reader.take_next().unwrap();
            if waits {
                return;
            }
        }
        panic!("nobody drives");
    }

    fn datagrams(&self) -> u64 {
        self.out.stats().port.datagrams_out
    }
}

#[test]
fn a_latency_budget_lets_samples_share_a_datagram() {
    let pair = pair(83, &Qos::default().reliable().keep_all().latency_budget(BUDGET));
    pair.await_driver();
    let before = pair.datagrams();
    pair.write_all();
    // Nothing follows: what waits is sent by the driver.
    assert_eq!(pair.take_all(), Vec::from_iter(0..COUNT));
    let sent = pair.datagrams() - before;
    assert!(sent <= u64::from(COUNT / 2), "{sent} datagrams");
}

/// A sample waits for company, though not for all of the budget, as it has a way to go.
#[test]
fn a_sample_that_waited_alone_comes_within_its_budget() {
    let (half, budget) = (std::time::Duration::from_millis(4), std::time::Duration::from_millis(8));
    let pair = pair(56, &Qos::default().reliable().keep_all().latency_budget(budget));
    // How late a thread is that the system wakes is the machine's business: one that is in time is enough.
    let until = Instant::now() + LIMIT.into();
    let mut ages = Vec::new();
    while !ages.iter().any(|age| (half..budget).contains(age)) {
        assert!(Instant::now() < until, "{ages:?}");
        pair.await_driver();
        let written = Instant::now();
        pair.writer.write(&Count { n: 0 }).unwrap();
        pair.reader.wait(LIMIT).unwrap();
        pair.reader.take_next().unwrap();
        ages.push(written.elapsed());
    }
}

/// Waits until the background thread of each participant of this process sleeps, or is gone.
fn await_background_threads() {
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        let is_one = std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "taut\n");
        let sleeps = |stat: String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
        await_that("a thread sleeps", || {
            !is_one || std::fs::read_to_string(task.join("stat")).map_or(true, sleeps)
        });
    }
}

#[test]
fn who_leaves_a_sample_to_a_driver_that_sleeps_does_not_wake_it() {
    // No heartbeat is due meanwhile.
    let pair = pair(86, &Qos::default().best_effort().keep_all().latency_budget(BUDGET));
    let told = || (pair.out.stats().kicks, pair.out.stats().reminders);
    let until = Instant::now() + LIMIT.into();
    loop {
        pair.await_driver();
        await_background_threads();
        let (before, sent) = (told(), pair.datagrams());
        pair.writer.write(&Count { n: 0 }).unwrap();
        let (waits, written) = (pair.datagrams() == sent, told());
        pair.reader.wait(LIMIT).unwrap();
        pair.reader.take_next().unwrap();
        // Others have something for the driver, too, and it may just have been awake.
        if waits && written.0 == before.0 && written.1 > before.1 {
            return;
        }
        assert!(Instant::now() < until, "{before:?} {written:?}, it waits: {waits}");
    }
}

/// Participants whose writer belongs to a publisher.
fn published(domain_id: u32, driver: Driver) -> (Publisher, Pair) {
    let config = by_network(domain_id);
    let out = DomainParticipant::with_config(&Config { driver, ..config.clone() }).unwrap();
    let inward = DomainParticipant::with_config(&config).unwrap();
    let publisher = out.publisher(PublisherQos::default());
    let qos = Qos::default().reliable().keep_all();
    let writer = publisher.writer(&out.topic("Burst").unwrap(), qos.writer.clone()).unwrap();
    let reader = inward.topic("Burst").unwrap().reader(qos).unwrap();
    writer.wait_matched(LIMIT).unwrap();
    reader.wait_matched(LIMIT).unwrap();
    (publisher, Pair { out, _inward: inward, writer, reader })
}

#[test]
fn what_a_suspended_publisher_writes_leaves_when_it_resumes() {
    for driver in [Driver::Threaded, Driver::Inline] {
        let (publisher, pair) = published(93, driver);
        assert!(matches!(publisher.resume_publications(), Err(Error::PreconditionNotMet(_))));
        let sent = || (pair.datagrams(), pair.out.stats().port.send_calls);
        let until = Instant::now() + LIMIT.into();
        loop {
            publisher.suspend_publications();
            let before = sent();
            pair.write_all();
            let waited = sent();
            publisher.resume_publications().unwrap();
            let resumed = sent();
            assert_eq!(pair.take_all(), Vec::from_iter(0..COUNT), "{driver:?}");
            if (waited, resumed) == (before, (before.0 + 1, before.1 + 1)) {
                break;
            }
            // Discovery sends, too.
            assert!(Instant::now() < until, "{before:?}, {waited:?}, {resumed:?}, {driver:?}");
        }
        let before = pair.datagrams();
        pair.writer.write(&Count { n: 0 }).unwrap();
        assert!(pair.datagrams() > before, "nothing waits any more, {driver:?}");
    }
}

#[test]
fn what_is_never_resumed_is_sent_all_the_same() {
    let (publisher, pair) = published(94, Driver::Threaded);
    publisher.suspend_publications();
    pair.write_all();
    assert_eq!(pair.take_all(), Vec::from_iter(0..COUNT), "by the driver, after a while");
    pair.write_all();
    drop(publisher);
    assert_eq!(pair.take_all(), Vec::from_iter(0..COUNT), "nothing is discarded");
    let before = pair.datagrams();
    pair.writer.write(&Count { n: 0 }).unwrap();
    assert!(pair.datagrams() > before, "nothing waits any more");
}

#[test]
fn what_keep_last_drops_is_sent_once_all_the_same() {
    let qos = Qos::default().reliable().keep_last(1).latency_budget(BUDGET);
    let pair = pair(84, &qos.clone());
    let all = pair._inward.topic::<Count>("Burst").unwrap().reader(qos.keep_all()).unwrap();
    all.wait_matched(LIMIT).unwrap();
    pair.writer.wait_matched_count(2, LIMIT).unwrap();
    pair.await_driver();
    pair.write_all();
    let pair = Pair { reader: all, ..pair };
    assert_eq!(pair.take_all(), Vec::from_iter(0..COUNT));
}

#[test]
fn nothing_waits_for_a_listener_that_takes_its_time() {
    let pair = pair(91, &Qos::default().reliable().keep_all().latency_budget(BUDGET));
    let (enter, entered) = mpsc::channel();
    let (leave, left) = mpsc::channel::<()>();
    // The driver of the writer's participant runs a listener that ends only when it is told to.
    let back = pair._inward.topic::<Count>("Back").unwrap().writer(Qos::default().reliable()).unwrap();
    let heard = pair.out.topic::<Count>("Back").unwrap().reader(Qos::default().reliable()).unwrap();
    heard.on_data_available(move |_| {
        enter.send(()).unwrap();
        let _ = left.recv();
    });
    heard.wait_matched(LIMIT).unwrap();
    back.wait_matched(LIMIT).unwrap();
    pair.await_driver();
    back.write(&Count { n: 0 }).unwrap();
    entered.recv_timeout(LIMIT.into()).unwrap();
    pair.write_all();
    assert_eq!(pair.take_all(), Vec::from_iter(0..COUNT));
    drop(leave);
}

#[test]
fn a_budget_without_end_has_one() {
    let pair = pair(85, &Qos::default().reliable().keep_all().latency_budget(Duration::INFINITE));
    pair.await_driver();
    pair.write_all();
    assert_eq!(pair.take_all(), Vec::from_iter(0..COUNT));
}

#[test]
fn a_critical_writer_waits_for_nobody() {
    let qos = Qos::default().reliable().keep_all().latency_budget(BUDGET).transport_priority(1);
    let pair = pair(92, &qos);
    // For longer than the background thread leaves the driving to a thread that has waited.
    let until = Instant::now() + std::time::Duration::from_millis(100);
    while Instant::now() < until {
        let before = pair.datagrams();
        pair.writer.write(&Count { n: 0 }).unwrap();
        assert!(pair.datagrams() > before);
        pair.reader.wait(LIMIT).unwrap();
        pair.reader.take_next().unwrap();
    }
}

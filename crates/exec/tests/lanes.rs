//! What a driver empties for those who listen lets others have the token in between, and what one thread takes from a full
//! reader lets another one go on.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{await_sleep, write};
use taut_base::Time;
use taut_dcps::{ContentFilter, Endpoint, Selection, TypeSupport};
use taut_exec::{Driver, Executor, ExecutorConfig, JobClass, ends};
use taut_port_udp::UdpConfig;
use taut_qos::{DataReaderQos, DataWriterQos, History, ResourceLimits, TopicQos};

const READERS: usize = 8;
/// As many as a lane has room for.
const SAMPLES: usize = 512;

fn endpoint<Qos, Group: Default>(
    topic: usize,
    qos: Qos,
    filter: Option<ContentFilter>,
) -> Endpoint<Qos, Group> {
    let type_support = TypeSupport { type_name: "Number".into(), filter, ..TypeSupport::default() };
    let (topic_qos, group) = (TopicQos::default(), Group::default());
    Endpoint { topic_name: format!("Numbers{topic}"), topic_qos, type_support, qos, group }
}

/// What the filters of all readers see.
#[derive(Default)]
struct Seen {
    /// Samples that are looked at.
    count: AtomicUsize,
    /// The driver is at it.
    begun: AtomicBool,
    /// Who wants the token then.
    asks: AtomicI32,
}

impl Seen {
    fn pass(&self) -> bool {
        if self.count.fetch_add(1, Ordering::SeqCst) == 0 {
            self.begun.store(true, Ordering::SeqCst);
            while self.asks.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            await_sleep(self.asks.load(Ordering::SeqCst));
        }
        true
    }
}

#[test]
fn who_wants_the_token_waits_for_one_step_of_a_lane() {
    let udp = UdpConfig { domain_id: 193, interfaces: vec!["lo".into()], ..UdpConfig::default() };
    let config = ExecutorConfig { udp, driver: Driver::Inline, ..ExecutorConfig::default() };
    let (executor, seen) = (Executor::start(&config).unwrap(), Arc::new(Seen::default()));
    let writes = DataWriterQos { history: History::KeepLast(SAMPLES as u32), ..DataWriterQos::default() };
    let reads = DataReaderQos { history: History::KeepAll, ..DataReaderQos::default() };
    for topic in 0..READERS {
        let seen = Arc::clone(&seen);
        let filter = ContentFilter::new(move |_| seen.pass());
        executor.create_reader(endpoint(topic, reads.clone(), Some(filter))).unwrap();
        let (writer, _) = executor.create_writer(endpoint(topic, writes.clone(), None)).unwrap();
        let mut outlet = executor.outlet(writer, &writes).unwrap();
        (0..SAMPLES as u32).for_each(|n| write(&executor, &mut outlet, n));
    }
    assert_eq!(seen.count.load(Ordering::SeqCst), 0, "all lies in the lanes");
    let before = std::thread::scope(|scope| {
        let asks = scope.spawn(|| {
            while !seen.begun.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            seen.asks.store(nix::unistd::gettid().as_raw(), Ordering::SeqCst);
            executor.look(|_, _| seen.count.load(Ordering::SeqCst)).unwrap()
        });
        executor.run_once(Some(Time(0))).unwrap();
        asks.join().unwrap()
    });
    assert_eq!(seen.count.load(Ordering::SeqCst), READERS * SAMPLES);
    assert!(before <= JobClass::ReceiveUser.budget(), "it waited for {before} samples");
}

/// The sample that there was no room for waits in the lane: its writer has rung for it already, and rings no more.
#[test]
fn who_waits_at_a_full_reader_hears_of_what_a_take_of_another_makes_room_for() {
    const WAIT: Duration = Duration::from_secs(20);
    let udp = UdpConfig { domain_id: 196, interfaces: vec!["lo".into()], ..UdpConfig::default() };
    let spin = taut_base::Duration::ZERO;
    let executor = Executor::start(&ExecutorConfig { udp, spin, ..ExecutorConfig::default() }).unwrap();
    let limits = ResourceLimits { max_samples: Some(2), ..ResourceLimits::default() };
    let reads =
        DataReaderQos { history: History::KeepAll, resource_limits: limits, ..DataReaderQos::default() };
    let writes = DataWriterQos { history: History::KeepLast(8), ..DataWriterQos::default() };
    let (reader, _) = executor.create_reader(endpoint(0, reads.reliable(), None)).unwrap();
    let (writer, _) = executor.create_writer(endpoint(0, writes.clone(), None)).unwrap();
    let mut outlet = executor.outlet(writer, &writes).unwrap();
    let (door, waits) = (executor.door(reader).unwrap(), AtomicI32::new(0));
    (0..3).for_each(|n| write(&executor, &mut outlet, n));
    let mut read = 0;
    executor.read(&door, &Selection::ANY, |_| read += 1).unwrap();
    assert_eq!(read, 2);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            waits.store(nix::unistd::gettid().as_raw(), Ordering::SeqCst);
            let begun = Instant::now();
            (executor.wait_unread(&door, ends(WAIT.into())), begun.elapsed())
        });
        while waits.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        await_sleep(waits.load(Ordering::SeqCst));
        let mut taken = 0;
        executor.take(&door, &Selection::ANY, |_| taken += 1).unwrap();
        assert_eq!(taken, 2);
        let (found, waited) = waiter.join().unwrap();
        assert!(found && waited < WAIT / 2, "{waited:?}");
    });
}

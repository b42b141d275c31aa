//! What a driver empties for those who listen lets others have the token in between.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use common::{await_sleep, write};
use taut_base::Time;
use taut_dcps::{ContentFilter, Endpoint, TypeSupport};
use taut_exec::{Driver, Executor, ExecutorConfig, JobClass};
use taut_port_udp::UdpConfig;
use taut_qos::{DataReaderQos, DataWriterQos, History, TopicQos};

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

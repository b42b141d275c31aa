//! A real-time thread that has the token waits for no thread that is just leaving a write, on the processor that both have
//! to share: that one would go on only when the other is done.

mod common;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{await_sleep, write};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, gettid};
use taut_dcps::{Endpoint, TypeSupport};
use taut_exec::{Driver, Executor, ExecutorConfig, Outlet};
use taut_port_udp::UdpConfig;
use taut_qos::{DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos, TopicQos};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// So often the real-time thread gets the token in the middle of writes that are left.
const ROUNDS: usize = 10_000;
/// Of each round: fewer than there is room for.
const WRITES: u32 = 250;
/// What a look takes of the processor, at most. It takes some microseconds; one that waits for a thread that does not run
/// takes all that the kernel leaves to real-time threads.
const LONGEST: Duration = Duration::from_millis(40);

/// How long the token's holder sleeps, so that others go on.
const PAUSE: Duration = Duration::from_micros(20);

fn endpoint<Qos, Group: Default>(qos: Qos) -> Endpoint<Qos, Group> {
    let type_support = TypeSupport { type_name: "Number".into(), ..TypeSupport::default() };
    let (topic_qos, group) = (TopicQos::default(), Group::default());
    Endpoint { topic_name: "Numbers".into(), topic_qos, type_support, qos, group }
}

/// Has the calling thread run on the first, or the last, of the process's processors.
fn stay_on(first: bool) {
    let cpus = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let mut cpus = (0..CpuSet::count()).filter(|cpu| cpus.is_set(*cpu).unwrap_or(false));
    let mut set = CpuSet::new();
    set.set(if first { cpus.next() } else { cpus.next_back() }.unwrap()).unwrap();
    sched_setaffinity(Pid::from_raw(0), &set).unwrap();
}

/// Of the thread that looks, and of the one above it that watches the processor.
const LOOKS: u8 = 10;
const WATCHES: u8 = 11;

/// Has the calling thread run under SCHED_FIFO. `false` without the privilege.
fn run_first(priority: u8) -> bool {
    let priority = ThreadPriority::Crossplatform(ThreadPriorityValue::try_from(priority).unwrap());
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), priority, fifo).is_ok()
}

/// What the calling thread has had of the processor.
fn used() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

/// What the threads tell each other of the round they are in.
struct Rounds {
    asks: AtomicI32,
    round: AtomicUsize,
    is_ready: AtomicBool,
    begin: Barrier,
    end: Barrier,
    /// For how long the processor has stood still so far: a host that runs others meanwhile has it stand still under whoever
    /// runs, who is charged for that.
    still_ns: AtomicU64,
    are_over: AtomicBool,
}

impl Rounds {
    fn new() -> Rounds {
        Rounds {
            asks: AtomicI32::new(0),
            round: AtomicUsize::new(0),
            is_ready: AtomicBool::new(false),
            begin: Barrier::new(3),
            end: Barrier::new(3),
            still_ns: AtomicU64::new(0),
            are_over: AtomicBool::new(false),
        }
    }

    /// The thread that leaves writes.
    fn write(&self, executor: &Executor, outlet: &mut Outlet) {
        stay_on(false);
        for n in 1..=ROUNDS {
            self.begin.wait();
            self.is_ready.store(true, Ordering::SeqCst);
            while self.round.load(Ordering::SeqCst) < n {
                std::hint::spin_loop();
            }
            (0..WRITES).for_each(|n| write(executor, outlet, n));
            self.end.wait();
        }
    }

    /// The real-time thread. Returns what its longest look took of the processor while that ran.
    fn look(&self, executor: &Executor) -> Duration {
        stay_on(false);
        assert!(run_first(LOOKS));
        let still = || Duration::from_nanos(self.still_ns.load(Ordering::SeqCst));
        let mut worst = Duration::ZERO;
        for _ in 0..ROUNDS {
            self.begin.wait();
            let (before, still_before) = (used(), still());
            self.asks.store(gettid().as_raw(), Ordering::SeqCst);
            executor.look(|_, _| ()).unwrap();
            let took = used() - before;
            worst = worst.max(took.saturating_sub(still() - still_before));
            self.end.wait();
        }
        self.are_over.store(true, Ordering::SeqCst);
        worst
    }

    /// A thread that runs before the one that looks, and is late by as much as the processor stands still.
    fn watch(&self) {
        const PERIOD: Duration = Duration::from_millis(1);
        stay_on(false);
        assert!(run_first(WATCHES));
        while !self.are_over.load(Ordering::SeqCst) {
            let begun = Instant::now();
            std::thread::sleep(PERIOD);
            let late = begun.elapsed().saturating_sub(PERIOD);
            self.still_ns.fetch_add(late.as_nanos() as u64, Ordering::SeqCst);
        }
    }

    /// The token's holder of round `n`.
    fn hold(&self, executor: &Executor, n: usize) {
        self.asks.store(0, Ordering::SeqCst);
        self.is_ready.store(false, Ordering::SeqCst);
        let looked = executor.look(|_, _| {
            self.begin.wait();
            // As long as the holder runs the kernel has the waiter look on.
            while self.asks.load(Ordering::SeqCst) == 0 || !self.is_ready.load(Ordering::SeqCst) {
                std::thread::sleep(PAUSE);
            }
            await_sleep(self.asks.load(Ordering::SeqCst));
            self.round.store(n, Ordering::SeqCst);
            // Another place in the writes each time.
            let until = Instant::now() + Duration::from_nanos(1_000 + 97 * (n as u64 % 200));
            while Instant::now() < until {}
        });
        looked.unwrap();
        self.end.wait();
    }
}

#[test]
fn who_has_the_token_does_not_wait_for_who_is_about_to_leave_a_write() {
    if !std::thread::spawn(|| run_first(WATCHES)).join().unwrap()
        || std::thread::available_parallelism().unwrap().get() < 2
    {
        println!("not tested: no privilege for SCHED_FIFO, or one processor");
        return;
    }
    let udp = UdpConfig { domain_id: 194, interfaces: vec!["lo".into()], ..UdpConfig::default() };
    let config = ExecutorConfig { udp, local: false, driver: Driver::Inline, ..ExecutorConfig::default() };
    let (executor, qos) = (Executor::start(&config).unwrap(), DataWriterQos::default());
    let writer = executor.with(|participant, now| {
        participant.create_reader(now, endpoint::<_, SubscriberQos>(DataReaderQos::default()));
        participant.create_writer(now, endpoint::<_, PublisherQos>(qos.clone()))
    });
    let mut outlet = executor.outlet(writer.unwrap(), &qos).unwrap();
    let rounds = Rounds::new();
    let worst = std::thread::scope(|scope| {
        scope.spawn(|| rounds.write(&executor, &mut outlet));
        let real_time = scope.spawn(|| rounds.look(&executor));
        scope.spawn(|| rounds.watch());
        stay_on(true);
        (1..=ROUNDS).for_each(|n| rounds.hold(&executor, n));
        real_time.join().unwrap()
    });
    assert!(worst < LONGEST, "a look took {worst:?} of the processor");
}

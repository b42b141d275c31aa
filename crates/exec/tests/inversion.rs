//! A real-time thread that has the token waits for no thread that is just leaving a write, on the processor that both have
//! to share: that one would go on only when the other is done.

mod common;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{await_sleep, write};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, gettid};
use taut_dcps::{Endpoint, TypeSupport};
use taut_exec::{Driver, Executor, ExecutorConfig};
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

/// Has the calling thread run under SCHED_FIFO. `false` without the privilege.
fn run_first() -> bool {
    let priority = ThreadPriority::Crossplatform(ThreadPriorityValue::try_from(10).unwrap());
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), priority, fifo).is_ok()
}

/// What the calling thread has had of the processor.
fn used() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

#[test]
fn who_has_the_token_does_not_wait_for_who_is_about_to_leave_a_write() {
    if !std::thread::spawn(run_first).join().unwrap()
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
    let (asks, round, is_ready) = (AtomicI32::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let (begin, end) = (Barrier::new(3), Barrier::new(3));
    let worst = std::thread::scope(|scope| {
        scope.spawn(|| {
            stay_on(false);
            for n in 1..=ROUNDS {
                begin.wait();
                is_ready.store(true, Ordering::SeqCst);
                while round.load(Ordering::SeqCst) < n {
                    std::hint::spin_loop();
                }
                (0..WRITES).for_each(|n| write(&executor, &mut outlet, n));
                end.wait();
            }
        });
        let real_time = scope.spawn(|| {
            stay_on(false);
            assert!(run_first());
            let mut worst = Duration::ZERO;
            for _ in 0..ROUNDS {
                begin.wait();
                let before = used();
                asks.store(gettid().as_raw(), Ordering::SeqCst);
                executor.look(|_, _| ()).unwrap();
                worst = worst.max(used() - before);
                end.wait();
            }
            worst
        });
        stay_on(true);
        for n in 1..=ROUNDS {
            asks.store(0, Ordering::SeqCst);
            is_ready.store(false, Ordering::SeqCst);
            let looked = executor.look(|_, _| {
                begin.wait();
                // As long as the holder runs the kernel has the waiter look on.
                while asks.load(Ordering::SeqCst) == 0 || !is_ready.load(Ordering::SeqCst) {
                    std::thread::sleep(PAUSE);
                }
                await_sleep(asks.load(Ordering::SeqCst));
                round.store(n, Ordering::SeqCst);
                // Another place in the writes each time.
                let until = Instant::now() + Duration::from_nanos(1_000 + 97 * (n as u64 % 200));
                while Instant::now() < until {}
            });
            looked.unwrap();
            end.wait();
        }
        real_time.join().unwrap()
    });
    assert!(worst < LONGEST, "a look took {worst:?} of the processor");
}

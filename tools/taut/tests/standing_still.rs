//! `taut doctor --measure`: who takes a processor from all others is seen to. A binary of its own: whatever else needed the last
//! processor would wait for that, and for the doctor, who has it for half a second.

mod measured;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// What stands in for the host of a virtual machine: a thread of a higher priority has the processor for so long, and then not
/// for so long, which is more than the kernel keeps for others.
const TAKES: Duration = Duration::from_millis(30);
const LEAVES: Duration = Duration::from_millis(70);
/// It ends by itself, too, should the test not come to that.
const MOST: Duration = Duration::from_secs(30);

/// Takes the last processor from all others from time to time, until it is over. `false`: the system does not let it.
fn take_processor(over: &AtomicBool) -> bool {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let last = (0..CpuSet::count()).rev().find(|cpu| allowed.is_set(*cpu) == Ok(true)).unwrap();
    let mut only = CpuSet::new();
    only.set(last).unwrap();
    sched_setaffinity(Pid::from_raw(0), &only).unwrap();
    let priority = ThreadPriority::Crossplatform(ThreadPriorityValue::try_from(50_u8).unwrap());
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    if set_thread_priority_and_policy(thread_native_id(), priority, policy).is_err() {
        return false;
    }
    let start = Instant::now();
    while !over.load(Ordering::Relaxed) && start.elapsed() < MOST {
        let begin = Instant::now();
        while begin.elapsed() < TAKES {
            std::hint::spin_loop();
        }
        std::thread::sleep(LEAVES);
    }
    true
}

#[test]
fn who_takes_a_processor_is_seen_to() {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let takes = scope.spawn(|| take_processor(&over));
        let seen = measured::measure();
        over.store(true, Ordering::Relaxed);
        let standing = seen("standing still");
        if !takes.join().unwrap() {
            return println!("LEFT OUT, as SCHED_FIFO is not granted: {standing}");
        }
        let (_, rest) = standing.split_once(" for up to ").unwrap();
        let us: u128 = rest.split(' ').next().unwrap().parse().unwrap();
        assert!(us >= TAKES.as_micros() / 2, "{standing}");
    });
}

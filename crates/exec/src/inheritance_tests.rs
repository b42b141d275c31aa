//! A thread of high priority waits for one of low priority, which one of medium priority keeps from the processor that
//! all three have to share. That wait ends with what the first of them waits for, not when the medium thread is done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread::{self, Thread};
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use taut_qos::DataWriterQos;

use crate::Scheduling;
use crate::executor_tests::{executor, write};

/// What the medium thread takes of the processor. Above what the holder needs, and well below what of each second the
/// kernel leaves to real-time threads. It is no time of the clock: a machine may stand still for longer.
const MEDIUM: Duration = Duration::from_millis(45);

/// What the calling thread has had of the processor.
fn used() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

/// Has the calling thread run under SCHED_FIFO on the last of the process's processors. `false` without the privilege.
pub(crate) fn run_at(priority: u8) -> bool {
    let cpus = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let last = (0..CpuSet::count()).rfind(|cpu| cpus.is_set(*cpu).unwrap_or(false)).unwrap();
    Scheduling { priority: Some(priority), deadline: None, cpus: vec![last] }.apply().is_ok()
}

/// What a thread waits for to begin.
#[derive(Default)]
struct Begin(AtomicBool);

impl Begin {
    /// Parks, and more than once if it is woken for nothing.
    fn wait(&self) {
        while !self.0.load(Ordering::SeqCst) {
            thread::park();
        }
    }

    fn tell(&self, thread: &Thread) {
        self.0.store(true, Ordering::SeqCst);
        thread.unpark();
    }
}

/// `hold` takes something, calls what it is given, and gives it back; `need` waits for the same. Whether `need` has it
/// before the medium thread ends; `None` without the privilege.
fn high_goes_on(hold: impl FnOnce(&dyn Fn()) + Send, need: impl FnOnce() + Send) -> Option<bool> {
    if !thread::spawn(|| run_at(1)).join().unwrap() {
        println!("not tested: no privilege for SCHED_FIFO");
        return None;
    }
    let (medium_begin, high_begin, high_is_done) =
        &(Begin::default(), Begin::default(), AtomicBool::new(false));
    // Behind it the thread of low priority runs when the others are parked.
    let ready = &Barrier::new(3);
    let run_ready_at = move |priority| {
        assert!(run_at(priority));
        ready.wait();
    };
    thread::scope(|scope| {
        let high = scope.spawn(move || {
            run_ready_at(30);
            high_begin.wait();
            need();
            high_is_done.store(true, Ordering::SeqCst);
        });
        let high = high.thread().clone();
        let medium = scope.spawn(move || {
            run_ready_at(20);
            medium_begin.wait();
            let before = used();
            high_begin.tell(&high);
            while !high_is_done.load(Ordering::SeqCst) && used() - before < MEDIUM {
                std::hint::spin_loop();
            }
            high_is_done.load(Ordering::SeqCst)
        });
        let to_medium = medium.thread().clone();
        scope.spawn(move || {
            run_ready_at(10);
            // From there on this thread runs only if it is lent a priority, or the other two are done.
            hold(&|| medium_begin.tell(&to_medium));
        });
        Some(medium.join().unwrap())
    })
}

#[test]
fn who_waits_for_the_token_waits_for_its_holder_only() {
    let (executor, ..) = executor();
    let goes_on = high_goes_on(|held| executor.inner.look(|_, _| held()), || executor.inner.look(|_, _| ()));
    assert_ne!(goes_on, Some(false), "it waited for a thread of lower priority that had nothing of it");
}

#[test]
fn who_writes_is_not_left_to_a_holder_that_does_not_run() {
    let (executor, writer, _) = executor();
    let outlet = Mutex::new(executor.outlet(writer, &DataWriterQos::default()).unwrap());
    let left = AtomicBool::new(false);
    let goes_on = high_goes_on(
        |held| executor.inner.look(|_, _| held()),
        || {
            write(&executor, &mut outlet.lock().unwrap(), 7);
            left.store(executor.inner.writes.is_any(), Ordering::SeqCst);
        },
    );
    assert_ne!(goes_on, Some(false), "it waited for a thread of lower priority that had nothing of it");
    assert!(!left.load(Ordering::SeqCst), "the write waits for a thread of lower priority");
}

#[test]
fn who_takes_waits_for_who_has_the_door_only() {
    let (executor, writer, reader) = executor();
    let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
    (0..2).for_each(|n| write(&executor, &mut outlet, n));
    let door = executor.door(reader).unwrap();
    let goes_on = high_goes_on(
        |held| assert!(executor.take_next(&door, 0, &mut |_| held())),
        || assert!(executor.take_next(&door, 0, &mut |_| ())),
    );
    assert_ne!(goes_on, Some(false), "it waited for a thread of lower priority that had nothing of it");
}

#[test]
fn it_is_known_who_is_a_real_time_thread() {
    assert!(!taut_lock::is_real_time());
    let told = thread::spawn(|| (run_at(1), taut_lock::is_real_time())).join().unwrap();
    assert_eq!(told.0, told.1);
}

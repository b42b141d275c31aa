//! For how long the machine has stood still, which is no fault of who had to go on meanwhile.
//!
//! On each processor a thread asks to be woken each millisecond, and is late by as much as it did not run: where a host
//! has others run, or where programs of more weight do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::sight::now_ns;

const PERIOD: Duration = Duration::from_millis(1);

/// The watch. Its threads end with it.
pub struct Still(Arc<AtomicU64>);

impl Still {
    pub fn watch() -> Still {
        let longest_ns = Arc::new(AtomicU64::new(0));
        let usable = sched_getaffinity(Pid::from_raw(0)).expect("a thread has processors");
        for cpu in (0..CpuSet::count()).filter(|cpu| usable.is_set(*cpu).unwrap_or(false)) {
            let longest_ns = Arc::downgrade(&longest_ns);
            std::thread::spawn(move || {
                let mut only = CpuSet::new();
                only.set(cpu).expect("it is one of them");
                sched_setaffinity(Pid::from_raw(0), &only).expect("it is one of them");
                while let Some(longest_ns) = longest_ns.upgrade() {
                    let begun = now_ns();
                    std::thread::sleep(PERIOD);
                    let late = (now_ns() - begun).saturating_sub(PERIOD.as_nanos() as u64);
                    longest_ns.fetch_max(late, Ordering::SeqCst);
                }
            });
        }
        Still(longest_ns)
    }

    /// The longest on any processor since this was asked last.
    pub fn longest_us(&self) -> u64 {
        // Who is late just now has told of it after one more period.
        std::thread::sleep(PERIOD);
        self.0.swap(0, Ordering::SeqCst) / 1_000
    }
}

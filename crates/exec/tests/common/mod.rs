//! What tests of an executor write, and how they know that a thread sleeps.

use std::time::{Duration, Instant};

use taut_base::InstanceHandle;
use taut_exec::{Call, Executor, Moment, Outlet, Patience, Payload};
use taut_rtps::history_cache::ChangeKind;

/// Writes a number by a KEEP_LAST writer.
pub fn write(executor: &Executor, outlet: &mut Outlet, n: u32) {
    let call =
        &mut Call::new(ChangeKind::Alive, InstanceHandle::default(), Moment::now(), Patience::KeepLast);
    let payload = &mut Payload::short(&n.to_le_bytes());
    executor.publish(outlet, call, payload).unwrap();
}

/// Waits until a thread of this process sleeps.
pub fn await_sleep(thread: i32) {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        if stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S')) {
            return;
        }
        assert!(Instant::now() < end, "the thread does not sleep");
    }
}

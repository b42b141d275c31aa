//! What tests of an executor write.

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

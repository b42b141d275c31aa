//! What tests of an executor write.

use taut_base::Time;
use taut_dcps::Write;
use taut_exec::{Executor, Moment, Outlet, Patience, Payload};
use taut_mem::Bytes;
use taut_rtps::history_cache::ChangeKind;

/// Writes a number by a KEEP_LAST writer.
pub fn write(executor: &Executor, outlet: &mut Outlet, n: u32) {
    let write = Write {
        kind: ChangeKind::Alive,
        instance: Default::default(),
        source_timestamp: None,
        payload: Bytes::new(),
        number: None,
        in_lane: false,
        called: Time::default(),
    };
    let payload = &mut Payload::short(&n.to_le_bytes());
    executor.publish(outlet, write, payload, Patience::KeepLast, Moment::now()).unwrap();
}

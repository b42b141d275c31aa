//! A device that is a ring in this process: what it is sent comes back.

mod common;

use common::{frame, number_of, open, send};
use taut_dpdk::Burst;

/// Opened anew more often than there is memory for the frames of so many devices.
#[test]
fn frames_that_nobody_has_received_are_given_back() {
    for round in 0..30 {
        let mut ring = open("net_ring0").unwrap_or_else(|error| panic!("{round}: {error}"));
        send(&mut ring, (0..100).map(|number| frame(number, 1_000)));
        let mut burst = Burst::new();
        ring.receive(0, &mut burst);
        assert_eq!(burst.iter().next().and_then(number_of), Some(0), "of this device, and not of one before");
    }
}

//! How many frames the kernel has to receive into, after a calm and after a burst, seen by what is lost while nobody looks.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod common;

use taut_base::Locator;
use taut_port_xdp::XdpPort;
use taut_testbed::{End, with_pair};

use common::{port, received, way};

/// As an RTPS message begins, so that the program lets it pass.
const DATAGRAM: &[u8] = b"RTPS, and some more: what is short is copied out of its frame, this is not, as it has more than 68 bytes";

/// Frames that a ring has places for, and the fewest that are in turn.
const ALL: usize = 8_192;
const FEWEST: usize = 512;

/// Each is taken as it comes: one round for the burst before to be forgotten, one to see that there is none, and one for
/// those that are too many to come out of their turn.
fn calm(near: &mut XdpPort, far: &mut XdpPort, to: &Locator) {
    for _ in 0..3 * ALL {
        assert!(near.send(to, &[DATAGRAM]));
        near.flush();
        assert_eq!(*received(far), *DATAGRAM);
    }
}

/// So many come while nobody looks. Returns how many of them are taken then.
fn burst(near: &mut XdpPort, far: &mut XdpPort, to: &Locator, count: usize) -> usize {
    for _ in 0..count {
        assert!(near.send(to, &[DATAGRAM]));
        // The kernel sends within the call.
        near.flush();
    }
    let mut taken = 0;
    while far.receive_from(0, 64, &mut |_| taken += 1) > 0 {}
    taken
}

#[test]
fn a_calm_has_few_in_turn_and_a_burst_all_of_them() {
    with_pair("supply", ["", ""], |pair| {
        let mut near = port(pair, End::A, false);
        let mut far = port(pair, End::B, false);
        let to = way(pair, &mut near, false);
        assert_eq!(burst(&mut near, &mut far, &to, 4 * FEWEST), 4 * FEWEST, "all are in turn at first");
        calm(&mut near, &mut far, &to);
        assert_eq!(burst(&mut near, &mut far, &to, FEWEST / 2), FEWEST / 2);
        assert_eq!(burst(&mut near, &mut far, &to, 4 * FEWEST), 4 * FEWEST, "they are back");
        calm(&mut near, &mut far, &to);
        let overflow = far.stats().receive_overflow;
        let taken = burst(&mut near, &mut far, &to, 4 * FEWEST);
        assert_eq!(taken, FEWEST, "what costs a cold burst that nobody looks at");
        assert_eq!(far.stats().receive_overflow - overflow, (4 * FEWEST - taken) as u64, "and is counted");
        assert_eq!(burst(&mut near, &mut far, &to, 4 * FEWEST), 4 * FEWEST);
    });
}

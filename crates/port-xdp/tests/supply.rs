//! How many frames the kernel has to receive into, after a calm and after a burst, seen by what is lost while nobody looks.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod common;

use taut_base::Locator;
use taut_port_xdp::XdpPort;
use taut_testbed::{End, await_that, with_pair};

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

/// So many come while nobody looks, of which so many are lost: those have been counted before somebody does.
fn burst(near: &mut XdpPort, far: &mut XdpPort, to: &Locator, count: usize, lost: usize) {
    let before = far.stats().receive_overflow;
    for _ in 0..count {
        assert!(near.send(to, &[DATAGRAM]));
        near.flush();
    }
    await_that("what finds no frame is counted", || far.stats().receive_overflow == before + lost as u64);
    let mut taken = 0;
    await_that("the others are taken", || {
        far.receive_from(0, 64, &mut |_| taken += 1);
        taken == count - lost
    });
    assert_eq!(far.stats().receive_overflow, before + lost as u64);
}

#[test]
fn a_calm_has_few_in_turn_and_a_burst_all_of_them() {
    with_pair("supply", ["", ""], |pair| {
        let mut near = port(pair, End::A, false);
        let mut far = port(pair, End::B, false);
        let to = way(pair, &mut near, false);
        // All are in turn at first.
        burst(&mut near, &mut far, &to, 4 * FEWEST, 0);
        calm(&mut near, &mut far, &to);
        burst(&mut near, &mut far, &to, FEWEST / 2, 0);
        // They are back.
        burst(&mut near, &mut far, &to, 4 * FEWEST, 0);
        calm(&mut near, &mut far, &to);
        burst(&mut near, &mut far, &to, 4 * FEWEST, 3 * FEWEST);
        burst(&mut near, &mut far, &to, 4 * FEWEST, 0);
    });
}

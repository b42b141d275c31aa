//! A station at each end of a veth pair.
#![allow(dead_code, reason = "each binary of tests/ uses its part")]

pub mod station;

use taut_testbed::{End, Pair};
use taut_xdp::Interface;

/// The interface of this end; the thread is there then.
pub fn interface(pair: &Pair, end: End) -> Interface {
    pair.enter(end);
    Interface::named(end.name()).expect("the interface")
}

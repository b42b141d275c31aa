//! A station at each end of a veth pair, and frames made by hand.
#![allow(dead_code, reason = "each binary of tests/ uses its part")]

pub mod frame;
pub mod station;

use taut_testbed::{End, Pair};
use taut_xdp::{Error, Interface, Mode, Program};

/// Why there can be no program here: root of a user namespace loads none.
fn obstacle() -> Option<String> {
    let refused = Program::load(Mode::L3).err();
    refused.filter(|error| matches!(error, Error::NotAllowed { .. })).map(|error| error.to_string())
}

/// As [`taut_testbed::with_pair`], where programs can be loaded.
pub fn with_pair(name: &str, words: [&'static str; 2], test: impl FnOnce(&Pair) + Send + 'static) {
    taut_testbed::with_pair(name, words, obstacle, test);
}

/// The interface of this end; the thread is there then.
pub fn interface(pair: &Pair, end: End) -> Interface {
    pair.enter(end);
    Interface::named(end.name()).expect("the interface")
}

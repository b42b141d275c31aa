//! Samples over IPv6 past the kernel's stack, where there is no IPv4.

use std::process::Command;

use taut::XdpMode;
use taut_testbed::{End, Pair, await_that, ip, with_pair};

use crate::both_past_the_kernel;

/// Takes the addresses of IPv4 from both ends and gives them others.
pub fn has_ipv6_alone(pair: &Pair) {
    for end in End::BOTH {
        pair.enter(end);
        let (name, number) = (end.name(), end.ipv4()[3]);
        ip(&format!("-4 addr flush dev {name}"));
        ip(&format!("addr add fd00:88::{number}/64 dev {name} nodad"));
        await_that("the address of the link is one alone", || {
            let shown = Command::new("ip").args(["-6", "addr", "show", "dev", name]).output().unwrap();
            !String::from_utf8_lossy(&shown.stdout).contains("tentative")
        });
    }
}

fn over_ipv6(pair: &Pair, mode: XdpMode) {
    has_ipv6_alone(pair);
    both_past_the_kernel(pair, mode);
}

#[test]
fn native() {
    with_pair("ipv6::native", ["", ""], |pair| over_ipv6(pair, XdpMode::Native));
}

#[test]
fn generic() {
    with_pair("ipv6::generic", ["", ""], |pair| over_ipv6(pair, XdpMode::Generic));
}

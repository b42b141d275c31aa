//! Samples over IPv6 past the kernel's stack, where there is no IPv4.

use std::process::Command;

use taut::XdpMode;
use taut_testbed::{End, Pair, await_that, ip, with_pair};

use crate::{SIZES, Stream, participant};

/// Takes the addresses of IPv4 from both ends and gives them others.
fn has_ipv6_alone(pair: &Pair) {
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
    let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(mode))));
    stream.is_past_kernel(0);
    stream.is_past_kernel(1);
    stream.answers_go_past_kernel();
    let before = stream.participants.each_ref().map(|of| of.stats());
    stream.carries(&SIZES);
    stream.carries(&[64; 1_000]);
    let after = stream.participants.each_ref().map(|of| of.stats());
    let bytes = SIZES.iter().sum::<usize>() as u64 + 64 * 1_000;
    let [sent, received] = [&after[0], &after[1]].map(|stats| stats.frames.unwrap());
    assert!(sent.bytes_out - before[0].frames.unwrap().bytes_out >= bytes, "{sent:?}");
    assert!(received.bytes_in - before[1].frames.unwrap().bytes_in >= bytes, "{received:?}");
    // The answers come the same way.
    let answers = sent.datagrams_in - before[0].frames.unwrap().datagrams_in;
    assert!(answers > 0, "{sent:?}");
    for frames in [sent, received] {
        assert_eq!([frames.malformed, frames.not_ours, frames.damaged, frames.errors], [0; 4], "{frames:?}");
    }
    let by_kernel = after[1].port.bytes_in - before[1].port.bytes_in;
    assert!(by_kernel < 100_000, "{by_kernel} B");
    drop(stream);
    End::BOTH.into_iter().for_each(|end| pair.await_no_program(end));
}

#[test]
fn native() {
    with_pair("ipv6::native", ["", ""], |pair| over_ipv6(pair, XdpMode::Native));
}

#[test]
fn generic() {
    with_pair("ipv6::generic", ["", ""], |pair| over_ipv6(pair, XdpMode::Generic));
}

//! Frames that are longer than those of Ethernet's usual MTU, and than a chunk of the memory that they lie in.

use taut::XdpMode;
use taut_testbed::{End, Pair, with_losses, with_pair};

use crate::{
    SIZES, Stream, bare, both_past_the_kernel, goes_over_a_bad_cable, one_side_past_the_kernel, participant,
    set_mtu, without_ip,
};

/// In one large chunk; in several; and in as many as a frame may lie in.
const MTUS: [usize; 3] = [3_600, 9_000, 61_326];

fn at_each_mtu(name: &str, carry: impl Fn(&Pair) + Copy + Send + 'static) {
    for mtu in MTUS {
        with_pair(name, ["", ""], move |pair| {
            set_mtu(pair, mtu);
            carry(pair);
        });
    }
}

#[test]
fn native() {
    at_each_mtu("jumbo_native", |pair| both_past_the_kernel(pair, XdpMode::Native));
}

#[test]
fn generic() {
    at_each_mtu("jumbo_generic", |pair| both_past_the_kernel(pair, XdpMode::Generic));
}

#[test]
fn without_ip_native() {
    at_each_mtu("jumbo_without_ip", |pair| without_ip(pair, XdpMode::Native));
}

#[test]
fn a_large_sample_takes_few_frames() {
    with_pair("jumbo_few_frames", ["", ""], |pair| {
        set_mtu(pair, 9_000);
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Native))));
        stream.is_past_kernel(0);
        let datagrams = |stream: &Stream| stream.participants[0].stats().frames.unwrap().datagrams_out;
        let before = datagrams(&stream);
        stream.carries(&[1 << 20]);
        // What was lost is repaired, and heartbeats are sent: no more than a quarter of that.
        let (taken, least) = (datagrams(&stream) - before, (1_u64 << 20) / 9_000);
        assert!((least..least * 5 / 4).contains(&taken), "{taken} datagrams");
    });
}

#[test]
fn either_side_alone() {
    with_pair("jumbo_either_side_alone", ["", ""], |pair| {
        set_mtu(pair, 9_000);
        one_side_past_the_kernel(pair);
    });
}

/// They are fewer than short ones would be.
const LOST: u64 = 15;

#[test]
fn losses_are_repaired() {
    with_losses("jumbo_losses", 20, |pair| {
        set_mtu(pair, 9_000);
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Native))));
        stream.is_past_kernel(0);
        goes_over_a_bad_cable(&mut stream, LOST);
    });
}

#[test]
fn losses_are_repaired_without_ip() {
    with_losses("jumbo_losses_without_ip", 20, |pair| {
        set_mtu(pair, 9_000);
        goes_over_a_bad_cable(&mut bare(pair, XdpMode::Native), LOST);
    });
}

/// What is sent is cut by the MTU of the moment, up to that which the participants began with.
#[test]
fn the_network_becomes_narrower_and_wide_again() {
    with_pair("jumbo_narrower", ["", ""], |pair| {
        set_mtu(pair, 9_000);
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Native))));
        stream.is_past_kernel(0);
        for mtu in [1_500, 3_000, 9_000] {
            set_mtu(pair, mtu);
            stream.carries(&SIZES);
        }
        stream.is_past_kernel(0);
    });
}

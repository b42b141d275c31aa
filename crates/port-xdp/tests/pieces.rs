//! Datagrams whose frames are longer than a chunk.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod common;

use taut_testbed::{End, Pair, ip, with_pair};

use common::{port, received, way};

/// With which the longest frames lie in three chunks.
const MTU: usize = 9_000;
/// Bytes that a chunk sends of a frame.
const CHUNK: usize = 4_096;
/// More than there are chunks to copy into.
const MANY: usize = 3_000;

fn long(len: usize) -> Vec<u8> {
    let mut bytes = b"RTPS, and more: ".to_vec();
    bytes.extend((bytes.len()..len).map(|at| (at * 7 + at / 251) as u8));
    bytes
}

fn come_and_go(pair: &Pair, over_ip: bool) {
    for end in End::BOTH {
        pair.enter(end);
        ip(&format!("link set {} mtu {MTU}", end.name()));
    }
    let mut near = port(pair, End::A, over_ip);
    let mut far = port(pair, End::B, over_ip);
    let to = way(pair, &mut near, over_ip);
    let header = if over_ip { 42 } else { 14 + 8 };
    let longest = MTU + 14 - header;
    // As long as one chunk takes, two and three, and the bytes around; and as the receiver's, which keep something free.
    let sent = [CHUNK, 2 * CHUNK].map(|size| size - header);
    let taken = [3_838, 2 * 3_838].map(|size| size - header);
    let around = |size: usize| (size - 4..=size + 4).collect::<Vec<_>>();
    let lengths: Vec<usize> = sent.into_iter().chain(taken).flat_map(around).collect();
    for len in [lengths, vec![100, longest - 1, longest]].concat() {
        let datagram = long(len);
        assert!(near.send(&to, &[&datagram[..20], &datagram[20..len - 3], &datagram[len - 3..]]), "{len}");
        near.flush();
        assert!(*received(&mut far) == *datagram, "{len}");
    }
    assert!(!near.send(&to, &[&long(longest + 1)]));
    assert_eq!(near.stats().left_to_kernel, 1);
    // All are used again, and of each burst all goes.
    let before = (near.stats(), far.stats());
    let datagrams = [longest, 100, CHUNK, 2 * CHUNK].map(long);
    for round in 0..MANY / datagrams.len() {
        datagrams.iter().for_each(|datagram| assert!(near.send(&to, &[datagram])));
        near.flush();
        for datagram in &datagrams {
            assert!(*received(&mut far) == **datagram, "round {round}");
        }
    }
    let (near, far) = (near.stats(), far.stats());
    let many = MANY as u64;
    assert_eq!((near.datagrams_out - before.0.datagrams_out, near.dropped_full), (many, 0));
    assert_eq!((far.datagrams_in - before.1.datagrams_in, far.damaged, far.malformed), (many, 0, 0));
    // Of four one lies in a chunk.
    assert_eq!(far.copied_in - before.1.copied_in, many / 4 * 3);
    assert_eq!(far.frames_free, before.1.frames_free);
}

#[test]
fn over_ip() {
    with_pair("pieces_over_ip", ["", ""], |pair| come_and_go(pair, true));
}

#[test]
fn without_ip() {
    with_pair("pieces_without_ip", ["", ""], |pair| come_and_go(pair, false));
}

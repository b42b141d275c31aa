//! The program, run by the kernel on frames made by hand.

mod common;

use common::station::{PORT, Station, link_of};
use taut_testbed::frame::{Udp, message, prioritized, tagged};
use taut_testbed::{End, await_that, with_pair};
use taut_xdp::{Error, Link, Mode, Program, Verdict};

fn verdict(link: &Link, frame: &[u8]) -> Verdict {
    link.program().test_run(frame, 1).expect("it runs").verdict
}

fn with_program(name: &str, mode: Mode, test: impl FnOnce(&Link) + Send + 'static) {
    with_program_of(0, name, mode, test);
}

fn with_program_of(network: u16, name: &str, mode: Mode, test: impl FnOnce(&Link) + Send + 'static) {
    with_pair(name, ["", ""], move |pair| {
        let link = link_of(network, pair, End::A, mode, None);
        let station = Station::open(&link, 0);
        test(&link);
        drop(station);
        let udp = Udp::to_port(PORT);
        for frame in [udp.ipv4(&message(1, 64)), udp.l2(&message(1, 64))] {
            await_that("what has no socket passes", || verdict(&link, &frame) == Verdict::Pass);
        }
    });
}

#[test]
fn l3_takes_messages_to_our_ports_only() {
    with_program("l3_takes_messages_to_our_ports_only", Mode::L3, |link| {
        let (ours, others, rtps) = (Udp::to_port(PORT), Udp::to_port(PORT + 1), message(1, 64));
        for make in [Udp::ipv4, Udp::ipv6] {
            let says = |frame: Vec<u8>| [verdict(link, &frame), verdict(link, &prioritized(&frame))];
            assert_eq!(says(make(&ours, &rtps)), [Verdict::Redirect; 2]);
            assert_eq!(says(make(&ours, b"RTPS")), [Verdict::Redirect; 2]);
            assert_eq!(says(make(&others, &rtps)), [Verdict::Pass; 2]);
            assert_eq!(says(make(&Udp::to_port(PORT.swap_bytes()), &rtps)), [Verdict::Pass; 2]);
            assert_eq!(says(make(&ours, b"RTPX and so on")), [Verdict::Pass; 2]);
            assert_eq!(says(make(&ours, b"")), [Verdict::Pass; 2]);
            // The message is padding of the frame.
            let empty = make(&ours, b"");
            assert_eq!(says([empty, rtps.clone()].concat()), [Verdict::Pass; 2]);
            assert_eq!(
                verdict(link, &prioritized(&prioritized(&make(&ours, &rtps)))),
                Verdict::Pass,
                "two tags"
            );
            let of_another = tagged(&make(&ours, &rtps));
            assert_eq!(
                verdict(link, &of_another),
                Verdict::Pass,
                "it is for the kernel's device of the network"
            );
        }
        assert_eq!(verdict(link, &ours.l2(&rtps)), Verdict::Pass);
        for (to, make) in others.destinations().into_iter().zip([Udp::ipv4, Udp::ipv6]) {
            link.program().add(to, 1).unwrap();
            assert_eq!(verdict(link, &make(&others, &rtps)), Verdict::Pass, "it came by another queue");
            assert_eq!(link.program().remove(to, 1), Ok(true));
            link.program().add(to, 0).unwrap();
            assert_eq!(verdict(link, &make(&others, &rtps)), Verdict::Redirect);
            assert_eq!(link.program().remove(to, 0), Ok(true));
            assert_eq!(link.program().remove(to, 0), Ok(false));
            assert_eq!(verdict(link, &make(&others, &rtps)), Verdict::Pass);
        }
        // For another host, by way of this one.
        for at in 30..34 {
            let mut routed = ours.ipv4(&rtps);
            routed[at] ^= 1;
            assert_eq!(verdict(link, &routed), Verdict::Pass, "byte {at}");
        }
        for at in 38..54 {
            let mut routed = ours.ipv6(&rtps);
            routed[at] ^= 1;
            assert_eq!(verdict(link, &routed), Verdict::Pass, "byte {at}");
        }
    });
}

/// What is longer is a row of datagrams that nobody has cut, or of a network that takes more than we were told.
#[test]
fn l3_takes_packets_as_long_as_the_mtu_at_most() {
    with_program("l3_takes_packets_as_long_as_the_mtu_at_most", Mode::L3, |link| {
        let udp = Udp::to_port(PORT);
        for len in [1_400, 1_451, 1_452, 1_453, 1_471, 1_472, 1_473, 2_000, 3_000] {
            let expected = |longest| if len <= longest { Verdict::Redirect } else { Verdict::Pass };
            let rtps = message(1, len);
            for (frame, longest) in [(udp.ipv4(&rtps), 1_472), (udp.ipv6(&rtps), 1_452)] {
                let says = [verdict(link, &frame), verdict(link, &prioritized(&frame))];
                assert_eq!(says, [expected(longest); 2], "{len} bytes");
            }
        }
    });
}

#[test]
fn l3_leaves_what_is_not_plain_to_the_kernel() {
    with_program("l3_leaves_what_is_not_plain_to_the_kernel", Mode::L3, |link| {
        let (v4, v6) = (Udp::to_port(PORT).ipv4(&message(1, 64)), Udp::to_port(PORT).ipv6(&message(1, 64)));
        let with = |frame: &[u8], at: usize, byte: u8| {
            let mut frame = frame.to_vec();
            frame[at] = byte;
            [verdict(link, &frame), verdict(link, &prioritized(&frame))]
        };
        assert_eq!(with(&v4, 20, 0x00), [Verdict::Redirect; 2], "it may be fragmented, and is not");
        assert_eq!(with(&v4, 39, 12), [Verdict::Redirect; 2], "a length that ends there");
        for (at, byte, what) in [
            (20, 0x20, "more fragments"),
            (20, 0x60, "more fragments, and not to be fragmented"),
            (20, 0x10, "offset, high bits"),
            (21, 0x01, "offset, low bits"),
            (14, 0x46, "options"),
            (14, 0x55, "version 5"),
            (23, 6, "TCP"),
            (39, 11, "a length that ends within what a message begins with"),
            (12, 0x88, "another ethertype"),
        ] {
            assert_eq!(with(&v4, at, byte), [Verdict::Pass; 2], "{what}");
        }
        assert_eq!(with(&v6, 14, 0x6f), [Verdict::Redirect; 2], "a traffic class");
        for (at, byte, what) in [
            (14, 0x40, "version 4"),
            (59, 11, "a length that ends within what a message begins with"),
            (20, 0, "hop-by-hop options"),
            (20, 44, "a fragment"),
            (20, 60, "destination options"),
        ] {
            assert_eq!(with(&v6, at, byte), [Verdict::Pass; 2], "{what}");
        }
        // With options, where UDP would stand without.
        let options = [&v4[..34], &[1, 1, 1, 1], &v4[34..]].concat();
        assert_eq!(with(&options, 14, 0x46), [Verdict::Pass; 2]);
    });
}

#[test]
fn l2_takes_its_ethertype_only() {
    with_program("l2_takes_its_ethertype_only", Mode::L2, |link| {
        let (udp, rtps) = (Udp::to_port(PORT), message(1, 64));
        assert_eq!(verdict(link, &udp.l2(&rtps)), Verdict::Redirect);
        assert_eq!(verdict(link, &prioritized(&udp.l2(&rtps))), Verdict::Redirect);
        assert_eq!(verdict(link, &prioritized(&prioritized(&udp.l2(&rtps)))), Verdict::Pass, "two tags");
        assert_eq!(verdict(link, &tagged(&udp.l2(&rtps))), Verdict::Pass, "of another network");
        assert_eq!(verdict(link, &udp.ipv4(&rtps)), Verdict::Pass);
        let mut second = udp.l2(&rtps);
        second[13] += 1;
        assert_eq!(verdict(link, &second), Verdict::Pass, "the other experimental ethertype");
        let to = udp.destinations()[0];
        assert_eq!(link.program().add(to, 0), Ok(()));
        assert_eq!(link.program().remove(to, 0), Ok(false));
    });
}

/// What is of no network, or of another one, is for the kernel and its devices.
#[test]
fn one_of_a_network_takes_its_frames_only() {
    for mode in [Mode::L3, Mode::L2] {
        with_program_of(5, "one_of_a_network_takes_its_frames_only", mode, move |link| {
            let (udp, rtps) = (Udp::to_port(PORT), message(1, 64));
            let frames = match mode {
                Mode::L3 => vec![udp.ipv4(&rtps), udp.ipv6(&rtps)],
                Mode::L2 => vec![udp.l2(&rtps)],
            };
            for frame in frames {
                assert_eq!(verdict(link, &tagged(&frame)), Verdict::Redirect);
                for (at, byte, what) in [(14, 0x00, "another priority"), (14, 0x10, "it may be dropped")] {
                    let mut other = tagged(&frame);
                    other[at] = byte;
                    assert_eq!(verdict(link, &other), Verdict::Redirect, "{what}");
                }
                for (at, byte, what) in [(14, 0xc5, "VLAN 1285"), (15, 6, "VLAN 6"), (13, 0xa8, "802.1ad")] {
                    let mut other = tagged(&frame);
                    (other[12], other[at]) = (if at == 13 { 0x88 } else { 0x81 }, byte);
                    assert_eq!(verdict(link, &other), Verdict::Pass, "{what}");
                }
                assert_eq!(verdict(link, &frame), Verdict::Pass, "of none");
                assert_eq!(verdict(link, &prioritized(&frame)), Verdict::Pass, "a priority only");
                assert_eq!(verdict(link, &tagged(&tagged(&frame))), Verdict::Pass, "two tags");
                assert_eq!(verdict(link, &tagged(&prioritized(&frame))), Verdict::Pass, "two tags");
            }
            let shortest = if mode == Mode::L3 { 50 } else { 18 };
            let frame = if mode == Mode::L3 { udp.ipv4(&rtps) } else { udp.l2(&rtps) };
            cut(link, &tagged(&frame), shortest);
        });
    }
}

#[test]
fn no_network_has_a_number_that_no_tag_may_have() {
    for network in [4_095, 4_096, u16::MAX] {
        let error = Program::load_for(Mode::L2, network, 1_500).err().unwrap();
        let what = format!("no VLAN {network} can be: choose one below 4095");
        assert_eq!(error, Error::BadParameter(what));
    }
}

/// The rules, said again without the program: is the frame of this network redirected?
fn is_ours(mode: Mode, network: u16, frame: &[u8]) -> bool {
    let half = |at: usize| frame.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    let (ethertype, ip) = match half(12) {
        Some(0x8100) if half(14).is_none_or(|tag| tag & 0x0fff != network) => return false,
        Some(0x8100) => (half(16), 18),
        _ if network != 0 => return false,
        other => (other, 14),
    };
    let Some(packet) = frame.get(ip..) else { return false };
    let (datagram, longest) = match (mode, ethertype, packet) {
        (Mode::L2, found, _) => return found == Some(taut_xdp::ETHERTYPE),
        (Mode::L3, Some(0x0800), [0x45, _, _, _, _, _, high, low, _, 17, ..]) => {
            let to = packet.get(16..20);
            if high & 0x3f != 0
                || *low != 0
                || ![[10, 0, 0, 2], End::A.ipv4()].iter().any(|ours| to == Some(ours))
            {
                return false;
            }
            (packet.get(20..), 1_480)
        }
        (Mode::L3, Some(0x86dd), [version, _, _, _, _, _, 17, ..])
            if version >> 4 == 6 && packet.get(24..40) == Some(&[0xfd; 16]) =>
        {
            (packet.get(40..), 1_460)
        }
        _ => return false,
    };
    let Some([_, _, port @ .., b'R', b'T', b'P', b'S']) = datagram.and_then(|bytes| bytes.get(..12)) else {
        return false;
    };
    port[..2] == PORT.to_be_bytes() && (12..=longest).contains(&u16::from_be_bytes([port[2], port[3]]))
}

/// Frames that are ours or nearly so, with a few bytes changed and the end cut off, all from one seed.
fn at_random(link: &Link, mode: Mode, network: u16) {
    const TRIES: usize = 50_000;
    let (udp, rtps) = (Udp::to_port(PORT), message(1, 24));
    let plain = [udp.ipv4(&rtps), udp.ipv6(&rtps), udp.l2(&rtps)];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: usize| {
        // xorshift64
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 33) as usize % limit
    };
    let mut redirected = 0;
    for number in 0..TRIES {
        let mut frame = plain[below(3)].clone();
        if network > 0 || below(2) == 0 {
            frame = prioritized(&frame);
            frame[15] = if below(4) > 0 { network as u8 } else { below(8) as u8 };
        }
        for _ in 0..below(3) {
            let at = 12 + below(frame.len() - 12);
            frame[at] = [below(256) as u8, frame[at] ^ 1 << below(8)][below(2)];
        }
        if below(3) == 0 {
            frame.truncate(14 + below(frame.len() - 13));
        }
        let expected = if is_ours(mode, network, &frame) { Verdict::Redirect } else { Verdict::Pass };
        redirected += usize::from(expected == Verdict::Redirect);
        assert_eq!(verdict(link, &frame), expected, "{mode:?}, frame {number}: {frame:02x?}");
    }
    assert!((TRIES / 10..TRIES / 10 * 9).contains(&redirected), "{redirected} of {TRIES}: a test of both");
}

#[test]
fn l3_frames_at_random() {
    for network in [0, 5] {
        with_program_of(network, "l3_frames_at_random", Mode::L3, move |link| {
            at_random(link, Mode::L3, network);
        });
    }
}

#[test]
fn l2_frames_at_random() {
    for network in [0, 5] {
        with_program_of(network, "l2_frames_at_random", Mode::L2, move |link| {
            at_random(link, Mode::L2, network);
        });
    }
}

/// As short as a frame may be that is redirected, and each shorter one passes.
fn cut(link: &Link, frame: &[u8], shortest: usize) {
    for len in 14..=frame.len() {
        let expected = if len < shortest { Verdict::Pass } else { Verdict::Redirect };
        assert_eq!(verdict(link, &frame[..len]), expected, "{len} of {} bytes", frame.len());
    }
    // The kernel runs no program on less than Ethernet's header.
    assert!(link.program().test_run(&frame[..13], 1).is_err());
}

#[test]
fn l3_frames_cut_at_every_length() {
    with_program("l3_frames_cut_at_every_length", Mode::L3, |link| {
        let (udp, rtps) = (Udp::to_port(PORT), message(1, 64));
        cut(link, &udp.ipv4(&rtps), 46);
        cut(link, &prioritized(&udp.ipv4(&rtps)), 50);
        cut(link, &udp.ipv6(&rtps), 66);
        cut(link, &prioritized(&udp.ipv6(&rtps)), 70);
    });
}

#[test]
fn l2_frames_cut_at_every_length() {
    with_program("l2_frames_cut_at_every_length", Mode::L2, |link| {
        cut(link, &Udp::to_port(PORT).l2(&message(1, 64)), 14);
        cut(link, &prioritized(&Udp::to_port(PORT).l2(&message(1, 64))), 18);
    });
}

#[test]
fn many_runs() {
    with_program("many_runs", Mode::L3, |link| {
        for (port, expected) in [(PORT, Verdict::Redirect), (PORT + 1, Verdict::Pass)] {
            let frame = Udp::to_port(port).ipv4(&message(1, 64));
            let run = link.program().test_run(&frame, 100_000).expect("it runs");
            assert_eq!(run.verdict, expected, "the last one as the first");
            println!("{expected:?}: {} ns", run.duration_ns);
        }
    });
}

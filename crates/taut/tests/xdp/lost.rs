//! An interface that is removed, and made anew, or gets another address of Ethernet: samples go by sockets meanwhile, and
//! past the kernel then.

use std::fs::File;
use std::os::fd::AsRawFd;

use taut::{Config, DomainParticipant, Driver, Duration, XdpLayer, XdpMode};
use taut_testbed::{End, LIMIT, Pair, await_that, ip, with_pair};

use crate::{Blob, SIZES, Stream, config, participant};

/// The cable, and with it both ends of it.
fn remove(pair: &Pair) {
    pair.enter(End::A);
    ip("link del xa");
}

/// Another one with the same names.
fn make_anew(pair: &Pair, over_ip: bool) {
    pair.enter(End::B);
    let far = File::open("/proc/thread-self/ns/net").unwrap();
    pair.enter(End::A);
    let far = format!("/proc/{}/fd/{}", std::process::id(), far.as_raw_fd());
    ip(&format!("link add xa type veth peer name xb netns {far}"));
    for end in End::BOTH {
        pair.enter(end);
        if over_ip {
            ip(&format!("addr add 10.88.0.{}/24 dev {}", end.ipv4()[3], end.name()));
        }
        ip(&format!("link set {} up", end.name()));
    }
}

fn is_lost(stream: &Stream) {
    let is_lost = |of: &DomainParticipant| of.stats().xdp.is_none();
    await_that("it is noticed", || stream.participants.iter().all(is_lost));
}

/// How many have come and gone by the queues that there are now.
fn frames(of: &DomainParticipant) -> u64 {
    let queues = of.stats().xdp.map(|xdp| xdp.queues).unwrap_or_default();
    queues.iter().map(|of| of.frames_in + of.frames_out).sum()
}

/// Do frames come and go by the queues that there are now?
fn has_frames(of: &DomainParticipant) -> bool {
    let queues = of.stats().xdp.map(|xdp| xdp.queues).unwrap_or_default();
    queues.iter().any(|of| of.frames_in > 0) && queues.iter().any(|of| of.frames_out > 0)
}

fn is_made_anew(pair: &Pair, mut stream: Stream) {
    stream.is_past_kernel(0);
    for _ in 0..2 {
        let counts = stream.participants.each_ref().map(|of| of.stats().frames.unwrap().datagrams_out);
        remove(pair);
        is_lost(&stream);
        make_anew(pair, true);
        stream.carries(&SIZES);
        stream.carries(&[64; 5_000]);
        stream.is_past_kernel(0);
        stream.is_past_kernel(1);
        // What is taken may be acknowledged later, and with what follows.
        await_that("samples and answers go by the new queues", || {
            stream.carries(&[100]);
            stream.participants.iter().all(has_frames)
        });
        stream.carries(&SIZES);
        let after = stream.participants.each_ref().map(|of| of.stats().frames.unwrap().datagrams_out);
        assert!(counts.iter().zip(after).all(|(before, after)| *before < after), "the counts go on");
    }
}

#[test]
fn the_interface_is_made_anew() {
    with_pair("the_interface_is_made_anew", ["", ""], |pair| {
        is_made_anew(pair, Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Auto)))));
        End::BOTH.into_iter().for_each(|end| pair.await_no_program(end));
    });
}

/// Who polls looks at queues, which have to go for that.
#[test]
fn the_interface_is_made_anew_for_who_polls() {
    with_pair("the_interface_is_made_anew_for_who_polls", ["", ""], |pair| {
        let participants = End::BOTH.map(|end| {
            pair.enter(end);
            let config = Config { driver: Driver::Polling, ..config(end, Some(XdpMode::Auto)) };
            DomainParticipant::with_config(&config).unwrap()
        });
        is_made_anew(pair, Stream::new(participants));
    });
}

/// It is the same one, whatever it is called.
#[test]
fn the_interface_is_renamed() {
    with_pair("the_interface_is_renamed", ["", ""], |pair| {
        let participants = End::BOTH.map(|end| {
            pair.enter(end);
            let config = Config { interfaces: Vec::new(), ..config(end, Some(XdpMode::Auto)) };
            DomainParticipant::with_config(&config).unwrap()
        });
        let mut stream = Stream::new(participants);
        stream.is_past_kernel(0);
        stream.is_past_kernel(1);
        let followed = |stream: &Stream| stream.participants[1].stats().port.changes_followed;
        let before = followed(&stream);
        pair.enter(End::B);
        for words in ["set xb down", "set xb name xz", "set xz up"] {
            ip(&format!("link {words}"));
        }
        await_that("it is followed", || followed(&stream) > before);
        stream.is_past_kernel(1);
        stream.carries(&SIZES);
    });
}

/// Gives this end another address of Ethernet, which the kernel at the other end is to ask for. The thread stays there, as
/// it may be the one to open the interface anew.
fn set_mac(pair: &Pair, end: End, mac: &str) {
    pair.enter(end);
    ip(&format!("link set {} address {mac}", end.name()));
    pair.enter(end.other());
    ip(&format!("neigh flush dev {}", end.other().name()));
    pair.enter(end);
}

#[test]
fn the_address_of_ethernet_changes() {
    for mode in [XdpMode::Native, XdpMode::Generic] {
        with_pair("the_address_of_ethernet_changes", ["", ""], move |pair| {
            let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(mode))));
            stream.is_past_kernel(0);
            stream.is_past_kernel(1);
            for (end, mac) in [(End::B, "02:00:00:00:88:02"), (End::A, "02:00:00:00:88:01")] {
                set_mac(pair, end, mac);
                stream.carries(&SIZES);
                stream.carries(&[64; 1_000]);
                stream.is_past_kernel(0);
                stream.is_past_kernel(1);
            }
        });
    }
}

/// The kernel of the other end does not doubt what it knows, and nobody tells it of the new one but by asking it.
#[test]
fn another_address_of_ethernet_of_one_who_only_listens() {
    with_pair("another_address_of_one_who_only_listens", ["", ""], |pair| {
        pair.enter(End::A);
        for (name, value) in [("base_reachable_time_ms", "3600000"), ("locktime", "0")] {
            std::fs::write(format!("/proc/sys/net/ipv4/neigh/xa/{name}"), value).unwrap();
        }
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Auto))));
        stream.is_past_kernel(0);
        stream.is_past_kernel(1);
        for mac in ["02:00:00:00:88:02", "02:00:00:00:88:03"] {
            pair.enter(End::B);
            ip(&format!("link set xb address {mac}"));
            stream.carries(&SIZES);
            stream.is_past_kernel(0);
            stream.is_past_kernel(1);
        }
    });
}

/// The link goes down just after it has another address, while the interface is opened anew. What is written meanwhile arrives, and nobody is found anew.
fn stays_matched(pair: &Pair, mut stream: Stream) {
    for number in 1..6 {
        for end in End::BOTH {
            stream.carries(&SIZES);
            // With what is not acknowledged the write below may have no room until the link is up again.
            stream.writer.wait_for_acknowledgments(LIMIT).unwrap();
            set_mac(pair, end, &format!("02:00:00:00:88:{number}{}", end as usize));
            ip(&format!("link set {} down", end.name()));
            stream.writer.write(&Blob::new(stream.next, 1_000)).unwrap();
            ip(&format!("link set {} up", end.name()));
            stream.reader.wait(LIMIT).unwrap();
            let got = stream.reader.take().unwrap();
            assert_eq!(got[0].data, Some(Blob::new(stream.next, 1_000)));
            stream.next += 1;
        }
    }
    stream.carries(&SIZES);
    stream.is_past_kernel(0);
    stream.is_past_kernel(1);
    assert_eq!(stream.writer.publication_matched_status().total_count, 1);
    assert_eq!(stream.reader.subscription_matched_status().total_count, 1);
}

#[test]
fn the_address_of_ethernet_changes_and_the_link_goes_down() {
    for mode in [XdpMode::Native, XdpMode::Generic] {
        with_pair("the_address_changes_and_the_link_goes_down", ["", ""], move |pair| {
            let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(mode))));
            stream.is_past_kernel(0);
            stays_matched(pair, stream);
        });
    }
}

#[test]
fn the_address_of_ethernet_changes_and_the_link_goes_down_without_ip() {
    with_pair("the_address_changes_and_the_link_goes_down_bare", ["", ""], |pair| {
        stays_matched(pair, without_ip(pair));
    });
}

/// The other one sends to the old station until it is told the new one.
#[test]
fn the_address_of_ethernet_changes_without_ip() {
    with_pair("the_address_of_ethernet_changes_without_ip", ["", ""], |pair| {
        let mut stream = without_ip(pair);
        for (end, mac) in [(End::B, "02:00:00:00:88:02"), (End::A, "02:00:00:00:88:01")] {
            stream.carries(&SIZES);
            stream.writer.wait_for_acknowledgments(LIMIT).unwrap();
            let of = &stream.participants[end as usize];
            let before = frames(of);
            set_mac(pair, end, mac);
            // It counts from zero.
            await_that("it has another queue", || frames(of) < before);
            await_that("both go by the new station", || {
                stream.carries(&[100]);
                has_frames(&stream.participants[end as usize])
            });
        }
        stream.carries(&SIZES);
    });
}

/// A participant at each end that has no address of IP.
fn without_ip(pair: &Pair) -> Stream {
    Stream::new(End::BOTH.map(|end| {
        pair.enter(end);
        ip(&format!("addr flush dev {}", end.name()));
        let config = Config {
            interfaces: Vec::new(),
            xdp_layer: XdpLayer::Bare,
            announcement_period: Duration::from_secs(1),
            ..config(end, Some(XdpMode::Auto))
        };
        DomainParticipant::with_config(&config).unwrap()
    }))
}

/// Stations are others then, which all are told; who was not back yet hears it with the next announcement.
#[test]
fn the_interface_is_made_anew_without_ip() {
    with_pair("the_interface_is_made_anew_without_ip", ["", ""], |pair| {
        let mut stream = without_ip(pair);
        stream.carries(&SIZES);
        // An acknowledgment that is lost with the interface leaves no room for more until the lease ends.
        stream.writer.wait_for_acknowledgments(LIMIT).unwrap();
        remove(pair);
        is_lost(&stream);
        stream.writer.write(&Blob::new(stream.next, 1_000)).unwrap();
        make_anew(pair, false);
        await_that("they are back", || stream.participants.iter().all(|of| of.stats().xdp.is_some()));
        await_that("what was written meanwhile arrives", || {
            let taken = stream.reader.take().unwrap();
            taken.iter().any(|sample| sample.data == Some(Blob::new(stream.next, 1_000)))
        });
        stream.next += 1;
        stream.carries(&SIZES);
    });
}

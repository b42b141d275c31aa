//! Frames by the kernel's packet sockets, over two virtual interfaces with a cable.

mod common;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{CHILD, eal, frame, number_of, open, send, start};
use nix::unistd::{geteuid, setuid};
use taut_dpdk::{Burst, Device, DeviceConfig, Error};
use taut_testbed::frame::{prioritized, tagged};
use taut_testbed::{End, Pair, await_that, with_pair};

/// A user who may nothing that others may not.
const NOBODY: u32 = 65_534;

/// A device at this end, by a number that no other test has.
fn device(pair: &Pair, end: End, number: u32) -> Device {
    pair.enter(end);
    open(&format!("net_af_packet{number},iface={}", end.name())).expect("the interface is there")
}

fn cross(from: &mut Device, to: &mut Device) {
    let mut burst = Burst::new();
    for first in (0..1_000).step_by(100) {
        let mut waiting: BTreeSet<u32> = (first..first + 100).collect();
        send(from, waiting.iter().map(|number| frame(*number, 60 + *number as usize % 1_400)));
        await_that("all come", || {
            to.receive(0, &mut burst);
            // What the kernel says of itself comes too.
            for number in burst.iter().filter_map(number_of) {
                waiting.remove(&number);
            }
            burst.clear();
            waiting.is_empty()
        });
    }
}

#[test]
fn frames_cross_both_ways() {
    with_pair("frames_cross_both_ways", ["", ""], |pair| {
        let (mut a, mut b) = (device(pair, End::A, 0), device(pair, End::B, 1));
        assert_eq!((a.driver(), a.mtu(), a.link().is_up), ("net_af_packet", 1_500, true));
        assert_ne!(a.mac(), [0; 6]);
        assert_ne!(a.mac(), b.mac());
        cross(&mut a, &mut b);
        cross(&mut b, &mut a);
        assert!(a.statistics().tx_frames >= 1_000 && b.statistics().rx_frames >= 1_000);
    });
}

/// What the kernel says of this end.
fn shown(pair: &Pair) -> String {
    pair.enter(End::A);
    let shown = Command::new("ip").args(["-d", "-o", "link", "show", "xa"]).output().expect("iproute2");
    String::from_utf8_lossy(&shown.stdout).into_owned()
}

/// It takes all frames, and by no flag that would stay.
fn takes_all(shown: &str) -> bool {
    shown.contains("promiscuity 1 ") && !shown.contains("PROMISC")
}

/// The child of the test below; nothing when it is run alone.
#[test]
fn receives_groups() {
    let Some(device) = std::env::var(CHILD).ok() else {
        return println!("LEFT OUT: it is a child of another test");
    };
    let mut device = open(&device).expect("the interface is there");
    device.receive_groups().expect("it can");
    println!("\nreceives");
    loop {
        std::thread::park();
    }
}

#[test]
fn one_that_is_killed_leaves_the_interface_as_it_was() {
    with_pair("one_that_is_killed_leaves_the_interface_as_it_was", ["", ""], |pair| {
        let before = shown(pair);
        let mut child = start("receives_groups", "net_af_packet8,iface=xa", Stdio::inherit());
        child.await_line("receives");
        let meanwhile = shown(pair);
        assert!(takes_all(&meanwhile), "{meanwhile}");
        child.kill();
        assert_eq!(shown(pair), before);
    });
}

#[test]
fn the_kernel_keeps_its_interface() {
    with_pair("the_kernel_keeps_its_interface", ["", ""], |pair| {
        let ping = || {
            pair.enter(End::A);
            let from = std::net::UdpSocket::bind(("10.88.0.1", 0)).unwrap();
            pair.enter(End::B);
            let to = std::net::UdpSocket::bind(("10.88.0.2", 7_000)).unwrap();
            to.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            from.send_to(b"hello", "10.88.0.2:7000").unwrap();
            assert_eq!(to.recv(&mut [0; 10]).unwrap(), 5);
        };
        let before = shown(pair);
        let mut here = device(pair, End::A, 2);
        here.receive_groups().expect("it can");
        let meanwhile = shown(pair);
        assert!(takes_all(&meanwhile), "{meanwhile}");
        ping();
        pair.enter(End::A);
        drop(here);
        ping();
        assert!(before.contains("mtu 1500") && shown(pair) == before, "{before}{}", shown(pair));
    });
}

/// The kernel has them beside the frames, and some drivers as well.
#[test]
fn tags_stay_in_frames() {
    with_pair("tags_stay_in_frames", ["", ""], |pair| {
        let mut from = device(pair, End::B, 6);
        let frames = [60, 400, 1_514].map(|len| frame(len as u32, len));
        let sent = frames.iter().flat_map(|frame| [frame.clone(), tagged(frame), prioritized(frame)]);
        let sent: Vec<_> = sent.collect();
        for (number, driver) in [(6, "net_pcap"), (7, "net_af_packet")] {
            pair.enter(End::A);
            let mut to = open(&format!("{driver}{number},iface=xa")).expect("the interface is there");
            let (mut burst, mut waiting) = (Burst::new(), sent.clone());
            send(&mut from, sent.clone());
            await_that("all come as they were", || {
                to.receive(0, &mut burst);
                burst.iter().for_each(|came| waiting.retain(|frame| frame != came));
                burst.clear();
                waiting.is_empty()
            });
        }
    });
}

/// The driver of libpcap has a station of its own, which is the same in all processes, unless it is told otherwise.
#[test]
fn each_interface_is_a_station() {
    with_pair("each_interface_is_a_station", ["", ""], |pair| {
        let stations = End::BOTH.map(|end| {
            pair.enter(end);
            let shown =
                Command::new("ip").args(["-o", "link", "show", end.name()]).output().expect("iproute2");
            let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
            let device = open(&format!("net_pcap{},iface={}", end as u8, end.name())).expect("it is there");
            let station = device.mac().map(|byte| format!("{byte:02x}")).join(":");
            assert!(shown.contains(&format!("link/ether {station} ")), "{station}: {shown}");
            station
        });
        assert_ne!(stations[0], stations[1]);
        pair.enter(End::A);
        let made_up = open("net_pcap2,iface=xa,phy_mac=0").expect("it is there").mac();
        assert_eq!(made_up[..5], *b"\x02pcap", "it was asked for");
    });
}

/// The kernel spreads what comes over as many sockets as the driver has queues, looked at or not.
#[test]
fn queues_that_nobody_looks_at_are_refused() {
    with_pair("queues_that_nobody_looks_at_are_refused", ["", ""], |pair| {
        pair.enter(End::A);
        let (spread, both) =
            ("net_af_packet5,iface=xa,qpairs=2", "net_pcap5,rx_iface=xa,rx_iface=lo,tx_iface=xa");
        for device in [spread, both] {
            let told = open(device).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(
                told.contains("has frames come by 2 queues, of which 1 would") && told.contains("`qpairs`"),
                "{device}: {told}"
            );
        }
        let config = DeviceConfig { rx_queues: 2, ..DeviceConfig::default() };
        assert_eq!(Device::open(eal(), spread, &config).unwrap().queues(), (2, 1));
    });
}

/// The child of the test below; nothing when it is run alone.
#[test]
fn opens_without_privileges() {
    if std::env::var_os(CHILD).is_none() {
        return println!("LEFT OUT: it is a child of another test");
    }
    if geteuid().is_root() {
        setuid(NOBODY.into()).expect("root may");
    }
    let error = open("net_af_packet4,iface=lo").err().expect("it is not allowed").to_string();
    assert!(error.contains("Could not open AF_PACKET socket") && error.contains("CAP_NET_RAW"), "{error}");
}

#[test]
fn what_packet_sockets_need_is_told() {
    start("opens_without_privileges", "", Stdio::inherit()).output();
}

#[test]
fn there_is_no_such_interface() {
    with_pair("there_is_no_such_interface", ["", ""], |pair| {
        pair.enter(End::B);
        let error = open("net_af_packet3,iface=xa").err().expect("it is at the other end");
        assert!(matches!(error, Error::DeviceRefused { .. }), "{error:?}");
        assert!(error.to_string().contains("correct its arguments"), "{error}");
        drop(device(pair, End::A, 3));
    });
}

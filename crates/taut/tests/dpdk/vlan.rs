//! Devices whose frames have the tag of a VLAN (IEEE 802.1Q), by packet sockets: the kernel has seen the tags of what comes.

use taut::{Config, DomainParticipant};
use taut_testbed::vlan::{count_tags, counted, name, with_vlans};
use taut_testbed::{End, Pair, await_that, ip, with_pair};

use crate::{IP, IPV6, send, send_with};

fn device(pair: &Pair, end: End, number: u32, vlan: Option<u16>, address: &str) -> DomainParticipant {
    pair.enter(end);
    ip(&format!("address flush dev {}", end.name()));
    let config = Config {
        dpdk_device: format!("net_af_packet{number},iface={}", end.name()),
        dpdk_address: address.into(),
        dpdk_vlan: vlan,
        dpdk_priority_pcp: vec![(1, 3), (100, 6)],
        // In this process they would not need the network.
        local: false,
        report: false,
        ..Config::default()
    };
    DomainParticipant::with_config(&config).unwrap()
}

#[test]
fn devices_in_a_vlan() {
    with_pair("devices_in_a_vlan", ["", ""], |pair| {
        let tags = [0, 3, 6].map(|priority| format!("vlan id 5 vlan pcp {priority}"));
        let others = ["vlan id != 5", "ether type 0x88b5", "ether type ip udp dport 7411"];
        count_tags(pair, End::B, &[&tags[..], &others.map(String::from)].concat());
        let mut before = vec![0; 6];
        for (number, addresses) in [(40, ["", ""]), (42, IP), (44, IPV6)] {
            let near = device(pair, End::A, number, Some(5), addresses[0]);
            let far = device(pair, End::B, number + 1, Some(5), addresses[1]);
            for (at, priority) in [(0, 0), (1, 50), (2, 100)] {
                send_with(&near, &far, &format!("There{priority}"), priority);
                let now = counted(pair, End::B);
                assert!(now[at] - before[at] > 700, "priority {priority}: {now:?} after {before:?}");
                let others = (0..3).filter(|other| *other != at && *other != 0);
                assert!(others.clone().all(|other| now[other] == before[other]), "{now:?} after {before:?}");
                before = now;
            }
            send(&far, &near, "Back");
            assert_eq!(before[3..], [0; 3], "without that tag");
            for of in [&near, &far] {
                let frames = of.stats().frames.unwrap();
                assert_eq!([frames.malformed, frames.damaged, frames.errors], [0; 3], "{frames:?}");
            }
        }
    });
}

#[test]
fn devices_in_other_vlans_do_not_meet() {
    with_pair("devices_in_other_vlans_do_not_meet", ["", ""], |pair| {
        let near = device(pair, End::A, 46, Some(5), IP[0]);
        for (number, vlan) in [(47, Some(6)), (48, None)] {
            let far = device(pair, End::B, number, vlan, IP[1]);
            let before = near.stats().frames.unwrap().not_ours;
            let refused = |of: &DomainParticipant| of.stats().frames.unwrap().not_ours;
            await_that("they hear each other", || refused(&near) > before + 5 && refused(&far) > 5);
            for of in [&near, &far] {
                let frames = of.stats().frames.unwrap();
                assert_eq!((frames.datagrams_in, frames.conflicts), (0, 0), "{frames:?}");
            }
        }
    });
}

/// The peer has sockets, on an interface of that network.
#[test]
fn a_device_and_the_interface_of_a_vlan() {
    with_vlans("dpdk: a_device_and_the_interface_of_a_vlan", |pair| {
        pair.enter(End::A);
        ip(&format!("link del {}", name(End::A)));
        let device = device(pair, End::A, 49, Some(5), "10.89.5.1/24");
        pair.enter(End::B);
        // What one call sends is cut into frames before it is on the cable.
        ip("link set xb gso_max_segs 1");
        let sockets =
            Config { interfaces: vec![name(End::B)], local: false, report: false, ..Config::default() };
        let sockets = DomainParticipant::with_config(&sockets).unwrap();
        send(&device, &sockets, "There");
        send(&sockets, &device, "Back");
        let frames = device.stats().frames.unwrap();
        assert!(frames.control > 0, "the kernel has asked for our station: {frames:?}");
        assert_eq!([frames.damaged, frames.errors, frames.conflicts], [0; 3], "{frames:?}");
    });
}

//! Interfaces of a VLAN (IEEE 802.1Q), each on one end of the cable.
//!
//! Left out, with `CI=true` too, where the kernel has no such interfaces (CONFIG_VLAN_8021Q): the unit tests of
//! `taut_port_xdp` send frames of VLANs everywhere.

use std::process::Command;

use taut::{Config, DomainParticipant, XdpLayer, XdpMode};
use taut_testbed::vlan::{leave_tags, make, name, with_vlans};
use taut_testbed::{End, Pair, await_that, ip, set_feature};

use crate::{SIZES, Stream, config};

fn config_of(end: End, mode: Option<XdpMode>) -> Config {
    let xdp_interface = mode.map(|_| name(end)).unwrap_or_default();
    Config { interfaces: vec![name(end)], xdp_interface, xdp_pcp: mode.map(|_| 6), ..config(end, mode) }
}

fn participant(pair: &Pair, end: End, mode: Option<XdpMode>) -> DomainParticipant {
    pair.enter(end);
    DomainParticipant::with_config(&config_of(end, mode)).unwrap()
}

/// Counts of what no frame is to be.
fn wrong(of: &DomainParticipant) -> [u64; 4] {
    let frames = of.stats().frames.unwrap();
    [frames.malformed, frames.not_ours, frames.damaged, frames.errors]
}

#[test]
fn both_ends_by_the_driver_of_the_parent() {
    with_vlans("both_ends_by_the_driver_of_the_parent", |pair| {
        for end in End::BOTH {
            pair.enter(end);
            leave_tags(end);
        }
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Native))));
        stream.is_past_kernel(0);
        stream.is_past_kernel(1);
        stream.answers_go_past_kernel();
        stream.carries(&SIZES);
        stream.carries(&[64; 5_000]);
        stream.participants.iter().for_each(|of| assert_eq!(wrong(of), [0; 4]));
        assert!(End::BOTH.into_iter().all(|end| pair.has_program(end)), "on the parents");
        drop(stream);
        End::BOTH.into_iter().for_each(|end| pair.await_no_program(end));
    });
}

/// The other end has no XDP, another address of Ethernet than its parent, and takes less.
#[test]
fn one_end_by_sockets() {
    with_vlans("one_end_by_sockets", |pair| {
        for end in End::BOTH {
            pair.enter(end);
            leave_tags(end);
            ip(&format!("link set {} address 02:00:00:00:05:0{}", name(end), end.ipv4()[3]));
            ip(&format!("link set {} mtu 1400", name(end)));
        }
        for modes in [[Some(XdpMode::Native), None], [None, Some(XdpMode::Native)]] {
            let mut ends = End::BOTH.into_iter().zip(modes);
            let participants = [ends.next(), ends.next()].map(|of| of.unwrap());
            let mut stream = Stream::new(participants.map(|(end, mode)| participant(pair, end, mode)));
            stream.is_past_kernel(usize::from(modes[0].is_none()));
            stream.carries(&SIZES);
            stream.carries(&[64; 5_000]);
            let of = stream.participants.iter().find(|of| of.stats().xdp.is_some()).unwrap();
            assert_eq!(wrong(of), [0; 4]);
        }
    });
}

#[test]
fn without_ip() {
    with_vlans("without_ip", |pair| {
        let mut stream = Stream::new(End::BOTH.map(|end| {
            pair.enter(end);
            leave_tags(end);
            let config = Config {
                interfaces: Vec::new(),
                xdp_layer: XdpLayer::Bare,
                ..config_of(end, Some(XdpMode::Native))
            };
            DomainParticipant::with_config(&config).unwrap()
        }));
        stream.carries(&SIZES);
        stream.carries(&[64; 5_000]);
        stream.participants.iter().for_each(|of| assert_eq!(wrong(of), [0; 4]));
    });
}

/// By itself it goes behind the driver of the interface itself then, where all of it works, without IP, too.
#[test]
fn tags_that_are_taken_off_before() {
    with_vlans("tags_that_are_taken_off_before", |pair| {
        pair.enter(End::A);
        let refused =
            DomainParticipant::with_config(&config_of(End::A, Some(XdpMode::Native))).err().unwrap();
        assert!(refused.to_string().contains("`ethtool -K xa rxvlan off`"), "{refused}");
        for xdp_layer in [XdpLayer::Ip, XdpLayer::Bare] {
            let mut stream = Stream::new(End::BOTH.map(|end| {
                pair.enter(end);
                let config = Config { xdp_layer, ..config_of(end, Some(XdpMode::Auto)) };
                DomainParticipant::with_config(&config).unwrap()
            }));
            let why = stream.participants[0].stats().xdp.unwrap().why_not_native.unwrap();
            assert!(why.contains("`ethtool -K xa rxvlan off`"), "{why}");
            stream.is_past_kernel(0);
            stream.is_past_kernel(1);
            stream.carries(&SIZES);
            stream.participants.iter().for_each(|of| assert_eq!(wrong(of), [0; 4]));
        }
    });
}

/// The sender has taken the tag off, which nothing tells here: what comes is the kernel's.
#[test]
fn tags_that_the_other_end_takes_off() {
    with_vlans("tags_that_the_other_end_takes_off", |pair| {
        pair.enter(End::B);
        leave_tags(End::B);
        let far = participant(pair, End::B, Some(XdpMode::Native));
        let near = participant(pair, End::A, None);
        let mut stream = Stream::new([near, far]);
        stream.carries(&SIZES);
        stream.answers_go_past_kernel();
        assert_eq!(stream.participants[1].stats().frames.unwrap().datagrams_in, 0);
    });
}

/// One that has the parent leaves the interface of the VLAN what is behind its driver.
#[test]
fn beside_one_on_the_parent() {
    with_vlans("beside_one_on_the_parent", |pair| {
        for end in End::BOTH {
            pair.enter(end);
            leave_tags(end);
        }
        let mut plain =
            Stream::new(End::BOTH.map(|end| crate::participant(pair, end, Some(XdpMode::Native))));
        plain.is_past_kernel(1);
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Auto))));
        let why = stream.participants[0].stats().xdp.unwrap().why_not_native.unwrap();
        assert!(why.contains("another XDP program is attached to xa"), "{why}");
        stream.is_past_kernel(0);
        stream.is_past_kernel(1);
        stream.carries(&SIZES);
        plain.carries(&SIZES);
        plain.is_past_kernel(1);
    });
}

/// The program of the first one takes all frames of the network, wherever it is.
#[test]
fn a_second_one_without_ip() {
    with_vlans("vlan::a_second_one_without_ip", |pair| {
        pair.enter(End::A);
        leave_tags(End::A);
        let start = |mode| {
            let config = Config { xdp_layer: XdpLayer::Bare, ..config_of(End::A, Some(mode)) };
            DomainParticipant::with_config(&config)
        };
        for (first, place) in [(XdpMode::Native, "xa, which has one"), (XdpMode::Generic, "xa.5: end")] {
            let first = start(first).unwrap();
            let text = start(XdpMode::Auto).map(drop).unwrap_err().to_string();
            assert!(text.contains(&format!("another XDP program is attached to {place}")), "{text}");
            assert!(!text.contains("netd"), "{text}");
            assert!(first.stats().xdp.is_some());
        }
    });
}

/// Where the parent takes tags off, its frames have none either: who has it may take what would come behind the driver.
#[test]
fn beside_one_on_the_parent_without_ip_and_without_tags() {
    with_vlans("beside_one_on_the_parent_without_ip_and_without_tags", |pair| {
        pair.enter(End::A);
        let bare = |config| Config { xdp_layer: XdpLayer::Bare, ..config };
        let first = DomainParticipant::with_config(&bare(config(End::A, Some(XdpMode::Native)))).unwrap();
        for mode in [XdpMode::Auto, XdpMode::Native] {
            let told = DomainParticipant::with_config(&bare(config_of(End::A, Some(mode)))).map(drop);
            let text = told.unwrap_err().to_string();
            assert!(text.contains("another XDP program is attached to xa, which has one"), "{text}");
            assert!(!text.contains("netd"), "{text}");
        }
        drop(first);
        DomainParticipant::with_config(&bare(config_of(End::A, Some(XdpMode::Auto)))).unwrap();
    });
}

/// The kernel takes no program below one that is on an interface of a VLAN, and that one takes nothing of another VLAN.
#[test]
fn beside_one_behind_the_driver_of_another_vlan() {
    with_vlans("beside_one_behind_the_driver_of_another_vlan", |pair| {
        pair.enter(End::A);
        leave_tags(End::A);
        ip("link add link xa name xa.7 type vlan id 7");
        ip("link set xa.7 up");
        let start = |interface: &str, mode| {
            let of = config(End::A, Some(mode));
            let config = Config { xdp_interface: interface.to_owned(), xdp_layer: XdpLayer::Bare, ..of };
            DomainParticipant::with_config(&config)
        };
        let _above = start("xa.7", XdpMode::Generic).unwrap();
        let why = "an XDP program is attached to an interface on xa, as one of a VLAN";
        for refused in [start("xa", XdpMode::Auto), start("xa.5", XdpMode::Native)] {
            let text = refused.map(drop).unwrap_err().to_string();
            assert!(text.contains(why), "{text}");
        }
        let behind = start("xa.5", XdpMode::Auto).unwrap();
        let told = behind.stats().xdp.unwrap().why_not_native.unwrap();
        assert!(told.starts_with(why), "{told}");
    });
}

/// A tag within a tag, and one of another kind.
#[test]
fn what_a_program_does_not_look_at() {
    with_vlans("what_a_program_does_not_look_at", |pair| {
        for (below, words, why) in [
            ("5", "vlan id 9", "is of a VLAN within a VLAN, and a program looks at one tag"),
            (
                "6",
                "vlan proto 802.1ad id 9",
                "has tags that a program does not look at: those of a network by",
            ),
        ] {
            for end in End::BOTH {
                pair.enter(end);
                let name = end.name();
                if below == "6" {
                    ip(&format!("link add link {name} name {name}.6 type vlan id 6"));
                    ip(&format!("link set {name}.6 up"));
                }
                let parent = if below == "6" { name.to_owned() } else { format!("{name}.{below}") };
                ip(&format!("link add link {parent} name {name}q{below} type {words}"));
                ip(&format!("addr add 10.89.1{below}.{}/24 dev {name}q{below}", end.ipv4()[3]));
                ip(&format!("link set {name}q{below} up"));
            }
            let config_of = |end: End, mode| {
                let name = format!("{}q{below}", end.name());
                let interfaces = vec![name.clone()];
                Config { interfaces, xdp_interface: name, ..config(end, Some(mode)) }
            };
            pair.enter(End::A);
            let refused = DomainParticipant::with_config(&config_of(End::A, XdpMode::Native)).map(drop);
            let text = refused.unwrap_err().to_string();
            assert!(text.contains(&format!("XDP on xaq{below}: xaq{below} {why}")), "{text}");
            let mut stream = Stream::new(End::BOTH.map(|end| {
                pair.enter(end);
                DomainParticipant::with_config(&config_of(end, XdpMode::Auto)).unwrap()
            }));
            let told = stream.participants[0].stats().xdp.unwrap().why_not_native.unwrap();
            assert!(told.contains(why), "{told}");
            stream.is_past_kernel(0);
            stream.is_past_kernel(1);
            stream.carries(&SIZES);
        }
    });
}

/// What was native goes behind the driver, and samples go on.
#[test]
fn tags_that_are_taken_off_later() {
    with_vlans("tags_that_are_taken_off_later", |pair| {
        for end in End::BOTH {
            pair.enter(end);
            leave_tags(end);
        }
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Auto))));
        stream.is_past_kernel(1);
        assert_eq!(stream.participants[1].stats().xdp.unwrap().why_not_native, None);
        pair.enter(End::B);
        set_feature("xb", "rx-vlan-hw-parse", true);
        await_that("it is behind the driver", || {
            let xdp = stream.participants[1].stats().xdp;
            let why = xdp.and_then(|xdp| xdp.why_not_native);
            why.is_some_and(|why| why.contains("`ethtool -K xb rxvlan off`"))
        });
        assert!(!pair.has_program(End::B), "the parent is free");
        stream.carries(&SIZES);
        stream.is_past_kernel(1);
    });
}

#[test]
fn over_ipv6() {
    with_vlans("over_ipv6", |pair| {
        let mut stream = Stream::new(End::BOTH.map(|end| {
            pair.enter(end);
            leave_tags(end);
            let name = name(end);
            ip(&format!("-4 addr flush dev {name}"));
            ip(&format!("addr add fd00:89::{}/64 dev {name} nodad", end.ipv4()[3]));
            await_that("the address of the link is one alone", || {
                let shown = Command::new("ip").args(["-6", "addr", "show", "dev", &name]).output().unwrap();
                !String::from_utf8_lossy(&shown.stdout).contains("tentative")
            });
            participant(pair, end, Some(XdpMode::Native))
        }));
        stream.is_past_kernel(0);
        stream.is_past_kernel(1);
        stream.answers_go_past_kernel();
        stream.carries(&SIZES);
        stream.participants.iter().for_each(|of| assert_eq!(wrong(of), [0; 4]));
    });
}

#[test]
fn it_is_removed_and_made_anew() {
    with_vlans("it_is_removed_and_made_anew", |pair| {
        for end in End::BOTH {
            pair.enter(end);
            leave_tags(end);
        }
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Native))));
        stream.is_past_kernel(1);
        for _ in 0..2 {
            pair.enter(End::B);
            ip("link del xb.5");
            await_that("it is noticed", || stream.participants[1].stats().xdp.is_none());
            pair.await_no_program(End::B);
            make(End::B);
            stream.carries(&[100; 10]);
            stream.is_past_kernel(1);
            assert!(pair.has_program(End::B));
        }
    });
}

/// Made anew it has the same name and is of another network; the other end goes by the kernel's tags.
#[test]
fn it_is_made_anew_with_another_number() {
    with_vlans("it_is_made_anew_with_another_number", |pair| {
        for end in End::BOTH {
            pair.enter(end);
            leave_tags(end);
        }
        let near = participant(pair, End::A, None);
        let mut stream = Stream::new([near, participant(pair, End::B, Some(XdpMode::Native))]);
        stream.is_past_kernel(1);
        for end in End::BOTH {
            pair.enter(end);
            let (parent, name) = (end.name(), name(end));
            ip(&format!("link del {name}"));
            ip(&format!("link add link {parent} name {name} type vlan id 6"));
            ip(&format!("addr add 10.89.5.{}/24 dev {name}", end.ipv4()[3]));
            ip(&format!("link set {name} up"));
        }
        stream.carries(&SIZES);
        stream.is_past_kernel(1);
        assert_eq!(wrong(&stream.participants[1]), [0; 4]);
    });
}

/// Its frames would come and go by the parent all the same.
#[test]
fn it_goes_down_alone_and_comes_up() {
    with_vlans("it_goes_down_alone_and_comes_up", |pair| {
        for end in End::BOTH {
            pair.enter(end);
            leave_tags(end);
        }
        for xdp_layer in [XdpLayer::Ip, XdpLayer::Bare] {
            let mut stream = Stream::new(End::BOTH.map(|end| {
                pair.enter(end);
                let config = Config { xdp_layer, ..config_of(end, Some(XdpMode::Native)) };
                DomainParticipant::with_config(&config).unwrap()
            }));
            stream.is_past_kernel(1);
            pair.enter(End::B);
            ip("link set xb.5 down");
            await_that("it is noticed", || stream.participants[1].stats().xdp.is_none());
            pair.await_no_program(End::B);
            ip("link set xb.5 up");
            stream.carries(&SIZES);
            stream.is_past_kernel(1);
            assert!(pair.has_program(End::B));
        }
    });
}

/// It goes down with its parent and comes up with it.
#[test]
fn its_parent_goes_down_and_comes_up() {
    with_vlans("its_parent_goes_down_and_comes_up", |pair| {
        for end in End::BOTH {
            pair.enter(end);
            leave_tags(end);
        }
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Native))));
        stream.is_past_kernel(1);
        pair.enter(End::B);
        ip("link set xb down");
        ip("link set xb up");
        stream.carries(&SIZES);
        stream.is_past_kernel(1);
        assert!(stream.participants[1].stats().xdp.is_some(), "it was not lost");
    });
}

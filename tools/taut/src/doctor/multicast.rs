//! Being found: multicast on each interface in use, its route, what the kernel takes from where.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::addition::Addition;
use super::finding::{Finding, Lasts, Mend, sysctl_path};
use super::flag::Flag;
use super::route::Route;
use super::system::System;

/// The group of discovery (RTPS 2.5 §9.6.1.4.1).
pub const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
/// The same of IPv6, that of Taut and Cyclone DDS: the standard names none.
pub const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1);
/// Bytes of the largest datagram that Taut sends (a fragment of 64,000 B and its headers).
const DATAGRAM: u32 = 64_064;
/// The smallest packet that every IPv4 host takes (RFC 791 §3.1): below it headers are most of what is sent.
const SMALLEST: u32 = 576;

/// An address in use, with its interface.
#[derive(Clone, Debug)]
pub struct Link {
    pub name: String,
    pub index: u32,
    pub address: IpAddr,
    pub loopback: bool,
    /// Does the kernel flag it as capable of multicast?
    pub flagged: bool,
    /// Bytes of a packet, or why they are not known.
    pub mtu: Result<u32, String>,
}

impl Link {
    /// Does Taut use multicast on it? Linux carries that of IPv4 on loopback without the flag, that of IPv6 not at
    /// all.
    pub fn carries_multicast(&self) -> bool {
        if self.loopback { self.address.is_ipv4() } else { self.flagged }
    }

    /// The group of discovery for addresses of this kind.
    pub fn group(&self) -> IpAddr {
        if self.address.is_ipv4() { GROUP.into() } else { GROUP_V6.into() }
    }
}

/// All checks of this module; `peers` are those that the configuration names.
pub fn check(system: &System, links: &[Link], multicast: bool, peers: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (by_v4, by_v6): (Vec<&Link>, Vec<&Link>) = links.iter().partition(|link| link.address.is_ipv4());
    // Over IPv6 each interface has its route to groups, there is no such bound and no such filter.
    let v4 = once(by_v4.iter().copied());
    // An interface with both is as IPv4 has it: loopback carries groups of that alone.
    let once = once(by_v4.into_iter().chain(by_v6));
    if multicast {
        findings.extend(once.iter().map(|link| flag(link, peers)));
        if !v4.is_empty() {
            findings.push(memberships(system, v4.len()));
            findings.push(route(system, &v4));
        }
    } else {
        findings.push(without(peers));
    }
    findings.extend(v4.iter().map(|link| reverse_path(system, link, v4.len())));
    findings.extend(once.iter().map(|link| packets(link)));
    findings
}

/// Each interface once.
fn once<'a>(links: impl Iterator<Item = &'a Link>) -> Vec<&'a Link> {
    let mut names = BTreeSet::new();
    links.filter(|link| names.insert(link.name.as_str())).collect()
}

fn without(peers: &[String]) -> Finding {
    let name = "multicast";
    if !peers.is_empty() {
        return Finding::good(
            name,
            format!("off in the configuration, which names peers: {}", peers.join(", ")),
        );
    }
    let cost = "this machine is found only by hosts that name it as a peer";
    Finding::worth_changing(name, "off in the configuration, which names no peer", cost).mend(Mend::by_hand(
        "set multicast = true, or peer = [\"HOST\"], in taut.toml",
        Lasts::ForGood,
        "set it back",
    ))
}

fn flag(link: &Link, peers: &[String]) -> Finding {
    let name = format!("multicast on {}", link.name);
    if link.loopback && link.address.is_ipv6() {
        return v6_loopback(&name, link, peers);
    }
    if link.flagged {
        return Finding::good(&name, "on");
    }
    let command = format!("ip link set {} multicast on", link.name);
    let mend = Mend::adds(command, Addition::Flag(Flag { interface: link.name.clone(), index: link.index }));
    if link.loopback {
        let cost =
            "Taut uses it all the same; other vendors' participants of this host may not be found on it";
        return Finding::worth_changing(&name, "off", cost).mend(mend);
    }
    let cost = "nobody is found there, and nobody finds this machine, except by peer";
    Finding::harmful(&name, "off", cost).mend(mend)
}

/// Linux has no route to a group of IPv6 there, and Taut joins none.
fn v6_loopback(name: &str, link: &Link, peers: &[String]) -> Finding {
    let seen = "none of IPv6";
    if !peers.is_empty() {
        return Finding::good(name, format!("{seen}; the configuration names peers: {}", peers.join(", ")));
    }
    let cost = "nobody is found there, and nobody finds this machine, except by peer";
    Finding::harmful(name, seen, cost).mend(Mend::by_hand(
        format!("set peer = [\"{}\"], or interface = [\"127.0.0.1\"], in taut.toml", link.address),
        Lasts::ForGood,
        "set it back",
    ))
}

/// A socket joins the group once on each interface.
fn memberships(system: &System, needed: usize) -> Finding {
    let name = "multicast memberships";
    let most: usize = match system.number("/proc/sys/net/ipv4/igmp_max_memberships") {
        Ok(most) => most,
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    let seen = format!("{most} for a socket, {needed} needed");
    if most >= needed {
        return Finding::good(name, seen);
    }
    /// The kernel's own default.
    const USUAL: usize = 20;
    let cost = "setsockopt IP_ADD_MEMBERSHIP is refused on the interfaces beyond, where nobody is found then";
    Finding::harmful(name, seen, cost).mend(Mend::sysctl(
        "net.ipv4.igmp_max_memberships",
        needed.max(USUAL),
        true,
    ))
}

fn route(system: &System, links: &[&Link]) -> Finding {
    let name = "multicast route";
    let table = match system.text("/proc/net/route") {
        Ok(table) => table,
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    if let Some((interface, length)) = route_to(&table, GROUP) {
        let how = if length == 0 { ", the default route" } else { "" };
        return Finding::good(name, format!("{GROUP} goes by {interface}{how}"));
    }
    let on_loopback = |link: &&&Link| link.loopback;
    let carrying = links.iter().filter(|link| link.carries_multicast());
    let Some(link) = carrying.min_by_key(on_loopback) else {
        return Finding::not_looked(name, "no interface in use carries multicast");
    };
    let cost = "Taut names the interface and needs none; a program that does not cannot send to the group";
    Finding::worth_changing(name, format!("none to {GROUP}"), cost).mend(Mend::adds(
        format!("ip route add {} dev {}", Route::destination(), link.name),
        Addition::Route(Route { interface: link.name.clone(), index: link.index }),
    ))
}

/// The interface and the length of the prefix of the narrowest route, in the form of /proc/net/route: numbers in
/// hexadecimal, addresses in the order of this machine's bytes.
fn route_to(table: &str, to: Ipv4Addr) -> Option<(String, u32)> {
    /// RTF_UP and RTF_REJECT (linux/route.h): what is refused goes nowhere.
    const UP: u32 = 0x1;
    const REJECT: u32 = 0x200;
    let to = u32::from_ne_bytes(to.octets());
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(words.get(at).copied()?, 16).ok();
        let (destination, flags, mask) = (number(1)?, number(3)?, number(7)?);
        let fits = flags & (UP | REJECT) == UP && to & mask == destination;
        fits.then(|| (words[0].to_owned(), mask.count_ones()))
    };
    table.lines().skip(1).filter_map(of_line).max_by_key(|(_, length)| *length)
}

fn reverse_path(system: &System, link: &Link, links: usize) -> Finding {
    let name = format!("reverse path on {}", link.name);
    let key = |interface: &str| format!("net.ipv4.conf.{}.rp_filter", interface.replace('.', "/"));
    let of = |interface: &str| system.number::<u8>(&sysctl_path(&key(interface)));
    let filter = match (of("all"), of(&link.name)) {
        (Ok(all), Ok(own)) => all.max(own),
        (Err(unseen), _) | (_, Err(unseen)) => return Finding::not_looked(&name, unseen),
    };
    match filter {
        1 if links > 1 => Finding::worth_changing(
            &name,
            "strict (rp_filter = 1)",
            "what a host sends that this machine would answer by another interface is dropped without a word",
        )
        .mend(Mend::by_hand(
            format!("sysctl -w {}=2", key(&link.name)),
            Lasts::UntilReboot,
            format!("sysctl -w {}={}", key(&link.name), of(&link.name).unwrap_or(0)),
        )),
        1 => Finding::good(&name, "strict, with one interface in use"),
        2 => Finding::good(&name, "loose"),
        _ => Finding::good(&name, "not checked"),
    }
}

fn packets(link: &Link) -> Finding {
    let name = format!("packets on {}", link.name);
    // Bytes of IP's header.
    let header = if link.address.is_ipv4() { 20 } else { 40 };
    match &link.mtu {
        Err(why) => Finding::not_looked(&name, why),
        Ok(mtu) if *mtu < SMALLEST => Finding::worth_changing(
            &name,
            format!("{mtu} B"),
            "headers are most of what is sent, and a large sample goes in hundreds of packets",
        )
        .mend(Mend::by_hand(
            format!("ip link set {} mtu 1500", link.name),
            Lasts::UntilReboot,
            format!("ip link set {} mtu {mtu}", link.name),
        )),
        Ok(mtu) => {
            let packets = DATAGRAM.div_ceil(mtu.saturating_sub(header).max(1));
            Finding::good(&name, format!("{mtu} B: 64 kB of a sample go in {packets}"))
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::finding::State;
    use super::super::system::tests::tree;
    use super::*;

    pub fn link(name: &str) -> Link {
        Link {
            name: name.to_owned(),
            index: 2,
            address: Ipv4Addr::new(192, 0, 2, 2).into(),
            loopback: name == "lo",
            flagged: true,
            mtu: Ok(1_500),
        }
    }

    #[test]
    fn the_flag_of_an_interface() {
        assert_eq!(flag(&link("eth0"), &[]).state, State::Good);
        let off = |name| Link { flagged: false, ..link(name) };
        let found = flag(&off("eth0"), &[]);
        assert_eq!(found.state, State::Harmful);
        let mend = found.mend.unwrap();
        let on = Addition::Flag(Flag { interface: "eth0".to_owned(), index: 2 });
        assert_eq!((mend.command.as_str(), mend.adds), ("ip link set eth0 multicast on", Some(on)));
        assert_eq!(flag(&off("lo"), &[]).state, State::WorthChanging);
        let v6 = Link { address: Ipv6Addr::LOCALHOST.into(), ..off("lo") };
        let found = flag(&v6, &[]);
        assert_eq!(found.state, State::Harmful);
        assert!(found.mend.unwrap().command.contains("peer = [\"::1\"]"));
        assert_eq!(flag(&v6, &["::1".to_owned()]).state, State::Good);
        let both = check(&tree(&[]).1, &[v6, link("lo")], true, &[]);
        assert!(both.iter().all(|found| found.name != "multicast on lo" || found.seen == "on"), "{both:?}");
    }

    #[test]
    fn each_interface_counts_once() {
        let (_directory, system) = tree(&[("/proc/sys/net/ipv4/igmp_max_memberships", "1\n")]);
        let of = |links: &[Link]| {
            let found = check(&system, links, true, &[]);
            found.into_iter().find(|finding| finding.name == "multicast memberships").unwrap()
        };
        let second = Link { address: Ipv4Addr::new(192, 0, 2, 3).into(), ..link("eth0") };
        assert_eq!(of(&[link("eth0"), second]).state, State::Good);
        let found = of(&[link("eth0"), link("eth1")]);
        assert_eq!((found.state, found.seen.as_str()), (State::Harmful, "1 for a socket, 2 needed"));
        assert_eq!(found.mend.unwrap().writes[0].value, "20");
    }

    #[test]
    fn what_is_looked_at_over_ipv6() {
        let (_directory, system) = tree(&[("/proc/sys/net/ipv4/igmp_max_memberships", "1\n")]);
        let names = |links: &[Link]| {
            let found = check(&system, links, true, &[]);
            found.into_iter().map(|finding| finding.name).collect::<Vec<_>>()
        };
        let v6 = || Link { address: GROUP_V6.into(), ..link("eth1") };
        assert_eq!(names(&[v6()]), ["multicast on eth1", "packets on eth1"]);
        let both = check(&system, &[link("eth0"), v6()], true, &[]);
        let memberships = both.iter().find(|finding| finding.name == "multicast memberships").unwrap();
        assert_eq!(memberships.state, State::Good, "one of IPv4: {memberships:?}");
        assert_eq!(packets(&v6()).seen, "1500 B: 64 kB of a sample go in 44");
        assert_eq!(packets(&Link { mtu: Ok(1_492), ..v6() }).seen, "1492 B: 64 kB of a sample go in 45");
    }

    #[test]
    fn no_multicast_at_all() {
        let (_directory, system) = tree(&[]);
        let of = |peers: &[String]| check(&system, &[], false, peers).remove(0).state;
        assert_eq!(of(&[]), State::WorthChanging);
        assert_eq!(of(&["robot".to_owned()]), State::Good);
    }

    const HEAD: &str = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n";

    /// A route as the kernel shows it here.
    fn shown(interface: &str, to: [u8; 4], mask: [u8; 4]) -> String {
        let (to, mask) = (u32::from_ne_bytes(to), u32::from_ne_bytes(mask));
        format!("{interface} {to:08X} 00000000 0001 0 0 0 {mask:08X} 0 0 0\n")
    }

    #[test]
    fn the_route_to_the_group() {
        let network = shown("eth0", [192, 0, 2, 0], [255, 255, 255, 0]);
        let default = shown("eth0", [0; 4], [0; 4]);
        let group = shown("eth1", [224, 0, 0, 0], [240, 0, 0, 0]);
        let of = |table: &str| route_to(table, GROUP);
        assert_eq!(of(&format!("{HEAD}{network}")), None);
        assert_eq!(of(&format!("{HEAD}{network}{default}")), Some(("eth0".to_owned(), 0)));
        assert_eq!(of(&format!("{HEAD}{group}{default}")), Some(("eth1".to_owned(), 4)));
        let (_directory, system) = tree(&[("/proc/net/route", &format!("{HEAD}{network}"))]);
        let found = route(&system, &[&link("eth0")]);
        assert_eq!(found.mend.unwrap().command, "ip route add 239.255.0.0/16 dev eth0");
    }

    #[test]
    fn strict_reverse_paths() {
        let conf = "/proc/sys/net/ipv4/conf";
        let of = |all: &str, own: &str, links| {
            let (all_path, own_path) = (format!("{conf}/all/rp_filter"), format!("{conf}/eth0.7/rp_filter"));
            let (_directory, system) = tree(&[(&all_path, all), (&own_path, own)]);
            reverse_path(&system, &link("eth0.7"), links)
        };
        assert_eq!(of("0", "0", 2).state, State::Good);
        assert_eq!(of("0", "1", 1).state, State::Good);
        assert_eq!(of("2", "1", 2).state, State::Good, "the higher one counts");
        let mend = of("1", "0", 2).mend.unwrap();
        assert_eq!(mend.command, "sysctl -w net.ipv4.conf.eth0/7.rp_filter=2");
        assert_eq!(mend.undo, "sysctl -w net.ipv4.conf.eth0/7.rp_filter=0");
    }

    #[test]
    fn sizes_of_packets() {
        let of = |mtu| packets(&Link { mtu: Ok(mtu), ..link("eth0") });
        assert_eq!(of(1_500).seen, "1500 B: 64 kB of a sample go in 44");
        assert_eq!(of(65_536).seen, "65536 B: 64 kB of a sample go in 1");
        assert_eq!(of(400).state, State::WorthChanging);
    }
}

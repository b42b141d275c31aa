//! Samples follow interfaces and addresses that come, go and change.

use std::time::{Duration, Instant};

use taut::{Config, DomainParticipant, Driver};

use crate::{Host, SOON, Stream, set_up, two_hosts};

#[test]
fn samples_follow_an_address() {
    let Some((near, far)) = two_hosts("cable", 1) else { return };
    let mut stream = Stream::new(&near, &far, &Config::default());
    stream.flows();
    for (host, who, old, new) in
        [(&far, "reader", 2, 3), (&near, "writer", 1, 4), (&far, "reader", 3, 5), (&near, "writer", 4, 6)]
    {
        host.ip(&format!("addr del 10.78.1.{old}/24 dev cable"));
        host.ip(&format!("addr add 10.78.1.{new}/24 dev cable"));
        stream.flows_after(&format!("another address of the {who}"));
    }
    // To another network: each side sends by its only interface.
    for (host, end) in [(&near, 1), (&far, 2)] {
        host.ip("addr flush dev cable");
        host.ip(&format!("addr add 10.78.9.{end}/24 dev cable"));
    }
    stream.flows_after("another network");
    far.ip("addr del 10.78.9.2/24 dev cable");
    far.ip("addr add 10.78.9.2/24 dev cable");
    stream.flows_after("the same address again");
}

#[test]
fn samples_come_back_with_an_interface() {
    let Some((near, far)) = two_hosts("cable", 2) else { return };
    let mut stream =
        Stream::new(&near, &far, &Config { interfaces: vec!["cable".into()], ..Config::default() });
    stream.flows();
    for host in [&near, &far] {
        host.ip("link set cable down");
        // An interface that is down for a moment makes no difference.
        stream.is_followed();
        host.ip("link set cable up");
        stream.flows_after("down and up");
    }
    near.ip("link del cable");
    stream.is_followed();
    near.connect(&far, "cable");
    set_up(&near, &far, "cable", 2);
    stream.flows_after("pulled out and put in");
    near.ip("link del cable");
    near.connect(&far, "cable");
    set_up(&near, &far, "cable", 3);
    stream.flows_after("put in with other addresses");
}

#[test]
fn an_interface_that_comes_later_is_used() {
    let (Some(near), Some(far)) = (Host::new(), Host::new()) else { return };
    let mut stream = Stream::new(&near, &far, &Config::default());
    near.connect(&far, "first");
    set_up(&near, &far, "first", 4);
    stream.flows_after("the first interface");
    near.connect(&far, "second");
    set_up(&near, &far, "second", 5);
    near.ip("link del first");
    stream.flows_after("the second interface in place of the first");
}

/// As hosts with Docker are, whose bridges all have the same address: what is sent there does not leave the host.
#[test]
fn an_address_that_both_hosts_have_leads_to_neither() {
    let (Some(near), Some(far)) = (Host::new(), Host::new()) else { return };
    for host in [&near, &far] {
        host.ip("link add docker0 type veth peer name nobody");
        host.ip("addr add 172.17.0.1/16 dev docker0");
        host.ip("link set docker0 up");
    }
    near.connect(&far, "cable20");
    set_up(&near, &far, "cable20", 20);
    Stream::new(&near, &far, &Config::default()).flows();
}

#[test]
fn ipv6_alone_carries_samples() {
    let (Some(near), Some(far)) = (Host::new(), Host::new()) else { return };
    near.connect(&far, "cable");
    for (host, end) in [(&near, 1), (&far, 2)] {
        host.ip("link set cable up");
        // For a second or two it is asked whether somebody else has the address.
        host.ip(&format!("addr add fd00:78::{end}/64 dev cable"));
    }
    let mut stream = Stream::new(&near, &far, &Config::default());
    stream.flows_after("addresses that become usable");
    far.ip("addr del fd00:78::2/64 dev cable");
    far.ip("addr add fd00:78::3/64 dev cable nodad");
    stream.flows_after("another address of the reader");
    for (host, end) in [(&near, 1), (&far, 2)] {
        host.ip(&format!("addr add 10.78.6.{end}/24 dev cable"));
    }
    stream.flows_after("IPv4 beside it");
    near.ip("addr flush dev cable scope global");
    near.ip("addr add fd00:78::7/64 dev cable nodad");
    stream.flows_after("IPv6 alone again on one side");
}

#[test]
fn an_address_of_the_link_is_enough() {
    let (Some(near), Some(far)) = (Host::new(), Host::new()) else { return };
    near.connect(&far, "cable");
    for (host, end) in [(&near, 1), (&far, 2)] {
        host.ip("link set cable addrgenmode none");
        host.ip("link set cable up");
        host.ip(&format!("addr add fe80::{end}/64 dev cable nodad"));
    }
    let config = Config { interfaces: vec!["cable".into()], ..Config::default() };
    Stream::new(&near, &far, &config).flows();
    // Found by its address, with the interface that leads there.
    let config = Config {
        multicast: false,
        initial_peers: vec!["[fe80::2%cable]".into(), "fe80::1%cable".into()],
        ..config
    };
    Stream::new(&near, &far, &Config { domain_id: 1, ..config.clone() }).flows();
    let refused = Config { domain_id: 1, interfaces: vec!["lo".into()], ..config };
    let text = near.on(move || DomainParticipant::with_config(&refused).err().map(|error| error.to_string()));
    assert!(text.as_ref().is_some_and(|text| text.contains("set ipv6 to \"on\"")), "{text:?}");
}

/// Without multicast they are looked for where they were found: at addresses that say nothing without the interface.
#[test]
fn an_address_of_the_link_is_reached_by_an_interface_that_was_put_in_again() {
    let (Some(near), Some(far)) = (Host::new(), Host::new()) else { return };
    let put_in = || {
        near.connect(&far, "cable");
        for (host, end) in [(&near, 1), (&far, 2)] {
            host.ip("link set cable addrgenmode none");
            host.ip("link set cable up");
            host.ip(&format!("addr add fe80::{end}/64 dev cable nodad"));
        }
    };
    put_in();
    let config = Config {
        interfaces: vec!["cable".into()],
        multicast: false,
        initial_peers: vec!["fe80::1%cable".into(), "fe80::2%cable".into()],
        announcement_period: taut::Duration::from_secs(1),
        ..Config::default()
    };
    let mut stream = Stream::new(&near, &far, &config);
    stream.flows();
    near.ip("link del cable");
    stream.is_followed();
    // It has another number then, at both ends.
    near.connect(&far, "another");
    put_in();
    stream.flows_after("pulled out and put in");
}

/// A thread of another network namespace sees the interfaces of that.
#[test]
fn who_drives_in_another_network_changes_nothing() {
    let Some((near, _far)) = two_hosts("cable", 14) else { return };
    let participant = near.participant(&Config { driver: Driver::Inline, ..Config::default() });
    let counts = |of: &DomainParticipant| (of.stats().port.changes_heard, of.stats().port.changes_followed);
    let drive = |of: &DomainParticipant| of.run_once(taut::Duration::from_millis(1)).unwrap();
    let (heard, followed) = counts(&participant);
    near.ip("addr add 10.78.15.1/24 dev cable");
    let end = Instant::now() + SOON;
    while counts(&participant).0 == heard {
        assert!(Instant::now() < end, "the kernel tells");
        drive(&participant);
    }
    // Longer than changes take to settle.
    let settled = Instant::now() + Duration::from_millis(120);
    while Instant::now() < settled {
        drive(&participant);
    }
    assert_eq!(counts(&participant).1, followed);
    near.on(move || {
        while counts(&participant).1 == followed {
            assert!(Instant::now() < end, "one that is there follows");
            drive(&participant);
        }
    });
}

//! A queue for what is critical beside that of all else, between two ports over memif.

mod common;

use std::time::{Duration, Instant};

use common::{CRITICAL_PORT, Cable, PORT, Ported, bare, own};
use taut_base::Locator;
use taut_ethernet::Tag;
use taut_port_dpdk::{Critical, DpdkConfig, DpdkPort, Steering};
use taut_testbed::{End, await_that, with_pair};

const CRITICAL: Critical = Critical { port: CRITICAL_PORT, priority: 6 };
/// More than are taken at once, and less than a ring holds.
const BACKLOG: u32 = 200;

fn pair(cable: &Cable, critical: Option<Critical>) -> [Ported; 2] {
    let config = || DpdkConfig { critical, ..DpdkConfig::default() };
    let [mut first, mut second] = cable.names().map(|name| Ported::open(name, config(), bare()));
    link(&mut first, &mut second);
    link(&mut second, &mut first);
    [first, second]
}

/// Waits until what one sends by each of its queues comes to the other one, and nothing is on its way.
fn link(from: &mut Ported, to: &mut Ported) {
    let mut come = 0;
    for priority in [0, 6] {
        from.port.set_mark(0, priority, 0);
        let before = come;
        await_that("the link is up", || {
            from.send(&Locator::ethernet([2; 6], 1), b"RTPS");
            come += to.receive(64).1;
            come > before
        });
    }
    let sent = from.port.stats().datagrams_out - from.port.stats().dropped_full;
    if sent as usize > come {
        to.receive_all(sent as usize - come);
    }
}

fn ordinary(from: &mut Ported, to: [u8; 6], numbers: std::ops::Range<u32>) {
    from.port.set_mark(0, 0, 0);
    for number in numbers {
        assert!(from.port.send(&Locator::ethernet(to, PORT), &[&number.to_be_bytes()]));
    }
    from.port.flush();
}

fn critical(from: &mut Ported, to: [u8; 6]) {
    from.port.set_mark(46, 6, 6);
    from.send(&Locator::ethernet(to, CRITICAL_PORT), b"critical");
}

/// Every 50 ms memif's driver hears of the other end and takes nothing for as long as that lasts.
#[test]
fn nothing_is_lost_while_the_driver_hears_of_the_other_end() {
    let cable = Cable::new(140);
    let [mut from, mut to] = pair(&cable, None);
    let station = to.port.carrier().station().mac;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        let (before, sent_at) = (from.port.stats().dropped_full, Instant::now());
        ordinary(&mut from, station, 0..8);
        // DPDK's thread may have found no processor for as long as it is waited for.
        let is_waited_for = sent_at.elapsed() < Duration::from_millis(20);
        let dropped = from.port.stats().dropped_full - before;
        assert!(dropped == 0 || !is_waited_for, "{dropped} after {:?}", sent_at.elapsed());
        to.receive_all(8 - dropped as usize);
    }
}

/// What one call takes: memif has its moments in which nothing is found.
fn next(at: &mut Ported) -> (Vec<Vec<u8>>, usize) {
    let mut found = Default::default();
    await_that("something is found", || {
        found = at.receive(1);
        found.1 > 0
    });
    found
}

fn numbers(got: &[Vec<u8>]) -> Vec<u32> {
    got.iter().map(|bytes| u32::from_be_bytes(bytes[..].try_into().expect("a number"))).collect()
}

/// What is sent last, behind a backlog that has come and that nobody has looked at yet.
#[test]
fn what_is_critical_overtakes_what_waits() {
    let cable = Cable::new(100);
    let mut ends = pair(&cable, Some(CRITICAL));
    for _ in 0..2 {
        let [from, to] = &mut ends;
        let (station, before) = (to.port.carrier().station().mac, to.port.stats());
        ordinary(from, station, 0..BACKLOG);
        critical(from, station);
        assert_eq!(next(to), (vec![b"critical".to_vec()], 1), "before all that came before it");
        let (first, taken) = next(to);
        assert!(taken <= 32, "a burst: {taken}");
        critical(from, station);
        assert_eq!(next(to), (vec![b"critical".to_vec()], 1), "between two bursts, too");
        let rest = to.receive_all(BACKLOG as usize - taken);
        let all = [first, rest].concat();
        assert_eq!(numbers(&all), (0..BACKLOG).collect::<Vec<_>>(), "in their order");
        assert_eq!(to.port.stats().critical_in - before.critical_in, 2);
        ends.reverse();
    }
}

/// One who sends more to the critical port than is taken does not keep discovery away.
#[test]
fn a_flood_of_what_is_critical_leaves_others_their_turn() {
    let cable = Cable::new(130);
    let [mut from, mut to] = pair(&cable, Some(CRITICAL));
    let station = to.port.carrier().station().mac;
    ordinary(&mut from, station, 0..1);
    to.receive_all(1);
    ordinary(&mut from, station, 1..2);
    let takes = (1..100).find(|_| {
        critical(&mut from, station);
        next(&mut to).0.iter().any(|got| got.len() == 4)
    });
    assert_eq!(takes, Some(16), "of which each found something critical first");
}

/// The same without such a queue: that is what it is for.
#[test]
fn without_a_queue_of_its_own_it_waits() {
    let cable = Cable::new(110);
    let [mut from, mut to] = pair(&cable, None);
    let station = to.port.carrier().station().mac;
    ordinary(&mut from, station, 0..BACKLOG);
    critical(&mut from, station);
    let all = to.receive_all(BACKLOG as usize + 1);
    assert_eq!((all.last().unwrap().as_slice(), to.port.stats().critical_in), (&b"critical"[..], 0));
    assert_eq!(numbers(&all[..BACKLOG as usize]), (0..BACKLOG).collect::<Vec<_>>());
}

#[test]
fn how_it_is_steered_is_told() {
    let cable = Cable::new(120);
    let [first, _] = cable.names();
    let config = |device: &str| DpdkConfig {
        device: device.into(),
        critical: Some(CRITICAL),
        tag: Tag::of(5, Some(0)),
        ..DpdkConfig::default()
    };
    let port = DpdkPort::open(&config(&first), bare()).unwrap();
    assert_eq!(port.steering(), Some(&Steering::Sender));
    assert!(
        port.describe().ends_with("VLAN 5, what is critical by queue 1, as it is sent"),
        "{}",
        port.describe()
    );
    with_pair("how_it_is_steered_is_told", ["", ""], move |pair| {
        pair.enter(End::A);
        let described = |config: &DpdkConfig, reached| {
            let port = DpdkPort::open(config, reached).unwrap();
            assert!(matches!(port.steering(), Some(Steering::None(_))), "{}", port.describe());
            port.describe()
        };
        // The kernel spreads what comes over both queues, and this driver has no rules.
        let spread = config("net_af_packet120,iface=xa,qpairs=2");
        let by_port = described(&spread, own());
        assert!(
            by_port
                .contains("by queue 1 when it is sent only (net_af_packet120 has no rule for UDP port 7402")
        );
        assert!(by_port.contains("behind a tag (") && by_port.contains("priority 6 in a tag ("), "{by_port}");
        let by_tag = described(&spread, bare());
        assert!(!by_tag.contains("UDP port") && by_tag.contains("priority 6 in a tag ("), "{by_tag}");
        let told = described(&DpdkConfig { tag: None, ..spread.clone() }, bare());
        assert!(told.contains("give what is critical one (dpdk_priority_pcp)"), "{told}");
        let one = config("net_af_packet120,iface=xa");
        let refused = DpdkPort::open(&one, bare()).err().expect("it has one queue").to_string();
        assert!(refused.contains("has 1 queues to receive by and 1 to send by"), "{refused}");
    });
}

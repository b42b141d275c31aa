//! What the kernel refuses to send is told, and not for each datagram.

use std::thread;
use std::time::Instant;

use taut::{Config, DomainParticipant, Duration};

use crate::multicast::WARNINGS;
use crate::{Number, SOON, Stream, two_hosts};

/// Announcements, and with them timers, come often.
const OFTEN: Duration = Duration::from_millis(50);

fn refused(participant: &DomainParticipant) -> u64 {
    participant.stats().port.send_errors.of(nix::libc::EPERM)
}

fn timers(participant: &DomainParticipant) -> u64 {
    let report = participant.latency_report();
    report.classes.iter().find(|of| of.class.name() == "timers").expect("a class").steps
}

#[test]
fn what_a_firewall_drops_on_the_way_out_is_warned_of_once_a_minute() {
    let Some((near, far)) = two_hosts("dropped20", 20) else { return };
    assert_eq!(WARNINGS.with("EPERM"), [""; 0]);
    let config = Config { announcement_period: OFTEN, ..Config::default() };
    let mut stream = Stream::new(&near, &far, &config);
    stream.flows();
    near.nft([
        "add table inet t".into(),
        "add chain inet t out { type filter hook output priority 0; }".into(),
        "add rule inet t out meta l4proto udp drop".into(),
    ]);
    let Stream { writer, participants: [participant, _], next, .. } = &stream;
    let end = Instant::now() + SOON;
    let write_until = |is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(Instant::now() < end, "{}", participant.stats().port.send_errors);
            writer.write(&Number { value: *next }).unwrap();
            thread::yield_now();
        }
    };
    write_until(&|| !WARNINGS.with("EPERM").is_empty());
    let before = (refused(participant), timers(participant));
    write_until(&|| refused(participant) > before.0 + 100 && timers(participant) > before.1 + 5);
    let warnings = WARNINGS.with("EPERM");
    let [text] = &warnings[..] else { panic!("one warning: {warnings:?}") };
    for part in ["are not sent", "sendto", "Operation not permitted", "a firewall drops", "taut doctor"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

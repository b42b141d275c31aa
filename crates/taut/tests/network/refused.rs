//! What the kernel refuses is told, and not each time.

use std::thread;
use std::time::Instant;

use nix::libc;
use taut::{Config, DomainParticipant, Duration};
use taut_testbed::{await_that, refuse};

use crate::multicast::WARNINGS;
use crate::{Number, SOON, Stream, two_hosts};

/// Announcements, and with them timers, come often.
const OFTEN: Duration = Duration::from_millis(50);

fn refused(participant: &DomainParticipant) -> u64 {
    participant.stats().port.send_errors.of(libc::EPERM)
}

fn timers(participant: &DomainParticipant) -> u64 {
    let report = participant.latency_report();
    report.classes.iter().find(|of| of.class.name() == "timers").expect("a class").steps
}

#[test]
fn what_a_firewall_drops_on_the_way_out_is_warned_of_once_a_minute() {
    let Some((near, far)) = two_hosts("dropped20", 20) else { return };
    assert_eq!(WARNINGS.with("a firewall drops"), [""; 0]);
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
    write_until(&|| !WARNINGS.with("a firewall drops").is_empty());
    let before = (refused(participant), timers(participant));
    write_until(&|| refused(participant) > before.0 + 100 && timers(participant) > before.1 + 5);
    let warnings = WARNINGS.with("a firewall drops");
    let [text] = &warnings[..] else { panic!("one warning: {warnings:?}") };
    for part in ["are not sent", "sendto", "Operation not permitted", "EPERM", "taut doctor"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// As the policies of sandboxes do that know the call, and that do not.
#[test]
fn a_sandbox_without_waits_of_less_than_a_millisecond_is_warned_of_once() {
    assert_eq!(WARNINGS.with("epoll_pwait2"), [""; 0]);
    let config = Config {
        domain_id: 21,
        interfaces: vec!["lo".into()],
        announcement_period: OFTEN,
        ..Config::default()
    };
    for (errno, says) in [(libc::EPERM, "epoll_pwait2: EPERM"), (libc::ENOSYS, "epoll_pwait2: ENOSYS")] {
        let config = config.clone();
        let sandboxed = move || {
            refuse(libc::SYS_epoll_pwait2, &[], errno);
            let participant = DomainParticipant::with_config(&config).unwrap();
            await_that("it is said", || !WARNINGS.with(says).is_empty());
            let before = (participant.stats().waits, timers(&participant));
            await_that("it goes on", || {
                participant.stats().waits > before.0 + 5 && timers(&participant) > before.1 + 5
            });
        };
        thread::spawn(sandboxed).join().unwrap();
        let warnings = WARNINGS.with(says);
        let [text] = &warnings[..] else { panic!("one warning: {warnings:?}") };
        for part in ["up to 1 ms late", "wake_ahead", "5.11", "allow it in the policy"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

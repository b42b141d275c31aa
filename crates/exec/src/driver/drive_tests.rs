//! What whoever drives hears, of several sockets, while it has other things to do.

use std::net::UdpSocket;
use std::num::NonZeroU16;
use std::time::Instant;

use taut_base::{Duration, Time};
use taut_dcps::{Entity, StatusMask};
use taut_port::Traffic;
use taut_port_udp::{Direct, UdpConfig};
use taut_qos::{DataReaderQos, DataWriterQos};

use crate::clock::monotonic_now;
use crate::driver::drive::{HEARS_AFTER, Lower};
use crate::driver::news::Topics;
use crate::driver::role::Claim;
use crate::driver::watch::Readable;
use crate::executor::Inner;
use crate::executor_tests::{config, endpoint, inline, own_domain, take, with_both_ends, write};
use crate::{Driver, Executor, ExecutorConfig};

/// The socket of samples that nobody looks at but by the kernel: the other one is that of critical ones.
const BESIDE: u64 = Direct::SOURCE as u64 + 1;
const LIMIT: Duration = Duration::from_secs(20);

/// Has heard all that its start has sent to itself, and would look by its hand again before it asks the kernel.
fn two_sockets() -> Executor {
    let domain_id = own_domain();
    // Between the ports of the domain's groups and those of its first participant.
    let critical_port = NonZeroU16::new((7_400 + 250 * domain_id + 2) as u16);
    let udp = UdpConfig { domain_id, critical_port, interfaces: vec!["lo".into()], ..UdpConfig::default() };
    let config = ExecutorConfig { udp, local: false, driver: Driver::Inline, ..ExecutorConfig::default() };
    let executor = Executor::start(&config).unwrap();
    let inner = &executor.inner;
    assert_eq!(inner.peek(|core| core.port.traffic(BESIDE as usize)), Some(Traffic::User));
    hear_all(&executor);
    let mut hand = inner.hand.as_ref().unwrap().lock();
    while !hand.look(monotonic_now(), &mut Readable::default()) {
        std::hint::spin_loop();
    }
    drop(hand);
    executor
}

/// What its start has sent to itself.
fn hear_all(executor: &Executor) {
    let inner = &executor.inner;
    let is_idle = || !find(inner).is_any() && inner.holding.due() > monotonic_now();
    while !is_idle() {
        executor.run_once(Some(Time(0))).unwrap();
    }
}

fn find(inner: &Inner) -> Readable {
    let mut ready = Readable::default();
    inner.watch.find(&mut ready);
    ready
}

/// Something comes by the socket beside the one that the hand looks at, just after the kernel was asked.
fn send_beside(inner: &Inner) {
    let to = inner.peek(|core| core.port.udp.user_unicast()[0].socket_addr().unwrap());
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[0], to).unwrap();
    assert!(find(inner).has(BESIDE));
    inner.polling.note_asked(monotonic_now() + LIMIT);
}

#[test]
fn who_may_sleep_hears_all_sockets_of_the_user_between_two_steps_of_discovery() {
    let executor = two_sockets();
    let inner = &executor.inner;
    let meta = inner.peek(|core| (0..99).find(|of| core.port.traffic(*of) == Some(Traffic::Meta)).unwrap());
    let mut readable = Readable::default();
    readable.push(meta as u64);
    assert_eq!(inner.role.claim(), Claim::Taken);
    send_beside(inner);
    // A round that began a while ago, and found something of discovery only.
    let begun = inner.peek(|core| core.now);
    while monotonic_now() <= begun + HEARS_AFTER {
        std::hint::spin_loop();
    }
    inner.give_back(inner.step(&readable, Some(begun)));
    assert!(!find(inner).has(BESIDE), "it waits for the next round");
    inner.role.release(false);
}

const PERIOD: Duration = Duration::from_millis(20);
const AHEAD: Duration = Duration::from_millis(2);

/// Samples have come each 20 ms, and the next one does not. Returns how often the kernel is asked for it before its time,
/// around that and after it, and how many were awaited awake, with whether any was so in vain.
fn await_one_that_does_not_come(domain_id: u32, wake_ahead: Duration) -> ([u64; 3], Option<(u64, bool)>) {
    let config = ExecutorConfig { wake_ahead, spin: Duration::ZERO, ..config(domain_id, false) };
    let executor = Executor::start(&config).unwrap();
    let inner = &executor.inner;
    hear_all(&executor);
    let last = monotonic_now();
    (0..8).for_each(|n| inner.rhythm.note_come(last - PERIOD.times(7 - n)));
    let (from, until) = (last + PERIOD - AHEAD, last + PERIOD + AHEAD);
    let calls_until = |end: Time| {
        let before = inner.watch.calls();
        while monotonic_now() < end {
            executor.run_once(Some(end)).unwrap();
        }
        inner.watch.calls() - before
    };
    let calls = [from - AHEAD.times(2), until, until + AHEAD.times(2)].map(calls_until);
    (calls, executor.stats().steady.map(|of| (of.awake, of.missed > 0)))
}

#[test]
fn who_expects_a_sample_looks_for_it_from_before_until_after() {
    for (wake_ahead, looks) in [(Duration::ZERO, false), (AHEAD, true)] {
        let (domain_id, end, mut found) = (own_domain(), monotonic_now() + LIMIT, Vec::new());
        let is_as_wanted = |calls: [u64; 3], steady| {
            let is_at_its_time = calls[0] < 20 && calls[2] < 20 && (calls[1] > 20) == looks;
            is_at_its_time && steady == looks.then_some((0, true))
        };
        // A thread that looks asks the kernel some hundred times a millisecond, unless it is kept from its processor just then.
        loop {
            let (calls, steady) = await_one_that_does_not_come(domain_id, wake_ahead);
            if is_as_wanted(calls, steady) {
                break;
            }
            found.push((calls, steady));
            assert!(monotonic_now() < end, "{wake_ahead}: {found:?}");
        }
    }
}

/// Whatever anybody sends comes by the same socket.
#[test]
fn samples_alone_are_learnt() {
    let domain_id = own_domain();
    let [reads, writes] = [Duration::from_millis(1), Duration::ZERO].map(|wake_ahead| {
        let config = ExecutorConfig { wake_ahead, spin: Duration::ZERO, ..config(domain_id, false) };
        Executor::start(&config).unwrap()
    });
    let (reader, _) = reads.create_reader(endpoint(DataReaderQos::default().reliable())).unwrap();
    let (writer, _) = writes.create_writer(endpoint(DataWriterQos::default())).unwrap();
    let drive_until = |is_done: &mut dyn FnMut() -> bool| {
        let end = monotonic_now() + LIMIT;
        while !is_done() {
            assert!(monotonic_now() < end);
            for of in [&reads, &writes] {
                of.run_once(Some(monotonic_now() + Duration::from_millis(1))).unwrap();
            }
        }
    };
    let of_reader = || {
        reads.inner.peek(|core| core.participant.reader(reader).unwrap().subscription_matched.current_count)
    };
    let of_writer = || {
        writes.inner.peek(|core| core.participant.writer(writer).unwrap().publication_matched.current_count)
    };
    drive_until(&mut || of_reader() == 1 && of_writer() == 1);
    let to = reads.inner.peek(|core| core.port.udp.user_unicast()[0].socket_addr().unwrap());
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[0], to).unwrap();
    drive_until(&mut || !reads.stats().refused.is_empty());
    assert!(!reads.inner.rhythm.has_any_come());
    let mut outlet = writes.outlet(writer, &Default::default()).unwrap();
    write(&writes, &mut outlet, 7);
    drive_until(&mut || !take(&reads, reader).is_empty());
    assert!(reads.inner.rhythm.has_any_come());
}

/// Whoever drives finds them by a look before it sleeps, as after a sleep from which their writer has rung it.
#[test]
fn samples_by_lanes_are_learnt_too() {
    let config = ExecutorConfig { wake_ahead: Duration::from_millis(1), ..config(own_domain(), true) };
    let (executor, writer, reader) = with_both_ends(Executor::start(&config).unwrap());
    let mut outlet = executor.outlet(writer, &Default::default()).unwrap();
    executor.run_once(Some(Time(0))).unwrap();
    write(&executor, &mut outlet, 7);
    assert!(!executor.inner.rhythm.has_any_come());
    executor.run_once(Some(monotonic_now() + LIMIT)).unwrap();
    assert!(executor.inner.rhythm.has_any_come());
    assert_eq!(take(&executor, reader), [7]);
}

#[test]
fn who_has_news_to_tell_and_may_sleep_else_hears_all_sockets_of_the_user() {
    let executor = two_sockets();
    let inner = &executor.inner;
    send_beside(inner);
    inner.peek(|core| core.participant.tell(Entity::Participant, StatusMask::NONE));
    inner.holding.note_due(Time(0));
    executor.run_once(None).unwrap();
    assert!(!find(inner).has(BESIDE), "it waits for the next round");
}

/// Whoever waits for samples would wait for all that is below them else.
#[test]
fn a_round_ends_when_samples_have_come_and_the_next_goes_on() {
    let executor = inline();
    hear_all(&executor);
    let inner = &executor.inner;
    let run = |tell: &dyn Fn(&mut crate::core::Core)| {
        let mut core = inner.enter();
        // There is a timer's step to do, after which the user's sources were not looked at for long.
        (core.follow_at, core.heard_at) = (Time::AT_ONCE, Time(0));
        tell(&mut core);
        inner.run_lower_jobs(&mut core, None);
        let next = (core.next_lower, core.had_timers);
        inner.give_back(core);
        next
    };
    assert_eq!(run(&|_| ()), (Lower::Timers, false), "it went through");
    let have_come = |core: &mut crate::core::Core| core.have_come = true;
    let have_not = |core: &mut crate::core::Core| core.have_come = false;
    assert_eq!(run(&have_come), (Lower::Meta, false));
    // It goes on there, behind timers that are due, but not each time.
    assert_eq!(run(&have_come), (Lower::Meta, true));
    assert_eq!(run(&have_come), (Lower::Timers, false), "it came round to them, and no further");
    assert_eq!(run(&have_come), (Lower::Meta, false));
    assert_eq!(run(&have_not), (Lower::Timers, false));
    assert_eq!(run(&|_| inner.watch.wake()), (Lower::Meta, false), "a neighbour has rung");
}

/// It may begin to want it as another user has come for it already.
#[test]
fn who_wants_the_role_of_the_background_thread_keeps_no_other_awake() {
    let (executor, ..) = with_both_ends(inline());
    let inner = &executor.inner;
    while inner.glance(monotonic_now()).is_any() {
        executor.run_once(Some(Time(0))).unwrap();
    }
    assert_eq!(inner.role.claim(), Claim::Taken);
    std::thread::scope(|scope| {
        let until = monotonic_now() + Duration::from_millis(200);
        let seen = inner.role.start_following();
        let ends = Instant::now() + std::time::Duration::from_millis(200);
        scope.spawn(move || inner.role.follow_wanting(seen, Topics::ALL, Some(ends), || ()));
        while !inner.role.is_wanted() && monotonic_now() < until {
            std::thread::yield_now();
        }
        let before = inner.watch.calls();
        while monotonic_now() < until {
            inner.drive_once(Some(until), None);
        }
        let calls = inner.watch.calls() - before;
        // A look before a sleep makes some dozens, one that never sleeps thousands.
        assert!(calls < 500, "{calls} looks");
        inner.role.stop_following();
    });
    inner.role.release(true);
}

/// Who left it has woken nobody: the driver did not sleep yet.
#[test]
fn who_is_about_to_sleep_finds_what_was_left_meanwhile() {
    let (executor, writer, reader) = with_both_ends(inline());
    let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
    hear_all(&executor);
    let inner = &executor.inner;
    assert_eq!(inner.role.claim(), Claim::Taken);
    let now = monotonic_now();
    let until = now + LIMIT;
    inner.holding.fall_asleep(until, Time::NEVER);
    let core = inner.enter();
    write(&executor, &mut outlet, 1);
    // Its holder has let go, and left it to whoever drives.
    drop(core);
    let mut readable = Readable::default();
    inner.wait_at_port(now, until, false, &mut readable);
    assert!(monotonic_now() < until, "it sleeps");
    inner.give_back(inner.step(&readable, None));
    assert_eq!(take(&executor, reader), [1]);
    inner.role.release(true);
}

//! What giving the token back takes: of the stack, and of the time that the report answers for.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use taut_dcps::{DomainParticipant, Entity, StatusMask};
use taut_exec::{Driver, Executor, ExecutorConfig, JobClass};
use taut_port_udp::UdpConfig;
use taut_rtps::ReaderIndex;

fn inline(domain_id: u32) -> Executor {
    let udp = UdpConfig { domain_id, interfaces: vec!["lo".into()], ..UdpConfig::default() };
    let config = ExecutorConfig { udp, local: false, driver: Driver::Inline, ..ExecutorConfig::default() };
    Executor::start(&config).unwrap()
}

/// Where the stack of the caller is.
#[inline(never)]
fn stack() -> usize {
    let here = 0_u8;
    std::hint::black_box(&raw const here).addr()
}

fn spend(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {}
}

#[test]
fn news_of_many_take_no_more_stack_than_news_of_few() {
    const MANY: u32 = 2_000;
    // Some of them together take long enough to be noted.
    const EACH: Duration = Duration::from_micros(20);
    let executor = inline(191);
    let (send, calls) = mpsc::channel();
    for index in 0..MANY {
        let send = send.clone();
        let entity = Entity::Reader(ReaderIndex(index));
        let listener = move |_| {
            send.send(stack()).unwrap();
            spend(EACH);
        };
        executor.set_listener(entity, Some(taut_exec::listener(listener))).unwrap();
    }
    let tell = |participant: &mut DomainParticipant, _| {
        (0..MANY).for_each(|n| participant.tell(Entity::Reader(ReaderIndex(n)), StatusMask::DATA_AVAILABLE));
    };
    executor.with(tell).unwrap();
    let depths: Vec<usize> = calls.try_iter().collect();
    assert_eq!(depths.len(), MANY as usize);
    let (least, most) = (depths.iter().min().unwrap(), depths.iter().max().unwrap());
    assert!(most - least < 4_096, "{} bytes", most - least);
}

#[test]
fn what_holds_the_token_is_in_the_report() {
    const LONG: Duration = Duration::from_millis(20);
    let executor = inline(192);
    executor.look(|_, _| spend(LONG)).unwrap();
    let report = executor.latency_report();
    let (class, longest) = report.longest_step();
    assert!(class == JobClass::Calls && longest >= LONG, "{class:?} {longest:?}");
    assert!(JobClass::ALL.into_iter().all(|class| report.bound(class) >= LONG), "{report}");
    let text = report.prometheus();
    // It at least was as long.
    let up_to_10_ms = "taut_step_seconds_bucket{class=\"calls\",le=\"0.01\"} ";
    let up_to = |start: &str| {
        let count = text.lines().find_map(|line| line.strip_prefix(start));
        count.unwrap_or_else(|| panic!("{text}")).parse::<u64>().unwrap()
    };
    let count = up_to("taut_step_seconds_count{class=\"calls\"} ");
    assert!(up_to(up_to_10_ms) < count, "{text}");
}

#[test]
fn what_listeners_take_at_a_time_is_in_the_bound_of_what_comes_behind_them() {
    const EACH: Duration = Duration::from_millis(5);
    // More than are told in one go.
    const MANY: u32 = 12;
    let executor = inline(193);
    for index in 0..MANY {
        let listener = taut_exec::listener(|_| spend(EACH));
        executor.set_listener(Entity::Reader(ReaderIndex(index)), Some(listener)).unwrap();
    }
    assert_eq!(executor.latency_report().listeners, Duration::ZERO);
    let tell = |participant: &mut DomainParticipant, _| {
        (0..MANY).for_each(|n| participant.tell(Entity::Reader(ReaderIndex(n)), StatusMask::DATA_AVAILABLE));
    };
    executor.with(tell).unwrap();
    let report = executor.latency_report();
    assert!(report.listeners >= EACH * MANY, "{report}");
    let driven = [JobClass::ReceiveUser, JobClass::SendUser, JobClass::Timers, JobClass::ReceiveMeta];
    assert!(driven.iter().all(|class| report.bound(*class) >= report.listeners), "{report}");
    let listeners = format!("taut_listeners_seconds {}", report.listeners.as_secs_f64());
    assert!(report.prometheus().contains(&listeners), "{listeners}");
    executor.begin_latency_report();
    assert_eq!(executor.latency_report().listeners, Duration::ZERO);
}

#[test]
fn a_report_that_begins_anew_knows_nothing_of_before() {
    const LONG: Duration = Duration::from_millis(20);
    const CALLS: u64 = 100;
    let executor = inline(194);
    (0..CALLS).for_each(|_| executor.look(|_, _| ()).unwrap());
    executor.look(|_, _| spend(LONG)).unwrap();
    let calls = |executor: &Executor| executor.latency_report().classes[JobClass::Calls as usize];
    let before = calls(&executor);
    assert!(before.steps > CALLS && before.busy >= LONG && before.running.longest >= LONG, "{before:?}");
    executor.begin_latency_report();
    let after = calls(&executor);
    assert!(after.steps < CALLS && after.busy < before.busy, "{after:?}");
    let histogram = after.running.histogram.unwrap();
    assert_eq!((histogram.count, histogram.total), (after.steps, after.busy));
    executor.look(|_, _| spend(LONG)).unwrap();
    assert!(executor.latency_report().bound(JobClass::Timers) >= LONG, "what comes counts");
}

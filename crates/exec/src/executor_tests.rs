//! What the executor does for several threads at once.

use std::net::UdpSocket;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use taut_base::{Duration, InstanceHandle, Time, Timestamp};
use taut_dcps::{Endpoint, Entity, Selection, StatusMask, TypeSupport, Write};
use taut_mem::Bytes;
use taut_port::Traffic;
use taut_qos::{DataReaderQos, DataWriterQos, History, PublisherQos, SubscriberQos, TopicQos};
use taut_rtps::history_cache::ChangeKind;
use taut_rtps::{ReaderIndex, TxClass, WriterIndex};

use crate::account::jobs::JobClass;
use crate::account::recorder::{Activity, RecordCause, RecordedStep};
use crate::clock::{Moment, monotonic_now, wall_clock_now};
use crate::core::Core;
use crate::driver::drive::HEARS_AFTER;
use crate::driver::role::Claim;
use crate::driver::watch::Readable;
use crate::lanes::door::Door;
use crate::process::Process;
use crate::write::left::Line;
use crate::write::writes::QUEUE;
use crate::{Call, Driver, Executor, ExecutorConfig, Outlet, Patience, Payload, listener};

const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn endpoint<Qos, Group: Default>(qos: Qos) -> Endpoint<Qos, Group> {
    let type_support = TypeSupport { type_name: "Number".into(), ..TypeSupport::default() };
    let (topic_qos, group) = (TopicQos::default(), Group::default());
    Endpoint { topic_name: "Numbers".into(), topic_qos, type_support, qos, group }
}

/// Set in the process that a test starts for itself: the domain of that test.
pub(crate) const DOMAIN: &str = "TAUT_TEST_DOMAIN";

/// A domain that no other test of this program has, as the participants of two would meet.
pub(crate) fn own_domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let of_process = std::env::var(DOMAIN).ok().map(|domain| domain.parse().unwrap());
    of_process.unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed))
}

/// An executor that nobody drives, in a domain of its own.
pub(crate) fn inline() -> Executor {
    start(own_domain(), false)
}

fn start(domain_id: u32, local: bool) -> Executor {
    Executor::start(&config(domain_id, local)).unwrap()
}

pub(crate) fn config(domain_id: u32, local: bool) -> ExecutorConfig {
    let udp = taut_port_udp::UdpConfig { domain_id, interfaces: vec!["lo".into()], ..Default::default() };
    ExecutorConfig { udp, local, driver: Driver::Inline, ..ExecutorConfig::default() }
}

/// A participant with a writer and a reader that the protocol joins, and nobody who drives.
pub(crate) fn executor() -> (Executor, WriterIndex, ReaderIndex) {
    with_both_ends(inline())
}

/// The same with lanes.
pub(crate) fn executor_with_lanes() -> (Executor, WriterIndex, ReaderIndex) {
    with_both_ends(start(own_domain(), true))
}

pub(crate) fn with_both_ends(executor: Executor) -> (Executor, WriterIndex, ReaderIndex) {
    with_ends(executor, DataWriterQos::default())
}

fn with_ends(executor: Executor, writes: DataWriterQos) -> (Executor, WriterIndex, ReaderIndex) {
    let reads = DataReaderQos { history: History::KeepAll, ..DataReaderQos::default() };
    let (reader, _) = executor.create_reader(endpoint(reads)).unwrap();
    let (writer, _) = executor.create_writer(endpoint(writes)).unwrap();
    // Who makes an end follows what has matched for a while only, and nobody drives.
    executor.inner.follow_matches(Time::NEVER);
    (executor, writer, reader)
}

pub(crate) fn call(patience: Patience) -> Call {
    Call::new(ChangeKind::Alive, InstanceHandle::default(), Moment::now(), patience)
}

pub(crate) fn new_write() -> Write {
    call(Patience::KeepLast).write
}

pub(crate) fn write(executor: &Executor, outlet: &mut Outlet, n: u32) {
    let payload = &mut Payload::short(&n.to_le_bytes());
    executor.publish(outlet, &mut call(Patience::KeepLast), payload).unwrap();
}

pub(crate) fn take(executor: &Executor, reader: ReaderIndex) -> Vec<u32> {
    let (door, mut taken) = (executor.door(reader).unwrap(), Vec::new());
    let took = executor.take(&door, &Selection::ANY, |sample| {
        taken.push(u32::from_le_bytes(sample.payload[..].try_into().unwrap()));
    });
    took.unwrap();
    taken
}

/// The wall clock was set back by an hour since the participant looked at it last, and nothing comes by the network.
#[test]
fn a_clock_that_is_set_back_makes_no_new_sample_old() {
    let writes = DataWriterQos { lifespan: Duration::from_secs(60), ..DataWriterQos::default() };
    type Pull = fn(&Executor, &Door);
    let ways: [(bool, Pull); 3] = [
        (false, |_, _| ()),
        (true, |executor, _| {
            let mut core = executor.inner.enter();
            executor.inner.pull_lanes(&mut core);
            executor.inner.give_back(core);
        }),
        (true, |executor, door| assert!(executor.wait_unread(door, Some(monotonic_now())), "it is old")),
    ];
    for (way, (local, pull)) in ways.into_iter().enumerate() {
        // Who waits asks the participant at once.
        let config = ExecutorConfig { spin: Duration::ZERO, ..config(own_domain(), local) };
        let (executor, writer, reader) = with_ends(Executor::start(&config).unwrap(), writes.clone());
        let mut outlet = executor.outlet(writer, &writes).unwrap();
        let door = executor.door(reader).unwrap();
        executor.watch(&door);
        let before = Timestamp::from_unix_ns(wall_clock_now().to_unix_ns() + Duration::from_secs(3_600).0);
        executor.inner.peek(|core| core.participant.set_wall_clock(core.now, before));
        write(&executor, &mut outlet, 1);
        pull(&executor, &door);
        assert_eq!(take(&executor, reader), [1], "{way}");
    }
}

/// It was set back since, and the writer beside a new reader has had none whose samples expire.
#[test]
fn a_clock_that_is_set_back_makes_no_history_old() {
    let lifespan = Duration::from_secs(60);
    let writes = DataWriterQos { lifespan, ..DataWriterQos::default() }.transient_local();
    let executor = inline();
    let writer = executor
        .inner
        .with(|participant, now| participant.create_writer(now, endpoint::<_, PublisherQos>(writes)));
    let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
    let before = Timestamp::from_unix_ns(wall_clock_now().to_unix_ns() + Duration::from_secs(3_600).0);
    executor.inner.peek(|core| core.participant.set_wall_clock(core.now, before));
    write(&executor, &mut outlet, 1);
    let (reader, _) = executor.create_reader(endpoint(DataReaderQos::default().transient_local())).unwrap();
    assert_eq!(take(&executor, reader), [1]);
}

/// A participant that announces itself to these.
fn beside(sockets: &[UdpSocket]) -> Executor {
    let initial_peers = sockets.iter().map(|socket| socket.local_addr().unwrap().to_string()).collect();
    Executor::start(&ExecutorConfig { initial_peers, ..config(own_domain(), true) }).unwrap()
}

/// A DATA, behind the header, of which there is only the key.
fn is_end(bytes: &[u8]) -> bool {
    bytes.len() > 21 && bytes[20] == 0x15 && bytes[21] & 0x08 != 0
}

#[test]
fn all_are_told_that_a_participant_leaves() {
    let bind = |_| UdpSocket::bind("127.0.0.1:0").unwrap();
    let sockets: Vec<_> = (0..3 * JobClass::SendMeta.budget()).map(bind).collect();
    drop(beside(&sockets));
    for (n, socket) in sockets.iter().enumerate() {
        socket.set_read_timeout(Some(LIMIT.into())).unwrap();
        let mut bytes = [0; 2_000];
        let mut heard = std::iter::from_fn(|| {
            let len = socket.recv(&mut bytes).ok()?;
            Some(is_end(&bytes[..len]))
        });
        assert!(heard.any(|end| end), "{n} is not told");
    }
}

/// One that is forked has the memory of this process, but another number.
#[test]
fn a_participant_does_not_leave_with_a_child_of_its_process() {
    let sockets = [UdpSocket::bind("127.0.0.1:0").unwrap()];
    let mut executor = beside(&sockets);
    let (prefix, parent) = (executor.inner.prefix, Arc::downgrade(&executor.inner));
    executor.process = Process::parent();
    drop(executor);
    assert!(Process::this().find(prefix).is_some() && parent.upgrade().is_some(), "it goes on in the parent");
    // On loopback what was sent is there.
    sockets[0].set_nonblocking(true).unwrap();
    let mut bytes = [0; 2_000];
    let heard = std::iter::from_fn(|| sockets[0].recv(&mut bytes).ok().map(|len| is_end(&bytes[..len])));
    assert_eq!(heard.collect::<Vec<_>>(), [false], "its announcement");
}

#[test]
fn writers_read_the_wall_clock_for_readers_beside_them_whose_samples_expire() {
    let lifespan = Duration::from_secs(1);
    let (executor, writer, _) = with_ends(inline(), DataWriterQos { lifespan, ..DataWriterQos::default() });
    let elsewhere = Endpoint {
        topic_name: "Others".into(),
        ..endpoint(DataWriterQos { lifespan, ..Default::default() })
    };
    let other = executor.inner.with(|participant, now| participant.create_writer(now, elsewhere));
    let wants = |index| executor.inner.peek(|core| core.participant.wants_wall_clock_of(index));
    assert_eq!((wants(writer), wants(other)), (true, false), "it has no reader here");
}

#[test]
fn what_a_writer_has_left_comes_before_what_it_writes_next() {
    let (executor, writer, reader) = executor();
    let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
    let written = QUEUE as u32 + 1;
    std::thread::scope(|scope| {
        executor.inner.with(|_, _| {
            // As long as this thread holds the token the other leaves what there is room for, then waits.
            let contended = executor.inner.contended.load(Ordering::SeqCst);
            scope.spawn(|| (0..written).for_each(|n| write(&executor, &mut outlet, n)));
            while executor.inner.contended.load(Ordering::SeqCst) == contended {
                std::thread::yield_now();
            }
            assert_eq!(executor.inner.queued.load(Ordering::SeqCst), QUEUE as u64);
        });
    });
    assert_eq!(take(&executor, reader), Vec::from_iter(0..written));
}

#[test]
fn what_is_left_is_not_acknowledged_before_it_is_run() {
    let (executor, writer, reader) = executor();
    let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
    let token = executor.inner.enter();
    write(&executor, &mut outlet, 7);
    // Its holder has let go, and not yet looked for what was left.
    drop(token);
    assert!(executor.is_acknowledged(&mut outlet));
    assert_eq!(take(&executor, reader), [7]);
}

/// Takes 3 ms.
fn spend() {
    let until = monotonic_now() + Duration::from_millis(3);
    while monotonic_now() < until {
        std::hint::spin_loop();
    }
}

#[test]
fn what_is_left_last_waits_for_all_that_was_left_before() {
    let (executor, writer, _) = executor();
    let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
    let written = 2 * JobClass::Writes.budget() + 1;
    executor.inner.look(|_, _| {
        spend();
        (0..written).for_each(|n| write(&executor, &mut outlet, n as u32));
    });
    let report = executor.latency_report();
    let writes = report.classes[JobClass::Writes as usize];
    assert_eq!(writes.steps, 3);
    let least = report.longest_step().1 + writes.busy - writes.running.longest;
    assert!(report.bound(JobClass::Writes) >= least, "{least:?}\n{report}");
}

#[test]
fn what_was_left_before_comes_before_what_lanes_bring() {
    let executor = start(own_domain(), true);
    let inner = &executor.inner;
    let (writer, other) = executor.inner.with(|participant, now| {
        participant.create_reader(now, endpoint::<DataReaderQos, SubscriberQos>(DataReaderQos::default()));
        let writes = endpoint::<DataWriterQos, PublisherQos>(DataWriterQos::default());
        let others = Endpoint { topic_name: "Others".into(), ..writes.clone() };
        (participant.create_writer(now, writes), participant.create_writer(now, others))
    });
    let [mut outlet, mut other] =
        [writer, other].map(|writer| executor.outlet(writer, &DataWriterQos::default()).unwrap());
    executor.run_once(Some(Time(0))).unwrap();
    write(&executor, &mut outlet, 1);
    assert!(inner.doors.next_wanted(None).is_some(), "it is in the lane");
    let mut core = inner.enter();
    inner.call(&mut core, |_| {
        let payload = Bytes::copy_from(&2_u32.to_le_bytes());
        let mut left = Write { payload, ..new_write() };
        inner.write(other.index, &mut left, 4, &mut other.burst, (Line::Critical, || true)).unwrap();
    });
    // Its holder has let go, and the driver gets it before that looks for what was left.
    drop(core);
    assert_eq!(inner.role.claim(), Claim::Taken);
    inner.give_back(inner.step(&Readable::default(), None));
    assert!(inner.doors.next_wanted(None).is_none());
    assert_eq!(executor.latency_report().steps_ahead, 1);
    inner.role.release(false);
}

#[test]
fn what_is_left_has_waited_since_the_first_of_it_was_left() {
    let (executor, writer, reader) = executor();
    let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
    let inner = &executor.inner;
    let waiting = || executor.latency_report().classes[JobClass::Writes as usize].waiting;
    assert_eq!(waiting().histogram.unwrap().count, 0);
    let mut core = inner.enter();
    let (before, after) = inner.call(&mut core, |_| {
        spend();
        let before = monotonic_now();
        write(&executor, &mut outlet, 1);
        let after = monotonic_now();
        spend();
        write(&executor, &mut outlet, 2);
        (before, after)
    });
    let ran_at = core.now;
    inner.give_way(&mut core);
    drop(core);
    assert_eq!(take(&executor, reader), [1, 2]);
    let [least, most] = [after, before].map(|since| std::time::Duration::from(ran_at.since(since)));
    let (longest, histogram) = (waiting().longest, waiting().histogram.unwrap());
    assert!((least..=most).contains(&longest), "{longest:?}, not {least:?} to {most:?}");
    assert_eq!((histogram.count, histogram.total), (1, longest), "in one step");
    assert_eq!(histogram.up_to[..=10], [0; 11], "not within 2 ms");
}

#[test]
fn who_only_looks_runs_what_is_left() {
    let (executor, writer, reader) = executor();
    let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
    executor.inner.peek(|_| write(&executor, &mut outlet, 7));
    assert_eq!(take(&executor, reader), [7]);
}

#[test]
fn a_listener_that_panics_is_called_no_more_and_nobody_waits_for_it() {
    let (executor, writer, reader) = executor();
    let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
    let (send, calls) = std::sync::mpsc::channel();
    let panics = move |_| {
        send.send(()).unwrap();
        panic!("on purpose");
    };
    executor.set_listener(Entity::Reader(reader), Some(listener(panics))).unwrap();
    (1..=2).for_each(|n| write(&executor, &mut outlet, n));
    assert_eq!(calls.try_iter().count(), 1);
    assert!(!executor.inner.holding.is_telling(), "samples of a burst may wait again");
    assert!(executor.may_wait().is_ok(), "the thread runs a listener no more");
    assert_eq!(take(&executor, reader), [1, 2]);
}

#[test]
fn what_is_left_at_the_last_moment_does_not_wait_for_a_listener() {
    let (executor, writer, reader) = executor();
    let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
    let (send, told) = std::sync::mpsc::channel();
    let inner = Arc::downgrade(&executor.inner);
    let listens = move |_| send.send(inner.upgrade().unwrap().writes.is_any()).unwrap();
    executor.set_listener(Entity::Reader(reader), Some(listener(listens))).unwrap();
    let mut core = executor.inner.enter();
    let mut first = Write { payload: Bytes::copy_from(&1_u32.to_le_bytes()), ..new_write() };
    core.participant.write(Time(1), writer, &mut first).unwrap();
    // Its holder has run what was left and tells next.
    write(&executor, &mut outlet, 2);
    assert!(executor.inner.writes.is_any());
    executor.inner.finish(core);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [false, false], "of both, the second by itself");
    assert_eq!(take(&executor, reader), [1, 2]);
}

#[test]
fn a_listener_begins_when_what_was_left_has_been_run() {
    let (executor, writer, reader) = executor();
    let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
    executor.set_listener(Entity::Reader(reader), Some(listener(|_| spend()))).unwrap();
    let mut core = executor.inner.enter();
    let mut first = Write { payload: Bytes::copy_from(&1_u32.to_le_bytes()), ..new_write() };
    core.participant.write(Time(1), writer, &mut first).unwrap();
    write(&executor, &mut outlet, 2);
    executor.inner.finish(core);
    executor.inner.peek(|core| core.record(RecordCause::LongStep(Activity::Listeners)));
    let record = executor.flight_record().unwrap();
    assert!(record.steps.iter().any(|step| step.activity == Activity::Listeners), "{record}");
    // One thread has run all of them, one after the other.
    let is_over = |pair: &[RecordedStep]| pair[0].began_before >= pair[0].ran + pair[1].began_before;
    assert!(record.steps.windows(2).all(is_over), "{record}");
}

/// Discovery that is sent while nobody drives, or whoever drives sleeps, comes before no sample.
#[test]
fn calls_between_two_looks_of_a_driver_are_no_steps_ahead_of_samples() {
    let Matched { out, inward: _inward, .. } = matched(History::KeepAll);
    let sent = || out.latency_report().classes[JobClass::SendMeta as usize].steps;
    out.run_once(soon()).unwrap();
    let (ahead, before) = (out.stats().steps_ahead_of_samples, sent());
    while sent() < before + 5 {
        spend();
        let reads = DataReaderQos::default();
        out.inner.with(|p, now| p.create_reader(now, endpoint::<_, SubscriberQos>(reads)));
    }
    assert_eq!(out.stats().steps_ahead_of_samples, ahead);
}

/// What it waits for may be decoded by code of the user's.
#[test]
fn a_wait_that_panics_in_the_midst_of_a_round_ends_it() {
    let executor = inline();
    let mut looks = 0;
    let wait = || {
        executor.wait(None, |_, _| {
            looks += 1;
            (looks > 1).then(|| panic!("on purpose"))
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(wait)).is_err());
    assert!(!executor.inner.peek(|core| core.accounts.is_in_round()), "nobody drives any more");
}

/// A sample that comes now would wait for the step that has run, and for the one that a thread wants beside it.
#[test]
fn discovery_of_a_call_in_the_midst_of_a_round_waits_for_the_next_look_for_samples() {
    let Matched { out, inward: _inward, .. } = matched(History::KeepAll);
    let inner = &out.inner;
    let reads = || endpoint::<_, SubscriberQos>(DataReaderQos::default());
    while out.inner.with(|p, _| p.has_work(TxClass::Discovery)) {}
    assert_eq!(inner.role.claim(), Claim::Taken);
    let mut core = inner.enter();
    core.hear();
    spend();
    core.read_clock();
    inner.run(&mut core, JobClass::ReceiveMeta, |_, _| 1);
    std::thread::scope(|scope| {
        let calls = scope.spawn(|| out.inner.with(|p, now| p.create_reader(now, reads())));
        while !calls.is_finished() {
            inner.let_others(&mut core);
        }
    });
    assert_eq!(core.accounts.steps_ahead_of_samples(), 1);
    assert!(core.participant.has_work(TxClass::Discovery), "whoever drives sends it");
    inner.give_back(core);
    let until = monotonic_now() + LIMIT;
    let sent = || out.stats().port.datagrams_out;
    let before = sent();
    inner.give_back(inner.step(&Readable::default(), None));
    assert!(sent() > before, "the first step sends it");
    // Where the test takes long others have asked for more meanwhile than a step sends.
    loop {
        inner.give_back(inner.step(&Readable::default(), None));
        if !inner.peek(|core| core.participant.has_work(TxClass::Discovery)) {
            break;
        }
        assert!(monotonic_now() < until, "it is not sent");
    }
    assert_eq!(out.stats().steps_ahead_of_samples, 1);
    inner.role.release(false);
}

#[test]
fn a_first_promise_reminds_a_driver_that_would_oversleep_it() {
    let (executor, writer, _) = executor();
    let qos = DataWriterQos::default().deadline(Duration::from_millis(1));
    let outlet = executor.outlet(writer, &qos).unwrap();
    let promise = outlet.promise.as_ref().unwrap();
    let mut write = new_write();
    let holding = &executor.inner.holding;
    holding.fall_asleep(Time::NEVER, Time::NEVER);
    let called = monotonic_now();
    for later in [0, 1] {
        write.called = called + Duration(later);
        executor.await_next(promise, &write);
        let due = called + Duration::from_millis(1);
        assert_eq!(holding.sleeps_until(), due, "only for what is due before all that it knows");
    }
    holding.wake();
}

/// Whoever drives looks at its port before it sleeps: what it is reminded of meanwhile does not wait for the end of that.
#[test]
fn a_reminder_ends_a_look_at_the_port() {
    let seldom = LIMIT.times(100);
    let config = ExecutorConfig {
        spin: LIMIT,
        announcement_period: seldom,
        lease_duration: seldom.times(10),
        ..config(own_domain(), false)
    };
    let executor = Executor::start(&config).unwrap();
    let inner = &executor.inner;
    // As who has polled leaves it.
    inner.holding.look_always();
    // What its start has to do, without a look in vain, after which the next wait does without.
    while inner.glance(monotonic_now()).is_any() || inner.holding.due() < monotonic_now() + LIMIT {
        executor.run_once(Some(Time(0))).unwrap();
    }
    let is_reminded = AtomicBool::new(false);
    let took = std::thread::scope(|scope| {
        let driver = scope.spawn(|| {
            while !is_reminded.load(Ordering::SeqCst) {
                executor.run_once(Some(monotonic_now() + LIMIT)).unwrap();
            }
        });
        // It is in the midst of a look.
        let looks = inner.watch.calls();
        while inner.watch.calls() < looks + 1_000 {
            std::hint::spin_loop();
        }
        is_reminded.store(true, Ordering::SeqCst);
        let mut core = inner.enter();
        let now = core.now;
        assert!(inner.holding.hold(&mut core.held, now + Duration::from_millis(1), &inner.role));
        inner.give_back(core);
        driver.join().unwrap();
        monotonic_now().since(now)
    });
    assert!(took < Duration(LIMIT.0 / 2), "{took:?}");
}

/// Two participants with a writer and a reader that match.
pub(crate) struct Matched {
    pub out: Executor,
    pub inward: Executor,
    pub writer: WriterIndex,
    pub reader: ReaderIndex,
    pub writes: DataWriterQos,
}

pub(crate) fn soon() -> Option<Time> {
    Some(monotonic_now() + Duration::from_millis(1))
}

pub(crate) fn matched(history: History) -> Matched {
    let domain_id = own_domain();
    let (out, inward) = (start(domain_id, false), start(domain_id, false));
    let writes = DataWriterQos { history, ..DataWriterQos::default() };
    let reads = DataReaderQos { history, ..DataReaderQos::default() };
    let writer = out.inner.with(|p, now| p.create_writer(now, endpoint::<_, PublisherQos>(writes.clone())));
    let reader = inward.inner.with(|p, now| p.create_reader(now, endpoint::<_, SubscriberQos>(reads)));
    let until = monotonic_now() + LIMIT;
    let are_matched = || {
        let one =
            out.inner.with(|p, _| p.writer(writer).is_some_and(|w| w.publication_matched.current_count == 1));
        one && inward
            .inner
            .with(|p, _| p.reader(reader).is_some_and(|r| r.subscription_matched.current_count == 1))
    };
    while !are_matched() {
        assert!(monotonic_now() < until, "no match");
        out.run_once(soon()).unwrap();
        inward.run_once(soon()).unwrap();
    }
    Matched { out, inward, writer, reader, writes }
}

#[test]
fn a_step_that_sends_is_of_the_class_of_what_it_sends() {
    let Matched { out, writer, .. } = matched(History::KeepAll);
    let steps = || {
        let classes = out.latency_report().classes;
        [JobClass::SendUser, JobClass::SendMeta].map(|class| classes[class as usize].steps)
    };
    // What is left to be sent of the match.
    out.inner.with(|_, _| ());
    let [user, meta] = steps();
    out.inner.with(|participant, now| participant.write(now, writer, &mut new_write()).unwrap());
    assert_eq!(steps(), [user + 1, meta], "user data");
    out.inner.with(|participant, now| {
        participant.write(now, writer, &mut new_write()).unwrap();
        participant.create_writer(now, endpoint::<_, PublisherQos>(DataWriterQos::default()))
    });
    assert_eq!(steps(), [user + 2, meta + 1], "user data, then discovery");
}

#[test]
fn what_comes_for_the_user_waits_for_one_step_of_discovery() {
    let Matched { out, inward, writer, reader, writes } = matched(History::KeepAll);
    let mut outlet = out.outlet(writer, &writes).unwrap();
    let inner = &inward.inner;
    let meta = inner.peek(|core| (0..99).find(|of| core.port.traffic(*of) == Some(Traffic::Meta)).unwrap());
    let mut readable = Readable::default();
    readable.push(meta as u64);
    assert_eq!(inner.role.claim(), Claim::Taken);
    // A round that began a while ago, and found something of discovery only.
    let begun = inner.peek(|core| core.now);
    write(&out, &mut outlet, 7);
    let until = begun + HEARS_AFTER;
    while monotonic_now() <= until {
        std::hint::spin_loop();
    }
    inner.give_back(inner.step(&readable, Some(begun)));
    assert_eq!(take(&inward, reader), [7]);
    inner.role.release(false);
}

/// Found at all sources of this traffic.
fn found_at(executor: &Executor, traffic: &[Traffic]) -> Readable {
    let mut readable = Readable::default();
    executor.inner.peek(|core| {
        let of = |source: &usize| core.port.traffic(*source).is_some_and(|of| traffic.contains(&of));
        (0..99).filter(of).for_each(|source| readable.push(source as u64));
    });
    readable
}

#[test]
fn the_bound_has_all_steps_of_a_round_that_come_before() {
    let executor = inline();
    let readable = found_at(&executor, &[Traffic::User, Traffic::Meta]);
    let of_user = || executor.latency_report().classes[JobClass::ReceiveUser as usize];
    assert_eq!(executor.inner.role.claim(), Claim::Taken);
    let before = of_user();
    executor.inner.give_back(executor.inner.step(&readable, None));
    let (report, after) = (executor.latency_report(), of_user());
    assert!(after.steps - before.steps >= 2, "one at each source");
    let run = after.busy - before.busy;
    let others = [JobClass::Writes, JobClass::Calls, JobClass::SendUser].map(|class| {
        let of = report.classes[class as usize];
        of.running.longest
    });
    let least = report.longest_step().1 + run + others.iter().sum::<std::time::Duration>();
    assert!(run > after.running.longest);
    assert!(report.bound(JobClass::Timers) >= least, "{least:?}\n{report}");
    executor.inner.role.release(false);
}

#[test]
fn what_a_thread_does_between_two_steps_comes_before_the_rest_of_the_round() {
    let executor = inline();
    let inner = &executor.inner;
    let mut core = inner.enter();
    let ready = core.ready;
    let busy = |core: &Core| core.accounts.report().classes[JobClass::Calls as usize].busy;
    let before = busy(&core);
    inner.call(&mut core, |_| ());
    std::thread::scope(|scope| {
        let calls = scope.spawn(|| executor.inner.with(|_, _| ()));
        while inner.asking.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        while !calls.is_finished() {
            inner.let_others(&mut core);
        }
    });
    inner.call(&mut core, |_| ());
    let (report, run) = (core.accounts.report(), busy(&core) - before);
    assert_eq!(core.ready, ready, "it has waited since its round began");
    assert_eq!(report.classes[JobClass::Calls as usize].steps, 3 + 1, "with the one of its start");
    assert!(report.bound(JobClass::Timers) >= report.longest_step().1 + run, "{report}");
}

#[test]
fn a_timer_waits_for_one_step_of_discovery() {
    let executor = inline();
    let (inner, readable) = (&executor.inner, found_at(&executor, &[Traffic::Meta]));
    assert!(readable.sources().len() >= 2);
    assert_eq!(inner.role.claim(), Claim::Taken);
    // It becomes due while the first of them runs.
    let mut core = inner.enter();
    let begun = core.now;
    core.follow_at = begun + Duration(1);
    drop(core);
    inner.give_back(inner.step(&readable, Some(begun)));
    inner.peek(|core| core.record(RecordCause::LongStep(Activity::Listeners)));
    let record = executor.flight_record().unwrap();
    let lower = record.steps.iter().filter_map(|step| match step.activity {
        Activity::Step(class) if class.is_lower() && class != JobClass::SendMeta => Some(class),
        _ => None,
    });
    let lower: Vec<JobClass> = lower.skip_while(|class| *class != JobClass::ReceiveMeta).collect();
    let wanted = [JobClass::ReceiveMeta, JobClass::Timers, JobClass::ReceiveMeta];
    assert!(lower.starts_with(&wanted), "{lower:?}");
    inner.role.release(false);
}

#[test]
fn samples_that_nobody_listens_to_leave_their_driver_nothing_to_do() {
    let Matched { out, inward, writer, reader, writes } = matched(History::KeepAll);
    let (mut outlet, door) = (out.outlet(writer, &writes).unwrap(), inward.door(reader).unwrap());
    let mut receive = |n| {
        let (until, unread) = (monotonic_now() + LIMIT, || door.side().cache.unread_count());
        let before = unread();
        // A round that a sample ends has left something.
        while inward.inner.holding.due() <= monotonic_now() {
            assert!(monotonic_now() < until, "there is always something to do");
            inward.run_once(Some(Time(0))).unwrap();
        }
        write(&out, &mut outlet, n);
        while unread() == before {
            assert!(monotonic_now() < until, "it has not come");
            inward.run_once(Some(Time(0))).unwrap();
        }
        // The sample has ended that round, perhaps.
        while inward.inner.peek(|core| core.has_work(TxClass::Discovery)) {
            inward.run_once(Some(Time(0))).unwrap();
        }
        inward.inner.holding.due()
    };
    assert!(receive(1) > Time(0), "the next look passes it over");
    let (send, told) = std::sync::mpsc::channel();
    let listens = move |kinds| send.send(kinds).unwrap();
    inward.set_listener(Entity::Reader(reader), Some(listener(listens))).unwrap();
    receive(2);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [StatusMask::DATA_AVAILABLE]);
    assert_eq!(take(&inward, reader), [1, 2]);
}

#[test]
fn a_burst_that_meets_at_the_token_takes_one_call_each_way_and_waits_for_no_lock() {
    const COUNT: u32 = 200;
    let Matched { out, inward, writer, reader, writes } = matched(History::KeepLast(COUNT));
    let until = monotonic_now() + LIMIT;
    let mut outlet = out.outlet(writer, &writes).unwrap();
    let counts = || {
        let (sent, received) = (out.stats(), inward.stats());
        let contended = sent.contended + received.contended;
        [sent.port.send_calls, sent.port.datagrams_out, received.port.receive_calls, contended]
    };
    let mut burst = || {
        let (before, queued) = (counts(), out.stats().queued_writes);
        // Whoever writes while another has the token leaves that to him.
        out.inner.peek(|_| (0..COUNT).for_each(|n| write(&out, &mut outlet, n)));
        let mut taken = Vec::new();
        while taken.len() < COUNT as usize {
            assert!(monotonic_now() < until, "{} samples", taken.len());
            inward.run_once(soon()).unwrap();
            taken.extend(take(&inward, reader));
        }
        assert_eq!(taken, Vec::from_iter(0..COUNT));
        assert_eq!(out.stats().queued_writes - queued, u64::from(COUNT));
        let after = counts();
        std::array::from_fn(|at| after[at] - before[at])
    };
    // An announcement, every 100 ms, may fall into one of them.
    let bursts: Vec<[u64; 4]> = (0..20).map(|_| burst()).collect();
    assert_eq!(bursts.iter().min(), Some(&[1, 1, 1, 0]), "{bursts:?}");
}

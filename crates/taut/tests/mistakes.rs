//! What a program can get wrong about who drives: it is told, or it works; nothing waits for ever.

use std::pin::pin;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::Instant;

use futures_core::Stream;
use taut::qos::ResourceLimits;
use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Duration, Error, PublisherQos, Qos,
    StatusMask, SubscriberQos,
};

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Number {
    value: u32,
}

type Ends = (DomainParticipant, DataWriter<Number>, DataReader<Number>);

const SOON: Duration = Duration::from_secs(10);
const DRIVERS: [Driver; 3] = [Driver::Threaded, Driver::Inline, Driver::Polling];

fn participant(domain_id: u32, driver: Driver) -> DomainParticipant {
    let config = Config { domain_id, driver, interfaces: vec!["lo".into()], ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

fn reliable() -> Qos {
    Qos::default().reliable().keep_all()
}

/// A participant that reads what it writes.
fn alone(domain_id: u32, driver: Driver, topic: &str) -> Ends {
    let one = participant(domain_id, driver);
    let topic = one.topic::<Number>(topic).unwrap();
    let (writer, reader) = (topic.writer(reliable()).unwrap(), topic.reader(reliable()).unwrap());
    writer.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    (one, writer, reader)
}

/// Does it in a thread of its own, so that a test fails that would wait for ever.
fn within<R: Send + 'static>(what: &str, does: impl FnOnce() -> R + Send + 'static) -> R {
    let (send, done) = mpsc::channel();
    let thread = std::thread::spawn(move || send.send(does()));
    match done.recv_timeout(SOON.into()) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: it waits for ever"),
        Err(mpsc::RecvTimeoutError::Disconnected) => std::panic::resume_unwind(thread.join().unwrap_err()),
    }
}

/// Has an inline participant run what is due until something was heard; one with a thread does so itself.
fn hear<R>(driver: Driver, participant: &DomainParticipant, heard: &mpsc::Receiver<R>) -> R {
    let until = Instant::now() + SOON.into();
    while Instant::now() < until {
        if driver == Driver::Inline {
            participant.run_once(Duration::from_millis(1)).unwrap();
        }
        if let Ok(result) = heard.recv_timeout(std::time::Duration::from_millis(1)) {
            return result;
        }
    }
    panic!("{driver:?}: the listener was not called, or does not end");
}

fn is_refused<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::PreconditionNotMet(text)) if text.contains("a listener cannot wait"))
}

#[test]
fn no_call_waits_within_a_listener() {
    for driver in DRIVERS {
        let (one, writer, reader) = alone(40, driver, "Waits");
        let silent = one.topic::<Number>("Silent").unwrap();
        let (unread, unheard) = (silent.reader(reliable()).unwrap(), silent.writer(reliable()).unwrap());
        let (weak, found) = (one.clone(), one.builtin_participants());
        found.take().unwrap();
        let (send, heard) = mpsc::channel();
        let mut is_first = true;
        reader.set_listener(move |_| {
            if !std::mem::take(&mut is_first) {
                return;
            }
            unheard.write(&Number { value: 1 }).unwrap();
            let outcomes = [
                unread.wait(Duration::INFINITE),
                unread.wait_matched_count(9, Duration::INFINITE),
                unheard.wait_matched_count(9, Duration::INFINITE),
                unheard.wait_for_acknowledgments(Duration::INFINITE),
                found.wait(Duration::INFINITE),
                weak.run_once(Duration::INFINITE),
                weak.poll_while(|| true),
            ];
            send.send(outcomes).unwrap();
        });
        writer.write(&Number { value: 1 }).unwrap();
        let outcomes = hear(driver, &one, &heard);
        assert!(outcomes.iter().all(is_refused), "{driver:?}: {outcomes:?}");
        reader.wait(SOON).unwrap();
    }
}

#[test]
fn no_listener_waits_for_one_that_it_runs_in() {
    let (outer, writer, reader) = alone(41, Driver::Threaded, "Outer");
    let (inner, inner_writer, inner_reader) = alone(41, Driver::Inline, "Inner");
    let silent = outer.topic::<Number>("Silent").unwrap().reader(reliable()).unwrap();
    let (send, heard) = mpsc::channel();
    inner_reader.on_data_available(move |_| send.send(silent.wait(Duration::INFINITE)).unwrap());
    inner_writer.write(&Number { value: 1 }).unwrap();
    // It drives the other participant, whose listener then waits for this one.
    reader.on_data_available(move |_| inner.run_once(Duration::ZERO).unwrap());
    writer.write(&Number { value: 1 }).unwrap();
    let outcome = heard.recv_timeout(SOON.into()).expect("the outer listener waits for its own thread");
    assert!(is_refused(&outcome), "{outcome:?}");
    drop((outer, inner_reader));
}

#[test]
fn a_stream_ends_where_it_would_wait_within_a_listener() {
    for driver in DRIVERS {
        let (one, writer, reader) = alone(42, driver, "Stream");
        let silent = one.topic::<Number>("Silent").unwrap().reader(reliable()).unwrap();
        let (send, heard) = mpsc::channel();
        reader.on_data_available(move |_| {
            let mut samples = pin!(silent.samples());
            let next = std::future::poll_fn(|context| samples.as_mut().poll_next(context));
            send.send(futures_executor::block_on(next).is_none()).unwrap();
        });
        writer.write(&Number { value: 1 }).unwrap();
        assert!(hear(driver, &one, &heard), "there was nothing to take");
    }
}

#[test]
fn no_write_waits_for_room_within_a_listener() {
    for driver in DRIVERS {
        // Its reader is in this participant or in another one, past the network or not.
        for (local, other) in [(true, false), (true, true), (false, true)] {
            let config = Config { domain_id: 43, driver, local, ..Config::default() };
            let config = Config { interfaces: vec!["lo".into()], ..config };
            let one = DomainParticipant::with_config(&config).unwrap();
            let far =
                other.then(|| DomainParticipant::with_config(&Config { driver: Driver::Threaded, ..config }));
            let far = far.map_or_else(|| one.clone(), Result::unwrap);
            let limits = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
            let qos = reliable().resource_limits(limits).max_blocking_time(Duration::INFINITE);
            let full = one.topic::<Number>("Full").unwrap().writer(qos.clone()).unwrap();
            let _untaken = far.topic::<Number>("Full").unwrap().reader(qos).unwrap();
            full.wait_matched(SOON).unwrap();
            let tell = one.topic::<Number>("Tell").unwrap();
            let (writer, reader) = (tell.writer(reliable()).unwrap(), tell.reader(reliable()).unwrap());
            writer.wait_matched(SOON).unwrap();
            let (send, heard) = mpsc::channel();
            reader.on_data_available(move |_| {
                let writes = (0..1_000).map(|value| full.write(&Number { value }));
                send.send(writes.take(1_000).find(Result::is_err)).unwrap();
            });
            writer.write(&Number { value: 1 }).unwrap();
            let outcome = hear(driver, &one, &heard).expect("nothing stops the writer");
            assert!(is_refused(&outcome), "{driver:?}, local {local}, other {other}: {outcome:?}");
        }
    }
}

/// Tells when it is dropped.
struct Guard(mpsc::Sender<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn a_listener_may_end_its_reader_and_its_participant() {
    for driver in DRIVERS {
        for all in [false, true] {
            let (one, writer, reader) = alone(44, driver, "Ends");
            let drives = one.clone();
            // What the listener ends: its reader, then all handles but the one that drives, if there is one.
            let held = Arc::new(Mutex::new((Some(reader), Some(one))));
            let (ended, ends) = mpsc::channel();
            let (guard, own) = (Guard(ended), Arc::clone(&held));
            let locked = held.lock().unwrap();
            locked.0.as_ref().unwrap().on_data_available(move |_| {
                let _ = &guard;
                let (reader, rest) = &mut *own.lock().unwrap();
                drop(reader.take());
                drop(all.then(|| rest.take()));
            });
            drop(locked);
            // The listener may run in this call already: it needs the lock, and what it ends is not this writer.
            writer.write(&Number { value: 1 }).unwrap();
            drop(writer);
            match (driver, all) {
                // It is the last one.
                (Driver::Threaded | Driver::Polling, true) => {
                    drop(drives);
                    ends.recv_timeout(SOON.into()).expect("the listener does not end");
                }
                _ => hear(driver, &drives, &ends),
            }
            assert_eq!(held.lock().unwrap().1.is_none(), all, "{driver:?}");
        }
    }
}

/// Calls it once there is data. The call holds nothing of the participant, as that of `on_data_available` does.
fn on_data(reader: &DataReader<Number>, call: impl FnOnce() + Send + 'static) {
    let mut call = Some(call);
    reader.set_listener(move |kinds| {
        if let Some(call) = call.take_if(|_| kinds.intersects(StatusMask::DATA_AVAILABLE)) {
            call();
        }
    });
}

#[test]
fn two_listeners_may_end_each_others_participants() {
    within("two listeners, each of which ends the other's participant", || {
        let both = Arc::new(Barrier::new(2));
        let (mut held, mut writers) = (Vec::new(), Vec::new());
        for n in 0..2 {
            let (one, writer, reader) = alone(45, Driver::Threaded, &format!("Mutual{n}"));
            held.push(Arc::new(Mutex::new(Some((one, reader)))));
            writers.push(writer);
        }
        let (send, heard) = mpsc::channel();
        for (n, of) in held.iter().enumerate() {
            let (both, other, send) = (Arc::clone(&both), Arc::clone(&held[1 - n]), send.clone());
            on_data(&of.lock().unwrap().as_ref().unwrap().1, move || {
                both.wait();
                drop(other.lock().unwrap().take());
                send.send(()).unwrap();
            });
        }
        // The listeners wait for each other, and may run in these calls already.
        let write = |writer: DataWriter<Number>| {
            std::thread::spawn(move || writer.write(&Number { value: 1 }).unwrap())
        };
        let writes: Vec<_> = writers.into_iter().map(write).collect();
        (0..2).for_each(|_| heard.recv().unwrap());
        writes.into_iter().for_each(|write| write.join().unwrap());
    });
}

#[test]
fn a_participant_may_end_while_its_listener_waits_for_who_ends_it() {
    within("a participant whose listener waits for a channel", || {
        let (one, writer, reader) = alone(46, Driver::Threaded, "Full channel");
        // Until the lane is joined, which tells nobody, who writes tells the listener itself.
        let (tell, told) = mpsc::channel();
        let begin = tell.clone();
        reader.on_data_available(move |_| tell.send(Some(std::thread::current().id())).unwrap());
        let is_told_here = || {
            writer.write(&Number { value: 1 }).unwrap();
            told.recv().unwrap() == Some(std::thread::current().id())
        };
        while is_told_here() {}
        let (send, heard) = mpsc::sync_channel(0);
        on_data(&reader, move || {
            let _ = begin.send(None);
            let _ = send.send(7);
        });
        // The listener before it may still run, and take one more.
        let is_told_before = || {
            writer.write(&Number { value: 7 }).unwrap();
            told.recv().unwrap().is_some()
        };
        while is_told_before() {}
        drop((reader, writer, one));
        assert_eq!(heard.recv(), Ok(7), "the listener goes on to its end");
    });
}

#[test]
fn a_listener_may_change_itself() {
    let (_one, writer, reader) = alone(47, Driver::Threaded, "Changes");
    let reader = Arc::new(reader);
    let (send, heard) = mpsc::channel();
    let (own, also) = (Arc::downgrade(&reader), send.clone());
    reader.on_data_available(move |sample| {
        let _ = send.send(sample.data.unwrap().value);
        let also = also.clone();
        if let Some(own) = own.upgrade() {
            own.on_data_available(move |sample| also.send(100 + sample.data.unwrap().value).unwrap());
        }
    });
    let hear = || heard.recv_timeout(SOON.into());
    writer.write(&Number { value: 1 }).unwrap();
    assert_eq!(hear(), Ok(1));
    loop {
        writer.write(&Number { value: 2 }).unwrap();
        // The first one may go on with what has come while it ran.
        match hear().unwrap() {
            2 => {}
            other => break assert_eq!(other, 102),
        }
    }
}

#[test]
fn a_program_that_drives_is_refused_while_another_thread_waits() {
    let one = participant(48, Driver::Inline);
    let reader = Arc::new(one.topic::<Number>("Waits").unwrap().reader(reliable()).unwrap());
    let waiting = Arc::clone(&reader);
    let (begin, begun) = mpsc::channel();
    let waiter = std::thread::spawn(move || {
        begin.send(()).unwrap();
        waiting.wait(Duration::from_secs(2))
    });
    begun.recv().unwrap();
    let until = Instant::now() + SOON.into();
    let refused = loop {
        assert!(Instant::now() < until, "two threads drove at once");
        if let Err(error) = one.run_once(Duration::ZERO) {
            break error;
        }
    };
    assert!(refused.to_string().contains("waits for samples"), "{refused}");
    let waited = waiter.join().unwrap();
    let says = "the reader of topic \"Waits\" has 0 of 1 matches; no writer of it is known, and 0 other participants";
    assert_eq!(waited, Err(Error::Timeout(taut::ErrorText::Fixed(says))));
    one.run_once(Duration::ZERO).unwrap();
}

/// What a publisher holds back is its own participant's.
#[test]
fn who_groups_takes_no_topic_of_another_participant() {
    let [own, other] = [(); 2].map(|()| participant(27, Driver::Inline));
    let [mine, theirs] = [&own, &other].map(|of| of.topic::<Number>("Foreign").unwrap());
    let (publisher, subscriber) =
        (own.publisher(PublisherQos::default()), own.subscriber(SubscriberQos::default()));
    let is_refused = |error: Option<Error>| matches!(error, Some(Error::BadParameter(text)) if text.contains("another participant"));
    assert!(is_refused(publisher.writer(&theirs, Qos::default().writer).err()));
    assert!(is_refused(subscriber.reader(&theirs, Qos::default().reader).err()));
    drop(own);
    assert!(publisher.writer(&mine, Qos::default().writer).is_ok());
    assert!(subscriber.reader(&mine, Qos::default().reader).is_ok());
}

/// What a group has no writer and no reader has by itself, and nothing is left out in silence.
#[test]
fn a_policy_of_the_group_that_only_its_member_is_given_is_refused() {
    let own = participant(27, Driver::Inline);
    let topic = own.topic::<Number>("Grouped").unwrap();
    let elsewhere = || Qos::default().reliable().partition(["a"]);
    let plain = (own.publisher(PublisherQos::default()), own.subscriber(SubscriberQos::default()));
    let writer = plain.0.writer(&topic, elsewhere()).err().unwrap();
    let reader = plain.1.reader(&topic, elsewhere()).err().unwrap();
    for (error, group) in [(writer, "publisher"), (reader, "subscriber")] {
        let remedy = format!("PARTITION is that of the {group}: give it to DomainParticipant::{group}, or");
        assert!(matches!(&error, Error::InconsistentPolicy(text) if text.contains(&remedy)), "{error}");
    }
    let of_group = (own.publisher(elsewhere().into()), own.subscriber(elsewhere().into()));
    for qos in [elsewhere(), Qos::default()] {
        assert!(of_group.0.writer(&topic, qos.clone()).is_ok() && of_group.1.reader(&topic, qos).is_ok());
    }
    assert!(of_group.0.writer(&topic, Qos::default().writer).is_ok());
    let named = own.publisher(PublisherQos { group_data: b"x".into(), ..elsewhere().into() });
    assert!(named.writer(&topic, elsewhere()).is_ok(), "each policy is the group's or says nothing");
    assert!(named.writer(&topic, Qos::default().partition(["b"])).is_err());
    assert!(topic.writer(elsewhere()).is_ok());
}

#[test]
fn what_a_program_sets_is_refused_as_it_is_in_a_file() {
    let second = Duration::from_secs(1);
    let base = || Config { domain_id: 79, interfaces: vec!["lo".into()], ..Config::default() };
    for (config, says) in [
        // Announced every 3 s it would be lost two seconds of three.
        (Config { lease_duration: second, ..base() }, "announcement_period is 3s and lease_duration 1s"),
        (
            Config { lease_duration: Duration::ZERO, ..base() },
            "lease_duration is \"0us\": it takes a time of `30ms` or more and above `announcement_period`",
        ),
        (Config { announcement_period: Duration(-1), ..base() }, "announcement_period is "),
        (
            Config { announcement_period: Duration::from_micros(9_999), ..base() },
            "announcement_period is \"9999µs\": it takes a time of `10ms` or more",
        ),
        (Config { spin: second.times(2), ..base() }, "spin is \"2s\": it takes a time up to `1s`"),
        (Config { spin: Duration(-1), ..base() }, "spin is "),
        (
            Config { receive_buffer: 4 << 30, ..base() },
            "receive_buffer is 4294967296: it takes a number of bytes",
        ),
        (Config { receive_buffer: 0, ..base() }, "receive_buffer is 0: it takes a number of bytes"),
        (Config { prefault: usize::MAX, ..base() }, "prefault is 18446744073709551615: it takes"),
        (Config { max_rate: 999, ..base() }, "max_rate is 999: it takes"),
        (Config { max_burst: 0, ..base() }, "max_burst is 0: it takes"),
        (Config { anatomy: 4_097, ..base() }, "anatomy is 4097: it takes a number up to 4096"),
        (Config { xdp_pcp: Some(8), ..base() }, "xdp_pcp is 8: it takes a number from 0 to 7"),
        (Config { dpdk_vlan: Some(4_095), ..base() }, "dpdk_vlan is 4095: it takes a number from 1 to 4094"),
        (Config { dpdk_priority_pcp: vec![(0, 6)], ..base() }, "dpdk_priority_pcp is [\"0:6\"]: it takes"),
        (Config { dpdk_priority_pcp: vec![(1, 8)], ..base() }, "dpdk_priority_pcp is [\"1:8\"]: it takes"),
        (
            Config { dpdk_vlan: Some(5), ..base() },
            "what frames of dpdk_device carry, and there is none: name one",
        ),
        (
            Config { dpdk_critical_queue: true, critical_port: 7_402, ..base() },
            "dpdk_critical_queue is a queue of dpdk_device for what comes to critical_port: set both",
        ),
    ] {
        match DomainParticipant::with_config(&config).err() {
            Some(Error::BadParameter(text)) => assert!(text.contains(says), "{text}"),
            other => panic!("{says}: {other:?}"),
        }
    }
}

//! Who drives: listeners, waiting threads, streams; and what a program is told.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use futures_core::Stream;
use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Duration, Error, Qos, Selection,
    StatusMask,
};
use taut_testbed::await_sleep;

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Number {
    value: u32,
}

const SOON: Duration = Duration::from_secs(10);

fn config(domain_id: u32) -> Config {
    Config { domain_id, interfaces: vec!["lo".into()], ..Config::default() }
}

fn participant(domain_id: u32) -> DomainParticipant {
    DomainParticipant::with_config(&config(domain_id)).unwrap()
}

fn pair(
    writer: &DomainParticipant,
    reader: &DomainParticipant,
    topic: &str,
    qos: &Qos,
) -> (DataWriter<Number>, DataReader<Number>) {
    let w = writer.topic::<Number>(topic).unwrap().writer(qos.clone()).unwrap();
    let r = reader.topic::<Number>(topic).unwrap().reader(qos.clone()).unwrap();
    w.wait_matched(SOON).unwrap();
    r.wait_matched(SOON).unwrap();
    (w, r)
}

fn reliable() -> Qos {
    Qos::default().reliable().keep_all()
}

#[test]
fn a_listener_hears_while_nobody_waits() {
    let (a, b) = (participant(21), participant(21));
    let (writer, reader) = pair(&a, &b, "Listener", &reliable());
    let (send, heard) = mpsc::channel();
    reader.on_data_available(move |sample| send.send(sample.data.unwrap().value).unwrap());
    for value in 0..100 {
        writer.write(&Number { value }).unwrap();
    }
    let all: Vec<u32> = (0..100).map(|_| heard.recv_timeout(SOON.into()).unwrap()).collect();
    assert_eq!(all, (0..100).collect::<Vec<_>>());
}

/// So many samples without a pause are an end that never came.
const ENDLESS: u32 = 10_000_000;

/// A reader whose listener finds another sample each time, as of a quick writer elsewhere, until it is told to stop; how many
/// samples it has heard.
fn endless(participant: &DomainParticipant) -> (DataReader<Number>, Arc<AtomicBool>, Arc<AtomicU32>) {
    let (writer, reader) = pair(participant, participant, "Endless", &Qos::default().reliable().keep_last(1));
    let (stop, heard) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let (stops, hears) = (Arc::clone(&stop), Arc::clone(&heard));
    writer.write(&Number { value: 0 }).unwrap();
    reader.on_data_available(move |sample| {
        let next = sample.data.unwrap().value + 1;
        assert_eq!(hears.swap(next, Ordering::SeqCst) + 1, next);
        if !stops.load(Ordering::SeqCst) && next < ENDLESS {
            writer.write(&Number { value: next }).unwrap();
        }
    });
    (reader, stop, heard)
}

#[test]
fn a_listener_that_always_finds_more_leaves_others_their_turn() {
    let (a, b) = (participant(97), participant(97));
    let (writer, other) = pair(&a, &b, "Other", &reliable());
    let (_reader, stop, heard) = endless(&b);
    for value in 0..20 {
        writer.write(&Number { value }).unwrap();
        other.wait(SOON).unwrap();
        assert_eq!(other.take_next().unwrap().unwrap().data, Some(Number { value }));
    }
    let before = heard.load(Ordering::SeqCst);
    while heard.load(Ordering::SeqCst) == before && before < ENDLESS {
        std::thread::yield_now();
    }
    stop.store(true, Ordering::SeqCst);
    assert!(before < ENDLESS, "they waited for its end");
}

#[test]
fn who_runs_a_listener_that_always_finds_more_returns_from_its_call() {
    let inline = DomainParticipant::with_config(&Config { driver: Driver::Inline, ..config(98) }).unwrap();
    let (_reader, stop, heard) = endless(&inline);
    for _ in 0..20 {
        let before = heard.load(Ordering::SeqCst);
        while heard.load(Ordering::SeqCst) == before && before < ENDLESS {
            inline.run_once(Duration::ZERO).unwrap();
        }
    }
    stop.store(true, Ordering::SeqCst);
    assert!(heard.load(Ordering::SeqCst) < ENDLESS, "they waited for its end");
}

#[test]
fn a_listener_that_panics_stops_nobody() {
    let (a, b) = (participant(95), participant(95));
    let (broken, breaks) = pair(&a, &b, "Breaks", &reliable());
    let (writer, reader) = pair(&a, &b, "Goes on", &reliable());
    let (send, heard) = mpsc::channel();
    let also = send.clone();
    breaks.on_data_available(move |_| {
        also.send(0).unwrap();
        panic!("on purpose");
    });
    broken.write(&Number { value: 1 }).unwrap();
    assert_eq!(heard.recv_timeout(SOON.into()), Ok(0));
    reader.on_data_available(move |sample| send.send(sample.data.unwrap().value).unwrap());
    writer.write(&Number { value: 2 }).unwrap();
    assert_eq!(heard.recv_timeout(SOON.into()), Ok(2), "nobody drives any more");
}

/// Does the text of a refusal say this?
fn refuses<T>(outcome: &Result<T, Error>, says: &str) -> bool {
    matches!(outcome, Err(Error::PreconditionNotMet(text)) if text.contains(says))
}

#[test]
fn a_listener_that_waits_is_told_that_it_cannot() {
    let (a, b) = (participant(88), participant(88));
    let (writer, reader) = pair(&a, &b, "Waits", &reliable());
    let (back, _other) = pair(&b, &a, "Back", &reliable());
    let silent = b.topic::<Number>("Silent").unwrap().reader(reliable()).unwrap();
    let (send, heard) = mpsc::channel();
    reader.set_listener(move |_| {
        let outcomes = [
            silent.wait(SOON),
            silent.wait_matched(SOON),
            back.write(&Number { value: 1 }).and_then(|()| back.wait_for_acknowledgments(SOON)),
        ];
        // It hears more than once: of the match, and of the sample.
        let _ = send.send(outcomes);
    });
    writer.write(&Number { value: 1 }).unwrap();
    let outcomes = heard.recv_timeout(SOON.into()).unwrap();
    assert!(outcomes.iter().all(|outcome| refuses(outcome, "a listener cannot wait")), "{outcomes:?}");
    reader.wait(SOON).unwrap();
}

/// A writer's news of its readers come while its own thread drives, on the way to sleep.
#[test]
fn who_drives_wakes_nobody_for_its_own_news() {
    let by_udp = Config { local: false, ..config(96) };
    let a = DomainParticipant::with_config(&Config { driver: Driver::Inline, ..by_udp.clone() }).unwrap();
    let b = DomainParticipant::with_config(&by_udp).unwrap();
    let writer = a.topic::<Number>("Own news").unwrap().writer(reliable()).unwrap();
    let reader = b.topic::<Number>("Own news").unwrap().reader(reliable()).unwrap();
    let idle = a.topic::<Number>("Idle").unwrap().reader(reliable()).unwrap();
    writer.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    let told = || (a.stats().kicks, a.stats().reminders);
    let before = told();
    for value in 0..20 {
        writer.write(&Number { value }).unwrap();
        // Long enough for the heartbeat and its answer.
        assert!(matches!(idle.wait(Duration::from_millis(25)), Err(Error::Timeout(_))));
    }
    assert_eq!(told(), before);
}

#[test]
fn only_one_thread_drives() {
    let threaded = participant(89);
    assert!(refuses(&threaded.run_once(Duration::ZERO), "Driver::Inline"));
    let inline = Config { driver: Driver::Inline, ..config(89) };
    let inline = DomainParticipant::with_config(&inline).unwrap();
    let (refused, until) = (AtomicBool::new(false), Instant::now() + SOON.into());
    let drive = || {
        while !refused.load(Ordering::SeqCst) && Instant::now() < until {
            let outcome = inline.run_once(Duration::from_millis(1));
            refused.fetch_or(refuses(&outcome, "another thread"), Ordering::SeqCst);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(drive);
        drive();
    });
    assert!(refused.load(Ordering::SeqCst), "two threads drove at once");
    inline.run_once(Duration::ZERO).unwrap();
}

/// Waits until nothing happens for longer than there is between two announcements of who has just started:
/// whoever drives sleeps.
fn settle(participant: &DomainParticipant) {
    let mut before = participant.stats().tokens;
    loop {
        std::thread::sleep(std::time::Duration::from_millis(400));
        let now = participant.stats().tokens;
        if now == before + 1 {
            return;
        }
        before = now;
    }
}

#[test]
fn a_listener_that_comes_late_hears_at_once() {
    let seldom = Duration::from_secs(600);
    let quiet = || Config { announcement_period: seldom, lease_duration: seldom.times(3), ..config(34) };
    let (a, b) = (
        DomainParticipant::with_config(&quiet()).unwrap(),
        DomainParticipant::with_config(&quiet()).unwrap(),
    );
    let (writer, reader) = pair(&a, &b, "Late", &reliable());
    settle(&b);
    let (send, heard) = mpsc::channel();
    reader.on_data_available(move |sample| send.send(sample.data.unwrap().value).unwrap());
    settle(&b);
    writer.write(&Number { value: 7 }).unwrap();
    assert_eq!(heard.recv_timeout(SOON.into()), Ok(7), "the driver slept on when somebody began to listen");
}

/// The history of a durable writer is there before anybody can listen.
#[test]
fn a_listener_hears_of_samples_that_were_there_before_it() {
    let one = DomainParticipant::with_config(&Config { driver: Driver::Inline, ..config(35) }).unwrap();
    let topic = one.topic::<Number>("Before").unwrap();
    let writer = topic.writer(reliable().transient_local()).unwrap();
    (0..3).for_each(|value| writer.write(&Number { value }).unwrap());
    let reader = topic.reader(reliable().transient_local()).unwrap();
    one.run_once(Duration::ZERO).unwrap();
    let (send, heard) = mpsc::channel();
    reader.on_data_available(move |sample| send.send(sample.data.unwrap().value).unwrap());
    one.run_once(Duration::ZERO).unwrap();
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_listener_hears_of_losses_that_a_take_finds() {
    // More than a lane holds.
    const MANY: u32 = 2_000;
    let one = DomainParticipant::with_config(&Config { driver: Driver::Inline, ..config(35) }).unwrap();
    let (writer, reader) = pair(&one, &one, "Lost", &Qos::default().best_effort());
    let (send, heard) = mpsc::channel();
    reader.set_listener(move |kinds| send.send(kinds).unwrap());
    for value in 0..MANY {
        writer.write(&Number { value }).unwrap();
    }
    assert_eq!(heard.try_iter().count(), 0, "nobody drives");
    let last = reader.take().unwrap().pop().unwrap().data.unwrap();
    assert_eq!(last.value, MANY - 1);
    assert!(heard.try_iter().any(|kinds| kinds.intersects(StatusMask::SAMPLE_LOST)));
    assert!(reader.sample_lost_status().total_count > 0);
}

#[derive(DdsType)]
#[dds(final)]
struct Wheel {
    #[dds(key)]
    number: u32,
}

/// Who waits, or reads some, leaves samples that nobody finds in a lane any more.
#[test]
fn who_listens_hears_of_samples_that_another_has_found_and_left() {
    let one = DomainParticipant::with_config(&Config { driver: Driver::Inline, ..config(36) }).unwrap();
    let topic = one.topic::<Wheel>("Left").unwrap();
    let (writer, reader) = (topic.writer(reliable()).unwrap(), topic.reader(reliable()).unwrap());
    reader.wait_matched(SOON).unwrap();
    let (send, heard) = mpsc::channel();
    reader.on_data_available(move |sample| send.send(sample.data.unwrap().number).unwrap());
    writer.write(&Wheel { number: 7 }).unwrap();
    reader.wait(SOON).unwrap();
    one.run_once(Duration::ZERO).unwrap();
    assert_eq!(heard.try_recv(), Ok(7), "a wait has taken the news");

    (1..=3).for_each(|number| writer.write(&Wheel { number }).unwrap());
    let some = Selection { max_samples: 1, ..Selection::NOT_READ };
    assert_eq!(reader.take_with(&some).unwrap().len(), 1);
    one.run_once(Duration::ZERO).unwrap();
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), [2, 3], "and so has a take");
}

/// Two tasks that share a reader, or a listener and a thread that takes: one has found all, and leaves some to the other.
#[test]
fn who_listens_hears_of_samples_that_a_take_of_the_next_has_left() {
    let one = DomainParticipant::with_config(&Config { driver: Driver::Inline, ..config(37) }).unwrap();
    let (writer, reader) = pair(&one, &one, "Shared", &Qos::default().reliable().keep_last(10));
    let write = || (0..3).for_each(|value| writer.write(&Number { value }).unwrap());
    let woken = [(); 2].map(|()| Arc::new(Woken(AtomicBool::new(false))));
    let wakers = woken.clone().map(Waker::from);
    {
        let mut tasks = [pin!(reader.samples()), pin!(reader.samples())];
        let mut poll = |task: usize| tasks[task].as_mut().poll_next(&mut Context::from_waker(&wakers[task]));
        assert!(poll(0).is_pending() && poll(1).is_pending());
        write();
        assert!(matches!(poll(0), Poll::Ready(Some(sample)) if sample.data == Some(Number { value: 0 })));
        one.run_once(Duration::ZERO).unwrap();
        assert!(woken[1].0.load(Ordering::SeqCst), "the other task sleeps");
        while poll(1).is_ready() {}
    }
    let (send, heard) = mpsc::channel();
    reader.on_data_available(move |sample| send.send(sample.data.unwrap().value).unwrap());
    write();
    assert_eq!(reader.take_next().unwrap().unwrap().data, Some(Number { value: 0 }));
    one.run_once(Duration::ZERO).unwrap();
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_listener_may_write_to_its_own_topic() {
    let one = participant(22);
    let (writer, reader) = pair(&one, &one, "Echo", &reliable());
    let (first, echo) = (writer, one.topic::<Number>("Echo").unwrap().writer(reliable()).unwrap());
    let (send, heard) = mpsc::channel();
    reader.on_data_available(move |sample| {
        let Number { value } = sample.data.unwrap();
        if value < 5 {
            echo.write(&Number { value: value + 1 }).unwrap();
        }
        send.send(value).unwrap();
    });
    first.write(&Number { value: 0 }).unwrap();
    let mut all: Vec<u32> = (0..6).map(|_| heard.recv_timeout(SOON.into()).unwrap()).collect();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn several_threads_wait_at_one_participant() {
    let (a, b) = (participant(23), participant(23));
    let pairs: Vec<_> = (0..4).map(|n| pair(&a, &b, &format!("Thread{n}"), &reliable())).collect();
    let (writers, readers): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let waiters: Vec<_> = readers
        .into_iter()
        .map(|reader| {
            std::thread::spawn(move || {
                let mut sum = 0;
                for _ in 0..50 {
                    let sample = loop {
                        match reader.take_next().unwrap() {
                            Some(sample) => break sample,
                            None => reader.wait(SOON).unwrap(),
                        }
                    };
                    sum += sample.data.unwrap().value;
                }
                sum
            })
        })
        .collect();
    for value in 0..50 {
        writers.iter().for_each(|writer| writer.write(&Number { value }).unwrap());
    }
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap(), (0..50).sum());
    }
}

#[test]
fn a_local_write_wakes_a_waiting_thread_at_once() {
    // No timer helps before the limit.
    let seldom = Duration::from_secs(600);
    let spin = Duration::ZERO;
    let quiet = Config { announcement_period: seldom, lease_duration: seldom.times(3), spin, ..config(24) };
    let one = DomainParticipant::with_config(&quiet).unwrap();
    let (writer, reader) = pair(&one, &one, "Local", &reliable());
    settle(&one);
    let ((begin, begun), (send, found)) = (mpsc::channel(), mpsc::channel());
    std::thread::spawn(move || {
        begin.send(nix::unistd::gettid().as_raw()).unwrap();
        let outcome = reader.wait(SOON.times(10));
        let _ = send.send(outcome.map(|()| reader.take_next().unwrap().unwrap().data.unwrap().value));
    });
    await_sleep(begun.recv().unwrap());
    writer.write(&Number { value: 9 }).unwrap();
    assert_eq!(found.recv_timeout(SOON.into()), Ok(Ok(9)), "it sleeps on");
}

/// Notes that a task is to be polled again.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// As a wait set would be: no reader has a listener.
#[test]
fn who_drives_inline_is_back_for_a_sample_whichever_way_it_comes() {
    let seldom = Duration::from_secs(600);
    for local in [true, false] {
        let quiet = Config {
            announcement_period: seldom,
            lease_duration: seldom.times(3),
            spin: Duration::ZERO,
            local,
            ..config(25)
        };
        let one = DomainParticipant::with_config(&quiet).unwrap();
        let inline =
            DomainParticipant::with_config(&Config { driver: Driver::Inline, ..quiet.clone() }).unwrap();
        let (writer, reader) = driven_pair(&one, &inline);
        let ((begin, begun), (send, found)) = (mpsc::channel(), mpsc::channel());
        std::thread::spawn(move || {
            begin.send(nix::unistd::gettid().as_raw()).unwrap();
            let sample = loop {
                inline.run_once(SOON.times(10)).unwrap();
                if let Some(sample) = reader.take_next().unwrap() {
                    break sample;
                }
            };
            let _ = send.send(sample.data.unwrap().value);
        });
        await_sleep(begun.recv().unwrap());
        writer.write(&Number { value: 9 }).unwrap();
        assert_eq!(found.recv_timeout(SOON.into()), Ok(9), "it sleeps on, local {local}");
    }
}

/// A pair whose reader's participant has nobody else to drive it.
fn driven_pair(a: &DomainParticipant, b: &DomainParticipant) -> (DataWriter<Number>, DataReader<Number>) {
    let writer = a.topic::<Number>("Driven").unwrap().writer(reliable()).unwrap();
    let reader = b.topic::<Number>("Driven").unwrap().reader(reliable()).unwrap();
    let (short, until) = (Duration::from_millis(1), Instant::now() + SOON.into());
    while writer.wait_matched(short).is_err() || reader.wait_matched(short).is_err() {
        assert!(Instant::now() < until, "they do not match");
        b.run_once(short).unwrap();
    }
    (writer, reader)
}

/// Takes so many by a task on the thread that drives. It is polled when it was woken, and at no other time.
fn by_a_task_that_drives(
    participant: &DomainParticipant,
    reader: &DataReader<Number>,
    many: usize,
) -> Vec<u32> {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut samples = pin!(reader.samples());
    let (mut taken, until) = (Vec::new(), Instant::now() + SOON.into());
    while taken.len() < many {
        assert!(Instant::now() < until, "not woken after {}", taken.len());
        participant.run_once(Duration::from_millis(1)).unwrap();
        while taken.len() < many && woken.0.swap(false, Ordering::SeqCst) {
            while let Poll::Ready(sample) = samples.as_mut().poll_next(&mut Context::from_waker(&waker)) {
                taken.push(sample.unwrap().data.unwrap().value);
            }
        }
    }
    taken
}

/// Takes so many by a task on a thread of its own, which sleeps until it is woken.
fn by_a_task_that_sleeps(reader: &DataReader<Number>, many: usize) -> Vec<u32> {
    let mut samples = pin!(reader.samples());
    let mut next = || futures_executor::block_on(poll_fn(|context| samples.as_mut().poll_next(context)));
    (0..many).map(|_| next().unwrap().data.unwrap().value).collect()
}

#[test]
fn samples_are_a_stream() {
    const MANY: u32 = 20;
    for driver in [Driver::Threaded, Driver::Inline, Driver::Polling] {
        for local in [true, false] {
            let config = |driver| Config { local, driver, ..config(25) };
            let a = DomainParticipant::with_config(&config(Driver::Threaded)).unwrap();
            let b = DomainParticipant::with_config(&config(driver)).unwrap();
            let (writer, reader) = match driver {
                Driver::Inline => driven_pair(&a, &b),
                Driver::Threaded | Driver::Polling => pair(&a, &b, "Stream", &reliable()),
            };
            let (send, done) = mpsc::channel();
            let taker = std::thread::spawn(move || {
                let taken = match driver {
                    Driver::Inline => by_a_task_that_drives(&b, &reader, MANY as usize),
                    Driver::Threaded | Driver::Polling => by_a_task_that_sleeps(&reader, MANY as usize),
                };
                let _ = send.send(taken);
            });
            for value in 0..MANY {
                writer.write(&Number { value }).unwrap();
            }
            let taken = done.recv_timeout(SOON.into()).expect("the task is not woken");
            assert_eq!(taken, (0..MANY).collect::<Vec<_>>(), "{driver:?}, local {local}");
            // Its reader is gone then: the next writer is to match the next reader, not this one.
            taker.join().unwrap();
        }
    }
}

/// A task sleeps while a thread of the program polls.
#[test]
fn samples_are_a_stream_while_a_program_polls() {
    const MANY: u32 = 20;
    let a = participant(40);
    let b = DomainParticipant::with_config(&Config { driver: Driver::Inline, ..config(40) }).unwrap();
    let (writer, reader) = driven_pair(&a, &b);
    let (send, done) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = send.send(by_a_task_that_sleeps(&reader, MANY as usize));
    });
    std::thread::spawn(move || (0..MANY).for_each(|value| writer.write(&Number { value }).unwrap()));
    let (mut taken, until) = (None, Instant::now() + SOON.into());
    b.poll_while(|| {
        taken = done.try_recv().ok();
        taken.is_none() && Instant::now() < until
    })
    .unwrap();
    assert_eq!(taken, Some((0..MANY).collect()), "the task is not woken");
}

#[test]
fn both_sides_are_told_why_they_do_not_match() {
    let (a, b) = (participant(27), participant(27));
    let writer = a.topic::<Number>("Why").unwrap().writer(Qos::default().best_effort()).unwrap();
    let reader = b.topic::<Number>("Why").unwrap().reader(Qos::default().reliable()).unwrap();
    let (send, told) = mpsc::channel();
    let also = send.clone();
    writer.set_listener(move |kinds| send.send(kinds).unwrap());
    reader.set_listener(move |kinds| also.send(kinds).unwrap());
    let (mut offered, mut requested) = (writer.offered_incompatible_qos_status(), Default::default());
    while offered.total_count == 0 || requested == Default::default() {
        let _ = told.recv_timeout(std::time::Duration::from_millis(200));
        let (o, r) = (writer.offered_incompatible_qos_status(), reader.requested_incompatible_qos_status());
        offered = if o.total_count > 0 { o } else { offered };
        requested = if r.total_count > 0 { r } else { requested };
    }
    for status in [offered, requested] {
        let text = status.last[0].to_string();
        assert!(
            text.contains("RELIABILITY") && text.contains("BEST_EFFORT") && text.contains("RELIABLE"),
            "{text}"
        );
    }
    let refused = a.matches().into_iter().find_map(|found| found.refused);
    assert!(refused.is_some_and(|why| why.contains("BEST_EFFORT")));
}

#[test]
fn discovery_is_data_to_wait_for() {
    let (a, b) = (participant(29), participant(29));
    let (participants, publications) = (a.builtin_participants(), a.builtin_publications());
    participants.wait(SOON).unwrap();
    let in_vain = publications.wait(Duration::from_millis(50));
    assert!(matches!(in_vain, Err(Error::Timeout(_))), "a participant is no publication: {in_vain:?}");
    let writer = b.topic::<Number>("Found").unwrap().writer(reliable().transient_local()).unwrap();
    // Until it is taken.
    (0..2).for_each(|_| publications.wait(SOON).unwrap());
    let found = publications.take().unwrap().pop().unwrap();
    assert_eq!((found.data.guid, found.data.topic_name.as_str()), (writer.guid(), "Found"));
    assert_eq!(found.data.qos.durability, taut::DurabilityKind::TransientLocal);
    assert_eq!(participants.take().unwrap().len(), 1);
    drop(writer);
    publications.wait(SOON).unwrap();
    let gone = publications.take().unwrap().pop().unwrap();
    assert_eq!(gone.instance_state, taut::InstanceState::NotAliveDisposed);
}

#[test]
fn keep_all_waits_for_its_readers_and_then_gives_up() {
    let (a, b) = (participant(28), participant(28));
    let limits = taut::qos::ResourceLimits { max_samples: Some(10), ..Default::default() };
    let qos = reliable().resource_limits(limits).max_blocking_time(Duration::from_millis(400));
    let (writer, reader) = pair(&a, &b, "Full", &qos);
    let (mut written, mut refused) = (0, 0);
    // Both ways of writing are refused, one after the other: a reader that was held up takes some even after a timeout.
    while refused < 2 {
        let value = Number { value: written };
        let result = if refused == 0 { writer.write(&value) } else { writer.try_write(&value) };
        match result {
            Ok(()) => (written, refused) = (written + 1, 0),
            Err(Error::Timeout(_)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(written < 1_000, "nothing stops the writer");
    }
    let mut taken = Vec::new();
    while taken.len() < written as usize {
        reader.wait(SOON).unwrap();
        taken.extend(reader.take().unwrap().into_iter().map(|sample| sample.data.unwrap().value));
    }
    assert_eq!(taken, (0..written).collect::<Vec<_>>(), "all that was accepted arrives");
    writer.write(&Number { value: written }).unwrap();
}

#[test]
fn resource_limits_above_what_a_lane_holds_are_kept_exactly() {
    let one = participant(27);
    let limits = |max| taut::qos::ResourceLimits { max_samples: Some(max), ..Default::default() };
    let qos = reliable().max_blocking_time(Duration::from_millis(20));
    let topic = one.topic::<Number>("Limits").unwrap();
    let writer = topic.writer(qos.clone().resource_limits(limits(700))).unwrap();
    let reader = topic.reader(qos.resource_limits(limits(10))).unwrap();
    writer.wait_matched(SOON).unwrap();
    let written = (0..10_000).take_while(|value| writer.write(&Number { value: *value }).is_ok()).count();
    assert_eq!(written, 710, "the reader's 10 and the writer's 700");
    let mut taken = Vec::new();
    while taken.len() < written {
        reader.wait(SOON).unwrap();
        taken.extend(reader.take().unwrap().into_iter().map(|sample| sample.data.unwrap().value));
    }
    assert_eq!(taken, (0..written as u32).collect::<Vec<_>>(), "in order, each once");
}

#[test]
fn a_wait_is_as_short_as_it_is_asked_to_be() {
    let one = participant(39);
    let (_writer, reader) = pair(&one, &one, "Short", &reliable());
    let short = Duration::from_micros(200);
    let wait = || {
        let start = Instant::now();
        assert!(matches!(reader.wait(short), Err(Error::Timeout(_))));
        start.elapsed()
    };
    // A machine may be late any time, but not every time: the least of many is the wait itself.
    let least = (0..100).map(|_| wait()).min().unwrap();
    assert!(least >= std::time::Duration::from_micros(200), "it ended early, after {least:?}");
    assert!(least < std::time::Duration::from_micros(900), "rounded up to {least:?}");
}

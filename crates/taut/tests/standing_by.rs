//! Who drives when nobody seems to have to: users who wait without a wait, a writer that goes while its reader waits,
//! lanes that come while the driver sleeps, code of the user's that panics where it is called.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use futures_core::Stream;
use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Duration, Error, Qos};
use taut_testbed::await_sleep;

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Number {
    value: u32,
}

const SOON: Duration = Duration::from_secs(5);

fn config(domain_id: u32) -> Config {
    Config { domain_id, interfaces: vec!["lo".into()], ..Config::default() }
}

/// Samples come by UDP.
fn apart(domain_id: u32) -> Config {
    Config { local: false, ..config(domain_id) }
}

fn reliable() -> Qos {
    Qos::default().reliable().keep_all().transient_local()
}

fn writer(of: &DomainParticipant, topic: &str) -> DataWriter<Number> {
    of.topic::<Number>(topic).unwrap().writer(reliable()).unwrap()
}

fn reader(of: &DomainParticipant, topic: &str) -> DataReader<Number> {
    of.topic::<Number>(topic).unwrap().reader(reliable()).unwrap()
}

/// Calls until that says that it is done; `false` if it never does.
fn until(mut is_done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + SOON.into();
    while Instant::now() < end {
        if is_done() {
            return true;
        }
    }
    false
}

#[test]
fn who_asks_again_and_again_without_a_wait_is_served() {
    let (a, b) = (DomainParticipant::with_config(&apart(180)), DomainParticipant::with_config(&apart(180)));
    let (a, b) = (a.unwrap(), b.unwrap());
    let (writer, reader) = (writer(&a, "Asks"), reader(&b, "Asks"));
    writer.wait_matched(SOON).unwrap();
    // From here on this thread has had the driver's role.
    assert!(reader.wait(Duration::from_millis(50)).is_err());
    writer.write(&Number { value: 1 }).unwrap();
    assert!(until(|| reader.wait(Duration::ZERO).is_ok()), "nobody drives");
}

#[test]
fn who_waits_at_a_lane_whose_writer_goes_hears_the_next_writer() {
    let quick = Config { spin: Duration::ZERO, ..config(182) };
    let one = DomainParticipant::with_config(&quick).unwrap();
    let (writer_here, reader) = (writer(&one, "Goes"), reader(&one, "Goes"));
    reader.wait_matched(SOON).unwrap();
    let ((begin, begun), (send, found)) = (mpsc::channel(), mpsc::channel());
    std::thread::spawn(move || {
        begin.send(nix::unistd::gettid().as_raw()).unwrap();
        let outcome = reader.wait(SOON.times(10));
        let _ = send.send(outcome.map(|()| reader.take_next().unwrap().unwrap().data.unwrap().value));
    });
    await_sleep(begun.recv().unwrap());
    drop(writer_here);
    let other = DomainParticipant::with_config(&apart(182)).unwrap();
    let writer_there = writer(&other, "Goes");
    writer_there.wait_matched(SOON).unwrap();
    writer_there.write(&Number { value: 7 }).unwrap();
    assert_eq!(found.recv_timeout(SOON.into()).map(Result::unwrap), Ok(7), "it sleeps on");
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
fn a_lane_that_comes_while_the_driver_sleeps_wakes_it() {
    let seldom = Duration::from_secs(600);
    let quiet = Config { announcement_period: seldom, lease_duration: seldom.times(3), ..config(183) };
    let a = DomainParticipant::with_config(&Config { driver: Driver::Inline, ..quiet.clone() }).unwrap();
    let b = DomainParticipant::with_config(&quiet).unwrap();
    let topic = |of: &DomainParticipant| of.topic::<Number>("Late").unwrap();
    let writer = topic(&a).writer(Qos::default().best_effort()).unwrap();
    let run = || a.run_once(Duration::from_millis(1)).unwrap();
    let knows = || {
        run();
        b.discovered_endpoints().iter().any(|found| found.guid == writer.guid())
    };
    assert!(until(knows));
    // It matches at once, the writer only with its next step.
    let reader = topic(&b).reader(Qos::default().best_effort()).unwrap();
    let (send, heard) = mpsc::channel();
    reader.on_data_available(move |sample| send.send(sample.data.unwrap().value).unwrap());
    settle(&b);
    let is_matched = || {
        run();
        writer.publication_matched_status().current_count == 1
    };
    assert!(until(is_matched));
    writer.write(&Number { value: 7 }).unwrap();
    assert_eq!(heard.recv_timeout(SOON.into()), Ok(7), "the driver sleeps on");
}

/// A waker that a test can count, and that panics if it is told to.
struct Bell {
    panics: bool,
    rung: mpsc::Sender<()>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let _ = self.rung.send(());
        assert!(!self.panics, "on purpose");
    }
}

/// Polls a stream once with a waker of its own. Returns what shows whether that waker is still kept.
fn poll_once(samples: impl Stream, panics: bool, rung: &mpsc::Sender<()>) -> Weak<Bell> {
    let bell = Arc::new(Bell { panics, rung: rung.clone() });
    let (kept, waker) = (Arc::downgrade(&bell), Waker::from(bell));
    let samples = std::pin::pin!(samples);
    assert!(matches!(samples.poll_next(&mut Context::from_waker(&waker)), Poll::Pending));
    kept
}

#[test]
fn a_stream_that_moves_from_task_to_task_keeps_the_last_of_their_wakers() {
    let one = DomainParticipant::with_config(&config(184)).unwrap();
    let reader = reader(&one, "Moves");
    let (rung, _) = mpsc::channel();
    let mut samples = reader.samples();
    let wakers: Vec<_> = (0..100).map(|_| poll_once(&mut samples, false, &rung)).collect();
    let kept = || wakers.iter().filter(|kept| kept.strong_count() > 0).count();
    assert_eq!(kept(), 1, "of tasks that are over, too");
    drop(samples);
    assert_eq!(kept(), 0, "nobody waits any more");
}

#[test]
fn a_waker_that_panics_stops_nobody() {
    let (a, b) = (DomainParticipant::with_config(&apart(185)), DomainParticipant::with_config(&apart(185)));
    let (a, b) = (a.unwrap(), b.unwrap());
    let (first, broken) = (writer(&a, "Breaks"), reader(&b, "Breaks"));
    let (second, reader) = (writer(&a, "Goes on"), reader(&b, "Goes on"));
    first.wait_matched(SOON).unwrap();
    second.wait_matched(SOON).unwrap();
    broken.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    let (rung, wakes) = mpsc::channel();
    let mut samples = broken.samples();
    poll_once(&mut samples, true, &rung);
    first.write(&Number { value: 1 }).unwrap();
    wakes.recv_timeout(SOON.into()).unwrap();
    let (send, heard) = mpsc::channel();
    reader.on_data_available(move |sample| send.send(sample.data.unwrap().value).unwrap());
    second.write(&Number { value: 2 }).unwrap();
    assert_eq!(heard.recv_timeout(SOON.into()), Ok(2), "nobody drives any more");
}

/// A waker that runs its task there and then.
struct Task {
    reader: DataReader<Number>,
    does: mpsc::Sender<(Result<(), Error>, bool)>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        // It may be woken by other news than its sample.
        while self.reader.take_next().unwrap().is_some() {}
        let waited = self.reader.wait(SOON);
        let mut context = Context::from_waker(Waker::noop());
        let polled = std::pin::pin!(self.reader.samples()).poll_next(&mut context);
        let _ = self.does.send((waited, matches!(polled, Poll::Ready(None))));
    }
}

/// It is on the thread that would bring what it waits for. A stream that it polls is none that waits.
#[test]
fn a_task_that_its_waker_runs_is_refused_to_wait_for_itself() {
    for (domain_id, driver) in [(187, Driver::Threaded), (188, Driver::Inline), (189, Driver::Polling)] {
        let out = DomainParticipant::with_config(&apart(domain_id)).unwrap();
        let inward = Config { driver, ..apart(domain_id) };
        let inward = DomainParticipant::with_config(&inward).unwrap();
        let (writer, reader) = (writer(&out, "Woken"), reader(&inward, "Woken"));
        let drive = || {
            if driver == Driver::Inline {
                inward.run_once(Duration::from_millis(1)).unwrap();
            }
        };
        let is_matched = || {
            drive();
            let written = writer.publication_matched_status().current_count == 1;
            written && reader.subscription_matched_status().current_count == 1
        };
        assert!(until(is_matched), "{driver:?}: they do not match");
        let (does, told) = mpsc::channel();
        let task = Arc::new(Task { reader, does });
        let mut samples = task.reader.samples();
        let waker = Waker::from(Arc::clone(&task));
        assert!(std::pin::Pin::new(&mut samples).poll_next(&mut Context::from_waker(&waker)).is_pending());
        writer.write(&Number { value: 7 }).unwrap();
        let mut tells = None;
        let has_told = || {
            drive();
            tells = told.try_recv().ok();
            tells.is_some()
        };
        assert!(until(has_told), "{driver:?}: it is not woken, or waits");
        let (waited, ends) = tells.unwrap();
        assert!(matches!(waited, Err(Error::PreconditionNotMet(_))), "{driver:?}: {waited:?}");
        assert!(!ends, "{driver:?}: the stream ends");
    }
}

thread_local! {
    /// What the tasks of a thread write by.
    static SHARED: RefCell<Option<Rc<DataWriter<Number>>>> = const { RefCell::new(None) };
}

/// A waker that has a task of its thread write there and then.
struct Writes(mpsc::Sender<Result<(), Error>>);

impl Wake for Writes {
    fn wake(self: Arc<Self>) {
        let writer = SHARED.with_borrow(Clone::clone).unwrap();
        let _ = self.0.send(writer.write(&Number { value: 2 }));
    }
}

/// Nobody else drives: its reader hears within the call.
#[test]
fn a_task_that_its_waker_runs_within_a_call_of_a_writer_is_refused_to_write_by_it() {
    let one = DomainParticipant::with_config(&Config { driver: Driver::Inline, ..apart(191) }).unwrap();
    let (writer, reader) = (Rc::new(writer(&one, "Within")), reader(&one, "Within"));
    SHARED.set(Some(Rc::clone(&writer)));
    let (writes, wrote) = mpsc::channel();
    let mut samples = reader.samples();
    let waker = Waker::from(Arc::new(Writes(writes)));
    assert!(std::pin::Pin::new(&mut samples).poll_next(&mut Context::from_waker(&waker)).is_pending());
    writer.write(&Number { value: 1 }).unwrap();
    let refused = wrote.try_recv().unwrap();
    assert!(
        matches!(&refused, Err(Error::PreconditionNotMet(text)) if text.contains("is in a call")),
        "{refused:?}"
    );
    waker.wake();
    assert_eq!(wrote.try_recv().unwrap(), Ok(()), "that call is over");
    let values = std::iter::from_fn(|| reader.take_next().unwrap()).map(|sample| sample.data.unwrap().value);
    assert_eq!(values.collect::<Vec<_>>(), [1, 2]);
    SHARED.take();
}

#[test]
fn who_panics_while_it_polls_leaves_the_driving_to_others() {
    let inline = Config { driver: Driver::Inline, ..config(186) };
    let inline = DomainParticipant::with_config(&inline).unwrap();
    let polls = catch_unwind(AssertUnwindSafe(|| inline.poll_while(|| panic!("on purpose"))));
    assert!(polls.is_err());
    assert_eq!(inline.run_once(Duration::ZERO), Ok(()));
}

/// What a listener owns.
struct Owned {
    ends: Option<mpsc::Sender<()>>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        drop(self.ends.take());
        panic!("on purpose");
    }
}

#[test]
fn a_listener_that_goes_while_it_runs_and_panics_then_stops_nobody() {
    let (a, b) = (DomainParticipant::with_config(&apart(187)), DomainParticipant::with_config(&apart(187)));
    let (a, b) = (a.unwrap(), b.unwrap());
    let (first, replaced) = (writer(&a, "Replaced"), reader(&b, "Replaced"));
    let (second, reader) = (writer(&a, "Goes on"), reader(&b, "Goes on"));
    first.wait_matched(SOON).unwrap();
    second.wait_matched(SOON).unwrap();
    replaced.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    let ((begin, begun), (end, is_to_end), (ends, ended)) =
        (mpsc::channel(), mpsc::channel::<()>(), mpsc::channel());
    let owned = Owned { ends: Some(ends) };
    replaced.on_data_available(move |_| {
        let _ = &owned;
        begin.send(()).unwrap();
        let _ = is_to_end.recv();
    });
    first.write(&Number { value: 1 }).unwrap();
    begun.recv_timeout(SOON.into()).unwrap();
    replaced.set_listener(|_| ());
    drop(end);
    assert_eq!(ended.recv_timeout(SOON.into()), Err(mpsc::RecvTimeoutError::Disconnected));
    let (send, heard) = mpsc::channel();
    reader.on_data_available(move |sample| send.send(sample.data.unwrap().value).unwrap());
    second.write(&Number { value: 2 }).unwrap();
    assert_eq!(heard.recv_timeout(SOON.into()), Ok(2), "nobody drives any more");
}

#[test]
fn a_writer_that_a_listener_makes_while_another_goes_keeps_what_it_has() {
    const PERIOD: Duration = Duration::from_millis(20);
    let one = DomainParticipant::with_config(&config(188)).unwrap();
    let topic = one.topic::<Number>("Again").unwrap();
    let qos = Qos::default().reliable().deadline(PERIOD);
    let (first, reader) = (topic.writer(qos.clone()).unwrap(), topic.reader(qos.clone()).unwrap());
    reader.wait_matched(SOON).unwrap();
    let (send, made) = mpsc::channel();
    let mut topic = Some(topic);
    reader.set_listener(move |_| {
        if let Some(topic) = topic.take() {
            send.send(topic.writer(qos.clone()).unwrap()).unwrap();
        }
    });
    drop(first);
    let second = made.recv_timeout(SOON.into()).unwrap();
    second.write(&Number { value: 1 }).unwrap();
    assert!(until(|| second.offered_deadline_missed_status().total_count > 0), "nobody watches its deadline");
}

#[test]
fn a_participant_that_cannot_start_tells_nobody_of_itself() {
    let peer = DomainParticipant::with_config(&config(189)).unwrap();
    let name = |name: &str| Config { name: name.into(), ..config(189) };
    // No system has so many.
    let refused = Config { driver_cpus: vec![1_023], ..name("refused") };
    assert!(DomainParticipant::with_config(&refused).is_err());
    let _later = DomainParticipant::with_config(&name("later")).unwrap();
    let is_known = |name: &str| peer.discovered_participants().iter().any(|found| found.name == name);
    assert!(until(|| is_known("later")));
    assert!(until(|| !is_known("refused")), "it is taken for alive");
}

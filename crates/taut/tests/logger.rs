//! A logger is the user's code: it may use the participant that logs.

use std::cell::Cell;
use std::pin::Pin;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Instant;

use futures_core::Stream;
use nix::sched::{CloneFlags, unshare};

use taut::{
    Config, DataWriter, DdsType, DomainParticipant, DurabilityKind, Duration, Qos, qos::ResourceLimits,
};

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Line {
    text: String,
}

/// The logger is the process's: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

const SOON: Duration = Duration::from_secs(5);

/// Publishes what is logged.
struct Logger(Mutex<Option<(DataWriter<Line>, mpsc::Sender<()>)>>);

/// So often it is to panic, as one does that prints to a standard error which is closed.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// What has this in it is logged, and nothing else.
static ONLY: Mutex<&str> = Mutex::new("");

static LOGGER: Logger = Logger(Mutex::new(None));

thread_local! {
    static LOGS: Cell<bool> = const { Cell::new(false) };
}

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        let text = record.args().to_string();
        if !text.contains(*ONLY.lock().unwrap_or_else(PoisonError::into_inner)) || LOGS.replace(true) {
            return;
        }
        let one_less = |panics: usize| panics.checked_sub(1);
        if PANICS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            LOGS.set(false);
            panic!("on purpose");
        }
        if let Some((writer, sent)) = &*self.0.lock().unwrap() {
            let is_flight_record = record.target() == "taut_exec::flight_recorder";
            let what = if is_flight_record { "flight record: " } else { "" };
            writer.write(&Line { text: format!("{what}{text}") }).unwrap();
            let _ = sent.send(());
        }
        LOGS.set(false);
    }

    fn flush(&self) {}
}

fn begin(level: log::LevelFilter) -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // The other test may have set it.
    let _ = log::set_logger(&LOGGER);
    log::set_max_level(level);
    turn
}

#[test]
fn what_is_logged_may_be_published() {
    let _turn = begin(log::LevelFilter::Warn);
    let config = Config { domain_id: 190, interfaces: vec!["lo".into()], local: false, ..Config::default() };
    let one = DomainParticipant::with_config(&config).unwrap();
    let topic = one.topic::<Line>("Log").unwrap();
    let qos = Qos::default().reliable().keep_all();
    let (send, sent) = mpsc::channel();
    let reader = topic.reader(qos.clone()).unwrap();
    *LOGGER.0.lock().unwrap() = Some((topic.writer(qos).unwrap(), send));
    // They do not match, of which the log is told.
    let other = one.topic::<Line>("Other").unwrap();
    let _writer = other.writer(Qos::default().best_effort()).unwrap();
    let _reader = other.reader(Qos::default().reliable()).unwrap();
    sent.recv_timeout(SOON.into()).unwrap();
    reader.wait(SOON).unwrap();
    let line = reader.take_next().unwrap().unwrap().data.unwrap();
    assert!(line.text.contains("does not match"), "{}", line.text);
    *LOGGER.0.lock().unwrap() = None;
}

#[test]
fn a_writer_whose_samples_nobody_stores_is_warned_of() {
    let _turn = begin(log::LevelFilter::Warn);
    let config = Config { domain_id: 182, interfaces: vec!["lo".into()], local: false, ..Config::default() };
    let one = DomainParticipant::with_config(&config).unwrap();
    let topic = one.topic::<Line>("Log").unwrap();
    let qos = Qos::default().reliable().keep_all();
    let (send, sent) = mpsc::channel();
    let reader = topic.reader(qos.clone()).unwrap();
    *LOGGER.0.lock().unwrap() = Some((topic.writer(qos).unwrap(), send));
    let kept = one.topic::<Line>("Kept").unwrap();
    let kinds = [DurabilityKind::TransientLocal, DurabilityKind::Transient, DurabilityKind::Persistent];
    let _writers = kinds.map(|kind| kept.writer(Qos::default().durability(kind)).unwrap());
    let lines: Vec<_> = reader.take().unwrap().into_iter().map(|line| line.data.unwrap().text).collect();
    *LOGGER.0.lock().unwrap() = None;
    assert_eq!(sent.try_iter().count(), 2, "{lines:?}");
    for (line, kind) in lines.iter().zip(["TRANSIENT", "PERSISTENT"]) {
        assert!(line.starts_with(&format!("topic Kept: DURABILITY of a writer is {kind}, but")), "{line}");
    }
    assert_eq!(lines.len(), 2);
}

struct PanickingWaker;

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

#[test]
fn who_has_panicked_and_who_was_late_is_told_by_name() {
    let _turn = begin(log::LevelFilter::Warn);
    let config = Config { domain_id: 61, interfaces: vec!["lo".into()], local: false, ..Config::default() };
    let one = DomainParticipant::with_config(&config).unwrap();
    let topic = one.topic::<Line>("Log").unwrap();
    let qos = Qos::default().reliable().keep_all();
    let (send, sent) = mpsc::channel();
    let reader = topic.reader(qos.clone()).unwrap();
    *LOGGER.0.lock().unwrap() = Some((topic.writer(qos.clone()).unwrap(), send));
    let told = || {
        sent.recv_timeout(SOON.into()).unwrap();
        reader.wait(SOON).unwrap();
        reader.take_next().unwrap().unwrap().data.unwrap().text
    };
    let panics = one.topic::<Line>("Panics").unwrap();
    let (writer, broken) = (panics.writer(qos.clone()).unwrap(), panics.reader(qos).unwrap());
    broken.on_data_available(|_| panic!("on purpose"));
    writer.write(&Line { text: "to it".into() }).unwrap();
    let of = broken.guid();
    let says = format!("the listener of reader {of} of topic \"Panics\" has panicked, and is called no more");
    assert_eq!(told(), says);
    let mut samples = broken.samples();
    let waker = Waker::from(Arc::new(PanickingWaker));
    assert!(Pin::new(&mut samples).poll_next(&mut Context::from_waker(&waker)).is_pending());
    writer.write(&Line { text: "to it".into() }).unwrap();
    assert_eq!(told(), format!("a waker of reader {of} of topic \"Panics\" has panicked"));
    drop(samples);
    let late = one.topic::<Line>("Late").unwrap();
    let late = late.writer(Qos::default().deadline(Duration::from_millis(10))).unwrap();
    late.write(&Line { text: "once".into() }).unwrap();
    let text = told();
    assert!(text.starts_with("flight record: a deadline of topic Late was missed; the last steps"), "{text}");
    *LOGGER.0.lock().unwrap() = None;
}

/// The driver finds that they do not match, and says so.
#[test]
fn a_logger_that_panics_stops_no_driver() {
    let _turn = begin(log::LevelFilter::Warn);
    let config = Config { domain_id: 62, interfaces: vec!["lo".into()], local: false, ..Config::default() };
    let [one, other] = [(); 2].map(|()| DomainParticipant::with_config(&config).unwrap());
    let [here, there] = [&one, &other].map(|of| of.topic::<Line>("Line").unwrap());
    let reader = here.reader(Qos::default().reliable().transient_local()).unwrap();
    let (send, heard) = mpsc::channel();
    reader.on_data_available(move |line| send.send(line.data.unwrap()).unwrap());
    // Both sides tell.
    PANICS.store(2, Ordering::SeqCst);
    let _unmatched = there.writer(Qos::default().best_effort().transient_local()).unwrap();
    let begun = Instant::now();
    while PANICS.load(Ordering::SeqCst) > 0 {
        assert!(begun.elapsed() < SOON.into(), "nothing is logged");
        thread::yield_now();
    }
    let writer = there.writer(Qos::default().reliable().transient_local()).unwrap();
    let line = Line { text: "heard".into() };
    writer.write(&line).unwrap();
    assert_eq!(heard.recv_timeout(SOON.into()), Ok(line), "nobody drives");
}

/// The driver logs, and its logger waits for what only this driver brings.
#[test]
fn a_logger_may_wait_for_its_own_driver() {
    let _turn = begin(log::LevelFilter::Warn);
    let config = Config { domain_id: 63, interfaces: vec!["lo".into()], local: false, ..Config::default() };
    let [one, other, third] = [(); 3].map(|()| DomainParticipant::with_config(&config).unwrap());
    let qos = Qos::default().reliable().keep_all();
    let reader = third.topic::<Line>("Log").unwrap().reader(qos.clone()).unwrap();
    let (send, sent) = mpsc::channel();
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    let limited = qos.resource_limits(limits).max_blocking_time(SOON);
    let writer = one.topic::<Line>("Log").unwrap().writer(limited).unwrap();
    writer.wait_matched(SOON).unwrap();
    *LOGGER.0.lock().unwrap() = Some((writer, send));
    let [here, there] = [&one, &other].map(|of| of.topic::<Line>("Line").unwrap());
    let _readers: Vec<_> = (0..5).map(|_| here.reader(Qos::default().reliable()).unwrap()).collect();
    // The other side's threads would wait for the logger's lock, and the driver for them.
    *ONLY.lock().unwrap() = "this reader does not match";
    let begun = Instant::now();
    let _unmatched = there.writer(Qos::default().best_effort()).unwrap();
    let logged: Vec<_> = (0..5).map(|_| sent.recv_timeout(SOON.into())).collect();
    *ONLY.lock().unwrap() = "";
    *LOGGER.0.lock().unwrap() = None;
    assert_eq!(logged, [Ok(()); 5]);
    assert!(begun.elapsed() < SOON.into(), "{:?}", begun.elapsed());
    reader.wait(SOON).unwrap();
}

mod other {
    /// What another program takes the type for.
    #[derive(taut::DdsType, Clone, Debug, PartialEq)]
    #[dds(final)]
    pub struct Line {
        pub length: u64,
    }
}

#[test]
fn a_sample_of_another_type_is_told_of_however_it_is_taken() {
    let _turn = begin(log::LevelFilter::Warn);
    let config = Config { domain_id: 53, interfaces: vec!["lo".into()], local: false, ..Config::default() };
    let one = DomainParticipant::with_config(&config).unwrap();
    let qos = Qos::default().reliable().keep_all();
    let lines = one.topic::<Line>("Log").unwrap();
    let (send, sent) = mpsc::channel();
    let reader = lines.reader(qos.clone()).unwrap();
    *LOGGER.0.lock().unwrap() = Some((lines.writer(qos.clone()).unwrap(), send));
    let topic = one.topic::<other::Line>("Other").unwrap();
    let writer = topic.writer(qos.clone()).unwrap();
    let other = one.topic::<Line>("Other").unwrap().reader(qos).unwrap();
    writer.wait_matched(SOON).unwrap();
    type Take = fn(&taut::DataReader<Line>) -> bool;
    let takes: [Take; 3] = [
        |other| other.read().unwrap().is_empty(),
        |other| other.take().unwrap().is_empty(),
        |other| other.take_next().unwrap().is_none(),
    ];
    for (at, is_nothing) in takes.into_iter().enumerate() {
        writer.write(&other::Line { length: u64::MAX }).unwrap();
        other.wait(SOON).unwrap();
        assert!(is_nothing(&other), "{at}");
        assert!(sent.try_recv().is_ok(), "no word of it: {at}");
        let told: Vec<_> = reader.take().unwrap().into_iter().filter_map(|line| line.data).collect();
        let says = "a sample is no Line as its reader has it, and was dropped: have the writer's type the same \
                    members in the same order";
        assert!(!told.is_empty() && told.iter().all(|line| line.text == says), "{at}: {told:?}");
    }
    *LOGGER.0.lock().unwrap() = None;
}

#[test]
fn a_logger_that_panics_at_a_sample_of_another_type_ends_no_listener() {
    let _turn = begin(log::LevelFilter::Warn);
    let config = Config { domain_id: 63, interfaces: vec!["lo".into()], local: false, ..Config::default() };
    let one = DomainParticipant::with_config(&config).unwrap();
    let qos = Qos::default().reliable().keep_all();
    let lines = one.topic::<Line>("Other").unwrap();
    let reader = lines.reader(qos.clone()).unwrap();
    let (send, heard) = mpsc::channel();
    reader.on_data_available(move |line| send.send(line.data.unwrap()).unwrap());
    let others = one.topic::<other::Line>("Other").unwrap().writer(qos.clone()).unwrap();
    let writer = lines.writer(qos).unwrap();
    others.wait_matched(SOON).unwrap();
    writer.wait_matched(SOON).unwrap();
    PANICS.store(1, Ordering::SeqCst);
    others.write(&other::Line { length: u64::MAX }).unwrap();
    let line = Line { text: "heard".into() };
    writer.write(&line).unwrap();
    assert_eq!(heard.recv_timeout(SOON.into()), Ok(line), "it is called no more");
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "nothing is logged");
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split_whitespace()).status().expect("iproute2");
    assert!(status.success(), "ip {arguments}");
}

/// The driver finds a change of the network, and says so.
#[test]
fn what_the_driver_logs_may_be_published() {
    if !nix::unistd::geteuid().is_root() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "this test needs root");
        return println!("LEFT OUT: it needs root for network namespaces");
    }
    let _turn = begin(log::LevelFilter::Info);
    let host = || {
        unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
        ip("link set lo up");
        ip("link add near type veth peer name far");
        ip("link set far up");
        ip("link set near up");
        let config = Config { local: false, ..Config::default() };
        let one = DomainParticipant::with_config(&config).unwrap();
        let topic = one.topic::<Line>("Log").unwrap();
        let qos = Qos::default().reliable().keep_all();
        let (send, sent) = mpsc::channel();
        let reader = topic.reader(qos.clone()).unwrap();
        *LOGGER.0.lock().unwrap() = Some((topic.writer(qos).unwrap(), send));
        ip("addr add 10.79.1.1/24 dev near");
        sent.recv_timeout(SOON.into()).unwrap();
        reader.wait(SOON).unwrap();
        let line = reader.take_next().unwrap().unwrap().data.unwrap();
        assert!(line.text.contains("10.79.1.1"), "{}", line.text);
        *LOGGER.0.lock().unwrap() = None;
    };
    thread::spawn(host).join().unwrap();
}

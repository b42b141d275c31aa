//! A logger is the user's code: it may use the participant that logs.

use std::cell::Cell;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use nix::sched::{CloneFlags, unshare};

use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Duration, Qos};

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Line {
    text: String,
}

/// The logger is the process's: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

const SOON: Duration = Duration::from_secs(5);

/// A type by the name of [`Line`], of which no line is one.
#[derive(DdsType)]
#[dds(final, name = "Line")]
struct Rows {
    rows: [u64; 8],
}

/// Publishes what is logged.
struct Logger(Mutex<Option<(DataWriter<Line>, mpsc::Sender<()>)>>);

static LOGGER: Logger = Logger(Mutex::new(None));

thread_local! {
    static LOGS: Cell<bool> = const { Cell::new(false) };
}

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        if LOGS.replace(true) {
            return;
        }
        if let Some((writer, sent)) = &*self.0.lock().unwrap() {
            writer.write(&Line { text: record.args().to_string() }).unwrap();
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
fn samples_of_another_type_are_told_of_however_they_are_taken() {
    let _turn = begin(log::LevelFilter::Warn);
    let config = Config { domain_id: 79, interfaces: vec!["lo".into()], ..Config::default() };
    let one = DomainParticipant::with_config(&config).unwrap();
    let qos = Qos::default().reliable().keep_all();
    let topic = one.topic::<Line>("Log").unwrap();
    let (send, sent) = mpsc::channel();
    let log = topic.reader(qos.clone()).unwrap();
    *LOGGER.0.lock().unwrap() = Some((topic.writer(qos.clone()).unwrap(), send));
    let writer = one.topic::<Line>("Rows").unwrap().writer(qos.clone()).unwrap();
    let reader = one.topic::<Rows>("Rows").unwrap().reader(qos).unwrap();
    type Take = fn(&DataReader<Rows>) -> usize;
    let takes: [Take; 4] = [
        |reader| usize::from(reader.take_next().unwrap().is_some()),
        |reader| {
            reader
                .take()
                .unwrap()
                .into_iter()
                .filter_map(|sample| sample.data)
                .map(|data| data.rows.len())
                .sum()
        },
        |reader| reader.read().unwrap().len(),
        |reader| usize::from(reader.take_into(&mut Rows { rows: [0; 8] }).unwrap().is_some()),
    ];
    for take in takes {
        writer.write(&Line { text: "1".into() }).unwrap();
        reader.wait(SOON).unwrap();
        assert_eq!(take(&reader), 0);
        sent.recv_timeout(SOON.into()).unwrap();
        log.wait(SOON).unwrap();
        let line = log.take_next().unwrap().unwrap().data.unwrap();
        assert!(line.text.starts_with("a sample is not a Line: it was dropped"), "{}", line.text);
    }
    *LOGGER.0.lock().unwrap() = None;
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

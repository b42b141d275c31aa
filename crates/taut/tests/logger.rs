//! A logger is the user's code: it may use the participant that logs.

use std::cell::Cell;
use std::sync::{Mutex, mpsc};

use taut::{Config, DataWriter, DdsType, DomainParticipant, Duration, Qos};

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Line {
    text: String,
}

const SOON: Duration = Duration::from_secs(5);

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

#[test]
fn what_is_logged_may_be_published() {
    log::set_logger(&LOGGER).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
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

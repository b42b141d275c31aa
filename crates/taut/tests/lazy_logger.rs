//! A logger that makes a participant for what it publishes when the first line comes, in a process of its own: some lines
//! are told once in a process.

use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use taut::{Config, DomainParticipant};

const SOON: Duration = Duration::from_secs(20);

/// More than a system gives: that is told.
fn config() -> Config {
    Config { domain_id: 61, interfaces: vec!["lo".into()], receive_buffer: 1 << 30, ..Config::default() }
}

struct Logger(OnceLock<Option<DomainParticipant>>);

static LOGGER: Logger = Logger(OnceLock::new());

thread_local! {
    static LOGS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        if record.args().to_string().contains("receive buffers") && !LOGS.replace(true) {
            let _ = self.0.get_or_init(|| DomainParticipant::with_config(&config()).ok());
        }
    }

    fn flush(&self) {}
}

#[test]
fn a_logger_may_make_its_participant_with_the_first_line() {
    log::set_logger(&LOGGER).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(DomainParticipant::with_config(&config()).map(drop)));
    told.recv_timeout(SOON).expect("the participant waits for its logger, and that for it").unwrap();
    assert!(LOGGER.0.get().is_some_and(Option::is_some), "nothing was told");
}

//! Addresses that change while the process has no descriptor left, in a process of its own: the limit is for all threads.
//!
//! Needs root. Without it the test says that it is left out; with `CI=true` that is a failure.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use taut::{Config, DomainParticipant};
use taut_testbed::{End, await_that, with_pair};

/// Hears what is said of the limit.
struct Logger(AtomicBool);

static LOGGER: Logger = Logger(AtomicBool::new(false));

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        if record.args().to_string().contains("raise the limit of open files") {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    fn flush(&self) {}
}

#[test]
fn an_address_is_followed_once_there_are_descriptors() {
    with_pair("an_address_is_followed_once_there_are_descriptors", ["", ""], |pair| {
        pair.enter(End::A);
        log::set_logger(&LOGGER).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
        // The kernel asks whether others have its address of IPv6, and tells when it knows: a change that helps.
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/xa/disable_ipv6", "1");
        let config = Config { domain_id: 86, interfaces: vec!["xa".into()], ..Config::default() };
        let participant = DomainParticipant::with_config(&config).unwrap();
        // It has its descriptors by now.
        let change = "read line; exec ip addr add 10.78.86.1/24 dev xa";
        let mut shell = Command::new("sh").args(["-c", change]).stdin(Stdio::piped()).spawn().unwrap();
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, 0, hard).unwrap();
        shell.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(shell.wait().unwrap().success());
        await_that("it is said", || LOGGER.0.load(Ordering::SeqCst));
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
        await_that("the address is announced", || {
            let own = participant.discovered_participants().remove(0);
            own.unicast.iter().any(|locator| locator.to_string().contains("10.78.86.1"))
        });
    });
}

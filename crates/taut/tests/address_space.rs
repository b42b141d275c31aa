//! Lanes of a process that may have few addresses (`ulimit -v`). A binary of its own: it limits the whole process.

use std::sync::Mutex;

use nix::sys::resource::{Resource, setrlimit};
use taut::cdr::bytemuck;
use taut::{Config, DdsType, DomainParticipant, Duration, Qos};

/// More than the lanes that find addresses.
const TOPICS: u32 = 8;
/// Room for a few lanes of the smaller kind and for none of the larger. *Units*: bytes.
const ROOM: u64 = 200 << 20;

#[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[bytemuck(crate = "taut::cdr::bytemuck")]
#[dds(final, plain)]
#[repr(C)]
struct Image {
    number: u32,
    pixels: [u8; 1_000],
}

/// Keeps what is said of addresses.
struct Logger(Mutex<Vec<String>>);

static LOGGER: Logger = Logger(Mutex::new(Vec::new()));

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        self.0.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

/// Addresses that this process has taken. *Units*: bytes.
fn taken() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    size.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1_024
}

#[test]
fn a_lane_that_finds_no_addresses_does_without_and_says_so_once() {
    log::set_logger(&LOGGER).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let config = Config { domain_id: 58, interfaces: vec!["lo".into()], ..Config::default() };
    let participant = DomainParticipant::with_config(&config).unwrap();
    let limit = taken() + ROOM;
    setrlimit(Resource::RLIMIT_AS, limit, limit).unwrap();
    let pairs: Vec<_> = (0..TOPICS)
        .map(|topic| {
            let topic = participant.topic::<Image>(&format!("Image{topic}")).unwrap();
            let qos = || Qos::default().reliable().keep_all();
            (topic.writer(qos()).unwrap(), topic.reader(qos()).unwrap())
        })
        .collect();
    for ((writer, reader), number) in pairs.iter().zip(0..) {
        writer.write(&Image { number, pixels: [7; 1_000] }).unwrap();
        reader.wait(Duration::from_secs(10)).unwrap();
        assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap().number, number);
    }
    let told = LOGGER.0.lock().unwrap().clone();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("`ulimit -v`") && told[0].contains("by the network"), "{told:?}");
}

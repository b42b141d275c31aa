//! A reader of another process leaves the lane of its writer, is matched still, and misses nothing.
//! A second process is this program once more, which an environment variable tells what it is.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use taut::{Config, DataWriter, DdsType, DomainParticipant, Duration, Qos, SamplePath};

#[derive(DdsType)]
#[dds(final)]
struct Number {
    value: u32,
}

/// Set in the process that reads: the domain.
const READS: &str = "TAUT_LEAVING_READS";
const LIMIT: Duration = Duration::from_secs(20);
/// Samples that are written once those that read have left the lane.
const MORE: u32 = 1_000;
/// Descriptors that each process has: it can have no others with that limit.
const TAKEN: u64 = 3;
/// The last.
const END: u32 = u32::MAX;

fn participant(domain_id: u32) -> DomainParticipant {
    let config = Config { domain_id, interfaces: vec!["lo".into()], ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

fn qos(durable: bool) -> Qos {
    let qos = Qos::default().reliable().keep_all().max_blocking_time(LIMIT);
    if durable { qos.transient_local() } else { qos }
}

/// The process that reads. Its end says whether it has missed anything.
struct Reads(Child);

impl Reads {
    fn start(domain_id: u32, durable: bool) -> Reads {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "reads_in_another_process", "--quiet"]);
        command.env(READS, format!("{domain_id} {durable}")).stdin(Stdio::piped());
        Reads(command.spawn().unwrap())
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Does nothing unless it was started as the process that reads. Told to, it has no descriptors left, and a second topic
/// whose lane it cannot be passed for want of one, which ends the connection.
#[test]
fn reads_in_another_process() {
    let Ok(text) = std::env::var(READS) else { return };
    let (domain_id, durable) = text.split_once(' ').unwrap();
    let participant = participant(domain_id.parse().unwrap());
    let reader = participant.topic::<Number>("Leaving").unwrap().reader(qos(durable == "true")).unwrap();
    let second = std::thread::spawn({
        let participant = participant.clone();
        move || {
            let mut told = [0];
            std::io::stdin().read_exact(&mut told).unwrap();
            let second = participant.topic::<Number>("Second").unwrap();
            let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
            setrlimit(Resource::RLIMIT_NOFILE, TAKEN, hard).unwrap();
            second.reader(Qos::default().reliable()).unwrap()
        }
    });
    let mut last = None;
    loop {
        reader.wait(LIMIT).unwrap();
        for sample in reader.take().unwrap() {
            let value = sample.data.unwrap().value;
            if value == END {
                drop(second);
                return;
            }
            assert_eq!(value, last.map_or(value, |last| last + 1), "something is missing");
            last = Some(value);
        }
    }
}

/// Writes on until the first pair goes that way.
fn write_until(
    writer: &DataWriter<Number>,
    next: &mut u32,
    participant: &DomainParticipant,
    path: SamplePath,
) {
    let start = Instant::now();
    let goes_so = || {
        let matches = participant.matches();
        matches.iter().any(|pair| pair.local == writer.guid() && pair.path == Some(path))
    };
    while !goes_so() {
        assert!(start.elapsed() < LIMIT.into(), "it does not go by {path:?}");
        for _ in 0..10 {
            writer.write(&Number { value: *next }).unwrap();
            *next += 1;
        }
    }
}

fn leaves(domain_id: u32, durable: bool) {
    let participant = participant(domain_id);
    let writer = participant.topic::<Number>("Leaving").unwrap().writer(qos(durable)).unwrap();
    let _second: DataWriter<Number> =
        participant.topic("Second").unwrap().writer(Qos::default().reliable()).unwrap();
    let mut reads = Reads::start(domain_id, durable);
    writer.wait_matched(LIMIT).unwrap();
    let mut next = 0;
    write_until(&writer, &mut next, &participant, SamplePath::SharedMemory);
    reads.0.stdin.as_mut().unwrap().write_all(&[1]).unwrap();
    write_until(&writer, &mut next, &participant, SamplePath::Network);
    for _ in 0..MORE {
        writer.write(&Number { value: next }).unwrap();
        next += 1;
    }
    writer.write(&Number { value: END }).unwrap();
    writer.wait_for_acknowledgments(LIMIT).unwrap();
    assert!(reads.0.wait().unwrap().success());
}

#[test]
fn a_volatile_reader_that_leaves_a_lane_misses_nothing() {
    leaves(162, false);
}

#[test]
fn a_durable_reader_that_leaves_a_lane_misses_nothing() {
    leaves(163, true);
}

//! A process that may open no more files keeps what it shares with others, and misses nothing.
//! A second process is this program once more, which an environment variable tells what it is.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Duration, Guid, Qos, SamplePath};

#[derive(DdsType)]
#[dds(final)]
struct Number {
    value: u32,
}

const DOMAIN: u32 = 162;
/// Set in the process that reads.
const READS: &str = "TAUT_NO_DESCRIPTORS_READS";
const LIMIT: Duration = Duration::from_secs(20);
/// Samples that are written while the process that reads may open no more files.
const MEANWHILE: u32 = 2_000;
/// The last.
const END: u32 = u32::MAX;

fn participant() -> DomainParticipant {
    let config = Config { domain_id: DOMAIN, interfaces: vec!["lo".into()], ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

fn qos() -> Qos {
    Qos::default().reliable().keep_all().max_blocking_time(LIMIT)
}

fn reader(participant: &DomainParticipant, topic: &str) -> DataReader<Number> {
    participant.topic::<Number>(topic).unwrap().reader(qos()).unwrap()
}

fn writer(participant: &DomainParticipant, topic: &str) -> DataWriter<Number> {
    participant.topic::<Number>(topic).unwrap().writer(qos()).unwrap()
}

/// The process that reads. Its end says whether it has missed anything.
struct Reads {
    process: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Reads {
    fn start() -> Reads {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "reads_in_another_process", "--quiet", "--nocapture"]).env(READS, "");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (asks, answers) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Reads { process, asks, answers: BufReader::new(answers) }
    }

    /// Has it go on to what comes next.
    fn go_on(&mut self) {
        self.asks.write_all(b"\n").unwrap();
        let mut line = String::new();
        while !line.contains("done") {
            line.clear();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "it has ended");
        }
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Does nothing unless it was started as the process that reads.
#[test]
fn reads_in_another_process() {
    if std::env::var_os(READS).is_none() {
        return;
    }
    let participant = participant();
    let first = reader(&participant, "First");
    let asked = std::thread::spawn({
        let participant = participant.clone();
        move || {
            let mut asks = std::io::stdin().lock().lines();
            let mut wait = || drop(asks.next().unwrap().unwrap());
            let (all, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
            wait();
            setrlimit(Resource::RLIMIT_NOFILE, 0, hard).unwrap();
            let second = reader(&participant, "Second");
            println!("done");
            wait();
            setrlimit(Resource::RLIMIT_NOFILE, all, hard).unwrap();
            println!("done");
            second
        }
    });
    let mut last = None;
    loop {
        first.wait(LIMIT).unwrap();
        for sample in first.take().unwrap() {
            let value = sample.data.unwrap().value;
            if value == END {
                drop(asked.join().unwrap());
                return;
            }
            assert_eq!(value, last.map_or(value, |last| last + 1), "something is missing");
            last = Some(value);
        }
    }
}

/// Which way the samples of a writer go to its reader, and why no better one.
fn path(participant: &DomainParticipant, writer: Guid) -> Option<(SamplePath, String)> {
    let matches = participant.matches();
    let pair = matches.iter().find(|pair| pair.local == writer)?;
    Some((pair.path?, pair.why.clone().unwrap_or_default()))
}

#[test]
fn who_may_open_no_more_files_keeps_what_is_shared_and_shares_more_later() {
    let participant = participant();
    let (first, second) = (writer(&participant, "First"), writer(&participant, "Second"));
    let mut reads = Reads::start();
    first.wait_matched(LIMIT).unwrap();
    let (mut next, start) = (0, Instant::now());
    let mut write_until = |what: &str, so: &mut dyn FnMut() -> bool| {
        while !so() {
            assert!(start.elapsed() < LIMIT.into(), "not within {LIMIT:?}: {what}");
            for _ in 0..10 {
                first.write(&Number { value: next }).unwrap();
                next += 1;
            }
        }
    };
    let way = |writer: Guid| path(&participant, writer).map(|(path, _)| path);
    write_until("the first goes by shared memory", &mut || {
        way(first.guid()) == Some(SamplePath::SharedMemory)
    });
    reads.go_on();
    write_until("the second is refused", &mut || {
        path(&participant, second.guid()).is_some_and(|(_, why)| why.contains("ulimit -n"))
    });
    let mut left = MEANWHILE;
    write_until("some more", &mut || {
        left = left.saturating_sub(10);
        assert_eq!(way(first.guid()), Some(SamplePath::SharedMemory));
        left == 0
    });
    reads.go_on();
    write_until("the second goes by shared memory", &mut || {
        way(second.guid()) == Some(SamplePath::SharedMemory)
    });
    first.write(&Number { value: END }).unwrap();
    first.wait_for_acknowledgments(LIMIT).unwrap();
    assert!(reads.process.wait().unwrap().success());
}

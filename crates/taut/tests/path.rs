//! Participants know which way their samples go: within the process, by shared memory, by the network.
//! A second process is this program once more, which an environment variable tells what it is.

use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use taut::{Config, DdsType, DomainParticipant, LocalMatch, Qos, SamplePath};

#[derive(DdsType)]
#[dds(final)]
struct Number {
    value: u32,
}

/// Set in the process that reads: the domain.
const READS: &str = "TAUT_PATH_READS";
/// Set in the process that reads topics for which it has not enough addresses: the domain.
const READS_SOME: &str = "TAUT_PATH_READS_SOME";
/// Set in the process that has no descriptors to begin with: the domain.
const READS_LATER: &str = "TAUT_PATH_READS_LATER";
const TOPIC: &str = "Path";
/// Topics of that process.
const TOPICS: usize = 6;
/// Addresses for two lanes, and what else it takes. *Units*: bytes.
const ROOM: u64 = (2 << 30) + (600 << 20);
const SOON: Duration = Duration::from_secs(10);
/// Some user that is not the one that runs the tests.
const ANOTHER_USER: u32 = 65_533;

fn participant(domain_id: u32, local: bool) -> DomainParticipant {
    let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

/// The only matched pair of a participant, once it is as wanted; as it is when the time is up.
fn pair(participant: &DomainParticipant, is_wanted: impl Fn(&LocalMatch) -> bool) -> LocalMatch {
    let start = Instant::now();
    loop {
        let found = participant.matches().into_iter().next();
        match found {
            Some(found) if is_wanted(&found) || start.elapsed() > SOON => return found,
            None if start.elapsed() > SOON => panic!("nobody has matched"),
            // Joins tell nobody that they are done; 1 ms of looking later finds them.
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn path_is(path: SamplePath) -> impl Fn(&LocalMatch) -> bool {
    move |found| found.path == Some(path)
}

/// A process that has a reader in the domain.
struct Reads(Child);

impl Reads {
    fn start(domain_id: u32, user: Option<u32>) -> Reads {
        Reads::start_as("reads_in_another_process", READS, domain_id, user)
    }

    fn start_as(part: &str, variable: &str, domain_id: u32, user: Option<u32>) -> Reads {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", part, "--quiet"]);
        command.env(variable, domain_id.to_string()).stdin(Stdio::piped()).stdout(Stdio::null());
        if let Some(user) = user {
            command.uid(user);
        }
        // It ends with the pipe that the Child holds, however this process ends.
        Reads(command.spawn().unwrap())
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Does nothing unless it was started as the process that reads.
#[test]
fn reads_in_another_process() {
    let Some(domain_id) = std::env::var(READS).ok().and_then(|text| text.parse().ok()) else { return };
    let participant = participant(domain_id, true);
    let _reader = participant.topic::<Number>(TOPIC).unwrap().reader(Qos::default().reliable()).unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

/// Does nothing unless it was started as the process that has no descriptors until it is told to have some.
#[test]
fn reads_without_descriptors() {
    let Some(domain_id) = std::env::var(READS_LATER).ok().and_then(|text| text.parse().ok()) else { return };
    let participant = participant(domain_id, true);
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, open - 1, hard).unwrap();
    let _reader = participant.topic::<Number>(TOPIC).unwrap().reader(Qos::default().reliable()).unwrap();
    let mut told = [0];
    if std::io::stdin().read(&mut told).unwrap() > 0 {
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
        let _ = std::io::stdin().read(&mut told);
    }
}

#[test]
fn who_had_no_descriptors_shares_memory_when_it_has_some() {
    let a = participant(58, true);
    let writer = a.topic::<Number>(TOPIC).unwrap().writer(Qos::default().reliable()).unwrap();
    let mut reads = Reads::start_as("reads_without_descriptors", READS_LATER, 58, None);
    writer.wait_matched(SOON).unwrap();
    writer.write(&Number { value: 1 }).unwrap();
    writer.wait_for_acknowledgments(SOON).unwrap();
    assert_eq!(pair(&a, |_| true).path, Some(SamplePath::Network));
    reads.0.stdin.as_mut().unwrap().write_all(&[1]).unwrap();
    assert_eq!(pair(&a, path_is(SamplePath::SharedMemory)).path, Some(SamplePath::SharedMemory));
}

fn topic_of(number: usize) -> String {
    format!("{TOPIC}{number}")
}

/// Does nothing unless it was started as the process that reads some by shared memory.
#[test]
fn reads_some_in_another_process() {
    let Some(domain_id) = std::env::var(READS_SOME).ok().and_then(|text| text.parse().ok()) else { return };
    let participant = participant(domain_id, true);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let taken = size.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1_024;
    setrlimit(Resource::RLIMIT_AS, taken + ROOM, taken + ROOM).unwrap();
    let reader = |number| participant.topic::<Number>(&topic_of(number))?.reader(Qos::default().reliable());
    let _readers: Vec<_> = (0..TOPICS).map(|number| reader(number).unwrap()).collect();
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_lane_that_finds_no_addresses_leaves_the_others_alone() {
    let a = participant(57, true);
    let _reads = Reads::start_as("reads_some_in_another_process", READS_SOME, 57, None);
    let writers: Vec<_> = (0..TOPICS)
        .map(|number| {
            let topic = a.topic::<Number>(&topic_of(number)).unwrap();
            let writer = topic.writer(Qos::default().reliable()).unwrap();
            writer.wait_matched(SOON).unwrap();
            writer
        })
        .collect();
    let shared = || a.matches().iter().filter(|pair| pair.path == Some(SamplePath::SharedMemory)).count();
    let says_why = |pair: &LocalMatch| pair.why.as_deref().is_some_and(|why| why.contains("cannot map"));
    let start = Instant::now();
    while shared() < 2 || a.matches().iter().filter(|pair| says_why(pair)).count() < TOPICS - 2 {
        assert!(start.elapsed() < SOON, "{:?}", a.matches());
        std::thread::sleep(Duration::from_millis(1));
    }
    for writer in &writers {
        writer.write(&Number { value: 1 }).unwrap();
        writer.wait_for_acknowledgments(SOON).unwrap();
    }
    assert_eq!(shared(), 2, "{:?}", a.matches());
}

#[test]
fn within_one_process() {
    let (a, b) = (participant(71, true), participant(71, true));
    let _writer = a.topic::<Number>(TOPIC).unwrap().writer(Qos::default().reliable()).unwrap();
    let _reader = b.topic::<Number>(TOPIC).unwrap().reader(Qos::default().reliable()).unwrap();
    for side in [&a, &b] {
        let found = pair(side, path_is(SamplePath::Process));
        assert_eq!((found.path, found.why), (Some(SamplePath::Process), None));
    }
}

#[test]
fn within_one_participant() {
    let a = participant(72, false);
    let _writer = a.topic::<Number>(TOPIC).unwrap().writer(Qos::default().reliable()).unwrap();
    let _reader = a.topic::<Number>(TOPIC).unwrap().reader(Qos::default().reliable()).unwrap();
    let found = pair(&a, path_is(SamplePath::Process));
    assert_eq!((found.path, found.why), (Some(SamplePath::Process), None));
}

#[test]
fn another_process_by_shared_memory() {
    let a = participant(73, true);
    let writer = a.topic::<Number>(TOPIC).unwrap().writer(Qos::default().reliable()).unwrap();
    let _reads = Reads::start(73, None);
    let found = pair(&a, path_is(SamplePath::SharedMemory));
    assert_eq!((found.path, found.why), (Some(SamplePath::SharedMemory), None));
    writer.write(&Number { value: 1 }).unwrap();
    writer.wait_for_acknowledgments(taut::Duration::from_secs(10)).unwrap();
}

#[test]
fn by_the_network_if_one_side_wants_it() {
    let (a, b) = (participant(74, true), participant(74, false));
    let _writer = a.topic::<Number>(TOPIC).unwrap().writer(Qos::default().reliable()).unwrap();
    let _reader = b.topic::<Number>(TOPIC).unwrap().reader(Qos::default().reliable()).unwrap();
    for (side, why) in [(&a, "local is off on the other side"), (&b, "local is off here")] {
        let found = pair(side, path_is(SamplePath::Network));
        assert_eq!((found.path, found.why.as_deref()), (Some(SamplePath::Network), Some(why)));
    }
}

#[test]
fn another_process_by_the_network_if_this_one_wants_it() {
    let a = participant(75, false);
    let _writer = a.topic::<Number>(TOPIC).unwrap().writer(Qos::default().reliable()).unwrap();
    let _reads = Reads::start(75, None);
    let found = pair(&a, path_is(SamplePath::Network));
    assert_eq!((found.path, found.why.as_deref()), (Some(SamplePath::Network), Some("local is off here")));
}

#[test]
fn another_user_by_the_network() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return eprintln!("skipped: only root can start a process of another user");
    }
    let a = participant(76, true);
    let _writer = a.topic::<Number>(TOPIC).unwrap().writer(Qos::default().reliable()).unwrap();
    let _reads = Reads::start(76, Some(ANOTHER_USER));
    let names_the_user = |found: &LocalMatch| {
        found.why.as_deref().is_some_and(|why| why.contains(&format!("is of user {ANOTHER_USER}")))
    };
    let found = pair(&a, names_the_user);
    assert_eq!(found.path, Some(SamplePath::Network));
    assert!(names_the_user(&found), "{:?}", found.why);
}

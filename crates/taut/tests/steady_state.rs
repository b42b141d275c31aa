//! What participants allocate once all is matched: nothing, neither for samples nor for what they do of their own, as
//! announcements, assertions of liveliness, acknowledgements and timers. One test in a binary of its own, since it counts
//! the allocations of the whole process.

use std::cell::RefCell;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration as StdDuration, Instant};

use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Duration, LivelinessKind, Octets, Qos,
};
use taut_mem::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// With a key, and longer than what lies in its view, with memory of its own within the key, before it and behind it.
#[derive(DdsType)]
#[dds(final)]
struct Reading {
    unit: String,
    pixels: Octets,
    #[dds(key)]
    place: String,
    #[dds(key)]
    sensor: u32,
    labels: Vec<String>,
    seq: u32,
    numbers: [u64; 16],
}

const DOMAIN: u32 = 130;
/// Participants announce themselves so often.
const PERIOD: Duration = Duration::from_millis(10);
/// What has been promised to happen does so in this time, if a thread that is to run gets a processor meanwhile.
const LEASE: Duration = Duration::from_millis(200);
const SENSORS: u32 = 3;
/// Round trips one after the other, by a thread that drives the participant, and how long the background thread does so
/// until the next ones.
const ROUNDS: u32 = 10;
const PAUSE: StdDuration = StdDuration::from_millis(20);
/// The announcements in quick succession at the start are over by then, and all has been used once.
const WARM_UP: StdDuration = StdDuration::from_secs(1);
/// Each part has twenty announcements, and something of all else.
const PARTS: usize = 4;
const PART: StdDuration = StdDuration::from_millis(250);
/// A part in which a promise was not kept, as threads were kept from running, is none of them: what is recorded of that takes
/// memory. So often one is measured at most.
const REPEATED: usize = 40;
/// So many parts may have some at most: where threads were kept from running, more waits for them than did before, in buffers
/// and rows that grow once. What allocates again and again does so in each part.
const GROWN: usize = 2;
const LAST: u32 = u32::MAX;
/// Has the other side tell of broken promises, which takes memory, before it answers.
const TELL: u32 = LAST - 1;
const SOON: Duration = Duration::from_secs(10);
/// Set in the process that answers: it plays the other side of the path to another process.
const ECHO: &str = "TAUT_STEADY_STATE_ECHO";
/// What the side that answers has been told of broken promises, if it is in this process.
static OF_ECHO: AtomicU32 = AtomicU32::new(0);
const NOT_HEARD: u32 = u32::MAX;

/// The way of samples.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Path {
    Udp,
    Process,
    OtherProcess,
}

/// A participant that writes one topic and reads another one. Beside those it has writers that are alive as long as it says
/// so, and readers that watch them and those of the other side.
struct Side {
    driver: Driver,
    participant: DomainParticipant,
    writer: DataWriter<Reading>,
    reader: DataReader<Reading>,
    by_topic: DataWriter<Reading>,
    /// The standard has one of them speak for both.
    by_participant: [DataWriter<Reading>; 2],
    watches: [DataReader<Reading>; 2],
    value: RefCell<Reading>,
}

impl Side {
    fn new((path, driver): (Path, Driver), writes: &str, reads: &str) -> Side {
        let config = Config {
            driver,
            domain_id: DOMAIN + path as u32,
            interfaces: vec!["lo".into()],
            local: path != Path::Udp,
            announcement_period: PERIOD,
            lease_duration: Duration::from_secs(2),
            ..Config::default()
        };
        let participant = DomainParticipant::with_config(&config).unwrap();
        let topic = |name: &str| participant.topic::<Reading>(name).unwrap();
        // Its liveliness is asserted three times in that.
        let stream =
            || Qos::default().reliable().deadline(LEASE).liveliness(LivelinessKind::Automatic, LEASE);
        let writer = topic(writes).writer(stream().lifespan(SOON)).unwrap();
        let reader = topic(reads).reader(stream()).unwrap();
        let [by_topic, by_participant] = [LivelinessKind::ManualByTopic, LivelinessKind::ManualByParticipant]
            .map(|kind| Qos::default().reliable().liveliness(kind, LEASE));
        let (of_writer, of_participant) = (topic("Life of a writer"), topic("Life of a participant"));
        let side = Side {
            by_topic: of_writer.writer(by_topic.clone()).unwrap(),
            by_participant: [(); 2].map(|()| of_participant.writer(by_participant.clone()).unwrap()),
            watches: [of_writer.reader(by_topic).unwrap(), of_participant.reader(by_participant).unwrap()],
            value: RefCell::new(Reading {
                unit: "kelvin".into(),
                pixels: vec![7; 64].into(),
                place: "the northern hall".into(),
                sensor: 0,
                labels: vec!["calibrated".into(), "outdoors".into()],
                seq: 0,
                numbers: [1; 16],
            }),
            driver,
            participant,
            writer,
            reader,
        };
        // One of the two is of this side.
        side.by_topic.wait_matched_count(2, SOON).unwrap();
        side.by_participant.iter().for_each(|writer| writer.wait_matched_count(2, SOON).unwrap());
        side.writer.wait_matched(SOON).unwrap();
        side.reader.wait_matched(SOON).unwrap();
        side
    }

    /// Waits for a sample and gives its number. Those that say that nobody was heard to live for a while have none.
    fn receive(&self) -> u32 {
        loop {
            let mut value = self.value.borrow_mut();
            match self.reader.take_into(&mut value).unwrap() {
                Some(info) if info.valid_data => return value.seq,
                Some(_) => {}
                None => self.reader.wait(SOON).unwrap(),
            }
        }
    }

    /// Writes what was taken last, as a sample of this number.
    fn write(&self, seq: u32) {
        let mut value = self.value.borrow_mut();
        (value.sensor, value.seq) = (seq % SENSORS, seq);
        self.writer.write(&value).unwrap();
    }

    fn say_that_all_live(&self) {
        self.by_topic.assert_liveliness();
        self.participant.assert_liveliness();
    }

    /// How often a writer or a reader of this side was told that a promise was not kept; `None` while a writer is not heard.
    fn broken_promises(&self) -> Option<u32> {
        let deadlines = self.writer.offered_deadline_missed_status().total_count
            + self.reader.requested_deadline_missed_status().total_count;
        let writers = self.by_participant.iter().chain([&self.by_topic, &self.writer]);
        let lost: u32 = writers.map(|writer| writer.liveliness_lost_status().total_count).sum();
        let mut readers = self.watches.iter().chain([&self.reader]);
        let all_live = readers.all(|reader| reader.liveliness_changed_status().not_alive_count == 0);
        all_live.then_some(deadlines + lost)
    }

    /// The same of both sides, if the other one is in this process.
    fn all_broken_promises(&self) -> Option<u32> {
        self.write(TELL);
        assert_eq!(self.receive(), TELL);
        let of_echo = Some(OF_ECHO.load(Ordering::SeqCst)).filter(|count| *count != NOT_HEARD);
        Some(self.broken_promises()? + of_echo?)
    }

    /// What the background thread does, where there is one.
    fn rest(&self) {
        let end = Instant::now() + PAUSE;
        if self.driver != Driver::Inline {
            return std::thread::sleep(PAUSE);
        }
        while Instant::now() < end {
            self.participant.run_once(Duration::from_millis(1)).unwrap();
        }
    }

    /// Round trips, now and then, for so long.
    fn run(&self, time: StdDuration) {
        let start = Instant::now();
        while start.elapsed() < time {
            for seq in 0..ROUNDS {
                self.write(seq);
                assert_eq!(self.receive(), seq);
            }
            self.say_that_all_live();
            self.rest();
        }
    }
}

/// Answers until it is told to end.
fn echo(ways: (Path, Driver)) {
    let side = Side::new(ways, "Pong", "Ping");
    loop {
        let seq = side.receive();
        if seq == TELL {
            OF_ECHO.store(side.broken_promises().unwrap_or(NOT_HEARD), Ordering::SeqCst);
        }
        side.write(seq);
        match seq {
            0 => side.say_that_all_live(),
            LAST => return side.writer.wait_for_acknowledgments(SOON).unwrap(),
            _ => {}
        }
    }
}

/// A process that is ended if it is left over.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What this process allocates in a part of the time in which all promises are kept.
fn measure_part(side: &Side) -> u64 {
    for _ in 0..REPEATED {
        let broken = side.all_broken_promises();
        let before = CountingAllocator::of_process();
        side.run(PART);
        let allocated = CountingAllocator::of_process() - before;
        if broken.is_some() && side.all_broken_promises() == broken {
            return allocated;
        }
    }
    panic!("a promise is broken in each part");
}

/// What this process allocates in each part of the time.
fn measure(ways: (Path, Driver)) -> [u64; PARTS] {
    let mut process = (ways.0 == Path::OtherProcess).then(|| {
        let program = std::env::current_exe().unwrap();
        Ended(Command::new(program).env(ECHO, "1").spawn().unwrap())
    });
    let thread = process.is_none().then(|| std::thread::spawn(move || echo(ways)));
    let side = Side::new(ways, "Ping", "Pong");
    side.run(WARM_UP);
    let parts = [(); PARTS].map(|()| measure_part(&side));
    side.write(LAST);
    assert_eq!(side.receive(), LAST);
    thread.into_iter().for_each(|thread| thread.join().unwrap());
    process.iter_mut().for_each(|process| assert!(process.0.wait().unwrap().success()));
    parts
}

#[test]
fn a_participant_allocates_nothing_once_all_is_matched() {
    if std::env::var_os(ECHO).is_some() {
        return echo((Path::OtherProcess, Driver::Threaded));
    }
    let paths = [Path::Udp, Path::Process, Path::OtherProcess];
    let ways = paths.iter().flat_map(|path| [(*path, Driver::Threaded), (*path, Driver::Inline)]);
    for ways in ways {
        let parts = measure(ways);
        println!("{ways:?}: {parts:?}");
        let grown = parts.iter().filter(|allocated| **allocated > 0).count();
        assert!(grown <= GROWN, "{ways:?}: {parts:?} allocations");
    }
}

//! Where the latency of single samples went, on each way that a sample can take. A second process is this program once
//! more, which an environment variable tells what it is.

use std::process::{Child, Command, Stdio};

use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Duration, Qos, SampleAnatomy, Stage};

#[derive(DdsType)]
#[dds(final)]
struct Text {
    n: u32,
    text: String,
}

const SOON: Duration = Duration::from_secs(10);
const TOPIC: &str = "Anatomy";
/// Set in the process that writes: the domain.
const WRITES: &str = "TAUT_ANATOMY_WRITES";
const COUNT: u32 = 20;
const REMEMBERED: usize = 16;
const NETWORK: [Stage; 5] = [Stage::Write, Stage::Queue, Stage::Wire, Stage::Deliver, Stage::Take];

fn participant(domain_id: u32, local: bool, anatomy: usize) -> DomainParticipant {
    let config = Config { domain_id, interfaces: vec!["lo".into()], local, anatomy, ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

fn qos() -> Qos {
    Qos::default().reliable().keep_all()
}

fn reader(participant: &DomainParticipant) -> DataReader<Text> {
    participant.topic(TOPIC).unwrap().reader(qos()).unwrap()
}

fn writer(participant: &DomainParticipant) -> DataWriter<Text> {
    let writer = participant.topic(TOPIC).unwrap().writer(qos()).unwrap();
    writer.wait_matched(SOON).unwrap();
    writer
}

fn write(writer: &DataWriter<Text>, n: u32, len: usize) {
    writer.write(&Text { n, text: "x".repeat(len) }).unwrap();
}

/// Takes a sample. Returns what is known of it, if that is still remembered.
fn take_one(reader: &DataReader<Text>) -> Option<SampleAnatomy> {
    loop {
        match reader.take_next().unwrap() {
            Some(sample) => {
                let one = reader.anatomy_of(&sample.info)?;
                assert_eq!(one.sequence_number, sample.info.sequence_number);
                return Some(one);
            }
            None => reader.wait(SOON).unwrap(),
        }
    }
}

/// Takes so many samples. Returns what is known of the last of them.
fn take(reader: &DataReader<Text>, count: u32) -> SampleAnatomy {
    let mut all = (0..count).map(|_| take_one(reader).expect("it was just taken"));
    all.by_ref().take(count as usize - 1).for_each(drop);
    all.next().expect("at least one")
}

/// Its stages, which follow on each other and are all of the way from write to take.
fn stages(one: &SampleAnatomy) -> Vec<Stage> {
    let points = [one.written, one.queued, one.sent, one.received, one.delivered, one.taken];
    let known: Vec<_> = points.into_iter().flatten().collect();
    assert!(known.is_sorted(), "{one:?}");
    let sum: i64 = one.stages().map(|(_, time)| time.expect("one clock").0).sum();
    assert_eq!(one.total(), Some(Duration(sum)), "{one:?}");
    assert_eq!(sum, one.taken.unwrap().since(one.written.unwrap()).0);
    one.stages().map(|(stage, _)| stage).collect()
}

/// Writes and takes one sample after the other, then a large one.
fn exchange(writer: &DataWriter<Text>, reader: &DataReader<Text>, expected: &[Stage]) {
    reader.wait_matched(SOON).unwrap();
    for n in 0..COUNT {
        write(writer, n, 8);
        let one = take(reader, 1);
        assert_eq!(stages(&one), expected, "{one}");
    }
    assert_eq!(reader.anatomy().len(), REMEMBERED);
    // Several before the first is taken.
    (0..3).for_each(|n| write(writer, n, 8));
    assert_eq!(stages(&take(reader, 3)), expected);
    write(writer, COUNT, 200_000);
    let one = take(reader, 1);
    assert_eq!(stages(&one), expected, "{one}");
    println!("{one}");
}

#[test]
fn over_the_network() {
    let (a, b) = (participant(64, false, REMEMBERED), participant(64, false, REMEMBERED));
    let reader = reader(&b);
    let writer = writer(&a);
    exchange(&writer, &reader, &NETWORK);
    let real = |stage| reader.anatomy().iter().all(|one| one.stage(stage).unwrap() > Duration::ZERO);
    assert!(NETWORK.into_iter().all(real), "the clock is read at each of them: {:?}", reader.anatomy());
    let refused = b.stats().refused;
    assert!(refused.iter().all(|(name, _)| *name != "bad_anatomy"), "{refused:?}");
}

/// Who waits is told by the driver, who takes without a wait drives nothing: both know the same.
#[test]
fn to_a_listener() {
    let (a, b) = (participant(65, false, REMEMBERED), participant(65, false, REMEMBERED));
    let reader = std::sync::Arc::new(reader(&b));
    let writer = writer(&a);
    let (send, taken) = std::sync::mpsc::channel();
    reader.on_data_available(move |sample| send.send(sample.info).unwrap());
    write(&writer, 1, 8);
    let info = taken.recv_timeout(SOON.into()).unwrap();
    assert_eq!(stages(&reader.anatomy_of(&info).unwrap()), NETWORK);
}

/// The lane is joined at some time after the match, by whichever thread has the news of it; what is written before
/// comes by the protocol.
fn await_lane(writer: &DataWriter<Text>, reader: &DataReader<Text>) {
    reader.wait_matched(SOON).unwrap();
    let by_lane = || {
        write(writer, 0, 8);
        stages(&take(reader, 1)) == [Stage::Lane, Stage::Take]
    };
    let start = std::time::Instant::now();
    while !by_lane() {
        assert!(start.elapsed() < SOON.into(), "no lane");
    }
}

#[test]
fn from_one_participant_to_another_of_the_process() {
    let (a, b) = (participant(66, true, REMEMBERED), participant(66, true, REMEMBERED));
    let reader = reader(&b);
    let writer = writer(&a);
    await_lane(&writer, &reader);
    exchange(&writer, &reader, &[Stage::Lane, Stage::Take]);
}

#[test]
fn within_one_participant() {
    let one = participant(67, true, REMEMBERED);
    let (reader, writer_of_one) = (reader(&one), writer(&one));
    await_lane(&writer_of_one, &reader);
    exchange(&writer_of_one, &reader, &[Stage::Lane, Stage::Take]);
    let without_lanes = participant(68, false, REMEMBERED);
    let reader = self::reader(&without_lanes);
    exchange(&writer(&without_lanes), &reader, &[Stage::Write, Stage::Deliver, Stage::Take]);
}

struct Writes(Child);

impl Drop for Writes {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Does nothing unless it was started as the process that writes.
#[test]
fn writes_in_another_process() {
    let Some(domain_id) = std::env::var(WRITES).ok().and_then(|text| text.parse().ok()) else { return };
    let participant = participant(domain_id, true, 1);
    let writer = writer(&participant);
    for n in 0..u32::MAX {
        write(&writer, n, 8);
        // Nothing waits behind more others than a writer remembers the times of.
        writer.wait_for_acknowledgments(SOON).unwrap();
    }
}

#[test]
fn by_shared_memory() {
    let reads = participant(69, true, REMEMBERED);
    let reader = reader(&reads);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "writes_in_another_process", "--quiet"]).stdout(Stdio::null());
    let _writes = Writes(command.env(WRITES, "69").spawn().unwrap());
    let start = std::time::Instant::now();
    loop {
        // The writer may be further ahead than the reader remembers.
        if take_one(&reader).is_some_and(|one| stages(&one) == [Stage::Lane, Stage::Take]) {
            return;
        }
        assert!(start.elapsed() < SOON.into(), "no lane");
    }
}

#[test]
fn off_nothing_is_remembered_and_less_is_known_of_who_is_off() {
    let (on, off) = (participant(70, false, REMEMBERED), participant(70, false, 0));
    let (knows, knows_not) = (reader(&on), reader(&off));
    let writer = writer(&off);
    writer.wait_matched_count(2, SOON).unwrap();
    [&knows, &knows_not].into_iter().for_each(|reader| reader.wait_matched(SOON).unwrap());
    write(&writer, 1, 8);
    let one = take(&knows, 1);
    assert_eq!((one.written, one.queued, one.sent, one.total()), (None, None, None, None));
    assert!(one.received.is_some() && one.received <= one.delivered && one.delivered <= one.taken);
    assert_eq!((take_one(&knows_not), knows_not.anatomy()), (None, vec![]));
}

//! The public interface, driven inline: no thread, but UDP sockets on the loopback interface and the
//! clock. Callgrind counts instructions in user space, so what the kernel does for a system call is not
//! in the counts; the code around it is. Valgrind 3.19 has no epoll_pwait2, so under it the wait goes
//! the way of old kernels.

use taut::{Config, DataReader, DataWriter, DomainParticipant, Driver, Duration, Qos};

use crate::Path;
use crate::rounds::{count_with_pauses, warm_and_count};
use crate::samples::{Plain64, Sample};

/// Nobody else is on this loopback interface in a network namespace; without one, few use this domain.
const DOMAIN: u32 = 227;
/// The announcements in quick succession at the start are over by then. They are not in the counts,
/// but one that falls into the rounds is.
const SETTLE: std::time::Duration = std::time::Duration::from_millis(700);
/// Longer than the counted rounds take, so that no later announcement falls into them.
const RARELY: Duration = Duration::from_secs(1_000);
/// Two times the first interval of a writer's heartbeats, and a margin: by then what was written is
/// acknowledged and no timer is left. Shorter lets timers fall into the rounds, longer takes time.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(30);
/// Few, for the pauses; their difference is a multiple of the 16 reads after which a port looks anew how
/// to read.
const PAUSED_ROUNDS: [u64; 2] = [16, 112];
/// For what takes microseconds.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

pub fn paths() -> Vec<Path> {
    vec![
        Path::new("taut/write-take/64", |rounds| write_take(rounds, 0)),
        Path::new("taut/write-take/64-beside-1000-topics", |rounds| write_take(rounds, 1_000)),
        Path { rounds: PAUSED_ROUNDS, ..Path::new("taut/round-trip/64", round_trip) },
    ]
}

/// `local`: its samples take the paths of one machine.
fn participant(local: bool) -> DomainParticipant {
    let config = Config {
        local,
        domain_id: DOMAIN,
        driver: Driver::Inline,
        interfaces: vec!["lo".into()],
        multicast: false,
        initial_peers: vec!["127.0.0.1".into()],
        lease_duration: RARELY.times(3),
        announcement_period: RARELY,
        ..Config::default()
    };
    DomainParticipant::with_config(&config).expect("UDP on the loopback interface")
}

fn writer(participant: &DomainParticipant, topic: &str) -> DataWriter<Plain64> {
    participant.topic(topic).unwrap().writer(Qos::default().reliable()).expect("a writer")
}

fn reader(participant: &DomainParticipant, topic: &str) -> DataReader<Plain64> {
    participant.topic(topic).unwrap().reader(Qos::default().reliable()).expect("a reader")
}

/// Lets all of them work for a while.
fn drive(participants: &[&DomainParticipant], span: std::time::Duration) {
    let start = std::time::Instant::now();
    while start.elapsed() < span {
        participants.iter().for_each(|participant| {
            participant.run_once(Duration::from_millis(1)).expect("one thread drives")
        });
    }
}

/// One of so many other topics has both ends, and so a lane; a lane's memory is much to ask of Valgrind.
const LANES: usize = 20;

/// A sample between a writer and a reader of one participant, beside so many other topics with endpoints there.
fn write_take(rounds: u64, topics: usize) -> u64 {
    let participant = participant(true);
    let (writes, reads) =
        (|topic: &str| writer(&participant, topic), |topic: &str| reader(&participant, topic));
    let (writer, reader) = (writes("Local"), reads("Local"));
    let name = |n| format!("Other{n}");
    let _writers: Vec<_> = (0..topics).filter(|n| n % 2 == 0).map(|n| writes(&name(n))).collect();
    let _readers: Vec<_> =
        (0..topics).filter(|n| n % 2 == 1 || n % LANES == 0).map(|n| reads(&name(n))).collect();
    drive(&[&participant], SETTLE);
    let sent = participant.stats().port.send_calls;
    warm_and_count(rounds, |n| {
        writer.write(&Plain64::example(n)).expect("it is written");
        let sample = reader.take_next().expect("take").expect("it is there");
        assert_eq!(sample.data.expect("it has data").seq, n);
    });
    assert_eq!(participant.stats().port.send_calls, sent, "nothing was sent");
    rounds
}

struct End {
    participant: DomainParticipant,
    writer: DataWriter<Plain64>,
    reader: DataReader<Plain64>,
}

impl End {
    fn new(writes: &str, reads: &str) -> End {
        let participant = participant(false);
        End { writer: writer(&participant, writes), reader: reader(&participant, reads), participant }
    }

    fn is_matched(&self) -> bool {
        self.writer.publication_matched_status().current_count == 1
            && self.reader.subscription_matched_status().current_count == 1
    }

    /// The next sample. A single wait as a rule: the kernel has delivered it before the write returns.
    fn receive(&self) -> Plain64 {
        let mut sample = None;
        while sample.is_none() {
            self.participant.run_once(Duration::from_secs(5)).expect("one thread drives");
            sample = self.reader.take_next().expect("take");
        }
        sample.and_then(|sample| sample.data).expect("it has data")
    }
}

/// A sample to another participant and back, over UDP, both driven by this thread.
fn round_trip(rounds: u64) -> u64 {
    let (ping, pong) = (End::new("Ping", "Pong"), End::new("Pong", "Ping"));
    let start = std::time::Instant::now();
    while !(ping.is_matched() && pong.is_matched()) {
        drive(&[&ping.participant, &pong.participant], SETTLE);
        assert!(start.elapsed() < PATIENCE, "the two participants have not matched");
    }
    let mut answered = 0;
    let round = |n| {
        ping.writer.write(&Plain64::example(n)).expect("it is written");
        let sample = pong.receive();
        pong.writer.write(&sample).expect("it is answered");
        answered += u64::from(ping.receive() == Plain64::example(n));
    };
    let all = count_with_pauses(rounds, round, || drive(&[&ping.participant, &pong.participant], PAUSE));
    assert_eq!(answered, all);
    rounds
}

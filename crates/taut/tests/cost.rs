//! What a sample costs on the UDP path once all is warm: allocations, system calls, locks. One test in
//! a binary of its own, since it counts the allocations of the whole process.

use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Duration, Qos};
use taut_mem::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(DdsType, Clone, Copy)]
#[dds(final)]
struct Fixed {
    seq: u64,
    numbers: [u64; 7],
}

const DOMAIN: u32 = 63;
/// The announcements in quick succession at the start are over by then.
const WARM_UP: std::time::Duration = std::time::Duration::from_secs(1);
const ROUNDS: u64 = 10_000;
const LAST: u64 = u64::MAX;
const SOON: Duration = Duration::from_secs(10);

struct Side {
    participant: DomainParticipant,
    writer: DataWriter<Fixed>,
    reader: DataReader<Fixed>,
}

impl Side {
    fn new(writes: &str, reads: &str) -> Side {
        let config = Config { domain_id: DOMAIN, interfaces: vec!["lo".into()], ..Config::default() };
        let participant = DomainParticipant::with_config(&config).unwrap();
        let writer = participant.topic(writes).unwrap().writer(Qos::default().reliable()).unwrap();
        let reader = participant.topic(reads).unwrap().reader(Qos::default().reliable()).unwrap();
        writer.wait_matched(SOON).unwrap();
        reader.wait_matched(SOON).unwrap();
        Side { participant, writer, reader }
    }

    fn receive(&self) -> Fixed {
        loop {
            match self.reader.take_next().unwrap() {
                Some(sample) => return sample.data.unwrap(),
                None => self.reader.wait(SOON).unwrap(),
            }
        }
    }

    fn round_trip(&self, seq: u64) {
        self.writer.write(&Fixed { seq, numbers: [seq; 7] }).unwrap();
        assert_eq!(self.receive().seq, seq);
    }
}

fn echo() {
    let side = Side::new("Pong", "Ping");
    loop {
        let sample = side.receive();
        side.writer.write(&sample).unwrap();
        if sample.seq == LAST {
            return side.writer.wait_for_acknowledgments(SOON).unwrap();
        }
    }
}

#[test]
fn a_warm_round_trip_allocates_nothing_and_makes_one_call_each_way() {
    let pong = std::thread::spawn(echo);
    let side = Side::new("Ping", "Pong");
    let start = std::time::Instant::now();
    while start.elapsed() < WARM_UP {
        side.round_trip(0);
    }
    let (before, allocations_before) = (side.participant.stats(), CountingAllocator::of_process());
    (1..=ROUNDS).for_each(|seq| side.round_trip(seq));
    let (after, allocations) = (side.participant.stats(), CountingAllocator::of_process());
    side.round_trip(LAST);
    pong.join().unwrap();
    let per_round = |now: u64, then: u64| (now - then) as f64 / ROUNDS as f64;
    let allocations = per_round(allocations, allocations_before);
    let sends = per_round(after.port.send_calls, before.port.send_calls);
    let receives = per_round(after.port.receive_calls, before.port.receive_calls);
    let tokens = per_round(after.tokens, before.tokens);
    println!(
        "per round trip: {allocations} allocations, {sends} sends, {receives} receives, {tokens} tokens"
    );
    assert_eq!(after.panics, 0);
    // An announcement every few seconds may fall into the rounds; a sample causes none.
    assert!(allocations < 0.02, "{allocations} allocations per round trip of both sides");
    assert!(sends < 1.1 && receives < 1.1, "{sends} sends, {receives} receives");
    // take in vain, write, wait (look and sleep, step, look), take.
    assert!(tokens < 7.0, "{tokens} tokens");
}

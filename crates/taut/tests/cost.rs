//! What a sample costs on the UDP path once all is warm: allocations, system calls, locks. One test in
//! a binary of its own, since it counts the allocations of the whole process.

use taut::{Config, DdsType, DomainParticipant, Duration, Qos};
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
const WARM_UP: u64 = 2_000;
const ROUNDS: u64 = 5_000;
const SOON: Duration = Duration::from_secs(10);

fn participant() -> DomainParticipant {
    let config = Config { domain_id: DOMAIN, interfaces: vec!["lo".into()], ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

fn echo() {
    let participant = participant();
    let reader = participant.topic::<Fixed>("Ping").unwrap().reader(Qos::default().reliable()).unwrap();
    let writer = participant.topic::<Fixed>("Pong").unwrap().writer(Qos::default().reliable()).unwrap();
    for _ in 0..WARM_UP + ROUNDS {
        let sample = loop {
            match reader.take_next().unwrap() {
                Some(sample) => break sample,
                None => reader.wait(SOON).unwrap(),
            }
        };
        writer.write(&sample.data.unwrap()).unwrap();
    }
    writer.wait_for_acknowledgments(SOON).unwrap();
}

#[test]
fn a_warm_round_trip_allocates_nothing_and_makes_one_call_each_way() {
    let pong = std::thread::spawn(echo);
    let participant = participant();
    let writer = participant.topic::<Fixed>("Ping").unwrap().writer(Qos::default().reliable()).unwrap();
    let reader = participant.topic::<Fixed>("Pong").unwrap().reader(Qos::default().reliable()).unwrap();
    writer.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    let mut before = None;
    for seq in 0..WARM_UP + ROUNDS {
        if seq == WARM_UP {
            before = Some((participant.stats(), CountingAllocator::of_process()));
        }
        writer.write(&Fixed { seq, numbers: [seq; 7] }).unwrap();
        let sample = loop {
            match reader.take_next().unwrap() {
                Some(sample) => break sample,
                None => reader.wait(SOON).unwrap(),
            }
        };
        assert_eq!(sample.data.unwrap().seq, seq);
    }
    let allocations = CountingAllocator::of_process();
    let after = participant.stats();
    assert_eq!(after.panics, 0);
    pong.join().unwrap();
    let (before, allocations_before) = before.unwrap();
    let per_round = |now: u64, then: u64| (now - then) as f64 / ROUNDS as f64;
    let allocations = per_round(allocations, allocations_before);
    let sends = per_round(after.port.send_calls, before.port.send_calls);
    let receives = per_round(after.port.receive_calls, before.port.receive_calls);
    let tokens = per_round(after.tokens, before.tokens);
    println!(
        "per round trip: {allocations} allocations, {sends} sends, {receives} receives, {tokens} tokens"
    );
    // Discovery and heartbeats go on beside the round trips; they are rare, and allocate little.
    assert!(allocations < 0.02, "{allocations} allocations per round trip of both sides");
    assert!(sends < 1.1 && receives < 1.1, "{sends} sends, {receives} receives");
    // write, take, wait (look, look under the role, sleep, step, look) and take again.
    assert!(tokens < 8.5, "{tokens} tokens");
}

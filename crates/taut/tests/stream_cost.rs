//! What a sample of a stream allocates once all is warm. One test in a binary of its own, since it counts the
//! allocations of the whole process.

use taut::{Config, DdsType, DomainParticipant, Duration, Qos};
use taut_mem::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// More than fits into a handle to short bytes, and small enough that the window is full of changes, not of bytes.
#[derive(DdsType)]
#[dds(final)]
struct Block {
    data: Vec<u8>,
}

const DOMAIN: u32 = 68;
const SIZE: usize = 1_024;
/// Several times what may be under way.
const WARM_UP: u32 = 40_000;
const MEASURED: u32 = 100_000;
/// In so many parts. Where the system does not let who takes run for a while, what finds no room at the reader waits in
/// order, in nodes that are allocated: a path that allocates does so in each part.
const PARTS: u32 = 10;
const SOON: Duration = Duration::from_secs(10);

fn participant() -> DomainParticipant {
    let config =
        Config { domain_id: DOMAIN, interfaces: vec!["lo".into()], local: false, ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

#[test]
fn a_stream_with_a_full_window_allocates_nothing() {
    let qos = || Qos::default().reliable().keep_all().max_blocking_time(SOON);
    let (out, into) = (participant(), participant());
    let writer = out.topic::<Block>("Blocks").unwrap().writer(qos()).unwrap();
    let reader = into.topic::<Block>("Blocks").unwrap().reader(qos()).unwrap();
    writer.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    let reading = std::thread::spawn(move || {
        let mut taken = Block { data: Vec::new() };
        for _ in 0..WARM_UP + MEASURED {
            while reader.take_into(&mut taken).unwrap().is_none() {
                reader.wait(SOON).unwrap();
            }
        }
    });
    let block = Block { data: vec![7; SIZE] };
    (0..WARM_UP).for_each(|_| writer.write(&block).unwrap());
    let part = |_| {
        let before = CountingAllocator::of_process();
        (0..MEASURED / PARTS).for_each(|_| writer.write(&block).unwrap());
        (CountingAllocator::of_process() - before) as f64 / f64::from(MEASURED / PARTS)
    };
    let parts: Vec<f64> = (0..PARTS).map(part).collect();
    reading.join().unwrap();
    assert!(parts.iter().any(|each| *each < 0.05), "{parts:?} allocations for each sample");
}

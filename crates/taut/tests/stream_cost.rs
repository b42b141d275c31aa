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
    let before = CountingAllocator::of_process();
    (0..MEASURED).for_each(|_| writer.write(&block).unwrap());
    let each = (CountingAllocator::of_process() - before) as f64 / f64::from(MEASURED);
    reading.join().unwrap();
    assert!(each < 0.05, "{each} allocations for each sample");
}

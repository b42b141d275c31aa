//! What a sample of a stream allocates once all is warm: nothing where it is written, but for buffers that the writer keeps,
//! and where it is received and taken only if it finds no room. One test in a binary of its own, since it counts the
//! allocations of the whole process, too.

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
/// In so many parts, for what the threads that receive allocate: who takes is one of them, as it goes on with what waited for
/// room. Where the system does not let who takes run for a while, what finds no room at the reader waits in order, in nodes
/// that are allocated: a path that allocates does so in each part.
const PARTS: u32 = 100;
/// What a writer takes once, whenever that comes: memory for each of the 4,097 buffers that it keeps, which grow up to two
/// times, and the account of where time went for each of seven classes of work. Lower fails by chance, higher hides a path that
/// allocates now and then: one that does with each sample takes eight times as much.
const ONCE: u64 = 3 * 4_097 + 2 * 7;
const SOON: Duration = Duration::from_secs(10);

fn participant() -> DomainParticipant {
    let config =
        Config { domain_id: DOMAIN, interfaces: vec!["lo".into()], local: false, ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

/// What a call gives, and how often its thread allocates meanwhile.
fn counted<R>(call: impl FnOnce() -> R) -> (R, u64) {
    let before = CountingAllocator::of_thread();
    let result = call();
    (result, CountingAllocator::of_thread() - before)
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
        let mut take = |count| {
            let mut allocated = 0;
            for _ in 0..count {
                loop {
                    let (info, by_take) = counted(|| reader.take_into(&mut taken).unwrap());
                    allocated += by_take;
                    if info.is_some() {
                        break;
                    }
                    // It may receive meanwhile.
                    reader.wait(SOON).unwrap();
                }
            }
            allocated
        };
        take(WARM_UP);
        let parts: Vec<u64> = (0..PARTS).map(|_| take(MEASURED / PARTS)).collect();
        parts
    });
    let block = Block { data: vec![7; SIZE] };
    (0..WARM_UP).for_each(|_| writer.write(&block).unwrap());
    let mut by_writes = 0;
    let part = |_| {
        let before = CountingAllocator::of_process();
        by_writes += counted(|| (0..MEASURED / PARTS).for_each(|_| writer.write(&block).unwrap())).1;
        (CountingAllocator::of_process() - before) as f64 / f64::from(MEASURED / PARTS)
    };
    let parts: Vec<f64> = (0..PARTS).map(part).collect();
    let by_takes = reading.join().unwrap();
    assert!(by_writes <= ONCE, "{by_writes} by {MEASURED} writes");
    assert!(by_takes.contains(&0), "{by_takes:?} by {} takes each", MEASURED / PARTS);
    assert!(parts.iter().any(|each| *each < 0.05), "{parts:?} allocations for each sample");
}

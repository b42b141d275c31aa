//! A write that gives up allocates nothing, though it names whom it has waited for. A binary of its own: it counts the
//! allocations of the whole process.

use taut::qos::ResourceLimits;
use taut::{Config, DataWriter, DdsType, DomainParticipant, Duration, Error, Qos, SamplePath};
use taut_mem::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(DdsType)]
#[dds(final)]
struct Number {
    value: u32,
}

const SOON: Duration = Duration::from_secs(10);

fn participant(name: &str, local: bool) -> DomainParticipant {
    let config = Config { domain_id: 147, name: name.into(), local, ..Config::default() };
    DomainParticipant::with_config(&Config { interfaces: vec!["lo".into()], ..config }).unwrap()
}

/// Allocations while a write gives up and its text is shown, and that text. Of several times the least: other threads have
/// work of their own now and then.
fn cost(write: impl Fn() -> Result<(), Error>) -> (u64, String) {
    let mut shown = String::with_capacity(4_096);
    let once = || {
        let before = CountingAllocator::of_process();
        let error = write().unwrap_err();
        shown.clear();
        std::fmt::Write::write_fmt(&mut shown, format_args!("{error}")).unwrap();
        CountingAllocator::of_process() - before
    };
    let least = std::iter::repeat_with(once).take(100).min().unwrap();
    (least, shown)
}

#[test]
fn a_write_that_gives_up_allocates_nothing() {
    let [a, b, c] =
        [("writes", true), ("lane", true), ("network", false)].map(|(name, local)| participant(name, local));
    let qos = |samples| {
        let limits = ResourceLimits { max_samples: Some(samples), ..ResourceLimits::default() };
        Qos::default().reliable().keep_all().max_blocking_time(Duration::ZERO).resource_limits(limits)
    };
    let [writes, near, far] = [&a, &b, &c].map(|of| of.topic::<Number>("Timeout").unwrap());
    let writer: DataWriter<Number> = writes.writer(qos(20)).unwrap();
    let (near, far) = (near.reader(qos(5)).unwrap(), far.reader(qos(5)).unwrap());
    writer.wait_matched_count(2, SOON).unwrap();
    [&near, &far].into_iter().for_each(|reader| reader.wait_matched(SOON).unwrap());
    let start = std::time::Instant::now();
    while !a.matches().iter().any(|found| found.path == Some(SamplePath::Process)) {
        assert!(start.elapsed() < SOON.into(), "{:?}", a.matches());
        std::thread::yield_now();
    }
    // Each reader has room for 5, and says in its own time that it has them. The writer's 20 are full for good then.
    let full = 5 + 20;
    for value in 0..full {
        while writer.write(&Number { value }).is_err() {
            assert!(start.elapsed() < SOON.into(), "no room for {value}");
            std::thread::yield_now();
        }
    }

    let (allocations, text) = cost(|| writer.try_write(&Number { value: full }));
    assert_eq!(allocations, 0, "{text}");
    assert!(text.ends_with("slow_readers() names it"), "{text}");

    let (allocations, text) = cost(|| writer.write(&Number { value: full }));
    assert_eq!(allocations, 0, "{text}");
    let names = |reader| text.starts_with(&format!("the time limit passed first: reader {reader} of \""));
    assert!(names(near.guid()) || names(far.guid()), "{text}");
    assert!(text.contains(", process ") && text.contains(" samples behind since "), "{text}");
    assert!(text.ends_with(" (max_samples 20 reached); 1 more reader is behind"), "{text}");

    let held = writer.write(&Number { value: full }).unwrap_err();
    let shown = held.to_string();
    assert!(writer.write(&Number { value: full }).is_err());
    assert_eq!(held.to_string(), shown, "an error that is kept stays as it is");
}

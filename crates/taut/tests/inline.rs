//! The inline driver, in a process of its own: it counts the threads.

use std::time::Instant;

use taut::{Config, DdsType, DomainParticipant, Driver, Duration, Qos};

#[derive(DdsType)]
#[dds(final)]
struct Number {
    value: u32,
}

/// Threads of this process that Taut has made.
fn taut_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "taut").count()
}

#[test]
fn the_inline_driver_makes_no_thread_and_works_when_called() {
    let inline =
        Config { driver: Driver::Inline, domain_id: 26, interfaces: vec!["lo".into()], ..Config::default() };
    let a = DomainParticipant::with_config(&inline).unwrap();
    let b = DomainParticipant::with_config(&inline).unwrap();
    assert_eq!(taut_threads(), 0);
    let writer = a.topic::<Number>("Inline").unwrap().writer(Qos::default().reliable()).unwrap();
    let reader = b.topic::<Number>("Inline").unwrap().reader(Qos::default().reliable()).unwrap();
    let until = Instant::now() + std::time::Duration::from_secs(10);
    while writer.publication_matched_status().current_count == 0
        || reader.subscription_matched_status().current_count == 0
    {
        a.run_once(Duration::from_millis(1)).unwrap();
        b.run_once(Duration::from_millis(1)).unwrap();
        assert!(Instant::now() < until, "no match");
    }
    writer.write(&Number { value: 3 }).unwrap();
    reader.wait(Duration::from_secs(10)).unwrap();
    assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap().value, 3);
}

//! A thousand topics, in a process of its own: it counts the processor's time.

use std::time::{Duration, Instant};

use taut::{Config, DdsType, DomainParticipant, Qos};

const TOPICS: usize = 1_000;
const SOON: taut::Duration = taut::Duration::from_secs(20);
/// Long enough that one tick of the kernel's accounts, 10 ms, is half of what is allowed.
const IDLE: Duration = Duration::from_secs(2);

#[derive(DdsType)]
#[dds(final)]
struct Number {
    value: u32,
}

/// What this process has used of the processor.
fn used() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    // utime and stime, in hundredths of a second.
    let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

#[test]
fn a_thousand_idle_topics_take_no_hundredth_of_a_processor() {
    // One after the other, as they share the process's account; past the network, and with what is there at first.
    for local in [false, true] {
        are_idle(local);
    }
}

fn are_idle(local: bool) {
    let config = Config { domain_id: 90, interfaces: vec!["lo".into()], local, ..Config::default() };
    let open = || DomainParticipant::with_config(&config).unwrap();
    let (out, inward) = (open(), open());
    let qos = Qos::default().reliable();
    let ends: Vec<_> = (0..TOPICS)
        .map(|n| {
            let name = format!("Topic{n}");
            let writer = out.topic::<Number>(&name).unwrap().writer(qos.clone()).unwrap();
            (writer, inward.topic::<Number>(&name).unwrap().reader(qos.clone()).unwrap())
        })
        .collect();
    for (n, (writer, reader)) in ends.iter().enumerate() {
        writer.wait_matched(SOON).unwrap();
        reader.wait_matched(SOON).unwrap();
        writer.write(&Number { value: n as u32 }).unwrap();
        reader.wait(SOON).unwrap();
        assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap().value, n as u32);
    }
    for (writer, _) in &ends {
        writer.wait_for_acknowledgments(SOON).unwrap();
    }
    // What follows from the making is over when a whole look finds little; a wait for that has an end, too.
    let until = Instant::now() + SOON.into();
    loop {
        let before = used();
        std::thread::sleep(IDLE);
        let share = (used() - before).as_secs_f64() / IDLE.as_secs_f64();
        if share < 0.01 {
            return;
        }
        assert!(Instant::now() < until, "local {local}: {:.1} % of a processor", share * 100.0);
    }
}

//! Pairs that live briefly leave nothing behind, though their ends have gone before both sides matched. A binary of its own:
//! it counts memory of the whole process.

use std::time::{Duration, Instant};

use taut::{Config, DdsType, DomainParticipant, Qos};

#[derive(DdsType)]
#[dds(final)]
struct Number {
    value: u32,
}

const DOMAIN: u32 = 87;
const ROUNDS: usize = 100;
const SOON: Duration = Duration::from_secs(20);

fn participant() -> DomainParticipant {
    let config = Config { domain_id: DOMAIN, interfaces: vec!["lo".into()], ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

/// Descriptors of lanes, and where they are mapped.
fn lanes() -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let opened = descriptors.filter_map(|fd| Some(std::fs::read_link(fd.path()).ok()?.display().to_string()));
    let mapped = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mapped = mapped.lines().map(str::to_owned);
    opened.chain(mapped).filter(|line| line.contains("memfd:taut-lane")).count()
}

#[test]
fn pairs_that_live_briefly_in_one_process_leave_nothing() {
    let (a, b) = (participant(), participant());
    for round in 0..ROUNDS {
        let topic = format!("Brief{round}");
        let reader = b.topic::<Number>(&topic).unwrap().reader(Qos::default().reliable()).unwrap();
        let writer = a.topic::<Number>(&topic).unwrap().writer(Qos::default().reliable()).unwrap();
        writer.wait_matched(SOON).unwrap();
        drop((writer, reader));
    }
    let start = Instant::now();
    // Nobody tells that the last one has gone; 1 ms of looking later finds it.
    while lanes() > 0 {
        assert!(start.elapsed() < SOON, "{} are left", lanes());
        std::thread::sleep(Duration::from_millis(1));
    }
}

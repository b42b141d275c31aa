//! Memory of a writer's lane, taken and kept beforehand. A binary of its own: it looks at the whole process.

use std::os::unix::fs::MetadataExt;

use taut::cdr::bytemuck;
use taut::{Config, DataWriter, DdsType, DomainParticipant, Qos};

const TAKEN: usize = 4 << 20;

#[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[bytemuck(crate = "taut::cdr::bytemuck")]
#[dds(final, plain)]
#[repr(C)]
struct Image {
    pixels: [u8; 1_000],
}

/// A writer that has lent once, so that there is a lane.
fn writer(config: Config) -> (DomainParticipant, DataWriter<Image>) {
    let config = Config { domain_id: 83, interfaces: vec!["lo".into()], ..config };
    let participant = DomainParticipant::with_config(&config).unwrap();
    let writer = participant.topic("Image").unwrap().writer(Qos::default()).unwrap();
    drop(writer.loan().unwrap());
    (participant, writer)
}

/// What this process has of its lanes in memory, and of that for good. *Units*: bytes.
fn of_lanes() -> (usize, usize) {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut is_lane, mut there, mut kept) = (false, 0, 0);
    for line in smaps.lines() {
        let word = line.split(' ').next().unwrap_or_default();
        let bytes = || line.split_whitespace().nth(1).and_then(|n| n.parse::<usize>().ok()).unwrap() * 1_024;
        match word {
            "Rss:" if is_lane => there += bytes(),
            "Locked:" if is_lane => kept += bytes(),
            range if range.contains('-') => is_lane = line.contains("taut-lane"),
            _ => {}
        }
    }
    (there, kept)
}

#[test]
fn memory_is_taken_and_kept_beforehand_on_request_only() {
    let plain = writer(Config::default());
    let (there, kept) = of_lanes();
    assert!(there > 0 && there < TAKEN / 2 && kept == 0, "{there} {kept}");
    drop(plain);

    let prepared = writer(Config { prefault: TAKEN, lock_memory: true, ..Config::default() });
    let (there, kept) = of_lanes();
    assert!(there >= TAKEN, "{there}");
    // Without the privilege it goes on, and says so.
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        assert!(kept >= TAKEN, "{kept}");
    }
    drop(prepared);
}

//! How many descriptors a participant takes. A binary of its own: it counts those of the whole process.

use taut::{Config, DdsType, DomainParticipant, Duration, Qos};

#[derive(DdsType)]
#[dds(final)]
struct Number {
    value: u32,
}

/// What the text of DomainParticipant says.
const MOST: usize = 20;
const WRITERS: usize = 8;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_participant_takes_as_many_descriptors_as_it_says() {
    let before = descriptors();
    let config = Config { domain_id: 85, interfaces: vec!["lo".into()], ..Config::default() };
    let participant = DomainParticipant::with_config(&config).unwrap();
    let taken = descriptors() - before;
    assert!(taken <= MOST && taken > MOST / 2, "{taken}");
    let topics = (0..WRITERS).map(|n| participant.topic::<Number>(&format!("Descriptors{n}")).unwrap());
    let ends: Vec<_> = topics
        .map(|topic| {
            let (writer, reader) =
                (topic.writer(Qos::default()).unwrap(), topic.reader(Qos::default()).unwrap());
            writer.write(&Number { value: 1 }).unwrap();
            reader.wait(Duration::from_secs(10)).unwrap();
            (writer, reader)
        })
        .collect();
    let taken = descriptors() - before;
    assert!(taken <= MOST + WRITERS, "{taken}");
    drop((ends, participant));
    assert_eq!(descriptors(), before, "all are given back");
}

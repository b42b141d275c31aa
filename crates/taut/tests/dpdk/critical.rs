//! Critical endpoints by a queue of their own, beside all else on the same device.

use taut::{Config, DataReader, DataWriter, DomainParticipant};
use taut_testbed::{End, LIMIT, await_that, with_pair};

use crate::{Blob, IP, IPV6, qos, send_with};

/// One that no participant of domain 0 has by itself.
const PORT: u16 = 7_402;
const SAMPLES: u64 = 200;

fn critical_in(of: &DomainParticipant) -> u64 {
    of.stats().frames.unwrap().critical_in
}

/// What goes one way with some priority.
fn way(
    from: &DomainParticipant,
    to: &DomainParticipant,
    priority: i32,
) -> (DataWriter<Blob>, DataReader<Blob>) {
    let (name, qos) = (format!("Way{priority}"), || qos().transport_priority(priority));
    let writer = from.topic::<Blob>(&name).unwrap().writer(qos()).unwrap();
    let reader = to.topic::<Blob>(&name).unwrap().reader(qos()).unwrap();
    writer.wait_matched(LIMIT).unwrap();
    reader.wait_matched(LIMIT).unwrap();
    (writer, reader)
}

#[test]
fn only_what_is_critical_comes_by_its_queue() {
    with_pair("only_what_is_critical_comes_by_its_queue", ["", ""], |pair| {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("memif.sock");
        for (number, addresses) in [(30, IP), (32, ["", ""]), (34, IPV6)] {
            let open = |end: End| {
                pair.enter(end);
                let role = ["server", "client"][end as usize];
                let config = Config {
                    dpdk_device: format!(
                        "net_memif{},role={role},socket-abstract=no,socket={}",
                        number + end as u32,
                        socket.display()
                    ),
                    dpdk_address: addresses[end as usize].into(),
                    dpdk_vlan: Some(5),
                    dpdk_priority_pcp: vec![(100, 6)],
                    dpdk_critical_queue: true,
                    critical_port: PORT,
                    // In this process they would not need the network.
                    local: false,
                    report: false,
                    ..Config::default()
                };
                let mut made = None;
                // Other tests of this process have frames in the same memory, and give it back.
                await_that("there is memory for it", || {
                    match DomainParticipant::with_config(&config) {
                        Ok(participant) => made = Some(participant),
                        Err(error) => assert!(error.to_string().contains("has no memory"), "{error}"),
                    }
                    made.is_some()
                });
                made.unwrap()
            };
            let [near, far] = End::BOTH.map(open);
            for priority in [0, 99, 100] {
                let (writer, reader) = way(&near, &far, priority);
                let before = [&near, &far].map(critical_in);
                for number in 0..SAMPLES as u32 {
                    let blob = Blob { number, bytes: vec![7; 1_000] };
                    writer.write(&blob).unwrap();
                    reader.wait(LIMIT).unwrap();
                    assert_eq!(reader.take_next().unwrap().unwrap().data, Some(blob));
                }
                writer.wait_for_acknowledgments(LIMIT).unwrap();
                let after = [&near, &far].map(critical_in);
                let came = after[1] - before[1];
                match priority {
                    100 => assert!(came >= SAMPLES, "{came} frames of {SAMPLES} critical samples"),
                    _ => assert_eq!(came, 0, "priority {priority}"),
                }
                // Acknowledgements have the priority of the participant.
                assert_eq!(after[0], before[0], "priority {priority}");
            }
            send_with(&near, &far, "Large", 100);
            send_with(&far, &near, "Back", 100);
            assert!(critical_in(&near) > 700, "fragments, too");
        }
    });
}

//! Frames over memif, which is memory that two devices share: both of them in this process. `two_processes` has one in each.

mod common;

use common::{await_link, filled, flush, frame, memif, number_of, open, send};
use taut_dpdk::{BURST, Burst, Device, DeviceConfig, Error, Flow, Statistics};
use taut_testbed::await_that;
use tempfile::TempDir;

/// Both ends here, with numbers that no other test has.
fn pair(directory: &TempDir, number: u32) -> [Device; 2] {
    let socket = directory.path().join("socket");
    let server = open(&memif(number, "server", &socket)).expect("a server");
    let client = open(&memif(number + 1, "client", &socket)).expect("a client");
    await_link(&server);
    await_link(&client);
    [server, client]
}

#[test]
fn what_a_port_says_of_itself() {
    let directory = TempDir::new().unwrap();
    let [server, client] = pair(&directory, 10);
    assert_eq!((server.name(), client.name()), ("net_memif10", "net_memif11"));
    assert_eq!((server.driver(), server.queues(), server.mtu()), ("net_memif", (1, 1), 1_500));
    assert_ne!(server.mac(), client.mac());
    assert_eq!(client.statistics(), Statistics::default());
    // Without the other end there is no link.
    drop(client);
    await_that("the link is down", || !server.link().is_up);
    drop(server);
    assert_eq!(directory.path().read_dir().unwrap().count(), 0, "the socket is gone");
}

#[test]
fn bursts_keep_their_order() {
    let directory = TempDir::new().unwrap();
    let [mut server, mut client] = pair(&directory, 20);
    let (mut came, mut next) = (Burst::new(), 0);
    for round in 0..200 {
        let count = round % (2 * BURST as u32 + 1);
        send(&mut client, (next..next + count).map(|number| frame(number, 60 + number as usize % 1_400)));
        let end = next + count;
        await_that("all come", || {
            server.receive(0, &mut came);
            for bytes in came.iter() {
                assert_eq!(number_of(bytes), Some(next));
                next += 1;
            }
            came.clear();
            next == end
        });
    }
    let counted = server.statistics();
    assert_eq!((counted.rx_frames, client.statistics().tx_frames), (next.into(), next.into()));
    assert!(counted.rx_bytes > 60 * u64::from(next), "{counted:?}");
}

#[test]
fn a_burst_is_a_queue() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    let device = open(&memif(30, "server", &socket)).unwrap();
    let mut burst = Burst::new();
    for number in 0..BURST as u32 {
        burst.push(filled(&device, &frame(number, 60))).unwrap();
    }
    let more = filled(&device, &frame(99, 60));
    assert_eq!(burst.push(more).map_err(|frame| number_of(frame.bytes())), Err(Some(99)));
    let first: Vec<_> = (0..3).map(|_| number_of(burst.pop().unwrap().bytes())).collect();
    assert_eq!((first, burst.len(), burst.room()), (vec![Some(0), Some(1), Some(2)], BURST - 3, 3));
    burst.push(filled(&device, &frame(77, 60))).unwrap();
    let rest: Vec<_> = burst.iter().filter_map(number_of).collect();
    assert_eq!(rest, (3..BURST as u32).chain([77]).collect::<Vec<_>>());
    burst.clear();
    assert!(burst.is_empty() && burst.pop().is_none());
}

#[test]
fn a_frame_has_the_room_that_it_says() {
    let directory = TempDir::new().unwrap();
    let device = open(&memif(40, "server", &directory.path().join("socket"))).unwrap();
    let mut frame = device.frame().unwrap();
    let (front, room) = (frame.front_room(), frame.room());
    assert!(front >= 64 && room >= 1_522 && frame.bytes().is_empty(), "{front} and {room}");
    assert!(frame.append(room + 1).is_none() && frame.append(1 << 16).is_none());
    assert!(frame.prepend(front + 1).is_none() && frame.prepend(1 << 17).is_none());
    // Wherever a frame begins, it is no longer than its room.
    frame.append(room - 50).unwrap().fill(7);
    frame.prepend(30).unwrap().fill(8);
    assert_eq!((frame.room(), frame.front_room(), frame.bytes().len()), (20, 20, room - 20));
    assert!(frame.append(21).is_none() && frame.prepend(21).is_none());
    frame.append(20).unwrap().fill(6);
    assert_eq!((frame.room(), frame.front_room()), (0, 0));
    assert_eq!(frame.append(0).map(|added| added.len()), Some(0));
    frame.truncate(35);
    frame.truncate(50);
    frame.bytes_mut()[0] = 9;
    let expected = [[9].as_slice(), &[8; 29], &[7; 5]].concat();
    assert_eq!(frame.bytes(), expected);
}

#[test]
fn each_queue_has_one_at_the_other_end() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    let config = DeviceConfig { rx_queues: 2, tx_queues: 2, ..DeviceConfig::default() };
    let [mut server, mut client] = [(90, "server"), (91, "client")]
        .map(|(number, role)| Device::open(common::eal(), &memif(number, role, &socket), &config).unwrap());
    await_link(&server);
    await_link(&client);
    let cross = |from: &mut Device, to: &mut Device| {
        for (number, queue) in [(1, 1), (2, 0), (3, 1)] {
            let mut burst = Burst::new();
            burst.push(filled(from, &frame(number, 60))).unwrap();
            let mut came = Burst::new();
            await_that("it comes", || {
                from.send(queue, &mut burst);
                assert_eq!(to.receive(1 - queue, &mut came), 0, "by no other one");
                to.receive(queue, &mut came) == 1
            });
            assert_eq!(number_of(came.pop().unwrap().bytes()), Some(number));
        }
    };
    cross(&mut client, &mut server);
    cross(&mut server, &mut client);
}

#[test]
fn who_has_other_queues_is_not_let_in() {
    let directory = TempDir::new().unwrap();
    let several = DeviceConfig { rx_queues: 2, tx_queues: 2, ..DeviceConfig::default() };
    for (number, configs) in
        [(97, [&several, &DeviceConfig::default()]), (99, [&DeviceConfig::default(), &several])]
    {
        let socket = directory.path().join(number.to_string());
        let end = |number, role, config| Device::open(common::eal(), &memif(number, role, &socket), config);
        let server = end(number, "server", configs[0]).unwrap();
        let refused = end(number + 1, "client", configs[1]).map(|_| "let in");
        assert!(matches!(refused, Err(Error::DeviceNotStarted { .. })), "{refused:?}");
        assert!(!server.link().is_up);
        let client = end(number + 1, "client", configs[0]).unwrap();
        await_link(&server);
        drop(client);
    }
}

#[test]
fn what_no_driver_has_a_rule_for_is_told() {
    let directory = TempDir::new().unwrap();
    let mut device = open(&memif(95, "server", &directory.path().join("socket"))).unwrap();
    let port = |is_tagged| Flow::UdpPort { port: 7_402, is_ipv6: false, is_tagged };
    for (flow, name) in [
        (port(false), "net_memif95 has no rule for UDP port 7402 ("),
        (port(true), "net_memif95 has no rule for UDP port 7402 behind a tag ("),
        (Flow::Priority(6), "net_memif95 has no rule for priority 6 in a tag ("),
    ] {
        let told = device.steer(flow, 0).unwrap_err().to_string();
        assert!(told.starts_with(name) && !told.contains('\n'), "{told}");
    }
}

#[test]
fn frames_are_not_taken_by_queues_that_are_not_there() {
    let directory = TempDir::new().unwrap();
    let [mut server, mut client] = pair(&directory, 50);
    let mut burst = Burst::new();
    burst.push(filled(&client, &frame(1, 60))).unwrap();
    assert_eq!((client.send(1, &mut burst), burst.len()), (0, 1));
    assert_eq!(server.receive(7, &mut Burst::new()), 0);
    flush(&mut client, &mut burst);
    await_that("it comes", || server.receive(0, &mut burst) == 1);
}

#[test]
fn all_frames_in_use_and_back_again() {
    let directory = TempDir::new().unwrap();
    let device = open(&memif(60, "server", &directory.path().join("socket"))).unwrap();
    for _ in 0..3 {
        let all: Vec<_> = std::iter::from_fn(|| device.frame()).collect();
        assert!(all.len() > 3_000 && device.frame().is_none(), "{}", all.len());
    }
}

#[test]
fn a_frame_may_outlive_its_port() {
    let directory = TempDir::new().unwrap();
    let device = open(&memif(70, "server", &directory.path().join("socket"))).unwrap();
    let mut kept = filled(&device, &frame(5, 800));
    drop(device);
    // Another one does not get its memory.
    let device = open(&memif(70, "server", &directory.path().join("socket"))).unwrap();
    let mut all: Vec<_> = std::iter::from_fn(|| device.frame()).collect();
    assert!(all.len() > 3_000);
    all.iter_mut().for_each(|frame| frame.append(1_000).expect("there is room").fill(1));
    assert_eq!(number_of(kept.bytes()), Some(5));
    kept.bytes_mut().fill(3);
}

#[test]
fn ports_come_and_go() {
    let directory = TempDir::new().unwrap();
    // Together they are more than DPDK has: each one gives back what it had.
    let config = DeviceConfig { spare_frames: 6_000, ..DeviceConfig::default() };
    for _ in 0..30 {
        let device = memif(80, "server", &directory.path().join("socket"));
        drop(Device::open(common::eal(), &device, &config).unwrap());
    }
}

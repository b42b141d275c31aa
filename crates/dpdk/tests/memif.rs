//! Frames over memif, which is memory that two devices share: in one process and between two.

mod common;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{CHILD, await_link, filled, flush, frame, memif, number_of, open, send, start};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use taut_dpdk::{BURST, Burst, Device, DeviceConfig, Statistics};
use taut_testbed::{LIMIT, await_that};
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

/// The child of the tests below, which sends back what comes; nothing when it is run alone.
#[test]
fn echo() {
    let Some(socket) = std::env::var_os(CHILD) else {
        return println!("LEFT OUT: it is a child of the other tests");
    };
    let mut device = open(&memif(0, "client", Path::new(&socket))).unwrap();
    await_link(&device);
    println!("\nechoes");
    let (mut burst, end) = (Burst::new(), Instant::now() + 2 * LIMIT);
    while Instant::now() < end && device.link().is_up {
        for _ in 0..10_000 {
            device.receive(0, &mut burst);
            device.send(0, &mut burst);
        }
        std::thread::yield_now();
    }
}

/// A server here, and a child behind its socket.
fn server_and_child(number: u32) -> (TempDir, PathBuf, Device, common::Held) {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    let device = open(&memif(number, "server", &socket)).unwrap();
    let mut child = start("echo", socket.to_str().unwrap(), Stdio::inherit());
    child.await_line("echoes");
    await_link(&device);
    (directory, socket, device, child)
}

#[test]
fn frames_cross_to_another_process_and_back() {
    const FRAMES: u32 = 20_000;
    let (_directory, _, mut device, child) = server_and_child(90);
    let mut waiting = HashMap::new();
    let (mut burst, mut next, mut answered) = (Burst::new(), 0, 0);
    await_that("all come back", || {
        while next < FRAMES && waiting.len() < 400 {
            let bytes = frame(next, 60 + next as usize % 1_455);
            waiting.insert(next, bytes.len());
            send(&mut device, [bytes]);
            next += 1;
        }
        device.receive(0, &mut burst);
        for bytes in burst.iter() {
            assert_eq!(number_of(bytes), Some(answered), "in their order");
            assert_eq!(waiting.remove(&answered), Some(bytes.len()));
            answered += 1;
        }
        burst.clear();
        answered == FRAMES
    });
    // The child ends with the link.
    drop(device);
    child.output();
}

#[test]
fn a_killed_peer_leaves_the_port_to_the_next() {
    let (_directory, socket, mut device, mut child) = server_and_child(100);
    for number in 0..3 {
        child.kill();
        // What is sent to nobody is not taken, and takes nothing away.
        await_that("the link is down", || !device.link().is_up);
        let mut burst = Burst::new();
        burst.push(filled(&device, &frame(7, 60))).unwrap();
        assert_eq!((device.send(0, &mut burst), device.receive(0, &mut Burst::new())), (0, 0));
        child = start("echo", socket.to_str().unwrap(), Stdio::inherit());
        child.await_line("echoes");
        await_link(&device);
        send(&mut device, [frame(number, 60)]);
        burst.clear();
        await_that("it comes back", || device.receive(0, &mut burst) == 1);
        assert_eq!(burst.iter().next().and_then(number_of), Some(number));
    }
}

/// Has this thread be on one core of those that it may be on.
fn pin(choose: impl FnOnce(&[usize]) -> Option<&usize>) {
    let own = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let cores: Vec<usize> = (0..CpuSet::count()).filter(|core| own.is_set(*core).unwrap()).collect();
    let mut one = CpuSet::new();
    one.set(*choose(&cores).unwrap()).unwrap();
    sched_setaffinity(Pid::from_raw(0), &one).unwrap();
}

/// The child of the test below, which fills the memory that it shares; nothing when it is run alone.
#[test]
fn flood() {
    let Some(socket) = std::env::var_os(CHILD) else {
        return println!("LEFT OUT: it is a child of the other tests");
    };
    // As many frames as memif ever takes.
    let mut device = open(&format!("{},rsize=14", memif(0, "client", Path::new(&socket)))).unwrap();
    let (mut burst, mut sent) = (Burst::new(), 0);
    while sent < 16_000 {
        while burst.room() > 0 {
            let mut frame = device.frame().unwrap();
            frame.append(1_500).unwrap();
            burst.push(frame).unwrap();
        }
        sent += device.send(0, &mut burst);
    }
    println!("\nis full");
    std::thread::sleep(2 * LIMIT);
}

#[test]
fn a_peer_that_is_killed_while_it_is_listened_to_takes_nobody_along() {
    const ROUNDS: usize = 5;
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    let mut device = open(&memif(120, "server", &socket)).unwrap();
    // DPDK's own thread has the others.
    pin(|cores| cores.first());
    let mut burst = Burst::new();
    for _ in 0..ROUNDS {
        let mut child = start("flood", socket.to_str().unwrap(), Stdio::inherit());
        child.await_line("is full");
        child.send_kill();
        // Without a pause, so that what DPDK does is done in the midst of it.
        let (mut received, end) = (0, Instant::now() + LIMIT);
        while device.link().is_up {
            assert!(Instant::now() < end, "the link stays up");
            received += device.receive(0, &mut burst);
            burst.clear();
        }
        assert!(received > 0);
    }
}

#[test]
fn how_long_a_round_trip_takes() {
    const TRIPS: usize = 20_000;
    let (_directory, _, mut device, _child) = server_and_child(110);
    let mut burst = Burst::new();
    burst.push(filled(&device, &frame(1, 64))).unwrap();
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..TRIPS {
        let start = Instant::now();
        flush(&mut device, &mut burst);
        let mut looks = 0;
        while device.receive(0, &mut burst) == 0 {
            looks += 1;
            if looks % 10_000 == 0 {
                assert!(start.elapsed() < LIMIT, "it does not come back");
                std::thread::yield_now();
            }
        }
        times.push(start.elapsed());
    }
    // The first ones find memory that nobody has touched.
    let mut times = times.split_off(TRIPS / 10);
    times.sort();
    let at = |part: f64| times[(part * (times.len() - 1) as f64) as usize].as_nanos() as f64 / 1e3;
    println!("memif, 64 B: p50 {:.2} us, p99 {:.2} us, max {:.0} us", at(0.5), at(0.99), at(1.0));
}

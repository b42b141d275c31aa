//! Frames over memif between two processes, also those that end in the midst of it.
//!
//! The driver opens its sockets without close-on-exec, so a process that is started has those that this one had then.
//! One that is closed here and open there is still told by epoll, under a number that the next connection here may have:
//! the driver reads that one, and DPDK's thread waits there for a message. Another process sends it; were both ends here,
//! they would wait for each other. So nothing here has both ends, and `memif`, which has them, starts nobody.

mod common;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{CHILD, await_link, filled, flush, frame, memif, number_of, open, send, start};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use taut_dpdk::{Burst, Device};
use taut_testbed::{LIMIT, await_that};
use tempfile::TempDir;

/// The child of the tests below, which sends back what comes; nothing when it is run alone.
#[test]
fn echo() {
    let Some(socket) = std::env::var_os(CHILD) else {
        return println!("LEFT OUT: it is a child of the other tests");
    };
    let device = open(&memif(0, "client", Path::new(&socket))).unwrap();
    await_link(&device);
    println!("\nechoes");
    send_back(device);
}

/// What comes, for as long as there is a link.
fn send_back(mut device: Device) {
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

/// By a socket without a file: one that is a file outlives who is killed.
fn by_name(number: u32, role: &str, socket: &str) -> String {
    format!("net_memif{number},role={role},socket={socket}")
}

/// The child of the test below, which is the server; nothing when it is run alone.
#[test]
fn serve() {
    let Ok(socket) = std::env::var(CHILD) else {
        return println!("LEFT OUT: it is a child of the other tests");
    };
    let device = open(&by_name(0, "server", &socket)).unwrap();
    println!("\nserves");
    await_link(&device);
    send_back(device);
}

#[test]
fn a_killed_server_leaves_the_client_to_the_next() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket").to_string_lossy().into_owned();
    let serve = || {
        let mut child = start("serve", &socket, Stdio::inherit());
        child.await_line("serves");
        child
    };
    let mut child = serve();
    let mut device = open(&by_name(140, "client", &socket)).unwrap();
    for number in 0..3 {
        send(&mut device, [frame(number, 60)]);
        let mut burst = Burst::new();
        await_that("it comes back", || device.receive(0, &mut burst) == 1);
        assert_eq!(burst.iter().next().and_then(number_of), Some(number));
        child.kill();
        await_that("the link is down", || !device.link().is_up);
        burst.clear();
        burst.push(filled(&device, &frame(7, 60))).unwrap();
        assert_eq!((device.send(0, &mut burst), device.receive(0, &mut Burst::new())), (0, 0));
        child = serve();
        await_link(&device);
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
        await_that("it is listened to", || device.receive(0, &mut burst) > 0);
        burst.clear();
        child.send_kill();
        // Without a pause, so that what DPDK does is done in the midst of it.
        let end = Instant::now() + LIMIT;
        while device.link().is_up {
            assert!(Instant::now() < end, "the link stays up");
            device.receive(0, &mut burst);
            burst.clear();
        }
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

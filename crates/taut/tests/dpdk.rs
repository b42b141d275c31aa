//! Samples between two processes that have nothing but a device of DPDK in common.
//!
//! Needs root for two network namespaces. Without it the test says that it is left out; with `CI=true` that is a failure.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use taut::{Config, DataReader, DdsType, DomainParticipant, Qos};
use taut_testbed::{End, Held, LIMIT, await_that, with_pair};

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Blob {
    number: u32,
    bytes: Vec<u8>,
}

/// From nothing to what takes tens of thousands of frames, and around the length of one frame.
const SIZES: [usize; 8] = [0, 1, 100, 1_380, 1_400, 1_420, 70_000, 4 << 20];
const SMALL: usize = 5_000;

/// How the child below is told where the other end is.
const CHILD: &str = "TAUT_DPDK_CHILD";

fn participant(role: &str, socket: &str) -> DomainParticipant {
    let dpdk_device = format!("net_memif0,role={role},socket={socket},socket-abstract=no");
    DomainParticipant::with_config(&Config { dpdk_device, report: false, ..Config::default() }).unwrap()
}

fn qos() -> Qos {
    Qos::default().reliable().keep_all().max_blocking_time(LIMIT)
}

fn take(reader: &DataReader<Blob>, count: usize) -> Vec<Blob> {
    let mut got = Vec::new();
    while got.len() < count {
        reader.wait(LIMIT).unwrap_or_else(|error| panic!("{} of {count}: {error}", got.len()));
        got.extend(reader.take().unwrap().into_iter().filter_map(|sample| sample.data));
    }
    got
}

fn all() -> Vec<Blob> {
    let sizes = SIZES.into_iter().chain([64; SMALL]);
    let blob = |(number, len): (usize, usize)| Blob {
        number: number as u32,
        bytes: (0..len).map(|at| (at ^ number) as u8).collect(),
    };
    sizes.enumerate().map(blob).collect()
}

/// A child of the test below, which sends back what it gets; nothing when it is run alone.
#[test]
fn echoes() {
    let Ok(socket) = std::env::var(CHILD) else {
        return println!("LEFT OUT: it is a child of another test");
    };
    let participant = participant("server", &socket);
    let back = participant.topic::<Blob>("Back").unwrap().writer(qos()).unwrap();
    let reader = participant.topic::<Blob>("There").unwrap().reader(qos()).unwrap();
    println!("\nready");
    for blob in take(&reader, all().len()) {
        back.write(&blob).unwrap();
    }
    back.wait_for_acknowledgments(LIMIT).unwrap();
}

#[test]
fn there_and_back() {
    with_pair("there_and_back", ["", ""], |pair| {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("memif.sock").to_string_lossy().into_owned();
        pair.enter(End::A);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["echoes", "--exact", "--nocapture"]).env(CHILD, &socket).stdout(Stdio::piped());
        let mut child = Held(command.spawn().unwrap());
        let mut said = BufReader::new(child.0.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(said.any(|line| line == "ready"), "it ended before");

        pair.enter(End::B);
        let participant = participant("client", &socket);
        let there = participant.topic::<Blob>("There").unwrap().writer(qos()).unwrap();
        let back = participant.topic::<Blob>("Back").unwrap().reader(qos()).unwrap();
        there.wait_matched(LIMIT).unwrap();
        back.wait_matched(LIMIT).unwrap();
        let sent = all();
        sent.iter().for_each(|blob| there.write(blob).unwrap());
        assert!(take(&back, sent.len()) == sent, "in order and whole");
        let frames = participant.stats().xdp.unwrap();
        assert!(frames.bytes_in as usize >= SIZES.iter().sum::<usize>(), "{frames:?}");
        assert_eq!([frames.malformed, frames.not_ours, frames.damaged, frames.errors], [0; 4], "{frames:?}");
        await_that("the other side ends", || child.0.try_wait().unwrap().is_some());
    });
}

//! A process that goes past the kernel is killed, or ends its participant: nothing of it is left.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use taut::{Config, DomainParticipant, Qos, XdpLayer, XdpMode};
use taut_testbed::{End, Held, Pair, await_that, copies_of, with_pair};

use crate::{Blob, bare_config, config};

/// How the children below are told that they are, and by which layer.
const CHILD: &str = "TAUT_XDP_CHILD";
const LAYERS: [XdpLayer; 2] = [XdpLayer::Ip, XdpLayer::Bare];

fn config_of(end: End, layer: XdpLayer) -> Config {
    match layer {
        XdpLayer::Ip => config(end, Some(XdpMode::Auto)),
        XdpLayer::Bare => bare_config(end, XdpMode::Auto),
    }
}

/// A child of the test below, which writes until it is killed; nothing when it is run alone.
#[test]
fn writes_past_the_kernel() {
    let Ok(layer) = std::env::var(CHILD) else {
        return println!("LEFT OUT: it is a child of another test");
    };
    let layer = LAYERS[layer.parse::<usize>().unwrap()];
    let participant = DomainParticipant::with_config(&config_of(End::A, layer)).unwrap();
    let writer = participant.topic::<Blob>("Blob").unwrap().writer(Qos::default().reliable()).unwrap();
    for number in 0.. {
        writer.write(&Blob::new(number, 5_000)).unwrap();
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn start(pair: &Pair, layer: XdpLayer) -> Held {
    pair.enter(End::A);
    let mut command = Command::new(std::env::current_exe().unwrap());
    let number = LAYERS.iter().position(|of| *of == layer).unwrap().to_string();
    command.args(["killed::writes_past_the_kernel", "--exact"]).env(CHILD, number).stdout(Stdio::null());
    Held(command.spawn().unwrap())
}

fn a_process_that_is_killed(pair: &Pair, layer: XdpLayer) {
    pair.enter(End::B);
    let other = DomainParticipant::with_config(&config_of(End::B, layer)).unwrap();
    let reader = other.topic::<Blob>("Blob").unwrap().reader(Qos::default().reliable()).unwrap();
    for _ in 0..3 {
        let child = start(pair, layer);
        let before = other.stats().frames.unwrap().datagrams_in;
        await_that("its samples come past the kernel", || {
            drop(reader.take().unwrap());
            other.stats().frames.unwrap().datagrams_in > before + 100
        });
        assert!(pair.has_program(End::A));
        drop(child);
        pair.await_kernels(End::A);
    }
}

#[test]
fn a_process_that_is_killed_over_ip() {
    with_pair("a_process_that_is_killed_over_ip", ["", ""], |pair| {
        a_process_that_is_killed(pair, XdpLayer::Ip);
    });
}

#[test]
fn a_process_that_is_killed_without_ip() {
    with_pair("a_process_that_is_killed_without_ip", ["", ""], |pair| {
        a_process_that_is_killed(pair, XdpLayer::Bare);
    });
}

/// How many times one is killed, and how long after its start at most: by then it writes.
const KILLS: u32 = 30;
const LATEST: Duration = Duration::from_millis(150);

fn a_process_that_is_killed_at_any_moment(pair: &Pair, layer: XdpLayer) {
    for number in 0..KILLS {
        let child = start(pair, layer);
        // The moment of the kill is what is tried here.
        std::thread::sleep(LATEST * number / (KILLS - 1));
        drop(child);
        pair.await_kernels(End::A);
    }
    // The queue is free, too.
    let child = start(pair, layer);
    await_that("the last one has a program attached", || pair.has_program(End::A));
    drop(child);
    pair.await_kernels(End::A);
}

#[test]
fn a_process_that_is_killed_at_any_moment_over_ip() {
    with_pair("a_process_that_is_killed_at_any_moment_over_ip", ["", ""], |pair| {
        a_process_that_is_killed_at_any_moment(pair, XdpLayer::Ip);
    });
}

#[test]
fn a_process_that_is_killed_at_any_moment_without_ip() {
    with_pair("a_process_that_is_killed_at_any_moment_without_ip", ["", ""], |pair| {
        a_process_that_is_killed_at_any_moment(pair, XdpLayer::Bare);
    });
}

/// A child of the test below, which ends its participant when it is told to; nothing when it is run alone.
#[test]
fn ends_its_participant() {
    if std::env::var(CHILD).is_err() {
        return println!("LEFT OUT: it is a child of another test");
    }
    let told = || std::io::stdin().read_line(&mut String::new()).unwrap();
    let participant = DomainParticipant::with_config(&config(End::A, Some(XdpMode::Auto))).unwrap();
    println!("\nready");
    told();
    drop(participant);
    println!("\nended");
    told();
}

/// It has copies of the descriptors of the program and of the queue.
#[test]
fn a_participant_that_ends_before_a_child_of_its_process() {
    with_pair("a_participant_that_ends_before_a_child", ["", ""], |pair| {
        pair.enter(End::A);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["killed::ends_its_participant", "--exact", "--nocapture"]).env(CHILD, "yes");
        let mut process = Held(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
        let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
        let mut says = |word| assert!(lines.any(|line| line.unwrap() == word), "it says {word}");
        says("ready");
        assert!(pair.has_program(End::A));
        let _copies = copies_of(process.0.id());
        process.0.stdin.as_mut().unwrap().write_all(b"end\n").unwrap();
        says("ended");
        pair.await_no_program(End::A);
    });
}

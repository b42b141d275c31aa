//! A process that goes past the kernel is killed, or ends its participant: nothing of it is left.

use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

use taut::{DomainParticipant, Qos, XdpMode};
use taut_testbed::{End, Held, LIMIT, Pair, await_that, copies_of, with_pair};

use crate::{Blob, config, participant};

/// How the child below is told where it is.
const CHILD: &str = "TAUT_XDP_CHILD";

/// A child of the test below, which writes until it is killed; nothing when it is run alone.
#[test]
fn writes_past_the_kernel() {
    if std::env::var(CHILD).is_err() {
        return println!("LEFT OUT: it is a child of another test");
    }
    let participant = DomainParticipant::with_config(&config(End::A, Some(XdpMode::Auto))).unwrap();
    let writer = participant.topic::<Blob>("Blob").unwrap().writer(Qos::default().reliable()).unwrap();
    for number in 0.. {
        writer.write(&Blob::new(number, 5_000)).unwrap();
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn start() -> Held {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["killed::writes_past_the_kernel", "--exact"]).env(CHILD, "yes").stdout(Stdio::null());
    Held(command.spawn().unwrap())
}

/// Has the kernel the interface again? It gets even what a participant would have got.
fn is_the_kernels(pair: &Pair) {
    pair.enter(End::A);
    let near = UdpSocket::bind((std::net::Ipv4Addr::from(End::A.ipv4()), 7_411)).unwrap();
    pair.enter(End::B);
    let far = UdpSocket::bind((std::net::Ipv4Addr::from(End::B.ipv4()), 0)).unwrap();
    far.send_to(b"RTPS and so on", near.local_addr().unwrap()).unwrap();
    near.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(near.recv(&mut [0; 100]).unwrap(), 14);
}

#[test]
fn a_process_that_is_killed() {
    with_pair("a_process_that_is_killed", ["", ""], |pair| {
        let other = participant(pair, End::B, Some(XdpMode::Auto));
        let reader = other.topic::<Blob>("Blob").unwrap().reader(Qos::default().reliable()).unwrap();
        for _ in 0..3 {
            pair.enter(End::A);
            let child = start();
            let before = other.stats().frames.unwrap().datagrams_in;
            await_that("its samples come past the kernel", || {
                drop(reader.take().unwrap());
                other.stats().frames.unwrap().datagrams_in > before + 100
            });
            assert!(pair.has_program(End::A));
            drop(child);
            pair.await_no_program(End::A);
            is_the_kernels(pair);
        }
    });
}

/// How many times one is killed, and how long after its start at most: by then it writes.
const KILLS: u32 = 30;
const LATEST: Duration = Duration::from_millis(150);

#[test]
fn a_process_that_is_killed_at_any_moment() {
    with_pair("a_process_that_is_killed_at_any_moment", ["", ""], |pair| {
        for number in 0..KILLS {
            pair.enter(End::A);
            let child = start();
            // The moment of the kill is what is tried here.
            std::thread::sleep(LATEST * number / (KILLS - 1));
            drop(child);
            pair.await_no_program(End::A);
            is_the_kernels(pair);
        }
        // The queue is free, too.
        pair.enter(End::A);
        let child = start();
        await_that("the last one has a program attached", || pair.has_program(End::A));
        drop(child);
        pair.await_no_program(End::A);
        is_the_kernels(pair);
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

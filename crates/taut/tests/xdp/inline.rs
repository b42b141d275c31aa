//! The inline driver past the kernel's stack: the program's own thread, which calls `run_once`, is all there is.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use taut::{Config, DomainParticipant, Driver, Duration, XdpLayer, XdpMode};
use taut_testbed::{End, Held, LIMIT, Pair, await_that, ip, with_pair};

use crate::{Blob, SIZES, config, qos};

/// How the child below is told where it is, and by which layer.
const CHILD: &str = "TAUT_XDP_INLINE";
const COUNT: usize = SIZES.len() + 500;
/// The number of the sample after which the child ends.
const LAST: u32 = u32::MAX;

fn layer(end: End, layer: XdpLayer, driver: Driver) -> DomainParticipant {
    let ip = config(end, Some(XdpMode::Native));
    let interfaces = if layer == XdpLayer::Bare { Vec::new() } else { ip.interfaces.clone() };
    DomainParticipant::with_config(&Config { interfaces, xdp_layer: layer, driver, ..ip }).unwrap()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// A child of the test below, which sends back what it gets; nothing when it is run alone.
#[test]
fn echoes() {
    let Ok(told) = std::env::var(CHILD) else { return println!("LEFT OUT: it is a child of another test") };
    let before = threads();
    let told = if told == "bare" { XdpLayer::Bare } else { XdpLayer::Ip };
    let participant = layer(End::A, told, Driver::Inline);
    let back = participant.topic::<Blob>("Back").unwrap().writer(qos()).unwrap();
    let reader = participant.topic::<Blob>("There").unwrap().reader(qos()).unwrap();
    // Who writes to it may be known sooner than who is to get it back.
    back.wait_matched(LIMIT).unwrap();
    let mut is_over = false;
    while !is_over || back.wait_for_acknowledgments(Duration::ZERO).is_err() {
        participant.run_once(Duration::from_millis(10)).unwrap();
        for blob in reader.take().unwrap().into_iter().filter_map(|sample| sample.data) {
            is_over |= blob.number == LAST;
            back.write(&blob).unwrap();
        }
    }
    assert_eq!(threads(), before, "no thread was made");
    let frames = participant.stats().frames.unwrap();
    println!("\nended {} {}", frames.datagrams_in, frames.datagrams_out);
}

fn there_and_back(pair: &Pair, told: XdpLayer) {
    pair.enter(End::A);
    let mut command = Command::new(std::env::current_exe().unwrap());
    let word = if told == XdpLayer::Bare { "bare" } else { "ip" };
    command.args(["inline::echoes", "--exact", "--nocapture"]).env(CHILD, word).stdout(Stdio::piped());
    let mut child = Held(command.spawn().unwrap());
    pair.enter(End::B);
    let participant = layer(End::B, told, Driver::Threaded);
    let there = participant.topic::<Blob>("There").unwrap().writer(qos()).unwrap();
    let back = participant.topic::<Blob>("Back").unwrap().reader(qos()).unwrap();
    there.wait_matched(LIMIT).unwrap();
    back.wait_matched(LIMIT).unwrap();
    let take = |count: usize| {
        let mut got = Vec::new();
        while got.len() < count {
            back.wait(LIMIT).unwrap_or_else(|error| panic!("{} of {count}: {error}", got.len()));
            got.extend(back.take().unwrap().into_iter().filter_map(|sample| sample.data));
        }
        got
    };
    await_that("samples go past the kernel both ways", || {
        there.write(&Blob::new(0, 100)).unwrap();
        assert!(take(1) == [Blob::new(0, 100)]);
        let frames = participant.stats().frames.unwrap();
        frames.datagrams_in > 0 && frames.datagrams_out > 0
    });
    let sizes = SIZES.into_iter().chain([64; COUNT - SIZES.len()]);
    let sent: Vec<Blob> = sizes.zip(0..).map(|(len, number)| Blob::new(number, len)).collect();
    sent.iter().for_each(|blob| there.write(blob).unwrap());
    assert!(take(COUNT) == sent, "in order and whole");
    there.write(&Blob::new(LAST, 1)).unwrap();
    take(1);
    let said = BufReader::new(child.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    let ended = said.filter_map(|line| line.strip_prefix("ended ").map(str::to_owned)).last();
    let ended = ended.expect("it has made no thread, and ends");
    assert!(ended.split(' ').all(|count| count.parse::<usize>().unwrap() > COUNT / 10), "{ended}");
    assert!(child.0.wait().unwrap().success());
}

#[test]
fn over_ip() {
    with_pair("inline::over_ip", ["", ""], |pair| there_and_back(pair, XdpLayer::Ip));
}

#[test]
fn without_ip() {
    with_pair("inline::without_ip", ["", ""], |pair| {
        for end in End::BOTH {
            pair.enter(end);
            ip(&format!("addr flush dev {}", end.name()));
        }
        there_and_back(pair, XdpLayer::Bare);
    });
}

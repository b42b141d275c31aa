//! Which system calls a round trip over memif makes for one who polls: none to send or to receive, and a look at the kernel
//! now and then.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::libc;
use nix::unistd::gettid;
use taut::{Config, DomainParticipant, Driver};
use taut_testbed::calls::{OF_MARKS, calls_between_marks, mark};
use taut_testbed::{End, Held, LIMIT, with_pair};

use crate::{Blob, qos};

/// How the child below is told where the other end is.
const CHILD: &str = "TAUT_DPDK_CALLS";
/// Of round trips that are not counted, and those that are.
const WARM_UP: u32 = 1_000;
const ROUNDS: u32 = 1_000;
/// Such rounds are played so often: discovery, which goes by sockets too, falls into some.
const PLAYS: usize = 8;

fn device(number: u32, role: &str, socket: &str) -> Config {
    let dpdk_device = format!("net_memif{number},role={role},socket={socket},socket-abstract=no");
    Config { dpdk_device, report: false, ..Config::default() }
}

/// A child of the test below, which plays on the thread that polls, by a listener; nothing when it is run alone.
#[test]
fn polls() {
    let Ok(socket) = std::env::var(CHILD) else {
        return println!("LEFT OUT: it is a child of another test");
    };
    let config = Config { driver: Driver::Polling, ..device(51, "client", &socket) };
    let participant = DomainParticipant::with_config(&config).unwrap();
    let writer = participant.topic::<Blob>("Ping").unwrap().writer(qos()).unwrap();
    let reader = participant.topic::<Blob>("Pong").unwrap().reader(qos()).unwrap();
    writer.wait_matched(LIMIT).unwrap();
    reader.wait_matched(LIMIT).unwrap();
    let (end, has_ended) = std::sync::mpsc::channel();
    let (mut round, mut begun) = (0, Instant::now());
    let ping = Blob { number: 0, bytes: vec![7; 64] };
    writer.write(&ping).unwrap();
    reader.on_data_available(move |sample| {
        assert_eq!(sample.data.unwrap(), ping);
        round += 1;
        match round {
            1 => {
                println!("\nready {}", gettid());
                std::io::stdin().read_line(&mut String::new()).unwrap();
            }
            WARM_UP.. if (round - WARM_UP).is_multiple_of(ROUNDS) => {
                if round > WARM_UP {
                    let elapsed = begun.elapsed();
                    mark();
                    println!("\nplayed {}", elapsed.as_micros());
                }
                if (round - WARM_UP) / ROUNDS == PLAYS as u32 {
                    return end.send(()).unwrap();
                }
                mark();
                begun = Instant::now();
            }
            _ => {}
        }
        writer.write(&ping).unwrap();
    });
    has_ended.recv_timeout(LIMIT).unwrap();
}

#[test]
fn who_polls_calls_the_kernel_to_look_now_and_then_and_for_nothing_else() {
    with_pair("dpdk: who_polls_calls_the_kernel", ["", ""], |pair| {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("memif.sock").to_string_lossy().into_owned();
        pair.enter(End::B);
        let echo = DomainParticipant::with_config(&device(50, "server", &socket)).unwrap();
        let back = echo.topic::<Blob>("Pong").unwrap().writer(qos()).unwrap();
        let reader = echo.topic::<Blob>("Ping").unwrap().reader(qos()).unwrap();
        reader.on_data_available(move |sample| back.write(&sample.data.unwrap()).unwrap());

        pair.enter(End::A);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["calls::polls", "--exact", "--nocapture"]).env(CHILD, &socket);
        let mut child = Held(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
        let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut says = |word: &str| -> i64 {
            let line = lines.find_map(|line| line.strip_prefix(word).map(str::to_owned)).expect("it says so");
            line.parse().unwrap()
        };
        let mut input = child.0.stdin.take().unwrap();
        let plays = calls_between_marks(says("ready "), PLAYS, || input.write_all(b"\n").unwrap());
        let others = plays.iter().map(|calls| {
            let elapsed_us = says("played ");
            println!("{calls:?} in {elapsed_us} us");
            let looked = calls.get(&libc::SYS_epoll_pwait2).copied().unwrap_or_default();
            // ASKS_KERNEL of the driver.
            assert!(looked as i64 <= elapsed_us / 50 + 1, "{looked} looks in {elapsed_us} us");
            calls.values().sum::<u64>() - looked
        });
        let least = others.min().unwrap();
        assert!(least <= OF_MARKS, "{least} others in {ROUNDS} round trips");
        assert!(child.0.wait().unwrap().success());
    });
}

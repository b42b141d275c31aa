//! A process that is killed leaves the interface as it was.

mod common;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};

use common::station::{PORT, Station, add_port, link};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use taut_testbed::frame::message;
use taut_testbed::{End, Held, LIMIT, with_pair};
use taut_xdp::{AttachMode, Interface, Link, Mode, Program};

/// How the child below is told which program to attach.
const CHILD: &str = "TAUT_XDP_CHILD";

/// A child of the test below, which holds the interface until it is killed; nothing when it is run alone.
#[test]
fn holds_the_interface() {
    let attached = match std::env::var(CHILD).as_deref() {
        Ok("native") => AttachMode::Native,
        Ok(_) => AttachMode::Generic,
        Err(_) => return println!("LEFT OUT: it is a child of the other tests"),
    };
    let program = Program::load(Mode::L3, 1_500).unwrap();
    add_port(&program, End::B);
    let link = Link::attach(program, &Interface::named("xb").unwrap(), Some(attached)).unwrap();
    let mut station = Station::open(&link, 0);
    println!("\nholds");
    loop {
        station.socket.wait(LIMIT).unwrap();
        station.receive();
    }
}

fn start(how: &str) -> Held {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["holds_the_interface", "--exact", "--nocapture"]).env(CHILD, how);
    let mut child = Held(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holds"), "the child holds the interface");
    child
}

fn kill_and_go_on(name: &'static str, attached: AttachMode) {
    with_pair(name, ["", ""], move |pair| {
        let how = if attached == AttachMode::Native { "native" } else { "generic" };
        pair.enter(End::A);
        let sender = UdpSocket::bind((Ipv4Addr::from(End::A.ipv4()), 0)).unwrap();
        for _ in 0..3 {
            pair.enter(End::B);
            let mut child = start(how);
            assert!(pair.has_program(End::B));
            kill(Pid::from_raw(child.0.id() as i32), Signal::SIGKILL).unwrap();
            child.0.wait().unwrap();
            pair.await_no_program(End::B);
            let kernel = UdpSocket::bind((Ipv4Addr::from(End::B.ipv4()), PORT)).unwrap();
            kernel.set_read_timeout(Some(LIMIT)).unwrap();
            sender.send_to(&message(1, 64), (Ipv4Addr::from(End::B.ipv4()), PORT)).unwrap();
            assert_eq!(kernel.recv(&mut [0; 100]).unwrap(), 64);
            // The queue is bound again, and receives.
            let link = link(pair, End::B, Mode::L3, Some(attached));
            let mut station = Station::open(&link, 0);
            sender.send_to(&message(2, 64), (Ipv4Addr::from(End::B.ipv4()), PORT)).unwrap();
            assert_eq!(station.await_frames(1)[0][42..], message(2, 64));
            drop((station, link));
            pair.await_no_program(End::B);
        }
    });
}

#[test]
fn by_sigkill_with_a_native_program() {
    kill_and_go_on("by_sigkill_with_a_native_program", AttachMode::Native);
}

#[test]
fn by_sigkill_with_a_generic_program() {
    kill_and_go_on("by_sigkill_with_a_generic_program", AttachMode::Generic);
}

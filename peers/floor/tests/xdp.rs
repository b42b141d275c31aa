//! AF_XDP between two interfaces: needs root and two network namespaces, made here and gone with the
//! process that holds each. Without root it says that it is left out; with `CI=true` that is a failure.

mod player;

use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use player::{Adapter, LIMIT};

/// A process that is ended with the test.
struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A namespace: its holder waits for its stdin to close, which it does when this process is gone.
fn namespace() -> Held {
    let own = std::fs::read_link("/proc/self/ns/net").expect("Linux");
    let holder = Command::new("unshare").args(["--net", "cat"]).stdin(Stdio::piped()).spawn();
    let holder = Held(holder.expect("unshare is installed"));
    let path = format!("/proc/{}/ns/net", holder.0.id());
    let end = Instant::now() + LIMIT;
    while std::fs::read_link(&path).is_ok_and(|namespace| namespace == own) {
        assert!(Instant::now() < end, "no namespace of its own");
        std::thread::sleep(Duration::from_millis(2));
    }
    holder
}

fn inside(namespace: &Held) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/proc/{}/ns/net", namespace.0.id()));
    command
}

fn ip(namespace: &Held, words: &str) -> String {
    let output = inside(namespace).arg("ip").args(words.split(' ')).output().expect("ip is installed");
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn start(namespace: &Held, role: &str, own: u8, options: &str) -> Adapter {
    let addresses = format!("--interface x{own} --address 10.77.0.{own} --remote 10.77.0.{}", 3 - own);
    // nsenter becomes the program that it is to run.
    let mut command = inside(namespace);
    command.arg(player::program().get_program()).arg(role);
    Adapter::start(command.args(addresses.split(' ')).args(options.split(' ')))
}

fn round_trips(here: &Held, there: &Held, options: &str) {
    let options = format!("{options} --domain 171 --warmup 20 --count 200");
    let mut pong = start(there, "pong", 2, &options);
    pong.event("ready");
    let mut ping = start(here, "ping", 1, &options);
    ping.event("ready");
    ping.say("go");
    ping.event("stop");
    ping.say("go");
    let done = ping.done();
    pong.say("end");
    assert_eq!(pong.done()["corrupt"], 0, "{options}");
    assert_eq!((&done["received"], &done["corrupt"]), (&220.into(), &0.into()), "{options}: {done}");
}

fn stream(here: &Held, there: &Held, options: &str) {
    let options = format!("{options} --domain 172 --warmup 20 --count 500 --burst 50 --interval-ns 1000000");
    let mut sub = start(there, "sub", 2, &options);
    sub.event("ready");
    let mut publisher = start(here, "pub", 1, &options);
    publisher.event("ready");
    publisher.say("go");
    publisher.event("stop");
    publisher.say("go");
    assert_eq!(publisher.done()["refused"], 0);
    sub.say("end");
    let done = sub.done();
    assert_eq!((&done["received"], &done["corrupt"]), (&500.into(), &0.into()), "{options}: {done}");
}

#[test]
fn frames_go_both_ways_and_the_program_goes_with_its_process() {
    if std::fs::metadata("/proc/self").expect("Linux").uid() != 0 {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "it needs root");
        println!("LEFT OUT: it needs root");
        return;
    }
    let (here, there) = (namespace(), namespace());
    ip(&here, &format!("link add x1 type veth peer name x2 netns {}", there.0.id()));
    for (namespace, own) in [(&here, 1), (&there, 2)] {
        ip(namespace, &format!("addr add 10.77.0.{own}/24 dev x{own}"));
        ip(namespace, &format!("link set x{own} up"));
    }
    round_trips(&here, &there, "--transport xdp --size 64");
    round_trips(&here, &there, "--transport xdp-l2 --size 64 --wait spin");
    round_trips(&here, &there, "--transport xdp --size 20000 --type bytes");
    round_trips(&here, &there, "--transport xdp-l2 --size 256 --type complex");
    stream(&here, &there, "--transport xdp --size 1000");

    let has_program = || ip(&there, "link show x2").contains("prog/xdp");
    let pong = start(&there, "pong", 2, "--transport xdp --domain 173");
    pong.event("ready");
    assert!(has_program(), "it is attached natively");
    drop(pong);
    let end = Instant::now() + LIMIT;
    while has_program() {
        assert!(Instant::now() < end, "the program is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
    // The queue is free again.
    round_trips(&here, &there, "--transport xdp --size 64");
}

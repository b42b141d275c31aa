//! DPDK's memif between two processes: needs no privilege and no network.

mod player;

use std::path::PathBuf;

use player::Adapter;

fn start(role: &str, options: &str) -> Adapter {
    Adapter::start(player::program().arg(role).args(options.split_whitespace()))
}

fn socket(domain: u32) -> PathBuf {
    std::env::temp_dir().join(format!("taut-perf-floor-{domain}.memif"))
}

fn round_trips(domain: u32, options: &str) {
    let options = format!("--transport dpdk --domain {domain} {options} --warmup 20 --count 500");
    // Either may be the first.
    let mut ping = start("ping", &options);
    let mut pong = start("pong", &options);
    let wait = if options.contains("--wait spin") { "spin" } else { "poll" };
    assert_eq!(pong.event("ready")["wait"], wait);
    ping.event("ready");
    ping.say("go");
    ping.event("stop");
    ping.say("go");
    let done = ping.done();
    pong.say("end");
    assert_eq!(pong.done()["corrupt"], 0, "{options}");
    assert_eq!((&done["received"], &done["corrupt"]), (&520.into(), &0.into()), "{options}: {done}");
    assert!(!socket(domain).exists());
}

#[test]
fn all_round_trips_come_back() {
    round_trips(181, "--size 64 --wait spin");
    round_trips(182, "--size 20000 --type bytes");
    round_trips(183, "--size 256 --type complex");
}

#[test]
fn a_stream_loses_nothing() {
    let options = "--transport dpdk --domain 184 --size 64 --warmup 20 --count 50000";
    let mut sub = start("sub", options);
    sub.event("ready");
    let mut publisher = start("pub", options);
    publisher.event("ready");
    publisher.say("go");
    publisher.event("stop");
    publisher.say("go");
    assert_eq!(publisher.done()["refused"], 0);
    sub.say("end");
    let done = sub.done();
    assert_eq!((&done["received"], &done["corrupt"]), (&50_000.into(), &0.into()), "{done}");
}

#[test]
fn nothing_is_left_when_the_driver_is_gone() {
    for role in ["pong", "ping"] {
        let mut adapter = start(role, "--transport dpdk --domain 185");
        if role == "pong" {
            adapter.event("ready");
            assert!(socket(185).exists());
        }
        drop(adapter.stdin.take());
        assert_eq!(adapter.code(), Some(3), "{role}");
        assert!(!socket(185).exists());
    }
}

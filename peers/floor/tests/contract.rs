//! Plays `peers/README.md` with the adapter itself: pairs of roles, what is left when one is killed.
//! All traffic is on 127.0.0.1.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Far above what any step takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(30);

/// One process of the adapter. Killed when the test is over.
struct Adapter {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Adapter {
    fn start(role: &str, options: &str) -> Adapter {
        let mut child = Command::new(env!("CARGO_BIN_EXE_perf-peer-floor"))
            .arg(role)
            .args(options.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the adapter starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let Ok(event) = serde_json::from_str(&line) else { break };
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Adapter { child, stdin, lines }
    }

    fn event(&self, expected: &str) -> Value {
        let event = self.lines.recv_timeout(LIMIT).expect("an event in time");
        assert_eq!(event["event"], expected, "{event}");
        event
    }

    fn say(&mut self, word: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        writeln!(stdin, "{word}").expect("the adapter listens");
    }

    /// Its exit code, once it has ended by itself.
    fn code(&mut self) -> Option<i32> {
        let end = Instant::now() + LIMIT;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("still there after {LIMIT:?}");
    }

    fn done(&mut self) -> Value {
        let done = self.event("done");
        assert_eq!(self.code(), Some(0));
        done
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The records of a file of samples.
fn records(path: &std::path::Path) -> Vec<[u64; 3]> {
    let bytes = std::fs::read(path).expect("the file was written");
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    bytes.chunks(24).map(|record| [word(&record[..8]), word(&record[8..16]), word(&record[16..])]).collect()
}

/// A file name of this test's own; removed with the value.
struct Samples(std::path::PathBuf);

impl Samples {
    fn new(name: &str) -> Samples {
        let own = format!("taut-perf-floor-{}-{}", std::process::id(), name.replace(' ', "_"));
        Samples(std::env::temp_dir().join(own))
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// 300 round trips; the times are in order.
fn round_trips(domain: u32, options: &str, stamped: bool) {
    let options = format!("{options} --domain {domain} --warmup 20 --count 300");
    let samples = Samples::new(&options);
    let mut pong = Adapter::start("pong", &options);
    pong.event("ready");
    let mut ping = Adapter::start("ping", &format!("{options} --samples {}", samples.0.display()));
    ping.event("ready");
    ping.say("go");
    ping.event("stop");
    ping.say("go");
    let done = ping.done();
    pong.say("end");
    let answered = pong.done();
    for field in ["sent", "received"] {
        assert_eq!(done[field], 320, "{options}: {done}");
    }
    assert_eq!((&done["corrupt"], &answered["corrupt"]), (&Value::from(0), &Value::from(0)), "{options}");
    assert_eq!(answered["received"], 320, "{options}");
    let records = records(&samples.0);
    assert_eq!(records.len(), 320);
    for [sent_ns, seen_ns, taken_ns] in records {
        assert!(sent_ns > 0 && sent_ns < taken_ns, "{options}");
        assert!(if stamped { sent_ns < seen_ns && seen_ns < taken_ns } else { seen_ns == 0 }, "{options}");
    }
}

#[test]
fn udp_round_trips() {
    round_trips(101, "--transport udp --size 64", true);
    round_trips(101, "--transport udp --size 64 --wait spin", true);
    round_trips(102, "--transport udp --size 200000", true);
    round_trips(103, "--transport udp --size 256 --type complex", false);
    round_trips(104, "--transport udp --size 16 --type plain --period-ns 100000", false);
}

#[test]
fn shm_round_trips() {
    round_trips(111, "--transport shm --size 64", true);
    round_trips(112, "--transport shm --size 65536 --type plain --loan yes", true);
    round_trips(113, "--transport shm --size 1000 --variant eventfd", true);
    round_trips(114, "--transport shm --size 64 --variant cacheline", true);
    round_trips(115, "--transport shm --size 12 --type simple", false);
}

/// 500 samples to so many subscribers, in bursts that no buffer overflows with.
fn stream(domain: u32, subscribers: usize, options: &str) {
    let options = format!(
        "{options} --domain {domain} --remotes {subscribers} --warmup 30 --count 500 --burst 10 --interval-ns 200000"
    );
    let start = |index| Adapter::start("sub", &format!("{options} --index {index}"));
    let mut subs: Vec<Adapter> = (0..subscribers).map(start).collect();
    for sub in &subs {
        sub.event("ready");
    }
    let samples = Samples::new(&options);
    let mut publisher = Adapter::start("pub", &format!("{options} --samples {}", samples.0.display()));
    publisher.event("ready");
    publisher.say("go");
    publisher.event("stop");
    publisher.say("go");
    let done = publisher.done();
    assert_eq!((&done["sent"], &done["refused"]), (&Value::from(500), &Value::from(0)), "{options}");
    assert!(records(&samples.0).iter().all(|[before, _, after]| before < after));
    for sub in &mut subs {
        sub.say("end");
        let done = sub.done();
        assert_eq!(done["received"], 500, "{options}: {done}");
        for field in ["lost", "out_of_order", "duplicates", "corrupt"] {
            assert_eq!(done[field], 0, "{options}: {done}");
        }
    }
}

#[test]
fn udp_streams() {
    stream(121, 1, "--transport udp --size 64");
    stream(122, 3, "--transport udp --size 64 --variant sendmmsg");
    stream(123, 3, "--transport udp --size 64 --variant gso");
    stream(124, 1, "--transport udp --size 150000");
    stream(125, 1, "--transport udp --size 64 --variant sendmmsg --wait spin");
}

#[test]
fn shm_streams() {
    stream(131, 3, "--transport shm --size 64");
    stream(132, 2, "--transport shm --size 64 --variant eventfd");
    stream(133, 1, "--transport shm --size 1048576 --type plain --loan yes");
}

#[test]
fn both_ends_in_one_process() {
    for options in [
        "--transport thread --size 64",
        "--transport thread --size 65536 --type plain --loan yes",
        "--transport intra --size 64",
        "--transport intra --size 64 --variant futex",
        "--transport intra --size 64 --variant eventfd",
        "--transport intra --size 64 --variant cacheline",
        "--transport intra --size 4096 --type plain --loan yes",
    ] {
        let samples = Samples::new(options);
        let given = format!("{options} --warmup 10 --count 200 --samples {}", samples.0.display());
        let mut local = Adapter::start("local", &given);
        local.event("ready");
        local.say("go");
        local.event("stop");
        local.say("go");
        assert_eq!(local.done()["received"], 210, "{options}");
        assert!(records(&samples.0).iter().all(|[sent, seen, taken]| sent < seen && seen <= taken));
    }
}

#[test]
fn a_flood_keeps_its_rate() {
    let options = "--domain 141 --size 1000 --connections 5 --rate-mbit 80";
    let mut sink = Adapter::start("sink", options);
    sink.event("ready");
    let mut flood = Adapter::start("flood", options);
    flood.event("ready");
    let begin = Instant::now();
    flood.say("go");
    std::thread::sleep(Duration::from_millis(300));
    flood.say("end");
    let sent = flood.done();
    let most = begin.elapsed().as_secs_f64() * 10e6 + 200_000.0;
    sink.say("end");
    let received = sink.done();
    let bytes = sent["bytes"].as_f64().expect("a number");
    assert!(bytes > 0.0 && bytes <= most, "{bytes} of {most}");
    assert_eq!(bytes, sent["sent"].as_f64().expect("a number") * 1000.0);
    assert!(received["bytes"].as_f64().expect("a number") > 0.5 * bytes, "{received} of {sent}");
}

#[test]
fn what_it_does_not_have_is_absent() {
    for (role, options) in [
        ("node", ""),
        ("ping", "--transport dpdk"),
        ("ping", "--transport udp --loan yes --type plain"),
        ("ping", "--transport udp --variant futex"),
        ("ping", "--transport shm --variant cacheline --size 65"),
        ("pub", "--transport udp --remotes 47"),
        ("local", "--transport udp"),
    ] {
        let mut adapter = Adapter::start(role, options);
        adapter.event("absent");
        assert_eq!(adapter.code(), Some(0), "{role} {options}");
    }
}

#[test]
fn it_ends_with_its_driver() {
    for (role, options) in [("pong", "--wait spin"), ("sub", "--transport shm"), ("ping", ""), ("flood", "")]
    {
        let mut adapter = Adapter::start(role, &format!("--domain 151 {options}"));
        if role != "ping" {
            adapter.event("ready");
        }
        if role == "flood" {
            adapter.say("go");
        }
        drop(adapter.stdin.take());
        assert_eq!(adapter.code(), Some(3), "{role}");
    }
}

#[test]
fn nothing_is_left_of_a_killed_pair() {
    let options = "--domain 161 --transport shm --size 64 --count 100000000";
    for _ in 0..2 {
        // The second pair takes the same names.
        let pong = Adapter::start("pong", options);
        pong.event("ready");
        let mut ping = Adapter::start("ping", options);
        ping.event("ready");
        ping.say("go");
    }
    let sockets = std::fs::read_to_string("/proc/net/unix").expect("Linux");
    assert!(!sockets.contains("@taut-perf-floor-161-"));
}

//! Plays `peers/README.md` with the adapter itself: pairs of roles, what is left when one is killed.
//! All traffic is on 127.0.0.1.

mod player;

use std::time::{Duration, Instant};

use player::Adapter;
use serde_json::Value;

fn start(role: &str, options: &str) -> Adapter {
    Adapter::start(player::program().arg(role).args(options.split_whitespace()))
}

/// The records of a file of samples.
fn records(path: &std::path::Path) -> Vec<[u64; 3]> {
    let bytes = std::fs::read(path).expect("the file was written");
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    bytes.chunks(24).map(|record| [word(&record[..8]), word(&record[8..16]), word(&record[16..])]).collect()
}

#[test]
fn what_is_linked_for_a_transport_is_told() {
    let told = player::program().arg("info").output().expect("the adapter starts").stdout;
    let info: Value = serde_json::from_slice(&told).expect("a line of JSON");
    let has = |list: &str| info[list].as_array().expect(list).contains(&"dpdk".into());
    assert_eq!(has("built_with"), has("transports"));
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
    let mut pong = start("pong", &options);
    pong.event("ready");
    let mut ping = start("ping", &format!("{options} --samples {}", samples.0.display()));
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
    // Always behind: answers must be taken all the same, else both rings are full for ever.
    round_trips(
        116,
        "--transport shm --size 1048576 --type plain --loan yes --period-ns 1 --wait spin",
        true,
    );
}

/// 500 samples to so many subscribers, in bursts.
fn stream(domain: u32, subscribers: usize, options: &str) {
    stream_of((30, 500), domain, subscribers, options);
}

/// So many to warm up and so many that count, which a subscriber's buffer holds if it is kept from running.
fn stream_of((warmup, count): (u64, u64), domain: u32, subscribers: usize, options: &str) {
    let options = format!(
        "{options} --domain {domain} --remotes {subscribers} --warmup {warmup} --count {count} --burst 10 --interval-ns 200000"
    );
    let files: Vec<Samples> =
        (0..subscribers).map(|index| Samples::new(&format!("{options} sub {index}"))).collect();
    let subscriber = |(index, file): (usize, &Samples)| {
        start("sub", &format!("{options} --index {index} --samples {}", file.0.display()))
    };
    let mut subs: Vec<Adapter> = files.iter().enumerate().map(subscriber).collect();
    for sub in &subs {
        sub.event("ready");
    }
    let samples = Samples::new(&options);
    let mut publisher = start("pub", &format!("{options} --samples {}", samples.0.display()));
    publisher.event("ready");
    publisher.say("go");
    publisher.event("stop");
    publisher.say("go");
    let done = publisher.done();
    assert_eq!((&done["sent"], &done["refused"]), (&Value::from(count), &Value::from(0)), "{options}");
    let writes = records(&samples.0);
    assert!(writes.iter().all(|[before, _, after]| before < after));
    for (sub, file) in subs.iter_mut().zip(&files) {
        sub.say("end");
        let done = sub.done();
        assert_eq!(done["received"], count, "{options}: {done}");
        for field in ["lost", "out_of_order", "duplicates", "corrupt"] {
            assert_eq!(done[field], 0, "{options}: {done}");
        }
        let taken = records(&file.0);
        assert!(taken.iter().map(|[_, seq, _]| *seq).eq(warmup..warmup + count), "{options}: {taken:?}");
        let is_its_write =
            |[sent_ns, seq, taken_ns]: &[u64; 3]| *sent_ns == writes[*seq as usize][0] && sent_ns < taken_ns;
        assert!(taken.iter().all(is_its_write), "{options}: {taken:?}");
    }
}

#[test]
fn udp_streams() {
    stream(121, 1, "--transport udp --size 64");
    stream(122, 3, "--transport udp --size 64 --variant sendmmsg");
    stream(123, 3, "--transport udp --size 64 --variant gso");
    stream_of((10, 50), 124, 1, "--transport udp --size 150000");
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
    for (options, wait) in [
        ("--transport thread --size 64", "block"),
        ("--transport thread --size 65536 --type plain --loan yes", "block"),
        ("--transport intra --size 64", "block"),
        ("--transport intra --size 64 --wait spin", "spin"),
        ("--transport intra --size 8388608", "block"),
        ("--transport intra --size 64 --variant futex", "block"),
        ("--transport intra --size 64 --variant eventfd", "block"),
        ("--transport intra --size 64 --variant cacheline", "spin"),
        ("--transport intra --size 4096 --type plain --loan yes", "block"),
    ] {
        let samples = Samples::new(options);
        let given = format!("{options} --warmup 10 --count 200 --samples {}", samples.0.display());
        let mut local = start("local", &given);
        assert_eq!(local.event("ready")["wait"], wait, "{options}");
        local.say("go");
        local.event("stop");
        local.say("go");
        assert_eq!(local.done()["received"], 210, "{options}");
        assert!(records(&samples.0).iter().all(|[sent, seen, taken]| sent < seen && seen <= taken));
    }
}

/// As long as others encode and decode, however many copies that is.
#[test]
fn copies_end_in_time() {
    const COUNT: usize = 250_000;
    let samples = Samples::new("copies");
    let of = format!("--type plain --size 4096 --warmup 200 --count {COUNT} --duration-ms 50");
    let mut adapter = start("cdr", &format!("{of} --samples {}", samples.0.display()));
    adapter.event("ready");
    adapter.say("go");
    adapter.event("stop");
    adapter.say("go");
    adapter.done();
    let records = records(&samples.0);
    assert!(!records.is_empty() && records.len() < COUNT, "{} batches", records.len());
}

/// Floods for a while. Returns the bytes that were sent, those that were to be sent at most, and those that were received.
fn flood() -> [f64; 3] {
    let options = "--domain 141 --size 1000 --connections 5 --rate-mbit 80";
    let mut sink = start("sink", options);
    sink.event("ready");
    let mut flood = start("flood", options);
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
    assert_eq!(bytes, sent["sent"].as_f64().expect("a number") * 1000.0);
    [bytes, most, received["bytes"].as_f64().expect("a number")]
}

#[test]
fn a_flood_keeps_its_rate() {
    // One that does not run for all of its time sends nothing, and a sink that does not run loses what comes meanwhile.
    let mut seen = Vec::new();
    let is_heard = (0..3).any(|_| {
        let [bytes, most, received] = flood();
        assert!(bytes <= most, "{bytes} of {most}");
        seen.push((bytes, received));
        bytes > 0.0 && received > 0.5 * bytes
    });
    assert!(is_heard, "sent and received: {seen:?}");
}

#[test]
fn what_it_does_not_have_is_absent() {
    for (role, options) in [
        ("node", ""),
        ("ping", "--transport smoke-signals"),
        ("local", "--transport dpdk"),
        ("ping", "--transport udp --loan yes --type plain"),
        ("ping", "--transport udp --variant futex"),
        ("ping", "--transport shm --variant cacheline --size 65"),
        ("pub", "--transport udp --remotes 47"),
        ("pub", "--transport udp --variant gso --period-ns 1000"),
        ("local", "--transport udp"),
    ] {
        let mut adapter = start(role, options);
        adapter.event("absent");
        assert_eq!(adapter.code(), Some(0), "{role} {options}");
    }
}

#[test]
fn it_ends_with_its_driver() {
    for (role, options) in [("pong", "--wait spin"), ("sub", "--transport shm"), ("ping", ""), ("flood", "")]
    {
        let mut adapter = start(role, &format!("--domain 151 {options}"));
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
        let pong = start("pong", options);
        pong.event("ready");
        let mut ping = start("ping", options);
        ping.event("ready");
        ping.say("go");
    }
    let sockets = std::fs::read_to_string("/proc/net/unix").expect("Linux");
    assert!(!sockets.contains("@taut-perf-floor-161-"));
}

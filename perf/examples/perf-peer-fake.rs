//! An adapter over bare UDP in one file, and every way to break the contract that the tests of the driver
//! want to see reported: each is a variant, as `--peers fake:crash`.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::io::{BufRead, ErrorKind, Write};
use std::net::UdpSocket;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// All roles send datagrams of 24 bytes: seq, sent, seen.
type Stamp = [u64; 3];

const INFO: &str = r#"{"peer":"fake","version":"1","transports":["udp","thread"],"roles":["ping","pong","pub","sub","local","cdr","entities","node"],"types":["bytes","simple","complex","plain"],"waits":["waitset"],"variants":["crash","crash-early","crash-idle","refuse","hang","never-ready","lose","reorder","corrupt","absent","failed","garbage","chatter","deaf","loud","exit-1","backwards","pid","sometimes","at-first","older","no-file"],"note":"not a middleware"}"#;

/// How long an answer is awaited that comes. Lower and one is lost where a machine stops for so long; higher and the driver ends a
/// ping whose other side has died before it says so.
const ANSWER: Duration = Duration::from_secs(5);

static ENDED: AtomicBool = AtomicBool::new(false);

struct Fake {
    options: HashMap<String, String>,
    go: Receiver<()>,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let role = words.first().cloned().unwrap_or_default();
    if role == "info" {
        println!("{INFO}");
        return;
    }
    let pairs = words[1..].chunks_exact(2);
    let options: HashMap<String, String> =
        pairs.map(|pair| (pair[0].trim_start_matches("--").to_string(), pair[1].clone())).collect();
    let deaf = options["variant"] == "deaf";
    let (sender, go) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            match line.as_str() {
                "go" => drop(sender.send(())),
                "end" if !deaf => ENDED.store(true, Ordering::SeqCst),
                _ => {}
            }
        }
        if !deaf {
            exit(3);
        }
    });
    let fake = Fake { options, go };
    fake.note(&role);
    fake.greet(&role);
    match role.as_str() {
        "ping" | "local" => fake.ping(&role),
        "pong" => fake.pong(),
        "pub" => fake.publish(),
        "sub" => fake.subscribe(),
        "cdr" => fake.cdr(),
        "entities" => fake.entities(),
        "node" => fake.node(),
        _ => say(r#"{"event":"absent","reason":"no such role"}"#),
    }
    if fake.is("exit-1") {
        eprintln!("teardown went wrong");
        exit(1);
    }
}

impl Fake {
    fn is(&self, variant: &str) -> bool {
        self.options["variant"] == variant
    }

    fn number(&self, name: &str) -> u64 {
        self.options.get(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// Who starts in which role, on which cores: a line of the file that a test has named.
    fn note(&self, role: &str) {
        let Some(file) = std::env::var_os("FAKE_STARTS_FILE") else { return };
        let own = sched_getaffinity(Pid::from_raw(0)).expect("every thread has one");
        let cores: Vec<String> = (0..CpuSet::count())
            .filter(|core| own.is_set(*core).unwrap_or(false))
            .map(|core| core.to_string())
            .collect();
        let mut file = std::fs::File::options().create(true).append(true).open(file).expect("a place");
        let _ = writeln!(file, "{role} {:?} {}", self.options["variant"], cores.join(","));
    }

    /// Does this round fail? Each second one does, or the first one alone, by the file that a test has named.
    fn is_bad_round(&self) -> bool {
        let Some(file) = std::env::var_os("FAKE_STARTS_FILE") else { return false };
        let starts = std::fs::read_to_string(file).unwrap_or_default();
        let ping = format!("ping {:?}", self.options["variant"]);
        let rounds = starts.lines().filter(|line| line.starts_with(&ping)).count();
        self.is("sometimes") && rounds % 2 == 0 || self.is("at-first") && rounds == 1
    }

    /// What goes wrong before `ready`.
    fn greet(&self, role: &str) {
        match self.options["variant"].as_str() {
            "crash-early" => {
                eprintln!("cannot open the device");
                std::process::abort();
            }
            "never-ready" => std::thread::sleep(Duration::from_secs(3_600)),
            _ if role == "ping" && self.is_bad_round() => {
                say(r#"{"event":"failed","reason":"not this time"}"#);
                exit(1);
            }
            "absent" => {
                say(r#"{"event":"absent","reason":"no such path today"}"#);
                exit(0);
            }
            "failed" => {
                say(r#"{"event":"failed","reason":"out of tokens"}"#);
                exit(1);
            }
            "garbage" => say("{\"event\":\"rea"),
            "chatter" => say("Welcome to the fake middleware"),
            "loud" => loop {
                println!("{}", "x".repeat(1_000));
            },
            // For a test to find what it left behind.
            "pid" if role == "pong" => {
                let file = std::env::var("FAKE_PID_FILE").unwrap_or_default();
                drop(std::fs::write(file, std::process::id().to_string()));
            }
            _ => {}
        }
    }

    fn socket(&self, own: u16) -> UdpSocket {
        let port = self.port(own);
        UdpSocket::bind(("127.0.0.1", port)).unwrap_or_else(|error| {
            say(&format!(r#"{{"event":"failed","reason":"port {port}: {error}"}}"#));
            exit(1);
        })
    }

    fn port(&self, offset: u16) -> u16 {
        20_000 + 50 * self.number("domain") as u16 + offset
    }

    fn ready(&self) {
        say(r#"{"event":"ready","wait":"waitset"}"#);
    }

    fn await_go(&self) {
        if self.go.recv().is_err() {
            exit(3);
        }
    }

    fn ping(&self, role: &str) {
        let socket = self.socket(1);
        let to = ("127.0.0.1", self.port(if role == "local" { 1 } else { 2 }));
        self.ready();
        self.await_go();
        let (total, period_ns) = (self.number("warmup") + self.number("count"), self.number("period-ns"));
        let begin_ns = now_ns();
        let mut times: Vec<Stamp> = Vec::new();
        let mut received = 0u64;
        for seq in 0..total {
            if self.is("crash") && seq == 5 {
                eprintln!("assertion failed: seq < 5");
                std::process::abort();
            }
            if self.is("hang") && seq == 5 {
                std::thread::sleep(Duration::from_secs(3_600));
            }
            std::thread::sleep(Duration::from_nanos((begin_ns + seq * period_ns).saturating_sub(now_ns())));
            let sent_ns = now_ns();
            drop(socket.send_to(&bytes([seq, sent_ns, 0]), to));
            let answer = self.answer(&socket, seq);
            received += u64::from(answer.is_some());
            let (seen_ns, taken_ns) = answer.map_or((0, 0), |answer| (answer[2], now_ns()));
            times.push([sent_ns, seen_ns, taken_ns]);
        }
        if self.is("backwards") {
            times.iter_mut().for_each(|record| record.swap(0, 2));
        }
        if self.is("reorder") {
            // The last two answers came the other way round.
            let last = times.len() - 1;
            (times[last - 1][2], times[last][2]) = (times[last][2] + 5_000, times[last][2]);
        }
        say(r#"{"event":"stop"}"#);
        self.await_go();
        self.write_samples(&times);
        let corrupt = u64::from(self.is("corrupt"));
        let allocations = 3 * total;
        let start_ns = if self.is("older") { 0 } else { begin_ns };
        say(&format!(
            r#"{{"event":"done","sent":{total},"received":{received},"corrupt":{corrupt},"allocations":{allocations},"start_ns":{start_ns}}}"#
        ));
    }

    /// The answer to this sample. Of those that get one none is lost, however late the other side runs.
    fn answer(&self, socket: &UdpSocket, seq: u64) -> Option<Stamp> {
        let limit = if self.loses(seq) { Duration::from_millis(20) } else { ANSWER };
        let answers = std::iter::from_fn(|| receive(socket, limit));
        answers.map(|(stamp, _)| stamp).find(|stamp| stamp[0] == seq)
    }

    fn loses(&self, seq: u64) -> bool {
        self.is("lose") && seq.is_multiple_of(10)
    }

    fn pong(&self) {
        let socket = self.socket(2);
        self.ready();
        let mut received = 0;
        while !ENDED.load(Ordering::SeqCst) {
            let Some((mut stamp, from)) = receive(&socket, Duration::from_millis(20)) else { continue };
            received += 1;
            if self.loses(stamp[0]) {
                continue;
            }
            stamp[2] = now_ns();
            drop(socket.send_to(&bytes(stamp), from));
        }
        say(&format!(r#"{{"event":"done","received":{received},"corrupt":0}}"#));
    }

    fn publish(&self) {
        let socket = self.socket(1);
        self.ready();
        if self.is("crash-idle") {
            eprintln!("nobody has asked");
            std::process::abort();
        }
        self.await_go();
        let (warmup, mut times) = (self.number("warmup"), Vec::new());
        let start_ns = now_ns();
        // Paced, so that a bare socket loses nothing.
        let most = if self.number("remotes") == 0 { 5_000 } else { 500 };
        let total = warmup + self.number("count").min(most);
        for seq in 0..total {
            let sent_ns = now_ns();
            // Without a match to await, to the first that comes.
            for subscriber in 0..self.number("remotes").max(1) as u16 {
                drop(socket.send_to(&bytes([seq, sent_ns, 0]), ("127.0.0.1", self.port(2 + subscriber))));
            }
            times.push([sent_ns, 0, now_ns()]);
            std::thread::sleep(Duration::from_micros(100));
        }
        let stop_ns = now_ns();
        say(r#"{"event":"stop"}"#);
        self.await_go();
        self.write_samples(&times);
        let (sent, refused) = (total - warmup, u64::from(self.is("refuse")));
        say(&format!(
            r#"{{"event":"done","sent":{sent},"refused":{refused},"start_ns":{start_ns},"stop_ns":{stop_ns}}}"#
        ));
    }

    fn subscribe(&self) {
        let socket = self.socket(2 + self.number("index") as u16);
        self.ready();
        let (warmup, mut received, mut first_ns, mut last_ns) = (self.number("warmup"), 0, 0, 0);
        let mut times: Vec<Stamp> = Vec::new();
        while !ENDED.load(Ordering::SeqCst) {
            let Some((stamp, _)) = receive(&socket, Duration::from_millis(20)) else { continue };
            if stamp[0] >= warmup && !self.loses(stamp[0]) {
                received += 1;
                last_ns = now_ns();
                first_ns = if received == 1 { last_ns } else { first_ns };
                times.push([stamp[1], if self.is("older") { 0 } else { stamp[0] }, last_ns]);
            }
        }
        if !self.is("no-file") {
            self.write_samples(&times);
        }
        let out_of_order = u64::from(self.is("reorder"));
        let corrupt = u64::from(self.is("corrupt"));
        say(&format!(
            r#"{{"event":"done","received":{received},"lost":0,"out_of_order":{out_of_order},"duplicates":0,"corrupt":{corrupt},"first_ns":{first_ns},"last_ns":{last_ns}}}"#
        ));
    }

    fn cdr(&self) {
        self.ready();
        self.await_go();
        say(r#"{"event":"stop"}"#);
        self.await_go();
        self.write_samples(&[[50_000, 40_000, 0]; 100]);
        say(r#"{"event":"done"}"#);
    }

    fn entities(&self) {
        self.ready();
        let mut kept = Vec::new();
        for (name, count) in [("participant", 1), ("writer", 100), ("reader", 100)] {
            self.await_go();
            kept.push(vec![1u8; count * 20_000]);
            say(&format!(r#"{{"event":"step","name":"{name}","count":{count}}}"#));
        }
        self.await_go();
        say(&format!(r#"{{"event":"done","kept":{}}}"#, kept.len()));
    }

    fn node(&self) {
        self.ready();
        self.await_go();
        let socket = self.socket(1 + self.number("index") as u16);
        drop(socket.send_to(&[0; 100], ("127.0.0.1", self.port(49))));
        say(&format!(r#"{{"event":"matched","ns":{}}}"#, now_ns()));
        while !ENDED.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(2));
        }
        say(r#"{"event":"done"}"#);
    }

    fn write_samples(&self, times: &[Stamp]) {
        let path = &self.options["samples"];
        if !path.is_empty() {
            let all: Vec<u8> = times.iter().flatten().flat_map(|time| time.to_le_bytes()).collect();
            std::fs::write(path, all).expect("the driver's directory is there");
        }
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        exit(3);
    }
}

fn bytes(stamp: Stamp) -> [u8; 24] {
    let mut bytes = [0; 24];
    for (at, word) in stamp.iter().enumerate() {
        bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn receive(socket: &UdpSocket, at_most: Duration) -> Option<(Stamp, std::net::SocketAddr)> {
    let mut buffer = [0; 24];
    socket.set_read_timeout(Some(at_most)).expect("the time is not zero");
    match socket.recv_from(&mut buffer) {
        Ok((24, from)) => {
            let word = |at: usize| u64::from_le_bytes(buffer[at..at + 8].try_into().expect("eight bytes"));
            Some(([word(0), word(8), word(16)], from))
        }
        Ok(_) => None,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
        Err(_) => None,
    }
}

fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has it").num_nanoseconds() as u64
}

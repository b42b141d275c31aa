//! Participants in network namespaces of their own, whose interfaces come, go and change.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod critical;
mod following;
mod multicast;
mod paths;
mod refused;

use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Qos};
use taut_testbed::starts;

/// For what takes milliseconds when nothing else runs on the machine.
const SOON: Duration = Duration::from_secs(10);

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Number {
    value: u32,
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread in a network namespace of its own, which goes with the threads and sockets in it.
struct Host {
    jobs: mpsc::Sender<Job>,
    /// By which its namespace is found.
    thread: i32,
}

impl Host {
    /// With loopback only. `None` without root.
    fn new() -> Option<Host> {
        if !nix::unistd::geteuid().is_root() {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "this test needs root");
            println!("LEFT OUT: it needs root for network namespaces");
            return None;
        }
        let (jobs, queue) = mpsc::channel::<Job>();
        thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
            queue.into_iter().for_each(|job| job());
        });
        let mut host = Host { jobs, thread: 0 };
        host.thread = host.on(|| nix::unistd::gettid().as_raw());
        host.ip("link set lo up");
        Some(host)
    }

    /// Runs `call` in the namespace.
    fn on<R: Send + 'static>(&self, call: impl FnOnce() -> R + Send + 'static) -> R {
        let (tell, told) = mpsc::channel();
        self.jobs.send(Box::new(move || tell.send(call()).unwrap())).expect("the host is there");
        told.recv().expect("no panic there")
    }

    fn ip(&self, arguments: &str) {
        let arguments = arguments.to_owned();
        self.on(move || {
            let status =
                starts(|| Command::new("ip").args(arguments.split_whitespace()).status()).expect("iproute2");
            assert!(status.success(), "ip {arguments}");
        });
    }

    /// A cable to another host, of this name at both ends; the ends have no addresses and are down.
    fn connect(&self, other: &Host, name: &str) {
        self.ip(&format!("link add {name} type veth peer name {name} netns {}", other.thread));
    }

    /// From now on one of so many packets of IPv4 that come by this cable is lost. What one call has sent is cut into
    /// packets before it is on the cable.
    fn lose_one_of(&self, packets: u32, cable: &str) {
        self.ip(&format!("link set {cable} gso_max_segs 1"));
        self.on_ingress(cable, format!("ip protocol udp numgen inc mod {packets} == 0 drop"));
    }

    /// From now on what comes by this cable meets this rule.
    fn on_ingress(&self, cable: &str, rule: String) {
        let hook = "{ type filter hook ingress device";
        self.nft([
            "add table netdev t".to_owned(),
            format!("add chain netdev t in {hook} {cable} priority 0; }}"),
            format!("add rule netdev t in {rule}"),
        ]);
    }

    fn nft(&self, rules: [String; 3]) {
        self.on(move || {
            for rule in rules {
                let status =
                    starts(|| Command::new("nft").args(rule.split_whitespace()).status()).expect("nftables");
                assert!(status.success(), "nft {rule}");
            }
        });
    }

    /// Counts the datagrams of samples that come by this cable: they go to odd ports. RTPS 2.5 §9.6.2.3.
    fn count_samples(&self, cable: &str) {
        self.on_ingress(cable, "ip protocol udp udp dport & 1 == 1 counter".into());
    }

    /// The count; see [`Host::count_samples`].
    fn counted(&self) -> u64 {
        let shown =
            self.on(|| starts(|| Command::new("nft").args(["list", "table", "netdev", "t"]).output()));
        let text = String::from_utf8(shown.expect("nftables").stdout).expect("text");
        let count = text.split("packets ").nth(1).and_then(|rest| rest.split(' ').next());
        count.and_then(|count| count.parse().ok()).expect("a count")
    }

    fn participant(&self, config: &Config) -> DomainParticipant {
        let config = config.clone();
        // In this process they would not need the network.
        self.on(move || {
            DomainParticipant::with_config(&Config { local: false, name: "a host".into(), ..config }).unwrap()
        })
    }
}

/// Two hosts with a cable, both ends with addresses, 10.78.N.1 and 10.78.N.2.
fn two_hosts(cable: &str, network: u8) -> Option<(Host, Host)> {
    let (near, far) = (Host::new()?, Host::new()?);
    near.connect(&far, cable);
    set_up(&near, &far, cable, network);
    Some((near, far))
}

fn set_up(near: &Host, far: &Host, cable: &str, network: u8) {
    for (host, end) in [(near, 1), (far, 2)] {
        host.ip(&format!("addr add 10.78.{network}.{end}/24 dev {cable}"));
        host.ip(&format!("link set {cable} up"));
    }
}

/// A writer on one host and a reader on another. They are not waited for by this thread, which is in neither
/// namespace: participants drive themselves.
struct Stream {
    writer: DataWriter<Number>,
    reader: DataReader<Number>,
    next: u32,
    participants: [DomainParticipant; 2],
    /// Changes of the network that the participants had heard of when they had followed the last one.
    heard: u64,
}

impl Stream {
    fn new(near: &Host, far: &Host, config: &Config) -> Stream {
        let participants = [near.participant(config), far.participant(config)];
        let topics = participants.each_ref().map(|of| of.topic::<Number>("Moving").unwrap());
        let qos = Qos::default().reliable().keep_last(1);
        let writer = topics[0].writer(qos.clone()).unwrap();
        let reader = topics[1].reader(qos).unwrap();
        Stream { writer, reader, next: 0, participants, heard: 0 }
    }

    /// Waits until a participant has heard of a change, and each has followed all that it has heard of.
    fn is_followed(&mut self) {
        let end = Instant::now() + SOON;
        loop {
            let ports = self.participants.each_ref().map(|of| of.stats().port);
            let heard = ports.iter().map(|port| port.changes_heard).sum();
            if heard > self.heard && ports.iter().all(|port| port.changes_heard == port.changes_followed) {
                self.heard = heard;
                return;
            }
            assert!(Instant::now() < end, "nobody follows: {ports:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Writes until a sample arrives that was written from now on. Returns how long that took.
    fn flows(&mut self) -> Duration {
        let (start, first) = (Instant::now(), self.next);
        loop {
            self.writer.write(&Number { value: self.next }).unwrap();
            self.next += 1;
            thread::sleep(Duration::from_millis(1));
            let mut samples = self.reader.take().unwrap().into_iter();
            if samples.any(|sample| sample.data.is_some_and(|data| data.value >= first)) {
                return start.elapsed();
            }
            assert!(start.elapsed() < SOON, "nothing arrives");
        }
    }

    /// The same, after a change of the network that has just been made.
    fn flows_after(&mut self, what: &str) {
        let took = self.flows();
        // They may have come by what is about to be left: the participants look once it has been quiet.
        self.is_followed();
        self.flows();
        println!("{what}: samples arrive after {} ms", took.as_millis());
    }
}

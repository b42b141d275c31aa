//! Participants in network namespaces of their own, whose interfaces come, go and change.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

use std::process::Command;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Qos};

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
            let status = Command::new("ip").args(arguments.split_whitespace()).status().expect("iproute2");
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
        let (cable, hook) = (cable.to_owned(), "{ type filter hook ingress device");
        self.on(move || {
            for rule in [
                "add table netdev t".to_owned(),
                format!("add chain netdev t in {hook} {cable} priority 0; }}"),
                format!("add rule netdev t in {rule}"),
            ] {
                let status = Command::new("nft").args(rule.split_whitespace()).status().expect("nftables");
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
        let shown = self.on(|| Command::new("nft").args(["list", "table", "netdev", "t"]).output());
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

#[test]
fn samples_follow_an_address() {
    let Some((near, far)) = two_hosts("cable", 1) else { return };
    let mut stream = Stream::new(&near, &far, &Config::default());
    stream.flows();
    for (host, who, old, new) in
        [(&far, "reader", 2, 3), (&near, "writer", 1, 4), (&far, "reader", 3, 5), (&near, "writer", 4, 6)]
    {
        host.ip(&format!("addr del 10.78.1.{old}/24 dev cable"));
        host.ip(&format!("addr add 10.78.1.{new}/24 dev cable"));
        stream.flows_after(&format!("another address of the {who}"));
    }
    // To another network: each side sends by its only interface.
    for (host, end) in [(&near, 1), (&far, 2)] {
        host.ip("addr flush dev cable");
        host.ip(&format!("addr add 10.78.9.{end}/24 dev cable"));
    }
    stream.flows_after("another network");
    far.ip("addr del 10.78.9.2/24 dev cable");
    far.ip("addr add 10.78.9.2/24 dev cable");
    stream.flows_after("the same address again");
}

#[test]
fn samples_come_back_with_an_interface() {
    let Some((near, far)) = two_hosts("cable", 2) else { return };
    let mut stream =
        Stream::new(&near, &far, &Config { interfaces: vec!["cable".into()], ..Config::default() });
    stream.flows();
    for host in [&near, &far] {
        host.ip("link set cable down");
        // An interface that is down for a moment makes no difference.
        stream.is_followed();
        host.ip("link set cable up");
        stream.flows_after("down and up");
    }
    near.ip("link del cable");
    stream.is_followed();
    near.connect(&far, "cable");
    set_up(&near, &far, "cable", 2);
    stream.flows_after("pulled out and put in");
    near.ip("link del cable");
    near.connect(&far, "cable");
    set_up(&near, &far, "cable", 3);
    stream.flows_after("put in with other addresses");
}

#[test]
fn an_interface_that_comes_later_is_used() {
    let (Some(near), Some(far)) = (Host::new(), Host::new()) else { return };
    let mut stream = Stream::new(&near, &far, &Config::default());
    near.connect(&far, "first");
    set_up(&near, &far, "first", 4);
    stream.flows_after("the first interface");
    near.connect(&far, "second");
    set_up(&near, &far, "second", 5);
    near.ip("link del first");
    stream.flows_after("the second interface in place of the first");
}

/// As hosts with Docker are, whose bridges all have the same address: what is sent there does not leave the host.
#[test]
fn an_address_that_both_hosts_have_leads_to_neither() {
    let (Some(near), Some(far)) = (Host::new(), Host::new()) else { return };
    for host in [&near, &far] {
        host.ip("link add docker0 type veth peer name nobody");
        host.ip("addr add 172.17.0.1/16 dev docker0");
        host.ip("link set docker0 up");
    }
    near.connect(&far, "cable20");
    set_up(&near, &far, "cable20", 20);
    Stream::new(&near, &far, &Config::default()).flows();
}

#[test]
fn ipv6_alone_carries_samples() {
    let (Some(near), Some(far)) = (Host::new(), Host::new()) else { return };
    near.connect(&far, "cable");
    for (host, end) in [(&near, 1), (&far, 2)] {
        host.ip("link set cable up");
        // For a second or two it is asked whether somebody else has the address.
        host.ip(&format!("addr add fd00:78::{end}/64 dev cable"));
    }
    let mut stream = Stream::new(&near, &far, &Config::default());
    stream.flows_after("addresses that become usable");
    far.ip("addr del fd00:78::2/64 dev cable");
    far.ip("addr add fd00:78::3/64 dev cable nodad");
    stream.flows_after("another address of the reader");
    for (host, end) in [(&near, 1), (&far, 2)] {
        host.ip(&format!("addr add 10.78.6.{end}/24 dev cable"));
    }
    stream.flows_after("IPv4 beside it");
    near.ip("addr flush dev cable scope global");
    near.ip("addr add fd00:78::7/64 dev cable nodad");
    stream.flows_after("IPv6 alone again on one side");
}

#[test]
fn an_address_of_the_link_is_enough() {
    let (Some(near), Some(far)) = (Host::new(), Host::new()) else { return };
    near.connect(&far, "cable");
    for (host, end) in [(&near, 1), (&far, 2)] {
        host.ip("link set cable addrgenmode none");
        host.ip("link set cable up");
        host.ip(&format!("addr add fe80::{end}/64 dev cable nodad"));
    }
    let config = Config { interfaces: vec!["cable".into()], ..Config::default() };
    Stream::new(&near, &far, &config).flows();
    // Found by its address, with the interface that leads there.
    let config = Config {
        multicast: false,
        initial_peers: vec!["[fe80::2%cable]".into(), "fe80::1%cable".into()],
        ..config
    };
    Stream::new(&near, &far, &Config { domain_id: 1, ..config.clone() }).flows();
    let refused = Config { domain_id: 1, interfaces: vec!["lo".into()], ..config };
    let text = near.on(move || DomainParticipant::with_config(&refused).err().map(|error| error.to_string()));
    assert!(text.as_ref().is_some_and(|text| text.contains("set ipv6 to \"on\"")), "{text:?}");
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Picture {
    pixels: Vec<u8>,
}

/// A datagram of 64 kB is 45 packets here: at one lost of 50 few would come through.
#[test]
fn large_samples_survive_lost_packets() {
    let Some((near, far)) = two_hosts("cable", 11) else { return };
    [&near, &far].iter().for_each(|host| host.lose_one_of(50, "cable"));
    let participants = [near.participant(&Config::default()), far.participant(&Config::default())];
    let topics = participants.each_ref().map(|of| of.topic::<Picture>("Pictures").unwrap());
    let qos = Qos::default().reliable().keep_all();
    let writer = topics[0].writer(qos.clone()).unwrap();
    let reader = topics[1].reader(qos).unwrap();
    writer.wait_matched(SOON).unwrap();
    let pictures = [100, 2_000, 300_000, 1_000_000, 1_400, 1_300].map(|len| Picture { pixels: vec![7; len] });
    for picture in &pictures {
        writer.write(picture).unwrap();
    }
    for picture in &pictures {
        reader.wait(SOON).expect("each arrives");
        assert_eq!(reader.take_next().unwrap().unwrap().data.as_ref(), Some(picture));
    }
    let port = participants[0].stats().port;
    assert!(port.bytes_out / port.datagrams_out < 1_472, "no datagram is more than a packet: {port:?}");
    assert!(port.send_calls < port.datagrams_out / 8, "rows of them share a call: {port:?}");
    assert_eq!(port.rows_refused, 0);

    // Nobody tells of a route that becomes narrower; it shows when the kernel refuses a row.
    near.ip("route change 10.78.11.0/24 dev cable proto kernel scope link src 10.78.11.1 mtu 1300");
    for picture in [&pictures[2], &pictures[2], &pictures[3]] {
        writer.write(picture).unwrap();
        reader.wait(SOON).expect("each arrives");
        assert_eq!(reader.take_next().unwrap().unwrap().data.as_ref(), Some(picture));
    }
    let narrow = participants[0].stats().port;
    assert!((1..=20).contains(&narrow.rows_refused), "the first change's, until it is out: {narrow:?}");
    let bytes = narrow.bytes_out - port.bytes_out;
    assert!(bytes / (narrow.datagrams_out - port.datagrams_out) < 1_272 + 100, "{narrow:?}");
}

/// Datagrams that this host has cut into pieces, and pieces that it has made. proc(5), `/proc/net/snmp`.
fn cut(host: &Host) -> (u64, u64) {
    host.on(|| {
        let text = std::fs::read_to_string("/proc/thread-self/net/snmp").expect("counts of IP");
        let [names, values] = text.lines().filter(|line| line.starts_with("Ip:")).collect::<Vec<_>>()[..]
        else {
            panic!("names and values: {text}");
        };
        let of = |wanted| {
            let mut all = names.split_whitespace().zip(values.split_whitespace());
            all.find(|(name, _)| *name == wanted).expect("it is counted").1.parse().expect("a number")
        };
        (of("FragOKs"), of("FragCreates"))
    })
}

/// A thread of another network namespace sees the interfaces of that.
#[test]
fn who_drives_in_another_network_changes_nothing() {
    let Some((near, _far)) = two_hosts("cable", 14) else { return };
    let participant = near.participant(&Config { driver: Driver::Inline, ..Config::default() });
    let counts = |of: &DomainParticipant| (of.stats().port.changes_heard, of.stats().port.changes_followed);
    let drive = |of: &DomainParticipant| of.run_once(taut::Duration::from_millis(1)).unwrap();
    let (heard, followed) = counts(&participant);
    near.ip("addr add 10.78.15.1/24 dev cable");
    let end = Instant::now() + SOON;
    while counts(&participant).0 == heard {
        assert!(Instant::now() < end, "the kernel tells");
        drive(&participant);
    }
    // Longer than changes take to settle.
    let settled = Instant::now() + Duration::from_millis(120);
    while Instant::now() < settled {
        drive(&participant);
    }
    assert_eq!(counts(&participant).1, followed);
    near.on(move || {
        while counts(&participant).1 == followed {
            assert!(Instant::now() < end, "one that is there follows");
            drive(&participant);
        }
    });
}

#[test]
fn datagrams_follow_the_mtu() {
    let Some((near, far)) = two_hosts("cable", 12) else { return };
    // The near end alone is the path of what the writer sends.
    far.ip("link set cable mtu 9000");
    let participants = [near.participant(&Config::default()), far.participant(&Config::default())];
    let topics = participants.each_ref().map(|of| of.topic::<Picture>("Pictures").unwrap());
    let qos = Qos::default().reliable().keep_all();
    let (writer, reader) = (topics[0].writer(qos.clone()).unwrap(), topics[1].reader(qos).unwrap());
    writer.wait_matched(SOON).unwrap();
    let stats = || participants[0].stats().port;
    // Sends so many pictures of this size. Returns how long the datagrams were.
    let send = |count: usize, len: usize| {
        let before = stats();
        for n in 0..count {
            let picture = Picture { pixels: vec![n as u8; len] };
            writer.write(&picture).unwrap();
            reader.wait(SOON).expect("each arrives");
            assert_eq!(reader.take_next().unwrap().unwrap().data, Some(picture));
        }
        let after = stats();
        (after.bytes_out - before.bytes_out) / (after.datagrams_out - before.datagrams_out)
    };
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let end = Instant::now() + SOON;
        while !is_so() {
            assert!(Instant::now() < end, "{what}");
        }
    };
    send(10, 1_300);
    send(10, 30_000);
    assert_eq!(cut(&near), (0, 0));
    near.ip("link set cable mtu 1000");
    let is_whole = || {
        let before = cut(&near);
        send(1, 1_300);
        cut(&near) == before
    };
    until("every datagram is cut", &is_whole);
    let before = cut(&near);
    send(50, 1_300);
    assert_eq!(cut(&near), before, "no datagram is cut");
    near.ip("link set cable mtu 9000");
    until("datagrams stay as small as before", &|| send(1, 30_000) > 4_000);
    let each = send(50, 30_000);
    assert!(each > 4_000, "{each} bytes each");
    assert_eq!((cut(&near), stats().rows_refused), (before, 0));
}

/// The warnings of this process, which has several hosts.
struct Warnings(Mutex<Vec<String>>);

static WARNINGS: Warnings = Warnings(Mutex::new(Vec::new()));

impl Warnings {
    /// Those with this word, from when it is called for the first time.
    fn with(&self, word: &str) -> Vec<String> {
        if log::set_logger(&WARNINGS).is_ok() {
            log::set_max_level(log::LevelFilter::Warn);
        }
        self.0.lock().unwrap().iter().filter(|text| text.contains(word)).cloned().collect()
    }
}

impl log::Log for Warnings {
    fn enabled(&self, metadata: &log::Metadata) -> bool {
        metadata.level() == log::Level::Warn
    }

    fn log(&self, record: &log::Record) {
        if self.enabled(record.metadata()) {
            self.0.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

#[test]
fn an_interface_that_refuses_multicast_is_warned_of() {
    let Some((near, far)) = two_hosts("first13", 13) else { return };
    near.on(|| std::fs::write("/proc/sys/net/ipv4/igmp_max_memberships", "0").expect("a sysctl of the host"));
    assert_eq!(WARNINGS.with("first13"), [""; 0]);
    let config =
        Config { initial_peers: vec!["10.78.13.2".into(), "10.78.14.2".into()], ..Config::default() };
    let mut stream = Stream::new(&near, &far, &config);
    let is_warned_of = |name: &str| {
        let warnings = WARNINGS.with(name);
        let [text] = &warnings[..] else { panic!("one warning: {warnings:?}") };
        assert!(text.contains("no multicast") && text.contains("igmp_max_memberships=20"), "{text}");
    };
    is_warned_of("first13");
    stream.flows();
    near.connect(&far, "second13");
    set_up(&near, &far, "second13", 14);
    stream.flows_after("another interface that refuses");
    let end = Instant::now() + SOON;
    while WARNINGS.with("second13").is_empty() {
        assert!(Instant::now() < end, "the driver says nothing");
        thread::yield_now();
    }
    near.ip("addr add 10.78.13.3/24 dev first13");
    stream.flows_after("another address of the first");
    is_warned_of("first13");
    is_warned_of("second13");
}

/// A writer, and readers that join it, each in a participant of its own.
struct Crowd {
    writer: DataWriter<Number>,
    readers: Vec<DataReader<Number>>,
    next: u32,
    participants: Vec<DomainParticipant>,
}

impl Crowd {
    fn new(near: &Host, config: &Config) -> Crowd {
        let participant = near.participant(config);
        let qos = Qos::default().best_effort().keep_all();
        let writer = participant.topic::<Number>("Crowd").unwrap().writer(qos).unwrap();
        Crowd { writer, readers: Vec::new(), next: 0, participants: vec![participant] }
    }

    /// Readers on this host join until there are so many in all.
    fn join(&mut self, host: &Host, readers: usize) {
        while self.readers.len() < readers {
            let participant = host.participant(&Config::default());
            let qos = Qos::default().best_effort().keep_all();
            self.readers.push(participant.topic::<Number>("Crowd").unwrap().reader(qos).unwrap());
            self.participants.push(participant);
        }
        let end = Instant::now() + SOON;
        while self.writer.publication_matched_status().current_count != readers as u32 {
            assert!(Instant::now() < end, "no match of {readers}");
            thread::yield_now();
        }
        self.readers.iter().for_each(|reader| reader.wait_matched(SOON).unwrap());
    }

    /// Writes so many samples, each once all readers have the one before.
    fn all_receive(&mut self, samples: u32) {
        for _ in 0..samples {
            self.writer.write(&Number { value: self.next }).unwrap();
            for reader in &self.readers {
                reader.wait(SOON).expect("each arrives");
                let sample = reader.take_next().unwrap().unwrap().data;
                assert_eq!(sample, Some(Number { value: self.next }));
                assert!(reader.take_next().unwrap().is_none(), "once");
            }
            self.next += 1;
        }
    }
}

/// Best effort, so that nothing but samples is sent to where they are.
#[test]
fn a_sample_is_one_datagram_for_any_number_of_readers() {
    let Some((near, far)) = two_hosts("cable", 15) else { return };
    far.count_samples("cable");
    let mut crowd = Crowd::new(&near, &Config::default());
    for readers in [1, 2, 8, 32] {
        crowd.join(&far, readers);
        let before = far.counted();
        crowd.all_receive(20);
        assert_eq!(far.counted() - before, 20, "{readers} readers");
    }
}

#[test]
fn samples_leave_by_the_interfaces_of_their_readers() {
    let Some((near, left)) = two_hosts("left", 16) else { return };
    let mut crowd = Crowd::new(&near, &Config::default());
    crowd.join(&left, 2);
    crowd.all_receive(1);
    // Who has come by another interface is found there, and reads nothing.
    let right = Host::new().expect("as the others");
    near.connect(&right, "right");
    set_up(&near, &right, "right", 17);
    let _idle = right.participant(&Config::default());
    let end = Instant::now() + SOON;
    while crowd.participants[0].discovered_participants().len() <= crowd.participants.len() {
        assert!(Instant::now() < end, "nobody is found by the other interface");
        thread::yield_now();
    }
    [(&left, "left"), (&right, "right")].iter().for_each(|(host, cable)| host.count_samples(cable));
    let mut expect = |join: &Host, readers, each: [u64; 2]| {
        crowd.join(join, readers);
        let before = [left.counted(), right.counted()];
        crowd.all_receive(20);
        let after = [left.counted(), right.counted()];
        assert_eq!([after[0] - before[0], after[1] - before[1]], each.map(|of| 20 * of), "{readers} readers");
    };
    expect(&left, 2, [1, 0]);
    expect(&right, 3, [1, 1]);
    expect(&right, 4, [1, 1]);
}

/// By the group they would be sent nothing.
#[test]
fn readers_behind_an_interface_that_refuses_multicast_get_samples_by_themselves() {
    let Some((near, first)) = two_hosts("first18", 18) else { return };
    let limit = |most: &'static str| {
        near.on(move || std::fs::write("/proc/sys/net/ipv4/igmp_max_memberships", most).expect("a sysctl"));
    };
    limit("0");
    let config =
        Config { initial_peers: vec!["10.78.18.2".into(), "10.78.19.2".into()], ..Config::default() };
    let mut crowd = Crowd::new(&near, &config);
    crowd.join(&first, 2);
    crowd.all_receive(20);
    // The first has one from now on, and the second none.
    limit("1");
    let second = Host::new().expect("as the others");
    near.connect(&second, "second18");
    set_up(&near, &second, "second18", 19);
    crowd.join(&second, 4);
    crowd.all_receive(20);
    second.count_samples("second18");
    crowd.all_receive(20);
    assert_eq!(second.counted(), 40, "by unicast");
}

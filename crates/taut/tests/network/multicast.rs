//! Samples go to groups by the interfaces of their readers, and where an interface refuses groups that is told.

use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use taut::{Config, DataReader, DataWriter, DomainParticipant, Qos};

use crate::{Host, Number, SOON, Stream, set_up, two_hosts};

/// The warnings of this process, which has several hosts.
pub struct Warnings(Mutex<Vec<String>>);

pub static WARNINGS: Warnings = Warnings(Mutex::new(Vec::new()));

impl Warnings {
    /// Those with this word, from when it is called for the first time.
    pub fn with(&self, word: &str) -> Vec<String> {
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
    let before = WARNINGS.with("first13").len();
    let _alone = near.participant(&Config::default());
    assert_eq!(WARNINGS.with("first13").len(), before + 1, "who has no peer is told no more");
}

/// Linux carries no multicast of IPv6 on loopback.
#[test]
fn who_can_be_found_by_no_group_is_warned() {
    let Some(host) = Host::new() else { return };
    assert_eq!(WARNINGS.with("lo (::1)"), [""; 0]);
    let config = Config { interfaces: vec!["::1".into()], ..Config::default() };
    let [one, other] = [
        Config { initial_peers: vec!["::1".into()], ..config.clone() },
        Config { multicast: false, ..config.clone() },
    ]
    .map(|config| host.participant(&config));
    assert_eq!(WARNINGS.with("lo (::1)"), [""; 0], "one names a peer, the other wants none");
    drop((one, other));
    let _alone = host.participant(&config);
    let warnings = WARNINGS.with("lo (::1)");
    let [text] = &warnings[..] else { panic!("one warning: {warnings:?}") };
    assert!(text.contains("none of IPv6 on loopback") && text.contains("`peer = [\"::1\"]`"), "{text}");
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

//! Samples past the kernel's stack, between two network namespaces.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod burst;
mod calls;
mod critical;
mod crowd;
mod inline;
mod ipv6;
mod jumbo;
mod killed;
mod leaves;
mod lost;
mod probed;
mod queues;
mod router;
mod vlan;

use std::fs::File;
use std::os::fd::AsRawFd;

use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Qos, XdpLayer, XdpMode};
use taut_testbed::vlan::{count_tags, counted};
use taut_testbed::{End, LIMIT, Pair, await_that, ip, takes_group, with_losses, with_pair};

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Blob {
    number: u32,
    bytes: Vec<u8>,
}

impl Blob {
    fn new(number: u32, len: usize) -> Blob {
        Blob { number, bytes: (0..len).map(|at| (at as u32 ^ number) as u8).collect() }
    }
}

/// From one byte to what takes tens of thousands of frames, and around the length of one frame.
const SIZES: [usize; 9] = [0, 1, 100, 1_380, 1_400, 1_420, 9_000, 70_000, 1 << 20];

fn config(end: End, xdp: Option<XdpMode>) -> Config {
    Config {
        interfaces: vec![end.name().into()],
        // In this process they would not need the network.
        local: false,
        report: false,
        xdp_interface: xdp.map(|_| end.name().to_owned()).unwrap_or_default(),
        xdp_mode: xdp.unwrap_or_default(),
        ..Config::default()
    }
}

fn participant(pair: &Pair, end: End, xdp: Option<XdpMode>) -> DomainParticipant {
    pair.enter(end);
    DomainParticipant::with_config(&config(end, xdp)).unwrap()
}

/// A participant at each end, a writer at the first and a reader at the second.
struct Stream {
    participants: [DomainParticipant; 2],
    writer: DataWriter<Blob>,
    reader: DataReader<Blob>,
    next: u32,
}

fn qos() -> Qos {
    Qos::default().reliable().keep_all().max_blocking_time(LIMIT)
}

impl Stream {
    fn new(participants: [DomainParticipant; 2]) -> Stream {
        let topics = participants.each_ref().map(|of| of.topic::<Blob>("Blob").unwrap());
        let writer = topics[0].writer(qos()).unwrap();
        let reader = topics[1].reader(qos()).unwrap();
        writer.wait_matched(LIMIT).unwrap();
        Stream { participants, writer, reader, next: 0 }
    }

    /// Writes samples of these sizes, and takes all of them.
    fn carries(&mut self, sizes: &[usize]) {
        let sent: Vec<Blob> =
            sizes.iter().zip(self.next..).map(|(len, number)| Blob::new(number, *len)).collect();
        self.next += sent.len() as u32;
        for blob in &sent {
            self.writer.write(blob).unwrap();
        }
        let mut got = Vec::new();
        while got.len() < sent.len() {
            self.reader
                .wait(LIMIT)
                .unwrap_or_else(|error| panic!("{} of {}: {error}", got.len(), sent.len()));
            got.extend(self.reader.take().unwrap().into_iter().filter_map(|sample| sample.data));
        }
        assert!(got == sent, "{} samples, in order and whole", sent.len());
    }

    /// Carries samples until they go past the kernel: it has to find out the other side's address of Ethernet.
    fn is_past_kernel(&mut self, end: usize) {
        await_that("samples go past the kernel", || {
            let before = self.participants[end].stats().frames.unwrap();
            self.carries(&[100]);
            let after = self.participants[end].stats().frames.unwrap();
            if end == 0 {
                after.datagrams_out > before.datagrams_out
            } else {
                after.datagrams_in > before.datagrams_in
            }
        });
    }

    /// Carries samples until the acknowledgments leave past the kernel, too: the reader's side has to find out as well.
    fn answers_go_past_kernel(&mut self) {
        await_that("answers go past the kernel", || {
            self.carries(&[100]);
            self.participants[1].stats().frames.unwrap().datagrams_out > 0
        });
    }
}

/// Samples of all sizes, and many, go past the kernel at both ends, and so do their acknowledgments.
fn both_past_the_kernel(pair: &Pair, mode: XdpMode) {
    let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(mode))));
    stream.is_past_kernel(0);
    stream.is_past_kernel(1);
    stream.answers_go_past_kernel();
    let before = stream.participants.each_ref().map(DomainParticipant::stats);
    stream.carries(&SIZES);
    stream.carries(&[64; 5_000]);
    let after = stream.participants.each_ref().map(DomainParticipant::stats);
    let [sent, received] = [&after[0], &after[1]].map(|stats| stats.frames.unwrap());
    let bytes = SIZES.iter().sum::<usize>() as u64 + 64 * 5_000;
    assert!(sent.bytes_out - before[0].frames.unwrap().bytes_out >= bytes, "{sent:?}");
    assert!(received.bytes_in - before[1].frames.unwrap().bytes_in >= bytes, "{received:?}");
    assert!(sent.datagrams_in > before[0].frames.unwrap().datagrams_in, "the answers: {sent:?}");
    for frames in [sent, received] {
        assert_eq!([frames.malformed, frames.not_ours, frames.damaged, frames.errors], [0; 4], "{frames:?}");
    }
    // What is left for the sockets is discovery.
    let by_kernel = after[1].port.bytes_in - before[1].port.bytes_in;
    assert!(by_kernel < 100_000, "{by_kernel} B");
    drop(stream);
    End::BOTH.into_iter().for_each(|end| pair.await_no_program(end));
}

#[test]
fn native() {
    with_pair("native", ["", ""], |pair| both_past_the_kernel(pair, XdpMode::Native));
}

#[test]
fn generic() {
    with_pair("generic", ["", ""], |pair| both_past_the_kernel(pair, XdpMode::Generic));
}

/// As `ip address add ... label` gives them, and older settings of networks (`iface eth0:1`).
#[test]
fn addresses_with_labels() {
    with_pair("addresses_with_labels", ["", ""], |pair| {
        for end in End::BOTH {
            pair.enter(end);
            let name = end.name();
            ip(&format!("addr flush dev {name}"));
            ip(&format!("addr add 10.88.0.{}/24 dev {name} label {name}:1", end.ipv4()[3]));
        }
        both_past_the_kernel(pair, XdpMode::Native);
    });
}

/// The kernel lists an interface by the first of its names and takes the others, which distributions make of where a card is.
#[test]
fn interfaces_by_their_other_names() {
    with_pair("interfaces_by_their_other_names", ["", ""], |pair| {
        let mut stream = Stream::new(End::BOTH.map(|end| {
            pair.enter(end);
            let other = format!("enp0s{}", end.ipv4()[3]);
            ip(&format!("link property add dev {} altname {other}", end.name()));
            let config = Config { xdp_interface: other, ..config(end, Some(XdpMode::Native)) };
            DomainParticipant::with_config(&config).unwrap()
        }));
        stream.carries(&[100, 9_000]);
        stream.is_past_kernel(1);
    });
}

/// The kernel's routes name the first of an interface to send from.
#[test]
fn the_second_address_of_an_interface() {
    with_pair("the_second_address_of_an_interface", ["", ""], |pair| {
        let mut stream = Stream::new(End::BOTH.map(|end| {
            pair.enter(end);
            let second = format!("10.88.0.{}", 100 + end.ipv4()[3]);
            ip(&format!("addr add {second}/24 dev {}", end.name()));
            let config = Config { interfaces: vec![second], ..config(end, Some(XdpMode::Native)) };
            DomainParticipant::with_config(&config).unwrap()
        }));
        stream.is_past_kernel(0);
        stream.is_past_kernel(1);
        stream.answers_go_past_kernel();
    });
}

/// A participant uses sixteen: that of its frames is among them.
#[test]
fn more_addresses_than_can_be_used() {
    with_pair("more_addresses_than_can_be_used", ["", ""], |pair| {
        pair.enter(End::A);
        (0..20).for_each(|number| ip(&format!("addr add 10.89.{number}.1/24 dev xa")));
        ip("link add late type veth peer name other");
        ip("addr add 10.90.0.1/24 dev late");
        ip("link set late up");
        ip("link set other up");
        let xdp_interface = "late".to_owned();
        let config =
            Config { interfaces: Vec::new(), xdp_interface, ..config(End::A, Some(XdpMode::Native)) };
        let participant = DomainParticipant::with_config(&config).unwrap();
        assert!(participant.stats().xdp.is_some());
        assert!(
            config.network_interfaces().unwrap().iter().any(|own| own.name == "late"),
            "doctor knows it, too"
        );
    });
}

/// Without IP, whatever addresses the interface has.
fn bare_config(end: End, mode: XdpMode) -> Config {
    Config { interfaces: Vec::new(), xdp_layer: XdpLayer::Bare, ..config(end, Some(mode)) }
}

/// Without an address of IP anywhere but on loopback.
fn bare(pair: &Pair, mode: XdpMode) -> Stream {
    Stream::new(End::BOTH.map(|end| {
        pair.enter(end);
        ip(&format!("addr flush dev {}", end.name()));
        DomainParticipant::with_config(&bare_config(end, mode)).unwrap()
    }))
}

fn without_ip(pair: &Pair, mode: XdpMode) {
    let mut stream = bare(pair, mode);
    stream.carries(&SIZES);
    stream.carries(&[64; 5_000]);
    stream.carries(&[64 << 20]);
    for of in &stream.participants {
        let stats = of.stats();
        let frames = stats.frames.unwrap();
        let refused =
            [frames.malformed, frames.not_ours, frames.damaged, frames.errors, frames.dropped_aside];
        assert_eq!(refused, [0; 5], "{frames:?}");
        assert!(frames.datagrams_out > 0 && frames.datagrams_in > 0, "{frames:?}");
        // Each announces itself on its own loopback, too, and hears nobody there but itself.
        assert!(stats.port.bytes_out < 100_000, "{} B by sockets", stats.port.bytes_out);
    }
    drop(stream);
    End::BOTH.into_iter().for_each(|end| pair.await_no_program(end));
}

#[test]
fn without_ip_native() {
    with_pair("without_ip_native", ["", ""], |pair| without_ip(pair, XdpMode::Native));
}

#[test]
fn without_ip_generic() {
    with_pair("without_ip_generic", ["", ""], |pair| without_ip(pair, XdpMode::Generic));
}

/// A card drops them otherwise, before any program sees them.
#[test]
fn without_ip_the_interface_takes_frames_for_groups_as_long_as_the_participant_lives() {
    with_pair("without_ip_groups", ["", ""], |pair| {
        pair.enter(End::A);
        // Sockets would have it take them, too.
        ip("addr flush dev xa");
        assert!(!takes_group("xa"));
        let participant = DomainParticipant::with_config(&bare_config(End::A, XdpMode::Auto)).unwrap();
        assert!(takes_group("xa"));
        drop(participant);
        await_that("it has left the group", || !takes_group("xa"));
        let config = Config { xdp_queues: vec![7], ..bare_config(End::A, XdpMode::Auto) };
        let text = DomainParticipant::with_config(&config).map(drop).unwrap_err().to_string();
        assert!(text.contains("no queue 7"), "{text}");
        await_that("who is refused has left it, too", || !takes_group("xa"));
    });
}

/// netd could not have the two share it.
#[test]
fn a_second_one_without_ip() {
    with_pair("a_second_one_without_ip", ["", ""], |pair| {
        let _stream = bare(pair, XdpMode::Auto);
        let config = bare_config(End::B, XdpMode::Auto);
        let text = DomainParticipant::with_config(&config).map(drop).unwrap_err().to_string();
        assert!(text.contains("another XDP program is attached to xb") && !text.contains("netd"), "{text}");
    });
}

/// Nobody cuts what is longer than a frame.
#[test]
fn without_ip_discovery_may_say_much() {
    with_pair("without_ip_discovery_may_say_much", ["", ""], |pair| {
        let [near, far] = End::BOTH.map(|end| {
            pair.enter(end);
            ip(&format!("addr flush dev {}", end.name()));
            let config = Config { user_data: vec![1; 5_000], ..bare_config(end, XdpMode::Native) };
            DomainParticipant::with_config(&config).unwrap()
        });
        let much = Qos::default().user_data(vec![2; 50_000]);
        let writer = near.topic::<Blob>("Much").unwrap().writer(much.clone()).unwrap();
        let reader = far.topic::<Blob>("Much").unwrap().reader(much).unwrap();
        writer.wait_matched(LIMIT).unwrap();
        reader.wait_matched(LIMIT).unwrap();
    });
}

/// One frame of twenty is lost, in both directions, and of the first more than so many.
fn goes_over_a_bad_cable(stream: &mut Stream, lost: u64) {
    stream.carries(&SIZES);
    stream.carries(&[64; 5_000]);
    stream.carries(&[4 << 20]);
    let [near, far] = stream.participants.each_ref().map(|of| of.stats().frames.unwrap());
    assert!(near.datagrams_out > far.datagrams_in + lost, "some are lost: {near:?} {far:?}");
}

#[test]
fn losses_are_repaired() {
    with_losses("losses_are_repaired", 20, |pair| {
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Native))));
        stream.is_past_kernel(0);
        goes_over_a_bad_cable(&mut stream, 100);
    });
}

#[test]
fn losses_are_repaired_without_ip() {
    with_losses("losses_are_repaired_without_ip", 20, |pair| {
        goes_over_a_bad_cable(&mut bare(pair, XdpMode::Native), 100);
    });
}

fn a_large_sample(pair: &Pair, mode: XdpMode) {
    const LARGE: usize = 64 << 20;
    let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(mode))));
    stream.is_past_kernel(0);
    stream.is_past_kernel(1);
    let frames = |stream: &Stream| stream.participants.each_ref().map(|of| of.stats().frames.unwrap());
    let before = frames(&stream);
    stream.carries(&[LARGE]);
    let after = frames(&stream);
    assert!(after[0].bytes_out - before[0].bytes_out >= LARGE as u64, "{before:?} {after:?}");
    assert!(after[1].bytes_in - before[1].bytes_in >= LARGE as u64, "{before:?} {after:?}");
}

#[test]
fn a_large_sample_native() {
    with_pair("a_large_sample_native", ["", ""], |pair| a_large_sample(pair, XdpMode::Native));
}

#[test]
fn a_large_sample_generic() {
    with_pair("a_large_sample_generic", ["", ""], |pair| a_large_sample(pair, XdpMode::Generic));
}

/// The other side has sockets only.
fn one_side_past_the_kernel(pair: &Pair) {
    let (native, generic) = (Some(XdpMode::Native), Some(XdpMode::Generic));
    // Rows come uncut to a program that is not in the driver.
    for xdp in [[native, None], [None, native], [generic, None], [None, generic]] {
        let [a, b] = [(End::A, xdp[0]), (End::B, xdp[1])].map(|(end, xdp)| participant(pair, end, xdp));
        let mut stream = Stream::new([a, b]);
        stream.is_past_kernel(usize::from(xdp[1].is_some()));
        stream.carries(&SIZES);
        stream.carries(&[64; 5_000]);
    }
}

#[test]
fn either_side_alone() {
    with_pair("either_side_alone", ["", ""], one_side_past_the_kernel);
}

/// Both by the kernel and past it frames with a tag are understood.
#[test]
fn frames_with_a_priority() {
    with_pair("frames_with_a_priority", ["", ""], |pair| {
        let tags = ["vlan id 0 vlan pcp 6", "vlan pcp != 6", "ether type ip udp dport 7411"];
        count_tags(pair, End::B, &tags.map(String::from));
        for other in [None, Some(XdpMode::Native), Some(XdpMode::Generic)] {
            pair.enter(End::A);
            let config = Config { xdp_pcp: Some(6), ..config(End::A, Some(XdpMode::Native)) };
            let near = DomainParticipant::with_config(&config).unwrap();
            let mut stream = Stream::new([near, participant(pair, End::B, other)]);
            stream.is_past_kernel(0);
            let before = counted(pair, End::B);
            stream.carries(&SIZES);
            // What the other end's driver has for XDP the kernel does not count.
            if other.is_none() {
                let now = counted(pair, End::B);
                assert!(now[0] - before[0] > 700, "{now:?} after {before:?}");
                assert_eq!(now[1..], before[1..], "with another priority, or without a tag");
            }
        }
    });
}

#[test]
fn addresses_change() {
    with_pair("addresses_change", ["", ""], |pair| {
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Auto))));
        stream.is_past_kernel(0);
        pair.enter(End::B);
        ip("addr del 10.88.0.2/24 dev xb");
        ip("addr add 10.88.0.9/24 dev xb");
        await_that("samples arrive at the new address", || {
            stream.carries(&[100]);
            stream.participants[1].stats().port.changes_followed > 0
        });
        stream.is_past_kernel(0);
        stream.is_past_kernel(1);
    });
}

fn pulls_the_cable(pair: &Pair, stream: &mut Stream) {
    for end in End::BOTH {
        pair.enter(end);
        ip(&format!("link set {} down", end.name()));
        // They find nobody to go to.
        stream.writer.write(&Blob::new(stream.next, 1_000)).unwrap();
        ip(&format!("link set {} up", end.name()));
        stream.reader.wait(LIMIT).unwrap();
        let got = stream.reader.take().unwrap();
        assert!(got.iter().all(|sample| sample.data.as_ref() == Some(&Blob::new(stream.next, 1_000))));
        stream.next += 1;
        stream.carries(&SIZES);
    }
}

#[test]
fn the_interface_goes_down_and_comes_up() {
    for mode in [XdpMode::Native, XdpMode::Generic] {
        with_pair("the_interface_goes_down_and_comes_up", ["", ""], move |pair| {
            let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(mode))));
            stream.is_past_kernel(0);
            pulls_the_cable(pair, &mut stream);
            stream.is_past_kernel(0);
        });
    }
}

#[test]
fn the_interface_goes_down_and_comes_up_without_ip() {
    for mode in [XdpMode::Native, XdpMode::Generic] {
        with_pair("the_interface_goes_down_and_comes_up_without_ip", ["", ""], move |pair| {
            pulls_the_cable(pair, &mut bare(pair, mode));
        });
    }
}

fn set_mtu(pair: &Pair, mtu: usize) {
    for end in End::BOTH {
        pair.enter(end);
        ip(&format!("link set {} mtu {mtu}", end.name()));
    }
}

#[test]
fn the_network_becomes_narrower() {
    with_pair("the_network_becomes_narrower", ["", ""], |pair| {
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Auto))));
        stream.is_past_kernel(0);
        for mtu in [1_300, 1_500] {
            set_mtu(pair, mtu);
            stream.carries(&SIZES);
        }
        stream.is_past_kernel(0);
    });
}

#[test]
fn the_network_becomes_narrower_without_ip() {
    with_pair("the_network_becomes_narrower_without_ip", ["", ""], |pair| {
        let mut stream = bare(pair, XdpMode::Auto);
        let qos = || Qos::default().best_effort().keep_all();
        let topics = stream.participants.each_ref().map(|of| of.topic::<Blob>("Lost").unwrap());
        let (writer, reader) = (topics[0].writer(qos()).unwrap(), topics[1].reader(qos()).unwrap());
        writer.wait_matched(LIMIT).unwrap();
        for mtu in [1_300, 1_500] {
            set_mtu(pair, mtu);
            // A reliable one that is too long by then stays so.
            await_that("samples are cut so that they fit", || {
                writer.write(&Blob::new(0, 1_400)).unwrap();
                !reader.take().unwrap().is_empty()
            });
            stream.carries(&SIZES);
        }
    });
}

/// The other side is behind an interface without XDP.
#[test]
fn the_path_of_sockets_becomes_wider() {
    with_pair("the_path_of_sockets_becomes_wider", ["", ""], |pair| {
        pair.enter(End::B);
        let there = File::open("/proc/thread-self/ns/net").unwrap();
        pair.enter(End::A);
        let path = format!("/proc/{}/fd/{}", std::process::id(), there.as_raw_fd());
        ip(&format!("link add ya type veth peer name yb netns {path}"));
        let both = [(End::A, "ya"), (End::B, "yb")];
        for (end, name) in both {
            pair.enter(end);
            ip(&format!("addr add 10.89.0.{}/24 dev {name}", end.ipv4()[3]));
            ip(&format!("link set {name} up"));
        }
        let mut stream = Stream::new(both.map(|(end, name)| {
            pair.enter(end);
            let xdp = (end == End::A).then_some(XdpMode::Auto);
            let mut interfaces = vec![name.to_owned()];
            interfaces.extend(xdp.map(|_| end.name().to_owned()));
            DomainParticipant::with_config(&Config { interfaces, ..config(end, xdp) }).unwrap()
        }));
        let mut each = || {
            let before = stream.participants[0].stats().port;
            stream.carries(&[30_000]);
            let after = stream.participants[0].stats();
            assert_eq!(after.frames.unwrap().datagrams_out, 0, "it goes by sockets");
            (after.port.bytes_out - before.bytes_out) / (after.port.datagrams_out - before.datagrams_out)
        };
        assert!(each() < 1_472);
        for (end, name) in both {
            pair.enter(end);
            ip(&format!("link set {name} mtu 9000"));
        }
        await_that("datagrams are as large as the path takes", || each() > 4_000);
    });
}

#[test]
fn what_is_refused_leaves_nothing() {
    with_pair("what_is_refused_leaves_nothing", ["", ""], |pair| {
        pair.enter(End::A);
        let start = |change: fn(&mut Config)| {
            let mut config = config(End::A, Some(XdpMode::Auto));
            change(&mut config);
            DomainParticipant::with_config(&config)
        };
        let refused = |change: fn(&mut Config), words: &str| {
            let text = start(change).map(drop).unwrap_err().to_string();
            assert!(text.contains(words) && !text.contains('\n'), "{text}");
            pair.await_kernels(End::A);
        };
        refused(|config| config.xdp_interface = "none7".into(), "`ip link`");
        refused(|config| config.xdp_interface = "lo".into(), "lo has no address that the participant uses");
        refused(|config| config.xdp_queues = vec![0, 7], "no queue 7");
        ip("link set xa mtu 65535");
        refused(|config| config.xdp_mode = XdpMode::Native, "lower it to 61326 B");
        ip("link set xa mtu 1500");
        let first = start(|_| ()).unwrap();
        let text = start(|_| ()).map(drop).unwrap_err().to_string();
        assert!(text.contains("another XDP program is attached to xa"), "{text}");
        drop(first);
        // A process that another test starts has all files of this one until it runs its own program.
        pair.await_no_program(End::A);
        start(|_| ()).unwrap();
    });
}

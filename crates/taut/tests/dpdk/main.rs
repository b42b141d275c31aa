//! Samples between two processes that have nothing but a device of DPDK in common, and between such a device and sockets.
//!
//! Needs root for two network namespaces. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod calls;
mod critical;
mod start;
mod vlan;

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use taut::{Config, DataReader, DdsType, DomainParticipant, Driver, Qos, XdpLayer, XdpMode};
use taut_testbed::{
    End, Held, LIMIT, Pair, await_that, ip, left_out, threads_of_taut, with_losses, with_pair,
};

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Blob {
    number: u32,
    bytes: Vec<u8>,
}

/// From nothing to what takes tens of thousands of frames, and around the length of one frame.
const SIZES: [usize; 9] = [0, 1, 100, 1_380, 1_400, 1_420, 70_000, 4 << 20, 64 << 20];
const SMALL: usize = 5_000;
const IP: [&str; 2] = ["10.99.0.1/24", "10.99.0.2/24"];
const IPV6: [&str; 2] = ["fd00:99::1/64", "fd00:99::2/64"];
/// Of a device, and of the sockets at the other end of its cable.
const ON_CABLE: [&str; 2] = ["10.88.0.1/24", "10.88.0.2/24"];
const ON_CABLE_V6: [&str; 2] = ["fd00:88::1/64", "fd00:88::2/64"];
const ON_LINK: [&str; 2] = ["fe80::88:1/64", "fe80::88:2/64"];

/// How the child below is told where the other end is, and what its address is.
const CHILD: &str = "TAUT_DPDK_CHILD";
const CHILD_ADDRESS: &str = "TAUT_DPDK_CHILD_ADDRESS";
/// And by whom it is driven, the number in this list.
const CHILD_DRIVEN: &str = "TAUT_DPDK_CHILD_DRIVEN";
const ALL_DRIVEN: [Driven; 3] = [Driven::Threaded, Driven::First, Driven::Inline];

/// Who drives both participants.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Driven {
    Threaded,
    /// A thread for each that polls on a processor of its own, before all threads without a priority.
    First,
    /// Those that write and read.
    Inline,
}

fn participant(role: &str, socket: &str, address: &str, driven: Driven) -> DomainParticipant {
    // Devices of a process have numbers of their own.
    let kind = [!address.is_empty(), address.contains(':')].map(u8::from).iter().sum::<u8>();
    let number = 3 * driven as u8 + kind;
    let dpdk_device = format!("net_memif{number},role={role},socket={socket},socket-abstract=no");
    let dpdk_address = address.to_owned();
    let mut config = Config { dpdk_device, dpdk_address, report: false, ..Config::default() };
    match driven {
        Driven::Threaded => {}
        Driven::First => {
            config.driver = Driver::Polling;
            config.driver_priority = 50;
            config.driver_cpus = vec![usize::from(role == "client")];
        }
        Driven::Inline => config.driver = Driver::Inline,
    }
    DomainParticipant::with_config(&config).unwrap()
}

fn qos() -> Qos {
    Qos::default().reliable().keep_all().max_blocking_time(LIMIT)
}

fn take(reader: &DataReader<Blob>, count: usize) -> Vec<Blob> {
    let mut got = Vec::new();
    while got.len() < count {
        reader.wait(LIMIT).unwrap_or_else(|error| panic!("{} of {count}: {error}", got.len()));
        got.extend(reader.take().unwrap().into_iter().filter_map(|sample| sample.data));
    }
    got
}

/// Fewer and shorter ones where the threads that write them have what those leave that poll before all others, and where
/// one thread at each end writes, reads and looks for frames.
fn all(driven: Driven) -> Vec<Blob> {
    let (longest, small) = match driven {
        Driven::Threaded => (usize::MAX, SMALL),
        Driven::First => (70_000, 100),
        Driven::Inline => (4 << 20, 500),
    };
    let sizes = SIZES.into_iter().filter(|len| *len <= longest).chain([64; SMALL].into_iter().take(small));
    let blob = |(number, len): (usize, usize)| Blob {
        number: number as u32,
        bytes: (0..len).map(|at| (at ^ number) as u8).collect(),
    };
    sizes.enumerate().map(blob).collect()
}

/// A child of the test below, which sends back what it gets; nothing when it is run alone.
#[test]
fn echoes() {
    let Ok(socket) = std::env::var(CHILD) else {
        return println!("LEFT OUT: it is a child of another test");
    };
    let driven = ALL_DRIVEN[std::env::var(CHILD_DRIVEN).unwrap().parse::<usize>().unwrap()];
    let participant = participant("server", &socket, &std::env::var(CHILD_ADDRESS).unwrap(), driven);
    let back = participant.topic::<Blob>("Back").unwrap().writer(qos()).unwrap();
    let reader = participant.topic::<Blob>("There").unwrap().reader(qos()).unwrap();
    println!("\nready");
    let count = all(driven).len();
    if driven != Driven::Inline {
        take(&reader, count).iter().for_each(|blob| back.write(blob).unwrap());
        return back.wait_for_acknowledgments(LIMIT).unwrap();
    }
    let mut taken = 0;
    while taken < count || back.wait_for_acknowledgments(taut::Duration::ZERO).is_err() {
        participant.run_once(taut::Duration::from_millis(10)).unwrap();
        for blob in reader.take().unwrap().into_iter().filter_map(|sample| sample.data) {
            back.write(&blob).unwrap();
            taken += 1;
        }
    }
    assert_eq!(threads_of_taut(), Vec::<String>::new(), "no thread was made");
}

/// Between participants with these addresses on the two ends of a memif.
fn there_and_back(name: &str, addresses: [&'static str; 2], driven: Driven) {
    with_pair(name, ["", ""], move |pair| {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("memif.sock").to_string_lossy().into_owned();
        pair.enter(End::A);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["echoes", "--exact", "--nocapture"])
            .env(CHILD, &socket)
            .env(CHILD_ADDRESS, addresses[0])
            .env(CHILD_DRIVEN, (driven as usize).to_string())
            .stdout(Stdio::piped());
        let mut child = Held(command.spawn().unwrap());
        let mut said = BufReader::new(child.0.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(said.any(|line| line == "ready"), "it ended before");

        pair.enter(End::B);
        let participant = participant("client", &socket, addresses[1], driven);
        let there = participant.topic::<Blob>("There").unwrap().writer(qos()).unwrap();
        let back = participant.topic::<Blob>("Back").unwrap().reader(qos()).unwrap();
        there.wait_matched(LIMIT).unwrap();
        back.wait_matched(LIMIT).unwrap();
        let sent = all(driven);
        sent.iter().for_each(|blob| there.write(blob).unwrap());
        assert!(take(&back, sent.len()) == sent, "in order and whole");
        let frames = participant.stats().frames.unwrap();
        let bytes: usize = sent.iter().map(|blob| blob.bytes.len()).sum();
        assert!(frames.bytes_in as usize >= bytes, "{frames:?}");
        assert_eq!([frames.malformed, frames.damaged, frames.errors, frames.conflicts], [0; 4], "{frames:?}");
        // The other side says twice who it is and which groups it is in, over IPv6 three and whether somebody else is it.
        let most = match addresses[0] {
            "" => 0,
            address if address.contains(':') => 10,
            _ => 4,
        };
        assert!(frames.not_ours <= most, "{frames:?}");
        await_that("the other side ends", || {
            // Whoever acknowledges the last samples.
            if driven == Driven::Inline {
                participant.run_once(taut::Duration::ZERO).unwrap();
            }
            child.0.try_wait().unwrap().is_some()
        });
        assert!(child.0.wait().unwrap().success(), "the other side ends well");
    });
}

/// Looks that find nothing keep nobody from the token: whoever drives does without it.
#[test]
fn a_look_in_vain_takes_no_token() {
    let directory = tempfile::tempdir().unwrap();
    for (number, driver) in [(20, Driver::Threaded), (21, Driver::Polling), (22, Driver::Inline)] {
        let socket = directory.path().join(format!("{number}.sock"));
        let config = Config {
            dpdk_device: format!(
                "net_memif{number},role=server,socket-abstract=no,socket={}",
                socket.display()
            ),
            interfaces: vec!["lo".into()],
            driver,
            report: false,
            ..Config::default()
        };
        let participant = DomainParticipant::with_config(&config).unwrap();
        let before = participant.stats().tokens;
        let end = Instant::now() + Duration::from_millis(300);
        let mut calls = 0;
        while Instant::now() < end {
            match driver {
                Driver::Inline => participant.run_once(taut::Duration::ZERO).unwrap(),
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
            calls += 1;
        }
        let tokens = participant.stats().tokens - before;
        assert!(tokens < 300, "{driver:?}: {tokens} times in 300 ms");
        assert!(driver != Driver::Inline || calls > 10 * tokens, "{tokens} times in {calls} calls");
    }
}

#[test]
fn there_and_back_without_ip() {
    there_and_back("there_and_back_without_ip", ["", ""], Driven::Threaded);
}

/// A thread of DPDK's that has no priority joins the two, and whoever polls before all others rests often enough for it.
#[test]
fn there_and_back_before_all_others() {
    let name = "there_and_back_before_all_others";
    let config = |driver_priority| Config { driver_priority, report: false, ..Config::default() };
    if std::thread::available_parallelism().map_or(1, |count| count.get()) < 2 {
        return left_out(name, "it needs two processors");
    }
    if let Err(error) = DomainParticipant::with_config(&config(50)) {
        return left_out(name, error);
    }
    there_and_back(name, ["", ""], Driven::First);
}

#[test]
fn there_and_back_over_ip() {
    there_and_back("there_and_back_over_ip", IP, Driven::Threaded);
}

#[test]
fn there_and_back_over_ipv6() {
    there_and_back("there_and_back_over_ipv6", IPV6, Driven::Threaded);
}

/// No thread is there but those that write and read, at either end.
#[test]
fn there_and_back_inline() {
    there_and_back("there_and_back_inline", ["", ""], Driven::Inline);
}

#[test]
fn there_and_back_inline_over_ip() {
    there_and_back("there_and_back_inline_over_ip", IP, Driven::Inline);
}

/// Has one end of the cable be a device of DPDK with an address that its kernel does not have, and the other one that of
/// sockets.
fn device_and_sockets(pair: &Pair, dpdk_device: &str, [ours, theirs]: [&str; 2]) -> [DomainParticipant; 2] {
    pair.enter(End::A);
    ip("address flush dev xa");
    if ours.contains(':') {
        pair.enter(End::B);
        ip("-4 address flush dev xb");
        ip(&format!("address add {theirs} dev xb nodad"));
        pair.enter(End::A);
    }
    let device = Config {
        dpdk_device: dpdk_device.into(),
        dpdk_address: ours.into(),
        // In this process they would not need the network.
        local: false,
        report: false,
        ..Config::default()
    };
    let device = DomainParticipant::with_config(&device).unwrap();
    pair.enter(End::B);
    // What one call sends is cut into frames before it is on the cable, as it is by any that is not virtual.
    ip("link set xb gso_max_segs 1");
    let sockets = Config { interfaces: vec!["xb".into()], local: false, report: false, ..Config::default() };
    [device, DomainParticipant::with_config(&sockets).unwrap()]
}

/// Sends samples of all sizes from the one to the other.
fn send(from: &DomainParticipant, to: &DomainParticipant, topic: &str) {
    send_with(from, to, topic, 0);
}

/// The same with a TRANSPORT_PRIORITY.
fn send_with(from: &DomainParticipant, to: &DomainParticipant, topic: &str, priority: i32) {
    let qos = || qos().transport_priority(priority);
    let writer = from.topic::<Blob>(topic).unwrap().writer(qos()).unwrap();
    let reader = to.topic::<Blob>(topic).unwrap().reader(qos()).unwrap();
    writer.wait_matched(LIMIT).unwrap();
    reader.wait_matched(LIMIT).unwrap();
    let blobs = [1, 1_024, 9_000, 65_536, 1 << 20].into_iter().enumerate();
    let sent: Vec<Blob> =
        blobs.map(|(number, len)| Blob { number: number as u32, bytes: vec![number as u8; len] }).collect();
    sent.iter().for_each(|blob| writer.write(blob).unwrap());
    assert!(take(&reader, sent.len()) == sent, "in order and whole");
}

fn peers_on_sockets(name: &str, dpdk_device: &'static str, addresses: [&'static str; 2]) {
    with_pair(name, ["", ""], move |pair| {
        let [device, sockets] = device_and_sockets(pair, dpdk_device, addresses);
        send(&device, &sockets, "There");
        send(&sockets, &device, "Back");
        let frames = device.stats().frames.unwrap();
        assert!(frames.control > 0, "the kernel has asked for our station: {frames:?}");
        assert_eq!([frames.damaged, frames.errors, frames.conflicts], [0; 3], "{frames:?}");
        assert!(frames.bytes_in > 1 << 20 && frames.bytes_out > 1 << 20, "{frames:?}");
    });
}

#[test]
fn peers_on_sockets_need_not_know() {
    peers_on_sockets("peers_on_sockets_need_not_know", "net_af_packet10,iface=xa", ON_CABLE);
}

#[test]
fn peers_on_sockets_of_ipv6_need_not_know() {
    peers_on_sockets("peers_on_sockets_of_ipv6_need_not_know", "net_af_packet20,iface=xa", ON_CABLE_V6);
}

#[test]
fn peers_on_sockets_of_one_link_need_not_know() {
    peers_on_sockets("peers_on_sockets_of_one_link_need_not_know", "net_af_packet21,iface=xa", ON_LINK);
}

/// Drivers say that they take 1,500 bytes, and the kernel drops what its interface does not.
#[test]
fn an_interface_that_takes_less() {
    with_pair("an_interface_that_takes_less", ["mtu 1400", "mtu 1400"], |pair| {
        let [device, sockets] = device_and_sockets(pair, "net_af_packet15,iface=xa", ON_CABLE);
        send(&device, &sockets, "There");
        send(&sockets, &device, "Back");
    });
}

fn a_datagram_in_fragments(
    name: &str,
    device: &'static str,
    addresses: [&'static str; 2],
    ends: [&'static str; 2],
) {
    with_pair(name, ["", ""], move |pair| {
        // Packet sockets put them together by themselves, and cut off what is longer than their frames.
        let [device, _] = device_and_sockets(pair, device, addresses);
        pair.enter(End::B);
        let peer = UdpSocket::bind(ends[1]).unwrap();
        let parts = || device.stats().frames.unwrap().parts;
        let bytes_in = || device.stats().frames.unwrap().bytes_in;
        let before = bytes_in();
        peer.send_to(&[&b"RTPS"[..], &[7; 60_000]].concat(), ends[0]).unwrap();
        await_that("its parts come", || parts() >= 40);
        await_that("it is whole", || bytes_in() >= before + 60_000);
    });
}

#[test]
fn a_datagram_that_a_kernel_cuts_in_fragments_is_heard() {
    let name = "a_datagram_that_a_kernel_cuts_in_fragments_is_heard";
    a_datagram_in_fragments(name, "net_pcap11,iface=xa", ON_CABLE, ["10.88.0.1:7411", "10.88.0.2:0"]);
}

#[test]
fn a_datagram_that_a_kernel_of_ipv6_cuts_in_fragments_is_heard() {
    let name = "a_datagram_that_a_kernel_of_ipv6_cuts_in_fragments_is_heard";
    let ends = ["[fd00:88::1]:7411", "[fd00:88::2]:0"];
    a_datagram_in_fragments(name, "net_pcap22,iface=xa", ON_CABLE_V6, ends);
}

fn peers_on_the_same_host(name: &str, numbers: [u8; 2], addresses: [&'static str; 2]) {
    with_pair(name, ["", ""], move |pair| {
        let device = format!("net_af_packet{},iface=xa", numbers[0]);
        let [device, far] = device_and_sockets(pair, &device, addresses);
        pair.enter(End::A);
        let near = Config { interfaces: vec!["lo".into()], local: false, report: false, ..Config::default() };
        let near = DomainParticipant::with_config(&near).unwrap();
        send(&device, &near, "There");
        send(&near, &device, "Back");
        send(&far, &device, "Far");
        let refused = Config {
            dpdk_device: format!("net_af_packet{},iface=xb", numbers[1]),
            dpdk_address: addresses[1].into(),
            ..Config::default()
        };
        pair.enter(End::B);
        let text =
            DomainParticipant::with_config(&refused).err().map(|error| error.to_string()).unwrap_or_default();
        let (address, _) = addresses[1].split_once('/').unwrap();
        assert!(text.contains(&format!("the kernel has {address}, too")), "{text}");
    });
}

#[test]
fn peers_on_the_same_host_are_met_by_sockets() {
    peers_on_the_same_host("peers_on_the_same_host_are_met_by_sockets", [12, 13], ON_CABLE);
}

#[test]
fn peers_on_the_same_host_are_met_by_sockets_beside_ipv6() {
    peers_on_the_same_host("peers_on_the_same_host_are_met_by_sockets_beside_ipv6", [23, 24], ON_CABLE_V6);
}

/// One frame of twenty is lost, in both directions, by a switch that looks who is in which group.
fn losses(name: &str, device: &'static str, addresses: [&'static str; 2], group: &'static str) {
    with_losses(name, 20, move |pair| {
        let [device, sockets] = device_and_sockets(pair, device, addresses);
        await_that("the switch has heard of the group", || pair.groups(End::A).iter().any(|of| of == group));
        send(&device, &sockets, "There");
        let (sent, come) = (device.stats().frames.unwrap().datagrams_out, sockets.stats().port.datagrams_in);
        assert!(sent > come + 20, "some are lost: {sent} datagrams, {come} have come");
        let before = device.stats().frames.unwrap().bytes_in;
        send(&sockets, &device, "Back");
        let frames = device.stats().frames.unwrap();
        assert!(frames.bytes_in - before > 1 << 20, "{frames:?}");
        assert_eq!([frames.damaged, frames.errors], [0; 2], "{frames:?}");
    });
}

#[test]
fn losses_are_repaired() {
    losses("dpdk: losses_are_repaired", "net_af_packet14,iface=xa", ON_CABLE, "239.255.0.1");
}

#[test]
fn losses_are_repaired_over_ipv6() {
    let group = "ff02::ffff:efff:1";
    losses("dpdk: losses_are_repaired_over_ipv6", "net_af_packet25,iface=xa", ON_CABLE_V6, group);
}

/// The layer without IP is one, whoever moves the frames: a device, and AF_XDP at the other end.
fn without_ip_by_xdp(pair: &Pair, number: u32, xdp_mode: XdpMode) -> [DomainParticipant; 2] {
    let base = || Config { local: false, report: false, ..Config::default() };
    pair.enter(End::A);
    ip("address flush dev xa");
    let device = Config { dpdk_device: format!("net_af_packet{number},iface=xa"), ..base() };
    let device = DomainParticipant::with_config(&device).unwrap();
    pair.enter(End::B);
    ip("address flush dev xb");
    let xdp = Config { xdp_interface: "xb".into(), xdp_layer: XdpLayer::Bare, xdp_mode, ..base() };
    let xdp = DomainParticipant::with_config(&xdp).unwrap();
    send(&device, &xdp, "There");
    send(&xdp, &device, "Back");
    for of in [&device, &xdp] {
        let frames = of.stats().frames.unwrap();
        assert!(frames.bytes_in > 1 << 20 && frames.bytes_out > 1 << 20, "{frames:?}");
        // What the kernels say to each other comes by a packet socket, too, and is not ours.
        assert_eq!([frames.malformed, frames.damaged, frames.errors], [0; 3], "{frames:?}");
    }
    [device, xdp]
}

#[test]
fn peers_without_ip_may_have_it_by_xdp() {
    with_pair("peers_without_ip_may_have_it_by_xdp", ["", ""], |pair| {
        for (number, xdp_mode) in [(15, XdpMode::Native), (16, XdpMode::Generic)] {
            without_ip_by_xdp(pair, number, xdp_mode);
        }
    });
}

/// One frame of twenty is lost, in both directions.
#[test]
fn losses_are_repaired_without_ip() {
    with_losses("dpdk: losses_are_repaired_without_ip", 20, |pair| {
        let ends = without_ip_by_xdp(pair, 26, XdpMode::Native);
        let [device, xdp] = ends.map(|of| of.stats().frames.unwrap());
        for (sent, come) in [(device, xdp), (xdp, device)] {
            assert!(sent.datagrams_out > come.datagrams_in + 20, "some are lost: {sent:?}, {come:?}");
        }
    });
}

/// It could not move frames that samples are lent from, whatever its arguments, and AF_XDP is there without it.
#[test]
fn the_driver_of_dpdk_over_af_xdp_is_refused() {
    with_pair("the_driver_of_dpdk_over_af_xdp_is_refused", ["", ""], |pair| {
        pair.enter(End::A);
        for arguments in ["", ",force_copy=1", ",start_queue=0,queue_count=1,shared_umem=0,busy_budget=0"] {
            let config =
                Config { dpdk_device: format!("net_af_xdp17,iface=xa{arguments}"), ..Config::default() };
            let text = DomainParticipant::with_config(&config).map(drop).unwrap_err().to_string();
            assert!(text.contains("use AF_XDP without DPDK (`xdp_interface`)"), "{text}");
            assert!(!text.contains('\n'), "{text}");
            pair.await_no_program(End::A);
        }
        // What the sentence says to do, in the same place.
        let xdp = Config { xdp_interface: "xa".into(), xdp_mode: XdpMode::Native, ..Config::default() };
        let xdp = DomainParticipant::with_config(&xdp).unwrap();
        assert!(xdp.stats().xdp.is_some() && pair.has_program(End::A));
        drop(xdp);
        pair.await_no_program(End::A);
    });
}

//! The address of a participant leaves its interface: what comes there then is whose the address is.

use std::fs::File;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns, unshare};
use taut::XdpMode;
use taut_testbed::{End, LIMIT, Pair, await_that, ip, with_pair};

use crate::ipv6::has_ipv6_alone;
use crate::{SIZES, Stream, participant};

/// Where samples of the first participant of a domain 0 come.
const PORT: u16 = 7_411;
/// More than the second that passes until an interface that was lost is tried for again, whatever the kernel tells of it.
const WHILE_IT_IS_TRIED: Duration = Duration::from_secs(2);

/// Where the ends are reached, with the length of their network.
struct Network {
    own: IpAddr,
    far: IpAddr,
    len: u8,
}

impl Network {
    fn of_ipv4() -> Network {
        Network { own: End::A.ipv4().into(), far: End::B.ipv4().into(), len: 24 }
    }

    fn of_ipv6() -> Network {
        let [own, far] = ["fd00:88::1", "fd00:88::2"].map(|address| address.parse().unwrap());
        Network { own, far, len: 64 }
    }
}

/// Two participants, the second of which is at the end that has this station and whose address is to leave.
fn stream(pair: &Pair) -> Stream {
    pair.enter(End::A);
    ip("link set xa address 02:00:00:00:88:01");
    let far = participant(pair, End::B, Some(XdpMode::Native));
    let mut stream = Stream::new([far, participant(pair, End::A, Some(XdpMode::Native))]);
    stream.is_past_kernel(0);
    stream.is_past_kernel(1);
    stream
}

/// A container behind the first end, `ca` there and `cb` in it, to which the address goes. The thread is in it then.
fn goes_to_a_container(pair: &Pair, Network { own, far, len }: &Network) -> File {
    unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
    let container = File::open("/proc/thread-self/ns/net").expect("the namespace");
    let there = format!("/proc/{}/fd/{}", std::process::id(), container.as_raw_fd());
    let whole = if own.is_ipv4() { 32 } else { 128 };
    pair.enter(End::A);
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
    ip(&format!("addr del {own}/{len} dev xa"));
    ip(&format!("link add ca type veth peer name cb address 02:00:00:00:99:02 netns {there}"));
    ip("link set ca up");
    ip(&format!("route replace {far}/{whole} dev xa"));
    ip(&format!("route add {own}/{whole} dev ca"));
    ip(&format!("neigh replace {own} lladdr 02:00:00:00:99:02 nud permanent dev ca"));
    setns(&container, CloneFlags::CLONE_NEWNET).unwrap();
    ip(&format!("addr add {own}/{whole} dev cb{}", if own.is_ipv4() { "" } else { " nodad" }));
    ip("link set lo up");
    ip("link set cb up");
    container
}

/// The other end finds the address at this station. The thread is there then.
fn is_found_at(pair: &Pair, Network { own, .. }: &Network, mac: &str) {
    pair.enter(End::B);
    ip(&format!("neigh replace {own} lladdr {mac} nud permanent dev xb"));
}

/// What the other end sends to the address that has gone, and the container receives.
struct Probe {
    sender: UdpSocket,
    receiver: UdpSocket,
}

impl Probe {
    /// Until one gets through. The thread is in the container.
    fn gets_through(sender: UdpSocket, Network { own, .. }: &Network) -> Probe {
        let receiver = UdpSocket::bind((*own, PORT)).unwrap();
        let probe = Probe { sender, receiver };
        probe.receiver.set_nonblocking(true).unwrap();
        await_that("what is for the container reaches it", || probe.is_through());
        probe.receiver.set_nonblocking(false).unwrap();
        probe.receiver.set_read_timeout(Some(LIMIT)).unwrap();
        probe
    }

    fn is_through(&self) -> bool {
        self.sender.send_to(b"RTPS and so on", self.receiver.local_addr().unwrap()).unwrap();
        self.receiver.recv(&mut [0; 100]).is_ok_and(|len| len == 14)
    }
}

#[test]
fn an_address_goes_to_a_container_of_the_same_host() {
    with_pair("an_address_goes_to_a_container", ["", ""], |pair| {
        let (mut stream, network) = (stream(pair), Network::of_ipv4());
        is_found_at(pair, &network, "02:00:00:00:88:01");
        let sender = UdpSocket::bind((network.far, 0)).unwrap();
        let _container = goes_to_a_container(pair, &network);
        let probe = Probe::gets_through(sender, &network);

        // Lost, as it has another address of Ethernet, it leaves what comes there to the kernel: it does not come back
        // for an address that this host no longer has.
        pair.enter(End::A);
        ip("link set xa address 02:00:00:00:88:03");
        is_found_at(pair, &network, "02:00:00:00:88:03");
        let is_lost = || stream.participants[1].stats().xdp.is_none();
        await_that("it is lost", is_lost);
        let begun = Instant::now();
        while begun.elapsed() < WHILE_IT_IS_TRIED {
            assert!(is_lost(), "it came back after {:?}", begun.elapsed());
            assert!(probe.is_through(), "after {:?}", begun.elapsed());
        }

        pair.enter(End::A);
        ip("route del 10.88.0.1/32 dev ca");
        ip("addr add 10.88.0.1/24 dev xa");
        stream.is_past_kernel(1);
        stream.carries(&SIZES);
        stream.is_past_kernel(1);
    });
}

/// The kernel still asks whether another host has the next one, so there is none that the sockets could use instead.
#[test]
fn an_address_goes_before_the_next_one_is_ready() {
    with_pair("an_address_goes_before_the_next_one_is_ready", ["", ""], |pair| {
        has_ipv6_alone(pair);
        let (stream, network) = (stream(pair), Network::of_ipv6());
        is_found_at(pair, &network, "02:00:00:00:88:01");
        let sender = UdpSocket::bind((network.far, 0)).unwrap();
        pair.enter(End::A);
        // It asks once in a second.
        std::fs::write("/proc/sys/net/ipv6/conf/xa/dad_transmits", "1000").unwrap();
        ip("addr add fd00:88::9/64 dev xa");
        let _container = goes_to_a_container(pair, &network);
        Probe::gets_through(sender, &network);
        assert!(stream.participants[1].stats().xdp.is_some(), "nothing else has left the interface");
    });
}

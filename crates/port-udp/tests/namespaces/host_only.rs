//! A port that is told to use loopback only is reached by nobody outside of the host, whatever addresses loopback has.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::mpsc;

use nix::sys::socket::{SockaddrStorage, getsockname};
use taut_base::Locator;
use taut_port::{Port, Traffic};
use taut_port_udp::{Ipv6, UdpConfig, UdpPort};

use crate::common::{LIMIT, assert_silent, await_frames, open};
use crate::{alone, await_own, await_up, domain_zero, in_namespace, ip, ip_of, join};

/// Ports for what is critical, which no domain has: one for each participant, as a child of another test has that of one that is
/// gone, too, until it is its program.
const CRITICAL: u16 = 7_402;

fn config(interfaces: &[&str], critical: u16) -> UdpConfig {
    let critical_port = std::num::NonZeroU16::new(critical);
    UdpConfig { ipv6: Ipv6::On, critical_port, ..domain_zero(interfaces) }
}

/// The addresses that its unicast sockets are bound to.
fn bound(port: &UdpPort) -> Vec<String> {
    let address = |fd: i32| getsockname::<SockaddrStorage>(fd).unwrap().to_string();
    let ips = port.fds().map(|source| address(source.fd.as_raw_fd()).parse::<SocketAddr>().unwrap().ip());
    ips.filter(|ip| !ip.is_multicast()).map(|ip| ip.to_string()).collect()
}

#[test]
fn sockets_of_a_kind_that_loopback_lacks() {
    alone("sockets_of_a_kind_that_loopback_lacks", || {
        ip("link set lo up");
        // Of what is critical, of samples, of discovery.
        let [v4, v6] = ["127.0.0.1", "::1"];
        assert_eq!(bound(&open(&config(&["::1"], CRITICAL))), [v4, v6].repeat(3));
        assert_eq!(bound(&open(&config(&["lo"], CRITICAL + 1))), [v4, v6].repeat(3));
        let only_v4 = open(&config(&["127.0.0.1"], CRITICAL + 2));
        assert_eq!(bound(&only_v4), [v4; 3]);
        assert!(!only_v4.uses_ipv6());
        drop(only_v4);
        ip("addr del 127.0.0.1/8 dev lo");
        open(&config(&["::1"], CRITICAL + 3));
    });
}

/// The addresses of the near side's cable, and those that loopback has there beside its usual ones: routers may lead to these.
const CABLE: [&str; 2] = ["10.77.20.1", "fd00:77:20::1"];
const BESIDE: [&str; 2] = ["10.9.9.9", "fd00:9::9"];

fn to(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), port)
}

#[test]
fn loopback_with_several_addresses_is_not_reached_from_outside() {
    let name = "loopback_with_several_addresses_is_not_reached_from_outside";
    let (tell_near, far_thread) = mpsc::channel::<i32>();
    let (tell_far, ends) = mpsc::channel::<Vec<SocketAddr>>();
    let far = in_namespace(name, move || {
        tell_near.send(nix::unistd::gettid().as_raw()).unwrap();
        let sockets = ["0.0.0.0:0", "[::]:0"].map(|own| UdpSocket::bind(own).unwrap());
        for ends in ends {
            await_own("fd00:77:20::2");
            for end in ends {
                sockets[usize::from(end.is_ipv6())].send_to(b"from outside", end).unwrap();
            }
        }
    });
    let near = in_namespace(name, move || {
        let far = far_thread.recv().unwrap();
        ip("link set lo up");
        ip(&format!("link add taut1 type veth peer name taut1 netns {far}"));
        for (n, ip) in [(1, &ip as &dyn Fn(&str)), (2, &|command| ip_of(far, command))] {
            ip(&format!("addr add 10.77.20.{n}/24 dev taut1"));
            ip(&format!("addr add fd00:77:20::{n}/64 dev taut1 nodad"));
            ip("link set taut1 up");
        }
        for beside in BESIDE {
            ip(&format!("addr add {beside} dev lo"));
        }
        for (beside, cable) in BESIDE.iter().zip(CABLE) {
            ip_of(far, &format!("route add {beside} via {cable}"));
        }
        await_up("taut1");
        CABLE.into_iter().chain(BESIDE).for_each(await_own);
        // What comes there has come after what was sent before.
        let control = CABLE.map(|own| UdpSocket::bind((own, 0)).unwrap());
        control.iter().for_each(|control| control.set_read_timeout(Some(LIMIT)).unwrap());
        let last = control.each_ref().map(|control| control.local_addr().unwrap());
        for (interfaces, critical) in [(&["lo"][..], CRITICAL), (&BESIDE, CRITICAL + 1)] {
            let mut port = open(&config(interfaces, critical));
            let [metatraffic, user] =
                [port.metatraffic_unicast()[0].port as u16, port.user_unicast()[0].port as u16];
            let ends = [critical, metatraffic, user]
                .into_iter()
                .flat_map(|end| CABLE.into_iter().chain(BESIDE).map(move |own| to(own, end)));
            tell_far.send(ends.chain(last).collect()).unwrap();
            control.iter().for_each(|control| _ = control.recv(&mut [0; 64]).expect("the last one"));
            assert_silent(&mut port, Traffic::User);
            assert_silent(&mut port, Traffic::Meta);
            // By any address of the host, as its participants may have others.
            let ends: Vec<Locator> =
                CABLE.into_iter().chain(BESIDE).map(|own| to(own, user).into()).collect();
            let reached = if interfaces == BESIDE { &ends[2..] } else { &ends[..] };
            port.send(reached, &[b"from this host"]);
            assert_eq!(port.stats().send_errors.total(), 0);
            assert_eq!(await_frames(&mut port, Traffic::User, reached.len()).len(), reached.len());
        }
    });
    [far, near].into_iter().for_each(join);
}

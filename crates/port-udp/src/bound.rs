//! What the unicast sockets of a participant are bound to: every address, or what nobody outside of the host reaches.
//!
//! Owns this choice, which is made once, when the port is opened. Must never take "every address" for one of loopback only: Linux
//! delivers to it by every interface, and to an address of loopback that is none of 127.0.0.0/8 and not ::1, too.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use socket2::{SockFilter, Socket};

use crate::Interface;

/// Of one kind of address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bound {
    pub(crate) address: IpAddr,
    /// The number of the only interface by which datagrams are taken; `None`: any.
    pub(crate) by: Option<u32>,
}

impl Bound {
    fn to(address: impl Into<IpAddr>) -> Bound {
        Bound { address: address.into(), by: None }
    }

    /// Tells the kernel by which interface datagrams are taken, before the socket is bound. The others count as dropped by the
    /// kernel. A filter, and not SO_BINDTODEVICE: by that the host's other addresses of IPv6 could not be sent to.
    pub(crate) fn restrict(&self, socket: &Socket) -> io::Result<()> {
        let Some(by) = self.by else { return Ok(()) };
        let step = |code: u32, jf, k| SockFilter::new(code as u16, 0, jf, k);
        socket.attach_filter(&[
            step(
                libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
                0,
                (libc::SKF_AD_OFF + libc::SKF_AD_IFINDEX) as u32,
            ),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, by),
            step(libc::BPF_RET | libc::BPF_K, 0, u32::MAX),
            step(libc::BPF_RET | libc::BPF_K, 0, 0),
        ])
    }
}

/// The choice for IPv4, and for IPv6 if there are to be sockets of that. `for_ever`: the interfaces stay these.
pub(crate) fn bound(interfaces: &[Interface], uses_v6: bool, for_ever: bool) -> (Bound, Option<Bound>) {
    let host_only = for_ever && interfaces.iter().all(|own| own.loopback);
    let Some(first) = interfaces.first().filter(|_| host_only) else {
        // Peers on this host may send to 127.0.0.1 whatever was announced, and other interfaces may come.
        let v6 = uses_v6.then_some(Bound::to(Ipv6Addr::UNSPECIFIED));
        return (Bound::to(Ipv4Addr::UNSPECIFIED), v6);
    };
    let of = |is_v4: bool| {
        let own: Vec<IpAddr> =
            interfaces.iter().map(|own| own.address).filter(|address| address.is_ipv4() == is_v4).collect();
        on_host(&own, first.index)
    };
    // There are always sockets of IPv4.
    let v4 = of(true).unwrap_or_else(|| match UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)) {
        Ok(_) => Bound::to(Ipv4Addr::LOCALHOST),
        // Loopback has lost it.
        Err(_) => Bound { address: Ipv4Addr::UNSPECIFIED.into(), by: Some(first.index) },
    });
    (v4, of(false).filter(|_| uses_v6))
}

/// For these addresses of loopback, all of one kind.
fn on_host(own: &[IpAddr], loopback: u32) -> Option<Bound> {
    match own {
        [] => None,
        // The kernel takes nothing for it from elsewhere.
        [only] if only.is_loopback() => Some(Bound::to(*only)),
        [only] => Some(Bound { address: *only, by: Some(loopback) }),
        [IpAddr::V4(_), ..] => Some(Bound { address: Ipv4Addr::UNSPECIFIED.into(), by: Some(loopback) }),
        [IpAddr::V6(_), ..] => Some(Bound { address: Ipv6Addr::UNSPECIFIED.into(), by: Some(loopback) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interfaces(of: &[(&str, &str)]) -> Vec<Interface> {
        let interface = |(name, address): &(&str, &str)| Interface {
            name: (*name).into(),
            index: if *name == "lo" { 1 } else { 2 },
            address: address.parse().unwrap(),
            prefix_len: 32,
            loopback: *name == "lo",
            multicast: false,
        };
        of.iter().map(interface).collect()
    }

    #[test]
    fn only_who_is_told_to_use_loopback_alone_is_out_of_reach() {
        let bound = |own: &[(&str, &str)], uses_v6, for_ever| {
            let text = |of: Bound| format!("{} {:?}", of.address, of.by);
            let (v4, v6) = bound(&interfaces(own), uses_v6, for_ever);
            (text(v4), v6.map(text))
        };
        let is = |v4: &str, v6: Option<&str>| (v4.to_owned(), v6.map(str::to_owned));
        let [lo, second, lo_v6] = [("lo", "127.0.0.1"), ("lo", "10.9.9.9"), ("lo", "::1")];
        assert_eq!(bound(&[lo], false, true), is("127.0.0.1 None", None));
        assert_eq!(bound(&[lo], true, true), is("127.0.0.1 None", None), "it has none of IPv6");
        assert_eq!(bound(&[lo_v6], true, true), is("127.0.0.1 None", Some("::1 None")));
        assert_eq!(bound(&[lo, second], true, true), is("0.0.0.0 Some(1)", None));
        assert_eq!(bound(&[second], false, true), is("10.9.9.9 Some(1)", None), "routers may lead to it");
        let two = ("lo", "fd00::9");
        assert_eq!(bound(&[lo, lo_v6, two], true, true), is("127.0.0.1 None", Some(":: Some(1)")));
        let anywhere = is("0.0.0.0 None", Some(":: None"));
        for others in [&[lo, lo_v6, ("eth0", "10.0.0.1")][..], &[("eth0", "fd00::1")], &[]] {
            assert_eq!(bound(others, true, true), anywhere);
        }
        assert_eq!(bound(&[lo, lo_v6], true, false), anywhere, "other interfaces may come");
        assert_eq!(bound(&[lo], false, false), is("0.0.0.0 None", None));
    }
}

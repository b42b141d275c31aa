//! What the kernel knows of the sockets of UDP of this network namespace. sock_diag(7).
//!
//! A socket that was passed is not asked itself: its owner can hold it for as long as it likes, and who asks it for its
//! name waits for that. The kernel's tables are read without it; and they tell who else is at a port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use taut_netlink::{DUMP, IPV4, IPV6, Socket, word};

/// SOCK_DIAG_BY_FAMILY of linux/sock_diag.h.
const BY_FAMILY: u16 = 20;
/// IPPROTO_UDP.
const UDP: u8 = 17;
/// inet_diag_req_v2 of linux/inet_diag.h.
const REQUEST: usize = 56;
/// inet_diag_msg: family, ..., port at 4, address at 8, interface at 40, cookie at 44, user at 64.
const PORT: usize = 4;
const ADDRESS: usize = 8;
const INTERFACE: usize = 40;
const COOKIE: usize = 44;
const USER: usize = 64;

/// Where a socket is, and whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UdpEnd {
    /// Its address and port.
    pub address: SocketAddr,
    /// The index of the interface that it is bound to; 0: none.
    pub interface: u32,
    /// Who has made it.
    pub uid: u32,
}

/// All sockets of UDP that are bound, by their cookies.
pub(crate) struct Sockets(Vec<(u64, UdpEnd)>);

impl Sockets {
    /// Those of now. *Cost*: some system calls, and a copy of 72 B for each socket.
    ///
    /// *Errors*: the kernel cannot tell.
    pub fn read() -> Result<Sockets, String> {
        let refused =
            |errno| format!("sock_diag: {errno}; the kernel needs CONFIG_INET_UDP_DIAG (modprobe udp_diag)");
        let mut kernel = Socket::of_sockets().map_err(refused)?;
        let mut all = Vec::new();
        for family in [IPV4, IPV6] {
            let mut request = [0; REQUEST];
            request[..2].copy_from_slice(&[family, UDP]);
            // In all states.
            request[4..8].fill(0xff);
            let found = kernel.request(BY_FAMILY, DUMP, &request).map_err(refused)?;
            all.extend(found.iter().filter_map(|message| read(message)));
        }
        Ok(Sockets(all))
    }

    /// Where a socket is bound; `None` if it is not.
    pub fn find(&self, cookie: u64) -> Option<UdpEnd> {
        self.0.iter().find(|(of, _)| *of == cookie).map(|(_, end)| *end)
    }

    /// A user whose socket is at the same port as another's (SO_REUSEADDR, SO_REUSEPORT), so that the kernel gives what
    /// comes there to either of them.
    pub fn shared_with(&self, end: &UdpEnd) -> Option<u32> {
        let meets = |other: &UdpEnd| {
            let (ip, other_ip) = (end.address.ip(), other.address.ip());
            let is_same = ip == other_ip || ip.is_unspecified() || other_ip.is_unspecified();
            let is_here = [0, end.interface].contains(&other.interface) || end.interface == 0;
            end.address.port() == other.address.port()
                && ip.is_ipv4() == other_ip.is_ipv4()
                && is_same
                && is_here
        };
        self.0
            .iter()
            .map(|(_, other)| other)
            .find(|other| other.uid != end.uid && meets(other))
            .map(|other| other.uid)
    }
}

fn read(message: &[u8]) -> Option<(u64, UdpEnd)> {
    let port = u16::from_be_bytes(message.get(PORT..)?.first_chunk().copied()?);
    let ip = match *message.first()? {
        IPV4 => IpAddr::from(Ipv4Addr::from(*message.get(ADDRESS..)?.first_chunk::<4>()?)),
        _ => IpAddr::from(Ipv6Addr::from(*message.get(ADDRESS..)?.first_chunk::<16>()?)),
    };
    let cookie = u64::from(word(message, COOKIE)?) | u64::from(word(message, COOKIE + 4)?) << 32;
    let (interface, uid) = (word(message, INTERFACE)?, word(message, USER)?);
    Some((cookie, UdpEnd { address: SocketAddr::new(ip, port), interface, uid }))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use taut_port_xdp::netd::udp_socket;

    use super::*;

    #[test]
    fn a_socket_is_known_as_long_as_it_is_bound() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
            let Ok(socket) = UdpSocket::bind(address) else { continue };
            let cookie = udp_socket(socket.as_fd()).unwrap().cookie;
            let uid = rustix::process::getuid().as_raw();
            let end = UdpEnd { address: socket.local_addr().unwrap(), interface: 0, uid };
            assert_eq!(Sockets::read().unwrap().find(cookie), Some(end));
            drop(socket);
            assert_eq!(Sockets::read().unwrap().find(cookie), None);
        }
    }

    #[test]
    fn who_else_is_at_a_port() {
        let end =
            |address: &str, interface, uid| UdpEnd { address: address.parse().unwrap(), interface, uid };
        let own = end("10.0.0.1:7411", 0, 1);
        let meets = |other| Sockets(vec![(1, own), (2, other)]).shared_with(&own);
        assert_eq!(meets(end("10.0.0.1:7411", 0, 1)), None, "its own user's");
        assert_eq!(meets(end("10.0.0.1:7411", 0, 2)), Some(2));
        assert_eq!(meets(end("0.0.0.0:7411", 3, 2)), Some(2), "at all addresses of some interface");
        assert_eq!(meets(end("10.0.0.2:7411", 0, 2)), None, "another address");
        assert_eq!(meets(end("10.0.0.1:7413", 0, 2)), None, "another port");
        assert_eq!(meets(end("[::]:7411", 0, 2)), None, "another family");
    }
}

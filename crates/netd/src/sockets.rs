//! What the kernel knows of the sockets of UDP of this network namespace. sock_diag(7).
//!
//! A socket that was passed is not asked itself: its owner can hold it for as long as it likes, and who asks it for its
//! name waits for that. The kernel's tables are read without it; and they tell who else is at a port.
//!
//! A list of all is read in parts, and goes on within a slot of the kernel's table by a count: when sockets before that
//! place are closed meanwhile, which anybody can do, others are left out that are there. So nobody is held to have gone
//! for want of being listed: [`find_at`] asks for one end alone, which the kernel answers in one go.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use taut_netlink::{Attributes, DUMP, IPV4, IPV6, Socket, attribute, word};

/// SOCK_DIAG_BY_FAMILY of linux/sock_diag.h.
const BY_FAMILY: u16 = 20;
/// IPPROTO_UDP.
const UDP: u8 = 17;
/// inet_diag_req_v2 of linux/inet_diag.h.
const REQUEST: usize = 56;
/// Where the port is in it.
const WANTED_PORT: usize = 8;
/// INET_DIAG_REQ_BYTECODE, a condition for what is listed, and two that there are: INET_DIAG_BC_S_COND of an address with
/// a port, and INET_DIAG_BC_DEV_COND of an interface.
const CONDITION: u16 = 1;
const IS_AT: u8 = 7;
const IS_BOUND_TO: u8 = 9;
/// Bytes of an answer that was made in one go, with the slot locked: the kernel's first part has room for 3,776 B at least
/// (NLMSG_GOODSIZE of a page), and a socket takes some 140. Higher and a part may have ended before the last of them;
/// lower and an end with fewer sockets of its owner's cannot be told.
const AT_ONCE: usize = 3_072;
/// How often a longer answer is asked for.
const TRIES: usize = 4;
/// How often in a row the list of all is read for a socket that was passed and shows nothing new, and for how long at all.
/// Whoever has sockets closed meanwhile has less than an even chance each time to have one left out; fewer or shorter and
/// it succeeds, more or longer and a socket that is bound to no port costs more.
const READS: usize = 4;
const READS_FOR: Duration = Duration::from_millis(50);
/// inet_diag_msg: family, ..., port at 4, address at 8, interface at 40, cookie at 44, user at 64.
const PORT: usize = 4;
const ADDRESS: usize = 8;
const INTERFACE: usize = 40;
const COOKIE: usize = 44;
const USER: usize = 64;
/// Its bytes, before the attributes; and INET_DIAG_SKV6ONLY of these, which is there of sockets that are not connected.
const FIXED: usize = 72;
const V6_ONLY: u16 = 11;
/// nlmsghdr, before each message.
const HEADER: usize = 16;

/// Where a socket is, and whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UdpEnd {
    /// Its address and port.
    pub address: SocketAddr,
    /// The index of the interface that it is bound to; 0: none.
    pub interface: u32,
    /// Who has made it.
    pub uid: u32,
    /// It is at all addresses of IPv6, and gets what comes by IPv4, too.
    pub is_dual: bool,
}

impl UdpEnd {
    /// Does what comes to this socket by its address and interface come to the other one's, too?
    fn meets(&self, other: &UdpEnd) -> bool {
        // An address of IPv4 may be written as one of IPv6.
        let (ip, other_ip) = (self.address.ip().to_canonical(), other.address.ip().to_canonical());
        let is_any = |end: &UdpEnd| end.address.ip().to_canonical().is_unspecified();
        let is_same = if ip.is_ipv4() == other_ip.is_ipv4() {
            ip == other_ip || is_any(self) || is_any(other)
        } else {
            ip.is_ipv4() && other.is_dual
        };
        let is_here = [0, self.interface].contains(&other.interface) || self.interface == 0;
        self.address.port() == other.address.port() && is_same && is_here
    }
}

/// All sockets of UDP that are bound, by their cookies; some may be left out.
#[derive(Default)]
pub(crate) struct Sockets(BTreeMap<u64, UdpEnd>);

impl Sockets {
    /// Those of now, read twice: what is left out has been so both times. *Cost*: some system calls, and a copy of 72 B
    /// for each socket, twice.
    ///
    /// *Errors*: the kernel cannot tell.
    pub fn read() -> Result<Sockets, String> {
        let mut sockets = Sockets::default();
        sockets.add()?;
        sockets.add()?;
        Ok(sockets)
    }

    /// The same, until these are there or have been looked for often enough.
    pub fn read_with(cookies: &[u64]) -> Result<Sockets, String> {
        let mut sockets = Sockets::read()?;
        sockets.look_for(cookies, Sockets::add)?;
        Ok(sockets)
    }

    /// Adds lists until these are there, or enough of them have shown nothing new.
    fn look_for(
        &mut self,
        cookies: &[u64],
        add: impl Fn(&mut Sockets) -> Result<(), String>,
    ) -> Result<(), String> {
        let (begun, mut in_vain) = (Instant::now(), 0);
        let is_there = |sockets: &Sockets| cookies.iter().all(|cookie| sockets.find(*cookie).is_some());
        while !is_there(self) && in_vain < READS && begun.elapsed() < READS_FOR {
            let known = self.0.len();
            add(self)?;
            in_vain = if self.0.len() == known { in_vain + 1 } else { 0 };
        }
        Ok(())
    }

    fn add(&mut self) -> Result<(), String> {
        let mut kernel = Socket::of_sockets().map_err(refused)?;
        for family in [IPV4, IPV6] {
            let found = kernel.request(BY_FAMILY, DUMP, &request(family, 0)).map_err(refused)?;
            self.0.extend(found.iter().filter_map(|message| read(message)));
        }
        Ok(())
    }

    /// Where a socket is bound; `None` if it is not, or was left out.
    pub fn find(&self, cookie: u64) -> Option<UdpEnd> {
        self.0.get(&cookie).copied()
    }

    /// A user whose socket is at the same port as another's (SO_REUSEADDR, SO_REUSEPORT), so that the kernel gives what
    /// comes there to either of them.
    pub fn shared_with(&self, end: &UdpEnd) -> Option<u32> {
        let is_sharer = |other: &&UdpEnd| other.uid != end.uid && end.meets(other);
        self.0.values().find(is_sharer).map(|other| other.uid)
    }
}

/// Where a socket is bound, if that is this very end still; `None` if it is not there. Whoever else's sockets come and go:
/// none is there but its own user's, and those of who shares the port. With more of these than are told in one go it may
/// be taken to have gone.
///
/// *Errors*: the kernel cannot tell. *Cost*: some system calls.
pub(crate) fn find_at(cookie: u64, end: &UdpEnd) -> Result<Option<UdpEnd>, String> {
    let (family, octets) = match end.address.ip() {
        IpAddr::V4(v4) => (IPV4, v4.octets().to_vec()),
        IpAddr::V6(v6) => (IPV6, v6.octets().to_vec()),
    };
    let request = [request(family, end.address.port()), condition(family, &octets, end.interface)].concat();
    let mut kernel = Socket::of_sockets().map_err(refused)?;
    for _ in 0..TRIES {
        let found = kernel.request(BY_FAMILY, DUMP, &request).map_err(refused)?;
        let there = found.iter().filter_map(|message| read(message)).find(|(of, _)| *of == cookie);
        let bytes: usize = found.iter().map(|message| HEADER + message.len()).sum();
        if there.is_some() || bytes <= AT_ONCE {
            return Ok(there.map(|(_, end)| end));
        }
    }
    Ok(None)
}

/// What asks for the sockets of a family in all states, at one port or at all (0).
fn request(family: u8, port: u16) -> Vec<u8> {
    let mut request = vec![0; REQUEST];
    request[..2].copy_from_slice(&[family, UDP]);
    request[4..8].fill(0xff);
    request[WANTED_PORT..WANTED_PORT + 2].copy_from_slice(&port.to_be_bytes());
    request
}

/// The attribute that asks for those alone that are at this address, and bound to this interface or to none (0).
fn condition(family: u8, address: &[u8], interface: u32) -> Vec<u8> {
    let (first, second) = (12 + address.len() as u8, 8_u8);
    // inet_diag_bc_op: what it is, how far to go on if it is so, and if not: beyond the end, which is a no.
    let op = |kind, yes: u8, no: u16| {
        let [low, high] = no.to_ne_bytes();
        [kind, yes, low, high]
    };
    let prefix = address.len() as u8 * 8;
    let any_port = u32::MAX.to_ne_bytes();
    let code = [
        &op(IS_AT, first, u16::from(first + second + 4))[..],
        &[family, prefix, 0, 0],
        &any_port,
        address,
        &op(IS_BOUND_TO, second, u16::from(second + 4)),
        &interface.to_ne_bytes(),
    ];
    Attributes::default().with(CONDITION, &code.concat()).0
}

fn refused(errno: taut_netlink::Errno) -> String {
    format!("sock_diag: {errno}; the kernel needs CONFIG_INET_UDP_DIAG (modprobe udp_diag)")
}

fn read(message: &[u8]) -> Option<(u64, UdpEnd)> {
    let port = u16::from_be_bytes(message.get(PORT..)?.first_chunk().copied()?);
    let ip = match *message.first()? {
        IPV4 => IpAddr::from(Ipv4Addr::from(*message.get(ADDRESS..)?.first_chunk::<4>()?)),
        _ => IpAddr::from(Ipv6Addr::from(*message.get(ADDRESS..)?.first_chunk::<16>()?)),
    };
    let cookie = u64::from(word(message, COOKIE)?) | u64::from(word(message, COOKIE + 4)?) << 32;
    let (interface, uid) = (word(message, INTERFACE)?, word(message, USER)?);
    // A kernel that does not say it is taken to have it do so: then one too many is held to share a port.
    let is_v6_only = attribute(message.get(FIXED..)?, V6_ONLY).is_some_and(|value| value.first() == Some(&1));
    let is_dual = ip == IpAddr::from(Ipv6Addr::UNSPECIFIED) && !is_v6_only;
    Some((cookie, UdpEnd { address: SocketAddr::new(ip, port), interface, uid, is_dual }))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
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
            let end = UdpEnd { address: socket.local_addr().unwrap(), interface: 0, uid, is_dual: false };
            assert_eq!(Sockets::read().unwrap().find(cookie), Some(end));
            assert_eq!(find_at(cookie, &end), Ok(Some(end)));
            assert_eq!(find_at(cookie, &UdpEnd { interface: 1, ..end }), Ok(None), "another interface");
            let elsewhere = SocketAddr::new(
                if end.address.is_ipv4() { "127.0.0.9" } else { "::9" }.parse().unwrap(),
                end.address.port(),
            );
            assert_eq!(find_at(cookie, &UdpEnd { address: elsewhere, ..end }), Ok(None), "another address");
            drop(socket);
            assert_eq!(Sockets::read().unwrap().find(cookie), None);
            assert_eq!(find_at(cookie, &end), Ok(None));
        }
    }

    /// What is never there is not looked for for long, whether others come meanwhile or not.
    #[test]
    fn a_socket_that_is_bound_to_no_port() {
        let end = UdpEnd { address: "127.0.0.1:1".parse().unwrap(), interface: 0, uid: 0, is_dual: false };
        let reads = Cell::new(0);
        let add = |with_others: bool| {
            let reads = &reads;
            move |sockets: &mut Sockets| {
                reads.set(reads.get() + 1);
                sockets.0.extend(with_others.then_some((reads.get(), end)));
                Ok(())
            }
        };
        Sockets::default().look_for(&[0], add(false)).unwrap();
        assert!(reads.get() <= READS as u64, "{} lists that show nothing new", reads.get());
        let begun = Instant::now();
        Sockets::default().look_for(&[0], add(true)).unwrap();
        assert!(begun.elapsed() >= READS_FOR, "it is looked for while others are found");
    }

    #[test]
    fn who_else_is_at_a_port() {
        let end = |address: &str, interface, uid| {
            let address = address.parse().unwrap();
            UdpEnd { address, interface, uid, is_dual: false }
        };
        let own = end("10.0.0.1:7411", 0, 1);
        let meets = |other| Sockets([(1, own), (2, other)].into()).shared_with(&own);
        assert_eq!(meets(end("10.0.0.1:7411", 0, 1)), None, "its own user's");
        assert_eq!(meets(end("10.0.0.1:7411", 0, 2)), Some(2));
        assert_eq!(meets(end("0.0.0.0:7411", 3, 2)), Some(2), "at all addresses of some interface");
        assert_eq!(meets(end("10.0.0.2:7411", 0, 2)), None, "another address");
        assert_eq!(meets(end("10.0.0.1:7413", 0, 2)), None, "another port");
        assert_eq!(meets(end("[::]:7411", 0, 2)), None, "another family alone");
        assert_eq!(meets(UdpEnd { is_dual: true, ..end("[::]:7411", 0, 2) }), Some(2), "both families");
        assert_eq!(meets(UdpEnd { is_dual: true, ..end("[::]:7413", 0, 2) }), None, "another port of both");
        assert_eq!(meets(end("[::ffff:10.0.0.1]:7411", 0, 2)), Some(2), "the same, written as one of IPv6");
        assert_eq!(meets(end("[::ffff:10.0.0.2]:7411", 0, 2)), None, "another one, written as one of IPv6");
    }

    #[test]
    fn which_sockets_are_of_both_families() {
        use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt::set_ipv6_v6only};
        for is_v6_only in [false, true] {
            let made = socket(AddressFamily::INET6, SocketType::DGRAM, None).unwrap();
            set_ipv6_v6only(&made, is_v6_only).unwrap();
            bind(&made, &SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))).unwrap();
            let cookie = udp_socket(made.as_fd()).unwrap().cookie;
            assert_eq!(Sockets::read().unwrap().find(cookie).unwrap().is_dual, !is_v6_only);
        }
    }
}

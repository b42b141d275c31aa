//! Sockets that know their way: each is connected to one address, and the kernel need not look for the route of each
//! datagram. That takes it half a microsecond, a tenth of a call.
//!
//! Owns which addresses these are: those that most datagrams go to one by one. What comes back comes to the addresses
//! that were announced, so nothing is received here.

use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;

use taut_base::{Locator, LocatorKind, Result};

use crate::UdpConfig;
use crate::mark::Marked;
use crate::{socket, sys};

/// How many there are. They are made with the port, as who sends later may be a thread in another network. Higher takes
/// descriptors, lower leaves more peers to the slower way.
const WAYS: usize = 4;

/// After so many datagrams a destination gets a socket. Lower connects for those who soon fall silent, at some
/// microseconds each; higher gains later.
const WORTH: u32 = 64;

/// The most that counts. Higher keeps the socket of one that has fallen silent for longer.
const LONGEST: u32 = 4_096;

struct Way {
    socket: Marked,
    to: Name,
    connected: bool,
    /// Datagrams of late: one more for each to this address, one less for each to one that has no way.
    sent: u32,
}

/// An address of IPv4 and its port as one number; 0 is none.
type Name = u64;

fn name(to: &SocketAddrV4) -> Name {
    u64::from(to.ip().to_bits()) << 32 | u64::from(to.port())
}

/// The same of a locator, whatever its port is; what is no address of IPv4 has none.
#[inline]
fn name_of(to: &Locator) -> Name {
    let [.., a, b, c, d] = to.address;
    let name = u64::from(u32::from_be_bytes([a, b, c, d])) << 32 | u64::from(to.port);
    if to.kind == LocatorKind::UDP_V4 { name } else { 0 }
}

/// The sockets. Misra and Gries, "Finding repeated elements", 1982, has how the addresses are found.
pub(crate) struct Ways(Vec<Way>);

impl Ways {
    /// Those of a port with this socket.
    pub(crate) fn open(config: &UdpConfig, unicast: &UdpSocket) -> Result<Ways> {
        let open = |_| {
            let socket = Marked::new(socket::open_way(config, unicast)?, config.dscp);
            Ok(Way { socket, to: 0, connected: false, sent: 0 })
        };
        Ok(Ways((0..WAYS).map(open).collect::<Result<_>>()?))
    }

    /// The socket that is connected to this address, if there is one. If not, see [`Ways::note`].
    ///
    /// *Cost*: a look at the names, and none at what kind of address it is: no other has a way.
    #[inline]
    pub(crate) fn find(&mut self, to: &Locator) -> Option<&mut Marked> {
        let name = name_of(to);
        let way = self.0.iter_mut().find(|way| way.to == name).filter(|way| way.connected)?;
        way.sent = (way.sent + 1).min(LONGEST);
        Some(&mut way.socket)
    }

    /// A datagram goes to an address that no socket is connected to. Returns the one that is from now on, if that is worth it.
    ///
    /// *Cost*: a system call when an address gets its socket, none else.
    pub(crate) fn note(&mut self, to: &SocketAddrV4) -> Option<&mut Marked> {
        let name = name(to);
        let Some(at) = self.0.iter().position(|way| way.to == name) else {
            self.note_other(name);
            return None;
        };
        let way = self.0.get_mut(at)?;
        way.sent = (way.sent + 1).min(LONGEST);
        if way.sent >= WORTH {
            way.connect(*to);
        }
        way.connected.then_some(&mut way.socket)
    }

    /// A datagram goes to an address without a way.
    fn note_other(&mut self, to: Name) {
        match self.0.iter_mut().find(|way| way.sent == 0) {
            Some(free) => {
                free.forget();
                (free.to, free.sent) = (to, 1);
            }
            None => self.0.iter_mut().for_each(|way| way.sent -= 1),
        }
    }

    /// This way has failed: datagrams take the other one until it is worth it again.
    pub(crate) fn leave(&mut self, to: &SocketAddrV4) {
        let name = name(to);
        self.0.iter_mut().filter(|way| way.to == name).for_each(Way::forget);
    }

    #[cfg(test)]
    pub(crate) fn has_any(&self) -> bool {
        self.0.iter().any(|way| way.connected)
    }

    /// The host's addresses have changed, and with them, maybe, from which one each is reached.
    pub(crate) fn forget(&mut self) {
        self.0.iter_mut().for_each(Way::forget);
    }
}

impl Way {
    #[cold]
    fn connect(&mut self, to: SocketAddrV4) {
        self.connected = self.socket.socket.connect(to).is_ok();
        if !self.connected {
            self.forget();
        }
    }

    fn forget(&mut self) {
        if self.connected {
            // What it is connected to next may be reached from another address.
            let _ = sys::disconnect(self.socket.socket.as_fd());
        }
        (self.to, self.connected, self.sent) = (0, false, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn ways() -> Ways {
        Ways::open(&UdpConfig::default(), &UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap()
    }

    /// Addresses that nobody listens at: nothing is sent.
    fn address(n: u16) -> SocketAddrV4 {
        SocketAddrV4::new([127, 0, 0, 1].into(), 20_000 + n)
    }

    /// As the sender does it. Returns where the socket leads to.
    fn send(ways: &mut Ways, to: &SocketAddrV4) -> Option<SocketAddr> {
        let peer = |way: &mut Marked| way.socket.peer_addr().unwrap();
        let found = ways.find(&SocketAddr::V4(*to).into()).map(peer);
        found.or_else(|| ways.note(to).map(peer))
    }

    #[test]
    fn who_is_sent_to_often_gets_a_way_of_its_own() {
        let mut ways = ways();
        let found = (0..2 * WORTH).filter(|_| send(&mut ways, &address(1)).is_some()).count();
        assert_eq!(found as u32, WORTH + 1, "from the {WORTH}th on");
        let way = ways.find(&SocketAddr::V4(address(1)).into()).unwrap();
        assert_eq!(way.socket.peer_addr().unwrap(), address(1).into());
        assert_eq!(way.socket.local_addr().unwrap().ip(), *address(1).ip());
        ways.leave(&address(1));
        assert!(send(&mut ways, &address(1)).is_none());
    }

    /// The address that a socket was connected from is the one that it is connected from next, unless it is
    /// disconnected. That may be one of another network, or no longer be one of the host.
    #[test]
    fn a_way_begins_where_its_destination_is_reached_from() {
        let anywhere = UdpSocket::bind("0.0.0.0:0").unwrap();
        let mut ways = Ways::open(&UdpConfig::default(), &anywhere).unwrap();
        let own = |ways: &Ways| -> Vec<bool> {
            ways.0.iter().map(|way| !way.socket.socket.local_addr().unwrap().ip().is_unspecified()).collect()
        };
        let connect = |ways: &mut Ways| (0..WORTH).for_each(|_| _ = send(ways, &address(1)));
        connect(&mut ways);
        assert_eq!(own(&ways), [true, false, false, false]);
        ways.forget();
        assert_eq!(own(&ways), [false; WAYS], "the host's addresses have changed");
        connect(&mut ways);
        let others = (0..).map(|n| address(100 + n % 1_000));
        let taken = others.take(1_000 * WORTH as usize).find(|to| {
            send(&mut ways, to);
            ways.0.iter().all(|way| way.to != name(&address(1)))
        });
        assert!(
            taken.is_some() && own(&ways) == [false; WAYS],
            "another one has its place: {:?}",
            own(&ways)
        );
    }

    #[test]
    fn what_is_no_address_has_no_way() {
        let mut ways = ways();
        (0..2 * WORTH).for_each(|_| _ = send(&mut ways, &address(1)));
        let known = Locator::udp_v4(*address(1).ip(), address(1).port());
        assert!(ways.find(&known).is_some());
        let nobody = Locator { port: 0, address: [0; 16], ..known };
        let far = Locator { port: 1 << 16 | known.port, ..known };
        for other in [nobody, far, Locator { kind: LocatorKind::UDP_V6, ..known }, Locator::INVALID] {
            assert!(ways.find(&other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_few_keep_theirs_beside_many_that_come_and_go() {
        let mut ways = ways();
        let mut found = 0;
        for n in 0..10_000 {
            (1..=WAYS as u16 - 1)
                .for_each(|often| found += u32::from(send(&mut ways, &address(often)).is_some()));
            assert!(send(&mut ways, &address(100 + n)).is_none());
        }
        assert!(found > 29_000, "{found} of 30,000");
    }

    #[test]
    fn who_falls_silent_makes_room() {
        let mut ways = ways();
        for n in 1..=WAYS as u16 {
            (0..100_000).for_each(|_| _ = send(&mut ways, &address(n)));
        }
        let before = (0..10 * LONGEST).take_while(|_| send(&mut ways, &address(9)).is_none()).count();
        assert_eq!(before as u32, LONGEST + WORTH - 1);
        assert!((1..=WAYS as u16).any(|n| send(&mut ways, &address(n)).is_none()), "whose way that was");
    }
}

//! What there is to know about an interface before a queue of it is used.
//!
//! Asks the kernel in the network namespace of the calling thread, once; what changes later is not seen. Sets nothing up.

use std::ffi::{c_char, c_void};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use taut_netlink::{Socket, attribute, word};

use crate::Error;
use crate::bpf::last;

/// ETHTOOL_GCHANNELS of linux/ethtool.h.
const GET_CHANNELS: u32 = 0x3c;
/// ETHTOOL_GFLAGS of linux/ethtool.h.
const GET_FLAGS: u32 = 0x25;
/// ETH_FLAG_RXVLAN of linux/ethtool.h.
const TAKES_TAGS_OFF: u32 = 1 << 8;
/// IFLA_XDP_ATTACHED of linux/if_link.h.
const XDP_ATTACHED: u16 = 2;
/// IFLA_XDP_PROG_ID of linux/if_link.h.
const XDP_PROGRAM: u16 = 4;

/// struct ethtool_value of linux/ethtool.h.
#[repr(C)]
struct Value {
    cmd: u32,
    data: u32,
}

/// struct ethtool_channels of linux/ethtool.h.
#[repr(C)]
#[derive(Default)]
struct Channels {
    cmd: u32,
    max_rx: u32,
    max_tx: u32,
    max_other: u32,
    max_combined: u32,
    rx_count: u32,
    tx_count: u32,
    other_count: u32,
    combined_count: u32,
}

/// An interface, as it was when it was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index in this network namespace.
    pub index: u32,
    /// Its MTU in bytes: Ethernet's header not counted.
    pub mtu: u32,
    /// Its address of Ethernet; zeros if it has none.
    pub mac: [u8; 6],
    /// Does it carry frames of Ethernet? Tunnels carry bare packets.
    pub is_ethernet: bool,
    /// How many receive queues it has; `None` where the driver does not say.
    pub rx_queues: Option<u32>,
    /// How many transmit queues it has; `None` where the driver does not say.
    pub tx_queues: Option<u32>,
}

impl Interface {
    /// The interface of that name.
    ///
    /// *Errors*: [`Error::NoInterface`]. *Cost*: six system calls.
    pub fn named(name: &str) -> Result<Interface, Error> {
        let no_interface = || Error::NoInterface { interface: name.to_string() };
        let mut request = request(name).ok_or_else(no_interface)?;
        let socket = asked().map_err(|errno| Error::refused("socket AF_INET", errno))?;
        let ask = |call: &str, number: libc::c_ulong, request: &mut libc::ifreq| {
            ioctl(&socket, number, request).map_err(|errno| match errno {
                Errno::NODEV => no_interface(),
                _ => Error::refused(format!("{call} {name}"), errno),
            })
        };
        ask("SIOCGIFINDEX", libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: the call has written this member.
        let index = unsafe { request.ifr_ifru.ifru_ifindex } as u32;
        ask("SIOCGIFMTU", libc::SIOCGIFMTU, &mut request)?;
        // SAFETY: the call has written this member.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu } as u32;
        ask("SIOCGIFHWADDR", libc::SIOCGIFHWADDR, &mut request)?;
        // SAFETY: the call has written this member.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let is_ethernet = [libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK].contains(&address.sa_family);
        let mut mac = [0; 6];
        mac.iter_mut().zip(address.sa_data).for_each(|(to, from)| *to = from as u8);
        let (rx_queues, tx_queues) = match channels(&socket, &mut request) {
            Some((rx, tx)) => (Some(rx), Some(tx)),
            None => (None, None),
        };
        Ok(Interface { name: name.to_string(), index, mtu, mac, is_ethernet, rx_queues, tx_queues })
    }
}

/// Is the interface of that name there, and up? *Cost*: three system calls.
///
/// *Errors*: [`Error::NoInterface`], [`Error::InterfaceDown`].
pub fn is_up(name: &str) -> Result<(), Error> {
    let no_interface = || Error::NoInterface { interface: name.to_string() };
    let mut request = request(name).ok_or_else(no_interface)?;
    let socket = asked().map_err(|errno| Error::refused("socket AF_INET", errno))?;
    match has_come_up(&socket, &mut request) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::InterfaceDown { interface: name.to_string() }),
        Err(Errno::NODEV) => Err(no_interface()),
        Err(errno) => Err(Error::refused(format!("SIOCGIFFLAGS {name}"), errno)),
    }
}

pub(crate) fn has_come_up(socket: &OwnedFd, request: &mut libc::ifreq) -> Result<bool, Errno> {
    ioctl(socket, libc::SIOCGIFFLAGS, request)?;
    // SAFETY: the call has written this member.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(i32::from(flags) & libc::IFF_UP != 0)
}

/// Does the interface of that name take the tags of VLANs (IEEE 802.1Q) off frames before a program sees them? Not if the
/// kernel does not say so. *Cost*: three system calls.
pub fn takes_tags_off(name: &str) -> bool {
    let (Some(mut request), Ok(socket)) = (request(name), asked()) else { return false };
    has_tags_taken_off(&socket, &mut request)
}

pub(crate) fn has_tags_taken_off(socket: &OwnedFd, request: &mut libc::ifreq) -> bool {
    let mut flags = Value { cmd: GET_FLAGS, data: 0 };
    // SAFETY: the structure of its command, alive through the call.
    let told = unsafe { ethtool(socket, request, (&raw mut flags).cast()) };
    told.is_ok() && flags.data & TAKES_TAGS_OFF != 0
}

/// The number of the program that is attached to the interface with this number, in whatever mode; `None` if none is.
///
/// *Errors*: the kernel does not tell. *Cost*: five system calls.
pub fn program_of(interface: u32) -> Result<Option<u32>, Error> {
    let told = Socket::of_routes().and_then(|mut kernel| kernel.link(interface)).map_err(refused)?;
    let attached = attribute(&told, libc::IFLA_XDP)
        .filter(|of| attribute(of, XDP_ATTACHED).is_some_and(|mode| mode != [0]));
    // Where there is one for each mode, their numbers stand elsewhere.
    Ok(attached.map(|of| attribute(of, XDP_PROGRAM).and_then(|id| word(id, 0)).unwrap_or(0)))
}

/// What the kernel says where it does not tell of an interface.
pub(crate) fn refused(errno: taut_netlink::Errno) -> Error {
    Error::Refused { call: "netlink RTM_GETLINK".to_owned(), errno: errno as i32 }
}

/// What is asked about interfaces.
pub(crate) fn asked() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
}

/// The number of this thread's network namespace that no other has before the next boot, by SO_NETNS_COOKIE; `None` before
/// Linux 5.14.
///
/// ```
/// assert_eq!(taut_xdp::network_cookie(), taut_xdp::network_cookie());
/// ```
pub fn network_cookie() -> Option<u64> {
    /// Of asm-generic/socket.h; libc has none.
    const SO_NETNS_COOKIE: i32 = 71;
    let socket = asked().ok()?;
    let mut cookie = 0_u64;
    let mut len = size_of_val(&cookie) as libc::socklen_t;
    let out = (&raw mut cookie).cast();
    // SAFETY: the kernel writes at most `len` bytes, which is the size of `cookie`, and the length it wrote to `len`.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, out, &mut len) };
    (result == 0).then_some(cookie)
}

/// A request about an interface; `None` if it cannot be a name.
pub(crate) fn request(name: &str) -> Option<libc::ifreq> {
    // SAFETY: a structure of numbers, all of which may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains('\0') {
        return None;
    }
    request.ifr_name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as c_char);
    Some(request)
}

/// A request about the interface with this number in the network namespace of the socket, and the name that it has by now;
/// `None` if there is none.
pub(crate) fn numbered(socket: &OwnedFd, interface: u32) -> Option<(libc::ifreq, String)> {
    // SAFETY: a structure of numbers, all of which may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_ifru.ifru_ifindex = interface.cast_signed();
    ioctl(socket, libc::SIOCGIFNAME, &mut request).ok()?;
    let name = request.ifr_name.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
    Some((request, String::from_utf8(name).ok()?))
}

/// How many receive and transmit queues; `None` where the driver does not say.
fn channels(socket: &OwnedFd, request: &mut libc::ifreq) -> Option<(u32, u32)> {
    let mut channels = Channels { cmd: GET_CHANNELS, ..Channels::default() };
    // SAFETY: the structure of its command, alive through the call.
    unsafe { ethtool(socket, request, (&raw mut channels).cast()) }.ok()?;
    let of = |count: u32| count.saturating_add(channels.combined_count);
    Some((of(channels.rx_count), of(channels.tx_count)))
}

/// The ioctl of everything that ethtool does.
///
/// # Safety
/// The data begins with the number of a command of linux/ethtool.h, and is as long as what the kernel reads and writes of
/// that command.
pub(crate) unsafe fn ethtool(
    socket: &OwnedFd,
    request: &mut libc::ifreq,
    data: *mut c_void,
) -> Result<(), Errno> {
    request.ifr_ifru.ifru_data = data.cast();
    ioctl(socket, libc::SIOCETHTOOL, request)
}

/// One of the calls above. What the request points to, if it does, lives in the caller.
fn ioctl(socket: &OwnedFd, number: libc::c_ulong, request: &mut libc::ifreq) -> Result<(), Errno> {
    // SAFETY: all numbers that are used here take an ifreq; the data of SIOCETHTOOL is the structure of its
    // command and alive.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), number as _, &raw mut *request) };
    if result < 0 { Err(last()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_there() {
        let lo = Interface::named("lo").unwrap();
        assert_eq!((lo.name.as_str(), lo.index, lo.mac), ("lo", 1, [0; 6]));
        assert!(lo.mtu >= 1_500, "{lo:?}");
        assert_eq!((lo.rx_queues, lo.tx_queues), (None, None), "it has no channels");
        assert!(!takes_tags_off("lo"));
        assert!(program_of(1 << 30).is_err_and(|error| error.to_string().contains("RTM_GETLINK")));
    }

    #[test]
    fn what_is_no_interface() {
        for name in ["", "taut-none", "sixteen-letters-", "l\0o"] {
            let error = Interface::named(name).unwrap_err();
            assert_eq!(error, Error::NoInterface { interface: name.to_string() });
            assert!(error.to_string().contains("ip link"), "{error}");
            assert_eq!(is_up(name), Err(error));
            assert!(!takes_tags_off(name));
        }
    }
}

//! The calls that no library offers in the shape needed here: a burst received into buffers of ours, one
//! datagram or row for many addresses, the MTU of a path over IPv6, and the kernel's count of datagrams it dropped. All
//! unsafe lines of the crate are here.

mod burst;
mod fan;

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

pub(crate) use burst::{BURST, Burst, Head, receive_one};
pub(crate) use fan::{FAN, send_to_many};

/// An address as the kernel has it: `sockaddr_in6`, or `sockaddr_in` in front of zeros.
#[derive(Clone, Copy)]
#[repr(C, align(4))]
pub(crate) struct Name {
    family: libc::sa_family_t,
    port: [u8; 2],
    /// The address; over IPv6 between the flow and the link.
    rest: [u8; 24],
}

impl Name {
    pub(crate) const NONE: Name = Name { family: 0, port: [0; 2], rest: [0; 24] };

    const FAMILY_V4: libc::sa_family_t = libc::AF_INET as libc::sa_family_t;
    const FAMILY_V6: libc::sa_family_t = libc::AF_INET6 as libc::sa_family_t;

    /// Bytes of it that count.
    fn len(&self) -> libc::socklen_t {
        let bytes = match self.family {
            Name::FAMILY_V4 => mem::size_of::<libc::sockaddr_in>(),
            _ => mem::size_of::<Name>(),
        };
        bytes as libc::socklen_t
    }

    /// The address; 0.0.0.0 for what is of neither kind.
    pub(crate) fn socket_addr(&self) -> SocketAddr {
        let Name { family, port, rest } = self;
        let port = u16::from_be_bytes(*port);
        let [a, b, c, d, address @ .., e, f, g, h] = rest;
        if *family != Name::FAMILY_V6 {
            return SocketAddrV4::new(Ipv4Addr::new(*a, *b, *c, *d), port).into();
        }
        let address = <[u8; 16]>::try_from(&address[..]).unwrap_or_default();
        SocketAddrV6::new(Ipv6Addr::from(address), port, 0, u32::from_ne_bytes([*e, *f, *g, *h])).into()
    }
}

impl From<SocketAddr> for Name {
    fn from(address: SocketAddr) -> Name {
        let mut name = Name { port: address.port().to_be_bytes(), ..Name::NONE };
        match address {
            SocketAddr::V4(v4) => {
                name.family = Name::FAMILY_V4;
                name.rest[..4].copy_from_slice(&v4.ip().octets());
            }
            SocketAddr::V6(v6) => {
                name.family = Name::FAMILY_V6;
                name.rest[4..20].copy_from_slice(&v6.ip().octets());
                name.rest[20..].copy_from_slice(&v6.scope_id().to_ne_bytes());
            }
        }
        name
    }
}

/// How long the datagrams of a row are, as the kernel wants to be told: one control message.
pub(crate) struct SegmentSize {
    bytes: u16,
    control: [u8; SegmentSize::SPACE],
}

impl SegmentSize {
    // SAFETY: both compute a size from their argument alone.
    const SPACE: usize = unsafe { libc::CMSG_SPACE(2) } as usize;
    // SAFETY: as above.
    const LEN: usize = unsafe { libc::CMSG_LEN(2) } as usize;

    /// `None` for a size that cannot be.
    pub(crate) fn new(bytes: usize) -> Option<SegmentSize> {
        let bytes = u16::try_from(bytes).ok().filter(|bytes| *bytes > 0)?;
        let mut control = [0; Self::SPACE];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            control[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        // struct cmsghdr: length, level, type; behind it the value.
        put(&Self::LEN.to_ne_bytes());
        put(&libc::SOL_UDP.to_ne_bytes());
        put(&libc::UDP_SEGMENT.to_ne_bytes());
        put(&bytes.to_ne_bytes());
        Some(SegmentSize { bytes, control })
    }

    pub(crate) fn bytes(&self) -> usize {
        usize::from(self.bytes)
    }

    pub(crate) fn control(&self) -> &[u8] {
        &self.control
    }
}

/// Datagrams that the kernel dropped for this socket since it was opened.
pub(crate) fn kernel_drops(fd: BorrowedFd<'_>) -> u32 {
    const DROPS: usize = libc::SK_MEMINFO_DROPS as usize;
    let mut words = [0u32; DROPS + 1];
    let mut len = mem::size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, which is the size of `words`, and the length
    // it wrote to `len`; any bytes are valid words.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &mut len,
        )
    };
    // Kernels before 4.12 do not know the option: none are reported then.
    if result == 0 { words[DROPS] } else { 0 }
}

/// Has a socket be connected to nobody, and forget the address that it was connected from.
pub(crate) fn disconnect(fd: BorrowedFd<'_>) -> io::Result<()> {
    let nobody = libc::sockaddr { sa_family: libc::AF_UNSPEC as libc::sa_family_t, sa_data: [0; 14] };
    let len = mem::size_of_val(&nobody) as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes of an address that is alive.
    let result = unsafe { libc::connect(fd.as_raw_fd(), &raw const nobody, len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The MTU of the path that a connected socket of IPv6 has.
pub(crate) fn path_mtu_v6(fd: BorrowedFd<'_>) -> io::Result<usize> {
    let mut mtu: libc::c_int = 0;
    let mut len = mem::size_of_val(&mtu) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, which is the size of `mtu`, and the length it wrote to `len`.
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU, (&raw mut mtu).cast(), &mut len)
    };
    if result == 0 { Ok(usize::try_from(mtu).unwrap_or(0)) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_kernel() {
        for text in ["192.0.2.7:7411", "[fd00:1::2]:65535", "[fe80::1%7]:1"] {
            let address: SocketAddr = text.parse().unwrap();
            let name = Name::from(address);
            assert_eq!(name.socket_addr(), address);
            let known = socket2::SockAddr::from(address);
            assert_eq!(name.len(), known.len(), "{text}");
            // SAFETY: the first `len` bytes of both are initialised, and both are at least as long.
            let bytes = |at: *const u8| unsafe { std::slice::from_raw_parts(at, known.len() as usize) };
            assert_eq!(bytes((&raw const name).cast()), bytes(known.as_ptr().cast()), "{text}");
        }
    }
}

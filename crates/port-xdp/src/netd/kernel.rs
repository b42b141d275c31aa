//! What the kernel says of a connection's other end, and of a socket that was passed.
//!
//! Owns the options that no library has soundly: credentials whose process id this namespace cannot name, groups, what
//! the kernel knows a socket and its network namespace by. What is read here is the kernel's word.

use std::ffi::c_int;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, getsockname, ipproto, socket_with, sockopt};

/// Supplementary groups of a peer that are looked at. A process may have 65,536; one with more than this is known by
/// its primary group alone.
const GROUPS: usize = 256;

/// asm-generic/socket.h.
const SO_PASSRIGHTS: c_int = 83;

/// Who is at the other end of a connection.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Peer {
    /// Its process id; 0 if it has none in this process-id namespace.
    pub pid: u32,
    /// Its effective user when it connected.
    pub uid: u32,
    /// Its effective group, and its supplementary ones.
    pub gids: Vec<u32>,
}

/// A socket of UDP that was passed, as far as can be told without waiting for who else has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpSocket {
    /// What the kernel knows it by, and no other socket ever.
    pub cookie: u64,
    /// The cookie of its network namespace.
    pub namespace: u64,
}

/// Who has connected.
pub fn peer(connection: BorrowedFd<'_>) -> Result<Peer, Errno> {
    let mut found = [0_u32; 3];
    if get(connection, libc::SO_PEERCRED, &mut found)? != size_of_val(&found) {
        return Err(Errno::INVAL);
    }
    let [pid, uid, gid] = found;
    let mut groups = [0_u32; GROUPS];
    let len = get(connection, libc::SO_PEERGROUPS, &mut groups).unwrap_or_default();
    let gids = std::iter::once(gid).chain(groups.iter().take(len / size_of::<u32>()).copied()).collect();
    Ok(Peer { pid, uid, gids })
}

/// The cookie of this thread's network namespace.
pub fn namespace() -> Result<u64, Errno> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    cookie(socket.as_fd(), libc::SO_NETNS_COOKIE)
}

/// The cookie of the network namespace of who is at the other end of a connection that was accepted: the kernel makes this
/// end in the namespace of the socket that has connected, not of the one that listens.
pub fn namespace_of(connection: BorrowedFd<'_>) -> Result<u64, Errno> {
    cookie(connection, libc::SO_NETNS_COOKIE)
}

/// Whether descriptors may be sent to this end of a connection; who is accepted has what its listener has.
///
/// *Errors*: Linux before 6.16 has no such choice: they may.
pub fn pass_rights(socket: BorrowedFd<'_>, may: bool) -> Result<(), Errno> {
    let value = c_int::from(may);
    // SAFETY: the kernel reads the bytes of `value`, whose size is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

/// What a descriptor is, if it is a socket of UDP. Asks no file system, however hostile: none has an answer to questions
/// about sockets. Nor does it ask for anything that waits for the socket's lock, as its name does: whoever has the
/// socket can hold that for ever.
pub fn udp_socket(fd: BorrowedFd<'_>) -> Option<UdpSocket> {
    let domain = sockopt::socket_domain(fd).ok()?;
    let is_ip = [AddressFamily::INET, AddressFamily::INET6].contains(&domain);
    let is_datagram = sockopt::socket_type(fd) == Ok(SocketType::DGRAM);
    if !is_ip || !is_datagram || sockopt::socket_protocol(fd) != Ok(Some(ipproto::UDP)) {
        return None;
    }
    Some(UdpSocket {
        cookie: cookie(fd, libc::SO_COOKIE).ok()?,
        namespace: cookie(fd, libc::SO_NETNS_COOKIE).ok()?,
    })
}

/// Where a socket of this process is bound, if it is one of UDP.
pub(crate) fn udp_address(fd: BorrowedFd<'_>) -> Option<SocketAddr> {
    udp_socket(fd)?;
    SocketAddr::try_from(getsockname(fd).ok()?).ok()
}

fn cookie(socket: BorrowedFd<'_>, option: c_int) -> Result<u64, Errno> {
    let mut found = [0_u64];
    get(socket, option, &mut found)?;
    Ok(found[0])
}

mod sealed {
    /// Numbers, of which any bytes are one.
    pub trait Number {}
    impl Number for u32 {}
    impl Number for u64 {}
}

/// One option of the socket level; returns how many bytes the kernel wrote.
fn get<T: sealed::Number>(socket: BorrowedFd<'_>, option: c_int, out: &mut [T]) -> Result<usize, Errno> {
    let mut len = libc::socklen_t::try_from(size_of_val(out)).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel writes at most `len` bytes, which is the size of `out`, and the length it wrote to `len`; any
    // bytes are valid numbers.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, out.as_mut_ptr().cast(), &mut len)
    };
    match result {
        0 => Ok(len as usize),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    #[test]
    fn only_sockets_of_udp_are_known() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
            let Ok(udp) = std::net::UdpSocket::bind(address) else { continue };
            let known = udp_socket(udp.as_fd()).unwrap();
            assert_eq!(Ok(known.namespace), namespace());
            assert_eq!(udp_socket(udp.try_clone().unwrap().as_fd()), Some(known), "it is the same");
            assert_eq!(udp_address(udp.as_fd()), udp.local_addr().ok());
        }
        let others = [
            TcpListener::bind("127.0.0.1:0").unwrap().into(),
            UnixDatagram::unbound().unwrap().into(),
            std::os::fd::OwnedFd::from(std::fs::File::open("/dev/null").unwrap()),
        ];
        others.iter().for_each(|fd| assert_eq!(udp_socket(fd.as_fd()), None));
    }

    #[test]
    fn who_connected() {
        let (a, _b) = UnixStream::pair().unwrap();
        let peer = peer(a.as_fd()).unwrap();
        assert_eq!(peer.pid, std::process::id());
        assert!(!peer.gids.is_empty());
    }
}

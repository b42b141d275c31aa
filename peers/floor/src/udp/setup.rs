//! How sockets are made: their buffers and addresses, the multicast group of a domain, and the greeting
//! by which both sides know that they hear each other.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use taut_perf_kit::clock::{left, now_ns};
use taut_perf_kit::{Options, Stop};

use super::{GREET_AGAIN, GREETING, GROUP, HELLO, HERE, MEET, first_port, nothing_came};

/// Holds what comes while the receiver is pre-empted for 30 ms: a small datagram takes about 768 bytes of
/// it, and 600,000 of them come in a second. Less loses what another would keep; more only hides longer
/// that the receiver is the slower one.
pub const RECEIVE_BUFFER: usize = 16 << 20;

/// Greets until so many different ones have answered.
pub fn greet(
    socket: &UdpSocket,
    remotes: usize,
    send: impl Fn(&UdpSocket, &[u8]) -> std::io::Result<usize>,
) -> Result<(), Stop> {
    let end_ns = now_ns() + MEET.as_nanos() as u64;
    let mut here = [false; 256];
    socket.set_read_timeout(Some(GREET_AGAIN))?;
    while here.iter().filter(|here| **here).count() < remotes {
        if now_ns() > end_ns {
            return Err(Stop::Failed(format!("not all of {remotes} others answered within {MEET:?}")));
        }
        match send(socket, &[HELLO, 0]) {
            Err(error) if !nothing_came(&error) => return Err(error.into()),
            _ => {}
        }
        let again_ns = now_ns() + GREET_AGAIN.as_nanos() as u64;
        while now_ns() < again_ns && here.iter().filter(|here| **here).count() < remotes {
            let mut answer = [0; GREETING];
            match socket.recv(&mut answer) {
                Ok(GREETING) if answer[0] == HERE => here[usize::from(answer[1])] = true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    // Not there yet: the error came at once, so the wait is still to be done.
                    std::thread::sleep(left(again_ns));
                }
                Err(error) if nothing_came(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// A socket on this address and port, with the large receive buffer. Several may have the same port if
/// each is connected to another place.
pub fn bound(own: Ipv4Addr, port: u16) -> Result<UdpSocket, Stop> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddrV4::new(own, port).into())?;
    let socket = UdpSocket::from(socket);
    // Only root may go above the system's limit; others get what there is.
    if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER)?;
    }
    Ok(socket)
}

/// The group of this domain.
pub fn group(options: &Options) -> SocketAddrV4 {
    // Of the range for use within one site; the domain is part of it, so that trials do not meet.
    SocketAddrV4::new(Ipv4Addr::new(239, 255, 50, options.domain as u8), first_port(options.domain) + GROUP)
}

/// A socket that receives what is sent to the group.
pub fn group_reader(own: Ipv4Addr, options: &Options) -> Result<UdpSocket, Stop> {
    let all = group(options);
    let socket = bound(*all.ip(), all.port())?;
    socket.join_multicast_v4(all.ip(), &own)?;
    Ok(socket)
}

//! Stations that stand for groups: which of them a network card takes.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::bpf::last;
use crate::error::SOCKET_CAPABILITY;
use crate::{Error, Interface};

/// An interface takes frames for a group while this lives, and while another wants it. Without it a card drops them
/// before any program sees them.
#[derive(Debug)]
pub struct Membership {
    _fd: OwnedFd,
}

impl Membership {
    /// Has an interface take frames for these groups. *Errors*: [`Error::NotAllowed`]; what the driver refuses. *Cost*:
    /// one system call for each, and one.
    pub fn join(interface: &Interface, groups: &[[u8; 6]]) -> Result<Membership, Error> {
        let flags = SocketFlags::CLOEXEC;
        // Of no protocol: nothing is received by it.
        let fd = socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, None)
            .map_err(|_| Error::not_allowed("socket AF_PACKET", SOCKET_CAPABILITY))?;
        for group in groups {
            let mut wanted = libc::packet_mreq {
                mr_ifindex: interface.index as libc::c_int,
                mr_type: libc::PACKET_MR_MULTICAST as libc::c_ushort,
                mr_alen: group.len() as libc::c_ushort,
                mr_address: [0; 8],
            };
            wanted.mr_address.iter_mut().zip(group).for_each(|(to, from)| *to = *from);
            // SAFETY: the kernel reads one value of the length that it is told.
            let done = unsafe {
                libc::setsockopt(
                    fd.as_raw_fd(),
                    libc::SOL_PACKET,
                    libc::PACKET_ADD_MEMBERSHIP,
                    (&raw const wanted).cast(),
                    size_of_val(&wanted) as libc::socklen_t,
                )
            };
            if done != 0 {
                return Err(Error::refused(format!("PACKET_ADD_MEMBERSHIP on {}", interface.name), last()));
            }
        }
        Ok(Membership { _fd: fd })
    }
}

//! The sockets that send to groups: one for each interface, by which alone it sends.
//!
//! Owns how they are opened, and that an interface which takes none keeps no other from being used. Called when the port is
//! opened and when it follows.

use std::io;
use std::net::IpAddr;

use taut_base::Result;

use crate::mark::Marked;
use crate::socket::{open_multicast_sender, refused};
use crate::warnings::Warnings;
use crate::{Interface, UdpConfig};

/// One for each interface and kind of address, with its address.
pub(crate) type GroupSockets = Vec<(IpAddr, Marked)>;

/// A socket for each interface that uses multicast, with the first of its addresses of each kind that takes one. An address that
/// takes none is marked, and warned of if no other has taken its place: it may have gone since it was found, and none is free
/// on an interface in a VRF, unless the program is there, too.
///
/// *Errors*: what no interface is the reason of, and may pass.
pub(crate) fn open(
    config: &UdpConfig,
    interfaces: &mut [Interface],
    warnings: &mut Warnings,
) -> Result<GroupSockets> {
    let (mut sockets, mut done, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for interface in interfaces.iter_mut().filter(|own| own.multicast) {
        let (address, kind) = (interface.address, (interface.index, interface.address.is_ipv4()));
        if done.contains(&kind) {
            continue;
        }
        match open_multicast_sender(config, interface) {
            Ok(socket) => {
                done.push(kind);
                sockets.push((address, Marked::new(socket, config.dscp)));
            }
            Err(error) if is_of_process(&error) => {
                return Err(refused(format!("multicast by {} ({address})", interface.name), error));
            }
            Err(error) => {
                interface.multicast = false;
                failed.push((kind, interface.clone(), error));
            }
        }
    }
    for (_, interface, error) in failed.into_iter().filter(|(kind, ..)| !done.contains(kind)) {
        warnings.refused_sender(&interface, error);
    }
    Ok(sockets)
}

/// Would each interface meet this?
fn is_of_process(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, index: u32, address: [u8; 4]) -> Interface {
        let address = address.into();
        Interface { name: name.into(), index, address, prefix_len: 24, loopback: false, multicast: true }
    }

    /// Those of 203.0.113.0/24 are nobody's (RFC 5737).
    #[test]
    fn an_address_that_takes_no_socket_leaves_the_others_theirs() {
        let mut interfaces = [
            interface("gone", 7, [203, 0, 113, 1]),
            interface("half", 8, [203, 0, 113, 2]),
            interface("half", 8, [127, 0, 0, 1]),
            interface("half", 8, [127, 0, 0, 2]),
            interface("whole", 9, [127, 0, 0, 3]),
        ];
        let mut warnings = Warnings::default();
        let mut opened = || {
            let sockets = open(&UdpConfig::default(), &mut interfaces, &mut warnings).unwrap();
            sockets.into_iter().map(|(address, _)| address.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(opened(), ["127.0.0.1", "127.0.0.3"]);
        assert_eq!(opened(), ["127.0.0.1", "127.0.0.3"]);
        assert_eq!(interfaces.map(|own| own.multicast), [false, false, true, true, true]);
        let told = warnings.take();
        let [text] = &told[..] else { panic!("one warning: {told:?}") };
        assert!(text.starts_with("no multicast on gone") && text.contains("ip vrf exec"), "{text}");
    }
}

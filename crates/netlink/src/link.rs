//! Interfaces: what the kernel says of one that it is asked for, and the messages that it tells of them. rtnetlink(7).

use nix::errno::Errno;

use crate::{Attributes, Socket, attribute, attributes, text, word};

/// Before the attributes: `ifinfomsg`, with the number of the interface within.
const FIXED: usize = 16;
const INDEX_AT: usize = 4;

/// The interface that a message is about, by its number, and what is said of it: `IFLA_*` of linux/if_link.h.
pub fn link(body: &[u8]) -> Option<(u32, &[u8])> {
    Some((word(body, INDEX_AT)?, body.get(FIXED..)?))
}

/// All names of an interface of which this is said, the first one first. ip-link(8) calls the others `altname`.
pub fn link_names(said: &[u8]) -> Vec<String> {
    let others = attributes(attribute(said, libc::IFLA_PROP_LIST).unwrap_or_default());
    let others = others.filter(|(kind, _)| *kind == libc::IFLA_ALT_IFNAME).map(|(_, name)| name);
    attribute(said, libc::IFLA_IFNAME).into_iter().chain(others).map(text).collect()
}

impl Socket {
    /// What the kernel says of the interface with this number.
    ///
    /// *Errors*: `ENODEV` if there is none. *Cost*: two system calls.
    pub fn link(&mut self, index: u32) -> nix::Result<Vec<u8>> {
        self.link_of(index, &Attributes::default())
    }

    /// The same of the one with this name, be it the first of its names or another.
    pub fn link_named(&mut self, name: &str) -> nix::Result<Vec<u8>> {
        self.link_of(0, &Attributes::default().with_text(libc::IFLA_ALT_IFNAME, name))
    }

    fn link_of(&mut self, index: u32, which: &Attributes) -> nix::Result<Vec<u8>> {
        let mut request = vec![0; FIXED];
        request.splice(INDEX_AT..INDEX_AT + 4, index.to_ne_bytes());
        request.extend(&which.0);
        let answers = self.request(libc::RTM_GETLINK, 0, &request)?;
        let said = answers.first().and_then(|answer| link(answer));
        said.map(|(_, said)| said.to_vec()).ok_or(Errno::ENODEV)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_loopback() {
        let mut socket = Socket::of_routes().unwrap();
        for said in [socket.link(1), socket.link_named("lo")] {
            assert_eq!(link_names(&said.unwrap()), ["lo"]);
        }
        assert_eq!(socket.link(1 << 30), Err(Errno::ENODEV));
        assert_eq!(socket.link_named("taut-none"), Err(Errno::ENODEV));
    }

    #[test]
    fn the_first_name_and_the_others() {
        let others = Attributes::default()
            .with_text(libc::IFLA_ALT_IFNAME, "enp1s0")
            .with(libc::IFLA_ADDRESS, &[2; 6])
            .with_text(libc::IFLA_ALT_IFNAME, "to-the-left");
        let said = Attributes::default()
            .with_nested(libc::IFLA_PROP_LIST, &others)
            .with_text(libc::IFLA_IFNAME, "eth0");
        assert_eq!(link_names(&said.0), ["eth0", "enp1s0", "to-the-left"]);
        assert_eq!(link_names(&[]), [""; 0]);
    }

    #[test]
    fn nothing_is_made_of_scraps() {
        let whole = [&[0, 0, 0, 0, 7, 0, 0, 0][..], &[0; 8]].concat();
        assert_eq!(link(&whole), Some((u32::from_ne_bytes([7, 0, 0, 0]), &[][..])));
        (0..whole.len()).for_each(|len| assert_eq!(link(&whole[..len]), None, "{len} bytes"));
    }
}

//! The MTU of the interface, as the kernel tells that it has changed: frames that are longer the other end drops without
//! a word.

use std::os::fd::BorrowedFd;

use taut_base::{Error, Result};
use taut_netlink::{Heard, LINKS, Socket, Watch, attribute, word};

// linux/rtnetlink.h and linux/if_link.h
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const IFLA_MTU: u16 = 4;
/// Before the attributes: `ifinfomsg`, with the number of the interface within.
const FIXED: usize = 16;
const INDEX_AT: usize = 4;

pub(crate) struct MtuWatch {
    interface: u32,
    watch: Watch,
    /// It is made with the port: whoever asks later may be a thread in another network.
    socket: Socket,
}

impl MtuWatch {
    /// Of the interface with this number.
    pub fn open(interface: u32) -> Result<MtuWatch> {
        let refused = |errno| Error::Error(format!("netlink: {errno}; use UDP where that is not allowed"));
        let watch = Watch::open(LINKS).map_err(refused)?;
        Ok(MtuWatch { interface, watch, socket: Socket::of_routes().map_err(refused)? })
    }

    /// Readable when the kernel tells something: then call [`MtuWatch::hear`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// The MTU in bytes, if the kernel has told it since the last call. *Cost*: one system call for each read; only if it
    /// had more to tell than the socket holds it is asked, which may wait.
    pub fn hear(&mut self) -> Option<u32> {
        let (mut told, mut missed) = (None, false);
        self.watch.hear(|heard| match heard {
            Heard::Message(NEW_LINK, body) => told = mtu(body, self.interface).or(told),
            Heard::Message(..) => {}
            Heard::TooMuch => missed = true,
        });
        if missed { self.ask().or(told) } else { told }
    }

    fn ask(&mut self) -> Option<u32> {
        let mut body = [0; FIXED];
        body.get_mut(INDEX_AT..INDEX_AT + 4)?.copy_from_slice(&self.interface.to_ne_bytes());
        let answers = self.socket.request(GET_LINK, 0, &body).ok()?;
        mtu(answers.first()?, self.interface)
    }
}

/// What a message says of this interface.
fn mtu(body: &[u8], interface: u32) -> Option<u32> {
    let is_ours = word(body, INDEX_AT) == Some(interface);
    attribute(body.get(FIXED..)?, IFLA_MTU).filter(|_| is_ours).and_then(|value| word(value, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_of_loopback() {
        let mut watch = MtuWatch::open(1).unwrap();
        assert_eq!(watch.hear(), None, "it has not changed");
        assert!(watch.ask().is_some_and(|mtu| mtu >= 1_500));
        assert_eq!(MtuWatch::open(1 << 30).unwrap().ask(), None, "there is no such interface");
    }
}

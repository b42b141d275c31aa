//! A port in memory: what is sent waits to be taken. For tests and for the simulator.

use std::collections::VecDeque;

use taut_base::Locator;
use taut_mem::Bytes;

use crate::Port;

/// Collects sent datagrams with their destinations.
#[derive(Default, Debug)]
pub struct Loopback {
    sent: VecDeque<(Locator, Bytes)>,
}

impl Loopback {
    /// An empty one.
    pub fn new() -> Loopback {
        Loopback::default()
    }

    /// The oldest datagram that nobody has taken.
    pub fn take(&mut self) -> Option<(Locator, Bytes)> {
        self.sent.pop_front()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Does none wait?
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }
}

impl Port for Loopback {
    fn send(&mut self, to: &[Locator], parts: &[&[u8]]) {
        let datagram = Bytes::from(parts.concat());
        self.sent.extend(to.iter().map(|locator| (*locator, datagram.clone())));
    }

    fn flush(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn one_datagram_a_destination() {
        let mut port = Loopback::new();
        let to = [1, 2].map(|p| Locator::udp_v4(Ipv4Addr::LOCALHOST, p));
        port.send(&to, &[b"ab", b"c"]);
        assert_eq!(port.len(), 2);
        assert_eq!(port.take().unwrap(), (to[0], Bytes::copy_from(b"abc")));
    }
}

//! Frames, made by hand.

use std::net::SocketAddr;

/// The first ethertype of the two that IEEE 802 leaves to local experiments.
const EXPERIMENTAL: u16 = 0x88b5;

/// What stands before a payload.
#[derive(Clone)]
pub struct Udp {
    /// The station that it goes to.
    pub to_mac: [u8; 6],
    /// The station that it comes from.
    pub from_mac: [u8; 6],
    /// Our address.
    pub from: [u8; 4],
    /// Its address.
    pub to: [u8; 4],
    /// Its port.
    pub port: u16,
}

impl Udp {
    /// To this port, between nobody and nobody.
    pub fn to_port(port: u16) -> Udp {
        Udp { to_mac: [2; 6], from_mac: [4; 6], from: [10, 0, 0, 1], to: [10, 0, 0, 2], port }
    }

    /// Where it goes over IPv4 and over IPv6.
    pub fn destinations(&self) -> [SocketAddr; 2] {
        [(self.to, self.port).into(), ([0xfd; 16], self.port).into()]
    }

    fn ethernet(&self, ethertype: u16) -> Vec<u8> {
        let mut frame = [self.to_mac, self.from_mac].concat();
        frame.extend(ethertype.to_be_bytes());
        frame
    }

    fn datagram(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = 7_000_u16.to_be_bytes().to_vec();
        bytes.extend(self.port.to_be_bytes());
        bytes.extend((8 + payload.len() as u16).to_be_bytes());
        // No checksum.
        bytes.extend([0, 0]);
        bytes.extend(payload);
        bytes
    }

    /// A frame of IPv4, without a checksum of UDP.
    pub fn ipv4(&self, payload: &[u8]) -> Vec<u8> {
        let mut header = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0].to_vec();
        header[2..4].copy_from_slice(&(28 + payload.len() as u16).to_be_bytes());
        header.extend([self.from, self.to].concat());
        let sum: u32 = header.chunks(2).map(|half| u32::from(u16::from_be_bytes([half[0], half[1]]))).sum();
        let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
        header[10..12].copy_from_slice(&folded.to_be_bytes());
        [self.ethernet(0x0800), header, self.datagram(payload)].concat()
    }

    /// A frame of IPv6, between fdfd:… and itself, without a checksum of UDP.
    pub fn ipv6(&self, payload: &[u8]) -> Vec<u8> {
        let mut header = [0x60, 0, 0, 0, 0, 0, 17, 64].to_vec();
        header[4..6].copy_from_slice(&(8 + payload.len() as u16).to_be_bytes());
        header.extend([0xfd; 32]);
        [self.ethernet(0x86dd), header, self.datagram(payload)].concat()
    }

    /// A frame of the experimental ethertype.
    pub fn l2(&self, payload: &[u8]) -> Vec<u8> {
        [self.ethernet(EXPERIMENTAL), payload.to_vec()].concat()
    }
}

/// The same frame with a tag: priority 6, network 5.
pub fn tagged(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0, 0xc0, 5], &frame[12..]].concat()
}

/// The same frame with a tag: priority 6, no network.
pub fn prioritized(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0, 0xc0, 0], &frame[12..]].concat()
}

/// A message of RTPS of that length, known by a number.
pub fn message(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = b"RTPS".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((bytes.len()..len).map(|at| (at as u32 ^ number) as u8));
    bytes
}

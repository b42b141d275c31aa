//! What stands before a piece on the wire: Ethernet with IPv4 and UDP, or Ethernet with a few numbers of
//! our own.

use std::net::Ipv4Addr;

/// An address of Ethernet.
pub type Mac = [u8; 6];

/// To everybody.
pub const BROADCAST: Mac = [0xff; 6];

/// The first of the two ethertypes that IEEE 802 leaves to local experiments.
const OWN_TYPE: u16 = 0x88b5;
const IPV4_TYPE: u16 = 0x0800;

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;

/// The usual MTU, and what fits the kernel's chunk of 2,048 bytes with its headroom.
const MTU: usize = 1_500;

/// Which headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// Ethernet, IPv4, UDP.
    Udp,
    /// Ethernet with a type of its own, then port and length.
    Own,
}

/// Both sides of a frame.
#[derive(Clone, Copy)]
pub struct Ends {
    /// The other side's, broadcast until it is known.
    pub to_mac: Mac,
    /// Our own.
    pub from_mac: Mac,
    /// The other side's.
    pub to: (Ipv4Addr, u16),
    /// Our own.
    pub from: (Ipv4Addr, u16),
}

impl Framing {
    /// The length of all headers.
    pub fn header(self) -> usize {
        match self {
            Framing::Udp => ETHERNET + IPV4 + UDP,
            Framing::Own => ETHERNET + 4,
        }
    }

    /// The longest piece.
    pub fn room(self) -> usize {
        ETHERNET + MTU - self.header()
    }

    /// The places of one or two bytes by which a frame to this port is known.
    pub fn marks(self, port: u16) -> Vec<(usize, [Option<u8>; 2])> {
        let half = |value: u16| value.to_be_bytes().map(Some);
        match self {
            Framing::Udp => vec![
                (12, half(IPV4_TYPE)),
                // Version 4 without options, and UDP: then the port stands where it is looked for.
                (ETHERNET, [Some(0x45), None]),
                (ETHERNET + 9, [Some(17), None]),
                (ETHERNET + IPV4 + 2, half(port)),
            ],
            Framing::Own => vec![(12, half(OWN_TYPE)), (ETHERNET, half(port))],
        }
    }

    /// Writes the headers before a piece of this length.
    pub fn write(self, header: &mut [u8], ends: &Ends, len: usize) {
        header[..6].copy_from_slice(&ends.to_mac);
        header[6..12].copy_from_slice(&ends.from_mac);
        let mut half = |at: usize, value: u16| header[at..at + 2].copy_from_slice(&value.to_be_bytes());
        if self == Framing::Own {
            half(12, OWN_TYPE);
            half(14, ends.to.1);
            half(16, len as u16);
            return;
        }
        half(12, IPV4_TYPE);
        half(14, 0x4500);
        half(16, (IPV4 + UDP + len) as u16);
        // Not to be fragmented, of 64 hops at most, UDP.
        half(18, 0);
        half(20, 0x4000);
        half(22, 64 << 8 | 17);
        half(24, 0);
        half(34, ends.from.1);
        half(36, ends.to.1);
        half(38, (UDP + len) as u16);
        // Zero: no checksum, as RFC 768 allows.
        half(40, 0);
        header[26..30].copy_from_slice(&ends.from.0.octets());
        header[30..34].copy_from_slice(&ends.to.0.octets());
        let sum = checksum(&header[14..34]);
        header[24..26].copy_from_slice(&sum.to_be_bytes());
    }

    /// The sender's address and the length of the piece behind these headers.
    pub fn read(self, header: &[u8]) -> (Mac, usize) {
        let mut from = Mac::default();
        from.copy_from_slice(&header[6..12]);
        let half = |at: usize| usize::from(u16::from_be_bytes([header[at], header[at + 1]]));
        let len = if self == Framing::Udp { half(38).saturating_sub(UDP) } else { half(16) };
        (from, len)
    }
}

/// RFC 1071.
fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks(2).map(|half| u32::from(u16::from_be_bytes([half[0], half[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) as u16 + (folded >> 16) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_travel_and_are_known_by_their_marks() {
        let ends = Ends {
            to_mac: [1; 6],
            from_mac: [2; 6],
            to: (Ipv4Addr::new(10, 0, 0, 2), 20_151),
            from: (Ipv4Addr::new(10, 0, 0, 1), 20_150),
        };
        for framing in [Framing::Udp, Framing::Own] {
            let mut header = vec![0xee; framing.header()];
            framing.write(&mut header, &ends, 333);
            assert_eq!(framing.read(&header), ([2; 6], 333));
            for (place, bytes) in framing.marks(20_151) {
                for (offset, byte) in bytes.into_iter().flatten().enumerate() {
                    assert_eq!(header[place + offset], byte, "{framing:?} at {place}");
                }
            }
            assert!(!header.contains(&0xee));
        }
    }

    #[test]
    fn a_header_with_its_checksum_sums_to_nothing() {
        let ends = Ends {
            to_mac: BROADCAST,
            from_mac: [2; 6],
            to: (Ipv4Addr::new(192, 168, 255, 254), 1),
            from: (Ipv4Addr::new(172, 16, 3, 4), 2),
        };
        let mut header = [0; 42];
        Framing::Udp.write(&mut header, &ends, 1_000);
        assert_ne!(header[24..26], [0, 0]);
        assert_eq!(checksum(&header[14..34]), 0);
    }
}

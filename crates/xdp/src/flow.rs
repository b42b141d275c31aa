//! Rules of a NIC that say which frames go to which of its receive queues, by the ioctl SIOCETHTOOL: netlink has no
//! message for them.
//!
//! The layout is that of linux/ethtool.h: `ethtool_rxnfc` with an `ethtool_rx_flow_spec` in it, and behind it the
//! numbers of rules. Only what is named here is read or written. Beside them what is asked in the same way: whose driver
//! it is, by `ethtool_drvinfo`.

use std::io;

use crate::interface::{asked, ethtool, request};

const GDRVINFO: u32 = 0x03;
const GRXCLSRLCNT: u32 = 0x2e;
const GRXCLSRULE: u32 = 0x2f;
const GRXCLSRLALL: u32 = 0x30;
const SRXCLSRLDEL: u32 = 0x31;
const SRXCLSRLINS: u32 = 0x32;

/// Kinds of flow: UDP over IPv4 and over IPv6, and anything by its Ethernet header; the bit says that the tag counts too.
const UDP_V4_FLOW: u32 = 0x02;
const UDP_V6_FLOW: u32 = 0x06;
const ETHER_FLOW: u32 = 0x12;
const FLOW_EXT: u32 = 0x8000_0000;
/// What a rule by the priority of a VLAN tag, PCP, asks for of [`MASK_EXTENSION`]: its three bits.
const PCP_MASK: [u8; EXTENSION] = [0, 0, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Where the members are, in bytes.
const DATA: usize = 8;
const FLOW_TYPE: usize = 16;
const VALUE: usize = 20;
const VALUE_TAG: usize = 82;
const MASK: usize = 92;
/// The mask for the kind of the tag, the tag, and data of the driver's own; and its bytes.
const MASK_EXTENSION: usize = 152;
const EXTENSION: usize = 12;
const QUEUE: usize = 168;
const LOCATION: usize = 176;
const RULES: usize = 184;
const LOCATIONS: usize = 188;
const SIZE: usize = 192;
/// The destination port within `ethtool_tcpip4_spec` and `ethtool_tcpip6_spec`.
const PORT: usize = 10;
const PORT_V6: usize = 34;
/// The type within `ethhdr`.
const ETHERTYPE: usize = 12;
/// The union that VALUE and MASK begin: what is set of it must be known, or the rule is none of ours.
const UNION: usize = 52;

/// Rules that are read; tables of NICs have room for 16 to some thousands. Higher costs memory for each look.
const MAX_RULES: u32 = 4_096;
/// A table whose driver chooses the place itself says so by this bit of its size.
const SPECIAL: u64 = 0x8000_0000;

/// The names of the driver and of the device in `ethtool_drvinfo`, and how many bytes each has.
const DRIVER: usize = 4;
const DEVICE: usize = 100;
const NAME: usize = 32;
/// Bytes of `ethtool_drvinfo`.
const DRIVER_INFO: usize = 196;

/// Which frames a rule is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowFrames {
    /// UDP over IPv4 to this port, from and to whatever address.
    UdpPort(u16),
    /// The same over IPv6.
    Udp6Port(u16),
    /// Frames with a VLAN tag of this priority.
    Pcp(u8),
    /// Frames of this type, with a tag or without.
    EtherType(u16),
    /// Anything else.
    Other,
}

/// One rule of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRule {
    /// Its place in the table; lower ones win.
    pub location: u32,
    /// The receive queue that the frames go to.
    pub queue: u64,
    /// Which frames.
    pub frames: FlowFrames,
}

/// The memory of one call.
///
/// Invariant: it is at least [`SIZE`] bytes, and longer by four bytes for each rule that [`RULES`] asks for, so the
/// kernel writes inside of it.
struct Command {
    words: Vec<u64>,
}

impl Command {
    fn new(command: u32, rules: u32) -> Command {
        let bytes = SIZE + 4 * rules as usize;
        let mut made = Command { words: vec![0; bytes.div_ceil(8)] };
        made.put(0, &command.to_ne_bytes());
        made.put(RULES, &rules.to_ne_bytes());
        made
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        for (offset, byte) in bytes.iter().enumerate() {
            let (word, shift) = ((at + offset) / 8, (at + offset) % 8);
            if let Some(word) = self.words.get_mut(word) {
                let mut all = word.to_ne_bytes();
                all[shift] = *byte;
                *word = u64::from_ne_bytes(all);
            }
        }
    }

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|offset| {
            let word = self.words.get((at + offset) / 8).copied().unwrap_or(0);
            word.to_ne_bytes()[(at + offset) % 8]
        })
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes(at))
    }

    fn call(&mut self, interface: &str) -> io::Result<()> {
        let mut request = request(interface).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the data begins with a command, and lives through the call: by the invariant of `Command` it has room
        // for all that the kernel writes.
        Ok(unsafe { ethtool(&asked()?, &mut request, self.words.as_mut_ptr().cast()) }?)
    }

    fn write_rule(&mut self, rule: &FlowRule) -> io::Result<()> {
        let kind = match rule.frames {
            FlowFrames::UdpPort(port) => {
                self.put(VALUE + PORT, &port.to_be_bytes());
                self.put(MASK + PORT, &[0xff; 2]);
                UDP_V4_FLOW
            }
            FlowFrames::Udp6Port(port) => {
                self.put(VALUE + PORT_V6, &port.to_be_bytes());
                self.put(MASK + PORT_V6, &[0xff; 2]);
                UDP_V6_FLOW
            }
            FlowFrames::Pcp(pcp) => {
                self.put(VALUE_TAG, &(u16::from(pcp) << 13).to_be_bytes());
                self.put(MASK_EXTENSION, &PCP_MASK);
                ETHER_FLOW | FLOW_EXT
            }
            FlowFrames::EtherType(kind) => {
                self.put(VALUE + ETHERTYPE, &kind.to_be_bytes());
                self.put(MASK + ETHERTYPE, &[0xff; 2]);
                ETHER_FLOW
            }
            FlowFrames::Other => return Err(io::ErrorKind::InvalidInput.into()),
        };
        self.put(FLOW_TYPE, &kind.to_ne_bytes());
        self.put(QUEUE, &rule.queue.to_ne_bytes());
        self.put(LOCATION, &rule.location.to_ne_bytes());
        Ok(())
    }

    fn read_rule(&self) -> FlowRule {
        let (value, mask): ([u8; UNION], [u8; UNION]) = (self.bytes(VALUE), self.bytes(MASK));
        let tag = u16::from_be_bytes(self.bytes(VALUE_TAG));
        let extension: [u8; EXTENSION] = self.bytes(MASK_EXTENSION);
        // ixgbe_get_ethtool_fdir_entry of Linux, and what is copied from it, set the bit of every rule.
        let without_extension = if extension == [0; EXTENSION] { FLOW_EXT } else { 0 };
        let cares: Vec<usize> = (0..UNION).filter(|at| mask[*at] != 0).collect();
        let number = |at: usize| u16::from_be_bytes([value[at], value[at + 1]]);
        let whole = cares.iter().all(|at| mask[*at] == 0xff);
        let frames = match self.word(FLOW_TYPE) & !without_extension {
            UDP_V4_FLOW if whole && cares == [PORT, PORT + 1] => FlowFrames::UdpPort(number(PORT)),
            UDP_V6_FLOW if whole && cares == [PORT_V6, PORT_V6 + 1] => FlowFrames::Udp6Port(number(PORT_V6)),
            kind if kind == ETHER_FLOW | FLOW_EXT && cares.is_empty() && extension == PCP_MASK => {
                FlowFrames::Pcp((tag >> 13) as u8)
            }
            ETHER_FLOW if whole && cares == [ETHERTYPE, ETHERTYPE + 1] => {
                FlowFrames::EtherType(number(ETHERTYPE))
            }
            _ => FlowFrames::Other,
        };
        let queue = u64::from_ne_bytes(self.bytes(QUEUE));
        FlowRule { location: self.word(LOCATION), queue, frames }
    }
}

/// The name of the driver of an interface's device; empty without a device, as of a veth pair.
///
/// ```
/// assert_eq!(taut_xdp::driver("lo"), "");
/// ```
pub fn driver(interface: &str) -> String {
    // It is as long as a command with one rule.
    let mut info = Command::new(GDRVINFO, 1);
    let name = |info: &Command, at| {
        let bytes: [u8; NAME] = info.bytes(at);
        let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    };
    match info.call(interface) {
        Ok(()) if !name(&info, DEVICE).is_empty() => name(&info, DRIVER),
        _ => String::new(),
    }
}

const _: () = assert!(DRIVER_INFO <= SIZE + 4);

/// How many rules the NIC has room for, and those that it has.
///
/// *Errors*: what the kernel says; `EOPNOTSUPP` where the driver has no rules.
/// *Cost*: a call for each rule.
pub fn flow_rules(interface: &str) -> io::Result<(u64, Vec<FlowRule>)> {
    let mut count = Command::new(GRXCLSRLCNT, 0);
    count.call(interface)?;
    let room = count.word(RULES).min(MAX_RULES);
    let mut all = Command::new(GRXCLSRLALL, room);
    all.call(interface)?;
    let size = [&count, &all].map(|command| u64::from_ne_bytes(command.bytes(DATA)) & !SPECIAL);
    let mut rules = Vec::new();
    for at in 0..all.word(RULES).min(room) {
        let mut one = Command::new(GRXCLSRULE, 0);
        one.put(LOCATION, &all.bytes::<4>(LOCATIONS + 4 * at as usize));
        one.call(interface)?;
        rules.push(one.read_rule());
    }
    Ok((size[0].max(size[1]), rules))
}

/// Adds a rule at its place.
///
/// *Errors*: what the driver says; `EINVAL` for [`FlowFrames::Other`].
pub fn insert_flow_rule(interface: &str, rule: &FlowRule) -> io::Result<()> {
    let mut command = Command::new(SRXCLSRLINS, 0);
    command.write_rule(rule)?;
    command.call(interface)
}

/// Removes the rule at this place.
///
/// *Errors*: what the driver says.
pub fn remove_flow_rule(interface: &str, location: u32) -> io::Result<()> {
    let mut command = Command::new(SRXCLSRLDEL, 0);
    command.put(LOCATION, &location.to_ne_bytes());
    command.call(interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_as_it_was_written() {
        for frames in [
            FlowFrames::UdpPort(7411),
            FlowFrames::Udp6Port(7411),
            FlowFrames::Pcp(6),
            FlowFrames::EtherType(0x88b5),
        ] {
            let rule = FlowRule { location: 63, queue: 3, frames };
            let mut command = Command::new(SRXCLSRLINS, 0);
            command.write_rule(&rule).unwrap();
            assert_eq!(command.read_rule(), rule);
            command.put(MASK, &[0xff]);
            assert_eq!(command.read_rule().frames, FlowFrames::Other, "it asks for an address too");
        }
    }

    /// Some drivers say of every rule that its tag counts, too; what counts is what the mask asks for.
    #[test]
    fn a_rule_that_is_said_to_ask_for_more() {
        for frames in [
            FlowFrames::UdpPort(7411),
            FlowFrames::Udp6Port(7411),
            FlowFrames::Pcp(6),
            FlowFrames::EtherType(0x88b5),
        ] {
            let mut command = Command::new(SRXCLSRLINS, 0);
            command.write_rule(&FlowRule { location: 63, queue: 3, frames }).unwrap();
            command.put(FLOW_TYPE, &(command.word(FLOW_TYPE) | FLOW_EXT).to_ne_bytes());
            assert_eq!(command.read_rule().frames, frames);
            for at in MASK_EXTENSION..MASK_EXTENSION + EXTENSION {
                let [was] = command.bytes(at);
                command.put(at, &[0x1f]);
                assert_eq!(command.read_rule().frames, FlowFrames::Other, "{frames:?} with byte {at}");
                command.put(at, &[was]);
            }
        }
    }

    /// Offsets that a C compiler gives on a 64-bit machine.
    #[test]
    fn the_layout_of_the_kernel() {
        let set = |frames| {
            let mut command = Command::new(SRXCLSRLINS, 0);
            command.write_rule(&FlowRule { location: 7, queue: 2, frames }).unwrap();
            let bytes: [u8; SIZE] = command.bytes(0);
            bytes.iter().copied().enumerate().filter(|(_, byte)| *byte != 0).collect::<Vec<(usize, u8)>>()
        };
        let wanted =
            [(0, 0x32), (16, 2), (30, 0x1d), (31, 0x05), (102, 0xff), (103, 0xff), (168, 2), (176, 7)];
        assert_eq!(set(FlowFrames::UdpPort(0x1d05)), wanted);
        let wanted =
            [(0, 0x32), (16, 6), (54, 0x1d), (55, 0x05), (126, 0xff), (127, 0xff), (168, 2), (176, 7)];
        assert_eq!(set(FlowFrames::Udp6Port(0x1d05)), wanted);
    }

    #[test]
    fn the_loopback_interface_has_no_rules() {
        assert_eq!(flow_rules("lo").unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
        assert!(flow_rules("a name that is too long").is_err());
    }
}

//! What the program does with a frame: redirects it to the socket of its queue, or passes it to the kernel.
//!
//! Owns the instructions, and the tags by which the kernel knows them. All bytes are looked at behind a check of
//! the frame's end; a frame that is short, fragmented, has options or extension headers, carries anything else or a
//! datagram longer than one is on this network is the kernel's. Each map is known by its number only.

use std::net::{IpAddr, SocketAddr};

use crate::assembler::Register::{R0, R1, R2, R3, R6, R7, R8, R9, R10};
use crate::assembler::{Assembler, Code, Label, Size};

/// The ethertype of mode L2: the first of the two that IEEE 802 leaves to local experiments.
pub const ETHERTYPE: u16 = 0x88b5;

/// Which frames are redirected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// UDP over IPv4 or IPv6 to one of our addresses and ports, with a message of RTPS in it, in packets as long as the
    /// MTU at most, of our network.
    L3,
    /// Ethernet of [`ETHERTYPE`], of our network.
    L2,
}

/// The number of the map of destinations in mode L3, and of that of networks in mode L2.
pub(crate) const DESTINATIONS: usize = 1;
/// The places of the map of networks: one for each number that a tag can have, 0 for what is of none.
pub(crate) const NETWORKS: u32 = 1 << 12;
/// The number of the map of sockets.
pub(crate) const SOCKETS: usize = 0;

// Results of a program and helpers of the kernel, from linux/bpf.h.
const PASS: i32 = 2;
const MAP_LOOKUP_ELEM: i32 = 1;
const REDIRECT_MAP: i32 = 51;

// Places in what the program is given, struct xdp_md.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE_INDEX: i16 = 16;

const ETHERNET: i16 = 14;
/// 802.1Q: between the addresses and the ethertype.
const TAG: i16 = 4;
const IPV4: i16 = 20;
const IPV6: i16 = 40;
const UDP: i16 = 8;
/// Where the key of a destination is made, on the stack. See [`Key`].
const KEY: i16 = -(size_of::<Key>() as i16);
const KEY_PORT: i16 = KEY + 16;
const KEY_QUEUE: i16 = KEY_PORT + 2;
/// In mode L2 it is the key alone.
const KEY_NETWORK: i16 = KEY_QUEUE + 2;

const UDP_AND_MAGIC: i16 = UDP + MAGIC.len() as i16;

/// The bits of a tag that name a network; the others are a priority.
const NETWORK: u16 = 0x0fff;

const TYPE_VLAN: u16 = 0x8100;
const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const PROTOCOL_UDP: i32 = 17;
/// RTPS 2.5 §9.4.4: what a message begins with.
const MAGIC: [u8; 4] = *b"RTPS";

/// A destination as the map of them has it, address and port in the order of the network. A port alone does not do: a
/// host may pass on, by routes or bridges, what is for the same port of another one. The queue is in it because queues
/// have different owners: what comes by another one's queue is the kernel's, which knows whose it is. The network (VID; 0:
/// none) is in it because others may have the same address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct Key {
    address: [u8; 16],
    port: [u8; 2],
    queue: u16,
    network: u32,
}

impl Key {
    pub fn new(to: SocketAddr, queue: u16, network: u16) -> Key {
        let address = match to.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        Key { address: address.octets(), port: to.port().to_be_bytes(), queue, network: network.into() }
    }
}

/// What the map of destinations has of each: the bytes of the longest datagram of UDP there, its header among them.
/// Longer ones are rows that nobody has cut: generic XDP sees them before the kernel does, and they fit no chunk, or are
/// several messages that look like one.
pub(crate) fn longest_datagram(to: SocketAddr, mtu: u32) -> u32 {
    mtu.saturating_sub(if to.is_ipv4() { IPV4 } else { IPV6 } as u32)
}

/// What 16 bits of the network are when they are loaded as they stand.
const fn half(value: u16) -> i32 {
    u16::from_ne_bytes(value.to_be_bytes()) as i32
}

/// The program of a mode.
pub(crate) fn assemble(mode: Mode) -> Code {
    let mut code = Assembler::default();
    let pass = code.label();
    code.copy(R6, R1);
    code.load(Size::Word, R7, R6, DATA);
    code.load(Size::Word, R8, R6, DATA_END);
    ethertype(&mut code, pass);
    match mode {
        Mode::L3 => udp(&mut code, pass),
        Mode::L2 => {
            code.jump_unless(R3, half(ETHERTYPE), pass);
            code.copy(R2, R10);
            code.add(R2, i32::from(KEY_NETWORK));
            look_up(&mut code, pass);
            code.jump_if(R3, 0, pass);
        }
    }
    code.load(Size::Word, R2, R6, RX_QUEUE_INDEX);
    code.map(R1, SOCKETS);
    // The result where the queue has no socket.
    code.set(R3, PASS);
    code.call(REDIRECT_MAP);
    code.exit();
    code.place(pass);
    code.set(R0, PASS);
    code.exit();
    code.finish()
}

/// Passes unless the frame has so many bytes from R7 on.
fn require(code: &mut Assembler, len: i16, pass: Label) {
    code.copy(R2, R7);
    code.add(R2, i32::from(len));
    code.jump_if_above(R2, R8, pass);
}

/// Leaves the ethertype in R3, and the network in the key; a tag is behind R7 then.
fn ethertype(code: &mut Assembler, pass: Label) {
    let untagged = code.label();
    require(code, ETHERNET, pass);
    code.load(Size::Half, R3, R7, ETHERNET - 2);
    code.set(R9, 0);
    code.jump_unless(R3, half(TYPE_VLAN), untagged);
    require(code, ETHERNET + TAG, pass);
    code.load(Size::Half, R9, R7, ETHERNET);
    code.and(R9, half(NETWORK));
    code.network16(R9);
    code.load(Size::Half, R3, R7, ETHERNET + TAG - 2);
    code.add(R7, i32::from(TAG));
    code.place(untagged);
    code.store(Size::Word, R10, KEY_NETWORK, R9);
}

/// Leaves in R3 what the second map has for the key that R2 points to, or passes if it has nothing.
fn look_up(code: &mut Assembler, pass: Label) {
    code.map(R1, DESTINATIONS);
    code.call(MAP_LOOKUP_ELEM);
    code.jump_if(R0, 0, pass);
    code.load(Size::Word, R3, R0, 0);
}

/// Passes unless a message of RTPS for one of our destinations is in it.
fn udp(code: &mut Assembler, pass: Label) {
    let (is_ipv6, is_udp) = (code.label(), code.label());
    code.jump_if(R3, half(TYPE_IPV6), is_ipv6);
    code.jump_unless(R3, half(TYPE_IPV4), pass);
    ipv4(code, pass);
    code.jump(is_udp);
    code.place(is_ipv6);
    ipv6(code, pass);
    code.place(is_udp);
    // A payload that the length does not claim is padding of the frame.
    code.load(Size::Half, R3, R7, 4);
    code.network16(R3);
    code.jump_if_below(R3, i32::from(UDP_AND_MAGIC), pass);
    code.copy(R9, R3);
    code.load(Size::Word, R3, R7, UDP);
    code.jump_unless(R3, i32::from_ne_bytes(MAGIC), pass);
    code.load(Size::Half, R3, R7, 2);
    code.store(Size::Half, R10, KEY_PORT, R3);
    code.load(Size::Word, R3, R6, RX_QUEUE_INDEX);
    code.store(Size::Half, R10, KEY_QUEUE, R3);
    code.copy(R2, R10);
    code.add(R2, i32::from(KEY));
    look_up(code, pass);
    code.jump_if_above(R9, R3, pass);
}

/// Passes unless UDP follows, at R7 then.
fn ipv4(code: &mut Assembler, pass: Label) {
    require(code, ETHERNET + IPV4 + UDP_AND_MAGIC, pass);
    // Version 4 and no options.
    code.load(Size::Byte, R3, R7, ETHERNET);
    code.jump_unless(R3, 0x45, pass);
    // No fragments before, and none to come.
    code.load(Size::Half, R3, R7, ETHERNET + 6);
    code.and(R3, half(0x3fff));
    code.jump_unless(R3, 0, pass);
    code.load(Size::Byte, R3, R7, ETHERNET + 9);
    code.jump_unless(R3, PROTOCOL_UDP, pass);
    // The address as one of IPv6: ::ffff:a.b.c.d.
    for (at, bytes) in [[0; 4], [0; 4], [0, 0, 0xff, 0xff]].into_iter().enumerate() {
        code.set(R3, i32::from_ne_bytes(bytes));
        code.store(Size::Word, R10, KEY + 4 * at as i16, R3);
    }
    code.load(Size::Word, R3, R7, ETHERNET + IPV4 - 4);
    code.store(Size::Word, R10, KEY + 12, R3);
    code.add(R7, i32::from(ETHERNET + IPV4));
}

/// Passes unless UDP follows, at R7 then.
fn ipv6(code: &mut Assembler, pass: Label) {
    require(code, ETHERNET + IPV6 + UDP_AND_MAGIC, pass);
    code.load(Size::Byte, R3, R7, ETHERNET);
    code.and(R3, 0xf0);
    code.jump_unless(R3, 0x60, pass);
    code.load(Size::Byte, R3, R7, ETHERNET + 6);
    code.jump_unless(R3, PROTOCOL_UDP, pass);
    for at in (0..16).step_by(4) {
        code.load(Size::Word, R3, R7, ETHERNET + IPV6 - 16 + at);
        code.store(Size::Word, R10, KEY + at, R3);
    }
    code.add(R7, i32::from(ETHERNET + IPV6));
}

/// The tags by which kernels know the program of a mode: the first bytes of the digest of its instructions
/// without the maps' descriptors, SHA-256 since Linux 6.18 and SHA-1 before. They are those of machines that
/// store the low byte first.
pub(crate) fn tags(mode: Mode) -> [[u8; 8]; 2] {
    let [sha256, sha1]: [u64; 2] = match mode {
        Mode::L3 => [0xfaad_cee4_422f_9595, 0x1f02_72bc_8032_35fc],
        Mode::L2 => [0x31b7_8282_984b_0f26, 0x9811_017c_de6e_4f46],
    };
    [sha256.to_be_bytes(), sha1.to_be_bytes()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn digest(program: &str, bytes: &[u8]) -> u64 {
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        u64::from_str_radix(std::str::from_utf8(&output.stdout[..16]).unwrap(), 16).unwrap()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn tags_are_those_of_the_instructions() {
        for mode in [Mode::L3, Mode::L2] {
            let bytes = assemble(mode).bytes();
            let found = ["sha256sum", "sha1sum"].map(|program| digest(program, &bytes));
            assert_eq!(tags(mode).map(u64::from_be_bytes), found, "{mode:?}: {found:#x?}");
        }
    }
}

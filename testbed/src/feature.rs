//! What a driver does with frames, and is asked to do or not: `ethtool -K`.
//! Documentation/networking/ethtool-netlink.rst of Linux; numbers of linux/ethtool_netlink.h and linux/genetlink.h.

use nix::sys::socket::SockProtocol;
use taut_netlink::{Attributes, Socket, attribute, half};

/// The family that knows all others, its one request, and the attributes of that.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// genlmsghdr: command, version, and two bytes of nothing.
const GENERIC: usize = 4;

const SET_FEATURES: u8 = 12;
/// The interface, by its name.
const HEADER: u16 = 1;
const DEVICE_NAME: u16 = 2;
/// What is wanted: a list, and of an element of it the name, and that it is to be on.
const WANTED: u16 = 3;
const BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// Has the driver of an interface in this thread's namespace do something or not; the kernel's names of what it may do are
/// longer than those of ethtool.
pub fn set_feature(interface: &str, feature: &str, on: bool) {
    let mut kernel = Socket::open(SockProtocol::NetlinkGeneric).expect("generic netlink");
    let ask = generic(GET_FAMILY, &Attributes::default().with_text(FAMILY_NAME, "ethtool"));
    let family = kernel.request(CONTROL, 0, &ask).expect("the family ethtool");
    let family = family.iter().find_map(|answer| half(attribute(answer.get(GENERIC..)?, FAMILY_ID)?, 0));
    let named = Attributes::default().with_text(BIT_NAME, feature);
    let bit = if on { named.with(BIT_VALUE, &[]) } else { named };
    let bits = Attributes::default().with_nested(BIT, &bit);
    let wanted = Attributes::default()
        .with_nested(HEADER, &Attributes::default().with_text(DEVICE_NAME, interface))
        .with_nested(WANTED, &Attributes::default().with_nested(BITS, &bits));
    let set = generic(SET_FEATURES, &wanted);
    let done = kernel.request(family.expect("its number"), 0, &set);
    assert!(done.is_ok(), "{feature} of {interface}: {done:?}");
}

fn generic(command: u8, attributes: &Attributes) -> Vec<u8> {
    [[command, 1, 0, 0].as_slice(), &attributes.0].concat()
}
